"""Each library's producer behind one small face, with the settings of traffic.py.

``send_all`` is what is timed: it hands over ``count`` records in the way that ``mode`` says and returns when all of
them are acknowledged. Everything in it is what a user of that library would write. ``send_one`` sends a record and
waits.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

from traffic import BATCH_BYTES, IN_FLIGHT, TIMEOUT_S, confluent_producer, values
from workload import Unsupported

BULK = 1000  # records per call where there is a call for many


@dataclass(frozen=True)
class Plan:
    """What to send and how. ``mode``: "send" (futures ignored), "callback" (one per record) or "many"."""

    topic: str
    size: int
    partitions: int = 1
    codec: str = "none"
    acks: str = "all"
    idempotent: bool = True
    mode: str = "send"
    linger_ms: int = 5


class Tally:
    """Counts deliveries from callbacks, and remembers the first failure."""

    def __init__(self) -> None:
        self.delivered = 0
        self.failure: Any = None

    def success(self, _metadata: Any) -> None:
        self.delivered += 1

    def fail(self, error: Any) -> None:
        self.failure = self.failure or error

    def check(self, count: int) -> None:
        """Raises where not all arrived: a run that lost records is no measurement."""
        if self.failure or self.delivered != count:
            raise RuntimeError(f"{self.delivered} of {count} delivered, first failure: {self.failure}")
        self.delivered = 0


class ClassicProducer:
    """KafkaProducer, ours and kafka-python's: the same interface, so the same code."""

    def __init__(self, bootstrap: str, plan: Plan) -> None:
        try:
            from kafka import KafkaProducer
        except ImportError as error:
            raise Unsupported("there is no KafkaProducer in it") from error
        self._plan = plan
        self._values = values(plan.size)
        self._producer = KafkaProducer(
            bootstrap_servers=bootstrap,
            linger_ms=plan.linger_ms,
            batch_size=BATCH_BYTES,
            compression_type=None if plan.codec == "none" else plan.codec,
            acks="all" if plan.acks == "all" else int(plan.acks),
            enable_idempotence=plan.idempotent,
            max_in_flight_requests_per_connection=IN_FLIGHT,
        )
        if plan.mode == "many" and not hasattr(self._producer, "send_many"):
            self.close()
            raise Unsupported("it has no call for many records")

    def send_all(self, count: int) -> None:
        send, topic = self._producer.send, self._plan.topic
        records = islice(cycle(self._values), count)
        if self._plan.mode == "many":
            last = None
            while chunk := list(islice(records, BULK)):
                last = self._producer.send_many(topic, chunk)
            self._producer.flush(TIMEOUT_S)
            assert last is not None
        elif self._plan.mode == "callback":
            tally = Tally()
            for value in records:
                future = send(topic, value)
                future.add_callback(tally.success)
                future.add_errback(tally.fail)
            self._producer.flush(TIMEOUT_S)
            tally.check(count)
        else:
            future = None
            for value in records:
                future = send(topic, value)
            self._producer.flush(TIMEOUT_S)
            if future is not None:
                future.get(TIMEOUT_S)

    def send_one(self) -> None:
        self._producer.send(self._plan.topic, self._values[0]).get(TIMEOUT_S)

    def close(self) -> None:
        self._producer.close(TIMEOUT_S)


class AiokafkaProducer:
    """aiokafka's producer, on an event loop that runs only while it is asked for something.

    It has no setting for requests in flight: it keeps one per broker.
    """

    def __init__(self, bootstrap: str, plan: Plan) -> None:
        from aiokafka import AIOKafkaProducer

        self._plan = plan
        self._values = values(plan.size)
        self._loop = asyncio.new_event_loop()

        async def start() -> Any:
            producer = AIOKafkaProducer(
                bootstrap_servers=bootstrap,
                linger_ms=plan.linger_ms,
                max_batch_size=BATCH_BYTES,
                compression_type=None if plan.codec == "none" else plan.codec,
                acks="all" if plan.acks == "all" else int(plan.acks),
                enable_idempotence=plan.idempotent,
            )
            await producer.start()
            return producer

        self._producer = self._run(start())

    def _run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(coroutine)

    def send_all(self, count: int) -> None:
        modes = {"send": self._send, "callback": self._callback, "many": self._many}
        self._run(modes[self._plan.mode](count))

    async def _send(self, count: int) -> None:
        send, topic, future = self._producer.send, self._plan.topic, None
        for value in islice(cycle(self._values), count):
            future = await send(topic, value)
        await self._producer.flush()
        if future is not None:
            await future

    async def _callback(self, count: int) -> None:
        send, topic, tally = self._producer.send, self._plan.topic, Tally()

        def done(future: Any) -> None:
            error = future.exception()
            if error is None:
                tally.success(future.result())
            else:
                tally.fail(error)

        for value in islice(cycle(self._values), count):
            (await send(topic, value)).add_done_callback(done)
        await self._producer.flush()
        await asyncio.sleep(0)  # callbacks run one turn of the loop after their future
        tally.check(count)

    async def _many(self, count: int) -> None:
        """Whole batches by hand: that is this library's call for many records."""
        producer, plan, future = self._producer, self._plan, None
        batch, partition = producer.create_batch(), 0
        for value in islice(cycle(self._values), count):
            if batch.append(key=None, value=value, timestamp=None) is None:
                future = await producer.send_batch(batch, plan.topic, partition=partition)
                partition = (partition + 1) % plan.partitions
                batch = producer.create_batch()
                batch.append(key=None, value=value, timestamp=None)
        last = await producer.send_batch(batch, plan.topic, partition=partition)
        await producer.flush()
        for one in filter(None, (future, last)):
            await one

    def send_one(self) -> None:
        self._run(self._producer.send_and_wait(self._plan.topic, self._values[0]))

    def close(self) -> None:
        self._run(self._producer.stop())
        self._loop.close()


class ConfluentProducer:
    """confluent-kafka: librdkafka queues up to a bound and then wants to be polled."""

    def __init__(self, bootstrap: str, plan: Plan) -> None:
        self._plan = plan
        self._values = values(plan.size)
        self._producer = confluent_producer(
            bootstrap, compression=plan.codec, acks=plan.acks, idempotent=plan.idempotent, linger_ms=plan.linger_ms
        )
        self._tally = Tally()

    def _delivered(self, error: Any, message: Any) -> None:
        if error:
            self._tally.fail(error)
        else:
            self._tally.success(message)

    def send_all(self, count: int) -> None:
        modes = {"send": self._send, "callback": self._callback, "many": self._many}
        modes[self._plan.mode](count)
        left = self._producer.flush(TIMEOUT_S)
        if left:
            raise RuntimeError(f"{left} records were not sent in time")
        self._tally.check(count if self._plan.mode == "callback" else 1)

    def _send(self, count: int) -> None:
        produce, topic = self._producer.produce, self._plan.topic
        for value in islice(cycle(self._values), count - 1):
            try:
                produce(topic, value)
            except BufferError:  # noqa: PERF203 - the library's way to say that its queue is full
                self._wait_and_produce(value)
        self._wait_and_produce(self._values[0], on_delivery=self._delivered)

    def _callback(self, count: int) -> None:
        produce, poll, topic = self._producer.produce, self._producer.poll, self._plan.topic
        delivered = self._delivered
        for number, value in enumerate(islice(cycle(self._values), count)):
            try:
                produce(topic, value, on_delivery=delivered)
            except BufferError:
                self._wait_and_produce(value, on_delivery=delivered)
            if not number % BULK:
                poll(0)

    def _many(self, count: int) -> None:
        if not hasattr(self._producer, "produce_batch"):
            raise Unsupported("this version has no produce_batch")
        records = islice(cycle(self._values), count - 1)
        while chunk := list(islice(records, BULK)):
            messages = [{"value": value} for value in chunk]
            while self._producer.produce_batch(self._plan.topic, messages) < len(messages):
                messages = [message for message in messages if "_error" in message]
                for message in messages:
                    del message["_error"]
                self._producer.poll(0.05)
        self._wait_and_produce(self._values[0], on_delivery=self._delivered)

    def _wait_and_produce(self, value: bytes, **more: Any) -> None:
        while True:
            try:
                self._producer.produce(self._plan.topic, value, **more)
                return
            except BufferError:  # noqa: PERF203 - see above
                self._producer.poll(0.05)

    def send_one(self) -> None:
        self._producer.produce(self._plan.topic, self._values[0], on_delivery=self._delivered)
        while not self._tally.delivered and not self._tally.failure:
            self._producer.poll(1)
        self._tally.check(1)

    def close(self) -> None:
        self._producer.flush(TIMEOUT_S)


PRODUCERS = {
    "purekafka": ClassicProducer,
    "kafka-python": ClassicProducer,
    "aiokafka": AiokafkaProducer,
    "aiokafka-pure": AiokafkaProducer,
    "confluent-kafka": ConfluentProducer,
}
