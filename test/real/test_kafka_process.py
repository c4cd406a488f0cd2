"""The library that runs Kafka for the other tests does what they rely on."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from test.scratch import Scratch

from . import ports, wire
from .conftest import StartKafka
from .kafka_process import KafkaCluster

DEADLINE = 30.0
REPO = Path(__file__).parents[2]


def wait_until(condition: object, what: str) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < deadline, f"no {what} in {DEADLINE} s"
        time.sleep(0.02)


def exists(pid: int) -> bool:
    """True while a process runs; one that is dead but not yet reaped counts as gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_node_answers_and_creates_topics(kafka: KafkaCluster) -> None:
    topic = kafka.create_topic("process-topic", partitions=3, configs={"retention.ms": "12345"})
    seen = wire.metadata(kafka.address(1), topic)
    assert seen.leaders == {topic: [1, 1, 1]}
    host, port = kafka.bootstrap_servers.split(":")
    assert seen.brokers == {1: (host, int(port))}


def test_each_node_of_a_cluster_knows_the_others(kafka_cluster: KafkaCluster) -> None:
    topic = kafka_cluster.create_topic("spread", partitions=3, replicas=3)
    for node in kafka_cluster.nodes:
        seen = wire.metadata(kafka_cluster.address(node), topic)
        assert set(seen.brokers) == {1, 2, 3}
        assert sorted(seen.leaders[topic]) == [1, 2, 3]
    assert len(kafka_cluster.bootstrap_servers.split(",")) == 3


def test_a_paused_node_accepts_but_does_not_answer(kafka_cluster: KafkaCluster) -> None:
    kafka_cluster.pause(1)
    with pytest.raises(TimeoutError):
        wire.metadata(kafka_cluster.address(1), timeout=0.3)
    kafka_cluster.resume(1)
    kafka_cluster.wait_ready()


def test_a_broker_that_cannot_start_shows_its_log(kafka_at: StartKafka) -> None:
    with pytest.raises(Exception, match=r"(?s)ended with 1 before.*num\.io\.threads"):
        kafka_at(properties={"num.io.threads": "none"})


def test_properties_reach_the_broker_and_close_leaves_no_process_no_file_no_port(kafka_at: StartKafka) -> None:
    cluster = kafka_at(properties={"num.partitions": "7"}, node_properties={1: {"broker.rack": "r1"}})
    assert "num.partitions = 7" in cluster.log_text(1)
    assert "broker.rack = r1" in cluster.log_text(1)
    pid, root, address = cluster.pid(1), cluster.root, cluster.address(1)
    cluster.close()
    assert not exists(pid)
    assert not root.exists()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, 1.0)


CHILD = """
import sys, threading
sys.path.insert(0, {tests!r})
from real.kafka_process import KafkaCluster
from real import zookeeper
cluster = KafkaCluster({version!r})
# From a thread that ends before we do: that alone must not end the broker.
opener = threading.Thread(target=cluster.open)
opener.start(); opener.join()
assert cluster.running() == [1]
print(cluster.pid(1), cluster.root, flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the parent-death signal is Linux's")
def test_nothing_survives_a_test_run_that_is_killed(kafka_version: str) -> None:
    code = CHILD.format(tests=str(REPO / "test"), version=kafka_version)
    run = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert run.stdin is not None
    assert run.stdout is not None
    pid_text, root = run.stdout.readline().split()
    broker = int(pid_text)
    assert exists(broker)
    os.kill(run.pid, signal.SIGKILL)
    run.communicate()
    wait_until(lambda: not exists(broker), "end of the broker")
    # Only its directory is left; the next run that finds it unlocked and old removes it.
    past = time.time() - 3600
    os.utime(root, (past, past))
    with closing(Scratch()):
        assert not Path(root).exists()


def test_reserved_ports_are_free_and_different() -> None:
    taken = [ports.reserve() for _ in range(20)]
    try:
        assert len(set(taken)) == 20
        for port in taken:
            with socket.create_server((ports.HOST, port)):
                pass
    finally:
        for port in taken:
            ports.release(port)


@pytest.mark.matrix
def test_every_release_starts_and_answers(kafka_matrix: KafkaCluster) -> None:
    topic = kafka_matrix.create_topic("matrix-start", partitions=2)
    assert wire.metadata(kafka_matrix.address(1), topic).leaders == {topic: [1, 1]}


@pytest.mark.matrix
def test_every_release_comes_back_after_a_crash(kafka_matrix: KafkaCluster) -> None:
    topic = kafka_matrix.create_topic("matrix-crash")
    kafka_matrix.kill(1)
    kafka_matrix.start(1)
    kafka_matrix.wait_topic(topic)
