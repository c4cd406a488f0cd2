"""The parser of .proto files makes the descriptors that protoc makes, except for options that change no value."""

from __future__ import annotations

from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

from kafka.schema_registry.proto_text import parse_proto
from test.real.broker.peer_venvs import run_peer

pytestmark = pytest.mark.timeout(900)  # the first test fetches protoc

HERE = Path(__file__).parent
#: Types of messages -> the fields that the parser leaves out, or that only say what holds without them.
LEFT_OUT = {
    "FileDescriptorProto": ["options", "service"],
    "DescriptorProto": ["reserved_range", "reserved_name"],
    "EnumDescriptorProto": ["reserved_range", "reserved_name"],
    "OneofDescriptorProto": ["options"],
    "EnumValueDescriptorProto": ["options"],
    "ExtensionRange": ["options"],
}
KEPT_OPTIONS = {"map_entry", "packed", "allow_alias"}


def resolved(file: Any) -> Any:
    """Return the descriptor that the package protobuf makes: with the full names of all types."""
    import google.protobuf.any_pb2
    import google.protobuf.descriptor_pb2
    import google.protobuf.struct_pb2
    import google.protobuf.timestamp_pb2
    import google.protobuf.wrappers_pb2
    from google.protobuf.descriptor_pool import DescriptorPool

    pool = DescriptorPool()
    for name in ("any", "descriptor", "struct", "timestamp", "wrappers"):
        module = getattr(google.protobuf, f"{name}_pb2")
        pool.AddSerializedFile(module.DESCRIPTOR.serialized_pb)
    pool.Add(file)
    found = type(file)()
    pool.FindFileByName(file.name).CopyToProto(found)
    return found


def stripped(message: Any) -> Any:
    """Remove from a descriptor what the parser leaves out."""
    name = message.DESCRIPTOR.name
    for field in LEFT_OUT.get(name, ()):
        message.ClearField(field)
    if name == "FieldDescriptorProto" and message.json_name != "QQ":
        message.ClearField("json_name")  # protoc writes it to every field
    for field, value in message.ListFields():
        if field.name == "options":
            for option, _ in value.ListFields():
                if option.name not in KEPT_OPTIONS:
                    value.ClearField(option.name) if not option.is_extension else value.ClearExtension(option)
            value.DiscardUnknownFields()
            if not value.ListFields():
                message.ClearField("options")
        elif field.message_type is not None:
            for one in value:
                stripped(one)
    return message


@pytest.mark.parametrize("name", ["second", "third"])
def test_a_file_has_the_descriptor_that_protoc_makes(name: str) -> None:
    pytest.importorskip("google.protobuf", reason="protobuf is not installed: pip install 'purekafka[registry]'")
    path = HERE / "protos" / f"{name}.proto"
    ours = parse_proto(path.read_text())
    ours.name = path.name
    theirs = type(ours).FromString(b64decode(run_peer("confluent-registry", "protoc_side.py", str(path), where=HERE)))
    assert stripped(resolved(ours)) == stripped(resolved(theirs))
    assert ours.message_type[0].field, "which is not empty"
