"""Whether messages of one Protobuf schema can be read with another one, by the rules of Confluent's registry."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

__all__ = ["protobuf_differences"]

#: Numbers of types in descriptors -> groups within which a field may change its type.
_NUMBERS: Final = "int32, int64, uint32, uint64, bool or an enum"
_GROUPS: Final = {
    1: "double", 2: "float", 3: _NUMBERS, 4: _NUMBERS, 5: _NUMBERS, 6: "64 fixed bits", 7: "32 fixed bits", 8: _NUMBERS,
    9: "string or bytes", 12: "string or bytes", 13: _NUMBERS, 14: _NUMBERS, 15: "32 fixed bits", 16: "64 fixed bits",
    17: "sint32 or sint64", 18: "sint32 or sint64",
}  # fmt: skip
_REQUIRED: Final = 2
_REPEATED: Final = 3
_STRINGS: Final = "string or bytes"


class _Side:
    """A file with the files that it uses: its types by their full names, and what a name means in a scope."""

    def __init__(self, file: Any, used: Sequence[Any]) -> None:
        self.file = file
        self.types: dict[str, tuple[str, Any, str]] = {}
        """Full name -> (kind, descriptor, package)."""
        for one in (*used, file):
            self._collect(one.message_type, one.enum_type, one.package, one.package)

    def _collect(self, messages: Any, enums: Any, scope: str, package: str) -> None:
        for enum in enums:
            self.types[f"{scope}.{enum.name}".lstrip(".")] = ("enum", enum, package)
        for message in messages:
            name = f"{scope}.{message.name}".lstrip(".")
            self.types[name] = ("message", message, package)
            self._collect(message.nested_type, message.enum_type, name, package)

    def find(self, name: str, scope: str) -> tuple[str, tuple[str, Any, str] | None]:
        """Return the full name that a name means in a scope, and the type, which may be one of a file not given."""
        if name.startswith("."):
            return name[1:], self.types.get(name[1:])
        parts = scope.split(".") if scope else []
        while True:
            full = ".".join([*parts, name])
            if full in self.types or not parts:
                return full, self.types.get(full)
            parts.pop()


def protobuf_differences(reader: Any, reader_uses: Sequence[Any], writer: Any, writer_uses: Sequence[Any]) -> list[str]:
    """Return what keeps the reader's file from reading messages of the writer's; all are file descriptors."""
    comparison = _Comparison(_Side(reader, reader_uses), _Side(writer, writer_uses))
    found = []
    if reader.package != writer.package:
        found.append(f"the package {reader.package!r} is not {writer.package!r}")
    comparison.messages(reader.message_type, writer.message_type, reader.package, writer.package)
    return [*found, *comparison.found]


class _Comparison:
    def __init__(self, reader: _Side, writer: _Side) -> None:
        self._reader = reader
        self._writer = writer
        self._seen: set[tuple[str, str]] = set()
        self.found: list[str] = []

    def messages(self, readers: Any, writers: Any, reader_scope: str, writer_scope: str) -> None:
        ours = {one.name: one for one in readers}
        for theirs in writers:
            if theirs.options.map_entry:
                continue
            name = f"{writer_scope}.{theirs.name}".lstrip(".")
            if theirs.name not in ours:
                self.found.append(f"the message {name} is missing")
            else:
                self.message(ours[theirs.name], theirs, f"{reader_scope}.{theirs.name}".lstrip("."), name)

    def message(self, reader: Any, writer: Any, reader_name: str, writer_name: str) -> None:
        if (reader_name, writer_name) in self._seen:
            return
        self._seen.add((reader_name, writer_name))
        ours = {one.number: one for one in reader.field}
        theirs = {one.number: one for one in writer.field}
        self._oneofs(reader, writer, theirs, reader_name)
        for number in sorted({*ours, *theirs}):
            place = f"field {number} of {reader_name}"
            new: Any = ours.get(number)
            old: Any = theirs.get(number)
            if new is None or old is None:
                if (new or old).label == _REQUIRED:
                    self.found.append(f"{place}: a required field was {'removed' if new is None else 'added'}")
                elif new is None and _oneof(writer, old) in {one.name for one in reader.oneof_decl}:
                    self.found.append(f"{place}: it was removed from the oneof {_oneof(writer, old)}")
            else:
                self._field(new, old, reader_name, writer_name, place)
        self.messages(reader.nested_type, writer.nested_type, reader_name, writer_name)

    def _oneofs(self, reader: Any, writer: Any, theirs: dict[int, Any], name: str) -> None:
        for number, declared in enumerate(reader.oneof_decl):
            members = [
                one for one in reader.field
                if one.HasField("oneof_index") and one.oneof_index == number and not one.proto3_optional
            ]  # fmt: skip
            old = [theirs[one.number] for one in members if one.number in theirs]
            moved = [one for one in old if not _oneof(writer, one)]
            if len(moved) > 1:
                self.found.append(f"several fields of {name} were moved to the oneof {declared.name}")
            elif moved and len(old) > 1:
                self.found.append(f"a field of {name} was moved to the oneof {declared.name}, which had others")

    def _field(self, new: Any, old: Any, reader_name: str, writer_name: str, place: str) -> None:
        kind, full, found = _kind(self._reader, new, reader_name)
        old_kind, old_full, old_found = _kind(self._writer, old, writer_name)
        if kind != old_kind:
            self.found.append(f"{place}: {old_kind} became {kind}")
            return
        if (new.label == _REPEATED) != (old.label == _REPEATED) and kind != _STRINGS:
            self.found.append(f"{place}: repeated and not repeated are not the same")
        if found is None or old_found is None:
            if full != old_full:
                self.found.append(f"{place}: the type {old_full} became {full}")
            return
        (_, message, package), (_, old_message, old_package) = found, old_found
        if kind == "a map":
            for part, old_part in zip(message.field, old_message.field, strict=True):
                self._field(part, old_part, full, old_full, f"the {part.name} of {place}")
        elif full.removeprefix(f"{package}.") != old_full.removeprefix(f"{old_package}."):
            self.found.append(f"{place}: the type {old_full} became {full}")
        else:
            self.message(message, old_message, full, old_full)


def _oneof(message: Any, field: Any) -> str:
    """Return the name of the oneof that a field is in; an optional field of proto3 is in none."""
    if not field.HasField("oneof_index") or field.proto3_optional:
        return ""
    return str(message.oneof_decl[field.oneof_index].name)


def _kind(side: _Side, field: Any, scope: str) -> tuple[str, str, tuple[str, Any, str] | None]:
    if not field.type_name:
        return _GROUPS[field.type], "", None
    full, found = side.find(field.type_name, scope)
    if found is not None and found[0] == "enum":
        return _NUMBERS, "", None
    if found is not None and found[1].options.map_entry:
        return "a map", full, found
    return "a message", full, found
