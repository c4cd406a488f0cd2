"""RE2: what it takes matches as with RE2, what it refuses is refused, and nothing takes long."""

from __future__ import annotations

import re
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.broker.groups.pattern import compile_re2
from kafka.errors import InvalidRegularExpressionError


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
        ("(?s).", "\n"),
        ("(?m)a$\n^b", "a\nb"),
        ("[[:alpha:]_]+[[:digit:]]", "abc_1"),
        ("[[:^digit:]]", "x"),
        ("[]a]+", "a]"),
        ("[^]a]", "b"),
        ("[a-]+", "a-"),
        (r"[\d.-]+", "1.-"),
        (r"[\W]", "-"),
        (r"\d\w\.", "1a."),
        (r"\x41\x{42}\103\t", "ABC\t"),
        (r"\pL\p{Nd}\PN\p{^L}", "a1a1"),
        (r"a\Bb\b-\bc\b", "ab-c"),
        (r"\B", ""),
        ("a{2,3}?", "aa"),
        ("a{2}b{1,}", "aab"),
        ("a{,2}", "a{,2}"),
        ("a{x", "a{x"),
        ("(|a)b", "b"),
        ("(a*)*b", "aab"),
        ("(?:(?:a?){3}){3}", "a" * 9),
        ("", ""),
    ],
)
def test_what_re2_takes_matches_whole_names(expression: str, name: str) -> None:
    pattern = compile_re2(expression)
    assert pattern.fullmatch(name)
    assert pattern.fullmatch(name)  # now from what was remembered
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
def test_what_re2_does_not_match(expression: str, name: str) -> None:
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
def test_what_re2_refuses_is_an_error(expression: str) -> None:
    with pytest.raises(InvalidRegularExpressionError, match="is not valid"):
        compile_re2(expression)


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("(a+)+b", "a" * 248 + "-"),
        ("(a|a)*b", "a" * 248 + "-"),
        ("(a*)*(a*)*(a*)*b", "a" * 248 + "-"),
        ("(.*.*.*.*.*.*a){9}", "b" * 249),
        ("(a?){300}a{300}", "a" * 249),
        ("((a?){10}){100}b", "a" * 249),
    ],
)
def test_no_pattern_takes_time_that_grows_with_the_power_of_the_name(expression: str, name: str) -> None:
    assert not compile_re2(expression).fullmatch(name)  # years with an engine that backtracks


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
def test_it_matches_what_re_matches(expression: str, names: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = re.compile(expression, re.ASCII)
    pattern = compile_re2(expression)
    for name in names:
        assert pattern.fullmatch(name) == bool(expected.fullmatch(name)), (expression, name)
