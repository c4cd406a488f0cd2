"""What all calls of an administrator share: the client core, deadlines, questions to one broker or to all of them.

The classes `Topics`, `Cluster` and so on hold the calls as coroutines over this; they await futures of the client core
and know nothing of threads. A face brings the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable
from typing import Any, TypeVar

from kafka._core.client import NodeId, make_client
from kafka._runtime.tasks import TaskGroup
from kafka.config import Config
from kafka.errors import KafkaError, RetriableError, UnsupportedVersionError
from kafka.net.environment import Environment
from kafka.net.versions import BrokerVersions

__all__ = ["AdminCore"]

T = TypeVar("T")


class AdminCore:
    """The client of an administrator, and ways to ask brokers by a deadline."""

    def __init__(self, config: Config, environment: Environment | None = None) -> None:
        self.config = config
        self.client = make_client(config, environment)
        self.loop = self.client.loop
        self._default_timeout = config.seconds("default_api_timeout_ms")

    def timeout(self, timeout_ms: float | None) -> float:
        """Return the seconds that a call may take."""
        return self._default_timeout if timeout_ms is None else timeout_ms / 1000

    async def begin(self) -> None:
        """Find the cluster; with bootstrap_timeout_ms=0 that is left to the first call."""
        if self.config["bootstrap_timeout_ms"] != 0:
            await self.client.bootstrap()

    async def _found(self, deadline: float) -> None:
        """Wait until the cluster is known."""
        if self.client.versions is not None and self.client.cluster.update_age() is not None:
            return
        try:
            async for attempt in self.client.attempts(deadline, "looking for a broker"):
                with attempt:
                    await self.client.refresh(attempt.deadline)
        except RetriableError as error:  # which is the last one; each address has its own
            raise self.client.nobody("No broker answered in time") from error

    async def versions(self, deadline: float) -> BrokerVersions:
        """Return what the brokers speak, after finding one if none was found yet."""
        await self._found(deadline)
        found = self.client.versions
        assert found is not None  # metadata came over a connection, which begins with the versions
        return found

    async def version_of(self, request: Any, deadline: float) -> int:
        """Return the version in which a request will be sent."""
        return (await self.versions(deadline)).version_for(request)

    def unsupported(self, what: str, release: str) -> UnsupportedVersionError:
        """Return the error about what needs a newer broker."""
        versions = self.client.versions
        known = "" if versions is None else f"; the broker is {'.'.join(map(str, versions.release))}"
        return UnsupportedVersionError(f"{what} needs Kafka {release}{known}")

    async def ask(self, request: Any, deadline: float, what: str, *, node_id: NodeId | None = None) -> Any:
        """Send a request to the broker that it is for, and return the response; a lost connection is tried again."""
        await self.versions(deadline)
        response: Any = None
        async for attempt in self.client.attempts(deadline, what):
            with attempt:
                response = await self.client.request(request, node_id=node_id, deadline=attempt.deadline)
        return response

    async def gather(self, coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        """Run coroutines at the same time and return their results in order; the first error ends all."""
        async with TaskGroup(self.loop) as group:
            tasks = [group.spawn(coroutine) for coroutine in coroutines]
        return [task.result() for task in tasks]

    async def brokers(self, deadline: float) -> list[int]:
        """Return the ids of all brokers."""
        await self._found(deadline)
        return sorted(int(node_id) for node_id in self.client.cluster.topology.brokers)

    async def ask_each(
        self, node_ids: Iterable[int], make: Callable[[int], Any], deadline: float, what: str
    ) -> dict[int, Any]:
        """Ask brokers at the same time; return the response of each, or its `KafkaError`."""

        async def ask(node_id: int) -> tuple[int, Any]:
            try:
                return node_id, await self.ask(make(node_id), deadline, what, node_id=node_id)
            except KafkaError as error:
                return node_id, error

        return dict(await self.gather([ask(node_id) for node_id in node_ids]))
