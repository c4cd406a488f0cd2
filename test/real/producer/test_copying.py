"""Consume, transform, produce against Apache Kafka, with the program killed in the middle: each record once."""

from __future__ import annotations

import threading
import uuid
from typing import TYPE_CHECKING

import pytest

from kafka import KafkaProducer
from test.copying import PARTITIONS, check_copy, copy_with_kills, copy_with_two, fill
from test.real.kafka_process import KafkaCluster

if TYPE_CHECKING:
    from typing_extensions import Self


@pytest.mark.timeout(1500)
@pytest.mark.parametrize(
    ("records", "kills", "after"), [(9_000, 2, (1, 2)), pytest.param(100_000, 12, (2, 8), marks=pytest.mark.soak)]
)
def test_a_copy_has_each_record_once_and_in_order(kafka, records, kills, after):
    name = uuid.uuid4().hex[:8]
    source = kafka.create_topic(f"source-{name}", PARTITIONS)
    target = kafka.create_topic(f"target-{name}", PARTITIONS)
    servers = kafka.bootstrap_servers
    fill(servers, source, records)
    assert copy_with_kills(servers, source, target, f"copiers-{name}", kills, after) == kills
    # Whatever the last of those that were killed left open is aborted by who comes next.
    with KafkaProducer(bootstrap_servers=servers, transactional_id=f"copiers-{name}-copier") as last:
        last.init_transactions()
    check_copy(servers, target, records)


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_two_programs_of_one_group_copy_each_record_once_and_in_order(kafka):
    name = uuid.uuid4().hex[:8]
    source = kafka.create_topic(f"source-{name}", PARTITIONS)
    target = kafka.create_topic(f"target-{name}", PARTITIONS)
    servers = kafka.bootstrap_servers
    fill(servers, source, 100_000)
    killed = copy_with_two(servers, source, target, f"copiers-{name}", 8, (2, 6))
    print(f"killed {killed} times")
    for each in ("one", "two"):
        with KafkaProducer(bootstrap_servers=servers, transactional_id=f"copiers-{name}-{each}") as last:
            last.init_transactions()
    check_copy(servers, target, 100_000)


class Bounces:
    """Kills one broker after the other, and starts it again, until the block ends."""

    def __init__(self, cluster: KafkaCluster) -> None:
        self.count = 0
        self._cluster = cluster
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="bounces")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stop.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                for node in self._cluster.nodes:
                    if self._stop.wait(3):
                        return
                    self._cluster.kill(node)
                    self._stop.wait(2)
                    self._cluster.start(node)
                    self.count += 1
        except BaseException as error:  # raised where the block ends
            self._error = error


@pytest.mark.soak
@pytest.mark.timeout(1500)
def test_a_copy_while_brokers_die_too(kafka_cluster):
    """Partitions' leaders, the group's coordinator and the transaction's: each of them dies in the middle of things."""
    name = uuid.uuid4().hex[:8]
    safe = {"min.insync.replicas": "2"}
    source = kafka_cluster.create_topic(f"source-{name}", PARTITIONS, replicas=3, configs=safe)
    target = kafka_cluster.create_topic(f"target-{name}", PARTITIONS, replicas=3, configs=safe)
    servers = kafka_cluster.bootstrap_servers
    fill(servers, source, 100_000)
    with Bounces(kafka_cluster) as bounces:
        assert copy_with_kills(servers, source, target, f"copiers-{name}", 12, (2, 8)) == 12
    print(f"{bounces.count} brokers were killed and started again")
    with KafkaProducer(bootstrap_servers=servers, transactional_id=f"copiers-{name}-copier") as last:
        last.init_transactions()
    check_copy(servers, target, 100_000)
