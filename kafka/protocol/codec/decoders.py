"""Writes the decoders: from the layout of a struct to Python source that reads it.

Invariants of what is written: the position only grows, every read is checked by ``unpack_from`` or an
index, a slice that runs over the end is noticed by the next read or by the last comparison with the
end, and a count is compared with the bytes left before anything is made for it. So whatever the
bytes are, time and memory are bounded by their number.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

from kafka.protocol import types
from kafka.protocol.codec.layout import (
    FIXED_FORMATS,
    Layout,
    WireField,
    element_as_field,
    element_min_size,
    has_records,
    layout_of,
    null_marker,
)
from kafka.protocol.codec.runtime import SHORT_LIST, Source, short_unpackers, struct_of
from kafka.protocol.fields import Buffer
from kafka.protocol.struct import StructMeta, describe


class DecoderSource(Source):
    """Collects neighbouring fixed-width reads and writes them as one."""

    def __init__(self, *, views: bool, sliced: bool = False) -> None:
        super().__init__()
        #: Whether it pauses after each struct of a list.
        self.sliced = sliced
        #: Whether records are views into the data, which may then be a bytearray.
        self.views = views
        self._formats = ""
        self._targets: list[str] = []
        self._after: list[str] = []

    def fixed(self, format_: str, target: str, after: str = "") -> None:
        """Read a fixed-width value into ``target``; ``after`` is a line that needs it."""
        self._formats += format_
        self._targets.append(target)
        if after:
            self._after.append(after)

    def flush(self) -> None:
        """Write the reads collected so far."""
        if not self._targets:
            return
        if self._formats == "B":
            self.line(f"{self._targets[0]} = data[p]")
            self.line("p += 1")
        else:
            packed = struct_of(self._formats)
            unpack = self.constant(f"unpack_{self._formats.replace('?', 'o')}_", packed.unpack_from)
            comma = "," if len(self._targets) == 1 else ""
            self.line(f"{', '.join(self._targets)}{comma} = {unpack}(data, p)")
            self.line(f"p += {packed.size}")
        for line in self._after:
            self.line(line)
        self._formats = ""
        self._targets.clear()
        self._after.clear()


def compile_decoder(cls: StructMeta) -> Callable[[Buffer, int, int], tuple[Any, int]]:
    """Return `decode(data, start, end)` for a bound class: the message, and the position behind it."""
    source = _message_source(cls, DecoderSource(views=has_records(layout_of(cls))))
    source.line("return m, p")
    return source.finish("def decode(data, p, end):", f"kafka.protocol {describe(cls)} decode")


def compile_slices(cls: StructMeta) -> Callable[[Buffer, int, int], Generator[None, None, tuple[Any, int]]]:
    """Return a generator function that does the same, and pauses after each struct of a list."""
    source = _message_source(cls, DecoderSource(views=has_records(layout_of(cls)), sliced=True))
    source.line("yield")  # it may have no list
    source.line("return m, p")
    return source.finish("def slices(data, p, end):", f"kafka.protocol {describe(cls)} slices")


def _message_source(cls: StructMeta, source: DecoderSource) -> DecoderSource:
    if source.views:
        source.line("view = memoryview(data).toreadonly()")
    _decode_struct(source, layout_of(cls), "m")
    source.flush()
    source.line("if p > end: raise Malformed")
    return source


def _decode_struct(source: DecoderSource, layout: Layout, target: str) -> None:
    source.line(f"{target} = new({source.constant('C', layout.cls)})")
    _decode_fields(source, layout, target)


def _decode_fields(source: DecoderSource, layout: Layout, target: str) -> None:
    for wire in layout.plain:
        _decode_field(source, wire, f"{target}.{wire.name}")
    if layout.flexible:
        source.line(f"{target}._tagged = None")
        tags = source.name("t")
        source.fixed("B", tags)
        source.flush()
        known = {wire.field.tag: (wire.name, _compile_tag_decoder(layout.cls, wire)) for wire in layout.tagged}
        source.line(f"if {tags}: p = read_tags({source.constant('TAGS', known)}, {target}, data, p, {tags}, end)")


def _compile_tag_decoder(cls: StructMeta, wire: WireField) -> Callable[[bytes, int, int], tuple[object, int]]:
    # A separate part: bytes in messages without records, so no view is ever taken of it.
    source = DecoderSource(views=True)
    _decode_field(source, wire, "v")
    source.flush()
    source.line("if p > end: raise Malformed")
    source.line("return v, p")
    return source.finish("def decode_tag(data, p, end):", f"kafka.protocol {describe(cls)}.{wire.name} decode")


def _decode_field(source: DecoderSource, wire: WireField, target: str) -> None:
    if wire.is_array:
        _decode_array(source, wire, target)
    elif wire.is_struct:
        _decode_nested(source, wire, target)
    elif wire.element is types.Uuid:
        raw = source.name("u")
        source.fixed("16s", raw, f"{target} = uuid_of({raw})")
    elif wire.element in FIXED_FORMATS:
        source.fixed(FIXED_FORMATS[wire.element], target)
    else:
        _decode_sized(source, wire, target)


def _decode_length(source: DecoderSource, wire: WireField) -> str:
    """Read a length or count into a new variable; compact ones are one more than what they say."""
    length = source.name("n")
    source.fixed("B" if wire.compact else wire.prefix, length)
    source.flush()
    if wire.compact:
        _decode_long_length(source, length)
    return length


def _decode_long_length(source: DecoderSource, length: str) -> None:
    """Read the rest of a compact length: two bytes cover up to 16 KiB, nearly all lengths that one byte cannot hold."""
    source.line(f"if {length} > 127:")
    source.line(f"    if data[p] < 128: {length}, p = {length} - 128 + (data[p] << 7), p + 1")
    source.line(f"    else: {length}, p = long_uvarint(data, p, {length})")


def _decode_sized(source: DecoderSource, wire: WireField, target: str) -> None:
    if wire.element is types.String and wire.compact:
        _decode_compact_text(source, wire, target)
        return
    length = _decode_length(source, wire)
    stop = source.name("e")
    value = {
        types.String: f"data[p:{stop}].decode()",
        types.Bytes: f"bytes(data[p:{stop}])" if source.views else f"data[p:{stop}]",
        types.Records: f"view[p:{stop}]",
    }[wire.element]
    source.line(f"if {length}:" if wire.compact else f"if {length} >= 0:")
    source.indent()
    source.line(f"{stop} = p + {length}{' - 1' if wire.compact else ''}")
    source.line(f"{target} = {value}")
    source.line(f"p = {stop}")
    source.dedent()
    source.line(f"else: {target} = None" if wire.nullable else "else: raise Malformed")


def _decode_compact_text(source: DecoderSource, wire: WireField, target: str) -> None:
    """Read the commonest thing of all: a string of at most 126 bytes, whose length is one byte."""
    source.flush()
    length, stop = source.name("n"), source.name("e")
    source.line(f"{length} = data[p]")
    source.line(f"if 0 < {length} < 128:")
    source.indent()
    source.line(f"{stop} = p + {length}")
    source.line(f"{target} = data[p + 1 : {stop}].decode()")
    source.line(f"p = {stop}")
    source.dedent()
    source.line(f"elif {length}: {target}, p = long_text(data, p)")
    source.line(f"else: {target}, p = None, p + 1" if wire.nullable else "else: raise Malformed")


def _decode_nested(source: DecoderSource, wire: WireField, target: str) -> None:
    struct_ = source.name("s")
    if not wire.nullable:
        _decode_struct(source, layout_of(wire.element), struct_)
        source.flush()
        source.line(f"{target} = {struct_}")
        return
    marker = source.name("n")
    source.fixed("b", marker)
    source.flush()
    source.line(f"if {marker} <= {null_marker(wire)}: {target} = None")
    source.line("else:")
    source.indent()
    _decode_struct(source, layout_of(wire.element), struct_)
    source.flush()
    source.line(f"{target} = {struct_}")
    source.dedent()


def _decode_array(source: DecoderSource, wire: WireField, target: str) -> None:
    count = source.name("n")
    source.fixed("B" if wire.compact else wire.prefix, count)
    source.flush()
    # Most lists of a message are empty, so that is asked first.
    source.line(f"if {count} == {int(wire.compact)}: {target} = []")
    if wire.nullable:
        source.line(f"elif {count} == 0: {target} = None" if wire.compact else f"elif {count} < 0: {target} = None")
    source.line("else:")
    source.indent()
    if wire.compact:
        _decode_long_length(source, count)
        source.line(f"{count} -= 1")
    size = element_min_size(wire)
    # Zero or less is left for a compact count of more bytes than it takes, and for a null that may not be.
    source.line(f"if {count} < 1 or {count}{f' * {size}' if size > 1 else ''} > end - p: raise Malformed")
    if wire.element in FIXED_FORMATS:
        code = FIXED_FORMATS[wire.element]
        short = source.constant("SHORT", short_unpackers(code))
        source.line(f"if {count} < {SHORT_LIST}: {target} = [*{short}[{count}](data, p)]")
        source.line(f"else: {target} = [*unpack_ints(data, p, {count}, {code!r})]")
        source.line(f"p += {size} * {count}")
    else:
        _decode_elements(source, wire, target, count)
    source.dedent()


def _decode_elements(source: DecoderSource, wire: WireField, target: str, count: str) -> None:
    items, item = source.name("l"), source.name("s")
    if not wire.is_struct:
        source.line(f"{target} = {items} = []")
        source.line(f"for _ in range({count}):")
        source.indent()
        _decode_field(source, element_as_field(wire), item)
        source.flush()
        source.line(f"{items}.append({item})")
        source.dedent()
        return
    layout = layout_of(wire.element)
    # All elements are made by one call into C, which costs a third less than making each in the loop.
    cls = source.constant("C", layout.cls)
    source.line(f"{target} = {items} = [new({cls})] if {count} == 1 else [*map(new, repeat({cls}, {count}))]")
    # Whether a struct is of numbers alone, so that all its elements have the same size.
    fixed = bool(layout.plain) and all(not w.is_array and w.element in FIXED_FORMATS for w in layout.plain)
    if fixed:
        _decode_fixed_elements(source, layout, items, count)
        if not layout.flexible:
            return
        source.line("else:")
        source.indent()
    source.line(f"for {item} in {items}:")
    source.indent()
    _decode_fields(source, layout, item)
    source.flush()
    if source.sliced:
        source.line("yield")
    source.dedent()
    if fixed:
        source.dedent()


def _decode_fixed_elements(source: DecoderSource, layout: Layout, items: str, count: str) -> None:
    """Read structs of numbers alone by one iterator in C.

    In a flexible version only where no tag buffer of theirs holds anything; ``else`` is left to the caller.
    """
    packed = struct_of("".join(FIXED_FORMATS[w.element] for w in layout.plain) + "x" * layout.flexible)
    unpack, item, stop = source.constant("iter_unpack", packed.iter_unpack), source.name("s"), source.name("e")
    targets = ", ".join(f"{item}.{w.name}" for w in layout.plain) + ("," if len(layout.plain) == 1 else "")
    source.line(f"{stop} = p + {packed.size} * {count}")
    if layout.flexible:
        tags = f"data[p + {packed.size - 1} : {stop} : {packed.size}]"
        source.line(f"if {count} > 3 and {stop} <= end and not any({tags}):")
        source.indent()
    source.line(f"for {item}, ({targets}) in zip({items}, {unpack}(data[p:{stop}])):")
    source.line(f"    {item}._tagged = None" if layout.flexible else "    pass")
    source.line(f"p = {stop}")
    if layout.flexible:
        source.dedent()
