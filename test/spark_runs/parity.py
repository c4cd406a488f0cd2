"""The same query with Spark's own connector and with this source, and what of the two is compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafka.producer import KafkaProducer
from test.real.kafka_jars import KafkaUnavailable
from test.real.spark_jars import connector_jars
from test.spark_runs.sessions import finish, spark_session

__all__ = [
    "CODECS",
    "SOURCES",
    "digest",
    "ends_of_batches",
    "fill_everything",
    "frame",
    "hand_over",
    "outcome",
    "session_with_both",
    "stream",
    "streamed",
]

SOURCES = ("kafka", "purekafka")
CODECS = (None, "gzip", "snappy", "lz4", "zstd")
_COLUMNS = "xxhash64(key, value, topic, partition, offset, timestamp, timestampType, headers)"


@contextmanager
def session_with_both() -> Iterator[Any]:
    """Give a session that has both; skips where the connector's jars are not to be had."""
    try:
        jars = connector_jars()
    except KafkaUnavailable as error:
        pytest.skip(str(error))
    with spark_session("parity", jars=jars) as session:
        yield session


def fill_everything(servers: str, topic: str, each: int = 400) -> None:
    """Write records of every codec, with nulls and headers, and in transactions, one of them aborted."""
    for codec in CODECS:
        with KafkaProducer(bootstrap_servers=servers, compression_type=codec, batch_size=2000) as producer:
            for number in range(each):
                value = None if number % 7 == 0 else b"%d" % number
                key = None if number % 3 else b"k%d" % number
                producer.send(topic, value, key, [("h", b"x"), ("n", None)] if number % 5 == 0 else None)
    for commit in (True, False, True):
        with KafkaProducer(bootstrap_servers=servers, transactional_id=f"t-{topic}") as producer:
            producer.init_transactions()
            producer.begin_transaction()
            for number in range(50):
                producer.send(topic, b"t%d" % number)
            producer.flush()
            (producer.commit_transaction if commit else producer.abort_transaction)()


def frame(spark: Any, source: str, servers: str, **options: str) -> Any:
    """Return a batch frame; a task for each range, as Spark's own connector has them."""
    return _with_options(spark.read, source, servers, options).load()


def stream(spark: Any, source: str, servers: str, **options: str) -> Any:
    """Return a streaming frame."""
    return _with_options(spark.readStream, source, servers, options).load()


def _with_options(reader: Any, source: str, servers: str, options: dict[str, str]) -> Any:
    chosen = {name.replace("__", "."): value for name, value in options.items()}
    return reader.format(source).options(
        **{"kafka.bootstrap.servers": servers, "includeHeaders": "true", "rowsPerTask": "0", **chosen}
    )


def digest(rows: Any) -> list[Any]:
    """Return for each task what it reads of each partition: how much, from where to where, a hash of all columns."""
    from pyspark.sql import functions

    numbered = rows.withColumn("task", functions.spark_partition_id())
    columns = ("count(*)", "min(offset)", "max(offset)", f"bit_xor({_COLUMNS})")
    found = numbered.groupBy("task", "topic", "partition").agg(*map(functions.expr, columns)).collect()
    tasks: dict[int, list[Any]] = {}
    for row in found:
        tasks.setdefault(row.task, []).append(tuple(row)[1:])
    return sorted(sorted(ranges) for ranges in tasks.values())


def streamed(rows: Any, checkpoint: Path) -> list[Any]:
    """Run a streaming query to the end of what is there; return the digest of each batch that had rows."""
    found: dict[int, Any] = {}

    def take(batch: Any, number: int) -> None:
        found[number] = digest(batch)

    finish(rows.writeStream.foreachBatch(take).option("checkpointLocation", str(checkpoint)))
    return [found[number] for number in sorted(found) if found[number]]


def ends_of_batches(checkpoint: Path) -> list[Any]:
    """Return the offsets at which the batches of a checkpoint end; those that bring nothing new are left out."""
    found: list[Any] = []
    for path in sorted((checkpoint / "offsets").glob("[0-9]*"), key=lambda path: int(path.name)):
        end = json.loads(path.read_text(encoding="utf-8").splitlines()[-1])
        if not found or found[-1] != end:
            found.append(end)
    return found


def hand_over(
    spark: Any, order: tuple[str, ...], servers: str, topic: str, home: Path, between: Callable[[], None]
) -> list[tuple[int, int]]:
    """Let the sources take turns at one checkpoint, with new records between; return what was read, as it came."""
    seen: list[tuple[int, int]] = []

    def take(rows: Any, _number: int) -> None:
        seen.extend((row.partition, row.offset) for row in rows.select("partition", "offset").collect())

    for source in order:
        rows = stream(spark, source, servers, subscribe=topic, startingOffsets="earliest", maxOffsetsPerTrigger="700")
        finish(rows.writeStream.foreachBatch(take).option("checkpointLocation", str(home)))
        between()
    return seen


def outcome(query: Callable[[], Any]) -> str:
    """Return what a query ends with: the text of its error, or its result."""
    try:
        return f"RESULT {query()!r}"
    except Exception as error:  # of whatever class Spark makes of it
        return f"ERROR {error}"
