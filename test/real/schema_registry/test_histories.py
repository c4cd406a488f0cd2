"""Random histories of requests, sent to the registry of this package and to a real one: the answers are equal.

What is not compared: the texts of messages, the ids themselves (each registry counts its own; which schemas have equal
ids is compared), and what Apicurio answers otherwise than the registry whose interface it has.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator
from typing import Any, Final

import pytest

from kafka.schema_registry import Reference, Schema, SchemaRegistry, SchemaRegistryError, SchemaRegistryServer

from .apicurio import NEW, OLD
from .conftest import start

pytestmark = [pytest.mark.timeout(900), pytest.mark.soak]
LEVELS: Final = (
    "NONE", "BACKWARD", "BACKWARD_TRANSITIVE", "FORWARD", "FORWARD_TRANSITIVE", "FULL", "FULL_TRANSITIVE"
)  # fmt: skip
TYPES: Final[tuple[Any, ...]] = (
    "int", "long", "float", "double", "string", "bytes", "boolean", ["null", "string"], ["null", "int", "string"],
    ["int", "long"], {"type": "array", "items": "int"}, {"type": "array", "items": "long"},
    {"type": "map", "values": "string"}, {"type": "map", "values": ["null", "string"]},
    {"type": "enum", "name": "E", "symbols": ["A", "B"]},
    {"type": "enum", "name": "E", "symbols": ["A", "B", "C"]},
    {"type": "enum", "name": "E", "symbols": ["A"], "default": "A"},
    {"type": "fixed", "name": "F", "size": 4}, {"type": "fixed", "name": "F", "size": 5},
    {"type": "record", "name": "In", "fields": [{"name": "x", "type": "int"}]},
    {
        "type": "record",
        "name": "In",
        "fields": [{"name": "x", "type": "long"}, {"name": "y", "type": "int", "default": 1}],
    },
)  # fmt: skip
#: Apicurio refuses these for a subject without versions, where Confluent's registry does not.
ONLY_IF_THERE: Final = ("set_compatibility", "is_compatible", "lookup")
#: What Apicurio answers -> what Confluent's registry does.
APICURIO: Final = {"409 40406": "404 40406"}
DEFAULTS: Final = {"int": 1, "long": 2, "float": 0.5, "double": 0.25, "string": "s", "boolean": True, "bytes": "b"}


@pytest.fixture(scope="module", params=[OLD, NEW])
def real(request: pytest.FixtureRequest) -> Iterator[SchemaRegistry]:
    with start(request.param) as registry:
        yield SchemaRegistry(registry.url)


@pytest.fixture
def ours() -> Iterator[SchemaRegistry]:
    with SchemaRegistryServer(compatibility="NONE") as server:
        yield SchemaRegistry(server.url)


def random_fields(rng: random.Random) -> list[dict[str, Any]]:
    fields = []
    for name in ("a", "b", "c"):
        if rng.random() < 0.7:
            kind = rng.choice(TYPES)
            field = {"name": name, "type": kind}
            if isinstance(kind, str) and rng.random() < 0.5:
                field["default"] = DEFAULTS[kind]
            elif isinstance(kind, list) and kind[0] == "null" and rng.random() < 0.5:
                field["default"] = None
            fields.append(field)
    return fields


def changed(rng: random.Random, fields: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the fields with one of them changed, dropped or added."""
    others = {field["name"]: field for field in random_fields(rng)}
    kept = {field["name"]: field for field in fields}
    name = rng.choice("abc")
    if name in others and rng.random() < 0.8:
        kept[name] = others[name]
    else:
        kept.pop(name, None)
    return [kept[name] for name in sorted(kept)]


def record_of(rng: random.Random, fields: list[dict[str, Any]]) -> str:
    fields = json.loads(json.dumps(fields))
    # A type is declared once: the fields behind the first one with E, F or In name it.
    seen: set[str] = set()
    for field in fields:
        kind = field["type"]
        if isinstance(kind, dict) and "name" in kind:
            if kind["name"] in seen:
                field["type"] = kind["name"]
            seen.add(kind["name"])
    return json.dumps({"type": "record", "name": rng.choice(["R"] * 9 + ["Q"]), "fields": fields})


@pytest.mark.parametrize("seed", range(4))
def test_two_avro_schemas_are_compatible_where_a_real_registry_says_so(
    seed: int, real: SchemaRegistry, ours: SchemaRegistry
) -> None:
    print("seed", seed)
    rng = random.Random(seed)
    subject = f"pair-{uuid.uuid4().hex[:8]}"
    different = 0
    for number in range(60):
        fields = random_fields(rng)
        first, second = Schema(record_of(rng, fields)), Schema(record_of(rng, changed(rng, fields)))
        name = f"{subject}-{number}"
        for registry in (real, ours):
            registry.register(name, first)
        for level in ("BACKWARD", "FORWARD", "FULL"):
            verdicts = []
            for registry in (real, ours):
                registry.set_compatibility(level, name)
                verdicts.append(registry.is_compatible(name, second))
            assert verdicts[0] == verdicts[1], (level, first.text, second.text, verdicts)
            different += not verdicts[0]
    assert 20 < different < 160, "both verdicts are seen"


@pytest.mark.parametrize("seed", range(6))
def test_a_random_history_has_the_answers_of_a_real_registry(
    seed: int, real: SchemaRegistry, ours: SchemaRegistry
) -> None:
    print("seed", seed)
    rng = random.Random(seed)
    prefix = uuid.uuid4().hex[:8]
    fields = random_fields(rng)
    texts = [record_of(rng, changed(rng, fields)).replace('"R"', f'"R{prefix}"') for _ in range(6)]
    subjects = [f"{prefix}-{name}" for name in "abc"]
    for registry in (real, ours):  # Apicurio 3 compares by BACKWARD where nothing is set, whatever the global level
        for subject in subjects:
            registry.register(subject, Schema('"int"'))
            registry.set_compatibility("NONE", subject)
    ids: dict[int, int] = {}
    log: list[str] = []
    for _ in range(80):
        call = random_call(rng, subjects, texts)
        if call[0] in ONLY_IF_THERE and call[1 + (call[0] == "set_compatibility")] not in ours.subjects():
            continue
        # Apicurio says of a subject whose newest version is deleted that all of it is.
        if call[0] == "delete" and len(call) == 2 and deleted_versions(ours, call[1]):
            continue
        answers = [outcome(registry, call) for registry in (real, ours)]
        answers[0] = APICURIO.get(answers[0], answers[0]) if isinstance(answers[0], str) else answers[0]
        log.append(f"{call} -> {answers}")
        if call[0] == "register" and all(isinstance(one, int) for one in answers):
            theirs, mine = answers
            assert ids.setdefault(theirs, mine) == mine, "\n".join(log)
        else:
            assert answers[0] == answers[1], "\n".join(log)


def random_call(rng: random.Random, subjects: list[str], texts: list[str]) -> tuple[Any, ...]:
    subject, schema = rng.choice(subjects), Schema(rng.choice(texts))
    return rng.choice(
        [
            ("register", subject, schema),
            ("register", subject, schema),
            ("register", subject, schema),
            ("versions", subject),
            ("latest", subject),
            ("version", subject, rng.randint(1, 5)),
            ("lookup", subject, schema),
            ("set_compatibility", rng.choice(LEVELS), subject),
            ("is_compatible", subject, schema, None),
            ("delete", subject, rng.randint(1, 4)),
            ("delete", subject),
        ]
    )


def deleted_versions(registry: SchemaRegistry, subject: str) -> bool:
    if subject not in registry.subjects():
        return False
    return registry.versions(subject) != registry.versions(subject, deleted=True)


def outcome(registry: SchemaRegistry, call: tuple[Any, ...]) -> Any:
    """Return what both registries must say: a value, or the status and the code of the error."""
    registry = SchemaRegistry(registry.url)  # one that remembers nothing
    try:
        found = getattr(registry, call[0])(*call[1:])
    except SchemaRegistryError as error:
        return f"{error.status} {error.error_code}"
    if isinstance(found, Schema):
        return (found.subject, found.version, json.loads(found.text), found.kind)
    return found


def test_references_are_kept_and_protected_as_in_a_real_registry(real: SchemaRegistry, ours: SchemaRegistry) -> None:
    name = uuid.uuid4().hex[:8]
    money = json.dumps({"type": "record", "name": f"M{name}", "fields": [{"name": "cents", "type": "int"}]})
    bill = json.dumps({"type": "record", "name": f"B{name}", "fields": [{"name": "total", "type": f"M{name}"}]})
    for registry in (real, ours):
        registry.register(f"{name}-money", Schema(money))
        using = Schema(bill, references=(Reference(f"M{name}", f"{name}-money", 1),))
        number = registry.register(f"{name}-bill", using)
        assert SchemaRegistry(registry.url).schema(number).references == using.references
    with pytest.raises(SchemaRegistryError) as error:  # Apicurio deletes it, Confluent's registry does not
        ours.delete(f"{name}-money")
    assert (error.value.status, error.value.error_code) == (422, 42206)
