"""Members of this library, on both faces, and Java's KafkaShareConsumer in one group."""

from __future__ import annotations

import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kafka import KafkaShareConsumer
from test.embedded.faces import AIOShareConsumer
from test.real import jvm
from test.real.kafka_process import KafkaCluster

from .test_share_consumer import Queue

SOURCE = Path(__file__).parents[1] / "java" / "ShareWorker.java"
RECORDS, TIMEOUT = 600, 120.0


@contextmanager
def java_worker(version: str, queue: Queue) -> Iterator[list[str]]:
    """Run ShareWorker.java; the list grows by the value and the delivery count of each record that it accepts."""
    command = jvm.command(version, *jvm.QUICK_START, "-Xmx256m", str(SOURCE))
    arguments = [queue.cluster.bootstrap_servers, queue.name, queue.name]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [*command, *arguments], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
    ) as java:
        done: list[str] = []
        assert java.stdin is not None
        assert java.stdout is not None
        lines = java.stdout

        def read() -> None:
            done.extend(line.split(maxsplit=1)[1].strip() for line in lines if line.startswith(("record", "error")))

        reading = threading.Thread(target=read)
        reading.start()
        try:
            yield done
            java.stdin.write("stop\n")
            java.stdin.flush()
            java.wait(TIMEOUT)
        finally:
            java.kill()
            reading.join()


def work(queue: Queue, kind: Any, done: list[str], stopping: threading.Event) -> None:
    """Accept records until the test stops it."""
    member = kind(
        queue.name,
        bootstrap_servers=queue.cluster.bootstrap_servers,
        group_id=queue.name,
        share_acknowledgement_mode="explicit",
        max_poll_records=10,
    )
    try:
        while not stopping.is_set():
            for records in member.poll(200).values():
                for record in records:
                    member.acknowledge(record)
                    done.append(f"{record.value.decode()} {record.delivery_count}")
            assert not any(member.commit().values())
    finally:
        member.close()


def test_each_record_is_accepted_by_one_member_of_either_library(kafka: KafkaCluster, kafka_version: str) -> None:
    queue = Queue(kafka, partitions=3)
    ours: list[list[str]] = [[], []]
    stopping = threading.Event()
    with java_worker(kafka_version, queue) as by_java:
        working = [
            threading.Thread(target=work, args=(queue, kind, done, stopping))
            for kind, done in zip((KafkaShareConsumer, AIOShareConsumer), ours, strict=True)
        ]
        for thread in working:
            thread.start()
        try:
            queue.wait_for_members(3)  # a JVM takes its time to start
            for first in range(0, RECORDS, 10):  # slowly, so that all three come to it
                queue.put(*map(str, range(first, first + 10)), partition=first // 10 % 3)
            deadline = time.monotonic() + TIMEOUT
            while len(by_java) + sum(map(len, ours)) < RECORDS:
                assert time.monotonic() < deadline, (len(by_java), [len(done) for done in ours])
                time.sleep(0.1)
        finally:
            stopping.set()
            for thread in working:
                thread.join()
    assert sorted([*by_java, *ours[0], *ours[1]]) == sorted(f"{value} 1" for value in range(RECORDS))
    print(f"by Java {len(by_java)}, by threads {len(ours[0])}, by asyncio {len(ours[1])}")
    assert by_java
    assert all(ours)
