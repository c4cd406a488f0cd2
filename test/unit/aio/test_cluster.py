"""`Cluster`: connections, topics and leaders in step with the cluster, whatever goes away meanwhile."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

import pytest

from kafka.aio import Cluster
from kafka.aio.cluster import BrokerEntry, MetadataEntries, PartitionEntry, TopicEntry
from kafka.errors import (
    AuthenticationError,
    IllegalStateError,
    KafkaConnectionError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    NoBrokersError,
    RequestTimedOutError,
)
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.testing import SILENCE, MemoryNetwork, ScriptedBroker
from test.unit.aio.virtual import live_in, run

NO_LEADER = -1


class World:
    """Brokers b0, b1, b2 with the ids 0 to 2, and topics with the leaders of their partitions."""

    def __init__(self, count: int = 3) -> None:
        self.network = MemoryNetwork()
        self.brokers = [ScriptedBroker(self.network, f"b{number}") for number in range(count)]
        self.listed = set(range(count))
        self.topics: dict[str, list[int]] = {"events": [0, 1, 2], "orders": [1]}
        self.errors: dict[str, int] = {}
        self.before_0_11 = False
        for broker in self.brokers:
            broker.on("Metadata", self.metadata)

    def metadata(self, request, _session):
        reply = MetadataResponse
        names = [topic.name for topic in request.topics or ()] or list(self.topics)
        return {
            "brokers": [
                reply.MetadataResponseBroker(node_id=number, host=f"b{number}", port=9092)
                for number in sorted(self.listed)
            ],
            "controller_id": 0,
            "topics": [
                reply.MetadataResponseTopic(
                    error_code=self.errors.get(name, 0 if name in self.topics else 3),
                    name=name,
                    partitions=[
                        reply.MetadataResponsePartition(
                            error_code=5 if leader == NO_LEADER else 0, partition_index=index, leader_id=leader
                        )
                        for index, leader in enumerate(self.topics.get(name, ()))
                    ],
                )
                for name in names
            ],
        }

    def cluster(self, hosts=("b0",), **options):
        return live_in(self.network, Cluster(list(hosts), **options))

    def run(self, use, **options):
        async def main():
            cluster = self.cluster(**options)
            await cluster.start()
            try:
                return await use(cluster)
            finally:
                await cluster.stop()

        result = run(self.network, main())
        assert not self.network.open_sockets
        return result


@pytest.fixture
def world():
    return World()


def test_start_connects_to_every_broker_and_learns_every_leader(world):
    async def use(cluster):
        assert sorted(cluster) == [0, 1, 2]
        assert 1 in cluster
        assert 7 not in cluster
        assert len(cluster) == 3
        assert cluster.conns[1] is cluster[1]
        assert (cluster[2].host, cluster[2].port, cluster[2].closing) == ("b2", 9092, False)
        assert cluster.topics == {"events": [0, 1, 2], "orders": [0]}
        assert cluster.leaders == {"events": {0: 0, 1: 1, 2: 2}, "orders": {0: 1}}
        assert cluster.get_leader("events", 2) == 2
        assert len(world.network.open_sockets) == 3, "the connection to the bootstrap host is closed"
        with pytest.raises(KeyError, match="no leader of partition 3 of topic 'events' is known"):
            cluster.get_leader("events", 3)
        with pytest.raises(KeyError):
            cluster.get_leader("nothing", 0)
        assert "nothing" not in cluster.leaders
        response = await cluster[1].send(MetadataRequest(topics=None))
        assert len(response.brokers) == 3

    world.run(use)


def test_bootstrap_hosts_are_tried_in_order(world):
    world.brokers[1].on("Metadata", lambda *_: SILENCE)
    world.network.names["unknown"] = []

    async def use(cluster):
        assert cluster.bootstrap_hosts == ["nobody:1", "unknown", "b1:9092", "b2"]
        assert cluster.topics

    world.run(use, hosts=["nobody:1", "unknown", "b1:9092", "b2"], request_timeout_ms=500)
    assert world.brokers[1].asked("Metadata")
    assert world.brokers[2].asked("Metadata")


def test_no_host_answers(world):
    for broker in world.brokers:
        broker.stop()

    async def main():
        cluster = world.cluster(["b0", "b1:9092"])
        with pytest.raises(NoBrokersError, match="No bootstrap host answered") as caught:
            await cluster.start()
        assert [address for address, _ in caught.value.attempts] == ["b0:9092", "b1:9092"]
        for broker in world.brokers:
            broker.start()
        await cluster.start()
        cluster.stop()

    run(world.network, main())
    assert not world.network.open_sockets


def test_a_wrong_password_is_raised_at_once(world):
    for broker in world.brokers:
        broker.on("SaslHandshake", {"mechanisms": ["PLAIN"]})
        broker.on("SaslAuthenticate", {"error_code": 58, "error_message": "wrong"})

    async def main():
        began = world.network.clock.monotonic()
        cluster = world.cluster(
            ["b0", "b1"], security_protocol="SASL_PLAINTEXT", sasl_plain_username="u", sasl_plain_password="p"
        )
        with pytest.raises(AuthenticationError):
            await cluster.start()
        assert world.network.clock.monotonic() - began < 1

    run(world.network, main())
    assert not world.network.open_sockets


def test_heal_follows_a_broker_that_leaves_and_one_that_comes(world):
    async def use(cluster):
        gone = cluster[2]
        world.brokers[2].stop()
        world.listed = {0, 1}
        world.topics["events"] = [0, 1, 0]
        await asyncio.sleep(0.1)
        assert gone.closing
        assert 2 in cluster, "until heal() is called"
        await cluster.heal()
        assert sorted(cluster) == [0, 1]
        assert cluster.leaders["events"] == {0: 0, 1: 1, 2: 0}
        with pytest.raises(KafkaConnectionError, match="was closed"):
            await gone.send(MetadataRequest(topics=None))
        with pytest.raises(KafkaConnectionError):
            await gone.connect()
        world.brokers[2].start()
        world.listed = {0, 1, 2}
        world.topics["events"] = [0, 1, 2]
        await cluster.heal()
        assert cluster[2] is not gone
        assert cluster.get_leader("events", 2) == 2
        await cluster[2].connect()

    world.run(use)


def test_a_connection_that_was_lost_is_replaced(world):
    async def use(cluster):
        before = cluster[1]
        for session in world.brokers[1].sessions:
            session.sock.close()
        await asyncio.sleep(0.1)
        assert before.closing
        await cluster.heal()
        assert not cluster[1].closing
        assert cluster[1] is not before

    world.run(use)


def test_a_broker_that_moved_is_connected_to_at_its_new_address(world):
    async def use(cluster):
        old = cluster[1]
        waiting = old.send(MetadataRequest(topics=[{"name": "slow"}]))
        brokers = [BrokerEntry(0, "b0", 9092), BrokerEntry(1, "b2", 9092)]
        assert await cluster.process_brokers(brokers) == set()
        assert cluster[1].host == "b2"
        assert old.closing
        assert sorted(cluster) == [0, 1]
        with pytest.raises(KafkaConnectionError, match="was aborted"):
            await waiting

    world.brokers[1].on("Metadata", lambda request, _: SILENCE if request.topics else world.metadata(request, _))
    world.run(use)


def test_heal_waits_longer_and_longer_for_a_broker_that_stays_away_and_then_says_what_is_missing(world, caplog):
    async def use(cluster):
        world.brokers[2].stop()
        await asyncio.sleep(0.1)
        before = len(world.brokers[0].asked("Metadata")) + len(world.brokers[1].asked("Metadata"))
        began = world.network.clock.monotonic()
        caplog.clear()
        with pytest.raises(KafkaTimeoutError, match="broker 2 cannot be reached, topic 'events' lacks a leader"):
            await cluster.heal(timeout_ms=20_000)
        assert 15 < world.network.clock.monotonic() - began <= 20
        asked = len(world.brokers[0].asked("Metadata")) + len(world.brokers[1].asked("Metadata")) - before
        assert asked < 40, "there is a pause between two attempts"
        assert len(caplog.records) < 10
        assert sorted(cluster) == [0, 1]
        assert cluster.leaders["events"] == {0: 0, 1: 1}
        assert (await cluster[0].send(MetadataRequest(topics=None))).brokers

    world.run(use)


def test_heal_ends_as_soon_as_the_broker_is_back(world):
    async def use(cluster):
        world.brokers[2].stop()
        await asyncio.sleep(0.1)
        healing = asyncio.ensure_future(cluster.heal())
        await asyncio.sleep(3)
        assert not healing.done()
        world.brokers[2].start()
        began = world.network.clock.monotonic()
        await healing
        assert world.network.clock.monotonic() - began < 2
        assert sorted(cluster) == [0, 1, 2]

    world.run(use)


def test_later_partial_answers_leave_other_topics_as_they_are(world):
    async def use(cluster):
        assert (
            cluster.process_topics([TopicEntry(0, "orders", [PartitionEntry(0, 0, 2), PartitionEntry(0, 1, 0)])])
            == set()
        )
        assert cluster.topics == {"events": [0, 1, 2], "orders": [0, 1]}
        assert cluster.leaders["orders"] == {0: 2, 1: 0}
        assert cluster.leaders["events"] == {0: 0, 1: 1, 2: 2}

    world.run(use)


def test_what_lacks_data_or_a_leader_is_missing_and_what_is_refused_is_left_out(world):
    async def use(cluster):
        topics = [
            TopicEntry(3, "unknown"),
            TopicEntry(29, "forbidden"),
            TopicEntry(9, "without-data"),
            TopicEntry(5, "new"),
            TopicEntry(0, "leaderless", [PartitionEntry(5, 0, -1), PartitionEntry(0, 1, 1)]),
            TopicEntry(0, "led-elsewhere", [PartitionEntry(0, 0, 77)]),
            TopicEntry(0, "replica-away", [PartitionEntry(9, 0, 1)]),
            TopicEntry(3, "orders"),
        ]
        missing = cluster.process_topics(response_topics=topics)  # as in the manual
        assert missing == {"without-data", "new", "leaderless", "led-elsewhere"}
        assert cluster.leaders["leaderless"] == {1: 1}
        assert cluster.leaders["replica-away"] == {0: 1}
        assert not {"unknown", "forbidden", "orders"} & cluster.topics.keys()

    world.run(use)


def test_a_topic_that_was_deleted_is_gone_after_a_heal(world):
    async def use(cluster):
        del world.topics["orders"]
        await cluster.heal()
        assert list(cluster.topics) == ["events"]
        assert list(cluster.leaders) == ["events"]

    world.run(use)


def test_start_waits_for_a_leader(world):
    world.topics["events"] = [0, NO_LEADER, 2]

    async def main():
        cluster = world.cluster()
        starting = asyncio.ensure_future(cluster.start())
        await asyncio.sleep(2)
        assert not starting.done()
        world.topics["events"] = [0, 1, 2]
        await starting
        assert cluster.leaders["events"] == {0: 0, 1: 1, 2: 2}
        cluster.stop()

    run(world.network, main())


def test_get_metadata_asks_one_connection_after_the_other(world):
    async def use(cluster):
        entries = await cluster.get_metadata(["orders", "nothing"])
        assert entries == MetadataEntries(
            [BrokerEntry(number, f"b{number}", 9092) for number in range(3)],
            [TopicEntry(3, "nothing", []), TopicEntry(0, "orders", [PartitionEntry(0, 0, 1, [], [])])],
        )
        request = world.brokers[0].asked("Metadata")[-1]
        assert request.allow_auto_topic_creation is False
        world.brokers[0].on("Metadata", lambda *_: SILENCE)
        world.brokers[1].stop()
        assert (await cluster.get_metadata()).topics
        world.brokers[2].on("Metadata", lambda *_: SILENCE)
        with pytest.raises(NoBrokersError, match="No connection of the cluster answered") as caught:
            await cluster.get_metadata()
        assert len(caught.value.attempts) >= 1

    world.run(use, request_timeout_ms=1000)


@pytest.mark.parametrize("newest", [0, 1, 3])
def test_an_old_broker_is_asked_for_all_topics_as_a_name_might_create_one(world, newest):
    for broker in world.brokers:
        broker.ranges[3] = (0, newest)

    async def use(cluster):
        entries = await cluster.get_metadata(["orders", "nothing"])
        assert [topic.name for topic in entries.topics] == ["orders", "nothing"]
        assert entries.topics[1].error_code == 3
        assert not any(request.topics for request in world.brokers[0].asked("Metadata"))

    world.run(use)


def test_heal_takes_a_response_of_any_shape(world):
    kiel = SimpleNamespace(
        brokers=[
            SimpleNamespace(broker_id=0, host="b0", port=9092),
            SimpleNamespace(broker_id=1, host="b1", port=9092),
        ],
        topics=[
            SimpleNamespace(
                error_code=0,
                name="mine",
                partitions=[SimpleNamespace(error_code=0, partition_id=0, leader=1, replicas=[1], isrs=[1])],
            )
        ],
    )

    async def use(cluster):
        await cluster.heal(kiel)
        assert sorted(cluster) == [0, 1]
        assert cluster.get_leader("mine", 0) == 1
        await cluster.heal(await cluster[0].send(MetadataRequest(topics=None)))
        assert sorted(cluster) == [0, 1, 2]
        with pytest.raises(TypeError, match="is not part of a metadata response"):
            await cluster.heal(SimpleNamespace(brokers=[object()], topics=[]))

    world.run(use)


def test_requests_have_a_time_limit(world):
    async def use(cluster):
        world.brokers[0].on("Metadata", lambda *_: SILENCE)
        with pytest.raises((RequestTimedOutError, KafkaConnectionError)):
            await cluster[0].send(MetadataRequest(topics=None))

    world.run(use, request_timeout_ms=1000)


def test_stop_is_a_plain_method_and_lets_requests_under_way_be_answered(world):
    held = []

    async def main():
        cluster = world.cluster()
        await cluster.start()
        world.brokers[0].on("Metadata", lambda request, session: held.append(session) or SILENCE)
        waiting = cluster[0].send(MetadataRequest(topics=None))
        await asyncio.sleep(0.1)
        connection = cluster[0]
        stopped = cluster.stop()
        assert connection.closing
        with pytest.raises(KafkaConnectionError):
            await connection.send(MetadataRequest(topics=None))
        with pytest.raises(Exception, match="was stopped"):
            await cluster.get_metadata()
        assert len(world.network.open_sockets) == 1
        session = held[0]
        header, request = session.unanswered.pop()
        session.reply(header, request, world.metadata(request, session))
        await stopped
        assert (await waiting).brokers
        assert not world.network.open_sockets
        cluster.stop()
        world.brokers[0].on("Metadata", world.metadata)
        await cluster.start()
        cluster.stop()

    run(world.network, main())
    assert not world.network.open_sockets


def test_stop_is_bounded_by_its_timeout(world):
    async def main():
        cluster = world.cluster()
        await cluster.start()
        world.brokers[0].on("Metadata", lambda *_: SILENCE)
        waiting = cluster[0].send(MetadataRequest(topics=None))
        await asyncio.sleep(0.1)
        began = world.network.clock.monotonic()
        await cluster.stop(2)
        assert world.network.clock.monotonic() - began == pytest.approx(2)
        with pytest.raises(IllegalStateError, match="was stopped"):
            await waiting

    run(world.network, main())
    assert not world.network.open_sockets


def test_a_cluster_is_an_async_context_and_its_heals_come_one_after_the_other(world):
    async def main():
        async with world.cluster() as cluster:
            await asyncio.gather(*(cluster.heal() for _ in range(3)))
            assert len(world.network.open_sockets) == 3
        assert not cluster.conns

    run(world.network, main())
    assert not world.network.open_sockets


def test_a_start_or_heal_that_is_cancelled_leaves_no_socket_behind(world):
    async def main():
        for delay in range(0, 60, 3):
            cluster = world.cluster()
            starting = asyncio.ensure_future(cluster.start())
            for _ in range(delay):
                await asyncio.sleep(0)
            starting.cancel()
            await asyncio.gather(starting, return_exceptions=True)
            cluster.stop()
            assert not world.network.open_sockets
        cluster = world.cluster()
        await cluster.start()
        for delay in range(30):
            for session in world.brokers[1].sessions:
                session.sock.close()
            await asyncio.sleep(0.01)
            healing = asyncio.ensure_future(cluster.heal())
            for _ in range(delay):
                await asyncio.sleep(0)
            healing.cancel()
            await asyncio.gather(healing, return_exceptions=True)
        await cluster.heal()
        assert len(world.network.open_sockets) == 3
        cluster.stop()

    run(world.network, main())
    assert not world.network.open_sockets


def test_before_start_there_is_nothing(world):
    cluster = world.cluster()
    assert not cluster.conns
    assert list(cluster) == []
    cluster.stop()
    with pytest.raises(NoBrokersAvailable):
        run(world.network, world.cluster(["nobody"]).start())
    with pytest.raises(ValueError, match="Cluster has no option 'bootstrap'"):
        Cluster(["b0"], bootstrap="x")
