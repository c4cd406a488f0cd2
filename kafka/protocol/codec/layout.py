"""The wire form of a struct in one version: the facts that both codecs start from."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from kafka.protocol import types
from kafka.protocol.fields import Field

if TYPE_CHECKING:
    from typing import Any

    from kafka.protocol.struct import StructMeta

#: The length prefix of each type that has one, in versions that are not flexible.
_PREFIX = {types.String: "h", types.Bytes: "i", types.Records: "i"}

FIXED_FORMATS = {
    types.Int8: "b",
    types.Int16: "h",
    types.Int32: "i",
    types.Int64: "q",
    types.UInt16: "H",
    types.UInt32: "I",
    types.Float64: "d",
    types.Boolean: "?",
}
_WIDTHS = {"b": 1, "h": 2, "i": 4, "q": 8, "H": 2, "I": 4, "d": 8, "?": 1}


class WireField(NamedTuple):
    """One field in one version."""

    field: Field
    #: The type of the value, or of the elements where ``is_array``: a wire type or a bound struct.
    element: Any
    is_array: bool
    is_struct: bool
    nullable: bool
    #: Lengths and counts are compact varints.
    compact: bool

    @property
    def name(self) -> str:
        """The attribute."""
        return self.field.name

    @property
    def prefix(self) -> str:
        """The struct format of the length or count in front, where it is of fixed width."""
        return "i" if self.is_array else _PREFIX[self.element]


class Layout(NamedTuple):
    """One struct in one version: fields in wire order, then those in the tag buffer by ascending tag."""

    cls: StructMeta
    flexible: bool
    plain: tuple[WireField, ...]
    tagged: tuple[WireField, ...]

    @property
    def min_size(self) -> int:
        """The fewest bytes that it can take."""
        return sum(map(min_size, self.plain)) + self.flexible


def null_marker(wire: WireField) -> int:
    """Return what stands for null in front of a nullable struct; anything greater means that it is there.

    The protocol guide knows -1 alone. Kafka's own classes write 0 where the struct is a tagged field, and
    so it is in the logs of consumer groups (ConsumerGroupMemberMetadataValue).
    """
    return -1 if wire.field.tag is None else 0


def layout_of(cls: StructMeta) -> Layout:
    """Return the layout of a bound class."""
    version = cls._version
    assert version is not None
    flexible = version in cls._unbound._flexible
    fields = [_wire_field(f, version, flexible) for f in cls._fields.values() if version in f.versions]
    tagged = sorted((w for w in fields if w.field.tag is not None), key=lambda w: w.field.tag or 0)
    assert flexible or not tagged
    return Layout(cls, flexible, tuple(w for w in fields if w.field.tag is None), tuple(tagged))


def _wire_field(field: Field, version: int, flexible: bool) -> WireField:
    element = field.element
    is_struct = not issubclass(element, types.AbstractType)
    if is_struct:
        element = element._of_version(version)
    return WireField(field, element, field.is_array, is_struct, version in field.nullable, flexible and field.flexible)


def min_size(wire: WireField) -> int:
    """Return the fewest bytes that a field can take."""
    if wire.is_array or wire.element in _PREFIX:
        return 1 if wire.compact else _WIDTHS[wire.prefix]
    return element_min_size(wire)


def element_min_size(wire: WireField) -> int:
    """Return the fewest bytes that one element of a list, or the value itself, can take."""
    if wire.is_struct:
        return 1 if wire.nullable and not wire.is_array else layout_of(wire.element).min_size
    if wire.element is types.Uuid:
        return 16
    if wire.element in _PREFIX:
        return 1 if wire.compact else _WIDTHS[_PREFIX[wire.element]]
    return _WIDTHS[FIXED_FORMATS[wire.element]]


def has_records(layout: Layout) -> bool:
    """Whether a struct, or a part of it, holds record batches."""
    wires = (*layout.plain, *layout.tagged)
    return any(w.element is types.Records or (w.is_struct and has_records(layout_of(w.element))) for w in wires)


def element_as_field(wire: WireField) -> WireField:
    """Return the layout of an element of a list, which is never null and never a list."""
    return wire._replace(is_array=False, nullable=False)
