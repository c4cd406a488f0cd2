"""``purekafka perf`` and ``verifiable``: measure producing, consuming and latency; clients for Kafka's system tests.

They print the lines of Kafka's own programs, so that scripts can read either.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import TYPE_CHECKING, Any, Final

from kafka.cli.arguments import CommandError, count
from kafka.cli.connection import Connection
from kafka.cli.grammar import Noun, Verb, arg
from kafka.cli.source import Source, partitions_of

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Collection, Iterable, Sequence

    from kafka.consumer import KafkaConsumer
    from kafka.producer import RecordMetadata
    from kafka.record import ConsumerRecord
    from kafka.structs import TopicPartition

__all__ = ["COMMAND", "percentile"]

_SAMPLES: Final = 200_000
_WINDOW_S: Final = 5.0


def percentile(values: Sequence[float], share: float) -> float:
    """Return a percentile of sorted values.

    >>> percentile([1, 2, 3, 4], 0.5), percentile([], 0.5)
    (3, 0.0)
    """
    return values[min(len(values) - 1, int(len(values) * share))] if values else 0.0


def _produce(arguments: Namespace) -> int:
    with Connection(arguments) as connection:
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
        raise CommandError(f"{len(failures):,} of {arguments.records:,} records failed: {failures[0]}")
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
        places = ((0.5, "50th"), (0.95, "95th"), (0.99, "99th"), (0.999, "99.9th"))
        text += "".join(f", {percentile(found, share):.0f} ms {name}" for share, name in places)
    print(f"{text}.", flush=True)


def _consume(arguments: Namespace) -> int:
    size = 0
    with Connection(arguments) as connection:
        consumer = connection.consumer(
            group_id=None, enable_auto_commit=False, allow_auto_create_topics=False, auto_offset_reset="earliest"
        )
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


def _latency(arguments: Namespace) -> int:
    with Connection(arguments) as connection:
        producer = connection.producer(
            linger_ms=0, acks=arguments.acks if arguments.acks == "all" else int(arguments.acks)
        )
        consumer = connection.consumer(
            group_id=None, enable_auto_commit=False, auto_offset_reset="latest", fetch_max_wait_ms=5000
        )
        partitions = partitions_of(consumer, [arguments.topic], None)
        Source(consumer, consumer.end_offsets(partitions))
        latencies = []
        for number in range(arguments.records):
            value = b"%d:" % number + os.urandom(max(0, arguments.size - 8))
            begun = time.perf_counter()
            producer.send(arguments.topic, value)
            if not _arrived(consumer, value, begun):
                raise CommandError(f"record {number} did not arrive within 60 seconds")
            latencies.append((time.perf_counter() - begun) * 1000)
    mean = sum(latencies) / len(latencies)
    latencies.sort()
    print(f"Avg latency: {mean:.4f} ms\n")
    places = ((0.5, "50th"), (0.99, "99th"), (0.999, "99.9th"))
    print("Percentiles: " + ", ".join(f"{name} = {percentile(latencies, share):.2f}" for share, name in places))
    return 0


def _arrived(consumer: KafkaConsumer, value: bytes, begun: float) -> bool:
    while time.perf_counter() - begun < 60:
        for records in consumer.poll(1000).values():
            if any(record.value == value for record in records):
                return True
    return False


# Kafka's system tests…


def _event(name: str, **fields: object) -> None:
    print(json.dumps({"timestamp": int(time.time() * 1000), "name": name, **fields}), flush=True)


def _verifiable_producer(arguments: Namespace) -> int:
    acked = sent = 0
    failed: list[bool] = []
    with Connection(arguments) as connection:
        acks: str | int = "all" if arguments.acks == "-1" else int(arguments.acks)
        producer = connection.producer(acks=acks, linger_ms=0)
        _event("startup_complete")
        begun = time.monotonic()

        def acknowledged(metadata: RecordMetadata, key: str | None, value: str) -> None:
            nonlocal acked
            acked += 1
            place = {"offset": metadata.offset, "topic": metadata.topic, "partition": metadata.partition}
            _event("producer_send_success", key=key, value=value, **place)

        def refused(error: BaseException, key: str | None, value: str) -> None:
            failed.append(True)
            _event(
                "producer_send_error",
                topic=arguments.topic,
                key=key,
                value=value,
                exception=f"class {type(error).__name__}",
                message=str(error),
            )

        prefix = "" if arguments.value_prefix is None else f"{arguments.value_prefix}."
        try:
            while arguments.max_messages < 0 or sent < arguments.max_messages:
                key = None if arguments.repeating_keys is None else str(sent % arguments.repeating_keys)
                value = f"{prefix}{sent}"
                future = producer.send(arguments.topic, value.encode(), None if key is None else key.encode())
                future.add_callback(acknowledged, key=key, value=value)
                future.add_errback(refused, key=key, value=value)
                sent += 1
                if arguments.throughput > 0:
                    ahead = begun + sent / arguments.throughput - time.monotonic()
                    if ahead > 0:
                        time.sleep(ahead)
        except KeyboardInterrupt:
            pass
        finally:
            producer.flush()
            _event("shutdown_complete")
            rate = acked / max(time.monotonic() - begun, 1e-9)
            _event("tool_data", sent=sent, acked=acked, target_throughput=arguments.throughput, avg_throughput=rate)
    return 1 if failed else 0


def _verifiable_consumer(arguments: Namespace) -> int:
    from kafka.consumer import ConsumerRebalanceListener
    from kafka.structs import OffsetAndMetadata

    class Tell(ConsumerRebalanceListener):
        def on_partitions_assigned(self, assigned: Collection[TopicPartition]) -> None:
            _event("partitions_assigned", partitions=_places(assigned))

        def on_partitions_revoked(self, revoked: Collection[TopicPartition]) -> None:
            _event("partitions_revoked", partitions=_places(revoked))

    with Connection(arguments) as connection:
        consumer = connection.consumer(
            group_id=arguments.group_id,
            group_instance_id=arguments.group_instance_id,
            enable_auto_commit=arguments.enable_autocommit,
            auto_offset_reset=arguments.reset_policy,
        )
        _event("startup_complete")
        consumer.subscribe([arguments.topic], listener=Tell())
        taken, interrupted = 0, False
        try:
            while arguments.max_messages < 0 or taken < arguments.max_messages:
                found = consumer.poll(500)
                if not found:
                    continue
                rows, offsets = [], {}
                for tp, some in found.items():
                    records = some if arguments.max_messages < 0 else some[: arguments.max_messages - taken]
                    if records:
                        taken += len(records)
                        rows.append(_consumed(arguments, records))
                        offsets[tp] = OffsetAndMetadata(records[-1].offset + 1)
                _event("records_consumed", count=sum(row["count"] for row in rows), partitions=rows)
                if not arguments.enable_autocommit:
                    consumer.commit(offsets)
                    places = [{**_place(tp), "offset": place.offset} for tp, place in offsets.items()]
                    _event("offsets_committed", success=True, offsets=places)
        except KeyboardInterrupt:
            interrupted = True
            _event("shutdown_requested")
        finally:
            consumer.close()
            _event("shutdown_complete")
            if not interrupted:  # Kafka's program says so when it exits, whatever ended it
                _event("shutdown_requested")
            sys.stdout.flush()
    return 0


def _consumed(arguments: Namespace, records: Sequence[ConsumerRecord]) -> dict[str, Any]:
    if arguments.verbose_records:
        for r in records:
            key, value = (None if data is None else data.decode(errors="replace") for data in (r.key, r.value))
            _event("record_data", key=key, value=value, topic=r.topic, partition=r.partition, offset=r.offset)
    first, last = records[0], records[-1]
    place = {"topic": first.topic, "partition": first.partition}
    return {**place, "count": len(records), "minOffset": first.offset, "maxOffset": last.offset}


def _place(tp: TopicPartition) -> dict[str, object]:
    return {"topic": tp.topic, "partition": tp.partition}


def _places(partitions: Iterable[TopicPartition]) -> list[dict[str, object]]:
    return [_place(tp) for tp in sorted(partitions)]


_TOPIC: Final = arg("TOPIC", "the topic to use", complete="topic")
_MAX: Final = arg("--max-messages N", "end after this number of records (never)", int, default=-1)

COMMAND = {
    "perf": Noun(
        "perf",
        "measure producing, consuming and latency",
        [
            Verb(
                "produce",
                "write random values and print rates and latencies, as kafka-producer-perf-test does",
                _produce,
                [
                    _TOPIC,
                    arg("-n, --records N", "how many records (100000)", count, default=100_000),
                    arg("-s, --size BYTES", "the size of a value (100)", count, default=100),
                    arg("--rate N", "at most this number of records per second", float),
                    arg("-z, --compression gzip|snappy|lz4|zstd", "compress the batches"),
                ],
                [
                    "purekafka perf produce events -n 1000 --sandbox",
                    "purekafka perf produce events -n 1000 --size 500 -z lz4 --sandbox",
                ],
            ),
            Verb(
                "consume",
                "read a topic and print rates, as kafka-consumer-perf-test does",
                _consume,
                [
                    _TOPIC,
                    arg("-n, --records N", "how many records (all that are there)", count),
                    arg("--no-headers", "leave the heading of the line out"),
                ],
                [
                    "purekafka perf consume events --sandbox",
                    "purekafka perf consume events -n 10 --no-headers --sandbox",
                ],
            ),
            Verb(
                "latency",
                "write a record, read it, and print how long that takes, as kafka-e2e-latency does",
                _latency,
                [
                    _TOPIC,
                    arg("-n, --records N", "how many records (1000)", count, default=1000),
                    arg("-s, --size BYTES", "the size of a value (100)", count, default=100),
                    arg("--acks 0|1|all", "how many replicas acknowledge (all)", default="all"),
                ],
                [
                    "purekafka perf latency events -n 20 --sandbox",
                    "purekafka perf latency orders -n 20 --acks 1 --sandbox",
                ],
            ),
        ],
    ),
    "verifiable": Noun(
        "verifiable",
        "clients for Kafka's system tests, which print each event as JSON",
        [
            Verb(
                "producer",
                "write numbers and print an event for each record",
                _verifiable_producer,
                [
                    arg("--topic TOPIC", "the topic to write to", required=True, complete="topic"),
                    _MAX,
                    arg("--throughput N", "records per second (unlimited)", float, default=-1),
                    arg("--acks -1|0|1", "how many replicas acknowledge (-1)", default="-1"),
                    arg("--value-prefix N", "write N.0, N.1 and so on, not 0, 1", int),
                    arg("--repeating-keys N", "use keys from 0 to N-1 in turn", int),
                ],
                [
                    "purekafka verifiable producer --topic events --max-messages 5 --sandbox",
                    "purekafka verifiable producer --topic events --max-messages 3 --throughput 100 --sandbox",
                ],
            ),
            Verb(
                "consumer",
                "read in a group and print an event for each poll, rebalance and commit",
                _verifiable_consumer,
                [
                    arg("--topic TOPIC", "the topic to read", required=True, complete="topic"),
                    arg("--group-id GROUP", "the group to join", required=True, complete="group"),
                    arg("--group-instance-id ID", "the id of a static member of the group"),
                    _MAX,
                    arg("--enable-autocommit", "commit from time to time, not each poll"),
                    arg(
                        "--reset-policy earliest|latest|none",
                        "where to begin without a committed offset (earliest)",
                        default="earliest",
                    ),
                    arg("--verbose-records", "print an event for each record too"),
                ],
                [
                    "purekafka verifiable consumer --topic events --group-id g --max-messages 30 --sandbox",
                    "purekafka verifiable consumer --topic orders --group-id g --max-messages 5 --sandbox",
                ],
            ),
        ],
    ),
}
