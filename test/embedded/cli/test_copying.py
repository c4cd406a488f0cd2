"""``purekafka topics copy --resume``: a copy that is killed, and one that continues, has each record once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.broker import NO_REPLY, Broker
from test import quick_start

from .shell import run

pytestmark = pytest.mark.slow

RECORDS = 12_000
DEADLINE = 120.0
BEGAN = int(time.time() * 1000) - 60_000


def copying(source: Broker, target: str, **environment: str) -> subprocess.Popen[bytes]:
    words = ["topics", "copy", "orders", "copies", "--create", "--resume", "nightly", "--to-context", target]
    return quick_start.Program(
        [sys.executable, "-m", "kafka", *words, "-b", source.bootstrap_servers],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, env={**os.environ, **environment},
    )  # fmt: skip


def fill(broker: Broker, first: int, number: int) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for at in range(first, first + number):
            producer.send("orders", b"%d" % at, key=b"%d" % at, partition=at % 3)


def values(broker: Broker, topic: str) -> list[tuple[int, int]]:
    return [(one.partition, int(one.value)) for one in broker.records(topic, committed=True)]


def test_a_copy_that_ends_before_its_first_transaction_says_so() -> None:
    with Broker(topics={"orders": 1, "copies": 1}) as broker, broker.intercept("InitProducerId", lambda _: NO_REPLY):
        line = "purekafka topics copy orders copies --resume nightly --timeout 3"
        outcome = run(f"{line} -b {broker.bootstrap_servers}")
    assert (outcome.code, outcome.out) == (124, "copies: 0 records copied\n"), outcome.err


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
                    time.sleep(0.02)  # each look decodes what is there
                process.send_signal(number)
                out, _ = process.communicate(timeout=60)
                if number is not signal.SIGKILL and (out or share == 0.2):  # the second may be ended before it begins
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


# Offsets of groups in a copy…


@pytest.fixture
def copied() -> Iterator[tuple[Broker, Broker]]:
    """A topic and its copy in another cluster, which has other offsets: other records, markers, a later beginning."""
    with Broker(topics={"orders": 1}) as source, Broker(topics={"copies": 1}) as target:
        assert run(f"purekafka contexts add target -b {target.bootstrap_servers} --replace").code == 0
        for number in range(60):  # four at a time, and each content twice at its time
            source.append("orders", b"%d" % (number // 2), timestamp_ms=BEGAN + number // 4)
        with KafkaAdminClient(bootstrap_servers=source.bootstrap_servers) as admin:
            admin.delete_records({TopicPartition("orders", 0): 5})
        for number in range(17):
            target.append("copies", b"older %d" % number, timestamp_ms=BEGAN - 1)
        line = f"purekafka topics copy orders copies --resume all --to-context target -b {source.bootstrap_servers}"
        done = run(line)
        assert "55 records copied" in done.out, done.err
        yield source, target


def left(broker: Broker, topic: str, group: str) -> list[bytes | None]:
    """Return what a group would read."""
    options = {"auto_offset_reset": "none", "isolation_level": "read_committed", "enable_auto_commit": False}
    with KafkaConsumer(options, bootstrap_servers=broker.bootstrap_servers, group_id=group) as consumer:
        tp = TopicPartition(topic, 0)
        consumer.assign([tp])
        found: list[bytes | None] = []
        end = consumer.end_offsets([tp])[tp]
        while consumer.position(tp) < end:
            found += [one.value for one in consumer.poll(timeout_ms=1000).get(tp, ())]
        return found


@pytest.mark.parametrize("offset", [5, 6, 7, 8, 31, 58, 59, 60])
def test_a_group_continues_in_the_copy_with_the_same_record(copied: tuple[Broker, Broker], offset: int) -> None:
    source, target = copied
    at = f"-b {source.bootstrap_servers}"
    with KafkaAdminClient(bootstrap_servers=source.bootstrap_servers) as admin:
        admin.alter_group_offsets("billing", {("orders", 0): OffsetAndMetadata(offset, "note", -1)})
    line = f"purekafka groups copy billing --to-context target --rename orders=copies {at}"
    planned = run(f"{line} --dry-run -f json")
    assert (planned.code, target.committed("billing", "copies")) == (0, None)
    assert f"Cluster {target.cluster.cluster_id}" in planned.err, "the plan names the cluster that is changed"
    done = run(f"{line} --yes")
    assert done.code == 0, done.err
    assert planned.json[0]["new_offset"] == target.committed("billing", "copies") != offset
    assert left(target, "copies", "billing") == left(source, "orders", "billing")
    with KafkaAdminClient(bootstrap_servers=target.bootstrap_servers) as admin:
        assert admin.list_group_offsets("billing")["billing"][TopicPartition("copies", 0)].metadata == "note"


def test_a_record_that_is_not_in_the_copy_is_named_and_none_is_left_out(copied: tuple[Broker, Broker]) -> None:
    source, target = copied
    at = f"-b {source.bootstrap_servers}"
    line = f"purekafka groups copy billing --to-context target --rename orders=copies --yes {at}"
    source.append("orders", b"new", timestamp_ms=BEGAN + 100)
    with KafkaAdminClient(bootstrap_servers=source.bootstrap_servers) as admin:
        admin.alter_group_offsets("billing", {("orders", 0): 60})
    done = run(line)
    assert (done.code, "orders-0: the record at offset 60 is not copied yet: the group continues at " in done.err) == (
        0,
        True,
    )
    assert "1 record copied" in run(f"purekafka topics copy orders copies --resume all --to-context target {at}").out
    assert left(target, "copies", "billing") == [b"new"]
    source.append("orders", b"lost", timestamp_ms=BEGAN + 50)
    with KafkaAdminClient(bootstrap_servers=source.bootstrap_servers) as admin:
        admin.alter_group_offsets("billing", {("orders", 0): 61})
    done = run(line)
    assert (done.code, "the record at offset 61 is not in 'copies'" in done.err) == (0, True)
    assert left(target, "copies", "billing") == [b"new"], "rather again than never"


def test_offsets_are_not_translated_by_times_of_arrival(copied: tuple[Broker, Broker]) -> None:
    source, target = copied
    at = f"-b {source.bootstrap_servers}"
    settings = "message.timestamp.type=LogAppendTime"
    assert run(f"purekafka topics create arrived --set {settings} -b {target.bootstrap_servers}").code == 0
    assert run(f"purekafka topics copy orders arrived --to-context target {at}").code == 0
    with KafkaAdminClient(bootstrap_servers=source.bootstrap_servers) as admin:
        admin.alter_group_offsets("billing", {("orders", 0): 9})
    done = run(f"purekafka groups copy billing --to-context target --rename orders=arrived --yes {at}")
    assert (done.code, "LogAppendTime" in done.err, target.committed("billing", "arrived")) == (1, True, None)
    done = run(f"purekafka groups copy billing --to-context target --yes {at}")
    assert (done.code, "orders-0, the copy of orders-0, does not exist" in done.err) == (1, True)
