"""The programs of docs/share.rst do what the page says."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from kafka import KafkaConsumer, KafkaProducer, KafkaShareConsumer, TopicPartition
from kafka.broker import Broker
from test.embedded.docs.blocks import ROOT, Block, python_blocks, run, runs
from test.embedded.docs.shell_blocks import Shell

from .conftest import GROUP, MakeMember, configure

PAGE = "docs/share.rst"
JOBS = TopicPartition("jobs", 0)


@pytest.fixture
def guide(broker: Broker) -> dict[str, Any]:
    """What the page defines."""
    names: dict[str, Any] = {"__name__": "guide"}
    page = ROOT / PAGE
    assert run(page, names, broker) == len(python_blocks(page))
    return names


class Stop(BaseException):
    """Ends a program as Ctrl-C would."""


def test_the_worker_loop_repeats_and_rejects(broker: Broker, guide: dict[str, Any]) -> None:
    broker.append_many("jobs", ["good", "bad", "last"])
    seen: list[bytes] = []

    def handle(value: bytes) -> None:
        seen.append(value)
        if seen.count(b"bad") == 3 and b"last" in seen:
            raise Stop
        if value == b"bad":
            raise ValueError(value)

    with pytest.raises(Stop):
        guide["work"](broker.bootstrap_servers, handle)
    assert sorted(seen) == [b"bad", b"bad", b"bad", b"good", b"last"]
    assert broker.share_records(GROUP, "jobs")[1].state == "available"


def test_a_group_starts_at_the_beginning(broker: Broker, guide: dict[str, Any]) -> None:
    broker.append("jobs", "before")
    guide["start_at_the_beginning"](broker.bootstrap_servers, "others")
    with KafkaShareConsumer("jobs", bootstrap_servers=broker.bootstrap_servers, group_id="others") as consumer:
        assert [row.value for row in consumer.poll(30_000)[JOBS]] == [b"before"]


def test_a_transfer_says_what_comes_again(
    broker: Broker, guide: dict[str, Any], member: MakeMember, capsys: pytest.CaptureFixture[str]
) -> None:
    broker.append_many("jobs", ["1", "2"])
    one = member()

    def book(value: bytes) -> bool:
        return value == b"1"

    while not broker.share_records(GROUP, "jobs"):
        guide["transfer"](one, book)
    assert {offset: record.delivery_count for offset, record in broker.share_records(GROUP, "jobs").items()} == {1: 1}

    def slow(value: bytes) -> bool:
        broker.expire_share_locks(GROUP, "jobs")
        return True

    guide["transfer"](one, slow)
    assert "will be delivered again" in capsys.readouterr().out


def test_a_poison_record_is_parked_at_its_fourth_delivery(
    broker: Broker, guide: dict[str, Any], member: MakeMember
) -> None:
    broker.create_topic("jobs.dead", 1)
    broker.append("jobs", "poison", key="k")
    one, counts = member(), []

    def handle(value: bytes) -> None:
        raise ValueError(value)

    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        for record in one:
            counts.append(record.delivery_count)
            guide["handle_or_park"](one, producer, record, handle)
            if len(counts) == 4:
                break
    assert counts == [1, 2, 3, 4]
    assert one.commit() == {JOBS: None}
    assert broker.share_records(GROUP, "jobs") == {}
    with KafkaConsumer(
        "jobs.dead", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest", group_id=None
    ) as dead:
        parked = next(dead)
    assert (parked.key, parked.value) == (b"k", b"poison")


def test_a_long_job_keeps_its_record(broker: Broker, guide: dict[str, Any], member: MakeMember) -> None:
    broker.append("jobs", "film")
    one, two = member(), member()
    record = next(iter(one))

    def renewals() -> int:
        return sum(seen.name == "ShareAcknowledge" and seen.request.is_renew_ack for seen in tuple(broker.requests))

    def handle(value: bytes) -> None:
        """Take two locks and more, on the broker's clock."""
        for count in range(3):
            broker.clock.advance(20)
            deadline = time.monotonic() + 30
            while renewals() <= count:
                assert time.monotonic() < deadline
                time.sleep(0.01)
        assert two.poll(300) == {}

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(type(one), "acquisition_lock_timeout_ms", lambda _self: 100)  # 50 ms between renewals
        guide["long_job"](one, record, handle)
    assert one.commit() == {JOBS: None}
    assert broker.share_records(GROUP, "jobs") == {}


def test_the_urgent_topic_comes_first(broker: Broker, guide: dict[str, Any]) -> None:
    configure(broker, share_auto_offset_reset="earliest")
    broker.create_topic("jobs.urgent", 1)
    broker.append_many("jobs", ["o1", "o2", "o3", "o4"])
    seen: list[bytes] = []

    def handle(value: bytes) -> None:
        seen.append(value)
        if len(seen) == 2:
            broker.append("jobs.urgent", "u1")

    guide["work_by_priority"](broker.bootstrap_servers, handle, lambda: len(seen) == 5)
    assert sorted(seen) == [b"o1", b"o2", b"o3", b"o4", b"u1"]
    assert seen.index(b"u1") < 4, seen


@pytest.mark.skipif(os.name == "nt", reason="bash and terminals")
@runs((PAGE, "purekafka groups describe"))
def test_the_commands_of_the_page(broker: Broker, shown: list[Block], tmp_path: Path) -> None:
    broker.append_many("jobs", ["a", "b"])
    with KafkaShareConsumer("jobs", bootstrap_servers=broker.bootstrap_servers, group_id=GROUP) as consumer:
        consumer.poll(30_000)
    (block,) = shown
    assert Shell(tmp_path, broker.bootstrap_servers).run(block) == 4
