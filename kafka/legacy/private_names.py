"""Names of kafka-python's inner classes that programs, tracers and other instrumentation read or call.

They are not part of the interface. Each stands for the object that has the same name there, as far as others use it.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka.errors import IllegalGenerationError, UnknownMemberIdError
from kafka.structs import MemberState

if TYPE_CHECKING:
    from typing import Protocol

    from kafka.errors import KafkaError

    # `KafkaProducer`, `KafkaConsumer` and the coordinators, which a module below their packages cannot import.

    class _Producer(Protocol):
        _core: Any
        _calls: Any
        config: Any

        @property
        def _metadata(self) -> Any: ...
        def partitions_for(self, topic: str, timeout: float | None = ...) -> set[int]: ...

    class _Consumer(Protocol):
        _core: Any

    class _Generation(Protocol):
        @property
        def generation_id(self) -> int: ...
        @property
        def member_id(self) -> str: ...
        @property
        def protocol(self) -> str | None: ...

    class _State(Protocol):
        @property
        def historic(self) -> str: ...

    class _Coordinator(Protocol):
        @property
        def coordinator_id(self) -> int | None: ...
        @property
        def client(self) -> Any: ...
        @property
        def generation(self) -> _Generation: ...
        @property
        def heartbeat(self) -> Any: ...
        @property
        def loop(self) -> Any: ...
        @property
        def rejoining(self) -> bool: ...
        @property
        def state(self) -> _State: ...
        def coordinator_unknown(self) -> bool: ...
        def ensure_active_group(self, timeout_ms: float | None) -> bool: ...
        def ensure_coordinator_known(self, timeout_ms: float | None) -> bool: ...
        def heartbeat_refused(self, error: KafkaError, generation: Any) -> None: ...
        def need_rejoin(self) -> bool: ...
        def polled(self) -> None: ...
        def request_rejoin(self, reason: str) -> None: ...
        def take_error(self) -> KafkaError | None: ...

    class _ConsumerCoordinator(Protocol):
        auto_commit: Any
        client: Any
        subscription: Any

    class _Cluster(Protocol):
        _topology: Any

        def partitions_for_broker(self, broker_id: int) -> set[Any] | None: ...


__all__ = [
    "ClusterNames",
    "ConsumerCoordinatorNames",
    "ConsumerNames",
    "CoordinatorNames",
    "ProducerNames",
    "warn_of_overrides",
]

ClassT = TypeVar("ClassT", bound=type)

# Methods of the coordinators of kafka-python that send a request, read a response, or run the thread for heartbeats.
_NEVER_CALLED: Final = frozenset(
    """
    _auto_assign_all_partitions _build_metadata_snapshot _close_heartbeat_thread _commit_offsets_async_on_complete
    _default_offset_commit_callback _disable_heartbeat_thread _do_auto_commit_offsets_async _do_commit_offsets_async
    _failed_request _handle_group_coordinator_response _handle_heartbeat_response _handle_join_failure
    _handle_join_group_response _handle_join_success _handle_leave_group_response _handle_metadata_update
    _handle_offset_commit_response _handle_offset_fetch_response _handle_sync_group_response _initiate_join_group
    _invoke_completed_offset_commit_callbacks _lookup_assignor _maybe_auto_commit_offsets_async
    _maybe_auto_commit_offsets_sync _on_join_follower _on_join_leader _rejoin_incomplete
    _reset_find_coordinator_future _reset_join_group_future _send_group_coordinator_request _send_heartbeat_request
    _send_join_group_request _send_offset_commit_request _send_offset_fetch_request _send_sync_group_request
    _start_heartbeat_thread _subscription_metadata_changed lookup_coordinator
    """.split()  # noqa: SIM905 - readable
)


class ProducerNames:
    """Names of `KafkaProducer`."""

    __slots__ = ()

    @property
    def _metadata(self: _Producer) -> Any:
        """The cluster's metadata; ``_metadata.controller`` is a broker with its host and port."""
        return self._core.client.cluster

    @property
    def _client(self: _Producer) -> Any:
        return self._core.client

    @property
    def _sender(self: _Producer) -> Any:
        return self._core.sender

    @property
    def _closed(self: _Producer) -> bool:
        return bool(self._calls.closed)

    @property
    def _metrics(self: _Producer) -> Any:
        return self._calls.metrics

    def _serialize(self, f: Any, topic: str, data: Any) -> Any:
        """Serialize a key or a value with a serializer of either kind."""
        if f is None:
            return data
        return f.serialize(topic, data) if hasattr(f, "serialize") else f(data)

    def _partition(
        self: _Producer,
        topic: str,
        partition: int | None,
        key: Any,
        value: Any,
        serialized_key: bytes | None,
        serialized_value: bytes | None,
    ) -> int:
        """Return the partition that is given, or one that the partitioner chooses."""
        if partition is not None:
            return partition
        from kafka.partitioner import DefaultPartitioner, bind_partitioner

        self.partitions_for(topic)  # waits until they are known
        choose = bind_partitioner(self.config["partitioner"] or DefaultPartitioner())
        return choose(topic, key, serialized_key, value, serialized_value, self._metadata)

    def _wait_on_metadata(self: _Producer, topic: str, max_wait: float) -> set[int]:
        """Return the partitions of a topic; waits for ``max_wait`` seconds at most."""
        return self.partitions_for(topic, max_wait)


class ConsumerNames:
    """Names of `KafkaConsumer`."""

    __slots__ = ()

    @property
    def _client(self: _Consumer) -> Any:
        return self._core.client

    @property
    def _fetcher(self: _Consumer) -> Any:
        return self._core.fetcher

    @property
    def _coordinator(self: _Consumer) -> Any:
        """The member of the group; None without a group."""
        return self._core.membership

    @property
    def _closed(self: _Consumer) -> bool:
        return self._core is None or bool(self._core.closed)


def warn_of_overrides(cls: type) -> None:
    """Warn of methods that a subclass of `BaseCoordinator` overrides and no code calls."""
    for name in sorted(_NEVER_CALLED & vars(cls).keys()):
        warnings.warn(
            f"{cls.__qualname__}.{name} is never called: the requests of a member are sent and read by other code "
            "than in kafka-python; override protocol_type, group_protocols, _on_join_prepare, _perform_assignment "
            "and _on_join_complete",
            RuntimeWarning,
            stacklevel=3,
        )


class CoordinatorNames:
    """Names of `BaseCoordinator`, from the releases 1.4 to 2.2."""

    @property
    def _client(self: _Coordinator) -> Any:
        return self.client

    @property
    def _generation(self: _Coordinator) -> _Generation:
        """The generation with its id, the id of the member, and the protocol."""
        return self.generation

    @property
    def member_id(self: _Coordinator) -> str:
        """The id of the member in the group; empty without one."""
        return self.generation.member_id

    def generation_if_stable(self: _Coordinator) -> _Generation | None:
        """Return the generation; None while the group rebalances, and outside of it."""
        return self.generation if self.state.historic == MemberState.STABLE else None

    @property
    def rejoin_needed(self: _Coordinator) -> bool:
        """Whether the member joins the group again; a program that sets it to True makes it do so."""
        return bool(self.need_rejoin())

    @rejoin_needed.setter
    def rejoin_needed(self: _Coordinator, needed: bool) -> None:
        if needed:
            self.request_rejoin("the application asked for it")

    @property
    def rejoining(self: _Coordinator) -> bool:
        """Whether a rebalance is under way."""
        return self.state.historic == MemberState.REBALANCING

    def rebalance_in_progress(self: _Coordinator) -> bool:
        """Whether a rebalance is under way."""
        return self.rejoining

    def coordinator(self: _Coordinator) -> int | None:
        """Return the id of the coordinator; None while it is unknown."""
        return None if self.coordinator_unknown() else self.coordinator_id

    def ensure_coordinator_ready(self: _Coordinator, timeout_ms: float | None = None) -> bool:
        """Wait until the coordinator is known and connected; False after the timeout."""
        return self.ensure_coordinator_known(timeout_ms)

    def join_group(self: _Coordinator, timeout_ms: float | None = None) -> bool:
        """Wait until this is a member with an assignment; False after the timeout."""
        return self.ensure_active_group(timeout_ms)

    def reset_generation(self: _Coordinator, member_id: str = "") -> None:
        """Forget the generation, as if the coordinator had removed the member, and join again; an id is kept."""
        kind = IllegalGenerationError if member_id else UnknownMemberIdError
        lost = kind("the application reset the generation")
        self.loop.call_soon(self.heartbeat_refused, lost, self.generation)

    def poll_heartbeat(self: _Coordinator) -> None:
        """Record that the application works, as poll() does; raises an error that ended the membership."""
        self.polled()
        error = self.take_error()
        if error is not None:
            raise error

    def time_to_next_heartbeat(self: _Coordinator) -> float:
        """Seconds until the next heartbeat is due."""
        return float(self.heartbeat.time_to_next_heartbeat())


class ConsumerCoordinatorNames:
    """Names of `ConsumerCoordinator`."""

    @property
    def _subscription(self: _ConsumerCoordinator) -> Any:
        return self.subscription

    @property
    def _cluster(self: _ConsumerCoordinator) -> Any:
        return self.client.cluster

    @property
    def _auto_commit_task(self: _ConsumerCoordinator) -> Any:
        return self.auto_commit


class ClusterNames:
    """Tables of `ClusterMetadata`, which aiokafka 0.8 fills in its own `update_metadata`."""

    @property
    def _brokers(self: _Cluster) -> Mapping[int, Any]:
        return dict(self._topology.brokers)

    @_brokers.setter
    def _brokers(self: _Cluster, brokers: Mapping[int, Any]) -> None:
        self._topology = self._topology.changed(brokers=brokers)

    @property
    def _partitions(self: _Cluster) -> Mapping[str, Mapping[int, Any]]:
        return dict(self._topology.topics)

    @_partitions.setter
    def _partitions(self: _Cluster, topics: Mapping[str, Mapping[int, Any]]) -> None:
        self._topology = self._topology.changed(topics=topics)

    @property
    def _broker_partitions(self: _Cluster) -> Mapping[int, set[Any]]:
        return {broker: self.partitions_for_broker(broker) or set() for broker in self._topology.brokers}

    @_broker_partitions.setter
    def _broker_partitions(self: _Cluster, _led: Mapping[int, set[Any]]) -> None:
        """Ignore it: the leaders are known from the partitions."""
