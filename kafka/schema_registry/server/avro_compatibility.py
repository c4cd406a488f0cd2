"""Whether records of one Avro schema can be read with another one, by the rules of Avro's schema resolution."""

from __future__ import annotations

from kafka.schema_registry.avro_types import PROMOTIONS, AvroType, matches_by_name, writer_field

__all__ = ["avro_differences"]


def avro_differences(reader: AvroType, writer: AvroType) -> list[str]:
    """Return what keeps the reader from reading records of the writer; nothing if it reads all of them."""
    return _Comparison().compare(reader, writer, "")


class _Comparison:
    def __init__(self) -> None:
        self._known: dict[tuple[int, int], list[str]] = {}

    def compare(self, reader: AvroType, writer: AvroType, path: str) -> list[str]:
        key = (id(reader), id(writer))
        if key not in self._known:
            self._known[key] = []  # a type that contains itself is compatible unless something else is wrong
            self._known[key] = self._compare(reader, writer, path)
        return self._known[key]

    def _compare(self, reader: AvroType, writer: AvroType, path: str) -> list[str]:
        if writer.kind == "union":
            return [
                f"{found} (branch {number} of the writer's union)"
                for number, branch in enumerate(writer.branches)
                for found in self.compare(reader, branch, f"{path}/{number}")
            ]
        if reader.kind == "union":
            if any(not self.compare(branch, writer, path) for branch in reader.branches):
                return []
            return [f"{path or '/'}: the reader's union lacks the type {writer.name or writer.kind}"]
        if reader.kind != writer.kind:
            if writer.kind in PROMOTIONS.get(reader.kind, ()):
                return []
            return [f"{path or '/'}: the reader's type {reader.kind} does not read the writer's {writer.kind}"]
        if reader.items is not None and writer.items is not None:
            return self.compare(reader.items, writer.items, f"{path}/{'items' if reader.kind == 'array' else 'values'}")
        return self._named(reader, writer, path) if reader.name else []

    def _named(self, reader: AvroType, writer: AvroType, path: str) -> list[str]:
        found = []
        if not matches_by_name(reader, writer):
            found.append(f"{path}/name: the name {reader.name} is not the writer's, {writer.name}")
        if reader.size != writer.size:
            found.append(f"{path}/size: {reader.size} bytes are not the writer's {writer.size}")
        missing = [one for one in writer.symbols if one not in reader.symbols]
        if missing and reader.default_symbol is None:
            found.append(f"{path}/symbols: the reader's enum lacks {', '.join(missing)}")
        for field in reader.fields:
            theirs = writer_field(writer, field)
            place = f"{path}/fields/{field.name}"
            if theirs is not None:
                found += self.compare(field.type, theirs.type, f"{place}/type")
            elif not field.has_default:
                found.append(f"{place}: the reader's field has no default, and the writer does not have it")
        return found
