"""What clients cost that nobody uses: 25 producers that have sent a record, and 25 consumers that have polled.

One operation is a second in which the application does nothing, so the figure is the microseconds of CPU in a second
(10,000 of them are one percent of a core). In ``polling`` a call that waits asks each consumer for records,
in a thread of the application; no records come.
"""

from __future__ import annotations

import argparse
import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import traffic
from workload import Case, Job, Target, Unsupported, Workload, main

_TOPIC = "bench-idle"
_CLIENTS = 25
_WAIT_S = 0.5
_MODES = ("plain", "group", "polling")


class Idle:
    """Clients of one library, and what they are asked for meanwhile."""

    def __init__(self, poll: Callable[[Any], object], producers: list[Any], consumers: list[Any], mode: str) -> None:
        self._stop = False
        self._producers, self._consumers = producers, consumers
        for consumer in consumers:
            poll(consumer)
        self._threads = []
        if mode == "polling":
            self._threads = [threading.Thread(target=self._poll, args=(poll, consumer)) for consumer in consumers]
            for thread in self._threads:
                thread.start()

    def _poll(self, poll: Callable[[Any], object], consumer: Any) -> None:
        while not self._stop:
            poll(consumer)

    def run(self, seconds: int) -> None:
        """Wait."""
        time.sleep(seconds)

    def figures(self) -> Mapping[str, float]:
        """The threads of Python in the process."""
        return {"threads": threading.active_count()}

    def close(self) -> None:
        """Close the clients."""
        self._stop = True
        for thread in self._threads:
            thread.join()
        for client in (*self._producers, *self._consumers):
            if hasattr(client, "close"):
                client.close()


def _classic(bootstrap: str, mode: str) -> Idle:
    try:
        from kafka import KafkaConsumer, KafkaProducer
    except ImportError as error:
        raise Unsupported("there is no KafkaProducer in it") from error
    producers = [KafkaProducer(bootstrap_servers=bootstrap) for _ in range(_CLIENTS)]
    for producer in producers:
        producer.send(_TOPIC, b"x").get(traffic.TIMEOUT_S)
    consumers = [
        KafkaConsumer(_TOPIC, bootstrap_servers=bootstrap, group_id=f"idle-{at}" if mode == "group" else None)
        for at in range(_CLIENTS)
    ]
    return Idle(lambda consumer: consumer.poll(timeout_ms=_WAIT_S * 1000), producers, consumers, mode)


def _confluent(bootstrap: str, mode: str) -> Idle:
    from confluent_kafka import Consumer, Producer, TopicPartition

    producers = [Producer({"bootstrap.servers": bootstrap}) for _ in range(_CLIENTS)]
    for producer in producers:
        producer.produce(_TOPIC, b"x")
        producer.flush()
    consumers = [Consumer({"bootstrap.servers": bootstrap, "group.id": f"idle-{at}"}) for at in range(_CLIENTS)]
    for consumer in consumers:
        if mode == "group":
            consumer.subscribe([_TOPIC])
        else:
            consumer.assign([TopicPartition(_TOPIC, number) for number in range(6)])
    return Idle(lambda consumer: consumer.poll(_WAIT_S), producers, consumers, mode)


class IdleTasks:
    """The clients of aiokafka, on an event loop that runs while the clock does."""

    def __init__(self, bootstrap: str, mode: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._clients: list[Any] = []
        self._loop.run_until_complete(self._start(bootstrap, mode))

    async def _start(self, bootstrap: str, mode: str) -> None:
        from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

        for at in range(_CLIENTS):
            producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
            group = f"idle-{at}" if mode == "group" else None
            consumer = AIOKafkaConsumer(_TOPIC, bootstrap_servers=bootstrap, group_id=group)
            self._clients += [producer, consumer]
            await producer.start()
            await producer.send_and_wait(_TOPIC, b"x")
            await consumer.start()
            if mode == "polling":
                self._clients.append(_Getting(self._loop.create_task(_poll(consumer))))

    def run(self, seconds: int) -> None:
        """Wait."""
        self._loop.run_until_complete(asyncio.sleep(seconds))

    def close(self) -> None:
        """Stop the clients."""
        for client in reversed(self._clients):
            self._loop.run_until_complete(client.stop())
        self._loop.close()


class _Getting:
    def __init__(self, task: asyncio.Task[None]) -> None:
        self._task = task

    async def stop(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)


async def _poll(consumer: Any) -> None:
    while True:
        await consumer.getmany(timeout_ms=round(_WAIT_S * 1000))


def prepare(impl: str, case: str, args: argparse.Namespace) -> Job:
    """Three seconds pass before the clock starts: the last requests of the beginning are answered."""
    if impl == "aiokafka":
        tasks = IdleTasks(args.bootstrap, case)
        return Job(tasks.run, close=tasks.close, warm_up=3)
    idle = (_confluent if impl == "confluent-kafka" else _classic)(args.bootstrap, case)
    return Job(idle.run, extra=idle.figures, close=idle.close, warm_up=3)


def set_up(args: argparse.Namespace) -> None:
    """Make the topic."""
    traffic.make_topics(args.bootstrap, {_TOPIC: 6}, {})


WORKLOAD = Workload(
    title="clients that nobody uses",
    unit="second",
    impls=("purekafka", "kafka-python", "aiokafka", "confluent-kafka"),
    cases=[Case(mode, "", start=5, same_count=True) for mode in _MODES],
    prepare=prepare,
    targets=[
        Target("plain", at_most=5000),
        Target("group", at_most=5000),
        Target("polling", peer="confluent-kafka", at_least=0.5),
    ],
    settings={
        "clients": f"{_CLIENTS} producers and {_CLIENTS} consumers of 6 partitions in one process, default options",
        "plain, group": "nobody polls; in group each consumer is a member of a group of its own",
        "polling": f"each consumer waits for records in calls of {_WAIT_S:.1f} s, in threads (aiokafka: tasks)",
    },
    needs_broker=True,
    set_up=set_up,
    set_up_impl="confluent-kafka",
    run_s=5,
)

if __name__ == "__main__":
    main(WORKLOAD)
