"""Watching queries: the line of progress, the end, and the stop between two batches."""

from __future__ import annotations

import io
import os
import signal
from collections.abc import Iterator
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from kafka.spark.jobs import runner
from kafka.spark.jobs.runner import Progress, QueryFailedError, asked_to_stop, describe, start_patiently, watch


def progress(batch: int, rows: int, malformed: int = 0, late: int = 0) -> dict[str, Any]:
    source = {"endOffset": {"events": {"0": batch * 10}}, "latestOffset": {"events": {"0": 50}}}
    return {
        "batchId": batch,
        "numInputRows": rows,
        "processedRowsPerSecond": 1234.5,
        "sources": [source],
        "observedMetrics": {"events": {"rows": rows, "malformed": malformed}},
        "stateOperators": [{"numRowsDroppedByWatermark": late}],
    }


class Query:
    """A query that has made some progress each time that it is asked, and then ends."""

    def __init__(self, *reports: dict[str, Any], error: Exception | None = None, name: str = "topic") -> None:
        self.id = self.name = name
        self._reports = list(reports)
        self._error = error
        self.recentProgress: list[dict[str, Any]] = []
        self.stopped_while_active: list[bool] = []

    @property
    def isActive(self) -> bool:
        if not self.stopped_while_active and self._reports:
            self.recentProgress.append(self._reports.pop(0))
            return True
        return False

    def exception(self) -> Exception | None:
        return self._error


class Orphan(Query):
    """A query whose Java half gets the signal, too."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self._asked = 0
        self._lost = error

    @property
    def isActive(self) -> bool:
        self._asked += 1
        if self._asked == 3:
            os.kill(os.getpid(), signal.SIGTERM)
        if self._asked > 5:
            raise self._lost
        return True

    @property
    def status(self) -> dict[str, Any]:
        return {"isTriggerActive": True, "message": "Processing new data"}

    def stop(self) -> None:
        raise self._lost


def test_java_that_is_stopped_by_the_same_signal_is_reported_in_a_line() -> None:
    protocol = pytest.importorskip("py4j.protocol", reason="py4j comes with pyspark")
    out = io.StringIO()
    watch([Orphan(protocol.Py4JNetworkError("Answer from Java side is empty"))], out)
    assert "Spark was stopped by the same signal" in out.getvalue()
    with pytest.raises(RuntimeError, match="something else"):
        watch([Orphan(RuntimeError("something else"))], out)


class Endless(Query):
    """A query that goes on until it is stopped, and is within a batch every other time that it is asked."""

    @property
    def isActive(self) -> bool:
        return not self.stopped_while_active

    @property
    def status(self) -> dict[str, Any]:
        self._within = not getattr(self, "_within", False)
        return {"isTriggerActive": self._within, "message": "Initializing sources" if self._within else "Waiting"}

    def stop(self) -> None:
        self.stopped_while_active.append(self._within)


WITHIN = {"isTriggerActive": True, "message": "Processing new data"}
BETWEEN = {"isTriggerActive": False, "message": "Waiting for next trigger"}
NOTHING = {"isTriggerActive": False, "message": "Waiting for data to arrive"}


class Busy(Query):
    """A query with so much to read that nobody sees it between two batches, until it is to begin no more."""

    def __init__(self, hold: Path, *then: dict[str, Any]) -> None:
        super().__init__()
        self._hold = hold
        self._last = chain(then, repeat(NOTHING))
        self._left = 0
        self._now: dict[str, Any] = WITHIN

    @property
    def isActive(self) -> bool:
        return not self.stopped_while_active

    @property
    def status(self) -> dict[str, Any]:
        if self._left:
            self._left -= 1
        elif self._hold.exists():
            self._now = next(self._last)
        else:
            self._left = 3
        return self._now

    def stop(self) -> None:
        self.stopped_while_active.append(self._now["isTriggerActive"])


def test_a_query_that_got_no_process_is_started_again() -> None:
    late = RuntimeError("[STREAM_FAILED] Python worker failed to connect back.")
    other = Query(error=RuntimeError("the topic is not there"))
    queries = [Query(error=late), Query(error=late), Endless(), other]
    left = iter(queries)
    assert start_patiently(lambda: next(left)) is queries[2]
    assert start_patiently(lambda: next(left)) is other  # what is wrong for good is for who watches it


def test_a_line_tells_rows_rate_lag_and_what_did_not_count() -> None:
    assert describe("topic", progress(3, 5000)) == "topic: batch 3, 5,000 rows, 1,234 rows/s, lag 20"
    assert describe("x", progress(4, 9, 2, 1)) == "x: batch 4, 9 rows, 1,234 rows/s, lag 10, 2 malformed, 1 late"


def test_a_batch_that_is_repeated_after_a_restart_has_no_lag_but_an_unknown_one() -> None:
    # Spark asks a source for its latest offsets only when it plans a batch, not when it repeats a planned one.
    repeated = progress(1, 10)
    repeated["sources"][0]["latestOffset"] = None
    assert describe("topic", repeated) == "topic: batch 1, 10 rows, 1,234 rows/s, lag unknown"


def test_each_batch_is_shown_once_and_added_up() -> None:
    out = io.StringIO()
    assert watch([Query(progress(0, 10, 1), progress(1, 0), progress(2, 5, 2, 3))], out) == Progress(15, 3, 3)
    assert [line.partition(",")[0] for line in out.getvalue().splitlines()] == ["topic: batch 0", "topic: batch 2"]


def test_of_queries_over_the_same_rows_the_farthest_counts() -> None:
    assert watch([Query(progress(0, 10)), Query(progress(0, 7), name="other")], io.StringIO()).rows == 10


def test_a_query_that_failed_is_an_error() -> None:
    with pytest.raises(QueryFailedError, match="the query topic failed: the disk is full"):
        watch([Query(progress(0, 1), error=RuntimeError("the disk is full"))], io.StringIO())


def test_a_query_that_failed_says_why_in_one_line() -> None:
    error = RuntimeError(
        "[STREAM_FAILED] Query [id = 1, runId = 2] terminated with exception: [PYTHON_STREAMING_DATA_SOURCE_RUNTIME_"
        "ERROR] Failed when Python streaming data source perform initialOffset: kafka.errors.UnknownTopicOrPartition"
        "Error: [Error 3] UnknownTopicOrPartitionError: Topic 'evnets' does not exist\n SQLSTATE: 38000 SQLSTATE: "
        "XXKST\n=== Streaming Query ===\nIdentifier: [id = 1]\nLogical Plan:\nWriteToMicroBatchDataSource\n"
    )
    with pytest.raises(QueryFailedError) as caught:
        watch([Query(error=error)], io.StringIO())
    assert str(caught.value) == (
        "the query topic failed: [Error 3] UnknownTopicOrPartitionError: Topic 'evnets' does not exist"
    )


def test_where_one_fails_the_others_are_stopped_between_two_batches() -> None:
    other = Endless(name="other")
    with pytest.raises(QueryFailedError, match="the query topic failed: the disk is full"):
        watch([Query(error=RuntimeError("the disk is full")), other], io.StringIO())
    assert other.stopped_while_active == [False]


@pytest.fixture
def heard() -> Iterator[list[int]]:
    """Return what a program of our own would hear of signals."""
    found: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: found.append(number))
    yield found
    signal.signal(signal.SIGTERM, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_queries_between_two_batches(number: int, heard: list[int]) -> None:
    query, out = Endless(), io.StringIO()
    with asked_to_stop() as asked:
        os.kill(os.getpid(), number)  # before there was any query to watch
        watch([query], out, asked)
    assert query.stopped_while_active == [False]
    assert "stopping after the batch in hand" in out.getvalue()
    assert heard == []


def stop_at_once(query: Query, hold: Path) -> str:
    out = io.StringIO()
    with asked_to_stop() as asked:
        asked.set()
        watch([query], out, asked, hold)
    return out.getvalue()


@pytest.mark.parametrize(
    "then",
    [
        pytest.param([], id="at once"),
        pytest.param([BETWEEN, WITHIN, WITHIN], id="a batch without rows follows"),
        pytest.param([BETWEEN] * 1000, id="the next trigger is far off"),
    ],
)
def test_with_a_backlog_too_a_stop_falls_between_two_batches(tmp_path: Path, then: list[dict[str, Any]]) -> None:
    hold = tmp_path / "hold"
    query = Busy(hold, *then)
    assert "done again" not in stop_at_once(query, hold)
    assert query.stopped_while_active == [False]


def test_a_batch_that_takes_too_long_is_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(runner, "_GRACE", 0.1)
    query = Busy(tmp_path / "hold", *[WITHIN] * 100_000)
    shown = stop_at_once(query, tmp_path / "hold")
    assert "of topic was not done within 0.1 seconds: it is stopped within it, and done again" in shown
    assert query.stopped_while_active == [True]


def test_signals_are_given_back(heard: list[int]) -> None:
    with asked_to_stop():
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    assert heard == [signal.SIGTERM]
