"""Access control lists: describe, create and delete them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from kafka.acl import ACLOperation, ACLPermissionType, ACLResourcePatternType, ResourceType
from kafka.admin.calls import Calls, call
from kafka.admin.results import error_of, raise_first, raise_refused
from kafka.errors import IllegalArgumentError, KafkaError, NoError, for_code
from kafka.protocol.acl import (
    CreateAclsRequest,
    DeleteAclsRequest,
    DeleteAclsResponse,
    DescribeAclsRequest,
    DescribeAclsResponse,
)

_PATTERNS_SINCE: Final = 1
_USERS_SINCE: Final = 3


class _Value:
    """Objects that compare and hash by their fields."""

    __slots__ = ()

    def _fields(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for kind in type(self).__mro__ for name in getattr(kind, "__slots__", ()))

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and isinstance(other, _Value) and self._fields() == other._fields()

    def __hash__(self) -> int:
        return hash(self._fields())


class ResourcePatternFilter(_Value):
    """Which resources are meant: by type, by name (None for any), and by how a pattern names them.

    >>> ResourcePatternFilter("topic", "events", "match")
    ResourcePatternFilter(TOPIC, 'events', MATCH)
    """

    __slots__ = ("pattern_type", "resource_name", "resource_type")

    def __init__(
        self,
        resource_type: ResourceType | str = ResourceType.ANY,
        resource_name: str | None = None,
        pattern_type: ACLResourcePatternType | str = ACLResourcePatternType.ANY,
    ) -> None:
        self.resource_type = ResourceType.build_from(resource_type)
        self.resource_name = resource_name
        self.pattern_type = ACLResourcePatternType.build_from(pattern_type)
        self.validate()

    def validate(self) -> None:
        """Raise `IllegalArgumentError` for what cannot be meant."""
        if self.resource_name is not None and not isinstance(self.resource_name, str):
            raise IllegalArgumentError(f"resource_name must be a name, or None for any, not {self.resource_name!r}")

    def __repr__(self) -> str:
        names = f"{self.resource_type.name}, {self.resource_name!r}, {self.pattern_type.name}"
        return f"{type(self).__name__}({names})"


class ResourcePattern(ResourcePatternFilter):
    """The resources that an ACL is about: one by its name, or all whose names begin with a prefix.

    >>> ResourcePattern("topic", "events")
    ResourcePattern(TOPIC, 'events', LITERAL)
    """

    __slots__ = ()

    def __init__(
        self,
        resource_type: ResourceType | str,
        resource_name: str,
        pattern_type: ACLResourcePatternType | str = ACLResourcePatternType.LITERAL,
    ) -> None:
        super().__init__(resource_type, resource_name, pattern_type)

    def validate(self) -> None:
        """Raise `IllegalArgumentError` for what only a filter can mean."""
        super().validate()
        if self.resource_type is ResourceType.ANY:
            raise IllegalArgumentError("the resource_type of a ResourcePattern must not be ANY")
        if self.pattern_type in {ACLResourcePatternType.ANY, ACLResourcePatternType.MATCH}:
            raise IllegalArgumentError(
                f"the pattern_type of a ResourcePattern must be LITERAL or PREFIXED, not {self.pattern_type.name}"
            )
        if not isinstance(self.resource_name, str) or not self.resource_name:
            raise IllegalArgumentError(
                f"the resource_name of a ResourcePattern must be a name, not {self.resource_name!r}"
            )


class ACLFilter(_Value):
    """Which ACLs are meant; None and ANY stand for all, and so does what is left out.

    >>> ACLFilter("User:alice", resource_pattern=ResourcePatternFilter("topic"))
    ACLFilter('User:alice', None, ANY, ANY, ResourcePatternFilter(TOPIC, None, ANY))
    """

    __slots__ = ("host", "operation", "permission_type", "principal", "resource_pattern")

    def __init__(
        self,
        principal: str | None = None,
        host: str | None = None,
        operation: ACLOperation | str = ACLOperation.ANY,
        permission_type: ACLPermissionType | str = ACLPermissionType.ANY,
        resource_pattern: ResourcePatternFilter | None = None,
    ) -> None:
        self.principal = principal
        self.host = host
        self.operation = ACLOperation.build_from(operation)
        self.permission_type = ACLPermissionType.build_from(permission_type)
        self.resource_pattern = ResourcePatternFilter() if resource_pattern is None else resource_pattern
        self.validate()

    def validate(self) -> None:
        """Raise `IllegalArgumentError` for what cannot be meant."""
        if not isinstance(self.resource_pattern, ResourcePatternFilter):
            raise IllegalArgumentError(
                f"the resource_pattern of an ACLFilter must be a ResourcePatternFilter, not {self.resource_pattern!r}"
            )

    def __repr__(self) -> str:
        words = f"{self.operation.name}, {self.permission_type.name}, {self.resource_pattern!r}"
        return f"{type(self).__name__}({self.principal!r}, {self.host!r}, {words})"


class ACL(ACLFilter):
    """A principal that may, or may not, do something with resources, from a host.

    >>> ACL("User:alice", "*", "read", "allow", ResourcePattern("topic", "events"))
    ACL('User:alice', '*', READ, ALLOW, ResourcePattern(TOPIC, 'events', LITERAL))
    """

    __slots__ = ()

    def __init__(
        self,
        principal: str,
        host: str,
        operation: ACLOperation | str,
        permission_type: ACLPermissionType | str,
        resource_pattern: ResourcePattern,
    ) -> None:
        super().__init__(principal, host, operation, permission_type, resource_pattern)

    def validate(self) -> None:
        """Raise `IllegalArgumentError` for what only a filter can mean."""
        super().validate()
        if self.operation is ACLOperation.ANY:
            raise IllegalArgumentError("the operation of an ACL must not be ANY; ALL is every operation")
        if self.permission_type is ACLPermissionType.ANY:
            raise IllegalArgumentError("the permission_type of an ACL must be ALLOW or DENY, not ANY")
        if not isinstance(self.resource_pattern, ResourcePattern):
            raise IllegalArgumentError(
                f"the resource_pattern of an ACL must be a ResourcePattern, not {self.resource_pattern!r}"
            )
        for name, value in (("principal", self.principal), ("host", self.host)):
            if not isinstance(value, str) or not value:
                raise IllegalArgumentError(f"the {name} of an ACL must be a name, or '*' for any, not {value!r}")


def acl_bindings(
    principals: Iterable[str],
    operations: Iterable[ACLOperation | str],
    resources: Iterable[ResourcePattern],
    *,
    hosts: Iterable[str] = ("*",),
    permission_type: ACLPermissionType | str = ACLPermissionType.ALLOW,
) -> list[ACL]:
    """Return the ACLs for all principals, operations, resources and hosts.

    >>> topics = [ResourcePattern("topic", name) for name in ("events", "logs")]
    >>> len(acl_bindings(["User:alice", "User:bob"], ["read", "describe"], topics))
    8
    """
    given = list(operations), list(resources), list(hosts)
    return [
        ACL(principal, host, operation, permission_type, resource)
        for principal in principals
        for operation in given[0]
        for resource in given[1]
        for host in given[2]
    ]


def producer_acls(
    principal: str,
    topics: Iterable[str],
    *,
    transactional_ids: Iterable[str] = (),
    host: str = "*",
    pattern_type: ACLResourcePatternType | str = ACLResourcePatternType.LITERAL,
) -> list[ACL]:
    """Return what a producer needs: to write, describe and create topics, and to use its transactional ids.

    >>> len(producer_acls("User:alice", ["events"], transactional_ids=["orders"]))
    5
    """
    places = [ResourcePattern(ResourceType.TOPIC, topic, pattern_type) for topic in topics]
    transactions = [ResourcePattern(ResourceType.TRANSACTIONAL_ID, name, pattern_type) for name in transactional_ids]
    own = ["write", "describe"]
    return [
        *acl_bindings([principal], [*own, "create"], places, hosts=[host]),
        *acl_bindings([principal], own, transactions, hosts=[host]),
    ]


def consumer_acls(
    principal: str,
    topics: Iterable[str],
    groups: Iterable[str],
    *,
    host: str = "*",
    pattern_type: ACLResourcePatternType | str = ACLResourcePatternType.LITERAL,
) -> list[ACL]:
    """Return what a consumer needs: to read and describe topics, and to be a member of groups.

    >>> len(consumer_acls("User:alice", ["events"], ["readers"]))
    3
    """
    places = [ResourcePattern(ResourceType.TOPIC, topic, pattern_type) for topic in topics]
    members = [ResourcePattern(ResourceType.GROUP, group, pattern_type) for group in groups]
    return [
        *acl_bindings([principal], ["read", "describe"], places, hosts=[host]),
        *acl_bindings([principal], ["read"], members, hosts=[host]),
    ]


def valid_acl_operations(values: Iterable[int]) -> set[ACLOperation]:
    """Return the operations with these numbers, leaving out numbers that are none.

    >>> sorted(valid_acl_operations([3, 4, 99]))
    [<ACLOperation.READ: 3>, <ACLOperation.WRITE: 4>]
    """
    return {operation for operation in ACLOperation if operation in set(values)}


class CreateAclsResult(dict[str, Any]):
    """``succeeded``: the ACLs that there are now; ``failed``: pairs of an ACL and an error class.

    `errors` has the error of each ACL that failed.
    """

    __slots__ = ("errors",)

    def __init__(self, outcomes: Sequence[tuple[ACL, KafkaError | None]]) -> None:
        super().__init__(
            succeeded=[acl for acl, error in outcomes if error is None],
            failed=[(acl, type(error)) for acl, error in outcomes if error is not None],
        )
        self.errors: dict[ACL, KafkaError] = {acl: error for acl, error in outcomes if error is not None}

    @property
    def ok(self) -> bool:
        """Whether all ACLs were created."""
        return not self.errors

    def raise_for_error(self) -> None:
        """Raise the first error, if there is one; ``error.results`` is this dict."""
        raise_first(self.errors.values(), self)


class Acls(Calls):
    """The calls about access control lists."""

    @call
    async def describe_acls(
        self, acl_filter: ACLFilter, timeout_ms: float | None = None
    ) -> tuple[list[ACL], type[KafkaError]]:
        """Return the ACLs that a filter means, and `NoError`; what keeps the broker from answering is raised.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> acl = ACL("User:alice", "*", "read", "allow", ResourcePattern("topic", "events"))
        >>> secured = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:ANONYMOUS"}
        >>> with Broker(configs=secured) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         created = admin.create_acls([acl])
        ...         found, _ = admin.describe_acls(ACLFilter())
        >>> found == [acl] == created["succeeded"]
        True
        """
        deadline = self._core.deadline(timeout_ms)
        if not isinstance(acl_filter, ACLFilter):
            raise IllegalArgumentError(f"acl_filter must be an ACLFilter, not {acl_filter!r}")
        version = await self._acl_version(deadline, DescribeAclsRequest(), [acl_filter])
        fields = _filter_fields(acl_filter, version)
        response = await self._core.ask(DescribeAclsRequest(**fields), deadline, "describe_acls()", checked=True)
        found = [
            ACL(
                entry.principal,
                entry.host,
                ACLOperation.known(entry.operation),
                ACLPermissionType.known(entry.permission_type),
                _pattern(resource),
            )
            for resource in response.resources
            for entry in resource.acls
        ]
        return found, NoError

    @call
    async def create_acls(
        self, acls: Iterable[ACL], timeout_ms: float | None = None, *, raise_errors: bool = True
    ) -> CreateAclsResult:
        """Create ACLs. The first error of an ACL is raised; with ``raise_errors=False`` the result has the errors."""
        deadline = self._core.deadline(timeout_ms)
        wanted = list(acls)
        for acl in wanted:
            if not isinstance(acl, ACL):
                raise IllegalArgumentError(f"acls must be ACL objects, not {acl!r}")
        version = await self._acl_version(deadline, CreateAclsRequest(), wanted)
        creations = [
            CreateAclsRequest.AclCreation(
                resource_type=int(acl.resource_pattern.resource_type),
                resource_name=acl.resource_pattern.resource_name,
                **_pattern_field("resource_pattern_type", acl, version),
                principal=acl.principal,
                host=acl.host,
                operation=int(acl.operation),
                permission_type=int(acl.permission_type),
            )
            for acl in wanted
        ]
        response = await self._core.ask(CreateAclsRequest(creations=creations), deadline, "create_acls()")
        found = CreateAclsResult(
            [
                (acl, error_of(entry.error_code, f"create_acls(): {acl!r}", entry.error_message))
                for acl, entry in zip(wanted, response.results, strict=True)
            ]
        )
        if raise_errors:
            found.raise_for_error()
        return found

    @call
    async def delete_acls(
        self, acl_filters: Iterable[ACLFilter], timeout_ms: float | None = None, *, raise_errors: bool = True
    ) -> list[tuple[ACLFilter, list[tuple[ACL, type[KafkaError]]], type[KafkaError]]]:
        """Delete the ACLs that filters mean; return for each filter the ACLs with an error class each, and its own.

        The first error of a filter or an ACL is raised; with ``raise_errors=False`` the classes are returned.
        """
        deadline = self._core.deadline(timeout_ms)
        wanted = list(acl_filters)
        for one in wanted:
            if not isinstance(one, ACLFilter):
                raise IllegalArgumentError(f"acl_filters must be ACLFilter objects, not {one!r}")
        version = await self._acl_version(deadline, DeleteAclsRequest(), wanted)
        entries = [DeleteAclsRequest.DeleteAclsFilter(**_filter_fields(one, version)) for one in wanted]
        response = await self._core.ask(DeleteAclsRequest(filters=entries), deadline, "delete_acls()")
        found: list[tuple[ACLFilter, list[tuple[ACL, type[KafkaError]]], type[KafkaError]]] = [
            (
                one,
                [
                    (
                        ACL(
                            acl.principal,
                            acl.host,
                            ACLOperation.known(acl.operation),
                            ACLPermissionType.known(acl.permission_type),
                            _pattern(acl),
                        ),
                        for_code(acl.error_code),
                    )
                    for acl in result.matching_acls
                ],
                for_code(result.error_code),
            )
            for one, result in zip(wanted, response.filter_results, strict=True)
        ]
        if raise_errors:
            outcomes = (outcome for one, deleted, kind in found for outcome in ((repr(one), kind), *_named(deleted)))
            raise_refused("delete_acls()", outcomes, found)
        return found

    async def _acl_version(
        self,
        deadline: float,
        request: DescribeAclsRequest | CreateAclsRequest | DeleteAclsRequest,
        wanted: Iterable[ACLFilter],
    ) -> int:
        """Return the version in which a request will be sent; raise where that cannot carry what is wanted."""
        await self._core.require(deadline, request.API_KEY, 0, "access control lists", "0.11")
        version = await self._core.version_of(request, deadline)
        literal = {ACLResourcePatternType.LITERAL, ACLResourcePatternType.ANY}
        for one in wanted:
            pattern = one.resource_pattern
            if version < _PATTERNS_SINCE and pattern.pattern_type not in literal:
                raise self._core.unsupported(f"the pattern type {pattern.pattern_type.name}", "2.0")
            if version < _USERS_SINCE and pattern.resource_type is ResourceType.USER:
                raise self._core.unsupported("the resource type USER", "3.2")
        return version


def _named(deleted: Iterable[tuple[ACL, type[KafkaError]]]) -> Iterable[tuple[str, type[KafkaError]]]:
    return ((repr(acl), kind) for acl, kind in deleted)


def _pattern_field(name: str, wanted: ACLFilter, version: int) -> dict[str, int]:
    return {name: int(wanted.resource_pattern.pattern_type)} if version >= _PATTERNS_SINCE else {}


def _filter_fields(wanted: ACLFilter, version: int) -> dict[str, object]:
    return {
        "resource_type_filter": int(wanted.resource_pattern.resource_type),
        "resource_name_filter": wanted.resource_pattern.resource_name,
        "principal_filter": wanted.principal,
        "host_filter": wanted.host,
        "operation": int(wanted.operation),
        "permission_type": int(wanted.permission_type),
        **_pattern_field("pattern_type_filter", wanted, version),
    }


def _pattern(
    entry: DescribeAclsResponse.DescribeAclsResource | DeleteAclsResponse.DeleteAclsMatchingAcl,
) -> ResourcePattern:
    return ResourcePattern(
        ResourceType.known(entry.resource_type), entry.resource_name, ACLResourcePatternType.known(entry.pattern_type)
    )
