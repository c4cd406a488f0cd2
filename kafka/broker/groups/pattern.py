"""Topic patterns of the consumer protocol: RE2 expressions, translated into those of Python's ``re``.

Kafka's brokers use RE2/J and match a pattern against the whole name of a topic. Most of RE2 means the same to ``re``
and passes through. What differs:

==============================  =====================================================================================
RE2                             here
==============================  =====================================================================================
``\\z``                          ``\\Z``: the end of the name
``\\Q...\\E``                     the text in between, quoted
``(?<name>...)``                ``(?P<name>...)``
``[[:alpha:]]`` and its like    the ASCII ranges that they stand for, within a class
``\\pL``, ``\\p{Greek}``          refused: ``re`` knows no Unicode classes
``\\C``, ``(?U)``                refused
lookaround, back references,    refused, as RE2 refuses them: what it takes runs in time linear to the name
possessive and atomic groups
==============================  =====================================================================================

Python's engine backtracks, so a pattern can be written that takes it long; names of topics have at most 249 characters
and the embedded broker's clients are the user's own.
"""

from __future__ import annotations

import re
import warnings
from typing import Final

from kafka.errors import InvalidRegularExpressionError

__all__ = ["compile_re2"]

_POSIX: Final = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "ascii": r"\x00-\x7F",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1F\x7F",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t\n\v\f\r ",
    "upper": "A-Z",
    "word": "0-9A-Za-z_",
    "xdigit": "0-9A-Fa-f",
}
#: One thing of the expression at a time; what none of them matches is copied as it is.
_TOKEN: Final = re.compile(
    r"""
      \\Q (?P<quoted>.*?) (?:\\E|\Z)
    | \\ (?P<escape>.)
    | \[: (?P<posix>\^?[a-z]+) :\]
    | \( \? (?P<group> P?<[A-Za-z_]\w*> | P[=>] | <?[=!] | [>(|\#] | [a-zA-Z-]*[:)] )
    | (?P<repeat> [*+?] | \{\d+(?:,\d*)?\} ) \+
    """,
    re.VERBOSE | re.DOTALL,
)
_REFUSED_ESCAPES: Final = frozenset("pPCXZ123456789kGRhHV")


def compile_re2(expression: str) -> re.Pattern[str]:
    """Return the compiled translation; use ``fullmatch``.

    >>> bool(compile_re2("orders-[[:digit:]]+").fullmatch("orders-17"))
    True
    """
    try:
        with warnings.catch_warnings():
            # FutureWarning: what looks like a set operation to a later re is none in RE2 either.
            warnings.simplefilter("ignore")
            return re.compile(_TOKEN.sub(_translate, expression), re.ASCII)
    except (re.error, OverflowError, RecursionError) as error:
        raise InvalidRegularExpressionError(f"SubscribedTopicRegex `{expression}` is not valid: {error}.") from None


def _translate(match: re.Match[str]) -> str:
    kind = match.lastgroup
    if kind == "quoted":
        return re.escape(match["quoted"])
    if kind == "escape":
        return _escape(match["escape"])
    if kind == "posix":
        return _posix(match["posix"])
    if kind == "group":
        return _group(match["group"])
    raise re.error("a repetition of a repetition")


def _escape(letter: str) -> str:
    if letter in _REFUSED_ESCAPES:
        raise re.error(f"\\{letter} is not supported")
    return r"\Z" if letter == "z" else "\\" + letter


def _posix(name: str) -> str:
    ranges = _POSIX.get(name.lstrip("^"))
    if ranges is None or name.startswith("^"):
        raise re.error(f"[:{name}:] is not supported")
    return ranges


def _group(opening: str) -> str:
    if opening.startswith("<") and opening[1] not in "=!":
        return f"(?P{opening}"
    if opening.startswith("P<"):
        return f"(?{opening}"
    if opening[0] in "<=!>(|#P" or "U" in opening or set(opening) & set("aLux"):
        raise re.error(f"(?{opening} is not supported")
    return f"(?{opening}"
