"""Compiles definitions to Python functions: one encoder and one decoder per message and version.

The functions are flat: nested structs and lists are unrolled into one body, neighbouring fields of
fixed width become one ``struct.Struct`` call together with the length or count that follows them.
Their source is registered with ``linecache``, so tracebacks and debuggers show it.

The generated code holds only the straight path. It raises whatever Python raises when the data does
not fit (``struct.error``, ``IndexError``, ``AttributeError`` …) or ``Malformed`` where Python would
not notice; then the interpreter does the same work again to say exactly what is wrong where.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from mmap import mmap
from typing import Any, Final, NamedTuple

from kafka.errors import KafkaProtocolError
from kafka.protocol import types
from kafka.protocol._historic import OLD_TUPLES
from kafka.protocol.codec import interpreter
from kafka.protocol.codec.decoders import compile_decoder, compile_slices
from kafka.protocol.codec.encoders import compile_encoder
from kafka.protocol.codec.layout import has_records, layout_of
from kafka.protocol.codec.runtime import CODEC_ERRORS, Source
from kafka.protocol.fields import MAKE_EMPTY, Buffer, Field
from kafka.protocol.struct import Struct, StructMeta, UnknownFieldError, describe

__all__ = ["Codec", "compile_codec", "compile_init"]


VIEWED: Final = frozenset({bytearray, mmap})
"""The types of a received frame; their slices are bytes, or are used like bytes."""


class Codec(NamedTuple):
    """Encodes and decodes one message in one version."""

    #: ``encode(message, parts)`` appends the wire form to ``parts``; on an error ``parts`` is as it was.
    encode: Callable[[object, list[bytes]], None]
    #: ``decode(data, *, start=0)`` reads one message that fills ``data`` from ``start`` to its end.
    decode: Callable[..., Any]
    #: ``decode_slices(data, start)`` is a generator that does what ``decode`` does, a struct of a list at a time.
    decode_slices: Callable[[bytes, int], Generator[None, None, Any]]
    #: ``decode_prefix(data, start)`` reads one message that more bytes may follow; it returns the message and its end.
    decode_prefix: Callable[[Buffer, int], tuple[Any, int]]


def compile_codec(cls: StructMeta) -> Codec:  # noqa: C901 - small functions that share what is compiled
    """Make the codec of a message, or of a part of one, in the version that ``cls`` is bound to.

    The bound class gets its own ``encode`` and ``decode``, which call the compiled code directly. Each direction is
    compiled on its first use: a client encodes requests and decodes responses.
    """
    straight_encode: Callable[[object, list[bytes]], None]
    straight_decode: Callable[[Buffer, int, int], tuple[Any, int]]

    def encode_first(message: object, parts: list[bytes]) -> None:
        nonlocal straight_encode
        straight_encode = compile_encoder(cls)
        straight_encode(message, parts)

    def decode_first(data: Buffer, start: int, end: int) -> tuple[Any, int]:
        nonlocal straight_decode
        straight_decode = compile_decoder(cls)
        return straight_decode(data, start, end)

    straight_encode, straight_decode = encode_first, decode_first
    views = has_records(layout_of(cls))
    join = b"".join

    def encode_into(message: object, parts: list[bytes]) -> None:
        before = len(parts)
        try:
            straight_encode(message, parts)
        except CODEC_ERRORS:
            del parts[before:]
            parts.append(interpreter.encode(cls, message))

    def encode(self: Struct, version: int | None = None) -> bytes:
        if version is not None and version != cls._version:
            return Struct.encode(self, version)
        parts: list[bytes] = []
        try:
            straight_encode(self, parts)
            return join(parts)
        except CODEC_ERRORS:
            return interpreter.encode(cls, self)

    def decode(data: Buffer, version: int | None = None, *, start: int = 0) -> Any:
        if version is not None and version != cls._version:
            return cls._unbound._codec(version).decode(data, start=start)
        # The code relies on what slices of bytes are. What frames are received in is copied too, unless the message
        # holds records: then those are views into it.
        if data.__class__ is not bytes and not (views and data.__class__ in VIEWED):
            if hasattr(data, "seek"):
                return _read(data, decode_prefix)
            data = _as_bytes(data)
        try:
            message, position = straight_decode(data, start, len(data))
            if position == len(data):
                return message
        except CODEC_ERRORS:
            pass
        return interpreter.decode(cls, data, start)

    straight_slices: Callable[[bytes, int, int], Generator[None, None, tuple[Any, int]]] | None = None

    def decode_slices(data: bytes, start: int) -> Generator[None, None, Any]:
        nonlocal straight_slices
        if straight_slices is None:
            straight_slices = compile_slices(cls)
        try:
            message, position = yield from straight_slices(data, start, len(data))
            if position == len(data):
                return message
        except CODEC_ERRORS:
            pass
        return interpreter.decode(cls, data, start)

    def decode_prefix(data: Buffer, start: int) -> tuple[Any, int]:
        if data.__class__ is not bytes and not (views and data.__class__ in VIEWED):
            data = _as_bytes(data)
        try:
            return straight_decode(data, start, len(data))
        except CODEC_ERRORS:
            return interpreter.decode_prefix(cls, data, start)

    encode.__doc__, decode.__doc__ = Struct.encode.__doc__, Struct.decode.__doc__
    cls.encode = encode
    cls.decode = staticmethod(decode)
    return Codec(encode_into, decode, decode_slices, decode_prefix)


def _read(file: Any, decode_prefix: Callable[[Buffer, int], tuple[Any, int]]) -> Any:
    # As in kafka-python, where a header and a message are read from one BytesIO after each other.
    start = file.tell()
    message, used = decode_prefix(file.read(), 0)
    file.seek(start + used)
    return message


def _as_bytes(data: Buffer) -> bytes:
    try:
        return bytes(memoryview(data))
    except TypeError:
        raise KafkaProtocolError(f"decode() takes bytes, not {type(data).__name__}") from None


def compile_init(cls: StructMeta) -> Callable[..., None]:
    """Make the ``__init__`` of a class: defaults for what is not given, tuples made into structs."""
    source = Source()
    fields = [cls._fields[name] for name in cls._wire_names()]
    parameters = [f"{f.name}={source.constant('DEFAULT', f.default)}" for f in fields]
    # The order of arguments is that of a version; a class without one takes them by name.
    parameters.insert(0 if cls._version is None else len(parameters), "*")
    source.line("self._tagged = None")
    for field in fields:
        _init_field(source, cls, field)
    more = source.constant("more", _init_more)
    source.line("if unknown_tags: self.unknown_tags = unknown_tags")
    source.line(f"if unknown: {more}(self, unknown)")
    head = ", ".join(["self", *parameters, "unknown_tags=None", "**unknown"])
    initialiser = source.finish(f"def __init__({head}):", f"kafka.protocol {describe(cls)} init")
    initialiser.__qualname__ = f"{describe(cls)}.__init__"
    return initialiser


def _init_field(source: Source, cls: StructMeta, field: Field) -> None:
    name = field.name
    default = source.constant("DEFAULT", field.default)
    convert = "pass"
    if not issubclass(field.element, types.AbstractType):
        nested = source.constant("C", _nested_class(cls, field))
        structs = source.constant("structs", _maker(field))
        convert = f"{name} = {structs}({nested}, {name})"
    if field.tag is not None:  # a default is not stored
        source.line(f"if {name} is not {default}:")
        if convert != "pass":
            source.line(f"    if {name}: {convert}")
        source.line(f"    self.{name} = {name}")
        return
    if field.default is MAKE_EMPTY:
        made = "[]" if field.is_array else f"{source.constant('C', _nested_class(cls, field))}()"
        source.line(f"if {name} is {default}: {name} = {made}")
        if convert != "pass":
            source.line(f"elif {name}: {convert}")
    elif convert != "pass":
        source.line(f"if {name}: {convert}")
    source.line(f"self.{name} = {name}")


def _nested_class(cls: StructMeta, field: Field) -> StructMeta:
    nested: StructMeta = field.element
    return nested if cls._version is None else nested._of_version(cls._version)


def _maker(field: Field) -> Callable[[StructMeta, object], object]:
    """Return what makes the value of a field out of tuples."""
    if not field.is_array:
        return _struct
    reshape = OLD_TUPLES.get(field.element._label)
    return _structs if reshape is None else lambda cls, items: _structs(cls, [*map(reshape, types.as_sequence(items))])


def _structs(cls: StructMeta, items: object) -> list[object]:
    # Of what class an item is asks the encoder.
    return [
        item if isinstance(item, Struct) else interpreter.as_struct(cls, item, describe(cls))
        for item in (items if type(items) is list else types.as_sequence(items))
    ]


def _struct(cls: StructMeta, item: object) -> object:
    if isinstance(item, Struct):
        return item  # of what class is asked when it is written
    return interpreter.as_struct(cls, item, describe(cls))


def _init_more(struct_: Struct, given: Mapping[str, Any]) -> None:
    """Take keyword arguments that are no field of this version: old names, and fields it does not carry."""
    cls = type(struct_)
    for name, value in given.items():
        official = cls._aliases.get(name, name)
        if official not in cls._fields:
            if name in ("tags", "_tagged_fields"):  # what ``unknown_tags`` was called
                struct_.unknown_tags = value
                continue
            names = ", ".join(_spellings(cls))
            raise UnknownFieldError(f"{describe(cls)} has no field {name!r}; it has {names}")
        field = cls._fields[official]
        if not issubclass(field.element, types.AbstractType) and value:
            nested = _nested_class(cls, field)
            value = _maker(field)(nested, value)  # noqa: PLW2901
        setattr(struct_, official, value)


def _spellings(cls: StructMeta) -> Iterator[str]:
    old = {official: alias for alias, official in cls._aliases.items()}
    for name in cls._wire_names():
        yield f"{name} (once {old[name]})" if name in old else name
