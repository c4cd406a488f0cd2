"""Access control lists: the bindings of resources, and whether an operation is allowed. Numbers are Kafka's own.

The rules are the ones of Kafka's StandardAuthorizer: super users may do everything; a binding that denies wins over one
that allows; where nothing is bound to a resource, a setting decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from typing import Any, Final, NamedTuple

from kafka.acl import ACLOperation as Operation
from kafka.acl import ACLPermissionType as Permission
from kafka.acl import ACLResourcePatternType as Pattern
from kafka.acl import ResourceType as Resource
from kafka.errors import IllegalArgumentError, InvalidRequestError

__all__ = [
    "CLUSTER_NAME",
    "AccessControl",
    "Binding",
    "Filter",
    "Operation",
    "Pattern",
    "Permission",
    "Resource",
    "bindings_of",
]

ANY: Final = 1
ALL_OPERATIONS: Final = 2
WILDCARD: Final = "*"
EVERYONE: Final = "User:*"
#: The only resource of type CLUSTER.
CLUSTER_NAME: Final = "kafka-cluster"

#: The name by which Kafka asks whether any resource is allowed.
_ANY_NAME: Final = "hardcode"
#: Topic, group, cluster, transactional id, delegation token, user.
_RESOURCE_TYPES: Final = range(2, 8)
#: All, and whatever a binding can speak of; Kafka takes operations that mean nothing for the resource.
_OPERATIONS: Final = range(2, 16)


#: The resources by the names that tests give them.
_BY_NAME: Final = {
    "topic": Resource.TOPIC,
    "group": Resource.GROUP,
    "cluster": Resource.CLUSTER,
    "transactional_id": Resource.TRANSACTIONAL_ID,
}
#: What else allows an operation.
_IMPLIED_BY: Final[Mapping[int, frozenset[Operation]]] = {
    Operation.DESCRIBE: frozenset({Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.ALTER_CONFIGS}),
}


class Binding(NamedTuple):
    """One entry of an access control list, with the resource that it is bound to."""

    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission: int

    def check(self) -> None:
        """Raise InvalidRequestError unless it makes sense."""
        if self.pattern_type not in (Pattern.LITERAL, Pattern.PREFIXED):
            raise InvalidRequestError(f"Invalid pattern type {self.pattern_type}")
        if self.resource_type not in _RESOURCE_TYPES:
            raise InvalidRequestError(f"Invalid resource type {self.resource_type}")
        if self.operation not in _OPERATIONS:
            raise InvalidRequestError(f"Invalid operation {self.operation}")
        if self.permission not in (Permission.ALLOW, Permission.DENY):
            raise InvalidRequestError(f"Invalid permission type {self.permission}")
        if not self.resource_name:
            raise InvalidRequestError("Resource name should not be empty")
        if self.resource_type == Resource.CLUSTER and self.resource_name != CLUSTER_NAME:
            raise InvalidRequestError(f"The only valid name for the CLUSTER resource is {CLUSTER_NAME}")
        if ":" not in self.principal or not self.host:
            raise InvalidRequestError("A principal is a type and a name, as User:alice; a host is an address or *")

    def is_about(self, resource_type: int, name: str) -> bool:
        """Whether it is bound to this resource."""
        if self.resource_type != resource_type:
            return False
        if self.pattern_type == Pattern.PREFIXED:
            return name.startswith(self.resource_name)
        return self.resource_name in (name, WILDCARD)

    def is_for(self, principal: str, host: str) -> bool:
        """Whether it concerns this client."""
        return self.principal in (principal, EVERYONE) and self.host in (host, WILDCARD)

    def covers(self, operation: int) -> bool:
        """Whether it speaks of the operation; what allows reading allows describing."""
        if self.operation in (operation, ALL_OPERATIONS):
            return True
        return self.permission == Permission.ALLOW and self.operation in _IMPLIED_BY.get(operation, ())


def bindings_of(
    user: str, operations: Iterable[str], resource: Mapping[str, str], permission: Permission
) -> list[Binding]:
    """Return the bindings that a test means by names.

    >>> [(each.principal, each.resource_name) for each in bindings_of("a", ["read"], {"topic": "t"}, Permission.ALLOW)]
    [('User:a', 't')]
    """
    if len(resource) != 1 or not resource.keys() <= _BY_NAME.keys():
        raise IllegalArgumentError(f"name one resource, as topic='orders'; the kinds are {', '.join(_BY_NAME)}")
    if not operations:
        raise IllegalArgumentError("name the operations, as 'read' or 'write'")
    known = [each.name.lower() for each in Operation if each in _OPERATIONS]
    unknown = [each for each in operations if each.lower() not in known]
    if unknown:
        raise IllegalArgumentError(f"{unknown[0]!r} is not an operation; they are {', '.join(known)}")
    ((kind, name),) = resource.items()
    is_prefix = name.endswith(WILDCARD) and name != WILDCARD
    principal = user if ":" in user else f"User:{user}"
    return [
        Binding(
            _BY_NAME[kind],
            name.removesuffix(WILDCARD) if is_prefix else name,
            Pattern.PREFIXED if is_prefix else Pattern.LITERAL,
            principal,
            WILDCARD,
            Operation[each.upper()],
            permission,
        )
        for each in operations
    ]


class Filter(NamedTuple):
    """Which bindings are meant; 1 and None stand for any."""

    resource_type: int = ANY
    resource_name: str | None = None
    pattern_type: int = Pattern.ANY
    principal: str | None = None
    host: str | None = None
    operation: int = ANY
    permission: int = ANY

    def check(self) -> None:
        """Raise InvalidRequestError for what no filter can mean."""
        if self.pattern_type not in tuple(Pattern)[1:]:
            raise InvalidRequestError(f"Invalid pattern type {self.pattern_type}")
        if self.resource_type != ANY and self.resource_type not in _RESOURCE_TYPES:
            raise InvalidRequestError(f"Invalid resource type {self.resource_type}")
        if self.permission not in tuple(Permission)[1:] or not self.operation:
            raise InvalidRequestError("Filters take known operations and permissions only")

    def matches(self, binding: Binding) -> bool:
        """Whether a binding is meant."""
        return (
            self.resource_type in (ANY, binding.resource_type)
            and self._names(binding)
            and self.principal in (None, binding.principal)
            and self.host in (None, binding.host)
            and self.operation in (ANY, binding.operation)
            and self.permission in (ANY, binding.permission)
        )

    def _names(self, binding: Binding) -> bool:
        if self.pattern_type == Pattern.MATCH:
            return self.resource_name is None or binding.is_about(binding.resource_type, self.resource_name)
        if self.pattern_type not in (Pattern.ANY, binding.pattern_type):
            return False
        return self.resource_name in (None, binding.resource_name)


class AccessControl:
    """All bindings, and the decision.

    >>> control = AccessControl(super_users=["User:admin"])
    >>> control.allows("User:admin", "::1", 3, 2, "events"), control.allows("User:bob", "::1", 3, 2, "events")
    (True, False)
    >>> control.create(Binding(2, "ev", Pattern.PREFIXED, "User:bob", "*", 3, Permission.ALLOW))
    >>> control.allows("User:bob", "::1", 8, 2, "events")  # reading includes describing
    True
    """

    def __init__(
        self,
        table: MutableMapping[str, Any] | None = None,
        *,
        super_users: Iterable[str] = (),
        allow_if_none: bool = False,
    ) -> None:
        self._table: MutableMapping[str, Any] = {} if table is None else table
        self._super_users = frozenset(super_users)
        self._allow_if_none = allow_if_none
        self._bindings: dict[str, Binding] = {key: Binding(*saved) for key, saved in self._table.items()}

    def allows(self, principal: str, host: str, operation: int, resource_type: int, resource_name: str) -> bool:
        """Whether a client may do something."""
        if principal in self._super_users:
            return True
        found = [each for each in self._bindings.values() if each.is_about(resource_type, resource_name)]
        if not found:
            return self._allow_if_none
        mine = [each for each in found if each.is_for(principal, host) and each.covers(operation)]
        if any(each.permission == Permission.DENY for each in mine):
            return False
        return bool(mine)

    def allows_any(self, principal: str, host: str, operation: int, resource_type: int) -> bool:
        """Whether a client may do something to a resource of a type that there is, or that there might be.

        As in Kafka, which looks at bindings and not at resources: to be allowed a name, or a prefix, is enough if no
        denied one takes all of it away again.
        """
        if self.allows(principal, host, operation, resource_type, _ANY_NAME):
            return True
        mine = [
            each
            for each in self._bindings.values()
            if each.resource_type == resource_type
            and each.is_for(principal, host)
            and each.operation in (operation, ALL_OPERATIONS)
        ]
        denied = {(each.pattern_type, each.resource_name) for each in mine if each.permission == Permission.DENY}
        if (Pattern.LITERAL, WILDCARD) in denied:
            return False
        return any(
            (each.pattern_type, each.resource_name) == (Pattern.LITERAL, WILDCARD)
            or not (
                (each.pattern_type, each.resource_name) in denied
                or any(
                    (Pattern.PREFIXED, each.resource_name[:end]) in denied for end in range(len(each.resource_name) + 1)
                )
            )
            for each in mine
            if each.permission == Permission.ALLOW
        )

    def create(self, binding: Binding) -> None:
        """Add a binding; one that is there already stays."""
        binding.check()
        key = "\x00".join(map(str, binding))
        self._bindings[key] = binding
        self._table[key] = [*binding[:2], int(binding.pattern_type), *binding[3:5], *map(int, binding[5:])]

    def find(self, wanted: Filter) -> Iterator[Binding]:
        """Return the bindings that a filter means."""
        wanted.check()
        return iter([each for each in self._bindings.values() if wanted.matches(each)])

    def delete(self, wanted: Filter) -> list[Binding]:
        """Remove the bindings that a filter means; return them."""
        found = list(self.find(wanted))
        for binding in found:
            key = "\x00".join(map(str, binding))
            del self._bindings[key]
            self._table.pop(key, None)
        return found
