"""Reading ranges as a task does, for the tests of that."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from kafka.broker import Broker
from kafka.producer import KafkaProducer
from kafka.spark.arrow import COLUMNS, schema_of
from kafka.spark.fetcher import read_ranges
from kafka.spark.offset_ranges import OffsetRange
from kafka.spark.options import SourceOptions


def options(broker: Broker, **given: str) -> SourceOptions:
    """Return what a stream of ``events`` is given; in names ``__`` stands for a dot."""
    names = {"subscribe": "events", **{name.replace("__", "."): value for name, value in given.items()}}
    names.setdefault("kafka.reconnect.backoff.ms", "10")
    if "subscribePattern" in names or "assign" in names:
        del names["subscribe"]
    return SourceOptions.parse({"kafka.bootstrap.servers": broker.bootstrap_servers, **names}, streaming=True)


def read(broker: Broker, ranges: Sequence[OffsetRange], columns: Sequence[str] = COLUMNS, **given: str) -> Any:
    """Return the records of ranges as a table."""
    chosen = options(broker, **given)
    return pa.Table.from_batches(list(read_ranges(ranges, chosen, columns)), schema_of(columns))


def fill(broker: Broker, count: int, partition: int = 0, **configs: Any) -> None:
    """Send so many numbers to a partition of ``events``."""
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, **configs) as producer:
        for number in range(count):
            producer.send("events", b"%d" % number, partition=partition)


def read_all_of(broker: Broker, end: int, **given: str) -> None:
    """Read a range that begins at 0, and see that all its offsets come."""
    table = read(broker, [OffsetRange("events", 0, 0, end)], ["offset", "value"], **given)
    assert table["offset"].to_pylist() == list(range(end))
    assert [int(value[-9:]) for value in table["value"].to_pylist()] == list(range(end))
