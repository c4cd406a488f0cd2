"""The classes of the manual, used by hand: one thread, one client, no driver."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from kafka import KafkaClient
from kafka._runtime.network_thread import complete
from kafka.broker import NO_REPLY
from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.base import BaseCoordinator, GroupCoordinatorMetrics, HeartbeatTask
from kafka.coordinator.consumer import AutoCommitTask, ConsumerCoordinator, ConsumerCoordinatorMetrics
from kafka.coordinator.heartbeat import Heartbeat
from kafka.errors import KafkaError
from kafka.metrics import Metrics
from kafka.structs import OffsetAndMetadata, TopicPartition

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


pytestmark = pytest.mark.kafka_broker(topics={"t": 2})


@pytest.fixture
def client(broker):
    with KafkaClient(bootstrap_servers=broker.bootstrap_servers) as client:
        yield client


class Workers(BaseCoordinator):
    """A group that is not about topics."""

    def __init__(self, *args: Any, **configs: Any) -> None:
        super().__init__(*args, **configs)
        self.work: list[bytes] = []
        self.prepared = 0
        self.threads: set[int] = set()

    def protocol_type(self) -> str:
        return "workers"

    def group_protocols(self) -> list[tuple[str, Any]]:
        return [("share", b"strong"), ("other", "text")]

    def _on_join_prepare(self, generation: int, member_id: str) -> None:
        self.prepared += 1

    def _perform_assignment(self, leader_id: str, protocol: str, members: Any) -> dict[str, Any]:
        self.threads.add(threading.get_ident())
        assert protocol == "share"
        return {member.member_id: b"for " + bytes(member.metadata) for member in members}

    def _on_join_complete(self, generation: int, member_id: str, protocol: str, assignment: bytes) -> None:
        self.threads.add(threading.get_ident())
        self.work.append(assignment)


def test_a_group_of_one_s_own_kind(client):
    workers = Workers(client, Metrics(), group_id="w")
    assert workers.need_rejoin()
    assert workers.coordinator_unknown()
    workers.ensure_coordinator_known()
    assert not workers.coordinator_unknown()
    workers.ensure_active_group()
    assert workers.work == [b"for strong"]
    assert workers.threads == {threading.get_ident()}
    assert not workers.need_rejoin()
    first = workers.generation.generation_id
    workers.request_rejoin("the test wants it")
    client.core.loop.run_until(client.core.loop.spawn(client.core.loop.sleep(0)))
    workers.ensure_active_group()
    assert workers.prepared == 2
    assert workers.generation.generation_id == first + 1
    workers.coordinator_dead("the test says so")
    assert workers.coordinator_unknown()
    assert workers.ensure_coordinator_known(5000)
    workers.close()
    workers.close()
    assert not workers.generation.is_member


def test_waiting_has_an_end(client, broker):
    broker.fail("FindCoordinator", [15], times=1000)
    workers = Workers(client, group_id="w")
    assert not workers.ensure_coordinator_known(50)
    assert not workers.ensure_active_group(50)
    workers.close(timeout_ms=100)


def test_a_call_that_joins_a_look_up_has_its_own_timeout(client, broker):
    """It failed for all who waited with the deadline of the one who had begun it."""
    replies = []

    def lose_the_first(_exchange):
        replies.append(None)
        return NO_REPLY if len(replies) == 1 else None

    broker.intercept("FindCoordinator", lose_the_first)

    async def both():
        now = client.core.loop.time()
        first = client.core.loop.spawn(client.core.coordinator(0, "g", now + 0.3))
        await client.core.loop.sleep(0.05)
        assert await client.core.coordinator(0, "g", now + 30) == 1
        with pytest.raises(KafkaError):
            await first

    client.core.loop.run_until(client.core.loop.spawn(both()), client.core.loop.time() + 30)


def test_a_consumer_s_coordinator(client):
    metrics = Metrics()
    subscription = SubscriptionState()
    coordinator = ConsumerCoordinator(client, subscription, metrics, group_id="g", enable_auto_commit=False)
    assert coordinator.protocol_type() == "consumer"
    assert not coordinator.need_rejoin()
    subscription.subscribe(["t"])
    client.set_topics(["t"])
    assert [name for name, _ in coordinator.group_protocols()] == ["range", "cooperative-sticky", "roundrobin"]
    complete(coordinator.serve())
    coordinator.ensure_active_group()
    complete(coordinator.serve())
    assert subscription.assigned() == {T0, T1}
    coordinator.commit_offsets_sync({T0: OffsetAndMetadata(5, "sync")})
    seen: list[Any] = []
    future = coordinator.commit_offsets_async({T1: OffsetAndMetadata(6)}, lambda *args: seen.append(args))
    client.poll(future=future, timeout_ms=5000)
    complete(coordinator.serve())
    assert seen == [({T1: OffsetAndMetadata(6)}, future.value)]
    assert coordinator.fetch_committed_offsets([T0, T1]) == {
        T0: OffsetAndMetadata(5, "sync"),
        T1: OffsetAndMetadata(6),
    }
    coordinator.refresh_committed_offsets_if_needed()
    assert subscription.consumed()[T0].offset == 5
    found = metrics.snapshot()["consumer-coordinator-metrics"]
    assert found["assigned-partitions"] == 2
    assert found["commit-latency-avg"] > 0
    assert found["join-rate"] > 0
    assert found["last-heartbeat-seconds-ago"] >= 0
    coordinator.close()
    assert subscription.assigned() == set()


def test_tasks_and_sensors_have_the_manual_s_names(client):
    coordinator = ConsumerCoordinator(client, SubscriptionState(), group_id="g")
    task = AutoCommitTask(coordinator, 5.0)
    task.reschedule(at=1.0)
    assert task.due(client.core.loop.time())
    task.reschedule()
    assert not task.due(client.core.loop.time())
    beats = HeartbeatTask(coordinator)
    beats.reset()
    beats.disable()
    GroupCoordinatorMetrics(Heartbeat(), Metrics(), "consumer", tags={"a": "b"})
    ConsumerCoordinatorMetrics(Metrics(), "consumer", SubscriptionState())
    assert {"assignors", "partition_assignment_strategy"} & set(ConsumerCoordinator.DEFAULT_CONFIG)
    coordinator.close()


def test_an_idle_member_wakes_up_for_heartbeats_only(client):
    workers = Workers(client, group_id="w", heartbeat_interval_ms=100, session_timeout_ms=10000)
    workers.ensure_active_group()
    before = client.core.loop.turns
    client.core.loop.run_until(client.core.loop.spawn(client.core.loop.sleep(1.0)))
    # Ten heartbeats, each a timer, a send and a reply, and the passes that these queue.
    assert client.core.loop.turns - before <= 10 * 6
    workers.close()
