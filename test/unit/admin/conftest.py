"""An administrator's coroutines against scripted brokers in memory, under a clock that jumps."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from kafka._runtime.loop import Loop
from kafka.admin.client import AdminCalls
from kafka.admin.core import AdminCore
from kafka.config import resolve
from kafka.future import Future
from kafka.protocol.metadata import MetadataResponse
from kafka.testing import MemoryNetwork, ScriptedBroker


class AdminCluster:
    """Brokers b0, b1, b2 that tell the same metadata."""

    def __init__(self, size: int = 3) -> None:
        self.network = MemoryNetwork()
        self.controller = 1
        self.leader = 0
        self.topics: dict[str, int] = {"t": 2}
        self.brokers = [ScriptedBroker(self.network, f"b{number}") for number in range(size)]
        for broker in self.brokers:
            broker.on("Metadata", self.metadata)

    def on(self, api: str, answer: Callable[[Any, int], Any]) -> None:
        """Have every broker answer an API with what a function of the request and the broker's id returns."""
        for number, broker in enumerate(self.brokers):
            broker.on(api, lambda request, _, number=number: answer(request, number))

    def metadata(self, request: Any, _session: Any) -> dict[str, Any]:
        reply = MetadataResponse
        names = self.topics if request.topics is None else [topic.name for topic in request.topics]
        return {
            "brokers": [
                reply.MetadataResponseBroker(node_id=number, host=broker.host, port=broker.port, rack=None)
                for number, broker in enumerate(self.brokers)
            ],
            "controller_id": self.controller,
            "cluster_id": "c",
            "topics": [
                reply.MetadataResponseTopic(
                    error_code=0 if name in self.topics else 3,
                    name=name,
                    partitions=[
                        reply.MetadataResponsePartition(
                            partition_index=index, leader_id=self.leader, replica_nodes=[0], isr_nodes=[0]
                        )
                        for index in range(self.topics.get(name, 0))
                    ],
                )
                for name in names
            ],
        }

    def asked(self, api: str) -> list[int]:
        """The brokers that got requests of an API, once for each."""
        return [number for number, broker in enumerate(self.brokers) for _ in broker.asked(api)]


class OnLoop:
    """An application that waits on the loop of the client itself, so that virtual time passes for its calls."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop

    async def run(self, coro: Coroutine[Any, Any, Any], deadline: float | None = None, what: str = "the call") -> Any:
        assert deadline is not None
        with self._loop.timeout_at(deadline, what):
            return await self._loop.spawn(coro)

    async def wait(
        self, future: Future[Any], deadline: float | None = None, begin: Callable[[], object] | None = None
    ) -> bool:
        raise NotImplementedError

    async def call(self, function: Callable[..., Any], *args: Any) -> Any:
        raise NotImplementedError


class Admin:
    """The calls of an administrator, and the loop that runs their coroutines."""

    def __init__(self, cluster: AdminCluster, **options: Any) -> None:
        options = {"metrics_enabled": False, **options}
        if "bootstrap_controllers" not in options:
            options.setdefault("bootstrap_servers", "b0,b1,b2")
        self.core = AdminCore(resolve("admin", options), cluster.network.environment())
        self.loop = self.core.loop
        self.calls = AdminCalls(self.core, OnLoop(self.loop))

    @property
    def now(self) -> float:
        return self.loop.time()

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to its end; time passes where it waits."""
        task = self.loop.spawn(coroutine)
        self.loop.run_until(task, self.now + 1000)
        return task.result()


@pytest.fixture
def cluster() -> AdminCluster:
    return AdminCluster()


@pytest.fixture
def admin(cluster: AdminCluster) -> Iterator[Admin]:
    admin = Admin(cluster)
    admin.run(admin.core.begin())
    yield admin
    admin.loop.close()
    assert not cluster.network.open_sockets
