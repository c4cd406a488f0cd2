"""``purekafka perf``: measure producing, consuming and latency.

They print the lines of Kafka's own programs, so that scripts can read either.
"""

from __future__ import annotations

import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from kafka.cli.arguments import CommandError, count, reason
from kafka.cli.connection import Connection
from kafka.cli.grammar import Noun, Verb, arg, positive
from kafka.cli.source import Source, partitions_of

if TYPE_CHECKING:
    from kafka.consumer import KafkaConsumer
    from kafka.producer.future import FutureRecordMetadata
    from kafka.record import ConsumerRecord

_PLACES: Final = ((0.5, "50th"), (0.95, "95th"), (0.99, "99th"), (0.999, "99.9th"))
_SAMPLES: Final = 200_000
_WINDOW_S: Final = 5.0
_TOPIC: Final = arg("TOPIC", "the topic to use", complete="topic")


def percentile(values: Sequence[float], share: float) -> float:
    """Return a percentile of sorted values.

    >>> percentile([1, 2, 3, 4], 0.5), percentile([], 0.5)
    (3, 0.0)
    """
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0.0


@Verb(
    "produce: write random values and print rates and latencies, as kafka-producer-perf-test does",
    _TOPIC,
    arg("-n, --records N", "how many records (100000)", count, default=100_000),
    arg("-s, --size BYTES", "the size of a value (100)", count, default=100),
    arg("--rate N", "at most this number of records per second", positive),
    arg("-z, --compression gzip|snappy|lz4|zstd", "compress the batches"),
    examples=["events -n 1000 --sandbox", "events -n 1000 --size 500 -z lz4 --sandbox"],
)
def _produce(arguments: Namespace, connection: Connection) -> int:
    configs: dict[str, object] = {"acks": "all"}
    if arguments.compression:
        configs["compression_type"] = arguments.compression
    producer = connection.producer(**configs)
    latencies: list[float] = []
    failures: list[BaseException] = []
    stride = max(1, arguments.records // _SAMPLES)
    value = os.urandom(arguments.size)
    gap = 1 / arguments.rate if arguments.rate else 0.0
    begun = time.perf_counter()
    window, shown = 0, begun

    def sampled(at: float) -> Callable[[object], None]:
        return lambda _metadata: latencies.append((time.perf_counter() - at) * 1000)

    for number in range(arguments.records):
        if gap:
            ahead = begun + number * gap - time.perf_counter()
            if ahead > 0:
                time.sleep(ahead)
        future = producer.send(arguments.topic, value)
        future.add_errback(failures.append)
        if number % stride == 0:
            now = time.perf_counter()
            future.add_callback(sampled(now))
            if now - shown >= _WINDOW_S:
                _line(number - window, arguments.size, now - shown, latencies, done=False)
                window, shown = number, now
    producer.flush()
    _line(arguments.records - len(failures), arguments.size, time.perf_counter() - begun, latencies, done=True)
    if failures:
        raise CommandError(f"{len(failures):,} of {arguments.records:,} records failed: {reason(failures[0])}")
    return 0


def _line(records: int, size: int, seconds: float, latencies: list[float], *, done: bool) -> None:
    """Print a line of ``kafka-producer-perf-test``."""
    found = sorted(latencies)
    mean = sum(found) / len(found) if found else 0.0
    text = (
        f"{records} records sent, {records / seconds:.1f} records/sec ({records * size / seconds / 2**20:.2f} MB/sec), "
        f"{mean:.1f} ms avg latency, {found[-1] if found else 0.0:.1f} ms max latency"
    )
    if done:
        text += "".join(f", {percentile(found, share):.0f} ms {name}" for share, name in _PLACES)
    print(f"{text}.", flush=True)


@Verb(
    "consume: read a topic and print rates, as kafka-consumer-perf-test does",
    _TOPIC,
    arg("-n, --records N", "how many records (all that are there)", count),
    arg("--no-headers", "leave the heading of the line out"),
    examples=["events --sandbox", "events -n 10 --no-headers --sandbox"],
)
def _consume(arguments: Namespace, connection: Connection) -> int:
    size = 0
    consumer = connection.reader()
    partitions = partitions_of(consumer, [arguments.topic], None)
    starts, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
    records = 0
    begun = time.time()

    def take(found: Sequence[ConsumerRecord]) -> None:
        nonlocal size, records
        records += len(found)
        size += sum(len(record.value or b"") for record in found)

    wanted = arguments.records or sys.maxsize
    Source(consumer, starts, ends).run(take, lambda: records >= wanted)
    ended = time.time()
    seconds = max(ended - begun, 1e-9)
    if not arguments.no_headers:
        print(
            "start.time, end.time, data.consumed.in.MB, MB.sec, data.consumed.in.nMsg, nMsg.sec, rebalance.time.ms, "
            "fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec"
        )
    megabytes = size / 2**20
    rates = f"{megabytes / seconds:.4f}, {records}, {records / seconds:.4f}, 0, {seconds * 1000:.0f}"
    print(
        f"{_time(begun)}, {_time(ended)}, {megabytes:.4f}, {rates}, {megabytes / seconds:.4f}, {records / seconds:.4f}"
    )
    return 0


def _time(moment: float) -> str:
    whole = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(moment))
    return f"{whole}:{int(moment * 1000) % 1000:03}"


@Verb(
    "latency: write a record, read it, and print how long that takes, as kafka-e2e-latency does",
    _TOPIC,
    arg("-n, --records N", "how many records (1000)", count, default=1000),
    arg("-s, --size BYTES", "the size of a value (100)", count, default=100),
    arg("--acks 0|1|all", "how many replicas acknowledge (all)", default="all"),
    examples=["events -n 20 --sandbox", "orders -n 20 --acks 1 --sandbox"],
)
def _latency(arguments: Namespace, connection: Connection) -> int:
    producer = connection.producer(linger_ms=0, acks=arguments.acks if arguments.acks == "all" else int(arguments.acks))
    consumer = connection.reader(auto_offset_reset="latest", fetch_max_wait_ms=5000)
    partitions = partitions_of(consumer, [arguments.topic], None)
    Source(consumer, consumer.end_offsets(partitions))
    latencies = []
    for number in range(arguments.records):
        value = b"%d:" % number + os.urandom(max(0, arguments.size - 8))
        begun = time.perf_counter()
        sent = producer.send(arguments.topic, value)
        if not _arrived(consumer, sent, value, begun):
            raise CommandError(f"record {number} did not arrive within 60 seconds")
        latencies.append((time.perf_counter() - begun) * 1000)
    mean = sum(latencies) / len(latencies)
    latencies.sort()
    print(f"Avg latency: {mean:.4f} ms\n")
    shown = (f"{name} = {percentile(latencies, share):.2f}" for share, name in _PLACES if share != 0.95)
    print(f"Percentiles: {', '.join(shown)}")
    return 0


def _arrived(consumer: KafkaConsumer, sent: FutureRecordMetadata, value: bytes, begun: float) -> bool:
    while time.perf_counter() - begun < 60:
        if sent.exception is not None:
            raise sent.exception
        for records in consumer.poll(1000).values():
            if any(record.value == value for record in records):
                return True
    return False


COMMAND = Noun("perf", [_produce, _consume, _latency])
