"""Kafka's message specs as they lie in its jars, read without any code of the generator's."""

from __future__ import annotations

import json
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

#: The unspoken limit of "3+".
_LAST = 32767


def versions(text: str | None) -> range:
    """Return the versions that a spec's notation stands for."""
    if text in (None, "none"):
        return range(0)
    if text.endswith("+"):
        return range(int(text[:-1]), _LAST + 1)
    low, _, high = text.partition("-")
    return range(int(low), int(high or low) + 1)


@dataclass(frozen=True)
class Expected:
    """What a spec says of one field in one version."""

    name: str
    type: str
    is_array: bool
    nullable: bool
    tag: int | None
    default: Any
    ignorable: bool
    fields: tuple[Expected, ...]


class Spec:
    """One message."""

    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.name: str = raw["name"]
        self.valid = versions(raw["validVersions"])
        self.flexible = versions(raw.get("flexibleVersions"))
        self._common = {struct["name"]: struct["fields"] for struct in raw.get("commonStructs", ())}

    def fields(self, version: int) -> tuple[Expected, ...]:
        """Return the fields of one version in wire order, the tagged ones where the spec has them."""
        return tuple(self._expected(self.raw["fields"], version))

    def _expected(self, fields: list[dict[str, Any]], version: int) -> Iterator[Expected]:
        for raw in fields:
            tagged = versions(raw.get("taggedVersions"))
            if version not in (versions(raw["versions"]) if "versions" in raw else tagged):
                continue
            element = raw["type"].removeprefix("[]")
            nested = raw.get("fields") or self._common.get(element, [])
            yield Expected(
                name=raw["name"][:1].upper() + raw["name"][1:],
                type="struct" if nested else element,
                is_array=raw["type"].startswith("[]"),
                nullable=version in versions(raw.get("nullableVersions")),
                tag=int(raw["tag"]) if version in tagged else None,
                default=raw.get("default") or "",  # a bare null is no default; the word is one
                ignorable=raw.get("ignorable", False),
                fields=tuple(self._expected(nested, version)),
            )

    def keyed(self) -> set[str]:
        """Return the names of the lists whose elements Java keeps in a map, where keys cannot repeat."""
        return {name for name, nested in self._lists(self.raw["fields"]) if any(f.get("mapKey") for f in nested)}

    def _lists(self, fields: list[dict[str, Any]]) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        for raw in fields:
            nested = raw.get("fields") or self._common.get(raw["type"].removeprefix("[]"), [])
            if nested:
                yield raw["name"][:1].upper() + raw["name"][1:], nested
                yield from self._lists(nested)


def specs_in(jar: Path) -> dict[str, Spec]:
    """Read all specs of a jar."""
    found = {}
    with zipfile.ZipFile(jar) as archive:
        for name in archive.namelist():
            if name.startswith("common/message/") and name.endswith(".json"):
                spec = Spec(json.loads(_without_comments(archive.read(name).decode())))
                found[spec.name] = spec
    return found


def _without_comments(text: str) -> str:
    return re.sub(r'^\s*//.*$|(?<=[\s,{}\[\]"])//.*$', "", text, flags=re.MULTILINE)
