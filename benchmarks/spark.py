"""The Spark data source beside Spark's own connector: both in one session, in turn, against the same broker.

A fresh process for each run would measure how a Java machine warms up, so here one process does all runs, A B A B, and
each side has had its warm-up in each case before the clock starts. Results have to be equal: rows, checksums over the
columns, records that arrived in the topic. See session.py for how CPU time is counted.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from itertools import cycle, islice
from pathlib import Path
from typing import Any

import traffic
from workload import Case, Target, Workload, main

RECORDS = 1_000_000
SINK_RECORDS = 1_000_000
PARTITIONS = 4
LONG_RECORDS = 4_000_000
PLAIN, KEYED, LONG, SMALL, OUT, AVRO = (
    f"bench-spark-{name}" for name in ("plain", "keyed", "long", "small", "out", "avro")
)
#: Values of the topic AVRO: an id of a schema, and then these fields.
AVRO_SCHEMA = """{"type": "record", "name": "Order", "fields": [
    {"name": "id", "type": "long"},
    {"name": "customer", "type": "string"},
    {"name": "amount", "type": "double"},
    {"name": "note", "type": ["null", "string"], "default": null},
    {"name": "count", "type": "int"},
    {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
    {"name": "tags", "type": {"type": "array", "items": "string"}},
    {"name": "kind", "type": {"type": "enum", "name": "Kind", "symbols": ["NEW", "PAID", "SENT"]}}
]}"""
PEER = "spark-sql-kafka"
PER_BATCH = 350_000
PER_LONG_BATCH = 400_000
SMALL_ROWS = 40
SMALL_TRIGGERS = 30
SMALL_WARM_UP = 5


def together(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """All runs, as the lines that the harness reads."""
    from spark_session import runs  # needs pyspark

    return runs(args)


def set_up(args: argparse.Namespace) -> None:
    """Make and fill the topics, the partitions in turn so that all tasks have the same to do."""
    stay = {"retention.ms": "-1", "retention.bytes": "-1"}
    made = traffic.make_topics(args.bootstrap, dict.fromkeys((PLAIN, KEYED, LONG, SMALL), PARTITIONS), stay)
    traffic.make_topics(args.bootstrap, {OUT: PARTITIONS}, {})
    if AVRO in traffic.make_topics(args.bootstrap, {AVRO: PARTITIONS}, stay):
        _fill(args.bootstrap, AVRO, _orders())
    if PLAIN in made:
        _fill(args.bootstrap, PLAIN, _mixed(RECORDS, args.seed))
    if KEYED in made:
        _fill(args.bootstrap, KEYED, _mixed(RECORDS, args.seed), keyed=True)
    if LONG in made:
        values = cycle(list(_mixed(RECORDS // 10, args.seed)))  # to think them out takes longer than to send them
        _fill(args.bootstrap, LONG, islice(values, LONG_RECORDS), keyed=True)
    if SMALL in made:
        _fill(args.bootstrap, SMALL, _mixed(SMALL_ROWS * (SMALL_TRIGGERS + SMALL_WARM_UP + 10), args.seed))


def _orders() -> Iterator[bytes]:
    """Yield orders behind the id 1; the compiler of Avro needs nothing of the environment that fills topics."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent))
    try:
        from kafka.schema_registry.avro import compile_avro
    finally:
        sys.path.pop(0)
    codec = compile_avro(AVRO_SCHEMA)
    for number in range(RECORDS):
        order = {
            "id": number * 1000,
            "customer": f"customer-{number % 50_000}",
            "amount": number / 7,
            "note": None if number % 2 else "n" * (number % 40),
            "count": number % 1000,
            "at": 1_700_000_000_000 + number,
            "tags": ["t1"] * (number % 4),
            "kind": ("NEW", "PAID", "SENT")[number % 3],
        }
        yield codec.encode(order, b"\0\0\0\0\1")


def _mixed(count: int, seed: int) -> Iterator[bytes]:
    return (record.value for record in traffic.Content("mix", seed).records(count))


def _fill(bootstrap: str, topic: str, values: Iterator[bytes], *, keyed: bool = False) -> None:
    producer = traffic.confluent_producer(bootstrap, compression="none")
    for number, value in enumerate(values):
        key = b"key%05d" % (number % 50_000) if keyed else None
        while True:
            try:
                producer.produce(topic, value, key, number % PARTITIONS)
                break
            except BufferError:
                producer.poll(0.05)
        if not number % 10_000:
            producer.poll(0)
    left = producer.flush(traffic.TIMEOUT_S)
    if left:
        raise RuntimeError(f"filling {topic}: {left} records left")


WORKLOAD = Workload(
    title="the Spark data source beside Spark's own connector, in one session",
    unit="record",
    impls=("purekafka", PEER),
    cases=[
        Case("batch-count", f"count and sum of value lengths over {RECORDS:,} records"),
        Case("batch-columns", "a checksum over all columns but the timestamp's type, of records with keys"),
        Case("batch-noop", "all columns handed to a sink that drops them"),
        Case("batch-avro", "a checksum over all fields of Avro values: the option schemaRegistry beside from_avro"),
        Case("batch-avro-function", "the same with from_registry, in a query over the bytes"),
        Case("stream-available-now", "a whole query with the trigger available-now, in one batch"),
        Case("stream-add-batch", "available-now into a sink that drops them"),
        Case("stream-long", "a query that lives on: the batches behind its first one"),
        Case("sink", f"{SINK_RECORDS:,} cached rows of 100 B to a topic"),
        Case("sink-key", "the same with keys"),
        Case("small-trigger", f"micro-batches of {SMALL_ROWS} records, one after the other"),
    ],
    together=together,
    together_impl=PEER,
    targets=[
        Target("batch-*", peer=PEER, metric="wall_us", at_least=2.5),
        Target("stream-available-now", peer=PEER, metric="wall_us", at_least=1.5),
        Target("stream-add-batch", peer=PEER, metric="add_batch_ms", at_least=2),
        Target("stream-long", peer=PEER, metric="cpu_us", at_least=1),
        Target("sink*", peer=PEER, metric="wall_us", at_least=1.5),
        Target("small-*", peer=PEER, metric="p50_ms", at_least=1),
        Target("small-*", peer=PEER, metric="p90_ms", at_least=1),
    ],
    settings={
        "records": f"{RECORDS:,} of 20 to 300 B in {PARTITIONS} partitions, uncompressed, batches of "
        f"{traffic.BATCH_BYTES:,} B; with keys of 8 B in batch-columns, batch-noop and streams",
        "reading": "each side's own defaults, checksums checked by both",
        "stream-add-batch": f"{PER_BATCH:,} offsets a trigger at most; the sum of durationMs.addBatch",
        "stream-long": f"{LONG_RECORDS:,} records, {PER_LONG_BATCH:,} offsets a trigger; what starts with a query, and "
        "its first batch, does not count",
        "sinks": f"{SINK_RECORDS:,} records, {PARTITIONS} tasks, idempotent, acks all, batches of 256 KiB, "
        "linger 20 ms",
        "small-trigger": f"triggerExecution of {SMALL_TRIGGERS} triggers of {SMALL_ROWS} records "
        f"from {PARTITIONS} partitions, without pause",
        "CPU": "of the driver, the Java machine and the Python workers together",
    },
    needs_broker=True,
    set_up=set_up,
    set_up_impl="confluent-kafka",
)

if __name__ == "__main__":
    main(WORKLOAD)
