"""SASLprep (RFC 4013): the one form of a name or password that both sides hash.

A profile of stringprep (RFC 3454) for query strings: code points unassigned in Unicode 3.2 pass.
"""

from __future__ import annotations

import stringprep
import unicodedata
from collections.abc import Callable
from typing import Final

__all__ = ["saslprep"]

# RFC 4013, section 2.3, with what each table forbids.
_PROHIBITED: Final[tuple[tuple[Callable[[str], bool], str], ...]] = (
    (stringprep.in_table_c12, "a non-ASCII space"),
    (stringprep.in_table_c21_c22, "a control character"),
    (stringprep.in_table_c3, "a private use character"),
    (stringprep.in_table_c4, "a non-character"),
    (stringprep.in_table_c5, "a surrogate"),
    (stringprep.in_table_c6, "a character inappropriate for plain text"),
    (stringprep.in_table_c7, "a character inappropriate for canonical representation"),
    (stringprep.in_table_c8, "a character that changes display properties"),
    (stringprep.in_table_c9, "a tagging character"),
)


def saslprep(text: str) -> str:
    """Return the prepared form of `text`; ValueError if it has none.

    >>> saslprep("I\\u00adX"), saslprep("\\u2168")
    ('IX', 'IX')
    """
    if text.isascii() and text.isprintable():
        return text  # nothing of the below changes or forbids it
    mapped = "".join(
        " " if stringprep.in_table_c12(char) else char for char in text if not stringprep.in_table_b1(char)
    )
    # Unicode 3.2 is what RFC 3454 is defined on; a later table would give another form.
    prepared = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    for char in prepared:
        for forbids, what in _PROHIBITED:
            if forbids(char):
                raise ValueError(f"contains {what} (U+{ord(char):04X})")
    _check_direction(prepared)
    return prepared


def _check_direction(text: str) -> None:
    """RFC 3454, section 6: text from right to left is so from end to end."""
    if not any(map(stringprep.in_table_d1, text)):
        return
    if any(map(stringprep.in_table_d2, text)):
        raise ValueError("mixes writing from right to left with writing from left to right")
    if not (stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])):
        raise ValueError("is written from right to left but does not begin and end so")
