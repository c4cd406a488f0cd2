"""The controllers' quorum: its state and its voters; and brokers that are taken out of the cluster."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final
from uuid import UUID

from kafka.admin.calls import Calls, call
from kafka.admin.results import Result
from kafka.errors import IllegalArgumentError, UnknownError
from kafka.protocol.admin import UnregisterBrokerRequest
from kafka.protocol.quorum import AddRaftVoterRequest, DescribeQuorumRequest, RemoveRaftVoterRequest

if TYPE_CHECKING:
    pass

_METADATA_TOPIC: Final = "__cluster_metadata"


class QuorumReplica(Result):
    """A controller or broker that follows the metadata log; times are milliseconds since 1970, -1 if not known."""

    __slots__ = ()
    replica_id: int
    replica_directory_id: UUID
    log_end_offset: int
    last_fetch_timestamp: int
    last_caught_up_timestamp: int


class QuorumNode(Result):
    """A controller, and where it listens."""

    __slots__ = ()
    node_id: int
    listeners: list[RaftVoterEndpoint]


class RaftVoterEndpoint(Result):
    """An address of a controller.

    >>> RaftVoterEndpoint(name="CONTROLLER", host="c1", port=9093)
    RaftVoterEndpoint(name='CONTROLLER', host='c1', port=9093)
    """

    __slots__ = ()
    name: str
    host: str
    port: int


class QuorumDescription(Result):
    """The leader of the metadata log, the voters, and the observers that only follow it."""

    __slots__ = ()
    leader_id: int
    leader_epoch: int
    high_watermark: int
    voters: list[QuorumReplica]
    observers: list[QuorumReplica]
    nodes: list[QuorumNode]


class Quorum(Calls):
    """The calls about the controllers' quorum."""

    @call
    async def describe_metadata_quorum(self, timeout_ms: float | None = None) -> QuorumDescription:
        """Describe the quorum of the controllers (Kafka 3.3).

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> with Broker() as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...     quorum = admin.describe_metadata_quorum()
        >>> quorum.leader_id in [voter.replica_id for voter in quorum.voters]
        True
        """
        deadline = self._core.deadline(timeout_ms)
        kind = DescribeQuorumRequest
        what = "describe_metadata_quorum()"
        await self._core.require(deadline, kind.API_KEY, 0, what, "3.3")
        partition = kind.PartitionData(partition_index=0)
        request = kind(topics=[kind.TopicData(topic_name=_METADATA_TOPIC, partitions=[partition])])
        async for attempt in self._core.attempts(deadline, what):
            with attempt:
                response = await self._core.client.request(request, deadline=attempt.deadline)
                attempt.check(response.error_code, response.error_message)
                entries = [entry for topic in response.topics for entry in topic.partitions]
                if not entries:
                    raise UnknownError(f"{what}: the response has no partition of {_METADATA_TOPIC}")
                attempt.check(entries[0].error_code, entries[0].error_message)
        (entry,) = entries
        return QuorumDescription.of_entry(
            entry,
            voters=[QuorumReplica.of_entry(one) for one in entry.current_voters],
            observers=[QuorumReplica.of_entry(one) for one in entry.observers],
            nodes=[
                QuorumNode.of_entry(node, listeners=[RaftVoterEndpoint.of_entry(one) for one in node.listeners])
                for node in response.nodes
            ],
        )

    @call
    async def add_raft_voter(
        self,
        voter_id: int,
        voter_directory_id: UUID,
        endpoints: Iterable[RaftVoterEndpoint | tuple[str, str, int]],
        cluster_id: str | None = None,
        timeout_ms: float | None = None,
    ) -> None:
        """Make a controller a voter of the quorum (Kafka 3.9).

        Each endpoint is a listener's name, a host and a port. With `cluster_id` the call fails on another cluster.
        """
        deadline = self._core.deadline(timeout_ms)
        places = [_endpoint(one) for one in endpoints]
        directory = _directory(voter_directory_id)
        kind = AddRaftVoterRequest
        await self._core.require(deadline, kind.API_KEY, 0, "add_raft_voter()", "3.9")
        request = kind(
            cluster_id=cluster_id,
            timeout_ms=self._core.left(deadline),
            voter_id=voter_id,
            voter_directory_id=directory,
            listeners=[kind.Listener(name=one.name, host=one.host, port=one.port) for one in places],
        )
        await self._core.ask(request, deadline, "add_raft_voter()", checked=True)

    @call
    async def remove_raft_voter(
        self, voter_id: int, voter_directory_id: UUID, cluster_id: str | None = None, timeout_ms: float | None = None
    ) -> None:
        """Take a controller out of the voters of the quorum (Kafka 3.9)."""
        deadline = self._core.deadline(timeout_ms)
        directory = _directory(voter_directory_id)
        kind = RemoveRaftVoterRequest
        await self._core.require(deadline, kind.API_KEY, 0, "remove_raft_voter()", "3.9")
        request = kind(cluster_id=cluster_id, voter_id=voter_id, voter_directory_id=directory)
        await self._core.ask(request, deadline, "remove_raft_voter()", checked=True)

    @call
    async def unregister_broker(self, broker_id: int, timeout_ms: float | None = None) -> None:
        """Take a broker that was shut down for good out of the cluster (Kafka 2.8, with KRaft)."""
        deadline = self._core.deadline(timeout_ms)
        if isinstance(broker_id, bool) or not isinstance(broker_id, int):
            raise TypeError(f"broker_id must be an int, not {broker_id!r}")
        kind = UnregisterBrokerRequest
        await self._core.require(deadline, kind.API_KEY, 0, "unregister_broker()", "2.8 with KRaft")
        await self._core.ask(kind(broker_id=broker_id), deadline, "unregister_broker()", checked=True)


def _directory(given: UUID) -> UUID:
    if not isinstance(given, UUID):
        raise TypeError(f"voter_directory_id must be a uuid.UUID, not {given!r}")
    return given


def _endpoint(given: RaftVoterEndpoint | tuple[str, str, int]) -> RaftVoterEndpoint:
    if isinstance(given, RaftVoterEndpoint):
        return given
    if not isinstance(given, (tuple, list)) or [type(part) for part in given] != [str, str, int]:
        raise IllegalArgumentError(f"an endpoint is a listener's name, a host and a port, not {given!r}")
    return RaftVoterEndpoint(name=given[0], host=given[1], port=given[2])
