"""``purekafka demo``: a broker, a producer and a group of two consumers in this process, and a pipeline on Spark.

Events are produced to an embedded broker, consumed by the members of a group, and counted by window on Spark, which
writes them as Parquet. The exit code is 0 only if every event arrived, once, the group committed all of them, and the
windows have as many. Where pyspark or Java is missing the rest runs, and a line tells how to get them.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path

from kafka.broker import Broker
from kafka.cli.arguments import count, writable_directory
from kafka.cli.grammar import Verb, arg
from kafka.consumer import KafkaConsumer
from kafka.producer import KafkaProducer
from kafka.structs import TopicPartition

TOPIC = "demo-events"
GROUP = "demo-group"
PARTITIONS = 6
#: Events are spread over this many minutes, which are the windows of the pipeline.
MINUTES = 10
BEGIN = datetime(2026, 1, 1, tzinfo=timezone.utc)
#: How long the members may take together; reaching it means that something is wrong.
PATIENCE_S = 60.0


@dataclass
class Tally:
    """What one member of the group has seen."""

    name: str
    numbers: list[int] = field(default_factory=list)
    first_after_s: float | None = None
    error: Exception | None = None


@Verb(
    "demo",
    arg("--events EVENTS", "how many events to send (default %(default)s)", count, default=200_000),
    arg("--members MEMBERS", "consumers in the group (default %(default)s)", count, default=2),
    arg("--no-spark", "leave the pipeline on Spark out"),
    arg("--directory DIRECTORY", "where Parquet and checkpoint go (default: a new one)", Path),
    examples=["", "--events 20000 --no-spark"],
    connects=False,
)
def run(arguments: argparse.Namespace) -> int:
    """Run the demo."""
    started = time.perf_counter()
    if arguments.directory is not None and not arguments.no_spark:
        writable_directory(arguments.directory, "--directory")
    # A new group waits for its second member, as it does in Kafka, or the first would have it all.
    with Broker(topics={TOPIC: PARTITIONS}, configs={"group.initial.rebalance.delay.ms": 300}) as broker:
        _say("broker", f"{broker.bootstrap_servers}, {PARTITIONS} partitions", time.perf_counter() - started)
        _produce(broker.bootstrap_servers, arguments.events)
        tallies = _consume(broker.bootstrap_servers, arguments.events, arguments.members)
        committed = _committed(broker.bootstrap_servers)
        counted = None if arguments.no_spark else _count(broker.bootstrap_servers, arguments.directory)
    _say("altogether", "", time.perf_counter() - started)
    return _verdict(arguments.events, tallies, committed, counted)


def _say(step: str, what: str, seconds: float) -> None:
    print(f"{step:<10} {what:<58} {seconds:7.2f} s")


def _produce(servers: str, events: int) -> None:
    started = time.perf_counter()
    with closing(KafkaProducer(bootstrap_servers=servers)) as producer:
        for number in range(events):
            producer.send(TOPIC, key=b"user-%d" % (number % 1000), value=_event(number, events))
            if number % 10_000 == 0:
                _progress(number, events)
        producer.flush()
    _progress(events, events)
    seconds = time.perf_counter() - started
    _say("produced", f"{events:,} events, {events / seconds:,.0f} a second", seconds)


def _event(number: int, events: int) -> bytes:
    at = BEGIN + timedelta(minutes=MINUTES) * (number / events)
    user, amount = number % 1000, number % 700 / 100
    return b'{"number": %d, "user": "user-%d", "amount": %.2f, "at": "%s"}' % (
        number,
        user,
        amount,
        at.isoformat().encode(),
    )


def _progress(done: int, total: int) -> None:
    if not sys.stderr.isatty():
        return
    filled = 40 * done // max(total, 1)
    end = "\r" + " " * 60 + "\r" if done == total else ""
    print(f"\r[{'#' * filled}{'.' * (40 - filled)}] {done:,}", end=end, file=sys.stderr, flush=True)


def _consume(servers: str, events: int, members: int) -> list[Tally]:
    started = time.perf_counter()
    tallies = [Tally(f"member {number}") for number in range(1, members + 1)]
    everything_is_here = threading.Event()

    def consume(tally: Tally) -> None:
        try:
            _member(servers, tally, lambda: sum(len(each.numbers) for each in tallies) >= events, everything_is_here)
        except Exception as error:  # is shown by the main thread
            tally.error = error
            everything_is_here.set()

    threads = [threading.Thread(target=consume, args=(tally,), name=tally.name) for tally in tallies]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.perf_counter() - started
    for tally in tallies:
        after = "nothing" if tally.first_after_s is None else f"the first after {tally.first_after_s:.2f} s"
        print(f"           {tally.name}: {len(tally.numbers):,} events, {after}")
    _say("consumed", f"by a group of {members}, {events / seconds:,.0f} a second", seconds)
    return tallies


def _member(servers: str, tally: Tally, complete: Callable[[], bool], done: threading.Event) -> None:
    started = time.perf_counter()
    consumer = KafkaConsumer(
        TOPIC, bootstrap_servers=servers, group_id=GROUP, auto_offset_reset="earliest", value_deserializer=json.loads
    )
    try:
        while not done.is_set() and time.perf_counter() - started < PATIENCE_S:
            for records in consumer.poll(timeout_ms=100, max_records=5000).values():
                if tally.first_after_s is None:
                    tally.first_after_s = time.perf_counter() - started
                tally.numbers += [record.value["number"] for record in records]
            if complete():
                done.set()
    finally:
        consumer.close()  # commits what was returned, and leaves the group


def _committed(servers: str) -> int:
    partitions = [TopicPartition(TOPIC, number) for number in range(PARTITIONS)]
    with closing(KafkaConsumer(bootstrap_servers=servers, group_id=GROUP, enable_auto_commit=False)) as consumer:
        return sum(consumer.committed(partition) or 0 for partition in partitions)


def _count(servers: str, directory: Path | None) -> int | None:
    """Run the pipeline; return how many events its windows have, None if it could not be run here."""
    from kafka.spark.jobs.demo import count_by_window, reason_not_to, table

    missing = reason_not_to()
    if missing is not None:
        print(f"the pipeline on Spark is left out: {missing}")
        return None
    print("starting Spark, which takes a while")
    started = time.perf_counter()
    result = count_by_window(servers, TOPIC, directory or Path(tempfile.mkdtemp(prefix="purekafka-demo-")))
    print(table(result.rows))
    print(f"Parquet: {result.parquet}")
    _say("counted", f"on Spark, {result.events:,} events in {len(result.rows)} windows", time.perf_counter() - started)
    return result.events


def _verdict(events: int, tallies: list[Tally], committed: int, counted: int | None) -> int:
    for tally in tallies:
        if tally.error is not None:
            print(f"{tally.name} failed: {tally.error!r}")
    numbers = sorted(number for tally in tallies for number in tally.numbers)
    if counted not in {None, events}:
        print(f"sent {events:,}, but the windows have {counted:,}")
        return 1
    if numbers == list(range(events)) and committed == events:
        print(f"all {events:,} events arrived, each once, and the group committed them")
        return 0
    print(f"sent {events:,}, received {len(numbers):,} ({len(set(numbers)):,} different), committed {committed:,}")
    return 1


COMMAND = run
