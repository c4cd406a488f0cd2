"""A cluster in memory for whole producers, under a clock that jumps: one thread, no socket, no wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import NAMESPACE_DNS, UUID, uuid5

from kafka._runtime.network_thread import ThreadDriver, complete
from kafka._runtime.tasks import Pending
from kafka.errors import IllegalStateError, KafkaTimeoutError
from kafka.future import Future
from kafka.producer import KafkaProducer
from kafka.protocol.metadata import MetadataResponse
from kafka.protocol.produce import ProduceResponse
from kafka.testing import MemoryNetwork, ScriptedBroker

UNKNOWN_TOPIC = 3
INVALID_TOPIC = 17
LONG = 10_000.0


def topic_id(name: str) -> UUID:
    return uuid5(NAMESPACE_DNS, name)


class Cluster:
    """Brokers b0, b1, … that know the topics of a test, and take what is produced."""

    def __init__(self, topics: dict[str, int], nodes: int = 1) -> None:
        self.network = MemoryNetwork()
        self.topics = topics
        self.leaders: dict[tuple[str, int], int] = {}
        """Partitions whose leader is not the obvious one; -1 for none."""
        self.brokers = [ScriptedBroker(self.network, f"b{node}") for node in range(nodes)]
        self.advertised = set(range(nodes))
        self.throttle_ms = 0
        self.script: deque[Any] = deque()
        """What the next Produce requests are answered with: an error code, or what a handler may return."""
        self.times: list[tuple[float, str, int, int]] = []
        """When each batch arrived, its topic and partition, and how many bytes it had."""
        self.offsets: dict[tuple[str, int], int] = {}
        for node, broker in enumerate(self.brokers):
            broker.on("Metadata", self.metadata)
            broker.on("InitProducerId", {"producer_id": 7, "producer_epoch": 0})
            broker.on("Produce", lambda request, session, node=node: self.produce(request, node))

    @property
    def now(self) -> float:
        return self.network.clock.monotonic()

    def leader(self, topic: str, index: int) -> int:
        return self.leaders.get((topic, index), index % len(self.brokers))

    def asked(self, api: str) -> list[Any]:
        return [request for broker in self.brokers for request in broker.asked(api)]

    def metadata(self, request: Any, _session: Any) -> Any:
        reply = MetadataResponse
        names = self.topics if request.topics is None else [topic.name for topic in request.topics]
        topics = []
        for name in names:
            count = self.topics.get(name)
            if count is None:
                code = INVALID_TOPIC if name.startswith("invalid") else UNKNOWN_TOPIC
                topics.append(reply.MetadataResponseTopic(error_code=code, name=name, partitions=[]))
                continue
            partitions = []
            for at in range(count):
                leader = self.leader(name, at)
                partitions.append(
                    reply.MetadataResponsePartition(
                        error_code=5 if leader < 0 else 0,
                        partition_index=at,
                        leader_id=leader,
                        replica_nodes=[max(0, leader)],
                        isr_nodes=[max(0, leader)],
                    )
                )
            topics.append(
                reply.MetadataResponseTopic(error_code=0, name=name, topic_id=topic_id(name), partitions=partitions)
            )
        return {
            "brokers": [
                reply.MetadataResponseBroker(node_id=node, host=broker.host, port=broker.port, rack=None)
                for node, broker in enumerate(self.brokers)
                if node in self.advertised
            ],
            "controller_id": 0,
            "cluster_id": "c",
            "topics": topics,
        }

    def produce(self, request: Any, _node: int) -> Any:
        code = self.script.popleft() if self.script else 0
        if not isinstance(code, int):
            return code
        reply = ProduceResponse
        names = {topic_id(name): name for name in self.topics}
        topics = []
        for topic in request.topic_data:
            partitions = []
            for each in topic.partition_data:
                place = topic.name or names[topic.topic_id], each.index
                self.times.append((self.now, *place, len(bytes(each.records))))
                base = self.offsets.get(place, 0)
                if not code:
                    self.offsets[place] = base + int.from_bytes(bytes(each.records)[57:61], "big")
                partitions.append(
                    reply.PartitionProduceResponse(index=each.index, error_code=code, base_offset=-1 if code else base)
                )
            topics.append(
                reply.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=partitions)
            )
        return {"responses": topics, "throttle_time_ms": self.throttle_ms}

    def producer(self, **options: Any) -> Producer:
        options = {"bootstrap_servers": "b0", "client_id": "p", "enable_idempotence": False, **options}
        return Producer(self, environment=self.network.environment(), **options)


class InlineDriver(ThreadDriver):
    """Turns the loop in the one thread that there is, whenever a call waits."""

    def start(self) -> None:
        self.loop.check_usable()

    async def run(self, coro: Coroutine[Any, Any, Any], deadline: float | None = None, what: str = "the call") -> Any:
        if self.loop.in_pass:
            coro.close()
            raise IllegalStateError(f"{what} blocks, so it cannot be called from a callback")
        task = self.loop.spawn(coro)
        if not await self.wait(task, deadline):
            task.cancel()
            raise KafkaTimeoutError(f"{what} took too long")
        return task.result()

    async def wait(
        self, future: Future[Any] | Pending, deadline: float | None = None, begin: Callable[[], object] | None = None
    ) -> bool:
        if begin is not None:
            self.loop.call_soon(begin)
        end = self.loop.time() + LONG if deadline is None else deadline
        while not future.is_done and self.loop.time() < end:
            self.loop.turn(end - self.loop.time())
        return future.is_done


class Producer(KafkaProducer):
    """A whole producer; time passes where it waits, and in `rest`."""

    def __init__(self, cluster: Cluster, **options: Any) -> None:
        self.cluster = cluster
        super().__init__(**options)

    @property
    def core(self) -> Any:
        return self._core

    def rest(self, seconds: float = 0.0) -> None:
        """Let time pass."""
        loop = self._core.loop
        complete(self._driver.wait(loop.spawn(loop.sleep(seconds)), loop.time() + seconds + 1))

    def until(self, condition: Any, seconds: float = 1000.0) -> None:
        """Let time pass until something has happened."""
        end = self._core.now() + seconds
        while not condition():
            assert self._core.now() < end, "it did not happen"
            self.rest(0.01)
