"""Histories of a client without rights: random ACLs, then each kind of request that needs a right.

Compared are the codes, what the replies name, and the operations that they say are allowed: not offsets, sizes or ids.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any
from uuid import UUID

from kafka.protocol import (
    acl,
    admin,
    commit,
    configs,
    fetch,
    group,
    metadata,
    offset,
    quorum,
    sasl,
    share,
    transaction,
    users,
)
from kafka.protocol.struct import Struct

from .lockstep import Kind, Side, Step
from .records import batch, produced

ADMIN, ALICE = "admin", "alice"
TOPICS = ("kept", "other")
NO_ID = UUID(int=0)
UNKNOWN_ID = UUID("01234567-89ab-4def-8123-456789abcdef")
ANY_ACL = (1, None, 1, None, None, 1, 1)

TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, TOKEN, USER = 2, 3, 4, 5, 6, 7
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION = 2, 3, 4, 5, 6, 7, 8, 9
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE, CREATE_TOKENS, DESCRIBE_TOKENS, TWO_PHASE = 10, 11, 12, 13, 14, 15
#: The operations that there are for each type of resource.
OPERATIONS = {
    TOPIC: (READ, WRITE, CREATE, DESCRIBE, DELETE, ALTER, DESCRIBE_CONFIGS, ALTER_CONFIGS, ALL),
    GROUP: (READ, DESCRIBE, DELETE, DESCRIBE_CONFIGS, ALTER_CONFIGS, ALL),
    CLUSTER: (CREATE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE, ALTER, DESCRIBE, ALL),
    TRANSACTIONAL_ID: (DESCRIBE, WRITE, TWO_PHASE, ALL),
    TOKEN: (DESCRIBE, ALL),
    USER: (CREATE_TOKENS, DESCRIBE_TOKENS, ALL),
}
LITERAL, PREFIXED = 3, 4
DENY, ALLOW = 2, 3


def _metadata(version: int, *topics: Any, rights: bool = False) -> Any:
    request = metadata.MetadataRequest[version](list(topics), False)
    request.include_topic_authorized_operations = rights
    return request


def _produce(topic: str, transactional_id: str | None, who: tuple[int, int] = (-1, -1)) -> Any:
    data = batch(who, 0 if who[0] >= 0 else -1, 1, transactional=transactional_id is not None)
    return produced(9, topic, 0, data, transactional_id)


def _fetch(*names: str, by_id: UUID | None = None) -> Any:
    kind: Any = fetch.FetchRequest[13 if by_id else 11]
    request = kind(max_wait_ms=0, min_bytes=0, max_bytes=1000, isolation_level=0)
    request.session_id, request.session_epoch, request.rack_id = 0, -1, ""
    if not by_id:
        request.replica_id = -1
    part = kind.FetchPartition(partition=0, fetch_offset=0, log_start_offset=-1, partition_max_bytes=1000)
    part.current_leader_epoch = -1
    topics: list[dict[str, Any]] = [{"topic_id": by_id}] if by_id else [{"topic": name} for name in names]
    request.topics = [kind.FetchTopic(partitions=[part], **topic) for topic in topics]
    return request


def _add_partitions(transactional_id: str, *names: str) -> Any:
    request: Any = transaction.AddPartitionsToTxnRequest[3]()
    request.v3_and_below_transactional_id = transactional_id
    request.v3_and_below_producer_id, request.v3_and_below_producer_epoch = 77, 0
    request.v3_and_below_topics = [(name, [0]) for name in names]
    return request


def _commit_in_transaction(transactional_id: str, group_id: str, *names: str) -> Any:
    request: Any = transaction.TxnOffsetCommitRequest[3](transactional_id, group_id, 77, 0)
    request.generation_id, request.member_id, request.group_instance_id = -1, "", None
    request.topics = [(name, [(0, 1, -1, "")]) for name in names]
    return request


def _offsets_of(group_id: str, *names: str) -> Any:
    request: Any = commit.OffsetFetchRequest[8]()
    request.groups, request.require_stable = [(group_id, [(name, [0]) for name in names] or None)], False
    return request


def _commit(group_id: str, *names: str) -> Any:
    request: Any = commit.OffsetCommitRequest[8](group_id, -1, "", None)
    request.topics = [(name, [(0, 1, -1, "")]) for name in names]
    return request


def _heartbeat(group_id: str, *topics: str) -> Any:
    request = group.ConsumerGroupHeartbeatRequest[1](group_id, "m", 0)
    request.rebalance_timeout_ms, request.subscribed_topic_names, request.topic_partitions = 10_000, list(topics), []
    return request


def _share_heartbeat(group_id: str, *topics: str) -> Any:
    request = share.ShareGroupHeartbeatRequest[1](group_id, "m", 0)
    request.subscribed_topic_names = list(topics)
    return request


def _describe_configs(kind: int, name: str) -> Any:
    return configs.DescribeConfigsRequest[4](resources=[(kind, name, None)])


def _alter_configs(kind: int, name: str, key: str, value: str) -> Any:
    return configs.IncrementalAlterConfigsRequest[1](resources=[(kind, name, [(key, 0, value)])], validate_only=True)


def _of_topics(side: Side) -> dict[str, Callable[[], Any]]:
    """Requests about topics and their records."""
    kept, other, missing, made, t = (side.name(name) for name in ("kept", "other", "missing", "made", "t"))
    known = side.topic_ids.get(kept)
    both, some = (kept, missing), [(kept, [0]), (missing, [0])]
    pages: Any = metadata.DescribeTopicPartitionsRequest[0]
    new: list[Any] = [(name, 1, 1, [], []) for name in (kept, made)]
    moved: list[Any] = [(name, [(0, [1])]) for name in both]
    epochs: list[Any] = [(name, [(0, -1, 0)]) for name in both]
    places: list[Any] = [(name, [(0, -1, -1)]) for name in both]
    missing_topic, unknown = (missing, NO_ID), (None, UNKNOWN_ID)
    return {
        "metadata of all": lambda: metadata.MetadataRequest[8](None, False, False, True),
        "metadata by name": lambda: _metadata(12, (NO_ID, kept), (NO_ID, missing), rights=True),
        "metadata by id": lambda: _metadata(12, (known, None), (UNKNOWN_ID, None)),
        "metadata that creates": lambda: metadata.MetadataRequest[9]([(made,)], True, True, True),
        "describe topic partitions": lambda: pages([(kept,), (missing,)], 10, None),
        "describe all topics": lambda: pages([], 1000, None),
        "produce": lambda: _produce(other, None),
        "produce to a missing topic": lambda: _produce(missing, None),
        "produce with a number": lambda: _produce(other, None, (4242, 0)),
        "produce in a transaction": lambda: _produce(other, t, (77, 0)),
        "fetch": lambda: _fetch(*both),
        "fetch by id": lambda: _fetch(by_id=known),
        "fetch an unknown id": lambda: _fetch(by_id=UNKNOWN_ID),
        "list offsets": lambda: offset.ListOffsetsRequest[5](replica_id=-1, topics=places),
        "leader epochs": lambda: offset.OffsetForLeaderEpochRequest[3](-1, epochs),
        "describe producers": lambda: transaction.DescribeProducersRequest[0](some),
        "describe configs": lambda: _describe_configs(2, kept),
        "describe configs of a missing topic": lambda: _describe_configs(2, missing),
        "alter configs": lambda: _alter_configs(2, kept, "retention.ms", "1000"),
        "alter configs of a missing topic": lambda: _alter_configs(2, missing, "retention.ms", "1000"),
        "replace configs": lambda: configs.AlterConfigsRequest[2]([(2, kept, [("retention.ms", "1000")])], True),
        "log dirs": lambda: admin.DescribeLogDirsRequest[4](topics=[(kept, [0])]),
        "alter log dirs": lambda: admin.AlterReplicaLogDirsRequest[2]([("/nowhere", some)]),
        "elect leaders": lambda: admin.ElectLeadersRequest[2](0, some, 10_000),
        "elect all leaders": lambda: admin.ElectLeadersRequest[2](0, None, 10_000),
        "reassign": lambda: admin.AlterPartitionReassignmentsRequest[0](10_000, moved),
        "list reassignments": lambda: admin.ListPartitionReassignmentsRequest[0](10_000, [(kept, [0])]),
        "create topics": lambda: admin.CreateTopicsRequest[7](topics=new, timeout_ms=10_000, validate_only=True),
        "create partitions": lambda: admin.CreatePartitionsRequest[3]([(name, 3, None) for name in both], 10_000, True),
        "delete no topics": lambda: admin.DeleteTopicsRequest[6]([unknown, missing_topic], 10_000),
    }


def _of_groups(side: Side) -> dict[str, Callable[[], Any]]:
    """Requests about groups and transactions."""
    kept, missing, g, t = (side.name(name) for name in ("kept", "missing", "g", "t"))
    joining, epochs, shared = (side.name(name) for name in ("gj", "g848", "gs"))
    both = (kept, missing)
    some: list[Any] = [(kept, [0]), (missing, [0])]
    ones: list[Any] = [(name, [(0,)]) for name in both]
    share_key = f"{shared}:{side.topic_ids.get(kept)}:0"
    join = (10_000, 10_000, "", None, "consumer", [("range", b"")])
    return {
        "find group": lambda: commit.FindCoordinatorRequest[4](key_type=0, coordinator_keys=[g, "x"]),
        "find transaction": lambda: commit.FindCoordinatorRequest[4](key_type=1, coordinator_keys=[t]),
        "find share": lambda: commit.FindCoordinatorRequest[6](key_type=2, coordinator_keys=[share_key]),
        "commit offsets": lambda: _commit(g, *both),
        "fetch offsets": lambda: _offsets_of(g, *both),
        "fetch all offsets": lambda: _offsets_of(g),
        "delete offsets": lambda: commit.OffsetDeleteRequest[0](g, ones),
        "join": lambda: group.JoinGroupRequest[5](joining, *join),
        "sync": lambda: group.SyncGroupRequest[3](g, 1, "m", None, []),
        "heartbeat": lambda: group.HeartbeatRequest[3](g, 1, "m", None),
        "leave": lambda: group.LeaveGroupRequest[3](g, [("m", None)]),
        "heartbeat KIP-848": lambda: _heartbeat(epochs, *both),
        "describe KIP-848": lambda: group.ConsumerGroupDescribeRequest[1]([g, epochs], True),
        "heartbeat share": lambda: _share_heartbeat(shared, *both),
        "describe share": lambda: share.ShareGroupDescribeRequest[1]([g, "x"], True),
        "share offsets": lambda: share.DescribeShareGroupOffsetsRequest[1]([(shared, some)]),
        "describe groups": lambda: admin.DescribeGroupsRequest[5]([g, "x"], True),
        "list groups": lambda: admin.ListGroupsRequest[4]([]),
        "describe configs of a group": lambda: _describe_configs(32, g),
        "alter configs of a group": lambda: _alter_configs(32, g, "consumer.session.timeout.ms", "50000"),
        "producer id": lambda: transaction.InitProducerIdRequest[4](None, 10_000, -1, -1),
        "transactional producer id": lambda: transaction.InitProducerIdRequest[4](t, 10_000, -1, -1),
        "add partitions": lambda: _add_partitions(t, *both),
        "add offsets": lambda: transaction.AddOffsetsToTxnRequest[3](t, 77, 0, g),
        "end transaction": lambda: transaction.EndTxnRequest[3](t, 77, 0, True),
        "commit offsets in a transaction": lambda: _commit_in_transaction(t, g, *both),
        "markers": lambda: transaction.WriteTxnMarkersRequest[1]([(77, 0, True, [(kept, [0])], 0)]),
        "describe transactions": lambda: transaction.DescribeTransactionsRequest[0]([t, "x"]),
        "list transactions": lambda: transaction.ListTransactionsRequest[1]([], [], -1),
    }


def _of_the_cluster() -> dict[str, Callable[[], Any]]:
    """Requests about brokers, users and ACLs."""
    binding = (TOPIC, "", LITERAL, "User:x", "*", READ, ALLOW)
    limit = ([("user", "x")], [("request_percentage", 1.0, False)])
    return {
        "describe cluster": lambda: metadata.DescribeClusterRequest[1](include_cluster_authorized_operations=True),
        "describe acls": lambda: acl.DescribeAclsRequest[3](*ANY_ACL),
        "create acls": lambda: acl.CreateAclsRequest[3]([binding]),
        "delete acls": lambda: acl.DeleteAclsRequest[3]([(TOPIC, "no such", LITERAL, None, None, 1, 1)]),
        "describe configs of a broker": lambda: _describe_configs(4, "1"),
        "alter configs of a broker": lambda: _alter_configs(4, "1", "log.cleaner.threads", "1"),
        "list config resources": lambda: configs.ListConfigResourcesRequest[1]([]),
        "describe quotas": lambda: users.DescribeClientQuotasRequest[1]([], False),
        "alter quotas": lambda: users.AlterClientQuotasRequest[1]([limit], True),
        "describe scram": lambda: users.DescribeUserScramCredentialsRequest[0]([("nobody",)]),
        "alter scram": lambda: users.AlterUserScramCredentialsRequest[0]([("nobody", 1)], []),
        "update features": lambda: admin.UpdateFeaturesRequest[1](10_000, [("no.such", 1, 1)], True),
        "quorum": lambda: quorum.DescribeQuorumRequest[2]([("__cluster_metadata", [(0,)])]),
        "unregister": lambda: admin.UnregisterBrokerRequest[0](77),
        "tokens": lambda: sasl.DescribeDelegationTokenRequest[3](None),
    }


def _that_remove(side: Side) -> dict[str, Callable[[], Any]]:
    """Requests that remove what others are about."""
    kept, other, g = (side.name(name) for name in ("kept", "other", "g"))
    records: list[Any] = [(name, [(0, 0)]) for name in (kept, side.name("missing"))]
    topics: list[Any] = [(other, NO_ID), (None, side.topic_ids.get(kept))]
    return {
        "delete records": lambda: admin.DeleteRecordsRequest[2](records, 10_000),
        "delete groups": lambda: admin.DeleteGroupsRequest[2]([g, side.name("nothing")]),
        "delete topics": lambda: admin.DeleteTopicsRequest[6](topics, 10_000),
    }


def _asked(side: Side) -> dict[str, Callable[[], Any]]:
    return _of_topics(side) | _of_groups(side) | _of_the_cluster() | _that_remove(side)


#: What the comparison looks at, besides codes.
_SEEN = {
    "name",
    "topic",
    "topic_name",
    "resource_name",
    "resource_type",
    "group_id",
    "key",
    "transactional_id",
    "topic_authorized_operations",
    "cluster_authorized_operations",
    "authorized_operations",
}


_OF_TOPICS = ("name", "topic", "topic_name", "resource_name")


def seen(value: Any) -> Any:
    """Codes, names and rights of a reply."""
    if isinstance(value, Struct):
        found = {}
        for name in type(value)._wire_names():
            one = getattr(value, name)
            if name.endswith("error_code") or name in _SEEN:
                found[name] = one if name != "key" or ":" not in one else "<share partition>"
            elif isinstance(one, (Struct, list)) and (inner := seen(one)) and name != "configs":
                found[name] = inner
        internal = any(str(found.get(name)).startswith("__") for name in _OF_TOPICS)
        return None if internal else found
    if isinstance(value, list):
        return sorted((one for one in map(seen, value) if one is not None), key=repr)
    return None


class Rights(Kind):
    """Some ACLs, then everything that a client without further rights may ask."""

    length = 1
    goes_on = True

    @staticmethod
    def steps(rng: random.Random, length: int) -> list[Step]:
        steps = []
        for _ in range(length):
            steps.append(Step("grant", {"bindings": [Rights._binding(rng) for _ in range(rng.randint(0, 6))]}))
            side = Side(("", 0), "")
            last = list(_that_remove(side))
            names = [name for name in _asked(side) if name not in last]
            rng.shuffle(names)
            # A coordinator may have to come up; what is written or removed is asked for once.
            once = ("produce", *last)
            steps += [Step("request", {"what": name}, not name.startswith(once)) for name in (*names, *last)]
        return steps

    @staticmethod
    def _binding(rng: random.Random) -> tuple[Any, ...]:
        kind = rng.choice([TOPIC, TOPIC, TOPIC, GROUP, GROUP, CLUSTER, CLUSTER, TRANSACTIONAL_ID, TOKEN, USER])
        names = {
            TOPIC: ["kept", "other", "missing", "made"],
            GROUP: ["g", "gj", "g848", "gs"],
            TRANSACTIONAL_ID: ["t"],
            TOKEN: ["token"],
            USER: ["User:alice"],
        }
        if kind == CLUSTER:
            name, pattern = "kafka-cluster", LITERAL
        else:
            name = rng.choice(names[kind])
            how = rng.random()
            pattern = PREFIXED if how < 0.25 else LITERAL
            name = name[: rng.randint(1, len(name))] if pattern == PREFIXED else "*" if how < 0.5 else name
        principal = rng.choice(["User:alice", "User:alice", "User:*"])
        host = rng.choice(["*", "*", "*", "127.0.0.1", "10.0.0.1"])
        return kind, name, pattern, principal, host, rng.choice(OPERATIONS[kind]), ALLOW if rng.random() < 0.8 else DENY

    def __init__(self, side: Side) -> None:
        super().__init__(side)
        self._requests: dict[str, Callable[[], Any]] = {}

    def _admin(self, request: Any) -> Any:
        return self.side.ask(request, ADMIN, ADMIN)

    def prepare(self) -> None:
        self._clear()
        self.side.make_topics(ADMIN, **dict.fromkeys(TOPICS, 1))
        for kind, key in ((0, "g"), (1, "t")):
            request = commit.FindCoordinatorRequest[2](key=self.side.name(key), key_type=kind)
            while self._admin(request).error_code:
                time.sleep(0.05)
        while self._admin(transaction.InitProducerIdRequest[4](None, 10_000, -1, -1)).error_code:
            time.sleep(0.05)
        committing = _commit(self.side.name("g"), self.side.name("kept"))
        while self._admin(committing).topics[0].partitions[0].error_code:
            time.sleep(0.05)
        self._requests = _asked(self.side)

    def _bindings(self) -> int:
        return sum(len(one.acls) for one in self._admin(acl.DescribeAclsRequest[3](*ANY_ACL)).resources)

    def _clear(self) -> None:
        self._admin(acl.DeleteAclsRequest[3]([ANY_ACL]))
        while self._bindings():
            time.sleep(0.01)

    def grant(self, bindings: list[tuple[Any, ...]]) -> Any:
        self._clear()
        own = []
        for kind, name, pattern, *rest in bindings:
            whole = pattern == LITERAL and name != "*" and kind in (TOPIC, GROUP, TRANSACTIONAL_ID)
            own.append((kind, self.side.name(name) if whole else name, pattern, *rest))
        reply = self._admin(acl.CreateAclsRequest[3](own))
        while self._bindings() < len(set(own)):
            time.sleep(0.01)
        return [one.error_code for one in reply.results]

    def request(self, what: str) -> Any:
        reply = self.side.ask(self._requests[what](), ALICE, ALICE)
        return "closed" if reply is None else seen(reply)

    def finish(self) -> None:
        self._clear()
