"""``purekafka topics copy --resume``: a copy that is killed, and one that continues, has each record once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.broker import Broker

from .shell import run

RECORDS = 20_000
DEADLINE = 120.0


def copying(source: Broker, target: str, **environment: str) -> subprocess.Popen[bytes]:
    words = ["topics", "copy", "orders", "copies", "--create", "--resume", "nightly", "--to-context", target]
    return subprocess.Popen(
        [sys.executable, "-m", "kafka", *words, "-b", source.bootstrap_servers],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **environment},
    )  # fmt: skip


def fill(broker: Broker, first: int, number: int) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for at in range(first, first + number):
            producer.send("orders", b"%d" % at, key=b"%d" % at, partition=at % 3)


def values(broker: Broker, topic: str) -> list[tuple[int, int]]:
    return [(one.partition, int(one.value)) for one in broker.records(topic, committed=True)]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_copy_that_is_ended_continues_without_loss_and_without_a_record_twice(number: signal.Signals) -> None:
    with Broker(topics={"orders": 3}) as source, Broker(topics={"copies": 3}) as target:
        fill(source, 0, RECORDS)
        assert run(f"purekafka contexts add target -b {target.bootstrap_servers}").code == 0
        for share in (0.2, 0.5):
            with copying(source, "target") as process:
                deadline = time.monotonic() + DEADLINE
                while len(values(target, "copies")) < share * RECORDS:
                    assert process.poll() is None or process.returncode == 0
                    assert time.monotonic() < deadline
                    if process.poll() == 0:  # it was faster than the signal
                        break
                process.send_signal(number)
                out, _ = process.communicate(timeout=60)
                if number is not signal.SIGKILL:
                    said = int(out.split()[1].replace(b",", b""))
                    assert said <= len(values(target, "copies"))
        line = "purekafka topics copy orders copies --resume nightly --to-context target"
        done = run(f"{line} -b {source.bootstrap_servers}")
        assert done.code == 0, done.err
        assert sorted(values(target, "copies")) == sorted(values(source, "orders"))
        fill(source, RECORDS, 30)
        again = run(f"{line} -b {source.bootstrap_servers}")
        assert "30 records copied" in again.out
        assert sorted(values(target, "copies")) == sorted(values(source, "orders"))
        with KafkaAdminClient(bootstrap_servers=target.bootstrap_servers) as admin:
            stored = admin.list_group_offsets("purekafka-copy-nightly")["purekafka-copy-nightly"]
        assert sum(one.offset for one in stored.values()) == RECORDS + 30


def test_records_that_were_deleted_before_they_were_copied_are_reported() -> None:
    with Broker(topics={"orders": 1}) as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        line = f"purekafka topics copy orders copies --create --resume daily -b {broker.bootstrap_servers}"
        for number in range(4):
            broker.append("orders", b"%d" % number, partition=0)
        assert "4 records copied" in run(line).out
        for number in range(4, 10):
            broker.append("orders", b"%d" % number, partition=0)
        admin.delete_records({TopicPartition("orders", 0): 7})
        found = run(line)
        assert "orders-0: offsets 4 to 6 were deleted before they were copied" in found.err
        assert "3 records copied" in found.out
        assert [value for _, value in values(broker, "copies")] == [0, 1, 2, 3, 7, 8, 9]


def test_a_copy_that_keeps_its_place_needs_as_many_partitions() -> None:
    with Broker(topics={"orders": 3, "copies": 1}) as broker:
        words = f"topics copy orders copies --repartition --resume x -b {broker.bootstrap_servers}"
        found = run(f"purekafka {words}")
        assert (found.code, found.out) == (1, "")
        assert "needs at least 3 partitions" in found.err
