"""Compiles definitions to Python functions: one encoder and one decoder per message and version.

The functions are flat: nested structs and lists are unrolled into one body, neighbouring fields of
fixed width become one ``struct.Struct`` call together with the length or count that follows them.
Their source is registered with ``linecache``, so tracebacks and debuggers show it.

The generated code holds only the straight path. It raises whatever Python raises when the data does
not fit (``struct.error``, ``IndexError``, ``AttributeError`` …) or ``Malformed`` where Python would
not notice; then the interpreter does the same work again to say exactly what is wrong where.

Invariants of the decoders: the position only grows, every read is checked by ``unpack_from`` or an
index, a slice that runs over the end is noticed by the next read or by the last comparison with the
end, and a count is compared with the bytes left before anything is made for it. So whatever the
bytes are, time and memory are bounded by their number.
"""

from __future__ import annotations

import linecache
import struct
import uuid
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, Final, NoReturn

from kafka.errors import KafkaProtocolError
from kafka.protocol import _interpret, types
from kafka.protocol._layout import (
    FIXED_FORMATS,
    Layout,
    WireField,
    element_as_field,
    element_min_size,
    layout_of,
    null_marker,
)
from kafka.protocol.fields import MAKE_EMPTY, Field
from kafka.protocol.struct import Struct, StructMeta, cannot_carry, describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator


class Malformed(Exception):  # noqa: N818 - never seen by anybody
    """The straight path does not apply; the interpreter knows why."""


#: What generated code and the run-time below may meet when data does not fit.
_MISFITS: Final = (Malformed, struct.error, IndexError, KeyError, AttributeError, TypeError, ValueError, OverflowError)


class Codec:
    """Encodes and decodes one message in one version."""

    __slots__ = ("_cls", "_decode", "_encode")

    def __init__(self, cls: StructMeta, encode: Callable[..., None], decode: Callable[..., Any]) -> None:
        self._cls = cls
        self._encode = encode
        self._decode = decode

    def encode(self, message: Any, parts: list[bytes]) -> None:
        """Append the wire form to ``parts``; on an error ``parts`` is as it was."""
        before = len(parts)
        try:
            self._encode(message, parts.append)
        except _MISFITS:
            del parts[before:]
            parts.append(_interpret.encode(self._cls, message))

    def decode(self, data: Any, start: int = 0) -> Any:
        """Decode one message that fills ``data`` from ``start`` to its end."""
        # Anything but bytes and bytearray indexes or slices differently; both of these do not.
        if type(data) is not bytes and type(data) is not bytearray:
            data = _as_bytes(data)
        try:
            message, position = self._decode(data, start, len(data))
            if position == len(data):
                return message
        except _MISFITS:
            pass
        return _interpret.decode(self._cls, data, start)


def _as_bytes(data: Any) -> bytes:
    try:
        return bytes(memoryview(data))
    except TypeError:
        raise KafkaProtocolError(f"decode() takes bytes, not {type(data).__name__}") from None


# What the generated code calls. Everything here is off the straight path or a single C call.

_UVARINT: Final = [bytes((n,)) for n in range(128)]
_BOOL: Final = {True: 1, False: 0}


def _uvarint(value: int) -> bytes:
    return types.UnsignedVarInt32.encode(value)  # type: ignore[no-any-return]


def _text_prefix(length: int) -> bytes:
    if length > types.MAX_STRING_BYTES + 1:
        raise Malformed
    return _uvarint(length)


def _long_uvarint(data: bytes, position: int, first: int) -> tuple[int, int]:
    """Go on with an unsigned varint whose first byte, already read, was ``first``."""
    value = first & 127
    for shift in (7, 14, 21, 28):
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > 0xFFFFFFFF:
                break
            return value, position
    raise Malformed


def _blob(value: Any) -> Any:
    """Return bytes-like data whose ``len`` is its size in bytes."""
    if isinstance(value, bytearray):
        return value
    if isinstance(value, memoryview):
        return value.cast("B") if value.nbytes != len(value) else value
    raise Malformed


def _sequence(value: Any) -> list[Any]:
    return list(types.as_sequence(value))


def _ints(values: Any, code: str) -> bytes:
    return struct.pack(f">{len(values)}{code}", *values)


def _unpack_ints(data: bytes, position: int, count: int, code: str) -> list[Any]:
    return list(struct.unpack_from(f">{count}{code}", data, position))


#: Topic ids come back in every message; making a UUID costs more than all the rest of a partition.
_uuid_of: Final = lru_cache(maxsize=4096)(lambda raw: uuid.UUID(bytes=raw))


def _read_tags(
    known: dict[int, tuple[str, Callable[..., Any]]], target: Any, data: bytes, position: int, count: int, end: int
) -> int:
    """Read a tag buffer that is not empty; ``count`` is its first byte."""
    if count > 127:
        count, position = _long_uvarint(data, position, count)
    previous = -1
    unknown: dict[int, bytes] = {}
    for _ in range(count):
        tag, position = _any_uvarint(data, position)
        size, position = _any_uvarint(data, position)
        if tag <= previous or size > end - position:
            raise Malformed
        previous = tag
        stop = position + size
        if tag in known:
            name, decode = known[tag]
            # A part of its own, so that it cannot read beyond its size.
            value, used = decode(data[position:stop], 0, size)
            if used != size:
                raise Malformed
            setattr(target, name, value)
        else:
            unknown[tag] = bytes(data[position:stop])
        position = stop
    if unknown:
        target.unknown_tags = unknown
    return position


def _any_uvarint(data: bytes, position: int) -> tuple[int, int]:
    first = data[position]
    return (first, position + 1) if first < 128 else _long_uvarint(data, position + 1, first)


def _write_tags(known: list[tuple[int, bytes]], unknown: Any) -> bytes:
    for tag in unknown or ():
        known.append((tag, bytes(unknown[tag])))
    known.sort()
    out = [_uvarint(len(known))]
    for tag, raw in known:
        out += (_uvarint(tag), _uvarint(len(raw)), raw)
    return b"".join(out)


def _refuse(cls: StructMeta, field: Field, value: Any) -> NoReturn:
    raise cannot_carry(cls, field, value)


def _foreign(value: Any, cls: StructMeta) -> None:
    """Let through an instance of the same struct that is bound to another version or to none."""
    if not isinstance(value, Struct) or type(value)._unbound is not cls._unbound:
        raise Malformed


_RUNTIME: Final[dict[str, Any]] = {
    "Malformed": Malformed,
    "UV": _UVARINT,
    "BOOL": _BOOL,
    "blob": _blob,
    "foreign": _foreign,
    "ints": _ints,
    "join": b"".join,
    "long_uvarint": _long_uvarint,
    "new": object.__new__,
    "read_tags": _read_tags,
    "refuse": _refuse,
    "sequence": _sequence,
    "text_prefix": _text_prefix,
    "unpack_ints": _unpack_ints,
    "uuid_of": _uuid_of,
    "uvarint": _uvarint,
    "write_tags": _write_tags,
}


class _Source:
    """The lines of a function under construction, and the names that it refers to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.globals: dict[str, Any] = dict(_RUNTIME)
        self._depth = 1
        self._serial = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    def indent(self) -> None:
        self._depth += 1

    def dedent(self) -> None:
        self._depth -= 1

    def name(self, stem: str) -> str:
        self._serial += 1
        return f"{stem}{self._serial}"

    def constant(self, stem: str, value: Any) -> str:
        for known, held in self.globals.items():
            if held is value and known.startswith(stem):
                return known
        name = self.name(stem)
        self.globals[name] = value
        return name

    def finish(self, head: str, label: str) -> Callable[..., Any]:
        """Compile the function; its source can be seen in tracebacks."""
        text = "\n".join([head, *self.lines, ""])
        filename = f"<{label}>"
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        exec(compile(text, filename, "exec"), self.globals)  # noqa: S102 - the text is made of our own definitions
        return self.globals[head.split("(")[0].removeprefix("def ")]  # type: ignore[no-any-return]


@cache
def _struct_of(format_: str) -> struct.Struct:
    return struct.Struct(">" + format_)


# Decoders


class _DecoderSource(_Source):
    """Collects neighbouring fixed-width reads and writes them as one."""

    def __init__(self) -> None:
        super().__init__()
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
            packed = _struct_of(self._formats)
            unpack = self.constant(f"unpack_{self._formats.replace('?', 'o')}_", packed.unpack_from)
            comma = "," if len(self._targets) == 1 else ""
            self.line(f"{', '.join(self._targets)}{comma} = {unpack}(data, p)")
            self.line(f"p += {packed.size}")
        for line in self._after:
            self.line(line)
        self._formats = ""
        self._targets.clear()
        self._after.clear()


def _compile_decoder(cls: StructMeta) -> Callable[..., Any]:
    source = _DecoderSource()
    _decode_struct(source, layout_of(cls), "m")
    source.flush()
    source.line("if p > end: raise Malformed")
    source.line("return m, p")
    return source.finish("def decode(data, p, end):", f"kafka.protocol {describe(cls)} decode")


def _decode_struct(source: _DecoderSource, layout: Layout, target: str) -> None:
    source.line(f"{target} = new({source.constant('C', layout.cls)})")
    for wire in layout.plain:
        _decode_field(source, wire, f"{target}.{wire.name}")
    if layout.flexible:
        for wire in layout.tagged:
            _decode_default(source, wire, f"{target}.{wire.name}")
        source.line(f"{target}.unknown_tags = None")
        tags = source.name("t")
        source.fixed("B", tags)
        source.flush()
        known = {wire.field.tag: (wire.name, _compile_tag_decoder(layout.cls, wire)) for wire in layout.tagged}
        source.line(f"if {tags}: p = read_tags({source.constant('TAGS', known)}, {target}, data, p, {tags}, end)")


def _decode_default(source: _DecoderSource, wire: WireField, target: str) -> None:
    if wire.field.default is MAKE_EMPTY:
        source.line(f"{target} = {'[]' if wire.is_array else source.constant('C', wire.element) + '()'}")
    else:
        source.line(f"{target} = {source.constant('DEFAULT', wire.field.default)}")


def _compile_tag_decoder(cls: StructMeta, wire: WireField) -> Callable[..., Any]:
    source = _DecoderSource()
    _decode_field(source, wire, "v")
    source.flush()
    source.line("if p > end: raise Malformed")
    source.line("return v, p")
    return source.finish("def decode_tag(data, p, end):", f"kafka.protocol {describe(cls)}.{wire.name} decode")


def _decode_field(source: _DecoderSource, wire: WireField, target: str) -> None:
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


def _decode_length(source: _DecoderSource, wire: WireField) -> str:
    """Read a length or count into a new variable; compact ones are one more than what they say."""
    length = source.name("n")
    source.fixed("B" if wire.compact else wire.prefix, length)
    source.flush()
    if wire.compact:
        source.line(f"if {length} > 127: {length}, p = long_uvarint(data, p, {length})")
    return length


def _decode_sized(source: _DecoderSource, wire: WireField, target: str) -> None:
    length = _decode_length(source, wire)
    stop = source.name("e")
    value = {
        types.String: f"data[p:{stop}].decode()",
        types.Bytes: f"bytes(data[p:{stop}])",
        types.Records: f"memoryview(data)[p:{stop}].toreadonly()",
    }[wire.element]
    source.line(f"if {length}:" if wire.compact else f"if {length} >= 0:")
    source.indent()
    source.line(f"{stop} = p + {length}{' - 1' if wire.compact else ''}")
    source.line(f"{target} = {value}")
    source.line(f"p = {stop}")
    source.dedent()
    source.line(f"else: {target} = None" if wire.nullable else "else: raise Malformed")


def _decode_nested(source: _DecoderSource, wire: WireField, target: str) -> None:
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


def _decode_array(source: _DecoderSource, wire: WireField, target: str) -> None:
    count = _decode_length(source, wire)
    if wire.compact:
        source.line(f"{count} -= 1")
    if wire.nullable:
        source.line(f"if {count} < 0: {target} = None")
        source.line("else:")
        source.indent()
    size = element_min_size(wire)
    check = f"{count} * {size} > end - p" if size > 1 else f"{count} > end - p"
    source.line(f"if {check}: raise Malformed" if wire.nullable else f"if {count} < 0 or {check}: raise Malformed")
    if wire.element in FIXED_FORMATS:
        source.line(f"{target} = unpack_ints(data, p, {count}, {FIXED_FORMATS[wire.element]!r}) if {count} else []")
        source.line(f"p += {size} * {count}")
    else:
        _decode_elements(source, wire, target, count)
    if wire.nullable:
        source.dedent()


def _decode_elements(source: _DecoderSource, wire: WireField, target: str, count: str) -> None:
    items, append, item = source.name("l"), source.name("append"), source.name("s")
    source.line(f"{target} = {items} = []")
    source.line(f"{append} = {items}.append")
    source.line(f"for _ in range({count}):")
    source.indent()
    if wire.is_struct:
        _decode_struct(source, layout_of(wire.element), item)
    else:
        _decode_field(source, element_as_field(wire), item)
    source.flush()
    source.line(f"{append}({item})")
    source.dedent()


# Encoders


class _EncoderSource(_Source):
    """Collects neighbouring pieces and writes them as one expression."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[tuple[str, str]] = []  # (format, expression); no format: the expression is bytes

    def fixed(self, format_: str, expression: str) -> None:
        """Write a fixed-width value."""
        self._pieces.append((format_, expression))

    def raw(self, expression: str) -> None:
        """Write bytes, small enough to be joined to their neighbours."""
        self._pieces.append(("", expression))

    def pending(self) -> str:
        """Return one expression for all that was collected, and forget it."""
        terms: list[str] = []
        formats, values = "", []
        for format_, expression in [*self._pieces, ("", "")]:
            if format_:
                formats += format_
                values.append(expression)
                continue
            if formats:
                pack = self.constant(f"pack_{formats}_", _struct_of(formats).pack)
                terms.append(f"{pack}({', '.join(values)})")
                formats, values = "", []
            if expression:
                terms.append(expression)
        self._pieces.clear()
        return " + ".join(terms)

    def flush(self) -> None:
        """Write what was collected."""
        expression = self.pending()
        if expression:
            self.line(f"put({expression})")


def _compile_encoder(cls: StructMeta) -> Callable[..., None]:
    source = _EncoderSource()
    _encode_struct(source, layout_of(cls), "m")
    source.flush()
    source.line("return")
    return source.finish("def encode(m, put):", f"kafka.protocol {describe(cls)} encode")


def _encode_struct(source: _EncoderSource, layout: Layout, value: str) -> None:
    cls = source.constant("C", layout.cls)
    source.line(f"if {value}.__class__ is not {cls}: {source.constant('check', _compile_check(layout.cls))}({value})")
    for wire in layout.plain:
        _encode_field(source, wire, f"{value}.{wire.name}")
    if not layout.flexible:
        return
    if not layout.tagged:
        tags = source.name("t")
        source.line(f"{tags} = {value}.unknown_tags")
        source.raw(f"(write_tags([], {tags}) if {tags} else b'\\0')")
    else:
        source.raw(f"{source.constant('tags', _compile_tag_encoder(layout))}({value})")


def _compile_check(cls: StructMeta) -> Callable[[Any], None]:
    """Make the function that lets an instance of another version pass if this version can carry it."""
    source = _Source()
    bound = source.constant("C", cls)
    source.line(f"foreign(m, {bound})")
    for field in cls._fields.values():
        if cls._version not in field.versions and not field.ignorable:
            definition = source.constant("F", field)
            source.line(
                f"if not {definition}.is_default(m.{field.name}): refuse({bound}, {definition}, m.{field.name})"
            )
    if cls._version not in cls._unbound._flexible:
        source.line("if m.unknown_tags: raise Malformed")
    return source.finish("def check(m):", f"kafka.protocol {describe(cls)} check")


def _compile_tag_encoder(layout: Layout) -> Callable[[Any], bytes]:
    source = _EncoderSource()
    source.line("known = []")
    for wire in layout.tagged:
        value = source.name("v")
        source.line(f"{value} = m.{wire.name}")
        source.line(f"if {_differs(source, wire, value)}:")
        source.indent()
        source.line("parts = []")
        source.line("put = parts.append")
        _encode_field(source, wire, value)
        source.flush()
        source.line(f"known.append(({wire.field.tag}, join(parts)))")
        source.dedent()
    source.line("if known or m.unknown_tags: return write_tags(known, m.unknown_tags)")
    source.line("return b'\\0'")
    return source.finish("def encode_tags(m):", f"kafka.protocol {describe(layout.cls)} tags")


def _differs(source: _EncoderSource, wire: WireField, value: str) -> str:
    default = wire.field.default
    if default is None:
        return f"{value} is not None"
    if default is MAKE_EMPTY and wire.is_array:
        return f"{value} is None or len({value})"
    return f"not {source.constant('F', wire.field)}.is_default({value})"


def _encode_field(source: _EncoderSource, wire: WireField, value: str) -> None:
    if wire.is_array:
        _encode_array(source, wire, value)
    elif wire.is_struct:
        _encode_nested(source, wire, value)
    elif wire.element is types.Uuid:
        source.raw(f"{value}.bytes")
    elif wire.element is types.Boolean:
        source.fixed("B", f"BOOL[{value}]")
    elif wire.element in FIXED_FORMATS:
        source.fixed(FIXED_FORMATS[wire.element], value)
    elif wire.element is types.String:
        _encode_text(source, wire, value)
    else:
        _encode_blob(source, wire, value)


def _null(wire: WireField) -> str:
    return repr(b"\0" if wire.compact else _struct_of(wire.prefix).pack(-1))


def _put_length(source: _EncoderSource, wire: WireField, length: str) -> None:
    if wire.compact:
        more = source.name("n")
        source.line(f"{more} = {length} + 1")
        source.raw(f"(UV[{more}] if {more} < 128 else {_long_prefix(wire)}({more}))")
    else:
        source.fixed(wire.prefix, length)


def _long_prefix(wire: WireField) -> str:
    return "text_prefix" if wire.element is types.String and not wire.is_array else "uvarint"


def _encode_text(source: _EncoderSource, wire: WireField, value: str) -> None:
    text = source.name("x")
    if not wire.nullable:
        source.line(f"{text} = {value}.encode()")
        _put_length(source, wire, f"len({text})")
        source.raw(text)
        return
    length = source.name("n")
    source.line(f"{text} = {value}")
    source.line(f"if {text} is None: {text} = {_null(wire)}")
    source.line("else:")
    source.indent()
    source.line(f"{text} = {text}.encode()")
    if wire.compact:
        source.line(f"{length} = len({text}) + 1")
        source.line(f"{text} = (UV[{length}] if {length} < 128 else text_prefix({length})) + {text}")
    else:
        pack = source.constant("pack_h_", _struct_of("h").pack)
        source.line(f"{text} = {pack}(len({text})) + {text}")
    source.dedent()
    source.raw(text)


def _encode_blob(source: _EncoderSource, wire: WireField, value: str) -> None:
    """Write bytes as a part of their own: they may be large, and are not copied."""
    raw = source.name("b")
    source.line(f"{raw} = {value}")
    if wire.nullable:
        before = source.pending()
        source.line(f"if {raw} is None: put({before + ' + ' if before else ''}{_null(wire)})")
        source.line("else:")
        source.indent()
        source.line(f"if {raw}.__class__ is not bytes: {raw} = blob({raw})")
        if before:
            source.raw(before)
    else:
        source.line(f"if {raw}.__class__ is not bytes: {raw} = blob({raw})")
    _put_length(source, wire, f"len({raw})")
    source.flush()
    source.line(f"put({raw})")
    if wire.nullable:
        source.dedent()


def _encode_nested(source: _EncoderSource, wire: WireField, value: str) -> None:
    struct_ = source.name("s")
    source.line(f"{struct_} = {value}")
    if not wire.nullable:
        _encode_struct(source, layout_of(wire.element), struct_)
        return
    source.flush()
    source.line(f"if {struct_} is None: put({_struct_of('b').pack(null_marker(wire))!r})")
    source.line("else:")
    source.indent()
    source.raw("b'\\x01'")
    _encode_struct(source, layout_of(wire.element), struct_)
    source.flush()
    source.dedent()


def _encode_array(source: _EncoderSource, wire: WireField, value: str) -> None:
    items = source.name("l")
    source.line(f"{items} = {value}")
    if wire.nullable:
        before = source.pending()
        source.line(f"if {items} is None: put({before + ' + ' if before else ''}{_null(wire)})")
        source.line("else:")
        source.indent()
        if before:
            source.raw(before)
    source.line(f"if {items}.__class__ is not list: {items} = sequence({items})")
    _put_length(source, wire, f"len({items})")
    if wire.element in FIXED_FORMATS and wire.element is not types.Boolean:
        source.raw(f"ints({items}, {FIXED_FORMATS[wire.element]!r})")
        if wire.nullable:
            source.flush()
    else:
        source.flush()
        item = source.name("s")
        source.line(f"for {item} in {items}:")
        source.indent()
        if wire.is_struct:
            _encode_struct(source, layout_of(wire.element), item)
        else:
            _encode_field(source, element_as_field(wire), item)
        source.flush()
        source.dedent()
    if wire.nullable:
        source.dedent()


def compile_codec(cls: StructMeta) -> Codec:
    """Compile both directions of a message, or of a part of one, in the version that ``cls`` is bound to."""
    return Codec(cls, _compile_encoder(cls), _compile_decoder(cls))


# Initialisers


def compile_init(cls: StructMeta) -> Callable[..., None]:
    """Make the ``__init__`` of a class: defaults for what is not given, tuples made into structs."""
    source = _Source()
    fields = [cls._fields[name] for name in cls._wire_names()]
    keyword_only = ["*"] if cls._version is None and fields else []
    parameters = [f"{f.name}={_parameter_default(source, f)}" for f in fields]
    for field in fields:
        _init_field(source, cls, field)
    source.line("self.unknown_tags = unknown_tags")
    more = source.constant("more", _init_more)
    source.line(f"if unknown: {more}(self, unknown)")
    head = ", ".join(["self", *keyword_only, *parameters, "unknown_tags=None", "**unknown"])
    initialiser = source.finish(f"def __init__({head}):", f"kafka.protocol {describe(cls)} init")
    initialiser.__qualname__ = f"{describe(cls)}.__init__"
    return initialiser


def _parameter_default(source: _Source, field: Field) -> str:
    return source.constant("DEFAULT", field.default)


def _init_field(source: _Source, cls: StructMeta, field: Field) -> None:
    name = field.name
    if field.default is MAKE_EMPTY:
        empty = source.constant("DEFAULT", MAKE_EMPTY)
        made = "[]" if field.is_array else f"{source.constant('C', _nested_class(cls, field))}()"
        source.line(f"if {name} is {empty}: {name} = {made}")
    if not issubclass(field.element, types.AbstractType):
        nested = source.constant("C", _nested_class(cls, field))
        structs = source.constant("structs", _structs if field.is_array else _struct)
        source.line(f"if {name}: {name} = {structs}({nested}, {name})")
    source.line(f"self.{name} = {name}")


def _nested_class(cls: StructMeta, field: Field) -> StructMeta:
    nested: StructMeta = field.element
    return nested if cls._version is None else nested._of_version(cls._version)


def _structs(cls: StructMeta, items: Any) -> list[Any]:
    return [item if isinstance(item, Struct) else _struct(cls, item) for item in types.as_sequence(items)]


def _struct(cls: StructMeta, item: Any) -> Any:
    return _interpret.as_struct(cls, item, describe(cls))


def _init_more(struct_: Any, given: dict[str, Any]) -> None:
    """Take keyword arguments that are no field of this version: old names, and fields it does not carry."""
    cls = type(struct_)
    for name, value in given.items():
        official = cls._aliases.get(name, name)
        if official not in cls._fields:
            names = ", ".join(_spellings(cls))
            raise TypeError(f"{describe(cls)} has no field {name!r}; it has {names}")
        field = cls._fields[official]
        if not issubclass(field.element, types.AbstractType) and value:
            nested = _nested_class(cls, field)
            value = _structs(nested, value) if field.is_array else _struct(nested, value)  # noqa: PLW2901
        setattr(struct_, official, value)


def _spellings(cls: StructMeta) -> Iterator[str]:
    old = {official: alias for alias, official in cls._aliases.items()}
    for name in cls._wire_names():
        yield f"{name} (once {old[name]})" if name in old else name
