"""The schemas of a registry in memory: subjects, versions, ids, and the rules for changing them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import md5
from typing import Any, Final
from uuid import UUID

from kafka.schema_registry.registry import SchemaRegistryError
from kafka.schema_registry.server.formats import KINDS, InvalidSchema, Parsed, parse_schema

__all__ = ["LEVELS", "Refused", "SchemaStore", "Setting", "Version"]

LEVELS: Final = (
    "NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE"
)  # fmt: skip
MODES: Final = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT", "FORWARD")
_LAST_VERSION: Final = (1 << 31) - 1


class Refused(Exception):  # noqa: N818 - the name of the answer
    """A request that the registry does not carry out: the status of HTTP, the registry's own number, a message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        """The status of HTTP, with which the code begins."""
        return self.code if self.code < 1000 else self.code // 100


@dataclass
class Version:
    """A version of a subject."""

    subject: str
    number: int
    id: int
    parsed: Parsed
    references: tuple[dict[str, Any], ...] = ()
    deleted: bool = False

    @property
    def guid(self) -> str:
        """The id that is the same in all registries, as ids in headers have it."""
        text = json.dumps([self.parsed.kind, self.parsed.text, list(self.references)], sort_keys=True)
        return str(UUID(bytes=md5(text.encode(), usedforsecurity=False).digest()))


class Setting:
    """What all subjects have unless one has its own: the compatibility, or the mode."""

    def __init__(self, shown: str, words: tuple[str, ...], default: str, wrong: tuple[int, str], not_set: int) -> None:
        self.everywhere = self._default = default
        self._own: dict[str, str] = {}
        self._shown = shown
        self._words = words
        self._wrong = wrong
        self._not_set = not_set

    def of(self, subject: str) -> str:
        """Return what a subject has."""
        if self.everywhere == "READONLY_OVERRIDE":
            return self.everywhere
        return self._own.get(subject, self.everywhere)

    def get(self, subject: str | None, *, default: bool) -> str:
        """Return what is set for all, or for a subject, which without `default` must have its own."""
        if subject is None:
            return self.everywhere
        if subject not in self._own and not default:
            raise Refused(self._not_set, f"Subject '{subject}' does not have subject-level {self._shown} configured")
        return self.of(subject)

    def check(self, word: object) -> str:
        """Return a word that can be set."""
        if word not in self._words:
            raise Refused(*self._wrong)
        return str(word)

    def set(self, subject: str | None, word: str) -> None:
        """Set it for a subject, or for all."""
        if subject is None:
            self.everywhere = word
        else:
            self._own[subject] = word

    def drop(self, subject: str | None) -> str:
        """Set the default for all, or let a subject have no own one; return what there was."""
        if subject is None:
            found, self.everywhere = self.everywhere, self._default
            return found
        if subject not in self._own:
            raise Refused(40401, f"Subject '{subject}' not found.")
        return self._own.pop(subject)

    def forget(self, subject: str) -> None:
        """Forget a subject that is gone."""
        self._own.pop(subject, None)


class SchemaStore:
    """All subjects with their versions, and the compatibility and mode of each and of all.

    The caller holds a lock: no method may run beside another one.
    """

    def __init__(self, level: str = "BACKWARD") -> None:
        wrong_level = (
            "Invalid compatibility level. Valid values are none, backward, forward, full, backward_transitive, "
            "forward_transitive, and full_transitive"
        )
        wrong_mode = f"Invalid mode. Valid values are {', '.join(MODES)}"
        self.level = Setting("compatibility", LEVELS, "BACKWARD", (42203, wrong_level), 40408)
        self.level.everywhere = level
        self.mode = Setting("mode", MODES, "READWRITE", (42204, wrong_mode), 40409)
        self.subjects: dict[str, list[Version]] = {}
        self.next_id = 1

    # Reading…

    def all_versions(self) -> Iterator[Version]:
        """Yield all versions of all subjects, deleted ones as well."""
        for versions in self.subjects.values():
            yield from versions

    def versions(self, subject: str, *, deleted: bool = False) -> list[Version]:
        """Return the versions of a subject, which must have some."""
        found = [one for one in self.subjects.get(subject, ()) if deleted or not one.deleted]
        if not found:
            raise Refused(40401, f"Subject '{subject}' not found.")
        return found

    def version(self, subject: str, word: str, *, deleted: bool = False) -> Version:
        """Return a version of a subject by its number, or the newest one by ``latest``."""
        number = self._version_number(word)
        versions = self.versions(subject, deleted=deleted)
        if number is None:
            return versions[-1]
        for one in versions:
            if one.number == number:
                return one
        raise Refused(40402, f"Version {number} not found.")

    def _version_number(self, word: str) -> int | None:
        if word in {"latest", "-1"}:
            return None
        if word.isdigit() and 1 <= int(word) <= _LAST_VERSION:
            return int(word)
        raise Refused(
            42202,
            f"The specified version '{word}' is not a valid version id. Allowed values are between [1, 2^31-1] and "
            'the string "latest"',
        )

    def by_id(self, number: int) -> list[Version]:
        """Return the versions that have an id, deleted ones as well."""
        found = [one for one in self.all_versions() if one.id == number]
        if not found:
            raise Refused(40403, f"Schema {number} not found")
        return found

    def by_guid(self, guid: str) -> Version:
        """Return a version by the id that is the same in all registries."""
        for one in self.all_versions():
            if one.guid == guid:
                return one
        raise Refused(40403, f"Schema {guid} not found")

    def users_of(self, subject: str, number: int) -> list[Version]:
        """Return the versions that refer to a version."""
        return [
            one
            for one in self.all_versions()
            if not one.deleted and any(r["subject"] == subject and r["version"] == number for r in one.references)
        ]

    # Changing…

    def parse(self, body: dict[str, Any]) -> tuple[Parsed, tuple[dict[str, Any], ...]]:
        """Return the schema of a request, with the references as they are kept."""
        kind, text = body.get("schemaType") or "AVRO", body.get("schema")
        if kind not in KINDS:
            raise Refused(42201, f"Invalid schema type {kind}")
        if not isinstance(text, str) or not text:
            raise Refused(42201, "Empty schema")
        references = []
        used: dict[tuple[str, int], tuple[str, str]] = {}
        for one in body.get("references") or ():
            try:
                number = int(one["version"])
                kept: dict[str, Any] = {"name": str(one["name"]), "subject": str(one["subject"]), "version": number}
            except (KeyError, TypeError, ValueError):
                raise Refused(42201, "Invalid schema: a reference needs a name, a subject and a version") from None
            if number == -1:
                kept["version"] = self.version(kept["subject"], "latest").number
            references.append(kept)
            self._add_used(kept, used)
        try:
            return parse_schema(kind, text, list(used.values())), tuple(references)
        except InvalidSchema as error:
            raise Refused(42201, f"Invalid schema of type {kind}: {error}") from None
        except SchemaRegistryError as error:
            raise Refused(50001, f"the registry cannot read schemas of type {kind}: {error}") from None

    def _add_used(self, reference: dict[str, Any], used: dict[tuple[str, int], tuple[str, str]]) -> None:
        """Add the schema of a reference behind the schemas that it refers to itself."""
        subject, number = reference["subject"], reference["version"]
        if (subject, number) in used:
            return
        try:
            found = self.version(subject, str(number), deleted=True)
        except Refused:
            raise Refused(
                42201,
                f'Invalid schema: no schema reference found for subject "{subject}" and version {number}',
            ) from None
        for one in found.references:
            self._add_used(one, used)
        used[subject, number] = (reference["name"], found.parsed.text)

    def find(self, subject: str, body: dict[str, Any], *, deleted: bool = False) -> Version:
        """Return the version of a subject that has a schema."""
        versions = self.versions(subject, deleted=deleted)
        parsed, references = self.parse(body)
        found = _same(versions, parsed, references)
        if found is None:
            raise Refused(40403, "Schema not found")
        return found

    def register(self, subject: str, body: dict[str, Any]) -> Version:
        """Add a schema to a subject, or return the version that has it already."""
        mode = self.mode.of(subject)
        parsed, references = self.parse(body)
        versions = self.subjects.get(subject, [])
        kept = [one for one in versions if not one.deleted]
        known = _same(kept, parsed, references)
        if known is not None and body.get("id", known.id) == known.id:
            return known
        if mode not in {"READWRITE", "IMPORT"}:
            raise Refused(42205, f"Subject {subject} is in read-only mode")
        elsewhere = _same(list(self.all_versions()), parsed, references)
        if mode == "IMPORT":
            number = int(body.get("id") or (elsewhere.id if elsewhere else self.next_id))
            if any(one.id == number for one in self.all_versions()) and (elsewhere is None or elsewhere.id != number):
                raise Refused(42205, f"Overwrite new schema with id {number} is not permitted.")
        else:
            if body.get("id") is not None and int(body["id"]) >= 0:
                raise Refused(42205, f"Subject {subject} is not in import mode")
            found = self.incompatibilities(subject, parsed, kept)
            if found:
                raise Refused(
                    409,
                    f'Schema being registered is incompatible with an earlier schema for subject "{subject}", details: '
                    f"[{'; '.join(found)}; {{compatibility: '{self.level.of(subject)}'}}]",
                )
            number = elsewhere.id if elsewhere else self.next_id
        self.next_id = max(self.next_id, number + 1)
        at = max((one.number for one in versions), default=0) + 1
        if mode == "IMPORT" and int(body.get("version") or 0) > 0:
            at = int(body["version"])
        added = Version(subject, at, number, parsed, references)
        kept_versions = [one for one in versions if one.number != at]
        self.subjects[subject] = sorted([*kept_versions, added], key=lambda one: one.number)
        return added

    def incompatibilities(self, subject: str, parsed: Parsed, versions: list[Version]) -> list[str]:
        """Return what is wrong with a schema after versions, by the compatibility of the subject."""
        level = self.level.of(subject)
        compared = versions if level.endswith("_TRANSITIVE") else versions[-1:]
        kind = level.removesuffix("_TRANSITIVE")
        found = []
        for one in compared:
            if kind in {"BACKWARD", "FULL"}:
                found += [f"version {one.number} is not read: {each}" for each in parsed.differences(one.parsed)]
            if kind in {"FORWARD", "FULL"}:
                found += [f"not read by version {one.number}: {each}" for each in one.parsed.differences(parsed)]
        return found

    def delete_subject(self, subject: str, *, permanent: bool) -> list[int]:
        """Delete all versions of a subject; for good only what is deleted already."""
        versions = self.versions(subject, deleted=True)
        kept = [one for one in versions if not one.deleted]
        self._check_writable(subject)
        if permanent:
            if kept:
                raise Refused(40405, f"Subject '{subject}' was not deleted first before being permanently deleted")
            numbers = [one.number for one in versions]
            for one in versions:
                self._check_unused(one)
            del self.subjects[subject]
            self.level.forget(subject)
            self.mode.forget(subject)
            return numbers
        if not kept:
            raise Refused(
                40404, f"Subject '{subject}' was soft deleted.Set permanent=true to delete permanently"
            )  # as the real one writes it
        for one in kept:
            self._check_unused(one)
        for one in kept:
            one.deleted = True
        return [one.number for one in kept]

    def delete_version(self, subject: str, word: str, *, permanent: bool) -> int:
        """Delete a version of a subject; for good only if it is deleted already."""
        one = self.version(subject, word, deleted=True)
        if word in {"latest", "-1"} and not permanent:
            one = self.version(subject, word)
        self._check_writable(subject)
        if permanent and not one.deleted:
            raise Refused(
                40407,
                f"Subject '{subject}' Version {one.number} was not deleted first before being permanently deleted",
            )
        if one.deleted and not permanent:
            raise Refused(
                40406,
                f"Subject '{subject}' Version {one.number} was soft deleted.Set permanent=true to delete permanently",
            )
        self._check_unused(one)
        if permanent:
            self.subjects[subject].remove(one)
            if not self.subjects[subject]:
                del self.subjects[subject]
        else:
            one.deleted = True
        return one.number

    def _check_unused(self, one: Version) -> None:
        if self.users_of(one.subject, one.number):
            raise Refused(
                42206,
                "One or more references exist to the schema {magic=1,keytype=SCHEMA,"
                f"subject={one.subject},version={one.number}}}.",
            )

    def _check_writable(self, subject: str) -> None:
        if self.mode.of(subject) not in {"READWRITE", "IMPORT"}:
            raise Refused(42205, f"Subject {subject} is in read-only mode")

    def check_importable(self, subject: str | None) -> None:
        """Raise unless the mode can become IMPORT, which is for what is empty."""
        if self.subjects if subject is None else self.subjects.get(subject, ()):
            raise Refused(42205, "Cannot import since found existing subjects")


def _same(versions: list[Version], parsed: Parsed, references: tuple[dict[str, Any], ...]) -> Version | None:
    """Return the newest of the versions that has a schema, with the same references."""
    for one in reversed(versions):
        if (
            one.parsed.kind == parsed.kind
            and one.parsed.identity == parsed.identity
            and sorted(map(str, one.references)) == sorted(map(str, references))
        ):
            return one
    return None
