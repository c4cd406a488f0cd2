"""Writes the message definitions of kafka/protocol from Kafka's message specs.

    python tools/generate_protocol.py SPECS [SPECS ...]

``SPECS`` is what describes one release, oldest release first: directories of ``*.json`` specs or jars
that carry them under ``common/message``, joined by commas. The newest release says what is; older
ones add the versions that it has dropped. Running it again on the same specs changes nothing.

For the next Kafka release run it with the last release before the cut of 4.0, for the old versions,
and the new one with the jars that describe its internal topics::

    kafka-clients-3.9.1.jar \\
    kafka-clients-4.3.1.jar,kafka-group-coordinator-4.3.1.jar,kafka-transaction-coordinator-4.3.1.jar
"""

from __future__ import annotations

import argparse
import io
import json
import re
import runpy
import sys
import zipfile
from dataclasses import dataclass, field, replace
from pathlib import Path

from protocol_families import FAMILIES, PURPOSES, SECRETS, SUPERSEDED

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "kafka" / "protocol"
ALIASES = runpy.run_path(str(PACKAGE / "aliases.py"))
#: Modules that older generations had too, with names that are looked up in the tables of aliases.py.
HISTORIC = {*ALIASES["HISTORIC_APIS"], *ALIASES["CLASS_ALIASES"], *ALIASES["MOVED_NAMES"]}
OPEN = 0x7FFF
LINE = 120

PRIMITIVES = {
    "bool": ("Boolean", "bool"),
    "int8": ("Int8", "int"),
    "int16": ("Int16", "int"),
    "uint16": ("UInt16", "int"),
    "int32": ("Int32", "int"),
    "uint32": ("UInt32", "int"),
    "int64": ("Int64", "int"),
    "float64": ("Float64", "float"),
    "string": ("String", "str"),
    "bytes": ("Bytes", "bytes"),
    "records": ("Records", "Buffer"),
    "uuid": ("Uuid", "UUID"),
}

# Reading the specs


@dataclass(frozen=True)
class Range:
    """Versions from low to high; high is OPEN for ``N+``."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str | None) -> Range:
        if text is None or text == "none":
            return cls(1, 0)
        if text.endswith("+"):
            return cls(int(text[:-1]), OPEN)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def __bool__(self) -> bool:
        return self.low <= self.high

    def __contains__(self, version: int) -> bool:
        return self.low <= version <= self.high

    def __and__(self, other: Range) -> Range:
        return Range(max(self.low, other.low), min(self.high, other.high))

    def join(self, other: Range) -> Range:
        """The union, which must be without a gap."""
        if not self or not other:
            return self or other
        if max(self.low, other.low) > min(self.high, other.high) + 1:
            raise SystemExit(f"versions {self} and {other} leave a gap")
        return Range(min(self.low, other.low), max(self.high, other.high))

    def within(self, valid: Range) -> str:
        """The notation of a definition, open where it reaches the newest version."""
        cut = self & valid
        if not cut:
            return "none"
        if cut.high == valid.high:
            return f"{cut.low}+"
        return str(cut.low) if cut.low == cut.high else f"{cut.low}-{cut.high}"

    def __str__(self) -> str:
        return f"{self.low}-{self.high}"


@dataclass(frozen=True)
class FieldSpec:
    name: str
    type: str  # a primitive or the name of a struct
    is_array: bool
    versions: Range
    nullable: Range
    tagged: Range
    tag: int | None
    default: object
    has_default: bool
    ignorable: bool
    flexible: bool
    fields: tuple[FieldSpec, ...] = ()

    @property
    def attribute(self) -> str:
        return snake_case(self.name)


@dataclass(frozen=True)
class MessageSpec:
    name: str
    kind: str
    api_key: int | None
    valid: Range
    flexible: Range
    unstable: Range
    listeners: tuple[str, ...]
    fields: tuple[FieldSpec, ...] = field(default=())


def snake_case(name: str) -> str:
    """CamelCase to snake_case: ``ISRNodes`` is ``isr_nodes``, ``TopicId`` is ``topic_id``."""
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def read_release(sources: str) -> dict[str, MessageSpec]:
    """Read all specs of one release: directories or jars, joined by commas."""
    specs = [parse_spec(text) for source in sources.split(",") for text in spec_texts(Path(source))]
    unstable = {spec.api_key: spec.unstable for spec in specs if spec.kind == "request"}
    specs = [replace(s, unstable=unstable[s.api_key]) if s.kind == "response" else s for s in specs]
    return {spec.name: spec for spec in specs if spec.name not in SUPERSEDED}


def spec_texts(source: Path) -> list[str]:
    """Return the specs in a directory or in a jar."""
    if source.is_dir():
        texts = [path.read_text(encoding="utf-8") for path in sorted(source.glob("*.json"))]
    else:
        with zipfile.ZipFile(io.BytesIO(source.read_bytes())) as jar:
            names = [n for n in sorted(jar.namelist()) if n.startswith("common/message/") and n.endswith(".json")]
            texts = [jar.read(name).decode() for name in names]
    if not texts:
        raise SystemExit(f"no message specs in {source}")
    return texts


def parse_spec(text: str) -> MessageSpec:
    without_comments = re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)
    without_comments = re.sub(r'(?<=[\s,{}\[\]"])//.*$', "", without_comments, flags=re.MULTILINE)
    raw = json.loads(without_comments)
    valid = Range.parse(raw["validVersions"])
    common = {struct["name"]: struct for struct in raw.get("commonStructs", ())}
    fields = tuple(parse_field(entry, common) for entry in raw.get("fields", ()))
    unstable = Range(valid.high, valid.high) if raw.get("latestVersionUnstable") else Range(1, 0)
    return MessageSpec(
        name=raw["name"],
        kind=raw["type"],
        api_key=raw.get("apiKey"),
        valid=valid,
        flexible=Range.parse(raw.get("flexibleVersions")) & valid,
        unstable=unstable,
        listeners=tuple(raw.get("listeners", ())),
        fields=fields,
    )


def parse_field(raw: dict, common: dict[str, dict]) -> FieldSpec:
    type_ = raw["type"]
    is_array = type_.startswith("[]")
    element = type_.removeprefix("[]")
    nested = raw.get("fields") or common.get(element, {}).get("fields") or ()
    if element not in PRIMITIVES and not nested:
        raise SystemExit(f"{raw['name']}: the struct {element} has no fields")
    has_default, default = parse_default(raw, "array" if is_array else element)
    return FieldSpec(
        name=raw["name"][:1].upper() + raw["name"][1:],  # the specs of internal topics begin small
        type=element,
        is_array=is_array,
        versions=Range.parse(raw.get("versions", raw.get("taggedVersions"))),
        nullable=Range.parse(raw.get("nullableVersions")),
        tagged=Range.parse(raw.get("taggedVersions")),
        tag=None if raw.get("tag") is None else int(raw["tag"]),
        default=default,
        has_default=has_default,
        ignorable=raw.get("ignorable", False),
        flexible=raw.get("flexibleVersions") != "none",
        fields=tuple(parse_field(entry, common) for entry in nested),
    )


def parse_default(raw: dict, kind: str) -> tuple[bool, object]:
    """Whether a default other than the type's own is stated, and which."""
    text = raw.get("default")
    if text in ("", None):  # a bare null is not a default; the word "null" is
        return False, None
    if text == "null":
        return kind != "records", None  # records are null by nature
    if kind == "bool":
        value: object = text in (True, "true")
        return value is True, value
    if kind in ("string", "bytes"):
        return True, text
    number = float(text) if kind == "float64" else int(str(text), 0)
    return number != 0, number


# Joining releases


def merge_releases(releases: list[dict[str, MessageSpec]]) -> dict[str, MessageSpec]:
    merged: dict[str, MessageSpec] = {}
    for release in releases:
        for name, spec in release.items():
            merged[name] = merge(merged[name], spec) if name in merged else spec
    return {name: spec for name, spec in merged.items() if spec.valid}


def merge(old: MessageSpec, new: MessageSpec) -> MessageSpec:
    """Join two releases of a message; the newer one decides about a version that both have."""
    if not new.valid:
        return old
    unstable = new.unstable
    if old.unstable and old.unstable.low in new.valid:
        # A version that was unstable in the old release is as the new release defines it.
        old = replace(old, valid=Range(old.valid.low, old.unstable.low - 1), unstable=Range(1, 0))
    elif old.unstable:
        unstable = old.unstable
    if not old.valid or (old.valid.low in new.valid and old.valid.high in new.valid):
        return replace(new, unstable=unstable)  # says all that the old one says, perhaps with better names
    valid = old.valid.join(new.valid)
    result = replace(
        new,
        valid=valid,
        flexible=(old.flexible & old.valid).join(new.flexible & new.valid),
        unstable=unstable,
        fields=merge_fields(old, new, old.fields, new.fields),
    )
    for release in (old, new):
        for version in range(release.valid.low, release.valid.high + 1):
            if wire_form(release, version) != wire_form(result, version):
                raise SystemExit(f"{new.name} version {version}: the releases disagree and cannot be joined")
    return result


def merge_fields(
    old: MessageSpec, new: MessageSpec, old_fields: tuple[FieldSpec, ...], new_fields: tuple[FieldSpec, ...]
) -> tuple[FieldSpec, ...]:
    by_name = {f.name: f for f in old_fields}
    known = {f.name for f in new_fields}
    dropped = [f for f in old_fields if f.name not in known]
    out: list[FieldSpec] = []
    for new_field in new_fields:
        old_field = by_name.get(new_field.name)
        if old_field is not None:
            while dropped and old_fields.index(dropped[0]) < old_fields.index(old_field):
                out.append(only_in(dropped.pop(0), old))
            out.append(merge_field(old, new, old_field, new_field))
        else:
            out.append(only_in(new_field, new))
    return (*out, *(only_in(f, old) for f in dropped))


def only_in(spec: FieldSpec, message: MessageSpec) -> FieldSpec:
    return replace(
        spec,
        versions=spec.versions & message.valid,
        nullable=spec.nullable & message.valid,
        tagged=spec.tagged & message.valid,
        fields=tuple(only_in(f, message) for f in spec.fields),
    )


def merge_field(old: MessageSpec, new: MessageSpec, a: FieldSpec, b: FieldSpec) -> FieldSpec:
    a, b = only_in(a, old), only_in(b, new)
    return replace(
        b,
        versions=a.versions.join(b.versions),
        nullable=a.nullable.join(b.nullable),
        tagged=a.tagged.join(b.tagged),
        ignorable=a.ignorable or b.ignorable,
        fields=merge_fields(old, new, a.fields, b.fields),
    )


def wire_form(message: MessageSpec, version: int) -> object:
    """All that decides the bytes of one version."""

    def of(fields: tuple[FieldSpec, ...]) -> list[object]:
        return [
            (
                f.name,
                f.type if f.type in PRIMITIVES else "struct",
                f.is_array,
                version in f.nullable,
                f.tag if version in f.tagged else None,
                of(f.fields),
            )
            for f in fields
            if version in f.versions
        ]

    return version in message.flexible, of(message.fields)


# Writing the definitions


def write_module(module: str, title: str, messages: list[MessageSpec]) -> str:
    body = "\n\n".join(write_message(message) for message in messages)
    bases = sorted({base_of(message).partition("[")[0] for message in messages} - {"Struct"})
    structs = ["Struct"] if re.search(r"\(Struct[,)]", body) else []
    types = sorted({name for name, _ in PRIMITIVES.values() if re.search(rf"[( ]{name}[,)]", body)}, key=natural)
    lines = [
        f'"""{title}',
        "",
        "Written by tools/generate_protocol.py from Kafka's message specs; do not edit.",
        '"""',
        "",
    ]
    lines += ["from __future__ import annotations", ""]
    if "UUID" in body:
        lines += ["from uuid import UUID", ""]
    imports = []
    historic = f"kafka.protocol.{module}" in HISTORIC
    if historic:
        imports.append("from kafka.protocol._historic import historic_names")
    if bases:
        imports.append(f"from kafka.protocol.api import {', '.join(bases)}")
    names = [name for name, sign in (("Array", "Array("), ("Buffer", "Buffer"), ("field", "")) if sign in body]
    imports.append(f"from kafka.protocol.fields import {', '.join(names)}")
    if structs:
        imports.append("from kafka.protocol.struct import Struct")
    imports.append(wrapped("from kafka.protocol.types import ", types))
    lines += [*imports, ""]
    if historic:
        lines += ["__getattr__ = historic_names(__name__)", ""]
    lines += ["", body]
    return "\n".join(lines)


def natural(name: str) -> tuple[str, int]:
    """The order in which Int8 comes before Int16."""
    stem = name.rstrip("0123456789")
    return stem, int(name[len(stem) :] or 0)


def wrapped(start: str, names: list[str]) -> str:
    line = start + ", ".join(names)
    return line if len(line) <= LINE else start + "(\n" + "".join(f"    {name},\n" for name in names) + ")"


def base_of(message: MessageSpec) -> str:
    """Return the base class; that of a request names its response, for type checkers."""
    if message.kind == "request":
        return f'Request["{message.name.removesuffix("Request")}Response"]'
    return "Response" if message.kind == "response" else "Struct"


def write_message(message: MessageSpec) -> str:
    options = [f'versions="{notation(message.valid)}"', f'flexible="{message.flexible.within(message.valid)}"']
    if message.api_key is not None:
        of_log = message.kind.startswith("coordinator-")
        options.insert(0, f"{'record_type' if of_log else 'api_key'}={message.api_key}")
    if message.unstable:
        options.append(f'unstable="{message.unstable.low}"')
    arguments = f"{base_of(message)}, {', '.join(options)}"
    head = f"class {message.name}({arguments}):"
    if len(head) > LINE:
        head = f"class {message.name}(\n    {arguments}\n):"
    lines = [head]
    if message.kind != "response" or not message.fields:  # a response says by its name whose answer it is
        lines += [f'    """{purpose_of(message)}"""', ""]
    seen: dict[str, tuple[FieldSpec, ...]] = {}
    for spec in nested_structs(message.fields):
        if spec.type in seen:
            if seen[spec.type] != spec.fields:
                raise SystemExit(f"{message.name} has two structs named {spec.type}")
            continue
        seen[spec.type] = spec.fields
        lines += write_struct(message, spec)
    lines += [f"    {line}" for f in message.fields for line in write_field(message, f)]
    if not message.fields:
        lines.pop()
    return "\n".join(lines) + "\n"


def notation(versions: Range) -> str:
    return str(versions.low) if versions.low == versions.high else f"{versions.low}-{versions.high}"


def purpose_of(message: MessageSpec) -> str:
    base = re.sub("(Request|Response)$", "", message.name)
    if base not in PURPOSES:
        raise SystemExit(f"Say in PURPOSES of tools/protocol_families.py what {base} is for")
    return PURPOSES[base]


def nested_structs(fields: tuple[FieldSpec, ...]) -> list[FieldSpec]:
    """All structs below, parts before the structs that have them."""
    out: list[FieldSpec] = []
    for spec in fields:
        if spec.fields:
            out += [*nested_structs(spec.fields), spec]
    return out


def write_struct(message: MessageSpec, spec: FieldSpec) -> list[str]:
    body = [f"        {line}" for f in spec.fields for line in write_field(message, f, indent=8)]
    return [f"    class {spec.type}(Struct):", *body, ""]


def write_field(message: MessageSpec, spec: FieldSpec, indent: int = 4) -> list[str]:
    wire, python = PRIMITIVES.get(spec.type, (spec.type, spec.type))
    if indent > 4 and spec.fields:
        # The body of a nested class does not see its neighbours, so they are named.
        wire, python = f'"{wire}"', f"{message.name}.{python}"
    if spec.is_array:
        wire, python = f"Array({wire})", f"list[{python}]"
    if spec.nullable & spec.versions & message.valid or (spec.has_default and spec.default is None):
        python += " | None"
    arguments = ", ".join([wire, *field_arguments(message, spec)])
    start = f"{spec.attribute}: {python} = field("
    line = f"{start}{arguments})"
    return [line] if len(line) + indent <= LINE else [start, f"    {arguments}", ")"]


def field_arguments(message: MessageSpec, spec: FieldSpec) -> list[str]:
    nullable = spec.nullable & spec.versions & message.valid
    tagged = spec.tagged & message.valid
    if spec.tag is not None and tagged and tagged != (spec.versions & message.valid):
        raise SystemExit(f"{message.name}.{spec.name} is tagged in some of its versions only")
    camel_case = "".join(part[:1].upper() + part[1:] for part in spec.attribute.split("_"))
    stated = {
        "nullable": f'"{nullable.within(message.valid)}"' if nullable else "",
        "default": format_default(spec.default) if spec.has_default else "",
        "tag": str(spec.tag) if spec.tag is not None and tagged else "",
        "ignorable": "True" if spec.ignorable else "",
        "flexible": "" if spec.flexible else "False",
        "secret": "True" if (message.name, spec.attribute) in SECRETS else "",
        "spec_name": f'"{spec.name}"' if spec.name != camel_case else "",
    }
    return [f'"{spec.versions.within(message.valid)}"', *(f"{name}={text}" for name, text in stated.items() if text)]


def format_default(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else repr(value)


def stable_versions(message: MessageSpec) -> Range:
    """The versions that may be chosen: the unstable ones are the first or the last."""
    valid, unstable = message.valid, message.unstable
    if not unstable:
        return valid
    return Range(unstable.high + 1, valid.high) if unstable.low == valid.low else Range(valid.low, unstable.low - 1)


def write_registry(messages: dict[str, MessageSpec]) -> str:
    """Return the enum of all APIs, for negotiation without an import of a message."""
    module_of = {name: module for module, (_, names) in FAMILIES.items() for name in names}
    requests = sorted((m for m in messages.values() if m.kind == "request"), key=lambda m: m.api_key or 0)
    rows = []
    for m in requests:
        base = m.name.removesuffix("Request")
        stable = stable_versions(m)
        flexible = m.flexible.low if m.flexible else None
        listeners = " ".join(sorted(m.listeners)) or "none"
        facts = f'{m.api_key}, "{module_of[base]}", {stable.low}, {stable.high}, {flexible}, "{listeners}"'
        rows.append(f"    {base} = {facts}\n")
    head = (PACKAGE / "registry.py").read_text(encoding="utf-8")
    begin, end = "    # begin of the generated table\n", "    # end of the generated table\n"
    before, _, rest = head.partition(begin)
    return before + begin + "".join(rows) + end + rest.partition(end)[2]


def generate(releases: list[str]) -> dict[Path, str]:
    """Return the text of every generated file."""
    messages = merge_releases([read_release(sources) for sources in releases])
    files = {}
    left = set(messages)
    for module, (title, bases) in FAMILIES.items():
        chosen = [
            messages[name] for base in bases for name in (base, f"{base}Request", f"{base}Response") if name in messages
        ]
        left -= {m.name for m in chosen}
        files[PACKAGE / f"{module}.py"] = write_module(module, title, chosen)
    if left:
        raise SystemExit(f"no family for {', '.join(sorted(left))}: add them to tools/protocol_families.py")
    files[PACKAGE / "registry.py"] = write_registry(messages)
    return files


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("specs", nargs="+", help="what describes a release, oldest first")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file would change")
    arguments = parser.parse_args()
    files = generate(arguments.specs)
    changed = [path for path, text in files.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    for path in changed:
        print(("would change " if arguments.check else "wrote ") + str(path.relative_to(ROOT)))
        if not arguments.check:
            path.write_text(files[path], encoding="utf-8")
    return 1 if arguments.check and changed else 0


if __name__ == "__main__":
    sys.exit(main())
