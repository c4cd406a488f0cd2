"""A whole `KafkaConsumer` on a network in memory, beside a broker that a test scripts, under a clock that jumps."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from kafka._runtime.asyncio_driver import call_user
from kafka._runtime.loop import Loop
from kafka._runtime.network_thread import CallerDriver, complete
from kafka._runtime.tasks import Pending
from kafka.consumer import KafkaConsumer
from kafka.coordinator.protocol import ConsumerProtocolMemberAssignment
from kafka.errors import KafkaTimeoutError, UnknownTopicOrPartitionError
from kafka.future import Future
from kafka.protocol.commit import FindCoordinatorResponse, OffsetCommitResponse, OffsetFetchResponse
from kafka.protocol.fetch import FetchResponse
from kafka.protocol.metadata import MetadataResponse
from kafka.protocol.offset import ListOffsetsResponse
from kafka.record.batch_builder import BatchBuilder
from kafka.structs import TopicPartition
from kafka.testing import SILENCE, MemoryNetwork, ScriptedBroker

T = TypeVar("T")

MakeConsumer = Callable[..., KafkaConsumer]
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class HereDriver(CallerDriver):
    """Turns a loop in the calling thread alone: a network in memory knows one thread."""

    def __init__(self, loop: Loop, name: str = "") -> None:
        super().__init__(loop)
        self.name = name

    async def run(self, coro: Coroutine[Any, Any, T], deadline: float | None = None, what: str = "the call") -> T:
        task = self.loop.spawn(coro)
        try:
            return self.loop.run_until(task, deadline)
        except KafkaTimeoutError:
            if task.is_done:
                raise
            raise KafkaTimeoutError(f"{what} took too long") from None
        finally:
            task.cancel()
            while self.loop.has_ready:
                self.loop.turn(0)

    async def wait(
        self, future: Future[Any] | Pending, deadline: float | None = None, begin: Callable[[], object] | None = None
    ) -> bool:
        if begin is not None:
            self.loop.call_soon(begin)
        while not future.is_done:
            remaining = None if deadline is None else deadline - self.loop.time()
            if remaining is not None and remaining <= 0:
                break
            self.loop.turn(remaining)
        return future.is_done


class Cluster:
    """One broker that leads and coordinates everything. `script` has for an API what it does next, in order.

    An error code, `SILENCE` or `HANG_UP`; an API without a script works.
    """

    def __init__(self, partitions: int = 2) -> None:
        self.network = MemoryNetwork()
        self.broker = ScriptedBroker(self.network, "b0")
        self.topics = {"t": partitions}
        self.creates_topics = False
        self.logs: dict[TopicPartition, list[bytes]] = {}
        self.committed: dict[TopicPartition, int] = {}
        self.script: dict[str, deque[Any]] = {}
        self.times: dict[str, list[float]] = {}
        self.loop: Loop | None = None
        self.sessions_closed = 0
        self.assigns: list[int] | None = None
        """The partitions of "t" that a member gets; None for all."""
        self.stable_offset = -1  # as a broker without transactions has it
        self.leaves_out: set[TopicPartition] = set()
        self.errors: dict[TopicPartition, int] = {}
        """The error codes of partitions in responses to fetches."""
        self._session: dict[TopicPartition, int] = {}
        for name, answer in (
            ("Metadata", self._metadata),
            ("FindCoordinator", self._find_coordinator),
            ("ListOffsets", self._list_offsets),
            ("Fetch", _no_answer),
            ("JoinGroup", self._join),
            ("SyncGroup", self._sync),
            ("Heartbeat", lambda _request, code: {"error_code": code}),
            ("LeaveGroup", lambda _request, code: {"error_code": code}),
            ("OffsetFetch", self._offset_fetch),
            ("OffsetCommit", self._offset_commit),
        ):
            self.broker.on(name, self._scripted(name, answer))

    # What a test does…

    @property
    def now(self) -> float:
        return self.network.clock.monotonic()

    def fill(self, count: int, partition: TopicPartition = T0) -> None:
        self.logs.setdefault(partition, []).extend(b"v" for _ in range(count))

    def asked(self, api: str) -> list[Any]:
        return self.broker.asked(api)

    def go_silent(self) -> None:
        """Keep connections, answer nothing: a machine that was suspended."""
        for name in self.broker.handlers:
            self.broker.handlers[name] = lambda _request, _session: SILENCE

    def vanish(self) -> None:
        """Drop connections and answer no attempt at another one: a machine that was switched off."""
        self.broker.stop()
        self.network.unreachable.add(("b0", 9092))

    # What the broker does…

    def _scripted(self, name: str, answer: Callable[[Any, int], Any]) -> Any:
        def handle(request: Any, session: Any) -> Any:
            self.times.setdefault(name, []).append(self.now)
            script = self.script.get(name)
            step = script.popleft() if script else 0
            if not isinstance(step, int):
                return step
            if name != "Fetch":
                return answer(request, step)
            if step:
                return {"error_code": step}
            found, any_data = self._fetch(request)
            if any_data or not request.max_wait_ms:
                return found
            assert self.loop is not None  # nothing new: the broker holds the request back
            self.loop.call_later(request.max_wait_ms / 1000, self._answer_late, session)
            return SILENCE

        return handle

    def _answer_late(self, session: Any) -> None:
        if session.unanswered and not session.sock.closed:
            header, request = session.unanswered.pop(0)
            session.reply(header, request, self._fetch(request)[0])

    def _metadata(self, request: Any, _code: int) -> Any:
        reply = MetadataResponse
        names = sorted(self.topics) if request.topics is None else [topic.name for topic in request.topics]
        topics = []
        for name in names:
            if name not in self.topics and self.creates_topics and request.allow_auto_topic_creation:
                self.topics[name] = 1
            partitions = [
                reply.MetadataResponsePartition(partition_index=at, leader_id=0, replica_nodes=[0], isr_nodes=[0])
                for at in range(self.topics.get(name, 0))
            ]
            code = 0 if partitions else UnknownTopicOrPartitionError.errno
            topics.append(reply.MetadataResponseTopic(error_code=code, name=name, partitions=partitions))
        return {
            "brokers": [reply.MetadataResponseBroker(node_id=0, host="b0", port=9092, rack=None)],
            "controller_id": 0,
            "cluster_id": "c",
            "topics": topics,
        }

    def _find_coordinator(self, request: Any, code: int) -> Any:
        fields = {"error_code": code, "node_id": 0, "host": "b0", "port": 9092}
        entry = FindCoordinatorResponse.Coordinator
        if request.coordinator_keys:
            return {"coordinators": [entry(key=key, error_message=None, **fields) for key in request.coordinator_keys]}
        return fields

    def _list_offsets(self, request: Any, code: int) -> Any:
        reply = ListOffsetsResponse
        topics = []
        for topic in request.topics:
            parts = []
            for part in topic.partitions:
                end = len(self.logs.get(TopicPartition(topic.name, part.partition_index), ()))
                offset = end if part.timestamp == -1 else 0
                parts.append(
                    reply.ListOffsetsPartitionResponse(
                        partition_index=part.partition_index, error_code=code, offset=offset, timestamp=-1
                    )
                )
            topics.append(reply.ListOffsetsTopicResponse(name=topic.name, partitions=parts))
        return {"topics": topics}

    def _fetch(self, request: Any) -> tuple[dict[str, Any], bool]:
        reply = FetchResponse
        if request.session_epoch < 0 and request.session_id:
            self.sessions_closed += 1
            return {"responses": []}, True
        if request.max_wait_ms:  # the one with a session: what it asked for before it need not repeat
            if request.session_epoch == 0:
                self._session.clear()
            for topic in request.forgotten_topics_data:
                for number in topic.partitions:
                    self._session.pop(TopicPartition(topic.topic, number), None)
        in_session = request.max_wait_ms and request.session_epoch >= 0
        places = self._session if in_session else {}
        places.update(
            (TopicPartition(topic.topic, part.partition), part.fetch_offset)
            for topic in request.topics
            for part in topic.partitions
        )
        topics, any_data = [], False
        for (name, number), offset in places.items():
            if (name, number) in self.leaves_out:
                continue
            log = self.logs.get(TopicPartition(name, number), [])
            new = log[offset:]
            code = self.errors.get(TopicPartition(name, number), 0)
            any_data = any_data or bool(new or code)
            if not new and not code and request.session_epoch > 0:
                continue
            data = reply.PartitionData(
                partition_index=number,
                error_code=code,
                high_watermark=len(log),
                last_stable_offset=self.stable_offset,
                records=_batch(offset, new) if new and not code else b"",
            )
            topics.append(reply.FetchableTopicResponse(topic=name, partitions=[data]))
        return {"responses": topics, "session_id": 7 if in_session else 0}, any_data

    def _join(self, request: Any, code: int) -> Any:
        return {
            "error_code": code,
            "generation_id": 1,
            "protocol_type": "consumer",
            "protocol_name": request.protocols[0].name,
            "leader": "another",
            "member_id": "m",
            "members": [],
        }

    def _sync(self, request: Any, code: int) -> Any:
        partitions = list(range(self.topics["t"])) if self.assigns is None else self.assigns
        assignment = ConsumerProtocolMemberAssignment(0, [("t", partitions)] if partitions else [], b"").encode()
        return {
            "error_code": code,
            "protocol_type": "consumer",
            "protocol_name": request.protocol_name,
            "assignment": assignment,
        }

    def _offset_fetch(self, request: Any, code: int) -> Any:
        reply = OffsetFetchResponse
        if request.groups:
            topics = [
                reply.OffsetFetchResponseTopics(
                    name=topic.name,
                    partitions=[
                        reply.OffsetFetchResponsePartitions(
                            partition_index=at,
                            committed_offset=self.committed.get(TopicPartition(topic.name, at), -1),
                            metadata="",
                        )
                        for at in topic.partition_indexes
                    ],
                )
                for topic in request.groups[0].topics
            ]
            return {
                "groups": [
                    reply.OffsetFetchResponseGroup(group_id=request.groups[0].group_id, error_code=code, topics=topics)
                ]
            }
        raise AssertionError("the scripted broker is a new one")

    def _offset_commit(self, request: Any, code: int) -> Any:
        reply = OffsetCommitResponse
        topics = []
        for topic in request.topics:
            parts = []
            for part in topic.partitions:
                if not code:
                    self.committed[TopicPartition(topic.name, part.partition_index)] = part.committed_offset
                parts.append(reply.OffsetCommitResponsePartition(partition_index=part.partition_index, error_code=code))
            topics.append(reply.OffsetCommitResponseTopic(name=topic.name, partitions=parts))
        return {"topics": topics}


def _no_answer(_request: Any, _code: int) -> Any:
    raise AssertionError("fetches are answered by `Cluster._scripted`")


def _batch(first: int, values: list[bytes]) -> bytes:
    builder = BatchBuilder(limit=1 << 20)
    builder.extend(values, 0)
    sealed = bytearray(builder.seal().data)
    sealed[:8] = first.to_bytes(8, "big")
    return bytes(sealed)


def read(consumer: KafkaConsumer, count: int) -> list[Any]:
    """Poll until there are `count` records."""
    found: list[Any] = []
    for _ in range(100):
        for records in consumer.poll(timeout_ms=1000).values():
            found += records
        if len(found) >= count:
            return found
    raise AssertionError(f"{len(found)} of {count} records came: {consumer.health()}")


def rest(consumer: KafkaConsumer, seconds: float) -> None:
    """Let time pass in which the application does not call the consumer, and the network goes on."""
    core = consumer._core
    assert core is not None
    complete(core.application.run(core.loop.sleep(seconds)))


class InTaskDriver:
    """Turns a loop in the asyncio task that waits; between two passes other tasks of asyncio run."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop

    async def run(self, coro: Coroutine[Any, Any, T], deadline: float | None = None, what: str = "the call") -> T:
        task = self.loop.spawn(coro)
        try:
            await self.wait(task, deadline)
            if not task.is_done:
                raise KafkaTimeoutError(f"{what} took too long")
            return task.result()
        finally:
            task.cancel()

    async def wait(
        self, future: Future[Any] | Pending, deadline: float | None = None, begin: Callable[[], object] | None = None
    ) -> bool:
        if begin is not None:
            self.loop.call_soon(begin)
        while not future.is_done:
            remaining = None if deadline is None else deadline - self.loop.time()
            if remaining is not None and remaining <= 0:
                break
            self.loop.turn(remaining)
            await asyncio.sleep(0)
        return future.is_done

    def pending(self) -> Pending:
        return Future[None]()

    async def call(self, function: Callable[..., object], *args: object) -> Any:
        return await call_user(function, *args)

    async def turn(self) -> None:
        self.loop.turn(0)
        await asyncio.sleep(0)

    async def close(self, timeout: float = 0.0) -> None:
        while self.loop.has_ready:
            self.loop.turn(0)
        self.loop.close(timeout)
