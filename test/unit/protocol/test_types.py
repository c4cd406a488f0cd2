"""The wire types, and the declarative layer that users define messages of their own with."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.errors import KafkaProtocolError
from kafka.protocol.api import Request, Response
from kafka.protocol.struct import Struct
from kafka.protocol.types import (
    Array,
    Boolean,
    Bytes,
    CompactArray,
    CompactBytes,
    CompactString,
    Float64,
    Int8,
    Int16,
    Int32,
    Int64,
    Schema,
    String,
    TaggedFields,
    UInt16,
    UInt32,
    UnsignedVarInt32,
    Uuid,
    VarInt32,
    VarInt64,
)

SIGNED = [(Int8, 8), (Int16, 16), (Int32, 32), (Int64, 64)]
UNSIGNED = [(UInt16, 16), (UInt32, 32)]


@pytest.mark.parametrize(("of", "bits"), SIGNED)
def test_signed_numbers_have_two_limits(of: Any, bits: int) -> None:
    for value in (-(1 << (bits - 1)), -1, 0, 1, (1 << (bits - 1)) - 1):
        assert of.encode(value) == value.to_bytes(bits // 8, "big", signed=True)
        assert of.decode(BytesIO(of.encode(value))) == value
    for value in (-(1 << (bits - 1)) - 1, 1 << (bits - 1), "1", 1.0, None, True):
        with pytest.raises(KafkaProtocolError, match="takes a number of type Int"):
            of.encode(value)


@pytest.mark.parametrize(("of", "bits"), UNSIGNED)
def test_unsigned_numbers_begin_at_zero(of: Any, bits: int) -> None:
    assert of.decode(BytesIO(of.encode((1 << bits) - 1))) == (1 << bits) - 1
    with pytest.raises(KafkaProtocolError):
        of.encode(-1)


@given(st.integers(-(2**31), 2**31 - 1))
def test_varints_are_short_for_small_numbers(value: int) -> None:
    data = VarInt32.encode(value)
    assert VarInt32.decode(BytesIO(data)) == value
    assert VarInt64.decode(BytesIO(VarInt64.encode(value << 32))) == value << 32
    if -64 <= value < 64:
        assert len(data) == 1


@pytest.mark.parametrize(("value", "data"), [(0, "00"), (-1, "01"), (1, "02"), (300, "d804"), (-(2**31), "ffffffff0f")])
def test_zigzag_vectors(value: int, data: str) -> None:
    assert VarInt32.encode(value).hex() == data


@pytest.mark.parametrize("data", ["ffffffffff", "ffffffff1f", "ffffffffffffffff"])
def test_a_varint_that_is_too_long_is_refused(data: str) -> None:
    with pytest.raises(KafkaProtocolError, match="more than 32 bits"):
        UnsignedVarInt32.decode(BytesIO(bytes.fromhex(data)))


def test_text_bytes_and_null() -> None:
    assert String("utf-8").encode("é") == b"\0\2\xc3\xa9"
    assert String().encode(None) == b"\xff\xff"
    assert String().decode(BytesIO(b"\xff\xff")) is None
    assert Bytes.encode(b"ab") == b"\0\0\0\2ab"
    assert Bytes.encode(None) == b"\xff\xff\xff\xff"
    assert CompactString().encode("ab") == b"\3ab"
    assert CompactBytes().encode(None) == b"\0"
    assert CompactArray(Int8).encode([5]) == b"\2\5"
    assert Array(String()).decode(BytesIO(Array(String()).encode(["a", None]))) == ["a", None]
    assert String("latin-1").decode(BytesIO(b"\0\1\xe9")) == "é"


def test_booleans_floats_and_uuids() -> None:
    assert Boolean.encode(True) == b"\1"
    assert Boolean.decode(BytesIO(b"\2")) is True
    assert Float64.decode(BytesIO(Float64.encode(1.5))) == 1.5
    assert str(Uuid.decode(BytesIO(b"\1" * 16))) == "01010101-0101-0101-0101-010101010101"


@pytest.mark.parametrize("of", [Int32, String(), Bytes, Array(Int32), Uuid, CompactString(), Boolean, VarInt32])
def test_missing_bytes_are_counted(of: Any) -> None:
    with pytest.raises(KafkaProtocolError, match=r"needs 1?[0-9] bytes, only 0 are left"):
        of.decode(BytesIO(b""))


def test_tags_ascend() -> None:
    tags = {7: b"x", 300: b""}
    assert TaggedFields.decode(BytesIO(TaggedFields.encode(tags))) == tags
    assert TaggedFields.encode(None) == b"\0"
    with pytest.raises(KafkaProtocolError, match="has tag 1 after tag 2"):
        TaggedFields.decode(BytesIO(bytes.fromhex("02 0200 0100")))


# Messages of a user's own

ITEM = Schema(("name", String("utf-8")), ("sizes", Array(Int32)))


class PingRequest(Request):
    """A message that Kafka does not have."""

    API_KEY = 999
    API_VERSION = 0
    SCHEMA = Schema(("text", String("utf-8")), ("items", Array(("name", String("utf-8")), ("count", Int32))))


class PingResponse(Response):
    """Its answer."""

    API_KEY = 999
    API_VERSION = 0
    SCHEMA = Schema(
        ("error_code", Int16),
    )


PingRequest.RESPONSE_TYPE = PingResponse


def test_a_schema_encodes_tuples() -> None:
    data = ITEM.encode(("a", [1, 2]))
    assert ITEM.decode(BytesIO(data)) == ("a", [1, 2])
    assert repr(ITEM) == "Schema(name=String, sizes=Array(<class 'kafka.protocol.types.Int32'>))"
    assert ITEM.repr(("a", [1])) == "(name='a', sizes=[1])"
    with pytest.raises(KafkaProtocolError, match="sizes: takes a list, not 5"):
        ITEM.encode(("a", 5))
    with pytest.raises(KafkaProtocolError, match="takes 2 values"):
        ITEM.encode(("a",))


def test_user_messages_encode_decode_and_show_themselves() -> None:
    ping = PingRequest("hi", [("a", 1)])
    assert PingRequest.decode(ping.encode()) == ping
    assert PingRequest.decode(BytesIO(ping.encode())).items == [("a", 1)]
    assert PingRequest(text="hi").items is None
    assert repr(ping) == "PingRequest[0](text='hi', items=[('a', 1)])"
    assert ping.RESPONSE_TYPE is PingResponse
    assert tuple(ping) == ("hi", [("a", 1)])
    with pytest.raises(TypeError, match="'no' is unknown"):
        PingRequest(no=1)
    with pytest.raises(TypeError, match="takes 2 values"):
        PingRequest(1, 2, 3)
    with pytest.raises(KafkaProtocolError, match="needs 2 bytes"):
        PingRequest.decode(b"")


def test_user_messages_are_framed_like_ours() -> None:
    frame = PingRequest("hi", []).frame(3, "me")
    assert frame[4:14] == bytes.fromhex("03e7 0000 00000003 0002")
    assert PingResponse.unframe(PingResponse(7).frame(3)[4:]) == (3, PingResponse(7))


def test_a_user_struct_may_stand_alone() -> None:
    class Point(Struct):
        """Two numbers."""

        SCHEMA = Schema(("x", Int32), ("y", Int32))

    point = Point(1, y=2)
    assert Point.decode(point.encode()) == point == (1, 2)
    assert point.x + point.y == 3
