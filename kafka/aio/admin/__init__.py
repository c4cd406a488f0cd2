"""Administration of a cluster from a task of asyncio: `AIOKafkaAdminClient`, and the names that aiokafka has here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.admin.client import AdminCalls, AdminStatus
from kafka.admin.core import AdminCore
from kafka.admin.records import RecordsToDelete
from kafka.admin.resources import NewPartitions, NewTopic
from kafka.aio.arguments import checked_config
from kafka.aio.lifecycle import Lifecycle, Phase
from kafka.config import given_options, name_client

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Mapping

    from typing_extensions import Unpack

    from kafka._core.client import Client
    from kafka._runtime.asyncio_driver import AsyncioDriver, ThreadedAsyncioDriver
    from kafka._runtime.loop import Loop
    from kafka.config import Config
    from kafka.options import AIOAdminOptions

__all__ = ["AIOKafkaAdminClient", "NewPartitions", "NewTopic", "RecordsToDelete"]


class AIOKafkaAdminClient(AdminStatus, Lifecycle, AdminCalls):
    """Looks at a cluster and changes it: every call of `kafka.KafkaAdminClient`, to be awaited.

    ::

        async with AIOKafkaAdminClient(bootstrap_servers="localhost:9092") as admin:
            await admin.create_topics([NewTopic("events", num_partitions=3)])

    Keyword arguments are the options of `KafkaAdminClient`. Cancelling a call ends it; a broker may still
    carry out a request that was sent before.

    >>> import asyncio
    >>> from kafka.broker import Broker
    >>> async def program(servers):
    ...     async with AIOKafkaAdminClient(bootstrap_servers=servers) as admin:
    ...         await admin.create_topics(["events"], wait_for_metadata=True)
    ...         return await admin.list_topics()
    >>> with Broker() as broker:
    ...     asyncio.run(program(broker.bootstrap_servers))
    ['events']
    """

    _kind = "admin"
    _application: AsyncioDriver | ThreadedAsyncioDriver

    def __init__(
        self,
        options: Mapping[str, object] | None = None,
        /,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        **configs: Unpack[AIOAdminOptions],
    ) -> None:
        Lifecycle.__init__(self, loop)
        given = given_options("AIOKafkaAdminClient", options, configs)
        if given.get("client_id") is None:
            given.pop("client_id", None)
        self.config: Config = checked_config("admin", "AIOKafkaAdminClient", given)
        name_client(self.config, "admin")

    # Its life…

    def _open(self) -> Loop:
        self._core = AdminCore(self.config, self._world(self.config))
        if self.config["metrics_enabled"]:
            from kafka._core.metrics import make_metrics

            self._metrics = make_metrics(self.config, self._core.client)
        return self._core.loop

    async def _begin(self) -> None:
        await self._application.run(self._core.begin(), what="connecting to the cluster")

    async def _finish(self, deadline: float) -> None:
        client = self._core.client
        if client.telemetry is not None and client.telemetry.subscription is not None:
            await self._application.run(client.end(deadline), deadline, "stop()")

    def _release(self) -> None:
        if self._metrics is not None:
            self._metrics.close()

    async def close(self, timeout: float | None = None) -> None:
        """End the connections: another name of `stop`."""
        await self.stop(timeout)

    # Looking at the client…

    def _connections(self) -> Client | None:
        return None if self._phase is Phase.NEW else self._core.client

    def _health_without_core(self) -> dict[str, Any]:
        return {"ok": False, "closed": False, "problems": [f"the client is {self._phase.value}"]}
