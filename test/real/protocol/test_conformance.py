"""Our definitions against Kafka's own specs, and our bytes against its own Java classes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

import pytest

from kafka.protocol import types
from kafka.protocol.codec.layout import FIXED_FORMATS, Layout, WireField, layout_of
from kafka.protocol.struct import Struct, StructMeta
from test.real import kafka_jars
from test.real.conftest import need_kafka
from test.real.golden import Golden, GoldenError
from test.real.protocol.specs import Expected, Spec, specs_in
from test.unit.protocol.instances import random_message
from test.unit.protocol.messages import message_classes

RELEASES = ("3.9.1", "4.3.1")
#: 4.3 describes all versions of these under the name ListConfigResources.
SUPERSEDED = {"ListClientMetricsResourcesRequest", "ListClientMetricsResourcesResponse"}
#: What 3.9 called by other names in versions that 4.3 still has; the bytes are the same.
RENAMED_FIELDS = {"VoteRequest"}
#: Unstable in 3.9, and changed before they became stable: what 3.9 says of them is void.
CHANGED_WHILE_UNSTABLE = {
    spec
    for api in ("ReadShareGroupStateSummary", "ShareFetch", "WriteShareGroupState")
    for spec in (f"{api}Request", f"{api}Response")
}

_TYPES = {
    "bool": types.Boolean,
    "int8": types.Int8,
    "int16": types.Int16,
    "uint16": types.UInt16,
    "int32": types.Int32,
    "uint32": types.UInt32,
    "int64": types.Int64,
    "float64": types.Float64,
    "string": types.String,
    "bytes": types.Bytes,
    "records": types.Records,
    "uuid": types.Uuid,
}


@pytest.fixture(scope="module", params=RELEASES)
def release(request: pytest.FixtureRequest) -> str:
    return need_kafka(request.param)


@pytest.fixture(scope="module")
def specs(release: str) -> dict[str, Spec]:
    """All specs of the release that speak of messages which we have."""
    found = specs_in(kafka_jars.jar(release, "kafka-clients"))
    if release > "4":
        for artifact in ("kafka-group-coordinator", "kafka-transaction-coordinator"):
            found |= specs_in(kafka_jars.jar(release, artifact))
    skipped = SUPERSEDED | (CHANGED_WHILE_UNSTABLE | RENAMED_FIELDS if release < "4" else set())
    return {name: spec for name, spec in found.items() if spec.valid and name not in skipped}


@pytest.fixture(scope="module")
def java(release: str) -> Iterator[Golden]:
    with Golden(release) as golden:
        yield golden


CLASSES = {cls.__name__: cls for cls in message_classes()}


# Definitions


def test_every_message_of_the_release_is_defined_in_every_version(specs: dict[str, Spec]) -> None:
    assert len(specs) > 150
    missing = [
        (name, version)
        for name, spec in specs.items()
        for version in spec.valid
        if name not in CLASSES or version not in CLASSES[name]._versions
    ]
    assert missing == []


def test_fields_types_defaults_and_tags_match_the_specs(specs: dict[str, Spec]) -> None:
    compared = 0
    for name, spec in specs.items():
        for version in spec.valid:
            bound = CLASSES[name]._of_version(version)
            layout = layout_of(bound)
            assert layout.flexible == (version in spec.flexible), f"{name} {version}"
            _compare(spec.fields(version), layout, f"{name}[{version}]")
            compared += 1
    assert compared > 500


def _compare(expected: tuple[Expected, ...], layout: Layout, where: str) -> None:
    plain = [e for e in expected if e.tag is None]
    tagged = sorted((e for e in expected if e.tag is not None), key=lambda e: e.tag or 0)
    assert [e.name for e in plain] == [w.field.spec_name for w in layout.plain], where
    assert [(e.name, e.tag) for e in tagged] == [(w.field.spec_name, w.field.tag) for w in layout.tagged], where
    for one, wire in zip((*plain, *tagged), (*layout.plain, *layout.tagged), strict=True):
        _compare_field(one, wire, f"{where}.{one.name}")


def _compare_field(expected: Expected, wire: WireField, where: str) -> None:
    assert (expected.is_array, expected.nullable) == (wire.is_array, wire.nullable), where
    assert expected.ignorable <= wire.field.ignorable, where
    if expected.type == "struct":
        _compare(expected.fields, layout_of(wire.element), where)
    else:
        assert wire.element is _TYPES[expected.type], where
    _compare_default(expected, wire, where)


def _compare_default(expected: Expected, wire: WireField, where: str) -> None:
    stated = expected.default
    default = wire.field.fresh_default(None)
    if stated == "null":
        assert default is None, where
    elif wire.is_array:
        assert default == [], where
    elif expected.type == "struct":
        assert isinstance(default, Struct), where
    elif wire.element is types.Boolean:
        assert default is (str(stated).lower() == "true"), where
    elif wire.element is types.Float64:
        assert default == float(stated or 0), where
    elif wire.element in FIXED_FORMATS:
        assert default == int(str(stated or 0), 0), where
    elif wire.element is types.String:
        assert default == stated, where


def test_stable_versions_are_what_java_would_choose(release: str, java: Golden) -> None:
    for api in java.apis():
        name = f"{api['name']}Request"
        if name in SUPERSEDED or name not in CLASSES:
            continue
        stable = CLASSES[name]._stable
        assert api["latest_stable"] <= stable.high, name
        if release == RELEASES[-1] and api["lowest"] <= api["latest_stable"]:
            assert api["latest_stable"] == stable.high, name


# Bytes

ROUNDS = 3


def test_java_reads_what_we_write_and_writes_the_same(release: str, specs: dict[str, Spec], java: Golden) -> None:
    messages = list(_messages(specs))
    assert len(messages) > 1_000
    ours = [message.encode() for message in messages]
    names = [(type(m)._unbound.__name__, m.API_VERSION) for m in messages]
    read = java.read_many([(*name, data) for name, data in zip(names, ours, strict=True)])
    for message, data, seen in zip(messages, ours, read, strict=True):
        assert not isinstance(seen, GoldenError), f"{message!r}: {seen}"
        assert seen.data == data, f"Java writes {message!r} in another way"
        assert seen.rest == 0, f"Java does not read all of {message!r}"
        assert seen.json == _as_java_shows(message), f"Java sees other values in {message!r}"


def test_we_read_what_java_writes_from_json(specs: dict[str, Spec], java: Golden) -> None:
    messages = list(_messages(specs))
    names = [(type(m)._unbound.__name__, m.API_VERSION) for m in messages]
    plain = [m.to_json() for m in messages]
    written = java.write_many([(*name, data) for name, data in zip(names, plain, strict=True)])
    for message, data in zip(messages, written, strict=True):
        assert not isinstance(data, GoldenError), f"{message!r}: {data}"
        assert type(message).decode(data) == message
        assert data == message.encode()


def _messages(specs: dict[str, Spec]) -> Iterator[Any]:
    for name, spec in specs.items():
        keyed = spec.keyed()
        for version in spec.valid:
            cls = CLASSES[name]._of_version(version)
            for number in range(ROUNDS):
                rng = random.Random(f"{name} {version} {number}")
                yield _without_repeated_keys(random_message(cls, rng, unknown_tags=False), keyed)


def _without_repeated_keys(message: Any, keyed: set[str]) -> Any:
    cls: StructMeta = type(message)
    for name in cls._wire_names():
        value = getattr(message, name)
        if isinstance(value, Struct):
            _without_repeated_keys(value, keyed)
        elif isinstance(value, list) and value and isinstance(value[0], Struct):
            if cls._fields[name].spec_name in keyed:
                del value[1:]
            for item in value:
                _without_repeated_keys(item, keyed)
    return message


def _as_java_shows(message: Any) -> dict[str, Any]:
    """Return our JSON with records as Java's converters show them, by their size alone."""
    return _with_sizes(layout_of(type(message)), message)


def _with_sizes(layout: Layout, struct: Any) -> dict[str, Any]:
    shown = struct.to_json() if not isinstance(struct, dict) else struct
    out: dict[str, Any] = {}
    for wire in (*layout.plain, *layout.tagged):
        name = wire.field.json_name
        if name not in shown:
            continue
        value = getattr(struct, wire.name)
        if wire.element is types.Records:
            out[name if value is None else f"{name}SizeInBytes"] = None if value is None else len(value)
        elif wire.is_struct and value is not None:
            nested = layout_of(wire.element)
            out[name] = [_with_sizes(nested, v) for v in value] if wire.is_array else _with_sizes(nested, value)
        else:
            out[name] = shown[name]
    return out
