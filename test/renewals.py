"""Clients that work while their sessions end again and again (KIP-368): produce, consume, commit, administer.

Each function works on the topic until `enough()`, and returns the values that it sent and those that it received.
The log has a warning for each connection that is lost, so a test looks there.
"""

from __future__ import annotations

import asyncio
import threading
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from json import dumps
from types import SimpleNamespace
from typing import Any, Final

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.aio import AIOKafkaAdminClient, AIOKafkaConsumer, AIOKafkaProducer

__all__ = ["OAUTH", "SCRAM", "scram", "unsigned_token", "work", "work_with_asyncio"]

_PATIENCE: Final = 60.0


def scram(user: str, password: str) -> dict[str, Any]:
    return {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }


def unsigned_token() -> str:
    claims = {"sub": "ann", "iat": int(time.time()), "exp": int(time.time()) + 3600}
    parts = (urlsafe_b64encode(dumps(part).encode()).rstrip(b"=").decode() for part in ({"alg": "none"}, claims))
    return ".".join((*parts, ""))


SCRAM: Final = scram("ann", "secret")
OAUTH: Final = {
    "security_protocol": "SASL_PLAINTEXT",
    "sasl_mechanism": "OAUTHBEARER",
    "sasl_oauth_token_provider": SimpleNamespace(token=unsigned_token),
}


class _Work:
    """What was sent and received, and whether that is enough."""

    def __init__(self, enough: Callable[[], bool], topic: str, options: dict[str, Any]) -> None:
        self.sent: list[bytes] = []
        self.received: list[bytes] = []
        self.stopping = False
        self.options = options
        # Without idempotence a batch that is sent again, because its connection was lost, shows.
        self.producing: dict[str, Any] = {"enable_idempotence": False, "acks": "all", **options}
        self.consuming: dict[str, Any] = {"auto_offset_reset": "earliest", "enable_auto_commit": False, **options}
        self.consuming["group_id"] = f"{topic}-readers"
        self.topic = topic
        self._enough = enough
        self._deadline = time.monotonic() + 2 * _PATIENCE

    def goes_on(self) -> bool:
        """Whether to work on; the consumer does until it has all records."""
        self.stopping = self.stopping or self._enough()
        assert self.stopping or time.monotonic() < self._deadline, "not enough sessions were renewed"
        return not self.stopping

    def next_record(self) -> dict[str, Any]:
        """Return the next record, of some key."""
        self.sent.append(b"%d" % len(self.sent))
        return {"value": self.sent[-1], "key": b"%d" % (len(self.sent) % 7)}

    def is_complete(self) -> bool:
        """Whether the consumer has all records, or has waited for too long."""
        return self.stopping and (len(self.received) >= len(self.sent) or time.monotonic() > self._deadline)


class _Blocking(_Work):
    def produce(self) -> None:
        with KafkaProducer(**self.producing) as producer:
            futures = []
            while self.goes_on():
                futures.append(producer.send(self.topic, **self.next_record()))
                self.pause.wait(0.001)
            for future in futures:
                future.get(_PATIENCE)

    def administer(self) -> None:
        with KafkaAdminClient(**self.options) as admin:
            while self.goes_on():
                assert self.topic in admin.list_topics()
                admin.list_groups()
                self.pause.wait(0.01)

    def consume(self) -> None:
        with KafkaConsumer(self.topic, **self.consuming) as consumer:
            while not self.is_complete():
                for records in consumer.poll(timeout_ms=20).values():
                    self.received.extend(record.value for record in records)
                consumer.commit()

    def run(self) -> None:
        self.pause = threading.Event()  # which nobody sets
        with ThreadPoolExecutor(3) as pool:
            tasks = [pool.submit(self._run, task) for task in (self.produce, self.administer, self.consume)]
        for task in tasks:
            task.result()

    def _run(self, task: Callable[[], None]) -> None:
        try:
            task()
        except BaseException:
            self.stopping = True
            raise


class _Asyncio(_Work):
    async def produce(self) -> None:
        async with AIOKafkaProducer(**self.producing) as producer:
            futures = []
            while self.goes_on():
                futures.append(await producer.send(self.topic, **self.next_record()))
                await asyncio.sleep(0.001)
            await asyncio.wait_for(asyncio.gather(*futures), _PATIENCE)

    async def administer(self) -> None:
        async with AIOKafkaAdminClient(**self.options) as admin:
            while self.goes_on():
                assert self.topic in await admin.list_topics()
                await admin.list_groups()
                await asyncio.sleep(0.01)

    async def consume(self) -> None:
        async with AIOKafkaConsumer(self.topic, **self.consuming) as consumer:
            while not self.is_complete():
                for records in (await consumer.getmany(timeout_ms=20)).values():
                    self.received.extend(record.value for record in records)
                await consumer.commit()

    async def run(self) -> None:
        await asyncio.gather(self.produce(), self.administer(), self.consume())


def work(enough: Callable[[], bool], topic: str, **options: Any) -> tuple[list[bytes], list[bytes]]:
    """Work with the blocking clients, each in a thread: a record each millisecond meanwhile."""
    blocking = _Blocking(enough, topic, options)
    blocking.run()
    return blocking.sent, blocking.received


def work_with_asyncio(enough: Callable[[], bool], topic: str, **options: Any) -> tuple[list[bytes], list[bytes]]:
    """Work with the asyncio clients, each in a task: a record each millisecond meanwhile."""
    tasks = _Asyncio(enough, topic, options)
    asyncio.run(tasks.run())
    return tasks.sent, tasks.received
