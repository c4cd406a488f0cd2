"""The asyncio clients, ours and aiokafka's, by the same code: what users send and read, default options.

One operation of the producing and latency cases is one record, from the call to its acknowledgement; one operation of
the reading cases is one pass over a topic, each record looked at. ``sync-`` cases do the same with our synchronous
clients, so that it can be seen what asyncio costs.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from typing import Any

import consumers
import producers
import traffic
from latency import percentile
from workload import OURS, Case, Job, Target, Workload, main

_MODULES = {OURS: "kafka.aio", "aiokafka": "aiokafka"}
_SENT = "bench-aio-sent"
_SHAPES = ("mix", "json")
_RECORDS = {"mix": 60_000, "json": 30_000}
_TASKS = 100
_PERIOD = 0.010
_POLL_MS = 1000
_KEEP = {"retention.bytes": "-1", "retention.ms": "-1"}
_PRODUCING = ("send", "wait100", "latency")
_READING = ("iterate", "getmany")


def _topic(shape: str) -> str:
    return f"bench-aio-{shape}"


class Producing:
    """An asyncio producer, on an event loop that runs only while it is asked for something."""

    def __init__(self, impl: str, bootstrap: str, mode: str, content: traffic.Content) -> None:
        self._content = content
        self._mode: Callable[[int], Coroutine[Any, Any, None]] = getattr(self, f"_{mode}")
        self._loop = asyncio.new_event_loop()
        self._took: list[float] = []
        self._late: list[float] = []
        self._producer = self._loop.run_until_complete(self._start(_MODULES[impl], bootstrap))

    async def _start(self, module: str, bootstrap: str) -> Any:
        producer = importlib.import_module(module).AIOKafkaProducer(bootstrap_servers=bootstrap, acks="all")
        await producer.start()
        return producer

    def run(self, count: int) -> None:
        """Send that number of records, and return when all are acknowledged."""
        self._loop.run_until_complete(self._watched(count))

    async def _watched(self, count: int) -> None:
        """Send while another task is on a timer; how late it was is kept of the last call."""
        self._late = []
        timer = self._loop.create_task(self._tick())
        try:
            await self._mode(count)
        finally:
            timer.cancel()

    async def _tick(self) -> None:
        clock, late = self._loop.time, self._late
        while True:
            due = clock() + _PERIOD
            await asyncio.sleep(_PERIOD)
            late.append(clock() - due)

    async def _send(self, count: int) -> None:
        send, future = self._producer.send, None
        for key, value, _ in self._content.records(count):
            future = await send(_SENT, value, key)
        await self._producer.flush()
        if future is not None:
            await future

    async def _wait100(self, count: int) -> None:
        records = iter(self._content.records(count))
        await asyncio.gather(*(self._send_each(records) for _ in range(_TASKS)))

    async def _send_each(self, records: Iterator[traffic.Record]) -> None:
        send_and_wait = self._producer.send_and_wait
        for key, value, _ in records:
            await send_and_wait(_SENT, value, key)

    async def _latency(self, count: int) -> None:
        """One record after the other; only the times of the last call are kept, before it was the warm-up."""
        took = self._took = []
        send_and_wait, clock = self._producer.send_and_wait, time.perf_counter
        for key, value, _ in self._content.records(count):
            began = clock()
            await send_and_wait(_SENT, value, key)
            took.append(clock() - began)

    def figures(self) -> Mapping[str, float]:
        """In milliseconds: percentiles, of the cases that take times, and how late a timer of 10 ms was (p99)."""
        took, late = sorted(self._took), sorted(self._late)
        figures = {f"p{part}_ms": percentile(took, part) * 1000 for part in (50, 99)} if took else {}
        if late:
            figures["late_ms"] = percentile(late, 99) * 1000
        return figures

    def close(self) -> None:
        """Stop the producer, and end the event loop."""
        self._loop.run_until_complete(self._producer.stop())
        self._loop.close()


class Reading:
    """An asyncio consumer of one partition, on an event loop that runs only while it is asked for something."""

    def __init__(self, impl: str, bootstrap: str, mode: str, shape: str) -> None:
        self._count = _RECORDS[shape]
        self._mode: Callable[[], Awaitable[None]] = getattr(self, f"_{mode}")
        self._loop = asyncio.new_event_loop()
        self._consumer = self._loop.run_until_complete(self._start(_MODULES[impl], bootstrap, _topic(shape)))

    async def _start(self, module: str, bootstrap: str, topic: str) -> Any:
        library = importlib.import_module(module)
        self._partition = library.TopicPartition(topic, 0)
        consumer = library.AIOKafkaConsumer(
            bootstrap_servers=bootstrap, auto_offset_reset="earliest", fetch_max_wait_ms=traffic.FETCH_WAIT_MS
        )
        await consumer.start()
        consumer.assign([self._partition])
        return consumer

    def run(self, passes: int) -> None:
        """Read the whole topic, that many times."""
        self._loop.run_until_complete(self._read(passes))

    async def _read(self, passes: int) -> None:
        for _ in range(passes):
            self._consumer.seek(self._partition, 0)
            await self._mode()

    async def _iterate(self) -> None:
        seen = 0
        async for record in self._consumer:
            record.key, record.value  # noqa: B018 - looked at, as a user would
            seen += 1
            if seen == self._count:
                break

    async def _getmany(self) -> None:
        getmany, seen = self._consumer.getmany, 0
        while seen < self._count:
            for records in (await getmany(timeout_ms=_POLL_MS)).values():
                for record in records:
                    record.key, record.value  # noqa: B018
                seen += len(records)

    def close(self) -> None:
        """Stop the consumer, and end the event loop."""
        self._loop.run_until_complete(self._consumer.stop())
        self._loop.close()


def prepare(impl: str, case: str, args: argparse.Namespace) -> Job:
    """A client that is started; the warm-up makes connections, metadata and positions."""
    *sync, mode, shape = case.split("-")
    content = traffic.Content(shape, args.seed)
    if mode in _PRODUCING:
        if sync:
            plan = producers.Plan(_SENT, shape, linger_ms=0)
            producer: Any = producers.PRODUCERS[impl](args.bootstrap, plan, content)
            return Job(producer.send_all, bytes=content.mean_size, close=producer.close)
        sending = Producing(impl, args.bootstrap, mode, content)
        return Job(
            sending.run,
            bytes=content.mean_size,
            extra=sending.figures,
            close=sending.close,
            warm_up=20 if mode == "latency" else -1,
        )
    count = _RECORDS[shape]
    if sync:
        plan_of_reading = consumers.Plan(
            _topic(shape), shape, 1, count, mode="iterate" if mode == "iterate" else "poll"
        )
        reader: Any = consumers.CONSUMERS[impl](args.bootstrap, plan_of_reading)
        return Job(reader.read, count, count * content.mean_size, close=reader.close)
    reading = Reading(impl, args.bootstrap, mode, shape)
    return Job(reading.run, count, count * content.mean_size, close=reading.close)


def set_up(args: argparse.Namespace) -> None:
    """Make the topics and fill those to be read, if they are new."""
    traffic.make_topics(args.bootstrap, {_SENT: 1}, {})
    created = traffic.make_topics(args.bootstrap, {_topic(shape): 1 for shape in _SHAPES}, _KEEP)
    for shape in _SHAPES:
        if _topic(shape) in created:
            content = traffic.Content(shape, args.seed)
            traffic.fill(args.bootstrap, _topic(shape), content.records(_RECORDS[shape]), "none")


def _cases() -> list[Case]:
    cases = []
    for shape in _SHAPES:
        cases += [Case(f"{mode}-{shape}", "", start=1000) for mode in ("send", "wait100")]
        cases += [Case(f"{mode}-{shape}", "", start=1) for mode in _READING]
        cases.append(Case(f"latency-{shape}", "", start=200, same_count=True))
        cases.append(Case(f"sync-send-{shape}", "", start=1000, impls=(OURS,)))
        cases += [Case(f"sync-{mode}-{shape}", "", start=1, impls=(OURS,)) for mode in _READING]
    return cases


def _targets() -> list[Target]:
    held = [Target(f"{mode}-*", peer="aiokafka", at_least=1) for mode in ("send", "wait100", *_READING)]
    held.append(Target("latency-*", peer="aiokafka", metric="p50_ms", at_least=1))
    held += [Target(f"{mode}-*", metric="late_ms", at_most=10) for mode in ("send", "wait100")]
    for shape in _SHAPES:
        for mode, most in (("send", 1.3), ("getmany", 1.3), ("iterate", 1.5)):
            other = f"sync-{mode}-{shape}"
            held.append(Target(f"{mode}-{shape}", peer=OURS, peer_case=other, at_least=round(1 / most, 3)))
    return held


WORKLOAD = Workload(
    title="asyncio: records to and from a real broker",
    unit="record",
    impls=tuple(_MODULES),
    cases=_cases(),
    prepare=prepare,
    targets=_targets(),
    settings={
        "options": "each library's defaults, but acks=all where the default is less, and "
        f"{traffic.FETCH_WAIT_MS} ms of wait at the end of the log",
        "send, wait100, latency": f"send() in a loop and a flush; send_and_wait() from {_TASKS} tasks; from one",
        "iterate, getmany": "async for; getmany() without a number of records (ours returns 500, aiokafka all it has)",
        "sync": "the same with KafkaProducer (linger_ms=0) and KafkaConsumer: send(), iteration, poll()",
        "records": "mix: values of 20 to 300 B; json: documents of 80 to 2,000 B; a key on every second record",
        "topics": "of one partition; those to be read in batches of "
        f"{traffic.BATCH_BYTES:,} B, random content, read to the end as often as needed",
    },
    needs_broker=True,
    set_up=set_up,
    set_up_impl="confluent-kafka",
)

if __name__ == "__main__":
    main(WORKLOAD)
