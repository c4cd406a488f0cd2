"""What commands print: listings in several formats, plans that need consent, and progress.

Data go to standard output, everything else to standard error. Colours and progress appear on a terminal only, and a
table is cut to the width of a terminal but never in a pipe.
"""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

from kafka._text import printable
from kafka.cli.arguments import UsageError, reason

if TYPE_CHECKING:
    from kafka.cli.connection import Connection

FORMATS: Final = ("table", "json", "jsonl", "csv")
_NARROWEST: Final = 10
_BOLD: Final = "\x1b[1m"
_PLAIN: Final = "\x1b[0m"


class Column(NamedTuple):
    """A column of a table: the key of its values, which JSON and templates use, and its heading."""

    key: str
    heading: str

    @classmethod
    def of(cls, *words: str) -> list[Column]:
        """Return columns; the heading is the key, unless it stands behind it.

        >>> Column.of("group_id", "lag=BEHIND")
        [Column(key='group_id', heading='GROUP ID'), Column(key='lag', heading='BEHIND')]
        """
        pairs = (word.partition("=") for word in words)
        return [cls(key, heading or key.upper().replace("_", " ")) for key, _, heading in pairs]


def row_of(one: object, *words: str) -> dict[str, Any]:
    """Return attributes of a result as a row; one that is called otherwise in the row stands behind its name there.

    >>> from kafka.structs import TopicPartition
    >>> row_of(TopicPartition("events", 0), "topic", "number=partition")
    {'topic': 'events', 'number': 0}
    """
    pairs = (word.partition("=") for word in words)
    return {key: getattr(one, name or key) for key, _, name in pairs}


def emit(
    arguments: Namespace,
    rows: Sequence[Mapping[str, object]],
    columns: Sequence[Column],
    *,
    items: Sequence[Mapping[str, object]] | None = None,
    table: Callable[[], None] | None = None,
) -> int:
    """Print rows in the chosen format, and return the exit code: 3 if there are none and --fail-if-empty is given.

    JSON has `items` where these are richer than the rows; `table` prints in place of a plain table. Quiet
    output has the first column, each value once. A person at a terminal reads on standard error that there are none,
    unless the command has printed another reason there.
    """
    found = rows if items is None else items
    is_shown = sys.stdout.isatty() and arguments.format == "table" and not arguments.quiet
    if is_shown and not found and not getattr(arguments, "complained", False):
        words = arguments.prog.split()
        complain(arguments, f"no {words[1]}" if words[-1] == "list" else "nothing to show")
    if arguments.quiet:
        for name in dict.fromkeys(_cell(row[columns[0].key]) for row in rows):
            print(name)
    elif arguments.format != "table":
        _print_as(arguments, rows, columns, found)
    elif table is not None:
        table()
    elif rows:
        print_table(arguments, rows, columns)
    return 3 if arguments.fail_if_empty and not found else 0


def _print_as(
    arguments: Namespace,
    rows: Sequence[Mapping[str, object]],
    columns: Sequence[Column],
    found: Sequence[Mapping[str, object]],
) -> None:
    chosen = arguments.format
    if chosen == "json":
        print(json_text(found, indent=2))
    elif chosen == "jsonl":
        for row in found:
            print(json_text(row))
    elif chosen == "csv":
        _print_csv(arguments, rows, columns)
    elif "{" in chosen:
        _print_template(chosen, rows)
    else:
        raise UsageError(f"--format takes {', '.join(FORMATS)}, or a template with fields in braces, not {chosen!r}")


def json_text(value: object, indent: int | None = None) -> str:
    """Return JSON: bytes as text or base64, everything that JSON does not know as its text.

    >>> json_text({"id": b"abc", "raw": b"\\xff"})
    '{"id": "abc", "raw": "base64:/w=="}'
    """
    import json

    return json.dumps(value, indent=indent, ensure_ascii=False, default=_json_default)


def _json_default(value: object) -> object:
    if isinstance(value, (bytes, bytearray)):
        try:
            return bytes(value).decode()
        except UnicodeDecodeError:
            from base64 import b64encode

            return f"base64:{b64encode(value).decode()}"
    if isinstance(value, (set, frozenset)):
        return sorted(value)
    return str(value)


# Tables…


def print_table(
    arguments: Namespace, rows: Sequence[Mapping[str, object]], columns: Sequence[Column], out: TextIO | None = None
) -> None:
    """Print aligned columns; numbers to the right. On a terminal too narrow for them, the widest texts are cut.

    A plan goes to standard error where outcomes are printed as JSON.
    """
    out = out or (sys.stderr if _collects(arguments) else sys.stdout)
    cells = [[_cell(row.get(column.key)) for column in columns] for row in rows]
    values = [[row.get(column.key) for row in rows] for column in columns]
    right = [all(map(_is_number, column)) and any(value is not None for value in column) for column in values]
    headings = [column.heading for column in columns]
    shown = cells if arguments.no_headers else [headings, *cells]
    lines = table_lines(shown, right, terminal_width(out))
    if not arguments.no_headers and colored(arguments, out):
        lines[0] = f"{_BOLD}{lines[0]}{_PLAIN}"
    out.write("".join(f"{line}\n" for line in lines))


def table_lines(shown: Sequence[Sequence[str]], right: Sequence[bool], room: int | None, least: int = 0) -> list[str]:
    """Return aligned lines that fit into the room; numbers stand to the right, in columns of a least width.

    >>> table_lines([["TOPIC", "LAG"], ["events", "5"]], [False, True], None, least=4)
    ['TOPIC    LAG', 'events     5']
    """
    widths = [max(least if number else 0, *(_width(line[at]) for line in shown)) for at, number in enumerate(right)]
    if room is not None:
        widths = _fitted(widths, right, room)
    return [_line(line, widths, right) for line in shown]


def _line(cells: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    parts = []
    for cell, width, number in zip(cells, widths, right, strict=True):
        text = cut(cell, width)
        gap = " " * (width - _width(text))
        parts.append(gap + text if number else text + gap)
    return "  ".join(parts).rstrip()


def _fitted(widths: Sequence[int], right: Sequence[bool], room: int) -> list[int]:
    """Return widths that fit: the widest column of text gives way first, the first column after the others.

    >>> _fitted([20, 5, 40], [False, True, False], 50)
    [20, 5, 21]
    """
    widths = list(widths)
    while sum(widths) + 2 * (len(widths) - 1) > room:
        texts = [at for at, number in enumerate(right) if not number and widths[at] > _NARROWEST]
        if not texts:
            break
        widths[max(texts, key=lambda at: widths[at] if at else widths[at] / 1.5)] -= 1
    return widths


def terminal_width(out: TextIO) -> int | None:
    """Return the width of the terminal that an output is, None for a pipe or file."""
    import shutil

    return shutil.get_terminal_size().columns if out.isatty() else None


def _width(text: str) -> int:
    if text.isascii():
        return len(text)
    import unicodedata

    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1 for char in text
    )


def cut(text: str, width: int) -> str:
    """Return a text that takes no more columns than `width`.

    >>> cut("events", 4), cut("events", 0)
    ('eve…', '')
    """
    if _width(text) <= width:
        return text
    while text and _width(text) >= width:
        text = text[:-1]
    return f"{text}…" if width > 0 else ""


def _is_number(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _cell(value: object) -> str:
    """Return a value as a table shows it.

    >>> _cell(None), _cell(True), _cell([1, 2]), _cell(1.25)
    ('-', 'yes', '1,2', '1.2')
    """
    if value is None or value == "":
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.1f}"
    if isinstance(value, (list, tuple)):
        return ",".join(map(_cell, value)) or "-"
    if isinstance(value, Mapping):
        return ",".join(f"{name}={_cell(each)}" for name, each in value.items()) or "-"
    return printable(str(value))


def colored(arguments: Namespace, out: TextIO) -> bool:
    """Whether to use colours: --color, then NO_COLOR and FORCE_COLOR, then whether it is a terminal that can."""
    wish = getattr(arguments, "color", "auto")
    if wish != "auto":
        return bool(wish == "always")
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return out.isatty() and os.environ.get("TERM") != "dumb"


# Other formats…


def _print_csv(arguments: Namespace, rows: Sequence[Mapping[str, object]], columns: Sequence[Column]) -> None:
    import csv

    keys = list(rows[0]) if rows else [column.key for column in columns]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    if not arguments.no_headers:
        writer.writerow(keys)
    for row in rows:
        writer.writerow([_csv_cell(row.get(key)) for key in keys])


def _csv_cell(value: object) -> object:
    if value is None:
        return ""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return ",".join(map(str, value))
    if isinstance(value, Mapping):
        return ",".join(f"{name}={each}" for name, each in value.items())
    return value


def _print_template(template: str, rows: Sequence[Mapping[str, object]]) -> None:
    from kafka.cli.record_format import unescape_bytes

    template = unescape_bytes(template).decode(errors="surrogateescape")
    try:
        for row in rows:
            print(template.format_map(row))
    except (KeyError, IndexError, AttributeError) as error:
        name = error.args[0] if isinstance(error, KeyError) else "0"
        raise UsageError(f"--format: field {name!r} does not exist; the fields are {', '.join(rows[0])}") from None
    except (ValueError, TypeError) as error:  # such as {replicas:>10}, where replicas is a list
        raise UsageError(f"--format: {error}") from None


# Outcomes, consent, progress…


def complain(arguments: Namespace, text: object) -> None:
    """Print an error on standard error in one line, after the command's name."""
    arguments.complained = True
    print(f"{arguments.prog}: {printable(reason(text))}", file=sys.stderr)


def report(
    arguments: Namespace, answers: Mapping[Any, object] | Iterable[tuple[object, object, str]], done: str = ""
) -> int:
    """Print what happened to each item; return 1 if one failed.

    `answers` come from a call of the administrator: for each item its error or the class of it, None, or a result that
    has an `error`. They are a mapping, or triples with what was done to the item, which prints nothing if empty.
    """
    code = 0
    triples = [(item, one, done) for item, one in sorted(answers.items())] if isinstance(answers, Mapping) else answers
    for item, answer, text in triples:
        name = f"{item.topic}-{item.partition}" if isinstance(item, tuple) else str(item)  # type: ignore[attr-defined]
        error = _error_of(answer)
        why = None if error is None else reason(error)
        if _collects(arguments):
            arguments.outcomes.append({"name": name, "done": text or "done" if why is None else None, "error": why})
        elif why is None and text:
            print(f"{printable(name)}: {text}")
        if why is not None:
            complain(arguments, why if name in why else f"{name}: {why}")
            code = 1
    return code


def report_failed(arguments: Namespace, answers: Mapping[Any, object]) -> int:
    """Complain about the items that failed alone, given as `report` takes them; return 1 if there are such items."""
    return report(arguments, {item: answer for item, answer in answers.items() if _error_of(answer) is not None})


def _error_of(answer: object) -> object | None:
    error = answer if isinstance(answer, (BaseException, type)) else getattr(answer, "error", None)
    return None if getattr(error, "errno", None) == 0 else error


def _collects(arguments: Namespace) -> bool:
    """Whether outcomes are printed as JSON, at the end of the command."""
    return getattr(arguments, "outcomes", None) is not None and arguments.format in {"json", "jsonl"}


def check_outcomes(arguments: Namespace) -> None:
    """Refuse a format that outcomes cannot have, before anything is changed."""
    if arguments.format not in {"text", "json", "jsonl"}:
        raise UsageError(f"--format takes text, json or jsonl, not {arguments.format!r}")


def print_outcomes(arguments: Namespace) -> None:
    """Print as JSON the outcomes that `report` has collected."""
    if not _collects(arguments):
        return
    if arguments.format == "json":
        print(json_text(arguments.outcomes, indent=2))
    else:
        for outcome in arguments.outcomes:
            print(json_text(outcome))


def report_brokers(arguments: Namespace, failed: Mapping[int, object]) -> int:
    """Complain about the brokers that did not answer; return 1 if there are such brokers."""
    return report(arguments, {f"broker {broker}": error for broker, error in failed.items()})


def counted(number: int, noun: str) -> str:
    """Return a number of things in words.

    >>> counted(1, "topic"), counted(1200, "record")
    ('1 topic', '1,200 records')
    """
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def agreed(
    connection: Connection, question: str, rows: Sequence[Mapping[str, object]] = (), columns: Sequence[Column] = ()
) -> bool:
    """Show a plan, name its cluster, and return whether to carry it out: --yes, or an answer on the terminal.

    Without `columns` the rows are shown whole. False with --dry-run. Without a terminal and without either option the
    command is refused.
    """
    arguments = connection.arguments
    if rows or columns:
        print_table(arguments, rows, columns or Column.of(*rows[0]))
    print(f"Cluster {connection.cluster()}", file=sys.stderr)
    if arguments.dry_run:
        print("Nothing was changed (--dry-run).", file=sys.stderr)
        return False
    if arguments.yes:
        return True
    if not sys.stdin.isatty():
        raise UsageError("give --yes or --dry-run: standard input is not a terminal to ask on")
    print(f"{question} [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() in {"y", "yes"}:
        return True
    print("Nothing was changed.", file=sys.stderr)
    return False


class Progress:
    """Counts of a long command on standard error: redrawn in place on a terminal, at the end for everyone."""

    def __init__(self, arguments: Namespace, what: str, total: int | None = None, *, alone: bool = False) -> None:
        # Records that appear on the same terminal are progress enough.
        visible = sys.stderr.isatty() and (alone or not sys.stdout.isatty())
        self.shows = bool(getattr(arguments, "progress", False)) or visible
        """Whether counts are shown on standard error."""
        self._redraws = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        self._what = what
        self.total = total
        self.records = 0
        self.bytes = 0
        self.passed = 0  # the records of `total` that were looked at, also if a filter leaves them out
        self._started = self._shown = time.monotonic()

    def add(self, records: int, size: int) -> None:
        """Count records, and redraw once a second."""
        self.records += records
        self.passed += records
        self.bytes += size
        if self.shows:
            now = time.monotonic()
            if now - self._shown >= 1:
                self._shown = now
                self._draw(now)

    def _draw(self, now: float) -> None:
        text = self.text(now)
        room = terminal_width(sys.stderr) if self._redraws else None
        if self.total:
            done = min(1.0, self.passed / self.total)
            left = (now - self._started) * (1 - done) / done if done else 0
            text = f"{done:4.0%}  {text}, {left:,.0f} s left"
            # The bar gives way in a narrow terminal: a line that is broken cannot be redrawn.
            size = 20 if room is None else min(20, room - len(text) - 4)
            if size > 1:
                text = f"[{'#' * int(size * done):<{size}}] {text}"
        if room is not None:
            text = cut(text, room - 1)
        print(
            f"\r\x1b[K{text}" if self._redraws else text, end="" if self._redraws else "\n", file=sys.stderr, flush=True
        )

    def text(self, now: float | None = None) -> str:
        """Return the counts and the rates."""
        seconds = max((now or time.monotonic()) - self._started, 1e-9)
        return (
            f"{self._what} {self.records:,} records, {self.bytes / 1e6:,.1f} MB "
            f"({self.records / seconds:,.0f}/s, {self.bytes / 1e6 / seconds:,.1f} MB/s)"
        )

    def end(self, *, always: bool = False) -> None:
        """Print the final counts; without a terminal only if `always`."""
        if self.shows or always:
            with suppress(OSError, ValueError):
                clear = "\r\x1b[K" if self.shows and self._redraws else ""
                print(f"{clear}{self.text()}", file=sys.stderr, flush=True)
