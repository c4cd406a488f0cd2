"""The text of .proto files becomes the descriptor that protoc makes of it; test/real asks protoc itself."""

from __future__ import annotations

from typing import Any

import pytest

from kafka.schema_registry.proto_text import parse_proto

TEXT = """
syntax = 'proto3';  // a comment
package a.b; /* another
one */
option java_package = "x";
message M {
  int32 x = 0x10; repeated sint64 y = 2 [packed = false, (o).p = { q: [1, "]"] }, json_name = "why"];
  map<string, N.E> z_z = 3; N n = 4; .a.b.N.E e = 5; optional string o = 6;
  oneof c { bytes d = 7; b.N f = 8; }
  reserved 100 to 110, 200; reserved "old";
}
message N { enum E { option allow_alias = true; A = 0; B = 1; C = 1 [deprecated = true]; D = -2; } }
service S { rpc Do (M) returns (stream N) { option (x) = { y: "}" }; } }
"""


@pytest.fixture(autouse=True)
def protobuf() -> None:
    pytest.importorskip("google.protobuf", reason="protobuf is not installed: pip install 'purekafka[registry]'")


def classes(text: str) -> dict[str, Any]:
    """Return the classes of the messages of a file by their names."""
    from google.protobuf.descriptor_pool import DescriptorPool
    from google.protobuf.message_factory import GetMessageClass

    file = parse_proto(text)
    file.name = "test.proto"
    pool = DescriptorPool()
    pool.Add(file)
    return {name: GetMessageClass(one) for name, one in pool.FindFileByName(file.name).message_types_by_name.items()}


def test_fields_match_the_text() -> None:
    message = classes(TEXT)["M"]
    fields = {field.name: field for field in message.DESCRIPTOR.fields}
    numbers = {name: field.number for name, field in fields.items()}
    assert numbers == {"x": 16, "y": 2, "z_z": 3, "n": 4, "e": 5, "o": 6, "d": 7, "f": 8}
    assert (fields["y"].json_name, fields["z_z"].message_type.name) == ("why", "ZZEntry")
    assert fields["n"].message_type is fields["f"].message_type
    assert (fields["e"].enum_type.full_name, fields["o"].has_presence) == ("a.b.N.E", True)
    assert [one.name for one in message.DESCRIPTOR.oneofs] == ["c", "_o"]
    value = message(x=1, y=[-1, 1], z_z={"k": -2}, o="", d=b"\0")
    encoded = bytes.fromhex("1001 1002 1a0e 0a016b 10feffffffffffffffff01 3200 3a0100 800101")
    assert value.SerializeToString(deterministic=True) == encoded


def test_fields_of_proto2_have_defaults_groups_and_extensions() -> None:
    text = r"""
        message M {
          required int32 a = 1 [default = -0x10]; optional string b = 2 [default = "x\"" 'y\n'];
          optional double c = 3 [default = -inf]; optional E d = 4 [default = F]; optional float h = 8 [default = 1.5f];
          optional group Part = 5 { optional bool in = 1 [default = true]; }
          repeated int32 message = 6; optional bytes g = 7 [default = "\001\xff"];
          extensions 100 to 199, 1000 to max;
          enum E { F = 3; }
        }
        extend M { optional string more = 100; }
    """
    message = classes(text)["M"]()
    found = (message.a, message.b, message.c, message.d, message.h, message.g)
    assert found == (-16, 'x"y\n', float("-inf"), 3, 1.5, b"\1\xff")
    group = message.DESCRIPTOR.fields_by_name["part"]
    assert (group.type, group.message_type.name, group.message_type.fields[0].default_value) == (10, "Part", True)
    assert message.DESCRIPTOR.file.extensions_by_name["more"].containing_type is message.DESCRIPTOR
    assert message.DESCRIPTOR.extension_ranges == [(100, 200), (1000, 536870912)]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("message A {\n  int32 x 1;\n}", "^line 2 of the .proto file: '1' instead of =$"),
        ("message A {", "^line 1 of the .proto file: 'its end' instead of a name$"),
        ("message A { int32 x = 1 [a = {", "instead of }"),
        ("message A { int32 x = y; }", "'y' instead of a number"),
        ("nope", "'nope' instead of a statement"),
        ("\n\n`", "^line 3 of the .proto file: '`' is not expected$"),
        ('syntax = "proto4";', "unknown syntax 'proto4'"),
        ('edition = "2023";', "only proto2 and proto3"),
    ],
)
def test_a_wrong_file_names_the_line(text: str, complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        parse_proto(text)
