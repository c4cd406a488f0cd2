"""The bit fields that say which operations a client may do (KIP-430)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka.broker.security.acls import CLUSTER_NAME, Operation, Resource

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka.broker.server.call import Call

__all__ = ["cluster_operations", "group_operations", "topic_operations"]

_TOPIC = (
    Operation.READ,
    Operation.WRITE,
    Operation.CREATE,
    Operation.DELETE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)
_CLUSTER = (
    Operation.CREATE,
    Operation.ALTER,
    Operation.DESCRIBE,
    Operation.CLUSTER_ACTION,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
    Operation.IDEMPOTENT_WRITE,
)
_GROUP = (
    Operation.READ,
    Operation.DELETE,
    Operation.DESCRIBE,
    Operation.DESCRIBE_CONFIGS,
    Operation.ALTER_CONFIGS,
)


def topic_operations(call: Call, topic: str) -> int:
    """Return what the client may do with a topic."""
    return _bits(call, _TOPIC, Resource.TOPIC, topic)


def cluster_operations(call: Call) -> int:
    """Return what the client may do with the cluster."""
    return _bits(call, _CLUSTER, Resource.CLUSTER, CLUSTER_NAME)


def group_operations(call: Call, group: str) -> int:
    """Return what the client may do with a group."""
    return _bits(call, _GROUP, Resource.GROUP, group)


def _bits(call: Call, operations: Iterable[Operation], resource: Resource, name: str) -> int:
    return sum(1 << operation for operation in operations if call.allows(operation, resource, name))
