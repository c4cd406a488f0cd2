"""confluent-kafka is told of an error that a test injects what it is told where Kafka sends that error."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kafka.broker import Broker
from test.real.kafka_process import KafkaCluster

from .peer_venvs import python_of

if TYPE_CHECKING:
    from typing_extensions import Self

JUDGE = Path(__file__).with_name("judge_faults.py")


class Judge:
    """The program, with a cluster to talk to."""

    def __init__(self, servers: str) -> None:
        command = [str(python_of("confluent-kafka")), "-I", str(JUDGE), servers]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._process.communicate(timeout=30)

    def told(self, command: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(topics=["events"]) as running:
        running.append_many("events", ["a", "b", "c"])
        yield running


@pytest.fixture(scope="module")
def judge(broker: Broker) -> Iterator[Judge]:
    with Judge(broker.bootstrap_servers) as running:
        yield running


@pytest.mark.parametrize(
    ("api", "code", "command", "told"),
    [
        # The application is told, at the partition or the topic that the error is about.
        ("Fetch", 1, "consume events 3", "_AUTO_OFFSET_RESET"),
        ("Fetch", 29, "consume events 3", "TOPIC_AUTHORIZATION_FAILED"),
        ("Produce", 29, "produce events", "TOPIC_AUTHORIZATION_FAILED"),
        ("Produce", 10, "produce events", "MSG_SIZE_TOO_LARGE"),
        ("Metadata", 29, "list events", "TOPIC_AUTHORIZATION_FAILED 1 brokers"),
        ("Metadata", 3, "list events", "UNKNOWN_TOPIC_OR_PART 1 brokers"),
        ("OffsetCommit", 29, "commit events", "TOPIC_AUTHORIZATION_FAILED"),
        ("OffsetFetch", 29, "committed events", "TOPIC_AUTHORIZATION_FAILED"),
        ("OffsetFetch", 30, "committed events", "GROUP_AUTHORIZATION_FAILED"),
        ("OffsetFetch", 16, "committed events", "NOT_COORDINATOR"),
        ("Fetch", 76, "consume events 3", "UNSUPPORTED_COMPRESSION_TYPE"),
        # The client asks again, or somewhere else, and succeeds.
        *(("Fetch", code, "consume events 3", "ok") for code in (3, 5, 6, 9, 74, 75)),
        *(("Produce", code, "produce events", "ok") for code in (3, 5, 6, 7, 19)),
        *(("OffsetCommit", code, "commit events", "ok") for code in (14, 16)),
        *(("OffsetFetch", code, "committed events", "ok") for code in (14, 88)),
        ("ListOffsets", 29, "end events", "TOPIC_AUTHORIZATION_FAILED"),
        ("FindCoordinator", 15, "committed events", "ok"),
    ],
)
def test_a_client_reacts_to_an_injected_error(
    broker: Broker, judge: Judge, api: str, code: int, command: str, told: str
) -> None:
    # The client asks for metadata of all topics before it asks for that of one, and for both ends of a partition.
    with broker.fail(api, code, times=100 if api in {"Metadata", "ListOffsets"} else 1) as order:
        assert judge.told(command) == told
        assert order.used


def test_an_offset_out_of_range_is_the_same_on_kafka(broker: Broker, judge: Judge, kafka: KafkaCluster) -> None:
    broker.fail("Fetch", "OFFSET_OUT_OF_RANGE")
    injected = judge.told("consume events 3")
    with Judge(kafka.bootstrap_servers) as there:
        assert there.told("produce injected-errors") == "ok"
        assert there.told("seek injected-errors 0") == "ok"
        assert there.told("seek injected-errors 1000") == injected == judge.told("seek events 1000")
