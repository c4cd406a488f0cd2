"""RE2: what it takes matches as with RE2, what it refuses is refused, and nothing takes long."""

from __future__ import annotations

import re
import time
import warnings

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kafka.broker.groups.pattern import compile_re2
from kafka.errors import InvalidRegularExpressionError
from test.speed import slowness


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("orders-[a-z]*", "orders-eu"),
        (r"a\z", "a"),
        (r"\Aa$", "a"),
        (r"\Qa.b\E+", "a.bb"),
        (r"\Qa.b", "a.b"),
        (r"\Q\E", ""),
        ("(?<year>[0-9]+)", "2026"),
        ("(?P<year>[0-9]+)", "2026"),
        ("(?:a|b)c", "bc"),
        ("(?i)ORDERS", "orders"),
        ("(?i:O)rders", "orders"),
        ("(?i)[^x]", "Y"),
        ("a(?i)B", "ab"),
        ("(?U)a+", "aa"),
        ("[[:alpha:]_]+[[:digit:]]", "abc_1"),
        ("[[:^digit:]]", "x"),
        ("[]a]+", "a]"),
        ("[^]a]", "b"),
        ("[a-]+", "a-"),
        (r"[\d.-]+", "1.-"),
        (r"[\W]", "-"),
        (r"\d\w\.", "1a."),
        (r"\x41\x{42}\t", "AB\t"),
        (r"a\Bb\b-\bc\b", "ab-c"),
        ("a{2,3}?", "aa"),
        ("a{2}b{1,}", "aab"),
        ("a{,2}", "a{,2}"),
        ("a{x", "a{x"),
        ("(|a)b", "b"),
        ("(?:(?:a?){3}){3}", "a" * 9),
        ("", ""),
        ("(-[a-z]+)*", "-eu-west"),
        (r"([^.]+\.)*[a-z]", "a.b.c"),
        ("(?:ab|cd)+", "abcdab"),
        (".*-eu-.*-orders", "a-eu-b-orders"),
    ],
)
def test_an_expression_of_re2_matches_whole_names(expression: str, name: str) -> None:
    pattern = compile_re2(expression)
    assert pattern.fullmatch(name)
    assert not pattern.fullmatch(name + "!")


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        (r"[^\d]", "1"),
        ("(?i)[^x]", "X"),
        (r"a\Bb\b-", "ab-x"),
        ("(?i:O)rders", "oRders"),
        (".", "\n"),
        (r"\s", "\v"),
        ("a$", "a\n"),
    ],
)
def test_an_expression_of_re2_does_not_match_other_names(expression: str, name: str) -> None:
    assert not compile_re2(expression).fullmatch(name)


@pytest.mark.parametrize(
    "expression",
    [
        "(",
        ")",
        "(?",
        "[",
        "[a",
        "[b-a]",
        r"[\d-z]x[",
        "\\",
        "*",
        "a**",
        "a++",
        "a{1001}",
        "a{3,2}",
        "(?=a)",
        "(?!a)",
        "(?<=a)b",
        "(?<!a)b",
        "(?>a)",
        "(?#a)",
        "(?P=n)",
        "(?P<n>a)(?P<n>b)",
        "(?P<1>a)",
        "(?x)a",
        r"(a)\1",
        r"\p{Greek}",
        r"\pX",
        r"\C",
        r"\Z",
        r"\y",
        r"\x{110000}",
        r"\xg0",
        "[[:nope:]]",
        "(" * 5000,
        "(" * 5000 + ")" * 5000,
        "((a{1000}){1000}){1000}",
        "((){1000}){1000}",
        "a" * 32_769,
    ],
)
def test_an_expression_that_re2_refuses_is_an_error(expression: str) -> None:
    with pytest.raises(InvalidRegularExpressionError, match="is not valid"):
        compile_re2(expression)


@pytest.mark.parametrize(
    "expression",
    [
        "(a+)+b",
        "(a|a)*b",
        "(a|ab)*b",
        "(a*)*(a*)*(a*)*b",
        "(.*.*.*.*.*.*a){9}",
        ".*a.*a.*a.*",
        "(a?){300}a{300}",
        "((a?){10}){100}b",
        "(-[a-z-]+)*",
        "((ab)*a)*",
    ],
)
def test_an_expression_that_could_take_too_long_is_refused_although_kafka_takes_it(expression: str) -> None:
    with pytest.raises(InvalidRegularExpressionError, match="too long"):
        compile_re2(expression)


def test_a_list_of_a_thousand_names_is_a_pattern() -> None:
    names = [f"orders-of-{number}-in-europe" for number in range(1000)]
    pattern = compile_re2("|".join(names))
    assert all(pattern.fullmatch(name) for name in names)
    assert not pattern.fullmatch("orders-of-1000-in-europe")


REPEATS = st.sampled_from(["*", "+", "?", "*?", "{2}", "{0,2}", "{1,}"])
EXPRESSIONS = st.recursive(
    st.sampled_from(["a", "b", ".", "[ab]", "[^a]", r"\b", r"\B", r"\w", "^", "", "a-"]),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda pair: f"(?:{pair[0]}|{pair[1]})"),
        st.tuples(inner, REPEATS).map(lambda pair: f"(?:{pair[0]}){pair[1]}"),
    ),
    max_leaves=8,
)


@given(EXPRESSIONS, st.lists(st.text("ab-", min_size=1, max_size=6), min_size=1, max_size=5))
def test_it_matches_the_names_that_re_matches(expression: str, names: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = re.compile(expression, re.ASCII)
    pattern = accepted(expression)
    for name in names:
        assert bool(pattern.fullmatch(name)) == bool(expected.fullmatch(name)), (expression, name)


@given(EXPRESSIONS, st.text("ab-", min_size=1, max_size=3), st.sampled_from(["", "!", "a", "-"]))
def test_an_accepted_expression_takes_less_than_seconds(expression: str, part: str, end: str) -> None:
    pattern = accepted(expression)
    begun = time.process_time()
    pattern.fullmatch((part * 249)[:248] + end)
    spent = time.process_time() - begun
    assert spent < 3 or spent < 3 * slowness(), expression


def accepted(expression: str) -> re.Pattern[str]:
    """The compiled expression; the example is passed over where it is refused."""
    try:
        return compile_re2(expression)
    except InvalidRegularExpressionError as error:
        assume("too long" not in str(error))
        raise
