"""Members of this library on both faces, of Java and of confluent-kafka in one group, on each broker that there is."""

from __future__ import annotations

import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafka import AcknowledgeType, KafkaAdminClient, KafkaProducer, KafkaShareConsumer
from kafka.admin import ConfigResource
from kafka.broker import Broker
from test.embedded.faces import AIOShareConsumer
from test.real import jvm
from test.real.broker.peer_venvs import python_of
from test.real.conftest import StartKafka
from test.real.kafka_process import KafkaCluster

from .test_share_consumer import Queue

HERE = Path(__file__).parent
RECORDS, TIMEOUT = 600, 120.0


class Bootstrap:
    """The embedded broker as `Queue` takes a cluster."""

    def __init__(self, broker: Broker) -> None:
        self.bootstrap_servers = broker.bootstrap_servers

    def create_topic(self, name: str, partitions: int, replicas: int) -> None:
        from kafka.admin import NewTopic

        with KafkaAdminClient(bootstrap_servers=self.bootstrap_servers) as admin:
            admin.create_topics([NewTopic(name, partitions, replicas)])
            admin.alter_configs([ConfigResource("GROUP", name, {"share.auto.offset.reset": "earliest"})])


@pytest.fixture(params=["newest", pytest.param("4.2.0", marks=pytest.mark.matrix), "embedded"])
def queue(request: pytest.FixtureRequest, share_kafka: KafkaCluster, kafka_at: StartKafka) -> Iterator[Queue]:
    """A queue of three partitions."""
    if request.param == "embedded":
        with Broker() as broker:
            yield Queue(Bootstrap(broker), partitions=3)  # type: ignore[arg-type]
    else:
        yield Queue(share_kafka if request.param == "newest" else kafka_at(request.param), partitions=3)


@pytest.fixture(scope="session")
def java(kafka_version: str) -> list[str]:
    """The command of ShareWorker.java; the session keeps its temporary directory."""
    return jvm.command(kafka_version, *jvm.QUICK_START, "-Xmx256m", str(HERE.parent / "java" / "ShareWorker.java"))


@contextmanager
def foreign_worker(command: list[str], queue: Queue) -> Iterator[list[str]]:
    """Run a program; the list grows by the value and the delivery count of each record that it accepts."""
    pipe = subprocess.PIPE
    arguments = [queue.cluster.bootstrap_servers, queue.name, queue.name]
    with subprocess.Popen(
        [*command, *arguments], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True
    ) as program:
        done: list[str] = []
        assert program.stdin is not None
        assert program.stdout is not None
        lines = program.stdout

        def read() -> None:
            for line in lines:
                kind, _, rest = line.strip().partition(" ")
                if kind in {"record", "error"}:  # Java logs beside them
                    done.append(rest)

        reading = threading.Thread(target=read)
        reading.start()
        try:
            yield done
            program.stdin.write("stop\n")
            program.stdin.flush()
            program.wait(TIMEOUT)
        finally:
            program.kill()
            reading.join()


def work(queue: Queue, kind: Any, done: list[str], stopping: threading.Event) -> None:
    """Accept records until the test stops it; every tenth at its second delivery."""
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
                    again = record.delivery_count == 1 and int(record.value) % 10 == 0
                    member.acknowledge(record, AcknowledgeType.RELEASE if again else AcknowledgeType.ACCEPT)
                    if not again:
                        done.append(f"{record.value.decode()} {record.delivery_count}")
            assert not any(member.commit().values())
    finally:
        member.close()


def test_each_record_is_accepted_by_one_member_of_any_library(queue: Queue, java: list[str]) -> None:
    confluent = [str(python_of("confluent-registry")), "-I", str(HERE / "confluent_worker.py")]
    ours: list[list[str]] = [[], []]
    stopping = threading.Event()
    with ExitStack() as stack:
        foreign = [stack.enter_context(foreign_worker(command, queue)) for command in (java, confluent)]
        working = [
            threading.Thread(target=work, args=(queue, kind, done, stopping))
            for kind, done in zip((KafkaShareConsumer, AIOShareConsumer), ours, strict=True)
        ]
        for thread in working:
            thread.start()
        done = [*foreign, *ours]
        try:
            queue.wait_for_members(4)  # a JVM takes its time to start
            with KafkaProducer(bootstrap_servers=queue.cluster.bootstrap_servers) as producer:
                for value in range(RECORDS):  # one by one: the members of a partition take turns
                    producer.send(queue.name, b"%d" % value, partition=value % 3).get(TIMEOUT)
            deadline = time.monotonic() + TIMEOUT
            while sum(map(len, done)) < RECORDS:
                assert time.monotonic() < deadline, [len(one) for one in done]
                time.sleep(0.1)
        finally:
            stopping.set()
            for thread in working:
                thread.join()
    names = ["Java", "confluent-kafka", "threads", "asyncio"]
    print(f"accepted by {', '.join(f'{name} {len(one)}' for name, one in zip(names, done, strict=True))}")
    expected = Counter(f"{value} {2 if value % 10 == 0 else 1}" for value in range(RECORDS))
    assert Counter(line for one in done for line in one) == expected
    assert all(done), "each library has had records"
