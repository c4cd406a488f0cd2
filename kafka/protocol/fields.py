"""The language in which message definitions are written: version ranges and fields.

A definition is a class body of fields in wire order::

    class ListGroupsRequest(Request, api_key=16, versions="0-5", flexible="3+"):
        states_filter: list[str] = field(Array(String), "4+")
        types_filter: list[str] = field(Array(String), "5+")

This module only holds what the definitions say. ``struct`` makes classes of them, ``codec.compiler``
and ``codec.interpreter`` make codecs of them.
"""

from __future__ import annotations

import uuid
from collections.abc import Mapping
from functools import cache
from typing import Any, Final, NamedTuple, TypeAlias

from kafka.protocol import types

#: Record batches: bytes to be sent, a view into the received frame once decoded.
Buffer: TypeAlias = "bytes | bytearray | memoryview"

#: No version of a message goes beyond INT16.
_LAST: Final = 0x7FFF

ZERO_UUID: Final = uuid.UUID(int=0)
_UNSET: Final = object()


class VersionRange(NamedTuple):
    """The versions from ``low`` to ``high``, both included; ``low > high`` means none.

    >>> VersionRange.parse("3+"), VersionRange.parse("0-12"), VersionRange.parse("7")
    (3+, 0-12, 7)
    >>> 12 in VersionRange.parse("0-12")
    True
    """

    low: int
    high: int

    @classmethod
    @cache  # a few dozen texts for the thousands of fields that an admin client imports
    def parse(cls, text: str) -> VersionRange:
        """Read the notation of the definitions: ``3+``, ``0-12``, ``7`` or ``none``."""
        if text == "none":
            return cls(1, 0)
        if text.endswith("+"):
            return cls(int(text[:-1]), _LAST)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def without(self, unstable: VersionRange) -> VersionRange:
        """Return what is left when the first or the last versions are taken away."""
        if unstable.low > unstable.high:
            return self
        if unstable.low == self.low:
            return VersionRange(unstable.high + 1, self.high)
        return VersionRange(self.low, unstable.low - 1)

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version <= self.high

    def __repr__(self) -> str:
        if self.low > self.high:
            return "none"
        if self.high == _LAST:
            return f"{self.low}+"
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"

    def __str__(self) -> str:
        return repr(self)


class Array:
    """The type of a field that holds a list: of a primitive type or of a struct."""

    __slots__ = ("of",)

    def __init__(self, of: Any) -> None:
        self.of = of

    def __repr__(self) -> str:
        return f"Array({self.of.__name__ if isinstance(self.of, type) else self.of})"


class Field:
    """The definition of one field. Made by ``field()``, named by its class."""

    __slots__ = (
        "default",
        "explicit_default",
        "flexible",
        "ignorable",
        "name",
        "nullable",
        "secret",
        "spec_name",
        "tag",
        "type",
        "versions",
    )

    name: str

    def __init__(
        self,
        of: type | str | Array,
        versions: str,
        nullable: str,
        default: object,
        ignorable: bool,
        tag: int | None,
        flexible: bool,
        secret: bool,
        spec_name: str | None,
    ) -> None:
        self.type: Any = of
        self.versions = VersionRange.parse(versions)
        self.nullable = VersionRange.parse(nullable)
        self.explicit_default = default is not _UNSET
        self.default = _implied_default(of, self.nullable == self.versions) if default is _UNSET else default
        self.ignorable = ignorable
        self.tag = tag
        self.flexible = flexible
        self.secret = secret
        self.spec_name = spec_name or ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name
        if not self.spec_name:
            self.spec_name = "".join(part[:1].upper() + part[1:] for part in name.split("_"))

    def resolve(self, structs: Mapping[str, object]) -> None:
        """Put the struct in the place of its name, which is how neighbours in a message refer to each other."""
        if isinstance(self.type, str):
            self.type = structs[self.type]
        elif isinstance(self.type, Array) and isinstance(self.type.of, str):
            self.type = Array(structs[self.type.of])

    @property
    def is_array(self) -> bool:
        """Whether it holds a list."""
        return isinstance(self.type, Array)

    @property
    def element(self) -> Any:
        """The type, or for a list the type of its elements."""
        return self.type.of if isinstance(self.type, Array) else self.type

    @property
    def json_name(self) -> str:
        """Its name in Kafka's own JSON form."""
        return self.spec_name[:1].lower() + self.spec_name[1:]

    def fresh_default(self, version: int | None) -> Any:
        """Return the default; a list or a struct is a new one, of the version that it is part of."""
        if self.default is not MAKE_EMPTY:
            return self.default
        if self.is_array:
            return []
        return self.type() if version is None else self.type[version]()

    def is_default(self, value: object) -> bool:
        """Whether writing the field can be left out without losing anything."""
        if self.default is MAKE_EMPTY:
            return bool(value in ([], ())) if self.is_array else bool(value == self.type())
        return value is self.default or bool(value == self.default and value is not None)

    def __repr__(self) -> str:
        return f"<Field {self.name}: {self.type!r} {self.versions}>"


#: The default of lists (an empty one) and structs (one of defaults), which cannot be shared.
MAKE_EMPTY: Final = object()

_ZEROS: Final[Mapping[type, object]] = {
    types.Boolean: False,
    types.Float64: 0.0,
    types.String: "",
    types.Bytes: b"",
    types.Records: b"",
    types.Uuid: ZERO_UUID,
}


def _implied_default(of: type | str | Array, nullable: bool) -> object:
    if of is types.Records and nullable:
        return None
    if isinstance(of, (Array, str)) or not issubclass(of, types.AbstractType):
        return MAKE_EMPTY
    return _ZEROS.get(of, 0)


def field(
    of: type | str | Array,
    versions: str,
    *,
    nullable: str = "none",
    default: object = _UNSET,
    ignorable: bool = False,
    tag: int | None = None,
    flexible: bool = True,
    secret: bool = False,
    spec_name: str | None = None,
) -> Any:
    """Define a field of a message.

    ``of`` is a type of ``kafka.protocol.types``, a struct class (or its name) or an ``Array`` of either. ``versions``
    and ``nullable`` are version ranges. ``ignorable`` says that a version which cannot carry the field
    may drop it in silence. ``tag`` puts it in the tag buffer of flexible versions. ``flexible=False``
    keeps the old encoding in flexible versions too. ``secret`` values are hidden in ``repr``.
    ``spec_name`` is Kafka's own name where it does not follow from ours.
    """
    return Field(of, versions, nullable, default, ignorable, tag, flexible, secret, spec_name)
