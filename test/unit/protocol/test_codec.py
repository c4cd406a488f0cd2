"""The compiled codecs against the interpreter, and against bytes that nobody should send."""

from __future__ import annotations

import random
import tracemalloc
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka.errors import KafkaProtocolError
from kafka.protocol.codec import interpreter
from kafka.protocol.codec.layout import layout_of
from kafka.protocol.fetch import FetchRequest, FetchResponse
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.produce import ProduceRequest
from kafka.protocol.struct import StructMeta
from kafka.protocol.types import Gathered

from .instances import random_message
from .messages import message_classes, versions

ALL = versions()
RESPONSES = [cls for cls in ALL if cls.__name__.endswith("Response")]


def test_all_messages_of_the_release_are_here() -> None:
    assert len(message_classes()) > 230
    assert len(ALL) > 750


@pytest.mark.parametrize("seed", range(2))  # each takes a second of a processor
def test_every_message_in_every_version_comes_back_as_it_went(seed: int) -> None:
    for cls in ALL:
        message = random_message(cls, random.Random(f"{cls} {seed}"))
        data = message.encode()
        back = cls.decode(data)
        assert back == message
        assert type(back) is cls
        assert back.encode() == data, "what was decoded is written as it was"


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(ALL), st.integers(0, 2**32))
def test_compiled_codec_and_interpreter_agree(cls: StructMeta, seed: int) -> None:
    message = random_message(cls, random.Random(seed))
    data = message.encode()
    assert interpreter.encode(cls, message) == data
    assert interpreter.decode(cls, data) == message
    assert cls.decode(bytearray(data)) == message
    assert cls.decode(memoryview(data)) == message
    assert cls.decode(b"xyz" + data, start=3) == message


def sliced(cls: StructMeta, data: bytes) -> Any:
    """Decode in slices; returns the message, or the text of the error."""
    steps = cls._unbound._codec(cls._version).decode_slices(data, 0)
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return end.value
    except KafkaProtocolError as error:
        return str(error)


@settings(deadline=None, max_examples=150)
@given(st.sampled_from(RESPONSES), st.integers(0, 2**32))
def test_a_message_that_is_decoded_in_slices_is_the_same_and_so_is_the_error(cls: StructMeta, seed: int) -> None:
    message = random_message(cls, random.Random(seed))
    data = message.encode()
    assert sliced(cls, data) == message
    cut = data[: random.Random(seed).randrange(len(data) + 1)] + b"\xff" * (seed % 3)
    try:
        expected: Any = cls.decode(cut)
    except KafkaProtocolError as error:
        expected = str(error)
    assert sliced(cls, cut) == expected


def test_there_is_a_slice_for_each_topic_and_each_partition() -> None:
    bound = MetadataResponse[13]
    partition = bound.MetadataResponsePartition
    topics = [
        bound.MetadataResponseTopic(name=f"t{n}", partitions=[partition(partition_index=at) for at in range(5)])
        for n in range(7)
    ]
    data = bound(topics=topics).encode()
    assert len(list(bound._unbound._codec(13).decode_slices(data, 0))) == 7 + 7 * 5 + 1


@settings(deadline=None, max_examples=120)
@given(st.sampled_from(ALL), st.integers(0, 2**32))
def test_json_and_pickle_keep_everything_known(cls: StructMeta, seed: int) -> None:
    import copy
    import pickle

    message = random_message(cls, random.Random(seed), unknown_tags=False)
    assert cls.from_json(message.to_json()) == message
    assert pickle.loads(pickle.dumps(message)) == message
    assert copy.deepcopy(message) == message
    assert eval_repr(cls, message) == message


def eval_repr(cls: StructMeta, message: Any) -> Any:
    """Return what the message's wire order and values say, given back as positional arguments."""
    plain = [w.name for w in layout_of(cls).plain]
    tagged = {w.name: getattr(message, w.name) for w in layout_of(cls).tagged}
    return cls(*[getattr(message, name) for name in plain], **tagged)


def decode_or_complain(cls: StructMeta, data: bytes) -> None:
    try:
        message = cls.decode(data)
    except KafkaProtocolError as error:
        assert error.message_name == cls.__name__
        assert error.version == cls._version
        with pytest.raises(KafkaProtocolError):
            interpreter.decode(cls, data)
    else:
        assert interpreter.decode(cls, data) == message


def test_every_truncation_of_every_response_is_an_error() -> None:
    for cls in RESPONSES:
        data = random_message(cls, random.Random(f"{cls}"), unknown_tags=False).encode()
        for end in range(len(data)) if len(data) < 100 else random.Random(1).sample(range(len(data)), 40):
            with pytest.raises(KafkaProtocolError):
                cls.decode(data[:end])


MUTATIONS_OF_A_TYPE = 400  # others in each run of test/embedded/fuzz, and for an hour in `make soak`


@pytest.mark.parametrize("name", sorted({cls.__name__ for cls in RESPONSES}))
def test_mutated_responses_end_in_an_error_or_a_valid_message(name: str) -> None:
    rng = random.Random(name)
    bound = [cls for cls in RESPONSES if cls.__name__ == name]
    for number in range(MUTATIONS_OF_A_TYPE // 20):
        cls = bound[number % len(bound)]
        data = _of_modest_size(cls, rng)
        for _ in range(19):
            with suppress(KafkaProtocolError):
                cls.decode(_mutant(data, rng))
        decode_or_complain(cls, _mutant(data, rng))


def _of_modest_size(cls: StructMeta, rng: random.Random) -> bytes:
    data: bytes = min((random_message(cls, rng).encode() for _ in range(4)), key=len)
    return data or b"\0"


def _mutant(data: bytes, rng: random.Random) -> bytes:
    mutant = bytearray(data)
    for _ in range(rng.randint(1, 4)):
        mutant[rng.randrange(len(mutant))] = rng.choice((0, 1, 127, 128, 255, rng.randrange(256)))
    return bytes(mutant)


@settings(deadline=None, max_examples=200)
@given(st.sampled_from(RESPONSES), st.binary(max_size=200))
def test_noise_ends_in_an_error_or_a_valid_message(cls: StructMeta, noise: bytes) -> None:
    decode_or_complain(cls, noise)


@pytest.mark.parametrize(
    ("cls", "data"),
    [
        (MetadataResponse[0], "7fffffff"),  # two thousand million brokers
        (MetadataResponse[0], "00000001 00000001 7fff"),  # a host of 32 KiB
        (MetadataResponse[9], "00000000 ffffffff07"),  # the same in compact form
        (MetadataResponse[9], "00000000 ffffffffffffffffff"),  # a varint that never ends
        (FetchResponse[0], "00000001 0001 74 00000001 00000000 0000 0000000000000000 7fffffff"),  # records
        (FetchResponse[12], "00000000 0000 00000000 01 01 00 ffffffff07"),  # a tag buffer
        (FetchRequest[18], "00" * 25 + "ffffffff0f"),
        (MetadataResponse[0], "00000000 00000001 0000 fffe"),  # a length below null
    ],
)
def test_impossible_lengths_allocate_nothing(cls: StructMeta, data: str) -> None:
    raw = bytes.fromhex(data)
    with pytest.raises(KafkaProtocolError):
        cls.decode(raw)
    tracemalloc.start()
    try:
        with pytest.raises(KafkaProtocolError):
            cls.decode(raw)
        assert tracemalloc.get_traced_memory()[1] < 200_000
    finally:
        tracemalloc.stop()


def test_bytes_after_the_last_field_are_an_error() -> None:
    with pytest.raises(KafkaProtocolError, match=r"MetadataRequest\[1\]: 2 bytes are left after the last field"):
        MetadataRequest[1].decode(b"\0\0\0\0xx")


def test_text_with_invalid_utf8_is_an_error() -> None:
    with pytest.raises(KafkaProtocolError, match=r"MetadataRequest\[1\].topics\[0\].name .*no utf-8 text"):
        MetadataRequest[1].decode(bytes.fromhex("00000001 0002 ffff"))


def test_a_repeated_tag_is_an_error() -> None:
    good = MetadataRequest[9]().encode()
    with pytest.raises(KafkaProtocolError, match="tags must ascend"):
        MetadataRequest[9].decode(good[:-1] + bytes.fromhex("02 0500 0500"))


def test_unknown_tags_are_kept_and_passed_on() -> None:
    data = MetadataRequest[9]().encode()[:-1] + bytes.fromhex("01 05 02 abcd")
    message = MetadataRequest[9].decode(data)
    assert message.unknown_tags == {5: b"\xab\xcd"}
    assert message.encode() == data
    assert "unknown_tags={5: b'\\xab\\xcd'}" in repr(message)


def test_records_are_views_into_the_frame_and_not_copied() -> None:
    partition = {"partition_index": 3, "records": b"r" * 100_000}
    data = bytearray(FetchResponse[12](responses=[{"topic": "t", "partitions": [partition]}]).encode())
    records = FetchResponse[12].decode(data).responses[0].partitions[0].records
    assert isinstance(records, memoryview)
    assert records.obj is data
    assert records.readonly
    parts = FetchResponse[12](responses=[{"topic": "t", "partitions": [partition]}]).encode_parts()
    assert any(part is partition["records"] for part in parts)


@pytest.mark.parametrize("version", range(14))
def test_records_in_several_buffers_are_written_like_joined_ones_and_not_copied(version: int) -> None:
    def request(records: Any) -> Any:
        partition = {"index": 3, "records": records}
        return ProduceRequest[version](topic_data=[{"partition_data": [partition, partition]}])

    records = Gathered(b"head", memoryview(b"r" * 100_000), bytearray(b"tail"))
    joined = request(bytes(records))
    assert request(records).encode() == joined.encode()
    assert request(records).frame(7, "me") == joined.frame(7, "me")
    assert interpreter.encode(ProduceRequest[version], request(records)) == joined.encode()
    assert request(records).to_json() == joined.to_json()
    parts = request(records).frame_parts(7, "me")
    assert [sum(part is buffer for part in parts) for buffer in records.buffers] == [2, 2, 2]
    assert "records=<100008 bytes>" in repr(request(records))
