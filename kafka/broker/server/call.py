"""One request in work: its client, its node, the class of its reply; and what that client may do (KIP-430)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

from kafka.broker.security.acls import CLUSTER_NAME, Operation, Resource
from kafka.errors import (
    BrokerResponseError,
    ClusterAuthorizationFailedError,
    GroupAuthorizationFailedError,
    TopicAuthorizationFailedError,
    TransactionalIdAuthorizationFailedError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from typing_extensions import TypeVar as TypeVarWithDefault

    from kafka.broker.cluster.cluster import Cluster
    from kafka.broker.server.connection import Connection
    from kafka.broker.server.node import Node
    from kafka.protocol.api import Response
    from kafka.protocol.headers import RequestHeader

    # `Call` alone means a call with any response: where the response does not matter.
    ResponseT_co = TypeVarWithDefault("ResponseT_co", bound=Response, covariant=True, default=Response)
else:
    ResponseT_co = TypeVar("ResponseT_co", covariant=True)

#: The error of a client without a right to a resource.
_DENIED: Final[dict[int, type[BrokerResponseError]]] = {
    Resource.TOPIC: TopicAuthorizationFailedError,
    Resource.GROUP: GroupAuthorizationFailedError,
    Resource.CLUSTER: ClusterAuthorizationFailedError,
    Resource.TRANSACTIONAL_ID: TransactionalIdAuthorizationFailedError,
}


class Call(Generic[ResponseT_co]):
    """One request on its way through the broker; its type parameter is the class of the response."""

    __slots__ = ("cluster", "connection", "header", "node", "response", "version")

    cluster: Cluster
    node: Node
    """The node that was asked: a leader or coordinator check compares with its ``node_id``."""
    connection: Connection
    header: RequestHeader
    version: int
    response: type[ResponseT_co]
    """The class of the reply, bound to the request's version."""

    def __init__(
        self,
        cluster: Cluster,
        node: Node,
        connection: Connection,
        header: RequestHeader,
        version: int,
        response: type[ResponseT_co],
    ) -> None:
        self.cluster = cluster
        self.node = node
        self.connection = connection
        self.header = header
        self.version = version
        self.response = response

    @property
    def client_id(self) -> str:
        """The client's name for itself, empty if it gave none."""
        return self.header.client_id or ""

    @property
    def principal(self) -> str:
        """The principal that is connected, as ``User:alice``."""
        return self.connection.principal

    @property
    def host(self) -> str:
        """The client's address."""
        return self.connection.host

    def allows(self, operation: int, resource_type: int, resource_name: str) -> bool:
        """Whether this client may do that; always so on a cluster without ACLs."""
        authorizer = self.cluster.authorizer
        if authorizer is None:
            return True
        return authorizer.allows(
            self.connection.principal, self.connection.host, operation, resource_type, resource_name
        )

    def require(self, operation: int, resource_type: int, resource_name: str = CLUSTER_NAME) -> None:
        """Raise the error of a client without the right unless this one may do that."""
        if not self.allows(operation, resource_type, resource_name):
            raise _DENIED[resource_type]

    def allows_any(self, operation: int, resource_type: int) -> bool:
        """Whether this client may do that to any resource of the type, whether or not it exists."""
        authorizer = self.cluster.authorizer
        if authorizer is None:
            return True
        return authorizer.allows_any(self.connection.principal, self.connection.host, operation, resource_type)


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
_GROUP = (Operation.READ, Operation.DELETE, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS)


def topic_operations(call: Call, topic: str) -> int:
    """Return what the client may do with a topic."""
    return _bits(call, _TOPIC, Resource.TOPIC, topic)


def cluster_operations(call: Call) -> int:
    """Return what the client may do with the cluster; nothing if it may not describe it."""
    if not call.allows(Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME):
        return 0
    return _bits(call, _CLUSTER, Resource.CLUSTER, CLUSTER_NAME)


def group_operations(call: Call, group: str) -> int:
    """Return what the client may do with a group."""
    return _bits(call, _GROUP, Resource.GROUP, group)


def _bits(call: Call, operations: Iterable[Operation], resource: Resource, name: str) -> int:
    return sum(1 << operation for operation in operations if call.allows(operation, resource, name))
