"""``purekafka protocol``: the layout of messages, and the content of bytes."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, Any

from kafka.cli.arguments import UsageError, find_api, parse_json, text_of
from kafka.cli.grammar import Noun, Verb, arg
from kafka.errors import KafkaError
from kafka.protocol.registry import APIS

if TYPE_CHECKING:
    from kafka.protocol.fields import Field
    from kafka.protocol.struct import StructMeta

#: Messages that belong to no API.
_OTHERS = {
    "RequestHeader": "headers",
    "ResponseHeader": "headers",
    "ConsumerProtocolSubscription": "consumer_protocol",
    "ConsumerProtocolAssignment": "consumer_protocol",
    "ControlRecordTypeSchema": "control_records",
    "EndTxnMarker": "control_records",
}
_MESSAGE = arg("MESSAGE", "FetchRequest, FetchResponse, RequestHeader and such")
_VERSION = arg("--version N", "the version of the message", int, required=True)


@Verb("list: list all APIs with their keys, versions and listeners", examples=["", "| grep Fetch"], connects=False)
def _list(_arguments: argparse.Namespace) -> int:
    print(f"{'key':>4}  {'name':<32} {'versions':<9} {'flexible':<9} listeners")
    for api in APIS.values():
        flexible = "-" if api.flexible_from is None else f"{api.flexible_from}+"
        versions = f"{api.min_version}-{api.max_version}"
        print(f"{api.key:>4}  {api.name:<32} {versions:<9} {flexible:<9} {api.listeners}")
    return 0


def _find(name: str) -> list[StructMeta]:
    """Return the messages that a name stands for."""
    others = {key.lower(): (key, module) for key, module in _OTHERS.items()}
    if name.lower() in others:
        key, module = others[name.lower()]
        return [getattr(import_module(f"kafka.protocol.{module}"), key)]
    near = get_close_matches(name.lower(), others, n=1, cutoff=0.8)
    if near:
        raise UsageError(f"Kafka has no message named {name!r}: did you mean {others[near[0]][0]}?")
    found = find_api(name)
    if name.lower().endswith("request"):
        return [found.request]
    return [found.response] if name.lower().endswith("response") else [found.request, found.response]


def _find_one(name: str, version: int) -> Any:
    found = _find(name)
    if len(found) > 1:
        raise UsageError(f"{name} is two messages: write {found[0].__name__} or {found[1].__name__}")
    return _of_version(found[0], version)


def _of_version(cls: StructMeta, version: int) -> StructMeta:
    try:
        return cls._of_version(version)
    except KafkaError as error:
        raise UsageError(f"--version {version}: {error.args[0]}") from None


@Verb(
    "show: show the fields of a message",
    arg("MESSAGE", "FetchRequest, FetchResponse, or Fetch for both; also RequestHeader and such"),
    arg("--version N", "show this version, in wire order, instead of all versions", int),
    examples=["FetchRequest --version 12", "Metadata"],
    connects=False,
)
def _show(arguments: argparse.Namespace) -> int:
    for cls in _find(arguments.message):
        chosen = cls if arguments.version is None else _of_version(cls, arguments.version)
        print(repr(cls).removeprefix("<class ").removesuffix(">"))
        for line in _tree(chosen, 1):
            print(line)
    return 0


def _tree(cls: StructMeta, depth: int) -> Iterator[str]:
    for name in cls._wire_names():
        field = cls._fields[name]
        nested = field.element if hasattr(field.element, "_fields") else None
        element = nested.__name__ if nested else field.element.__name__.lower()
        type_ = f"[{element}]" if field.is_array else element
        print_name = "  " * depth + name
        yield f"{print_name:<40} {type_:<28} {_facts(cls, field)}".rstrip()
        if nested is not None:
            version = cls._version
            yield from _tree(nested if version is None else nested._of_version(version), depth + 1)


def _facts(cls: StructMeta, field: Field) -> str:
    version = cls._version
    facts = []
    if version is None:
        facts.append(f"versions {field.versions}")
        if field.nullable.low <= field.nullable.high:
            facts.append(f"nullable {field.nullable}")
    elif version in field.nullable:
        facts.append("nullable")
    if field.tag is not None:
        facts.append(f"tag {field.tag}")
    if field.explicit_default:
        facts.append(f"default {field.default!r}")
    if field.ignorable:
        facts.append("ignorable")
    return ", ".join(facts)


@Verb(
    "decode: turn bytes into JSON",
    _MESSAGE,
    arg("data HEX...", "the bytes in hexadecimal, in one or more words; - reads standard input"),
    _VERSION,
    arg("--framed", "the bytes begin with a header, as on the wire after the frame's size"),
    examples=[
        "MetadataResponse --version 0 00000000 00000000",
        "echo 00000000 00000000 | purekafka protocol decode MetadataResponse --version 0 -",
    ],
    connects=False,
)
def _decode(arguments: argparse.Namespace) -> int:
    cls = _find_one(arguments.message, arguments.version)
    text = text_of("-", "the bytes") if arguments.data == ["-"] else " ".join(arguments.data)
    try:
        data = bytes.fromhex(text.replace(":", "").removeprefix("0x"))
    except ValueError as error:
        raise UsageError(f"this is not hexadecimal: {error}") from None
    if arguments.framed:
        header, message = cls.unframe(data)
        about = header if isinstance(header, int) else header.correlation_id
        print(f"correlation id {about}", file=sys.stderr)
    else:
        message = cls.decode(data)
    print(json.dumps(message.to_json(), indent=2))
    return 0


@Verb(
    "encode: turn JSON into bytes, in hexadecimal",
    [_MESSAGE, arg("data JSON", "the message as JSON; - reads standard input"), _VERSION],
    examples=[
        """MetadataRequest --version 1 '{"topics": [{"name": "events"}]}'""",
        """echo '{"topics": null}' | purekafka protocol encode MetadataRequest --version 1 -""",
    ],
    connects=False,
)
def _encode(arguments: argparse.Namespace) -> int:
    cls = _find_one(arguments.message, arguments.version)
    fields = parse_json(arguments.data)
    try:
        data = cls.from_json(fields).encode()
    except KafkaError as error:  # all that comes in is what the user wrote
        raise UsageError(error.args[0]) from None
    print(data.hex())
    return 0


COMMAND = Noun("protocol", [_list, _show, _decode, _encode])
