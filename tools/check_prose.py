"""Finds turns of phrase that a reader has to translate: in docstrings, comments, messages and documentation.

``python tools/check_prose.py [PATH ...]`` prints a line for each find, with what to write in its place, and exits with
1 if there is one. Users search for error messages and names, so text is plain technical English: subject, verb,
object; the actor is named; Kafka's own nouns. A line that quotes such a turn on purpose ends in ``prose: quoted``.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PLACES = ("kafka", "pyspark_purekafka", "docs", "README.rst", "CHANGES.rst", "CONTRIBUTING.rst")


class Pattern(NamedTuple):
    """A turn of phrase, and what to do about it."""

    regex: re.Pattern[str]
    advice: str


def _pattern(text: str, advice: str) -> Pattern:
    return Pattern(re.compile(text, re.IGNORECASE), advice)


PATTERNS = (
    _pattern(r"\b(nobody|somebody|anybody)\b", "name the actor: no thread, the caller, another member"),
    _pattern(r"\b(whoever|whatever is|whichever is)\b", "name the actor"),
    _pattern(r"\banew\b", "again, or new"),
    _pattern(r"\bin vain\b", "without success, or say how it failed"),
    _pattern(r"\b(is|are|was|were|be|being|been) told\b", "say who tells it what: receives, is passed, is notified"),
    _pattern(r"\b(is|are|was|were) said\b", "say who says it: the error names, the log shows, the docs state"),
    _pattern(r"\bso many\b", "that many, or the number's name"),
    _pattern(r"\bso long as\b", "while"),
    _pattern(r"\bof (its|their|his|one's) own\b", "its own X, or separate"),
    _pattern(r"\b(goes|go|went|going) on\b", "continues, proceeds"),
    _pattern(r"\b(has|have|had) to be\b", "must be"),
    _pattern(r"\bis no (?!longer\b|more\b|less\b|different\b|later\b|earlier\b|room\b|need\b|way\b)[a-z]+", "is not a"),
    _pattern(r"(^|[.;:,(] |- )(who|whom) (?!knows\b)[a-z]+", "put a noun before it: a member that, the caller"),
    _pattern(r"\bthose (that|who|of)\b", "name them: the records that, the members that"),
    _pattern(r"\b(hears?|heard) of\b", "receives, is notified of"),
    _pattern(r"\b(sees|see|saw|seen) to it\b", "ensures"),
    _pattern(r"\bof old\b", "old, historic, of the 1.x generation"),
    _pattern(r"\bto be had\b", "available"),
    _pattern(r"\b(is|are) none of\b", "is not one of"),
    _pattern(r"\bby itself\b", "automatically, or without help"),
)
_QUOTED = "prose: quoted"


class Find(NamedTuple):
    """Where a pattern was found."""

    path: Path
    line: int
    text: str
    advice: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.text!r}: {self.advice}"


def main(argv: Sequence[str]) -> int:
    """Check the paths given, or the whole project."""
    paths = [Path(word) for word in argv] or [ROOT / place for place in PLACES]
    finds = [find for path in paths for file in _files(path) for find in check_file(file)]
    for find in finds:
        print(find)
    print(f"{len(finds)} found" if finds else "no such turn of phrase", file=sys.stderr)
    return int(bool(finds))


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = [file for kind in ("*.py", "*.rst", "*.inc") for file in path.rglob(kind)]
    return sorted(file for file in found if "_build" not in file.parts)


def check_file(path: Path) -> list[Find]:
    """Return the finds in one file."""
    text = path.read_text(encoding="utf-8")
    shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    prose = python_prose(text) if path.suffix == ".py" else enumerate(text.splitlines(), 1)
    lines = text.splitlines()
    finds = []
    for number, passage in prose:
        for pattern in PATTERNS:
            for found in pattern.regex.finditer(passage):
                line = number + passage.count("\n", 0, found.start())
                if _QUOTED not in lines[line - 1]:
                    finds.append(Find(shown, line, found.group().strip(" .;:,(-\n"), pattern.advice))
    return finds


def python_prose(text: str) -> Iterator[tuple[int, str]]:
    """Yield the comments and the strings of a module that hold more than a word, with their lines."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string.lstrip("#: ")
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield node.lineno, node.value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
