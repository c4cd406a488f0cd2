"""The embedded broker and Apache Kafka 4.3 are asked the same, and answer the same, field by field.

Where they differ on purpose the difference is listed here with its reason, and nowhere else.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kafka.broker import Broker
from test.real.kafka_process import KafkaCluster
from test.real.releases import NEWEST

from . import scripts_admin, scripts_groups, scripts_records
from .sessions import Difference, Script, differences, run

ALLOWED = [
    Difference("*", "*", r"\.apiKeys\[\d+\]", "what the embedded broker does not have it does not advertise"),
    Difference("quorum", "*", r".*\.leaderEpoch", "Kafka's controller may have been elected more than once"),
]


# Delays that the embedded broker does without, and share groups on a single node.
QUICK = {
    "group.share.assignment.interval.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
}


@pytest.fixture(scope="module")
def real() -> Iterator[tuple[str, int]]:
    """A cluster of its own: scripts list everything that is there."""
    with KafkaCluster(NEWEST, properties=QUICK) as kafka:
        host, _, port = kafka.bootstrap_servers.partition(":")
        yield host, int(port)


@pytest.fixture(scope="module")
def ours(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    data: Path = tmp_path_factory.mktemp("broker") / "data"
    with Broker(as_version="4.3", data_dir=data, configs={"default.replication.factor": 1}) as broker:
        yield "127.0.0.1", broker.port()


@pytest.mark.breaks_invariant("leftovers", reason="the broker of the module opens its files when they are first used")
@pytest.mark.parametrize(
    "script",
    [*scripts_admin.SCRIPTS, *scripts_records.SCRIPTS, *scripts_groups.SCRIPTS],
    ids=lambda script: script.__name__,
)
def test_both_brokers_say_the_same(real: tuple[str, int], ours: tuple[str, int], script: Script) -> None:
    theirs, own = run(script, real), run(script, ours)
    assert theirs.keys() == own.keys()
    found = [
        f"{label}: {path}: Kafka {one!r}, embedded {other!r}"
        for label in theirs
        for path, one, other in differences(theirs[label], own[label])
        if not any(allowed.covers(script.__name__, label, path) for allowed in ALLOWED)
    ]
    assert not found, "\n".join(found)
