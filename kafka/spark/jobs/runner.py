"""Watching queries from a shell: a line of progress, and a stop that lets the batch in hand come to its end."""

from __future__ import annotations

import logging
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TextIO

from kafka.errors import KafkaError
from kafka.spark.errors import cause_of
from kafka.spark.progress import lag

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

__all__ = ["QueryFailedError", "Progress", "asked_to_stop", "describe", "start_patiently", "watch"]


log = logging.getLogger(__name__)

_EVERY: Final = 0.25
#: How long a stop waits for the batch in hand.
_GRACE: Final = 60.0
_POLL: Final = 0.05
#: How long no trigger is to be active for a query to be between two, where another batch may follow at once: one
#: without rows, in which windows end. It says so itself when it has looked for rows and found none.
_QUIET: Final = 0.25
_FOUND_NOTHING: Final = "Waiting for data to arrive"
#: How often a query is started that a busy machine keeps from starting, and how Spark says that.
_STARTS: Final = 8
_TOO_BUSY: Final = "Python worker failed to connect back"
#: What Java says of itself when it is shutting down.
_SIGNS_OF_THE_END: Final = ("Shutdown", "stopped SparkContext", "SparkContext was shut down")


class QueryFailedError(KafkaError):
    """A query ended with an error of Spark's, which is the ``__cause__``."""


def start_patiently(start: Callable[[], StreamingQuery]) -> StreamingQuery:
    """Start a query and return it when it has its process, for which Spark waits ten seconds.

    On a busy machine, and with several queries at once, that may be too short. Nothing has been read or written then,
    so the query is started again.
    """
    for _ in range(_STARTS):
        query = start()
        while query.isActive and query.status["message"].startswith("Initializing"):
            time.sleep(_POLL)
        error = None if query.isActive else query.exception()
        if error is None or _TOO_BUSY not in str(error):
            break
        log.warning("The query %s did not get its process within ten seconds; starting it again", query.name)
    return query


class Progress(NamedTuple):
    """The rows that a query has read while it was watched."""

    rows: int = 0
    malformed: int = 0
    """Of these rows."""
    late: int = 0
    """Left out, as their windows were over."""

    def __str__(self) -> str:
        """Return it for people.

        >>> str(Progress(1000, 3)), str(Progress(10, late=2))
        ('1,000 rows, 3 malformed', '10 rows, 2 late')
        """
        more = ((self.malformed, "malformed"), (self.late, "late"))
        return ", ".join([f"{self.rows:,} rows", *(f"{count:,} {word}" for count, word in more if count)])


def watch(
    queries: Sequence[StreamingQuery],
    out: TextIO | None = None,
    asked: threading.Event | None = None,
    hold: Path | None = None,
) -> Progress:
    """Wait until all queries have ended, or SIGINT or SIGTERM asks to stop them; return what they have read.

    If one fails, the others are stopped too, because they belong together, and the error is reported at once.

    Of several queries, that of the one that has read most: they read the same. ``asked`` is from `asked_to_stop`, where
    the signals are to be heard before there are queries. ``hold`` is the file that they have as ``holdFile``: with much
    to read there is no time between two batches to stop them in, unless they begin none while it is there.
    """
    out = sys.stderr if out is None else out
    shown: dict[str, int] = {}
    seen: dict[str, Progress] = {}
    with asked_to_stop() if asked is None else nullcontext(asked) as stop:
        while any(query.isActive for query in queries) and not stop.is_set() and not _has_failed(queries):
            for query in queries:
                _show(query, shown, seen, out)
            stop.wait(_EVERY)
        if any(query.isActive for query in queries):
            print("\nstopping after the batch in hand", file=out, flush=True)
            try:
                _stop(queries, out, hold)
            except Exception as lost:
                if not stop.is_set() or not _has_lost_java(lost):
                    raise
                # Java received the signal too, and stops at once.
                print(
                    "Spark was stopped by the same signal, within its batch, which is done again at the next start: "
                    "send signals to this process alone",
                    file=out,
                    flush=True,
                )
                return max(seen.values(), default=Progress())
    for query in queries:
        _show(query, shown, seen, out)
    _end_line(out)
    for query in queries:
        error = query.exception()
        if error is not None:
            raise QueryFailedError(f"the query {query.name or query.id} failed: {cause_of(error)}") from error
    return max(seen.values(), default=Progress())


def _has_lost_java(error: Exception) -> bool:
    """Whether what Spark's Python half says is that its other half is gone, or is about to be."""
    from py4j.protocol import Py4JError, Py4JJavaError  # type: ignore[import-untyped]

    if isinstance(error, Py4JJavaError):
        return any(sign in str(error) for sign in _SIGNS_OF_THE_END)
    return isinstance(error, (Py4JError, ConnectionError, EOFError))


def _has_failed(queries: Sequence[StreamingQuery]) -> bool:
    return any(not query.isActive and query.exception() is not None for query in queries)


def _show(query: StreamingQuery, shown: dict[str, int], seen: dict[str, Progress], out: TextIO) -> None:
    for progress in query.recentProgress:
        batch = progress["batchId"]
        if batch <= shown.get(query.id, -1):
            continue
        shown[query.id] = batch
        new = _counts(progress)
        seen[query.id] = Progress(*map(sum, zip(new, seen.get(query.id, Progress()), strict=True)))
        line = describe(query.name or query.id, progress)
        if out.isatty():
            print(f"\r\x1b[K{line}", end="", file=out, flush=True)
        elif any(new):
            print(line, file=out, flush=True)


def _counts(progress: Any) -> Progress:
    events = (progress.get("observedMetrics") or {}).get("events")
    late = sum(int(each["numRowsDroppedByWatermark"]) for each in progress.get("stateOperators") or ())
    return Progress(int(progress["numInputRows"]), 0 if events is None else int(events["malformed"]), late)


def _end_line(out: TextIO) -> None:
    if out.isatty():
        print(file=out)


def describe(name: str, progress: Any) -> str:
    """Return the line about a batch.

    >>> describe("topic", {"batchId": 3, "numInputRows": 500, "processedRowsPerSecond": 1000.0, "sources": []})
    'topic: batch 3, 500 rows, 1,000 rows/s, lag 0'
    """
    rate = progress["processedRowsPerSecond"] or 0.0
    behind = lag(progress)
    shown = "unknown" if behind is None else f"{sum(behind.values()):,}"
    rows, *more = str(_counts(progress)).split(", ", 1)
    return ", ".join([f"{name}: batch {progress['batchId']}", rows, f"{rate:,.0f} rows/s", f"lag {shown}", *more])


@contextmanager
def asked_to_stop() -> Iterator[threading.Event]:
    """Give an event that SIGINT and SIGTERM set."""
    asked = threading.Event()
    before = {
        number: signal.signal(number, lambda *_: asked.set())
        for number in (signal.SIGINT, signal.SIGTERM)
        if threading.current_thread() is threading.main_thread()
    }
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _stop(queries: Sequence[StreamingQuery], out: TextIO, hold: Path | None) -> None:
    """Stop each between two batches: the current batch is then done and recorded, and is not repeated."""
    if hold is not None:
        hold.touch()
    deadline = time.monotonic() + _GRACE
    left = {query.id: query for query in queries if query.isActive}
    quiet_since: dict[str, float] = {}
    while left:
        now = time.monotonic()
        for name, query in tuple(left.items()):
            if _is_within_a_batch(query, quiet_since, now, 0.0 if hold is None else _QUIET):
                if now <= deadline:
                    continue
                print(
                    f"the batch in hand of {query.name or query.id} was not done within {_GRACE:g} seconds: it is "
                    "stopped within it, and done again at the next start",
                    file=out,
                    flush=True,
                )
            query.stop()
            del left[name]
        if left:
            threading.Event().wait(0.02)


def _is_within_a_batch(query: StreamingQuery, quiet_since: dict[str, float], now: float, quiet: float) -> bool:
    """Whether a query has something in hand, or may have in an instant."""
    if not query.isActive:
        return False
    status = query.status
    if status["isTriggerActive"]:
        quiet_since.pop(query.id, None)
        return True
    return status["message"] != _FOUND_NOTHING and now - quiet_since.setdefault(query.id, now) < quiet
