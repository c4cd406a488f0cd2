"""The registry for tests, with schemas that it would not take: unchecked, as they were written, with ids from 100."""

from __future__ import annotations

from typing import Any

from kafka.schema_registry import SchemaRegistryError, SchemaRegistryServer
from kafka.schema_registry.server.formats import InvalidSchema, Parsed, parse_schema
from kafka.schema_registry.server.store import Version


class RegistryServer(SchemaRegistryServer):
    """A running registry that compares nothing unless a test sets a compatibility."""

    def __init__(self) -> None:
        super().__init__(compatibility="NONE")
        self._store.next_id = 100
        self.start()

    def add(self, subject: str, text: str, kind: str = "AVRO", references: Any = ()) -> int:
        """Add a schema to a subject, whatever it is, and return its id."""
        store = self._store
        known = next((one.id for one in store.all_versions() if (one.parsed.text, one.parsed.kind) == (text, kind)), 0)
        versions = store.subjects.setdefault(subject, [])
        number = known or store.next_id
        store.next_id = max(store.next_id, number + 1)
        try:
            parsed = parse_schema(kind, text, [])._replace(text=text)
        except (InvalidSchema, SchemaRegistryError):  # the package protobuf may be missing
            parsed = Parsed(kind, text, text, None, ())
        versions.append(Version(subject, len(versions) + 1, number, parsed, tuple(references)))
        return number

    @property
    def subjects(self) -> dict[str, list[int]]:
        """The ids of the versions of each subject."""
        return {name: [one.id for one in versions] for name, versions in self._store.subjects.items()}
