"""Watching queries from a shell: a line of progress, and a stop that lets the batch in hand come to its end."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, TextIO

from kafka.errors import KafkaError
from kafka.spark.progress import lag

__all__ = ["QueryFailedError", "describe", "watch"]

_EVERY: Final = 0.25
#: How long a stop waits for the batch in hand.
_GRACE: Final = 60.0


class QueryFailedError(KafkaError):
    """A query ended with an error of Spark's, which is the ``__cause__``."""


def watch(queries: Sequence[Any], out: TextIO | None = None) -> int:
    """Wait until all queries have ended, or SIGINT or SIGTERM asks to stop them; return how many rows were read."""
    out = sys.stderr if out is None else out
    seen: dict[str, int] = {}
    rows: dict[str, int] = {}
    with _asked_to_stop() as asked:
        while any(query.isActive for query in queries) and not asked.is_set():
            for query in queries:
                _show(query, seen, rows, out)
            asked.wait(_EVERY)
        if asked.is_set():
            print("\nstopping after the batch in hand", file=out)
            _stop(queries)
    for query in queries:
        _show(query, seen, rows, out)
    _end_line(out)
    for query in queries:
        error = query.exception()
        if error is not None:
            raise QueryFailedError(f"the query {query.name or query.id} failed: {error}") from error
    return max(rows.values(), default=0)


def _show(query: Any, seen: dict[str, int], rows: dict[str, int], out: TextIO) -> None:
    for progress in query.recentProgress:
        batch = progress["batchId"]
        if batch <= seen.get(query.id, -1):
            continue
        seen[query.id] = batch
        rows[query.id] = rows.get(query.id, 0) + int(progress["numInputRows"])
        line = describe(query.name or query.id, progress)
        if out.isatty():
            print(f"\r\x1b[K{line}", end="", file=out, flush=True)
        elif progress["numInputRows"]:
            print(line, file=out, flush=True)


def _end_line(out: TextIO) -> None:
    if out.isatty():
        print(file=out)


def describe(name: str, progress: Any) -> str:
    """Return the line about a batch.

    >>> describe("topic", {"batchId": 3, "numInputRows": 500, "processedRowsPerSecond": 1000.0, "sources": []})
    'topic: batch 3, 500 rows, 1,000 rows/s, lag 0'
    """
    rate = progress["processedRowsPerSecond"] or 0.0
    behind = sum(lag(progress).values())
    text = f"{name}: batch {progress['batchId']}, {progress['numInputRows']:,} rows, {rate:,.0f} rows/s, lag {behind:,}"
    observed = progress.get("observedMetrics") if hasattr(progress, "get") else None
    if observed and "events" in observed and observed["events"]["malformed"]:
        text += f", {observed['events']['malformed']:,} malformed"
    return text


@contextmanager
def _asked_to_stop() -> Iterator[threading.Event]:
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


def _stop(queries: Sequence[Any]) -> None:
    """Stop each between two batches: what is in hand is then done and written down, and not done again."""
    deadline = time.monotonic() + _GRACE
    left = [query for query in queries if query.isActive]
    while left:
        for query in list(left):
            if not query.isActive or not query.status["isTriggerActive"] or time.monotonic() > deadline:
                query.stop()
                left.remove(query)
        if left:
            threading.Event().wait(0.02)
