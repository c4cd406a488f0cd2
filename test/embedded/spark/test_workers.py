"""What tasks do to the worker process that they run in."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pytest

from kafka.broker import Broker
from kafka.spark import client_cache, row_sender
from kafka.spark.batch_reader import KafkaPartition, RangeReader
from kafka.spark.exactly_once import TaskIdentity, transactors, write_once
from kafka.spark.fetcher import _clients as reading_clients
from kafka.spark.offset_ranges import OffsetRange
from kafka.spark.options import SinkOptions, SourceOptions

Options = dict[str, str]


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(topics={"events": 1, "out": 1}) as running:
        yield running
        for kept in (reading_clients, row_sender._producers, transactors):
            kept.close()


@pytest.fixture
def frozen(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the list of times that the garbage collector was told to spare what is there, in a process that is new."""
    calls: list[str] = []
    monkeypatch.setattr(client_cache, "_frozen", False)
    monkeypatch.setattr("gc.freeze", lambda: calls.append("freeze"))
    return calls


def reads(given: Options) -> None:
    options = SourceOptions.parse({**given, "subscribe": "events"}, streaming=True)
    list(RangeReader(options, ["offset"]).read(KafkaPartition((OffsetRange("events", 0, 0, 0),))))


def writes(given: Options) -> None:
    rows = pa.RecordBatch.from_pydict({"value": [b"a"]})
    assert row_sender.write(SinkOptions.parse({**given, "topic": "out"}), [rows]) == {"out-0": 1}


def writes_once(given: Options) -> None:
    options = SinkOptions.parse({**given, "topic": "out", "exactlyOnce": "true"})
    assert write_once(options, TaskIdentity("query", 0, 0, "run"), []).held is None


TASKS = [reads, writes, writes_once]


@pytest.mark.parametrize("task", TASKS)
def test_every_kind_of_task_freezes_its_process_once(
    broker: Broker, frozen: list[str], task: Callable[[Options], None]
) -> None:
    for _ in range(2):
        task({"kafka.bootstrap.servers": broker.bootstrap_servers})
    assert frozen == ["freeze"]


@pytest.mark.parametrize("task", TASKS)
def test_no_kind_of_task_freezes_its_process_where_that_is_disabled(
    broker: Broker, frozen: list[str], task: Callable[[Options], None]
) -> None:
    task({"kafka.bootstrap.servers": broker.bootstrap_servers, "freezeWorkers": "false"})
    assert frozen == []
