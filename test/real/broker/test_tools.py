"""Kafka's own tools against the embedded broker and against Kafka: the same output and exit code, each invocation."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from kafka.broker import Broker
from kafka.protocol.admin import ListPartitionReassignmentsRequest
from kafka.protocol.transaction import ListTransactionsRequest
from test.real.java_tools import Ended, JavaTools
from test.real.kafka_process import KafkaCluster
from test.real.releases import NEWEST

from .sessions import Transcript, wait_for_changes
from .tool_invocations import FILES, STEPS, Step, normalised, words_of

#: It takes minutes of a processor; test_differential.py asks for the same with raw requests in each run.
pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

NODES = 2
#: Options in which the two clusters would differ: delays, and what a small cluster cannot have.
PROPERTIES = {
    "group.consumer.assignment.interval.ms": "0",
    "group.initial.rebalance.delay.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
}


class Barrier:
    """Waits until all nodes know of all changes so far: Kafka's brokers learn of them in order, a little later.

    And until no partition is moving to other replicas and no transaction writes its markers, which Kafka does in the
    background.
    """

    def __init__(self, addresses: list[tuple[str, int]], stack: ExitStack) -> None:
        self.nodes = [Transcript(address) for address in addresses]
        for node in self.nodes:
            stack.callback(node.close)

    def wait(self) -> None:
        first = self.nodes[0]
        first.until(ListPartitionReassignmentsRequest[0](topics=None), lambda reply: not reply.topics)
        ending = ListTransactionsRequest[0](state_filters=["PrepareCommit", "PrepareAbort"], producer_id_filters=[])
        for node in self.nodes:
            node.until(ending, lambda reply: not reply.transaction_states)
        wait_for_changes(self.nodes)


def run_all(tools: JavaTools, addresses: list[tuple[str, int]], log: Callable[[], Path], files: Path) -> list[Ended]:
    """Run all invocations against one cluster."""
    servers = [f"{host}:{port}" for host, port in addresses]
    places = {"server": ",".join(servers), "files": str(files)}
    found = []
    with ExitStack() as stack:
        barrier = Barrier(addresses, stack)
        for step in STEPS:
            if any("{log}" in word for word in step.words):
                places["log"] = str(log())
            found.append(tools.run(step.tool, *words_of(step, places), text=step.text))
            barrier.wait()
    return found


@pytest.fixture(scope="module")
def outcomes(java_tools: JavaTools, tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Ended, Ended]]:
    """What each invocation came to with Kafka and with the embedded broker."""
    files = tmp_path_factory.mktemp("files")
    for name, text in FILES.items():
        (files / name).write_text(text, encoding="utf-8")
    data = tmp_path_factory.mktemp("embedded") / "data"
    segment = "00000000000000000000.log"
    # The broker stays: clients that tools have left open would look for it.
    with Broker(nodes=NODES, as_version="4.3", data_dir=data, seed=1) as broker:
        addresses = [("127.0.0.1", broker.port(node + 1)) for node in range(NODES)]
        embedded = run_all(java_tools, addresses, lambda: _segment_of(broker, "dumped"), files)
        with KafkaCluster(NEWEST, nodes=NODES, properties=PROPERTIES) as kafka:
            addresses = [kafka.address(node) for node in kafka.nodes]
            log = kafka.root / "node-1" / "data" / "dumped-0" / segment
            real = run_all(java_tools, addresses, lambda: log, files)
    return list(zip(real, embedded, strict=True))


def _segment_of(broker: Broker, topic: str) -> Path:
    """The first segment of a topic's first partition."""
    path: Path = broker.run(lambda cluster: cluster.partition(topic, 0).log.segments[0].path)
    return path


@pytest.mark.parametrize("number", range(len(STEPS)), ids=lambda number: str(STEPS[number])[:100])
def test_a_tool_says_the_same_of_both_brokers(outcomes: list[tuple[Ended, Ended]], number: int) -> None:
    step: Step = STEPS[number]
    real, embedded = outcomes[number]
    assert embedded.code == real.code, f"{embedded.out}\n{embedded.err}\n--- Kafka ---\n{real.out}\n{real.err}"
    assert normalised(step, embedded.out) == normalised(step, real.out)
    assert normalised(step, embedded.err) == normalised(step, real.err)
