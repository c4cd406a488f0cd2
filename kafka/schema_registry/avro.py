"""Avro's binary encoding: a schema is compiled once to functions that read and write values.

`compile_avro` makes a codec in one of four forms. ``native`` has the values of Python: bytes, Decimal, datetime, UUID.
``json`` has what JSON can carry: bytes are text of one character for each byte, as in Avro's JSON encoding, decimals
are text, other logical types are the numbers that are encoded. ``tagged`` is Avro's JSON encoding itself, in which a
value of a union stands in an object under the name of its type; ``short_tagged`` has these names without namespaces,
as Avro's library for C and so kcat print them. A value is read with the schema of its writer, and `resolve_avro` makes
the values of a reader's schema of it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from kafka.schema_registry.avro_primitives import (
    LOGICAL,
    PRIMITIVES,
    Read,
    Write,
    as_float,
    as_text,
    decimal_type,
    extend,
    fixed_reader,
    is_bytes,
    is_latin,
    read_bytes,
    read_float,
    read_long,
    write_bytes,
    write_long,
)
from kafka.schema_registry.avro_types import (
    AvroError,
    AvroType,
    check_taken,
    matched_fields,
    parse_types,
    possible_branches,
)

__all__ = ["FORMS", "AvroCodec", "AvroError", "compile_avro", "compile_type", "parse_avro", "resolve_avro"]


FORMS: Final = ("native", "json", "tagged", "short_tagged")
_TAGGED: Final = ("tagged", "short_tagged")
#: Values without bytes, such as nulls: a few bytes could announce any number of them, so there is a limit for an array.
_MOST_EMPTY: Final = 1000


class AvroCodec:
    """Reads and writes values of one schema."""

    __slots__ = ("accepts", "empty", "name", "read", "write")

    def __init__(self, name: str) -> None:
        self.name = name
        self.read: Read = _not_compiled
        self.write: Write = _not_compiled
        self.accepts: Callable[[Any], bool] = _not_compiled
        self.empty = False
        """Whether a value may take no byte at all."""

    def decode(self, data: bytes, at: int = 0) -> Any:
        """Return the value in the bytes from `at` on."""
        try:
            value, end = self.read(data, at)
        except (IndexError, struct.error):
            raise AvroError(f"the value ends after {len(data)} bytes, within {self.name}") from None
        except RecursionError:
            raise AvroError("the value is nested too deeply") from None
        except AvroError:
            raise
        except (ValueError, ArithmeticError) as error:  # text that is not UTF-8, a date out of range
            raise AvroError(f"a value of {self.name} is wrong: {error}") from None
        if end != len(data):
            raise AvroError(f"{len(data) - end} bytes are left behind the value")
        return value

    def encode(self, value: object, prefix: bytes = b"") -> bytes:
        """Return the bytes of a value."""
        out = bytearray(prefix)
        try:
            self.write(value, out)
        except RecursionError:
            raise AvroError("the value is nested too deeply") from None
        except AvroError:
            raise
        except (ValueError, ArithmeticError, struct.error) as error:  # a number out of range, half a surrogate pair
            raise AvroError(f"{_shown(value)} does not fit into {self.name}: {error}") from None
        return bytes(out)


def _not_compiled(*_: object) -> Any:
    raise AvroError("the schema refers to a type that is not complete")


def compile_avro(schema: str, references: Iterable[str] = (), form: str = "native") -> AvroCodec:
    """Compile the text of a schema; `references` are the texts of schemas whose types it uses, in their order.

    >>> codec = compile_avro('{"type": "record", "name": "User", "fields": [{"name": "id", "type": ["null", "long"]}]}')
    >>> codec.encode({"id": 7}), codec.decode(bytes.fromhex("020e"))
    (b'\\x02\\x0e', {'id': 7})
    """
    return compile_type(parse_types(schema, references), form)


def compile_type(schema: AvroType, form: str = "native") -> AvroCodec:
    """Compile a schema that is parsed."""
    return _Compiler(form).compile(schema)


def parse_avro(schema: str, references: Iterable[str] = ()) -> AvroType:
    """Return the type of a schema's text; AvroError also for defaults that do not fit into their fields."""
    found = parse_types(schema, references)
    compile_type(found)
    return found


def resolve_avro(writer: AvroType, reader: AvroType, form: str = "native") -> AvroCodec:
    """Return the codec that reads values of a writer's schema as a reader's; AvroError if that can never be.

    >>> writer, reader = parse_avro('"int"'), parse_avro('["null", "double"]')
    >>> resolve_avro(writer, reader).decode(compile_type(writer).encode(7))
    7.0
    """
    return _Compiler(form).resolve(writer, reader)


# Schemas…


class _Compiler:
    """Compiles types; each once, as a type may contain itself."""

    def __init__(self, form: str) -> None:
        self._form = form
        self._known: dict[AvroType, AvroCodec] = {}
        self._resolved: dict[tuple[AvroType, AvroType], AvroCodec] = {}
        self._open: list[tuple[list[_Field], int, AvroType, Any]] = []
        """Defaults of fields, which are encoded when the types around them are complete."""
        self._defaults: _Compiler = self if form == "json" else _Compiler("json")
        """Defaults of fields are in JSON in a schema, whatever the form of the values."""

    def compile(self, schema: AvroType) -> AvroCodec:
        """Return the codec of a type."""
        try:
            found = self._codec(schema)
            self._complete()
        except RecursionError:
            raise AvroError("the Avro schema is nested too deeply") from None
        return found

    def resolve(self, writer: AvroType, reader: AvroType) -> AvroCodec:
        """Return the codec that reads a writer's type as a reader's."""
        found = self._resolve(writer, reader)
        self._complete()
        return found

    def _complete(self) -> None:
        while self._open:
            fields, at, kind, default = self._open.pop(0)
            fields[at] = fields[at]._replace(default=self._defaults.compile(kind).encode(default))

    def _codec(self, schema: AvroType) -> AvroCodec:
        found = self._known.get(schema)
        if found is None:
            found = self._known[schema] = AvroCodec(schema.name or schema.kind)
            if schema.kind in PRIMITIVES:
                self._primitive(schema, found)
            else:
                getattr(self, f"_{schema.kind}")(schema, found)
            if schema.logical is not None and self._form not in _TAGGED:
                self._add_logical(schema, found)
        return found

    def _primitive(self, schema: AvroType, codec: AvroCodec) -> None:
        name = schema.kind
        codec.read, codec.write, codec.accepts = PRIMITIVES[name]
        codec.empty = name == "null"
        if name == "bytes" and self._form != "native":
            codec.read = lambda data, at: as_text(*read_bytes(data, at))
            codec.write = lambda value, out: write_bytes(value.encode("latin-1"), out)
            codec.accepts = is_latin
        codec.write = _checking(codec)

    def _add_logical(self, schema: AvroType, codec: AvroCodec) -> None:
        read, write = codec.read, codec.write
        plain = codec.accepts if schema.kind != "fixed" else lambda _: False
        if schema.logical == "decimal":
            logical, plain = decimal_type(schema, self._form), lambda _: False
            read = read_bytes if schema.kind == "bytes" else fixed_reader(schema.size)
            write = write_bytes if schema.kind == "bytes" else extend
        elif self._form == "native" and (schema.kind, schema.logical or "") in LOGICAL:
            logical = LOGICAL[schema.kind, schema.logical or ""]
        else:
            return

        def read_value(data: bytes, at: int) -> tuple[object, int]:
            value, at = read(data, at)
            return logical.of(value), at

        codec.read = read_value
        codec.accepts = lambda value: logical.accepts(value) or plain(value)
        # A program may also give the value that is encoded.
        codec.write = lambda value, out: write(logical.to(value) if logical.accepts(value) else value, out)
        if schema.logical == "decimal":
            codec.write = _checking(codec)

    def _fixed(self, schema: AvroType, codec: AvroCodec) -> None:
        size = schema.size
        read = fixed_reader(size)
        codec.empty = size == 0
        if self._form == "native":
            codec.read = read
            codec.accepts = lambda value: is_bytes(value) and len(value) == size
            codec.write = extend
        else:
            codec.read = lambda data, at: as_text(*read(data, at))
            codec.accepts = lambda value: is_latin(value) and len(value) == size
            codec.write = lambda value, out: out.extend(value.encode("latin-1"))
        codec.write = _checking(codec)

    def _enum(self, schema: AvroType, codec: AvroCodec) -> None:
        numbers = {symbol: number for number, symbol in enumerate(schema.symbols)}
        codec.read = _enum_reader(schema.name, schema.symbols)
        codec.accepts = lambda value: isinstance(value, str) and value in numbers
        codec.write = lambda value, out: write_long(numbers[value], out)
        codec.write = _checking(codec)

    def _array(self, schema: AvroType, codec: AvroCodec) -> None:
        items = self._codec(schema.item)

        def write(value: Any, out: bytearray) -> None:
            if value:
                write_long(len(value), out)
                for number, each in enumerate(value):
                    _write_part(items, each, out, f"[{number}]")
            out.append(0)

        codec.read, codec.write = _array_reader(items), write
        codec.accepts = lambda value: isinstance(value, (list, tuple)) and all(map(items.accepts, value))
        codec.write = _of_type(codec, write, (list, tuple))

    def _map(self, schema: AvroType, codec: AvroCodec) -> None:
        values = self._codec(schema.item)

        def write(value: Any, out: bytearray) -> None:
            if value:
                write_long(len(value), out)
                for name, each in value.items():
                    write_bytes(str(name).encode(), out)
                    _write_part(values, each, out, str(name))
            out.append(0)

        codec.read = _map_reader(values)
        codec.accepts = lambda value: isinstance(value, Mapping) and all(map(values.accepts, value.values()))
        codec.write = _of_type(codec, write, (Mapping,))

    def _record(self, schema: AvroType, codec: AvroCodec) -> None:
        fields: list[_Field] = []
        codec.read, codec.accepts = _record_reader(fields), _record_test(fields)
        codec.write = _of_type(codec, _record_writer(codec, fields), (Mapping,))
        for one in schema.fields:
            fields.append(_Field(one.name, self._codec(one.type), b"" if one.has_default else None))
            if one.has_default:
                self._open.append((fields, len(fields) - 1, one.type, one.default))
        codec.empty = all(field.codec.empty for field in fields)

    def _union(self, schema: AvroType, codec: AvroCodec) -> None:
        parts = [self._codec(branch) for branch in schema.branches]
        tags = [self._tag(branch) for branch in schema.branches]
        tagged = self._form in _TAGGED

        def read(data: bytes, at: int) -> tuple[object, int]:
            number, at = read_long(data, at)
            if not 0 <= number < len(parts):
                raise AvroError(f"{number} is not a branch of a union of {len(parts)}")
            value, at = parts[number].read(data, at)
            return (value if not tagged or value is None else {tags[number]: value}), at

        chosen = _branch_finder(parts, tags, tagged=tagged)

        def write(value: object, out: bytearray) -> None:
            found = chosen(value)
            if found is None:
                raise AvroError(f"{_shown(value)} is not one of {', '.join(part.name for part in parts)}")
            write_long(found[0], out)
            parts[found[0]].write(found[1], out)

        codec.read, codec.write = read, write
        codec.accepts = lambda value: chosen(value) is not None

    def _tag(self, branch: AvroType) -> str:
        name = branch.name or branch.kind
        return name.rpartition(".")[2] if self._form == "short_tagged" else name

    # Resolution…

    def _resolve(self, writer: AvroType, reader: AvroType) -> AvroCodec:
        known = self._resolved.get((writer, reader))
        if known is not None:
            return known
        codec = self._resolved[writer, reader] = AvroCodec(reader.name or reader.kind)
        try:
            codec.read = self._resolving_reader(writer, reader)
        except AvroError:
            del self._resolved[writer, reader]
            raise
        codec.empty = self._codec(writer).empty
        return codec

    def _resolve_or_none(self, writer: AvroType, reader: AvroType) -> AvroCodec | None:
        try:
            return self._resolve(writer, reader)
        except AvroError:
            return None

    def _resolving_reader(self, writer: AvroType, reader: AvroType) -> Read:
        if writer.kind == "union":
            return self._from_union(writer, reader)
        if reader.kind == "union":
            return self._into_union(writer, reader)
        check_taken(writer, reader)
        if reader.kind == "record":
            return self._resolving_record(writer, reader)
        if reader.kind == "array":
            return _array_reader(self._resolve(writer.item, reader.item))
        if reader.kind == "map":
            return _map_reader(self._resolve(writer.item, reader.item))
        if reader.kind == "enum":
            known = {*reader.symbols}
            names = [one if one in known else reader.default_symbol for one in writer.symbols]
            return _enum_reader(reader.name, names)
        if writer.kind in {"int", "long"} and reader.kind in {"float", "double"}:
            return lambda data, at: as_float(*read_long(data, at))
        if writer.kind == "float":
            return read_float
        return self._codec(reader).read  # promoted or not, the bytes are the same

    def _from_union(self, writer: AvroType, reader: AvroType) -> Read:
        parts = [self._resolve_or_none(branch, reader) for branch in writer.branches]
        if not any(parts):
            raise AvroError(f"the reader's type {reader.name or reader.kind} does not read any branch of a union")

        def read(data: bytes, at: int) -> tuple[object, int]:
            number, at = read_long(data, at)
            if not 0 <= number < len(parts):
                raise AvroError(f"{number} is not a branch of a union of {len(parts)}")
            part = parts[number]
            if part is None:
                raise AvroError(f"the reader's schema does not read {writer.branches[number]}")
            return part.read(data, at)

        return read

    def _into_union(self, writer: AvroType, reader: AvroType) -> Read:
        for branch in possible_branches(writer, reader):
            part = self._resolve_or_none(writer, branch)
            if part is not None:
                break
        else:
            raise AvroError(f"the reader's union does not have the type {writer.name or writer.kind}")
        if self._form not in _TAGGED or branch.kind == "null":
            return lambda data, at: part.read(data, at)  # noqa: PLW0108 - read is not known yet where a type contains itself
        tag = self._tag(branch)

        def read(data: bytes, at: int) -> tuple[object, int]:
            value, at = part.read(data, at)
            return {tag: value}, at

        return read

    def _resolving_record(self, writer: AvroType, reader: AvroType) -> Read:
        pairs, missing = matched_fields(writer, reader)
        parts = [
            (None, self._codec(theirs.type)) if ours is None else (ours.name, self._resolve(theirs.type, ours.type))
            for theirs, ours in pairs
        ]
        defaults = [(one.name, self._codec(one.type)) for one in missing]
        encoded = [self._defaults.compile(one.type).encode(one.default) for one in missing]
        names = [one.name for one in reader.fields]

        def read(data: bytes, at: int) -> tuple[object, int]:
            found: dict[str, object] = {}
            for name, codec in parts:
                value, at = codec.read(data, at)
                if name is not None:
                    found[name] = value
            for (name, codec), default in zip(defaults, encoded, strict=True):
                found[name] = codec.decode(default)
            return {name: found[name] for name in names}, at

        return read


def _branch_finder(
    parts: list[AvroCodec], tags: list[str], *, tagged: bool
) -> Callable[[object], tuple[int, object] | None]:
    """Return what finds the branch of a union for a value: the branch's number, and its own value."""

    def plain(value: object) -> tuple[int, object] | None:
        return next(((number, value) for number, part in enumerate(parts) if part.accepts(value)), None)

    def named(value: object) -> tuple[int, object] | None:
        if isinstance(value, Mapping) and len(value) == 1:
            (name,) = value
            for number, part in enumerate(parts):
                if name in {part.name, tags[number]} and part.accepts(value[name]):
                    return number, value[name]
        return None

    # A map or a record may look like an object with the name of a branch. It is such an object where a union is read as
    # one, and else only if no branch takes it as it is.
    first, second = (named, plain) if tagged else (plain, named)
    return lambda value: first(value) or second(value)


class _Field(NamedTuple):
    """A field of a record, and the bytes of its default."""

    name: str
    codec: AvroCodec
    default: bytes | None


def _enum_reader(name: str, symbols: Sequence[str | None]) -> Read:
    def read(data: bytes, at: int) -> tuple[object, int]:
        number, at = read_long(data, at)
        if not 0 <= number < len(symbols) or symbols[number] is None:
            raise AvroError(f"{number} is not a symbol of {name}")
        return symbols[number], at

    return read


def _array_reader(items: AvroCodec) -> Read:
    def read(data: bytes, at: int) -> tuple[object, int]:
        found: list[object] = []
        count, at = _block(data, at, items)
        while count:
            for _ in range(count):
                value, at = items.read(data, at)
                found.append(value)
            count, at = _block(data, at, items)
        return found, at

    return read


def _map_reader(values: AvroCodec) -> Read:
    def read(data: bytes, at: int) -> tuple[object, int]:
        found: dict[str, object] = {}
        count, at = _block(data, at)
        while count:
            for _ in range(count):
                name, at = read_bytes(data, at)
                found[name.decode()], at = values.read(data, at)
            count, at = _block(data, at)
        return found, at

    return read


# The fields of a record may be of its type, so they are not all known when its functions are made.


def _record_reader(fields: list[_Field]) -> Read:
    def read(data: bytes, at: int) -> tuple[object, int]:
        found: dict[str, object] = {}
        for name, codec, _ in fields:
            found[name], at = codec.read(data, at)
        return found, at

    return read


def _record_writer(record: AvroCodec, fields: list[_Field]) -> Write:
    def write(value: Any, out: bytearray) -> None:
        unknown = value.keys() - {field.name for field in fields}
        if unknown:
            known = ", ".join(field.name for field in fields)
            raise AvroError(f"{record.name} has no field {next(iter(unknown))!r}; its fields are {known}")
        for name, codec, default in fields:
            if name in value:
                _write_part(codec, value[name], out, name)
            elif default is None:
                raise AvroError(f"field {name!r} of {record.name} is missing, and has no default")
            else:
                out += default

    return write


def _record_test(fields: list[_Field]) -> Callable[[object], bool]:
    def accepts(value: object) -> bool:
        return (
            isinstance(value, Mapping)
            and value.keys() <= {field.name for field in fields}
            and all(
                codec.accepts(value[name]) if name in value else default is not None for name, codec, default in fields
            )
        )

    return accepts


def _block(data: bytes, at: int, items: AvroCodec | None = None) -> tuple[int, int]:
    """Read how many items the next block of an array or map has; a negative count stands before its size in bytes."""
    count, at = read_long(data, at)
    if count < 0:
        _, at = read_long(data, at)
        count = -count
    if count > (_MOST_EMPTY if items is not None and items.empty else len(data) - at):
        raise AvroError(f"{count} items are announced at byte {at}, and {len(data) - at} bytes are left")
    return count, at


def _checking(codec: AvroCodec) -> Write:
    write, accepts = codec.write, codec.accepts

    def checked(value: object, out: bytearray) -> None:
        if not accepts(value):
            raise AvroError(f"{_shown(value)} does not fit into {codec.name}")
        write(value, out)

    return checked


def _of_type(codec: AvroCodec, write: Write, types: tuple[type, ...]) -> Write:
    def checked(value: object, out: bytearray) -> None:
        if not isinstance(value, types):
            raise AvroError(f"{_shown(value)} does not fit into {codec.name}")
        write(value, out)

    return checked


def _write_part(codec: AvroCodec, value: object, out: bytearray, place: str) -> None:
    """Write a part of a value; an error names the whole way to it."""
    try:
        codec.write(value, out)
    except _PartError as error:
        error.places.append(place)
        raise
    except AvroError as error:
        raise _PartError(str(error), [place]) from None


class _PartError(AvroError):
    """An error of a value inside another one; the innermost place is the first."""

    def __init__(self, text: str, places: list[str]) -> None:
        super().__init__(text)
        self.places = places

    def __str__(self) -> str:
        return f"{'.'.join(reversed(self.places)).replace('.[', '[')}: {self.args[0]}"


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
