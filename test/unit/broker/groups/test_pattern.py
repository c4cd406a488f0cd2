"""RE2 in the words of re: what means the same, what is translated, what is refused."""

from __future__ import annotations

import pytest

from kafka.broker.groups.pattern import compile_re2
from kafka.errors import InvalidRegularExpressionError


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("orders-[a-z]*", "orders-eu"),
        (r"a\z", "a"),
        (r"\Qa.b\E+", "a.bb"),
        (r"\Qa.b", "a.b"),
        ("(?<year>[0-9]+)", "2026"),
        ("(?P<year>[0-9]+)", "2026"),
        ("(?:a|b)c", "bc"),
        ("(?i)ORDERS", "orders"),
        ("(?i:O)rders", "orders"),
        ("[[:alpha:]_]+[[:digit:]]", "abc_1"),
        (r"\d\w\.", "1a."),
        ("a{2,3}?", "aa"),
    ],
)
def test_what_re2_takes_matches_whole_names(expression: str, name: str) -> None:
    pattern = compile_re2(expression)
    assert pattern.fullmatch(name)
    assert not pattern.fullmatch(name + "!")


@pytest.mark.parametrize(
    "expression",
    [
        "(",
        "a**",
        "a++",
        "(?=a)",
        "(?!a)",
        "(?<=a)b",
        "(?<!a)b",
        "(?>a)",
        r"(a)\1",
        r"\pL",
        r"\C",
        "(?U)a",
        "[[:nope:]]",
    ],
)
def test_what_re2_refuses_or_re_cannot_do_is_an_error(expression: str) -> None:
    with pytest.raises(InvalidRegularExpressionError, match="is not valid"):
        compile_re2(expression)
