"""Each library's consumer behind one small face, with the options of a plan.

``read`` is what is timed: the whole topic, ``passes`` times, in the way that the plan says, key and value of each
record looked at. It is always the whole topic, so that nobody has fetched and unpacked ahead what is then not counted.
Everything in the loops is what a user of that library would write.
"""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Coroutine
from itertools import islice
from typing import Any, NamedTuple

from traffic import FETCH_WAIT_MS, TIMEOUT_S
from workload import Unsupported

_POLL_MS = 1000


class Plan(NamedTuple):
    """What to read and how. ``mode``: "poll" (``at_once`` records a call), "iterate" or "columns"."""

    topic: str
    shape: str
    partitions: int
    records: int  # how many the topic holds
    codec: str = "none"
    mode: str = "poll"
    at_once: int = 500
    group: bool = False


def _group() -> str:
    """A group that nobody has used: without commits, so that it begins at the beginning."""
    return f"bench-{uuid.uuid4()}"


class ClassicConsumer:
    """KafkaConsumer, ours and kafka-python's: the same interface, so the same code."""

    def __init__(self, bootstrap: str, plan: Plan) -> None:
        try:
            from kafka import KafkaConsumer, TopicPartition
        except ImportError as error:
            raise Unsupported("there is no KafkaConsumer in it") from error
        if plan.mode == "columns" and not hasattr(KafkaConsumer, "poll_batches"):
            raise Unsupported("it has no columns")
        self._plan = plan
        self._consumer = KafkaConsumer(
            bootstrap_servers=bootstrap,
            group_id=_group() if plan.group else None,
            auto_offset_reset="earliest",
            max_poll_records=plan.at_once,
            fetch_max_wait_ms=FETCH_WAIT_MS,
            enable_auto_commit=plan.group,
        )
        self._partitions = [TopicPartition(plan.topic, index) for index in range(plan.partitions)]
        if plan.group:
            self._consumer.subscribe([plan.topic])
            while not self._consumer.assignment():
                self._consumer.poll(timeout_ms=100)
        else:
            self._consumer.assign(self._partitions)

    def first(self) -> None:
        """Wait for the first record."""
        while not self._consumer.poll(timeout_ms=_POLL_MS):
            pass

    def read(self, passes: int) -> None:
        reader = {"poll": self._poll, "iterate": self._iterate, "columns": self._columns}[self._plan.mode]
        for _ in range(passes):
            for partition in self._partitions:
                self._consumer.seek(partition, 0)
            reader(self._plan.records)

    def _poll(self, count: int) -> None:
        poll, seen = self._consumer.poll, 0
        while seen < count:
            for records in poll(timeout_ms=_POLL_MS).values():
                for record in records:
                    record.key, record.value  # noqa: B018 - looked at, as a user would
                seen += len(records)

    def _iterate(self, count: int) -> None:
        for record in islice(self._consumer, count):
            record.key, record.value  # noqa: B018

    def _columns(self, count: int) -> None:
        seen = 0
        while seen < count:
            for batch in self._consumer.poll_batches(timeout_ms=_POLL_MS).values():
                batch.keys, batch.values  # noqa: B018
                seen += len(batch)

    def close(self) -> None:
        self._consumer.close()


class AiokafkaConsumer:
    """aiokafka's consumer, on an event loop that runs only while it is asked for something."""

    def __init__(self, bootstrap: str, plan: Plan) -> None:
        if plan.mode == "columns":
            raise Unsupported("it has no columns")
        self._bootstrap, self._plan = bootstrap, plan
        self._loop = asyncio.new_event_loop()
        self._consumer = self._run(self._start())

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(coroutine)

    async def _start(self) -> Any:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        plan = self._plan
        consumer = AIOKafkaConsumer(
            bootstrap_servers=self._bootstrap,
            group_id=_group() if plan.group else None,
            auto_offset_reset="earliest",
            fetch_max_wait_ms=FETCH_WAIT_MS,
            enable_auto_commit=plan.group,
        )
        self._partitions = [TopicPartition(plan.topic, index) for index in range(plan.partitions)]
        if plan.group:
            consumer.subscribe([plan.topic])
            await consumer.start()
        else:
            await consumer.start()
            consumer.assign(self._partitions)
        return consumer

    def first(self) -> None:
        self._run(asyncio.wait_for(self._consumer.getone(), TIMEOUT_S))

    def read(self, passes: int) -> None:
        self._run(self._read(passes))

    async def _read(self, passes: int) -> None:
        reader = {"poll": self._poll, "iterate": self._iterate}[self._plan.mode]
        for _ in range(passes):
            for partition in self._partitions:
                self._consumer.seek(partition, 0)
            await reader(self._plan.records)

    async def _poll(self, count: int) -> None:
        getmany, at_once, seen = self._consumer.getmany, self._plan.at_once, 0
        while seen < count:
            for records in (await getmany(timeout_ms=_POLL_MS, max_records=at_once)).values():
                for record in records:
                    record.key, record.value  # noqa: B018
                seen += len(records)

    async def _iterate(self, count: int) -> None:
        seen = 0
        async for record in self._consumer:
            record.key, record.value  # noqa: B018
            seen += 1
            if seen >= count:
                break

    def close(self) -> None:
        self._run(self._consumer.stop())
        self._loop.close()


class ConfluentConsumer:
    """confluent-kafka: consume() for many, poll() for each."""

    def __init__(self, bootstrap: str, plan: Plan) -> None:
        from confluent_kafka import Consumer, TopicPartition

        if plan.mode == "columns":
            raise Unsupported("it has no columns")
        self._plan = plan
        self._consumer = Consumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": _group(),  # it cannot be without; a group is joined by subscribe alone
                "auto.offset.reset": "earliest",
                "fetch.wait.max.ms": FETCH_WAIT_MS,
                "check.crcs": True,
                "enable.auto.commit": plan.group,
            }
        )
        self._begin = [TopicPartition(plan.topic, index, 0) for index in range(plan.partitions)]
        if plan.group:
            self._consumer.subscribe([plan.topic])
            while not self._consumer.assignment():
                self._consumer.poll(0.1)
        else:
            self._consumer.assign(self._begin)
        self._consumer.consume(1, TIMEOUT_S)  # seek() works only where fetching has begun

    def first(self) -> None:
        """The constructor has waited for it."""

    def read(self, passes: int) -> None:
        reader = {"poll": self._consume, "iterate": self._poll}[self._plan.mode]
        for _ in range(passes):
            for partition in self._begin:
                self._consumer.seek(partition)
            reader(self._plan.records)

    def _consume(self, count: int) -> None:
        consume, at_once, seen = self._consumer.consume, self._plan.at_once, 0
        while seen < count:
            messages = consume(at_once, _POLL_MS / 1000)
            for message in messages:
                if message.error():
                    raise RuntimeError(str(message.error()))
                message.key()
                message.value()
            seen += len(messages)

    def _poll(self, count: int) -> None:
        poll, seen = self._consumer.poll, 0
        while seen < count:
            message = poll(_POLL_MS / 1000)
            if message is None:
                continue
            if message.error():
                raise RuntimeError(str(message.error()))
            message.key()
            message.value()
            seen += 1

    def close(self) -> None:
        self._consumer.close()


CONSUMERS = {
    "purekafka": ClassicConsumer,
    "purekafka-no-numpy": ClassicConsumer,
    "kafka-python": ClassicConsumer,
    "aiokafka": AiokafkaConsumer,
    "confluent-kafka": ConfluentConsumer,
}


# Followers: a consumer at the end of a topic of one partition, which polls for what a producer of the process sends.


class ClassicFollower:
    """KafkaConsumer, ours and kafka-python's."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        from kafka import KafkaConsumer, TopicPartition

        self._consumer = KafkaConsumer(bootstrap_servers=bootstrap, group_id=None)
        partition = TopicPartition(topic, 0)
        self._consumer.assign([partition])
        self._consumer.seek_to_end(partition)
        self._consumer.position(partition)

    def send_and_poll(self, producer: Any) -> None:
        producer.send_only()
        poll = self._consumer.poll
        while not poll(timeout_ms=_POLL_MS):
            pass

    def close(self) -> None:
        self._consumer.close()


class AiokafkaFollower:
    """aiokafka's consumer, on the producer's event loop."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._bootstrap, self._topic = bootstrap, topic
        self._consumer: Any = None
        self._run: Any = None

    async def _start(self) -> None:
        from aiokafka import AIOKafkaConsumer, TopicPartition

        self._consumer = AIOKafkaConsumer(bootstrap_servers=self._bootstrap, group_id=None)
        await self._consumer.start()
        partition = TopicPartition(self._topic, 0)
        self._consumer.assign([partition])
        await self._consumer.seek_to_end(partition)
        await self._consumer.position(partition)

    def send_and_poll(self, producer: Any) -> None:
        if self._consumer is None:
            self._run = producer.run
            self._run(self._start())
        self._run(self._round(producer))

    async def _round(self, producer: Any) -> None:
        await producer.send_only()
        while not await self._consumer.getmany(timeout_ms=_POLL_MS):
            pass

    def close(self) -> None:
        if self._consumer is not None:
            self._run(self._consumer.stop())


class ConfluentFollower:
    """confluent-kafka's consumer."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        from confluent_kafka import OFFSET_END, Consumer, TopicPartition

        self._consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": _group()})
        self._consumer.assign([TopicPartition(topic, 0, OFFSET_END)])
        self._consumer.poll(1.0)  # the end is looked up at first; what is sent before that is not read

    def send_and_poll(self, producer: Any) -> None:
        producer.send_only()
        poll = self._consumer.poll
        while True:
            message = poll(_POLL_MS / 1000)
            if message is not None:
                if message.error():
                    raise RuntimeError(str(message.error()))
                return

    def close(self) -> None:
        self._consumer.close()


def follower(impl: str, bootstrap: str, topic: str) -> Any:
    """The follower of a library."""
    made = {"aiokafka": AiokafkaFollower, "confluent-kafka": ConfluentFollower}.get(impl, ClassicFollower)
    return made(bootstrap, topic)
