"""A program that copies a topic in transactions, is killed again and again, and what its copy must be.

``python -m test.copying SERVERS SOURCE TARGET GROUP NAME`` reads as a member of a group (static, so that its successor
gets its partitions at once), writes what it read, and commits both in one transaction of up to 750 records. It prints a
line for each commit, goes on when it is sent one, and ends when the source does. `copy_with_kills` runs it, kills it
with SIGKILL, and runs it again.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from kafka import KafkaConsumer, KafkaProducer
from kafka.errors import AbortableTransactionError
from kafka.structs import TopicPartition
from test import quick_start

BATCH = 750
PARTITIONS = 2
PATIENCE = 120.0
_THIS_PROGRAM = [sys.executable, "-m", "test.copying"]
_DIES_WITH_US = [sys.executable, "-I", str(Path(__file__).parent / "real" / "_launcher.py")]


def fill(servers: str, topic: str, count: int) -> None:
    """Give each partition of a topic the numbers from 0 on."""
    with KafkaProducer(bootstrap_servers=servers) as producer:
        for number in range(count // PARTITIONS):
            for partition in range(PARTITIONS):
                producer.send(topic, b"%d" % number, partition=partition)


def copy(servers: str, source: str, target: str, group: str, name: str) -> None:
    """Copy what is there, and what other copiers of the group have left."""
    consumer = KafkaConsumer(
        source,
        bootstrap_servers=servers,
        group_id=group,
        group_instance_id=name,
        isolation_level="read_committed",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
        session_timeout_ms=10_000,
        max_poll_records=BATCH,
    )
    producer = KafkaProducer(
        bootstrap_servers=servers, transactional_id=f"{group}-{name}", transaction_timeout_ms=20_000
    )
    producer.init_transactions()
    while True:
        found = consumer.poll(200)
        if not found and _is_done(consumer, source):
            break
        if copied(consumer, producer, target, found):
            print("committed", flush=True)
            sys.stdin.readline()
    producer.close()
    consumer.close()


def copied(
    consumer: KafkaConsumer, producer: KafkaProducer, target: str, found: Mapping[TopicPartition, Sequence[Any]]
) -> bool:
    """Write what a poll returned and commit it in one transaction; whether that was done, and not aborted."""
    try:
        with producer.transaction():
            for where, records in found.items():
                for record in records:
                    producer.send(target, record.value, partition=where.partition)
            offsets = {where: records[-1].offset + 1 for where, records in found.items()}
            producer.send_offsets_to_transaction(offsets, consumer.group_metadata())
    except AbortableTransactionError as error:
        print("aborted", error, file=sys.stderr, flush=True)
        consumer.seek_to_committed()
        return False
    return True


def _is_done(consumer: KafkaConsumer, source: str) -> bool:
    """Whether everything is copied, by whomever."""
    ends = consumer.end_offsets([TopicPartition(source, partition) for partition in range(PARTITIONS)])
    return all((consumer.committed(where) or 0) >= end for where, end in ends.items())


def copy_with_kills(
    servers: str, source: str, target: str, group: str, kills: int, after: tuple[int, int], name: str = "copier"
) -> int:
    """Run the program, kill it `kills` times, each after some commits and some milliseconds, and let it end.

    Returns how many times it was killed before it was done.
    """
    rng = random.Random(source + name)
    killed = 0
    deadline = time.monotonic() + PATIENCE * (1 + kills)
    while True:
        program = quick_start.Program(
            [*_DIES_WITH_US, str(os.getpid()), *_THIS_PROGRAM, servers, source, target, group, name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        watchdog = threading.Timer(PATIENCE, program.kill)
        watchdog.start()
        try:
            assert program.stdin is not None
            assert program.stdout is not None
            commits = 0
            wanted = rng.randint(*after) if killed < kills else None
            for _line in program.stdout:
                commits += 1
                if wanted is None or commits <= wanted:
                    print(file=program.stdin, flush=True)
                if commits == wanted:
                    threading.Event().wait(rng.uniform(0, 0.05))  # to hit it anywhere in its next transaction
                    program.kill()
            if program.wait(PATIENCE) == 0:
                return killed
        finally:
            watchdog.cancel()
            program.kill()
            program.communicate()
        was_killed = wanted is not None and commits >= wanted
        assert was_killed, f"the program ended by itself after {commits} commits: {program.returncode}"
        killed += 1
        assert time.monotonic() < deadline


def copy_with_two(servers: str, source: str, target: str, group: str, kills: int, after: tuple[int, int]) -> int:
    """Two programs in one group, each with a transactional id of its own, both killed again and again.

    Partitions move between them while transactions are open: what keeps them apart is the group's membership (KIP-447).
    Returns how many times they were killed; one may be done before it was killed as often as wanted.
    """
    with ThreadPoolExecutor(2) as pool:
        runs = [
            pool.submit(copy_with_kills, servers, source, target, group, kills, after, name) for name in ("one", "two")
        ]
        return sum(run.result() for run in runs)


def read_copy(servers: str, topic: str) -> dict[int, list[int]]:
    """What a reader of committed records finds in each partition."""
    where = [TopicPartition(topic, partition) for partition in range(PARTITIONS)]
    found: dict[int, list[int]] = {each.partition: [] for each in where}
    deadline = time.monotonic() + PATIENCE
    with KafkaConsumer(
        bootstrap_servers=servers, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as reader:
        reader.assign(where)
        ends = reader.end_offsets(where)
        while any(reader.position(each) < ends[each] for each in where):
            assert time.monotonic() < deadline
            for each, records in reader.poll(500).items():
                found[each.partition] += [int(record.value) for record in records]
    return found


def check_copy(servers: str, topic: str, count: int) -> None:
    """Each record once, in order."""
    expected = list(range(count // PARTITIONS))
    for partition, numbers in read_copy(servers, topic).items():
        assert len(numbers) == len(expected), (partition, len(numbers), len(expected))
        assert numbers == expected, partition


if __name__ == "__main__":
    copy(*sys.argv[1:])
