"""The controller quorum: DescribeQuorum describes it, AddRaftVoter and RemoveRaftVoter change it (KIP-595, KIP-853).

All nodes are voters at the start, the controller leads, and a voter that runs has the whole log: the number of changes
to the cluster's tables stands for the log's end. Voters change only at kraft.version 1, as in Kafka.
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Iterable
from typing import NamedTuple
from uuid import UUID

from kafka.broker.cluster.cluster import Cluster
from kafka.broker.cluster.features import KRAFT
from kafka.broker.server.node import Node
from kafka.errors import (
    DuplicateVoterError,
    InconsistentClusterIdError,
    InvalidRequestError,
    RequestTimedOutError,
    UnsupportedVersionError,
    VoterNotFoundError,
)
from kafka.protocol.fields import ZERO_UUID

METADATA_TOPIC = "__cluster_metadata"
CONTROLLER_LISTENER = "CONTROLLER"


class Voter(NamedTuple):
    """A node in the quorum, or one that only observes it."""

    node: Node
    directory_id: UUID
    fetched_ms: int

    def __str__(self) -> str:
        return _replica_key(self.node.node_id, self.directory_id)


def _replica_key(voter_id: int, directory_id: UUID) -> str:
    return f"ReplicaKey(id={voter_id}, directoryId={urlsafe_b64encode(directory_id.bytes).decode().rstrip('=')})"


class Quorum:
    """``cluster.service(Quorum)``: the voters and the observers."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        #: Directory ids of the nodes, and the voters once they have changed.
        self._table = cluster.store.table("quorum")

    @property
    def log_end_offset(self) -> int:
        """The offset behind the last change."""
        return self._cluster.store.changes + 1

    def voters(self) -> list[Voter]:
        """Return the nodes that vote."""
        return [self._voter(node) for node in self._nodes() if node.node_id in self._voter_ids()]

    def observers(self) -> list[Voter]:
        """Return the nodes that do not vote."""
        return [self._voter(node) for node in self._nodes() if node.node_id not in self._voter_ids()]

    def _nodes(self) -> list[Node]:
        return [node for _, node in sorted(self._cluster.nodes.items())]

    def _voter_ids(self) -> Iterable[int]:
        found: Iterable[int] = self._table.get("voters", self._cluster.nodes.keys())
        return found

    def _voter(self, node: Node) -> Voter:
        fetched = self._cluster.clock.now_ms() if node.is_running else node.stopped_ms
        return Voter(node, self._directory_id(node) if self._is_dynamic else ZERO_UUID, fetched)

    @property
    def _is_dynamic(self) -> bool:
        return self._cluster.features.level(KRAFT) > 0

    def _directory_id(self, node: Node) -> UUID:
        key = str(node.node_id)
        if key not in self._table:
            self._table[key] = str(self._cluster.new_uuid())
        return UUID(self._table[key])

    def add(self, cluster_id: str | None, voter_id: int, directory_id: UUID, listeners: Iterable[str]) -> None:
        """Let a node vote; raises what the reply says."""
        self._check(cluster_id, voter_id, directory_id, "Add")
        if CONTROLLER_LISTENER not in listeners:
            raise InvalidRequestError(
                "Add voter request didn't include the endpoint (Endpoints(endpoints={})) for the default listener"
                f" ListenerName({CONTROLLER_LISTENER})"
            )
        if not self._is_dynamic:
            raise UnsupportedVersionError("Cluster doesn't support adding voter because the kraft.version feature is 0")
        voters = self.voters()
        if any(voter.node.node_id == voter_id for voter in voters):
            raise DuplicateVoterError(
                f"The voter id for {_replica_key(voter_id, directory_id)} is already part of the set of voters"
                f" [{', '.join(map(str, voters))}]."
            )
        node = self._cluster.nodes.get(voter_id)
        if node is None or not node.is_running:
            raise RequestTimedOutError(
                "Aborted add voter operation for since API_VERSIONS returned an error BROKER_NOT_AVAILABLE"
            )
        self._table[str(voter_id)] = str(directory_id)
        self._table["voters"] = sorted({voter_id, *self._voter_ids()})

    def remove(self, cluster_id: str | None, voter_id: int, directory_id: UUID) -> None:
        """Let a node vote no longer; raises what the reply says."""
        self._check(cluster_id, voter_id, directory_id, "Remove")
        if not self._is_dynamic:
            raise UnsupportedVersionError(
                "Cluster doesn't support removing voter because the kraft.version feature is 0"
            )
        voters = self.voters()
        found = [voter for voter in voters if (voter.node.node_id, voter.directory_id) == (voter_id, directory_id)]
        if not found or len(voters) == 1:
            raise VoterNotFoundError(
                f"Cannot remove voter {_replica_key(voter_id, directory_id)} from the set of voters"
                f" [{', '.join(map(str, voters))}]"
            )
        self._table["voters"] = sorted(set(self._voter_ids()) - {voter_id})

    def _check(self, cluster_id: str | None, voter_id: int, directory_id: UUID, verb: str) -> None:
        if cluster_id is not None and cluster_id != self._cluster.cluster_id:
            raise InconsistentClusterIdError(
                f'The given id "{cluster_id}" doesn\'t match the cluster id "{self._cluster.cluster_id}"'
            )
        if voter_id < 0 or directory_id == ZERO_UUID:
            raise InvalidRequestError(f"{verb} voter request didn't include a valid voter")
