"""`AIOKafkaClient`: raw requests to the brokers of a cluster, from a task of asyncio."""

# ruff: noqa: SLF001 - the client of a producer shares its life

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TypeVar

from kafka._arguments import check_node, check_request, checked_topics
from kafka._core.client import COORDINATOR, DEFAULT, Client
from kafka._runtime.asyncio_driver import as_asyncio
from kafka.aio.arguments import checked_config
from kafka.aio.lifecycle import Lifecycle, Phase
from kafka.cluster import ClusterMetadata
from kafka.config import given_options
from kafka.errors import KafkaError
from kafka.future import Future
from kafka.structs import check_topic

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from kafka._runtime.loop import Loop
    from kafka.config import Config
    from kafka.options import AIOClientOptions
    from kafka.protocol.api import Request, Response

__all__ = ["AIOKafkaClient", "ConnectionGroup", "CoordinationType"]

T = TypeVar("T")
ResponseT = TypeVar("ResponseT", bound="Response")


class ConnectionGroup(IntEnum):
    """The use of a connection to a broker."""

    DEFAULT = 0
    COORDINATION = 1


class CoordinationType(IntEnum):
    """The kind of a coordinator."""

    GROUP = 0
    TRANSACTION = 1


_USES = {ConnectionGroup.DEFAULT: DEFAULT, ConnectionGroup.COORDINATION: COORDINATOR}


class AIOKafkaClient(Lifecycle):
    """A client for raw requests.

    ::

        async with AIOKafkaClient(bootstrap_servers="localhost:9092") as client:
            node_id = client.get_random_node()
            response = await client.send(node_id, MetadataRequest(topics=None))

    Keyword arguments are the options of `KafkaClient`.
    """

    def __init__(
        self,
        options: Mapping[str, object] | None = None,
        /,
        *,
        loop: asyncio.AbstractEventLoop | None = None,
        **configs: Unpack[AIOClientOptions],
    ) -> None:
        super().__init__(loop)
        self.config: Config = checked_config(
            "client", "AIOKafkaClient", given_options("AIOKafkaClient", options, configs)
        )
        self._core: Client | None = None
        self._owner: Lifecycle | None = None
        self._not_started = ClusterMetadata(config=self.config)

    @classmethod
    def of(cls, owner: Lifecycle, core: Client) -> AIOKafkaClient:
        """Return the client that a producer or a consumer works with; it lives as long as that."""
        made = cls.__new__(cls)
        Lifecycle.__init__(made)
        made.config, made._core, made._owner = core.config, core, owner
        made._phase = owner._phase
        made._aio, made._loop, made._driver = owner._aio, owner._loop, owner._driver
        made._application = owner._application
        return made

    # Its life…

    def _open(self) -> Loop:
        self._core = Client(self.config, self._world(self.config))
        return self._core.loop

    async def _begin(self) -> None:
        assert self._core is not None
        await self._application.run(self._core.begin(), what="looking for a broker")

    async def bootstrap(self) -> None:
        """Connect to the cluster: another name of `start`."""
        if self._owner is None:
            await self.start()

    async def close(self, timeout: float | None = None) -> None:
        """End the connections: another name of `stop`."""
        await self.stop(timeout)

    async def stop(self, timeout: float | None = None) -> None:
        """End the connections; requests under way fail. Idempotent.

        The client of a producer or a consumer is ended by these.
        """
        if self._owner is None:
            await super().stop(timeout)

    def _check_usable(self) -> None:
        if self._owner is not None:
            self._owner._check_usable()
        else:
            super()._check_usable()

    def __del__(self) -> None:
        if getattr(self, "_owner", None) is None:
            super().__del__()

    # Looking…

    @property
    def cluster(self) -> ClusterMetadata:
        """The cluster as far as it is known."""
        return self._not_started if self._core is None else self._core.cluster

    @property
    def hosts(self) -> list[tuple[str, int]]:
        """The bootstrap servers."""
        return [(broker.host, broker.port) for broker in self.cluster.bootstrap_brokers()]

    def get_random_node(self) -> int | None:
        """Return the id of one of the brokers; None while none is known."""
        self._check_usable()
        assert self._core is not None
        nodes = sorted(int(node_id) for node_id in self._core.cluster.topology.brokers)
        return self._core.loop.rng.choice(nodes) if nodes else None

    def health(self) -> dict[str, Any]:
        """Return what works and what does not, and why, in the form of all clients; at once, and from any task."""
        if self._core is None:
            return {"ok": False, "closed": False, "problems": [f"the client is {Phase.NEW.value}"]}
        return self._core.health()

    # Sending…

    async def send(
        self, node_id: int, request: Request[ResponseT], *, group: int | str = ConnectionGroup.DEFAULT
    ) -> ResponseT:
        """Send a request to a broker, connecting first if need be, and return the response."""
        self._check_usable()
        check_node(node_id)
        check_request(request)
        core = self._core
        assert core is not None
        use = _USES[ConnectionGroup(group)] if isinstance(group, int) else group

        async def submit() -> ResponseT:
            return await core.submit(node_id, request, use=use)

        return await self._application.run(submit(), what=f"sending to broker {node_id}")

    async def ready(self, node_id: int, *, group: int | str = ConnectionGroup.DEFAULT) -> bool:
        """Connect to a broker; whether there is a connection to it now."""
        self._check_usable()
        check_node(node_id)
        core = self._core
        assert core is not None
        use = _USES[ConnectionGroup(group)] if isinstance(group, int) else group
        deadline = self._deadline(core.settings.request_timeout)

        async def open_link() -> bool:
            link = core.link(node_id, use)
            await core.open(link, deadline)
            return link.ready

        try:
            return await self._application.run(open_link(), deadline, f"connecting to broker {node_id}")
        except KafkaError:
            return False

    # Metadata and coordinators…

    async def fetch_all_metadata(self) -> ClusterMetadata:
        """Ask for the metadata of all topics, and return the cluster."""
        self._check_usable()
        core = self._core
        assert core is not None

        async def refresh() -> None:
            before, core.cluster.need_all_topic_metadata = core.cluster.need_all_topic_metadata, True
            try:
                await core.refresh(core.loop.time() + core.settings.request_timeout)
            finally:
                core.cluster.need_all_topic_metadata = before

        await self._application.run(refresh(), what="asking for metadata")
        return core.cluster

    async def coordinator_lookup(self, coordinator_type: int, coordinator_key: str) -> int:
        """Return the id of the coordinator of a group (type 0) or a transaction (1)."""
        self._check_usable()
        core = self._core
        assert core is not None
        deadline = self._deadline(core.settings.request_timeout)
        what = f"looking up the coordinator of {coordinator_key!r}"
        return await self._application.run(
            core.coordinator(int(coordinator_type), coordinator_key, deadline), deadline, what
        )

    def force_metadata_update(self) -> asyncio.Future[bool]:
        """Ask for metadata now; the future is true when it came, and false when it did not."""
        self._check_usable()
        assert self._core is not None
        return self._told(self._core.cluster.request_update())

    def add_topic(self, topic: str) -> asyncio.Future[bool]:
        """Keep the metadata of one topic more; the future is true when it is known."""
        check_topic(topic)
        self._check_usable()
        assert self._core is not None
        return self._told(self._core.cluster.add_topic(topic))

    def set_topics(self, topics: Iterable[str]) -> asyncio.Future[bool]:
        """Keep the metadata of these topics, of all if there are none; the future is true when they are known."""
        names = checked_topics(topics, "add_topic")
        self._check_usable()
        assert self._core is not None
        return self._told(self._core.cluster.set_topics(names))

    def _told(self, future: Future[T]) -> asyncio.Future[bool]:
        assert self._core is not None
        self._core.metadata.start()
        succeeded: Future[bool] = Future()
        future.add_both(lambda _: succeeded.success(future.succeeded()))
        return as_asyncio(succeeded)
