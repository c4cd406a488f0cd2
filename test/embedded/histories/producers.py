"""Histories of producers without transactions: every way to send, flush, purge and close, while brokers fail.

The model knows each record that an application has sent, and what it was told of it. Checked against the log:

P2  per partition the order of sends, and with idempotence no record twice;
P3  every future resolves, once, and by delivery_timeout_ms, also when the producer is closed;
P4  what has failed is not in the log unless the error says that it may be, and what succeeded is where the future says;
P11 a send() that was cancelled has not sent;
P13 calls end within their limits, and nothing is left: thread, task, socket.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from kafka import KafkaProducer
from kafka.aio import AIOKafkaProducer
from kafka.broker import Broker
from kafka.errors import KafkaError, KafkaTimeoutError

from . import faults
from .history import GRACE, CutShort, Kind, Step, chooser, now

NODES = 3
TOPICS = {"a": 3, "b": 2}
ALL = [(topic, number) for topic, count in TOPICS.items() for number in range(count)]
PATIENCE = 40.0
CODES = {
    "Produce": (*faults.PRODUCE, 2, 29, 87),
    "Metadata": (5,),
    "InitProducerId": (14, 15, 16, 51),
}
STEPS = {
    "send": 20,
    "send_keyed": 8,
    "send_many": 10,
    "send_and_wait": 8,
    "send_batch": 6,
    "cut_send": 6,
    "flush": 6,
    "cut_flush": 3,
    "purge": 2,
    "close": 3,
    "rest": 5,
    "fault": 22,
    "outage": 1,
    "trickle": 2,
    "crowd": 3,
}


@dataclass
class Sent:
    """A record, and what the application was told of it."""

    producer: int
    value: bytes
    topic: str
    partition: int | None
    future: Any = None
    when: float = field(default_factory=time.monotonic)
    #: Which of several threads or tasks has sent it.
    line: int = 0
    #: Whether it may be in the log: "no" if send() has raised, "maybe" if that was interrupted.
    may_be: str = "yes"
    calls: list[Any] = field(default_factory=list)
    #: What send_and_wait() has returned or raised.
    outcome: Any = None


class Producers(faults.Faults, Kind):
    """One producer after the other."""

    length = 35

    def __init__(self, seed: int, face: str) -> None:
        super().__init__(seed, face)
        rng = self.rng
        self.acks: Any = rng.choice(["all", "all", "all", "all", 1, 0])
        self.idempotent = self.acks == "all" and rng.random() < 0.85
        self.delivery = rng.choice([0.8, 15.0, 15.0])
        self.options: dict[str, Any] = {
            "acks": self.acks,
            "enable_idempotence": self.idempotent,
            "linger_ms": rng.choice([0, 0, 1, 20]),
            "batch_size": rng.choice([100, 1000, 16384]),
            "compression_type": rng.choice([None, None, "gzip"]),
            "max_in_flight_requests_per_connection": rng.choice([1, 5, 5]),
            "delivery_timeout_ms": int(self.delivery * 1000),
            "request_timeout_ms": 250,
            "max_block_ms": 3000,
            "buffer_memory": rng.choice([30_000, 32 << 20]),
            "retry_backoff_ms": 5,
            "retry_backoff_max_ms": 50,
            "reconnect_backoff_ms": 5,
            "reconnect_backoff_max_ms": 20,
        }
        if face == "asyncio":
            del self.options["buffer_memory"]
        self.most = rng.choice([None, None, 4000])
        self.produce_version = rng.choice([12, 11, 9, 7])
        self.broker = Broker(nodes=NODES, seed=seed)
        self.producer: Any = None
        self.born = self.count = 0
        self.sent: list[Sent] = []

    def settings(self) -> str:
        return f"max.message.bytes {self.most}, Produce v{self.produce_version}: {self.options}"

    @classmethod
    def steps(cls, rng: random.Random, length: int) -> list[Step]:  # noqa: C901, PLR0912 - two lines for each kind
        name_of = chooser(rng, STEPS)
        found: list[Step] = []
        while len(found) < length:
            name = name_of()
            topic, partition = rng.choice(ALL)
            arguments: dict[str, Any] = {"topic": topic, "size": rng.choice([1, 30, 30, 300, 3000])}
            if name in {"send", "cut_send", "send_and_wait"}:
                arguments |= {"partition": rng.choice([None, partition]), "count": rng.choice([1, 2, 10])}
            elif name == "send_keyed":
                arguments |= {"count": rng.choice([1, 5, 20])}
            elif name in {"send_many", "send_batch"}:
                arguments |= {"partition": partition, "count": rng.choice([2, 20, 60])}
            elif name == "flush":
                arguments = {"timeout": rng.choice([None, 0.01, 2.0])}
            elif name == "purge":
                arguments = {"in_flight": rng.random() < 0.5}
            elif name == "close":
                arguments = {"timeout": rng.choice([0, 0.02, 1.0, None])}
            elif name == "crowd":
                where = rng.choice([{"partition": None}, {"partition": partition}, {"keyed": True}])
                arguments = {"topic": topic, "count": rng.choice([5, 50]), **where}
            elif name == "trickle":
                arguments = {
                    "partition": partition,
                    "topic": topic,
                    "count": rng.choice([3, 6]),
                    "silent": rng.randint(1, 4),
                }
            elif name == "rest":
                arguments = {"seconds": rng.choice([0.0, 0.005, 0.03])}
            elif name == "outage":
                arguments = {"seconds": rng.choice([0.3, 1.5])}
            elif name == "fault":
                found.append(rng.choice(faults.steps(rng, CODES, NODES)))
                continue
            if name.startswith("cut"):
                arguments["cut"] = rng.random()
                if name == "cut_flush":
                    arguments = {"cut": arguments["cut"]}
            found.append(Step(name, arguments))
        return found

    async def begin(self) -> None:
        self.broker.start()
        self.broker.advertise("Produce", 0, self.produce_version)
        configs = {} if self.most is None else {"max.message.bytes": self.most}
        for topic, count in TOPICS.items():
            self.broker.create_topic(topic, count, configs=configs)
        await self.make()

    async def make(self) -> None:
        self.born += 1
        options = {"bootstrap_servers": self.broker.bootstrap_servers, "client_id": f"p{self.born}", **self.options}
        if self.face == "threads":
            self.producer = KafkaProducer(**options)
        else:
            self.producer = AIOKafkaProducer(**options)
            await self.producer.start()

    async def do(self, step: Step) -> None:
        await super().do(step)
        self.check_times()

    # What must hold

    def check_times(self) -> None:
        moment = time.monotonic()
        for sent in self.sent:
            if sent.future is not None and moment > sent.when + self.delivery + GRACE:
                assert sent.future.done(), f"{sent.value[:12]!r} has waited for {moment - sent.when:.1f} s"

    def outcome(self, sent: Sent) -> Any:
        """Return what is known of a record of a closed producer: its metadata or its error."""
        if sent.future is None:
            return sent.outcome
        assert sent.future.done(), f"the producer is closed, and {sent.value[:12]!r} is not done"
        error = sent.future.exception() if self.face == "asyncio" else sent.future.exception
        if error is not None:
            return error
        found = sent.future.result() if self.face == "asyncio" else sent.future.get(timeout=0)
        again = sent.future.result() if self.face == "asyncio" else sent.future.get(timeout=0)
        assert found == again
        return found

    # How records are sent

    def values(self, count: int, size: int) -> list[bytes]:
        self.count += count
        return [b"%d." % (self.count - count + number) + b"x" * size for number in range(count)]

    def watch(self, sent: Sent) -> None:
        future = sent.future
        if self.face == "asyncio":
            future.add_done_callback(sent.calls.append)
        else:
            future.add_callback(sent.calls.append)
            future.add_errback(sent.calls.append)

    async def add(
        self, topic: str, partition: int | None, value: bytes, key: bytes | None = None, *, line: int = 0
    ) -> None:
        sent = Sent(self.born, value, topic, partition, line=line)
        self.sent.append(sent)
        try:
            sent.future = await self.call(
                self.producer.send, topic, value, key=key, partition=partition, limit=3 + self.delivery
            )
        except KafkaError as error:
            sent.may_be = "no"
            self.note(f"send() raised {error!r}"[:300])
        except BaseException:
            # A send() that is cancelled has not sent; Ctrl-C may come after the record was added.
            sent.may_be = "no" if self.face == "asyncio" else "maybe"
            raise
        else:
            self.watch(sent)

    async def send(self, topic: str, size: int, partition: int | None, count: int) -> None:
        """Call send()."""
        for value in self.values(count, size):
            await self.add(topic, partition, value)

    async def send_keyed(self, topic: str, size: int, count: int) -> None:
        """Call send() with keys."""
        for number, value in enumerate(self.values(count, size)):
            await self.add(topic, None, value, key=b"k%d" % (number % 5))

    async def cut_send(self, topic: str, size: int, partition: int | None, count: int, cut: float) -> None:
        """Call send(), and be cancelled or interrupted."""
        with suppress(CutShort):
            await self.cut(cut, lambda: self.send(topic, size, partition, count))

    async def send_and_wait(self, topic: str, size: int, partition: int | None, count: int) -> None:
        """Wait for each record; on the blocking face by send().get()."""
        for value in self.values(min(count, 3), size):
            if self.face == "threads":
                await self.add(topic, partition, value)
                future = self.sent[-1].future
                if future is not None:
                    with suppress(KafkaError):
                        await self.call(future.get, timeout=self.delivery + GRACE, limit=self.delivery)
                    assert future.done()
                continue
            sent = Sent(self.born, value, topic, partition)
            self.sent.append(sent)
            try:
                sent.outcome = await self.call(
                    self.producer.send_and_wait, topic, value, partition=partition, limit=3 + self.delivery
                )
            except KafkaError as error:
                sent.outcome = error

    async def send_many(self, topic: str, size: int, partition: int, count: int) -> None:
        """Call send_many(): values alone, or with keys and partitions."""
        values = self.values(count, size)
        plain = count % 3 == 0
        records = values if plain else [(None, value, None, partition) for value in values]
        many = [Sent(self.born, value, topic, None if plain else partition) for value in values]
        self.sent += many
        try:
            futures = await self.call(self.producer.send_many, topic, records, limit=3 + self.delivery)
        except KafkaError as error:
            self.note(f"send_many() raised {error!r}"[:300])
            for sent in many:
                sent.may_be = "maybe"  # those before the one at fault are on their way
            return
        for sent, future in zip(many, futures, strict=True):
            sent.future = future
            self.watch(sent)
        if count == 20:
            try:
                found = await self.call(futures.get, limit=self.delivery) if self.face == "threads" else await futures
                assert len(found) == len(values)
            except KafkaError:
                pass
            assert all(future.done() for future in futures), "send_many() was waited for, and a record is not done"

    async def send_batch(self, topic: str, size: int, partition: int, count: int) -> None:
        """Send a batch that the application has filled; on the blocking face send() to one partition."""
        if self.face == "threads":
            await self.send(topic, size, partition, count)
            return
        batch = self.producer.create_batch()
        many = []
        for value in self.values(count, size):
            if batch.append(timestamp=1_700_000_000_000, key=None, value=value) is None:
                break
            many.append(Sent(self.born, value, topic, partition))
        if not many:
            return
        self.sent += many
        try:
            future = await self.call(self.producer.send_batch, batch, topic, partition=partition, limit=3)
        except KafkaError as error:
            self.note(f"send_batch() raised {error!r}"[:300])
            for sent in many:
                sent.may_be = "no"
            return
        many[0].future = future
        self.watch(many[0])
        for sent in many[1:]:
            sent.may_be = "maybe"  # has no future: what becomes of it is what becomes of the batch

    async def crowd(self, topic: str, count: int, partition: int | None = None, keyed: bool = False) -> None:
        """Send from several threads, or tasks, at the same time."""
        lines = [self.add_line(topic, partition, self.values(count, 10), line, keyed) for line in range(1, 5)]
        if self.face == "asyncio":
            await asyncio.gather(*lines)
            return
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-6)
        try:
            with ThreadPoolExecutor(len(lines)) as pool:
                for done in [pool.submit(now, line) for line in lines]:
                    done.result()
        finally:
            sys.setswitchinterval(before)

    async def add_line(self, topic: str, partition: int | None, values: list[bytes], line: int, keyed: bool) -> None:
        for number, value in enumerate(values):
            await self.add(topic, partition, value, b"k%d" % (number % 5) if keyed else None, line=line)

    # What else the application calls

    async def flush(self, timeout: float | None) -> None:
        """Wait for all records, or for a while."""
        try:
            await self.call(self.producer.flush, timeout=timeout, limit=timeout or self.delivery)
        except KafkaTimeoutError:
            assert timeout is not None
            return
        for sent in self.sent:
            assert sent.future is None or sent.future.done(), f"flush() returned, {sent.value[:12]!r} is not done"

    async def cut_flush(self, cut: float) -> None:
        """Wait for all records, and be cancelled or interrupted."""
        with suppress(CutShort):
            await self.cut(cut, lambda: self.flush(None))

    async def purge(self, in_flight: bool) -> None:
        """Give up what is not sent."""
        await self.call(self.producer.purge, in_flight=in_flight)

    async def close(self, timeout: float | None) -> None:
        """Close the producer, and go on with another one."""
        await self.end(timeout)
        await self.make()

    async def end(self, timeout: float | None) -> None:
        await self.call(self.producer.close, timeout, limit=30 + self.delivery if timeout is None else timeout)
        for sent in self.sent:
            if sent.future is not None:
                assert sent.future.done(), f"close() returned, {sent.value[:12]!r} is not done"

    async def rest(self, seconds: float) -> None:
        """Let brokers, threads and tasks work, but not the application."""
        await asyncio.sleep(seconds)

    async def outage(self, seconds: float) -> None:
        """Stop all brokers for a while; records that wait are a problem that health() names."""
        for node in range(1, NODES + 1):
            self.broker.stop_node(node, crash=True)
        try:
            await self.send("a", 10, 0, 1)
            if seconds > 1 and self.delivery > 5 and not self.sent[-1].calls:
                deadline = time.monotonic() + PATIENCE
                while (health := await self.call(self.producer.health))["ok"] and not self.sent[-1].calls:
                    assert time.monotonic() < deadline, f"no broker is there, and health() says {health}"
                    await asyncio.sleep(0.01)
            else:
                await asyncio.sleep(seconds)
        finally:
            for node in range(1, NODES + 1):
                self.broker.start_node(node)

    async def trickle(self, topic: str, partition: int, count: int, silent: int) -> None:
        """Send a few at a time while brokers do not answer: some expire, and those behind them are sent."""
        await self.lose("Produce", "silence", silent % 2 == 0, silent)
        for _ in range(count):
            await self.send(topic, 60, partition, 3)
            await asyncio.sleep(0.2)

    async def serve_late(self, api: str, seconds: float) -> None:
        """Serve a request after its connection has ended: without idempotence it overtakes what follows it."""
        if self.idempotent:
            await super().serve_late(api, seconds)

    # The end

    async def finish(self) -> None:
        self.broker.clear_faults()
        await self.send("a", 10, 0, 2)
        last = self.sent[-1]
        await self.flush(None)
        await self.end(None)
        if self.face == "asyncio":
            await asyncio.sleep(0)  # callbacks are called by the event loop
            await asyncio.sleep(0)
        self.check_log()
        assert last.future is not None, "nothing fails any more, and send() raises"
        assert self.delivery < 10 or not isinstance(self.outcome(last), BaseException), "nothing fails any more"

    def check_log(self) -> None:
        places: dict[bytes, list[tuple[str, int, int]]] = {}
        for where in ALL:
            for record in self.broker.records(*where):
                places.setdefault(record.value, []).append((*where, record.offset))
        numbers = {sent.value: ((sent.producer, sent.line), number) for number, sent in enumerate(self.sent)}
        assert places.keys() <= numbers.keys(), "the log has records that nobody sent"
        for sent in self.sent:
            self.check_record(sent, places.get(sent.value, []))
        if self.idempotent or self.options["max_in_flight_requests_per_connection"] == 1:
            self.check_order(numbers)

    def check_record(self, sent: Sent, places: list[tuple[str, int, int]]) -> None:
        what = f"{sent.value[:12]!r} of {sent.topic} {sent.partition}"
        assert len(places) < 2 or not self.idempotent, f"{what} is twice in the log: {places}"
        for topic, partition, _ in places:
            assert (topic, partition) == (sent.topic, partition if sent.partition is None else sent.partition)
        if sent.may_be == "no":
            assert not places, f"{what} was not accepted, and is in the log"
            return
        outcome = None if sent.may_be == "maybe" else self.outcome(sent)
        if outcome is None:
            return
        if sent.future is not None:
            assert len(sent.calls) == 1, f"{what}: its callback was called {len(sent.calls)} times"
        if isinstance(outcome, BaseException):
            # All faults pass in a moment: what waits for longer waits for something that does not come.
            expired = isinstance(outcome, KafkaTimeoutError) and self.delivery > 10
            assert not expired, f"{what} has expired: {outcome!r}"
            assert not places or getattr(outcome, "outcome_unknown", False), (
                f"{what} is in the log, despite {outcome!r}"
            )
        elif self.acks != 0:
            where = (outcome.topic, outcome.partition, outcome.offset)
            assert where in places or (where[2] == -1 and places), f"{what} is at {places}, its future says {where}"

    def check_order(self, numbers: dict[bytes, tuple[tuple[int, int], int]]) -> None:
        for where in ALL:
            seen: set[bytes] = set()
            last: dict[tuple[int, int], int] = {}
            for record in self.broker.records(*where):
                if record.value in seen:
                    continue  # a retry
                seen.add(record.value)
                producer, number = numbers[record.value]
                assert number > last.get(producer, -1), (
                    f"{where}: {record.value[:12]!r} was sent before the one before it"
                )
                last[producer] = number

    async def free(self) -> None:
        if self.producer is not None:
            with suppress(Exception):
                await self.call(self.producer.close, 0)
        self.broker.close()
