"""The words of access control lists, with Kafka's numbers; the administrator and the embedded broker share them."""

from __future__ import annotations

from enum import IntEnum
from typing import TYPE_CHECKING, Any

from kafka.errors import IllegalArgumentError

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["ACLOperation", "ACLPermissionType", "ACLResourcePatternType", "Named", "ResourceType"]


class Named:
    """Enums whose members are also given by value, or by name in any case with ``-`` for ``_``."""

    @classmethod
    def build_from(cls, given: object) -> Self:
        """Return a member from a member, a value or a name.

        >>> ACLOperation.build_from("cluster-action")
        <ACLOperation.CLUSTER_ACTION: 9>
        """
        kind: Any = cls
        name = given.upper().replace("-", "_") if isinstance(given, str) else None
        for member in kind:
            if given in (member, member.value) or name in (member.name, str(member.value).upper()):
                return member  # type: ignore[no-any-return]
        raise IllegalArgumentError(f"{cls.__name__} has no {given!r}; it has {', '.join(kind.__members__)}")

    @classmethod
    def known(cls, value: object) -> Self:
        """Return the member with a value that a broker sent, UNKNOWN if a newer Kafka has added it.

        >>> ACLOperation.known(99)
        <ACLOperation.UNKNOWN: 0>
        """
        kind: Any = cls
        return next((member for member in kind if member.value == value), kind.UNKNOWN)  # type: ignore[no-any-return]

    @classmethod
    def value_for(cls, given: object) -> Any:
        """Return the value of a member, given by member, value or name."""
        found: Any = cls.build_from(given)
        return found.value


class ACLOperation(Named, IntEnum):
    """An operation that an ACL allows or denies."""

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class ACLPermissionType(Named, IntEnum):
    """Whether an ACL allows or denies."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


class ACLResourcePatternType(Named, IntEnum):
    """How the name of a resource is meant: MATCH, in filters, finds what applies to a resource of that name."""

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class ResourceType(Named, IntEnum):
    """The type of the resource that an ACL is about."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7
