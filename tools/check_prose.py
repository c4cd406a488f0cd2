"""Finds phrases that a reader must translate, in docstrings, comments, messages, documentation and names of tests.

``python tools/check_prose.py [PATH ...]`` prints a line for each find, with the phrase to write instead, and exits with
1 if there is one. Without a path it checks the whole project, as ``make check`` does.
Users search for error messages and names, so text is plain technical English: subject, verb, object; the actor is
named; Kafka's own nouns. A line that quotes such a phrase on purpose ends in ``prose: quoted``.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PROJECT = (
    "kafka",
    "pyspark_purekafka",
    "docs",
    "README.rst",
    "CHANGES.rst",
    "CODE_OF_CONDUCT.rst",
    "CONTRIBUTING.rst",
    "SECURITY.rst",
    "benchmarks/charts.py",
    "benchmarks/report.py",
    "tools",
)
# Only the names of tests are checked there.
TESTS = ROOT / "test"


Passage = tuple[int, str]  # the line that it begins at, and its text


class Pattern(NamedTuple):
    """A phrase, and what to write instead."""

    regex: re.Pattern[str]
    advice: str


def _pattern(text: str, advice: str) -> Pattern:
    # A phrase may be broken at the end of a line.
    return Pattern(re.compile(text.replace(" ", r"\s+"), re.IGNORECASE), advice)


# The beginning of a sentence, of a clause or of a paragraph.
_START = r"(\A|\n\s*\n\s*|[.;:(] |- )"


PATTERNS = (
    _pattern(r"\b(nobody|somebody|anybody)\b", "name the actor: no thread, the caller, another member"),
    _pattern(r"\b(whoever|whatever is|whichever is)\b", "name the actor"),  # prose: quoted
    _pattern(r"\banew\b", "again, or new"),
    _pattern(r"\bin vain\b", "without success, or say how it failed"),
    _pattern(r"\b(is|are|was|were|be|being|been) told\b", "say who tells it what: receives, is passed, is notified"),
    _pattern(r"\b(is|are|was|were) said\b", "say who says it: the error names, the log shows, the docs state"),
    _pattern(r"\bso many\b", "that many, or the number's name"),
    _pattern(r"\bso long as\b", "while"),
    _pattern(r"\bof (its|their|his|one's) own\b", "its own X, or separate"),
    _pattern(r"\b(goes|go|went|going) on\b", "continues, proceeds"),
    _pattern(r"\b(has|have|had) to be\b", "must be"),
    # "there is no topic" and "is no longer" are idiomatic.
    _pattern(
        r"(?<!there) is no (?!longer\b|more\b|less\b|different\b|later\b|earlier\b|room\b|need\b|way\b)[a-z]+",
        "is not a",
    ),
    _pattern(_START + r"(who|whom) (?!knows\b)[a-z]+(?![^.\n]*\?)", "put a noun before it: a member that"),
    # A heading may begin with it, and a question.
    _pattern(
        _START + r"what (is|was|are|were|has|had|came|comes|the|a|an)\b(?![^.]*\?)(?![^\n]*\n[=~-]{3})",
        "name it: records that",
    ),
    _pattern(r"\bthose (that|who|of)\b", "name them: the records that, the members that"),
    _pattern(r"\b(hears?|heard) of\b", "receives, is notified of"),
    _pattern(r"\b(sees|see|saw|seen) to it\b", "ensures"),
    _pattern(r"\bof old\b", "old, historic, of the 1.x generation"),
    _pattern(r"\bto be had\b", "available"),
    _pattern(r"\b(is|are) none of\b", "is not one of"),
    _pattern(r"\bby itself\b", "automatically, or without help"),
    _pattern(r"\b(mend|mends|mended|mending)\b", "fix, repair, clear"),
    _pattern(r"\b(takes?|took) note\b", "records, remembers"),
    _pattern(r"\bagain and again\b", "repeatedly"),
    _pattern(r"\bhas no place\b", "is not valid in this state"),
    _pattern(r"\btime that is up\b", "timeout"),
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
    paths = [Path(word) for word in argv] or [ROOT / place for place in PROJECT]
    missing = [path for path in paths if not path.exists()]
    if missing:
        print(f"{missing[0]} does not exist", file=sys.stderr)
        return 2
    finds = [find for path in paths for file in _files(path) for find in check_file(file)]
    if not argv:
        finds += [find for file in _files(TESTS) for find in check_file(file, names_of_tests)]
    for find in finds:
        print(find)
    print(f"{len(finds)} found" if finds else "no such phrase", file=sys.stderr)
    return int(bool(finds))


def _files(path: Path) -> list[Path]:
    if path.is_file():
        return [path]
    found = [file for kind in ("*.py", "*.rst", "*.inc") for file in path.rglob(kind)]
    return sorted(file for file in found if "_build" not in file.parts)


def check_file(path: Path, python: Callable[[str], Iterable[Passage]] | None = None) -> list[Find]:
    """Return the finds in one file; `python` finds the passages of a module."""
    text = path.read_text(encoding="utf-8")
    shown = path.relative_to(ROOT) if path.is_relative_to(ROOT) else path
    prose = (python or python_prose)(text) if path.suffix == ".py" else [(1, text)]
    lines = text.splitlines()
    finds = []
    for number, passage in prose:
        for pattern in PATTERNS:
            for found in pattern.regex.finditer(passage):
                words = " ".join(found.group().strip(" .;:,(-\n").split())
                start = found.end() - len(found.group().lstrip(" .;:,(-\n"))
                line = number + passage.count("\n", 0, start)
                if _QUOTED not in lines[line - 1]:
                    finds.append(Find(shown, line, words, pattern.advice))
    return sorted(finds)


def names_of_tests(text: str) -> Iterator[Passage]:
    """Yield the names of the tests in a module as sentences."""
    for number, line in enumerate(text.splitlines(), 1):
        if name := re.match(r"\s*(?:async )?def test_(\w+)", line):
            yield number, name[1].replace("_", " ")


def python_prose(text: str) -> Iterator[Passage]:
    """Yield names of tests, blocks of comments and strings of more than a word in a module, with their first lines."""
    yield from names_of_tests(text)
    first, block = 0, []
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if token.start[0] != first + len(block):
                yield first, "\n".join(block)
                first, block = token.start[0], []
            block.append(token.string.lstrip("#: "))
    yield first, "\n".join(block)
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value.strip():
            yield node.lineno, node.value


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
