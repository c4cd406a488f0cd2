"""Each library's producer behind one small face, with the options of a plan.

``send_all`` is what is timed: it hands over ``count`` records in the way that ``mode`` says and returns when all of
them are acknowledged. Everything in it is what a user of that library would write. ``send_one`` sends a record and
waits.

Options are the library's defaults, but for acks=all where a default is less.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Iterable
from itertools import cycle, islice
from typing import Any, NamedTuple

from traffic import LARGEST, TIMEOUT_S, Content, Record, is_large
from workload import Unsupported

BULK = 1000  # records per call where there is a call for many
_PACE_S = 0.001


class Plan(NamedTuple):
    """What to send and how.

    ``mode``: "send" (futures ignored), "callback" (one per record), "many" (one call per thousand values),
    "flush20" and "flush500" (a flush after as many records), "paced" (one record per millisecond), or "robin" (to the
    next of ``partitions`` each).
    """

    topic: str
    shape: str
    codec: str = "none"
    acks: str = "all"
    mode: str = "send"
    linger_ms: int | None = None  # None: the library's default
    partitions: int = 1


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


def _per_flush(plan: Plan) -> int:
    return int(plan.mode.removeprefix("flush")) if plan.mode.startswith("flush") else 0


def _ticks(records: Iterable[Record]) -> Iterable[tuple[Record, float]]:
    """Each record with the seconds to sleep before it, so that one is due per millisecond."""
    begin = time.monotonic()
    for at, record in enumerate(records):
        yield record, begin + at * _PACE_S - time.monotonic()


class ClassicProducer:
    """KafkaProducer, ours and kafka-python's: the same interface, so the same code."""

    def __init__(self, bootstrap: str, plan: Plan, content: Content) -> None:
        try:
            from kafka import KafkaProducer
        except ImportError as error:
            raise Unsupported("there is no KafkaProducer in it") from error
        options: dict[str, Any] = {"acks": "all" if plan.acks == "all" else int(plan.acks)}
        if plan.acks != "all":
            options["enable_idempotence"] = False
        if plan.codec != "none":
            options["compression_type"] = plan.codec
        if plan.linger_ms is not None:
            options["linger_ms"] = plan.linger_ms
        if is_large(plan.shape):
            options["max_request_size"] = LARGEST
        self._plan, self._content = plan, content
        self._producer = KafkaProducer(bootstrap_servers=bootstrap, **options)
        if plan.mode == "many" and not hasattr(self._producer, "send_many"):
            self.close()
            raise Unsupported("it has no call for many records")

    def send_all(self, count: int) -> None:
        mode = "flush" if self._plan.mode.startswith("flush") else self._plan.mode
        getattr(self, f"_{mode}")(self._content.records(count), count)

    def _send(self, records: Iterable[Record], _count: int) -> None:
        send, topic, future = self._producer.send, self._plan.topic, None
        if self._content.has_headers:
            for key, value, headers in records:
                future = send(topic, value, key, headers)
        else:
            for key, value, _ in records:
                future = send(topic, value, key)
        self._producer.flush(TIMEOUT_S)
        if future is not None:
            future.get(TIMEOUT_S)

    def _robin(self, records: Iterable[Record], _count: int) -> None:
        send, topic = self._producer.send, self._plan.topic
        for (key, value, _), partition in zip(records, cycle(range(self._plan.partitions)), strict=False):
            send(topic, value, key, partition=partition)
        self._producer.flush(TIMEOUT_S)

    def _callback(self, records: Iterable[Record], count: int) -> None:
        send, topic, tally = self._producer.send, self._plan.topic, Tally()
        for key, value, _ in records:
            future = send(topic, value, key)
            future.add_callback(tally.success)
            future.add_errback(tally.fail)
        self._producer.flush(TIMEOUT_S)
        tally.check(count)

    def _many(self, records: Iterable[Record], _count: int) -> None:
        rest = iter(records)
        while chunk := [(key, value) for key, value, _ in islice(rest, BULK)]:
            self._producer.send_many(self._plan.topic, chunk)
        self._producer.flush(TIMEOUT_S)

    def _flush(self, records: Iterable[Record], _count: int) -> None:
        send, flush, topic, rest = self._producer.send, self._producer.flush, self._plan.topic, iter(records)
        while chunk := list(islice(rest, _per_flush(self._plan))):
            for key, value, _ in chunk:
                send(topic, value, key)
            flush(TIMEOUT_S)

    def _paced(self, records: Iterable[Record], _count: int) -> None:
        send, topic = self._producer.send, self._plan.topic
        for (key, value, _), wait in _ticks(records):
            if wait > 0:
                time.sleep(wait)
            send(topic, value, key)
        self._producer.flush(TIMEOUT_S)

    def send_one(self) -> None:
        (record,) = self._content.records(1)
        self._producer.send(self._plan.topic, record.value, record.key).get(TIMEOUT_S)

    def send_only(self) -> None:
        (record,) = self._content.records(1)
        self._producer.send(self._plan.topic, record.value, record.key)

    def close(self) -> None:
        self._producer.close(TIMEOUT_S)


class AiokafkaProducer:
    """aiokafka's producer, on an event loop that runs only while it is asked for something."""

    def __init__(self, bootstrap: str, plan: Plan, content: Content) -> None:
        from aiokafka import AIOKafkaProducer

        options: dict[str, Any] = {"acks": "all" if plan.acks == "all" else int(plan.acks)}
        if plan.codec != "none":
            options["compression_type"] = plan.codec
        if plan.linger_ms is not None:
            options["linger_ms"] = plan.linger_ms
        if is_large(plan.shape):
            options["max_request_size"] = LARGEST
        self._plan, self._content = plan, content
        self._loop = asyncio.new_event_loop()

        async def start() -> Any:
            producer = AIOKafkaProducer(bootstrap_servers=bootstrap, **options)
            await producer.start()
            return producer

        self._producer = self.run(start())

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return self._loop.run_until_complete(coroutine)

    def send_all(self, count: int) -> None:
        mode = "flush" if self._plan.mode.startswith("flush") else self._plan.mode
        self.run(getattr(self, f"_{mode}")(self._content.records(count), count))

    async def _send(self, records: Iterable[Record], _count: int) -> None:
        send, topic, future = self._producer.send, self._plan.topic, None
        if self._content.has_headers:
            for key, value, headers in records:
                future = await send(topic, value, key, headers=headers)
        else:
            for key, value, _ in records:
                future = await send(topic, value, key)
        await self._producer.flush()
        if future is not None:
            await future

    async def _robin(self, records: Iterable[Record], _count: int) -> None:
        send, topic = self._producer.send, self._plan.topic
        for (key, value, _), partition in zip(records, cycle(range(self._plan.partitions)), strict=False):
            await send(topic, value, key, partition)
        await self._producer.flush()

    async def _callback(self, records: Iterable[Record], count: int) -> None:
        send, topic, tally = self._producer.send, self._plan.topic, Tally()

        def done(future: Any) -> None:
            error = future.exception()
            if error is None:
                tally.success(future.result())
            else:
                tally.fail(error)

        for key, value, _ in records:
            (await send(topic, value, key)).add_done_callback(done)
        await self._producer.flush()
        await asyncio.sleep(0)  # callbacks run one turn of the loop after their future
        tally.check(count)

    async def _many(self, records: Iterable[Record], _count: int) -> None:
        """Whole batches by hand: that is this library's call for many records."""
        producer, topic = self._producer, self._plan.topic
        partitions = sorted(await producer.partitions_for(topic))
        batch, number, futures = producer.create_batch(), 0, []
        for key, value, _ in records:
            if batch.append(key=key, value=value, timestamp=None) is None:
                futures.append(await producer.send_batch(batch, topic, partition=partitions[number % len(partitions)]))
                number += 1
                batch = producer.create_batch()
                batch.append(key=key, value=value, timestamp=None)
        futures.append(await producer.send_batch(batch, topic, partition=partitions[number % len(partitions)]))
        await producer.flush()
        for future in futures:
            await future

    async def _flush(self, records: Iterable[Record], _count: int) -> None:
        send, flush, topic, rest = self._producer.send, self._producer.flush, self._plan.topic, iter(records)
        while chunk := list(islice(rest, _per_flush(self._plan))):
            for key, value, _ in chunk:
                await send(topic, value, key)
            await flush()

    async def _paced(self, records: Iterable[Record], _count: int) -> None:
        send, topic = self._producer.send, self._plan.topic
        for (key, value, _), wait in _ticks(records):
            if wait > 0:
                await asyncio.sleep(wait)
            await send(topic, value, key)
        await self._producer.flush()

    def send_one(self) -> None:
        (record,) = self._content.records(1)
        self.run(self._producer.send_and_wait(self._plan.topic, record.value, record.key))

    async def send_only(self) -> None:
        (record,) = self._content.records(1)
        await self._producer.send(self._plan.topic, record.value, record.key)

    def close(self) -> None:
        self.run(self._producer.stop())
        self._loop.close()


class ConfluentProducer:
    """confluent-kafka: librdkafka queues up to a bound and then wants to be polled."""

    def __init__(self, bootstrap: str, plan: Plan, content: Content) -> None:
        from confluent_kafka import Producer

        options: dict[str, Any] = {"bootstrap.servers": bootstrap, "acks": plan.acks}
        if plan.codec != "none":
            options["compression.type"] = plan.codec
        if plan.linger_ms is not None:
            options["linger.ms"] = plan.linger_ms
        if is_large(plan.shape):
            options["message.max.bytes"] = LARGEST
        self._plan, self._content = plan, content
        self._producer = Producer(options)
        self._tally = Tally()

    def _delivered(self, error: Any, message: Any) -> None:
        if error:
            self._tally.fail(error)
        else:
            self._tally.success(message)

    def send_all(self, count: int) -> None:
        mode = "flush" if self._plan.mode.startswith("flush") else self._plan.mode
        getattr(self, f"_{mode}")(self._content.records(count), count)

    def _send(self, records: Iterable[Record], _count: int) -> None:
        produce, topic = self._producer.produce, self._plan.topic
        record = None
        if self._content.has_headers:
            for record in records:
                key, value, headers = record
                try:
                    produce(topic, value, key, headers=headers)
                except BufferError:
                    self._wait_and_produce(record)
        else:
            for record in records:
                key, value, _ = record
                try:
                    produce(topic, value, key)
                except BufferError:
                    self._wait_and_produce(record)
        self._finish()

    def _robin(self, records: Iterable[Record], _count: int) -> None:
        produce, topic = self._producer.produce, self._plan.topic
        for record, partition in zip(records, cycle(range(self._plan.partitions)), strict=False):
            try:
                produce(topic, record.value, record.key, partition)
            except BufferError:  # noqa: PERF203 - as above
                self._wait_and_produce(record, partition=partition)
        self._finish()

    def _callback(self, records: Iterable[Record], count: int) -> None:
        produce, poll, topic, delivered = self._producer.produce, self._producer.poll, self._plan.topic, self._delivered
        for number, record in enumerate(records):
            key, value, _ = record
            try:
                produce(topic, value, key, on_delivery=delivered)
            except BufferError:
                self._wait_and_produce(record, on_delivery=delivered)
            if not number % BULK:
                poll(0)
        self._finish()
        self._tally.check(count)

    def _many(self, records: Iterable[Record], _count: int) -> None:
        if not hasattr(self._producer, "produce_batch"):
            raise Unsupported("this version has no produce_batch")
        rest = iter(records)
        while messages := [{"value": value, "key": key} for key, value, _ in islice(rest, BULK)]:
            while self._producer.produce_batch(self._plan.topic, messages) < len(messages):
                messages = [message for message in messages if "_error" in message]
                for message in messages:
                    del message["_error"]
                self._producer.poll(0.05)
        self._finish()

    def _flush(self, records: Iterable[Record], _count: int) -> None:
        produce, topic, rest = self._producer.produce, self._plan.topic, iter(records)
        while chunk := list(islice(rest, _per_flush(self._plan))):
            for key, value, _ in chunk:
                produce(topic, value, key)
            self._finish()

    def _paced(self, records: Iterable[Record], _count: int) -> None:
        produce, topic = self._producer.produce, self._plan.topic
        for (key, value, _), wait in _ticks(records):
            if wait > 0:
                time.sleep(wait)
            produce(topic, value, key)
        self._finish()

    def _finish(self) -> None:
        left = self._producer.flush(TIMEOUT_S)
        if left:
            raise RuntimeError(f"{left} records were not sent in time")

    def _wait_and_produce(self, record: Record, **more: Any) -> None:
        while True:
            try:
                self._producer.produce(self._plan.topic, record.value, record.key, headers=record.headers, **more)
                return
            except BufferError:  # noqa: PERF203 - the library's way to say that its queue is full
                self._producer.poll(0.05)

    def send_one(self) -> None:
        (record,) = self._content.records(1)
        self._producer.produce(self._plan.topic, record.value, record.key, on_delivery=self._delivered)
        while not self._tally.delivered and not self._tally.failure:
            self._producer.poll(1)
        self._tally.check(1)

    def send_only(self) -> None:
        (record,) = self._content.records(1)
        self._producer.produce(self._plan.topic, record.value, record.key)
        self._producer.poll(0)

    def close(self) -> None:
        self._finish()


PRODUCERS = {
    "purekafka": ClassicProducer,
    "kafka-python": ClassicProducer,
    "aiokafka": AiokafkaProducer,
    "confluent-kafka": ConfluentProducer,
}
