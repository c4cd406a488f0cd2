"""Views that redraw in place, for ``groups lag --watch`` and ``top``; the terminal is as before, whatever ends them."""

from __future__ import annotations

import math
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from kafka._text import printable
from kafka.cli.arguments import CommandError, reason
from kafka.errors import RetriableError

# The alternate screen keeps the text of the shell; the cursor is hidden on it.
_ENTER: Final = "\x1b[?1049h\x1b[?25l"
_LEAVE: Final = "\x1b[?25h\x1b[?1049l"
_HOME: Final = "\x1b[H"
_CLEAR_LINE: Final = "\x1b[K"
_CLEAR_BELOW: Final = "\x1b[J"
#: How many lines of a view say what is not known.
_TROUBLES: Final = 5


@contextmanager
def screen() -> Iterator[Callable[[Sequence[str]], None]]:
    """Yield a function that shows lines in place of the ones before; without a terminal it prints them."""
    drawn = sys.stdout.isatty() and os.environ.get("TERM") != "dumb"

    def show(lines: Sequence[str]) -> None:
        if not drawn:
            print("\n".join(lines), flush=True)
            return
        from kafka.cli.output import cut

        width, height = shutil.get_terminal_size()
        room = max(1, height - 1)
        shown = [cut(line, width) for line in lines[:room]]
        if len(lines) > room:
            shown[-1] = cut(f"… {len(lines) - room + 1} more", width)
        body = "".join(f"{line}{_CLEAR_LINE}\n" for line in shown)
        sys.stdout.write(f"{_HOME}{body}{_CLEAR_BELOW}")
        sys.stdout.flush()

    if drawn:
        sys.stdout.write(_ENTER)
    try:
        yield show
    finally:
        if drawn:
            sys.stdout.write(_LEAVE)
            sys.stdout.flush()


class Rates:
    """Rates of counters between two looks.

    >>> rates = Rates(lambda: 0.0)
    >>> rates.of("a", 10), rates.next(2.0), rates.of("a", 30)
    (None, None, 10.0)
    >>> rates.next(3.0), rates.sum([("a", 50), ("b", 7)]), rates.sum([("c", 1)])
    (None, 20.0, None)
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._before: dict[object, float] = {}
        self._now: dict[object, float] = {}
        self._at = clock()
        self._seconds = 0.0

    def next(self, at: float | None = None) -> None:
        """Begin the next look."""
        at = time.monotonic() if at is None else at
        self._seconds, self._at = at - self._at, at
        self._before, self._now = self._now, {}

    def of(self, key: object, value: float) -> float | None:
        """Return the change of a counter per second; None at the first look, and if it began again from 0."""
        self._now[key] = value
        if not self._before.get(key, math.inf) <= value or self._seconds <= 0:
            return None
        return (value - self._before[key]) / self._seconds

    def sum(self, counters: Iterable[tuple[object, float]]) -> float | None:
        """Return the rate of several counters: of those in both looks, as a counter that comes or goes has no rate."""
        found = [rate for key, value in counters if (rate := self.of(key, value)) is not None]
        return sum(found) if found else None


def redraw(look: Callable[[Rates], Sequence[str]], interval: float, times: int | None = None) -> int:
    """Show what `look` returns every `interval` seconds, until Ctrl-C or for a number of times.

    After the first time what a look cannot find out stands below what the last one has found: brokers may come back.
    """
    shown, rates, lines = 0, Rates(), []
    with screen() as show:
        while True:
            begun = time.monotonic()
            rates.next(begun)
            try:
                lines = list(look(rates))
                show(lines)
            except (CommandError, RetriableError) as error:
                if not shown:
                    raise
                show([*lines, *trouble_lines([f"{time.strftime('%H:%M:%S')} {reason(error)}"])])
            shown += 1
            if shown == times:
                return 0
            time.sleep(max(0.05, interval - (time.monotonic() - begun)))


def view(headings: Sequence[str], rows: Sequence[Sequence[str]], texts: Sequence[str]) -> list[str]:
    """Return the lines of a table of a view; the columns that are not `texts` have numbers, which stand to the right.

    >>> print("\\n".join(view(["TOPIC", "END"], [["events", "5"]], ["TOPIC"])))
    TOPIC        END
    events         5
    """
    from kafka.cli.output import table_lines, terminal_width

    right = [heading not in texts for heading in headings]
    shown = [[printable(cell) for cell in row] for row in rows]  # any client may give a group any name
    return table_lines([headings, *shown], right, terminal_width(sys.stdout), least=8)


def lag_lines(
    rows: Sequence[dict[str, Any]], rates: Rates, parts: Sequence[str] = ("group_id", "topic", "partition")
) -> list[str]:
    """Return the lines of a view of lag, summed by the parts: the largest first.

    >>> rows = [{"group_id": "g", "topic": "t", "partition": 0, "lag": 60, "offset": 5, "end": 65}]
    >>> print("\\n".join(lag_lines(rows, Rates(), ["group_id", "topic"])))
    GROUP  TOPIC       LAG    READ/s   WRITE/s  CATCHES UP
    g      t            60         -         -  -
    """
    sums: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for row in rows:
        sums.setdefault(tuple(str(row[part]) for part in parts), []).append(row)
    shown = []
    for key, some in sorted(sums.items(), key=lambda item: -sum(row["lag"] or 0 for row in item[1])):
        if any(row["lag"] is None or row["end"] is None for row in some):
            shown.append([*key, "-", "-", "-", "-"])
            continue
        each = [(row["group_id"], row["topic"], row["partition"], row["end"], row["lag"]) for row in some]
        lag = sum(lag for *_, lag in each)
        read = rates.sum((("read", *where), end - lag) for *where, end, lag in each)
        written = rates.sum((("written", *where), end) for *where, end, _ in each)
        shown.append([*key, f"{lag:,}", rate_text(read), rate_text(written), time_left(lag, read, written)])
    names = {"group_id": "GROUP", "topic": "TOPIC", "partition": "PART"}
    headings = [*(names[part] for part in parts), "LAG", "READ/s", "WRITE/s", "CATCHES UP"]
    return view(headings, shown, ["GROUP", "TOPIC", "CATCHES UP"])


def trouble_lines(trouble: Sequence[str]) -> list[str]:
    """Return the lines about what is not known, below a table.

    >>> trouble_lines(["broker 2: it does not answer"])
    ['', 'broker 2: it does not answer']
    """
    if not trouble:
        return []
    more = [f"… {len(trouble) - _TROUBLES} more"] if len(trouble) > _TROUBLES else []
    return ["", *trouble[:_TROUBLES], *more]


def rate_text(value: float | None) -> str:
    """Return a rate as the views show it."""
    return "-" if value is None else f"{value:,.0f}"


def time_left(lag: int, read: float | None, written: float | None) -> str:
    """Return when a group will have read everything, at the present rates."""
    if lag == 0:
        return "at the end"
    if read is None or written is None:
        return "-"
    gained = read - written
    if gained <= 0:
        return "never"
    seconds = lag / gained
    return f"in {seconds:,.0f} s" if seconds < 120 else f"in {seconds / 60:,.0f} min"
