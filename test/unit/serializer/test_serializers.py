"""Serializers are recognised once, in every form, and errors of the user's code come out as they are."""

import json
from functools import partial

import pytest

from kafka._signature import arity
from kafka.errors import KafkaConfigurationError
from kafka.serializer import (
    DefaultSerializer,
    Deserializer,
    DeserializeWrapper,
    JsonSerializer,
    Serializer,
    SerializeWrapper,
    StringSerializer,
    bind_deserializer,
    bind_serializer,
)


class Form3(Serializer):
    def serialize(self, topic, headers, data):
        return f"{topic}/{len(headers)}/{data}".encode()


class Form2(Serializer):
    def serialize(self, topic, value):
        return f"{topic}/{value}".encode()


class Form2WithExtra:
    def serialize(self, topic, value, headers=None):
        return f"{topic}/{value}/{headers}".encode()


class Form1:
    def serialize(self, value):
        return f"{value}".encode()


class Anything:
    def serialize(self, *args):
        return repr(args).encode()


@pytest.mark.parametrize(
    ("given", "plain", "expected"),
    [
        (Form3(), False, b"t/1/v"),
        (Form2(), False, b"t/v"),
        (Form2WithExtra(), False, b"t/v/None"),
        (Form1(), True, b"v"),
        (Anything(), False, b"('t', [('h', b'1')], 'v')"),
        (str.encode, True, b"v"),
        (lambda v: v.encode(), True, b"v"),
        (partial(str.encode, encoding="ascii"), True, b"v"),
        (DefaultSerializer(), False, b"v"),
        (JsonSerializer(), False, b'"v"'),
        (SerializeWrapper(str.encode), False, b"v"),
        (SerializeWrapper(None), False, "v"),
    ],
)
def test_every_form_is_called_as_it_wants(given, plain, expected):
    bound = bind_serializer(given)
    assert bound.plain is plain
    assert bound("t", [("h", b"1")], "v") == expected


def test_deserializers_are_recognised_alike():
    class Form2Back(Deserializer):
        def deserialize(self, topic, bytes_):
            return topic, bytes_

    assert bind_deserializer(Form2Back())("t", [], b"v") == ("t", b"v")
    assert bind_deserializer(json.loads).call(b"[1]") == [1]
    assert bind_deserializer(DeserializeWrapper(None))("t", [], b"v") == b"v"
    assert bind_deserializer(JsonSerializer())("t", [], b"null") is None


def test_none_stays_none_so_that_the_hot_path_can_skip_it():
    assert bind_serializer(None) is None
    assert bind_deserializer(None) is None


def test_a_type_error_of_the_users_code_comes_out_unchanged():
    class Broken:
        def serialize(self, topic, headers, data):
            return len(5)

    with pytest.raises(TypeError, match="has no len"):
        bind_serializer(Broken())("t", [], "v")
    with pytest.raises(TypeError, match="has no len"):
        bind_serializer(lambda v: len(5)).call("v")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (JsonSerializer, "key_serializer is the class JsonSerializer; give an instance"),
        (42, "key_serializer must be a callable or an object with a method serialize"),
        (lambda a, b: b, "key_serializer must be callable with one argument"),
        (lambda *, a: a, "key_serializer must be callable with one argument"),
        (lambda: b"", "key_serializer must be callable with one argument"),
    ],
)
def test_what_cannot_be_called_is_refused_at_once(given, message):
    with pytest.raises(KafkaConfigurationError, match=message) as caught:
        bind_serializer(given, "key_serializer")
    assert caught.value.option == "key_serializer"


def test_a_method_with_too_many_arguments_is_refused():
    class Four:
        def serialize(self, a, b, c, d): ...

    with pytest.raises(KafkaConfigurationError, match="needs 4 arguments"):
        bind_serializer(Four())


def test_close_is_kept_for_objects_that_have_one():
    closed = []

    class Closing(Form3):
        def close(self):
            closed.append(True)

    bind_serializer(Closing()).close()
    assert closed == [True]
    assert bind_serializer(str.encode).close is None


def test_an_abstract_serializer_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        Serializer()
    with pytest.raises(TypeError, match="abstract"):
        Deserializer()


@pytest.mark.parametrize("cls", [DefaultSerializer, StringSerializer])
def test_text_and_bytes_and_null(cls):
    s = cls("latin-1")
    assert s.serialize("t", [], "é") == b"\xe9"
    assert s.deserialize("t", [], b"\xe9") == "é"
    assert s.serialize("t", [], bytearray(b"x")) == b"x"
    assert s.serialize("t", [], memoryview(b"x")) == b"x"
    assert s.serialize("t", [], None) is None
    assert s.deserialize("t", [], None) is None
    with pytest.raises(TypeError, match=r"not int; use JsonSerializer"):
        s.serialize("t", [], 5)


def test_json_round_trip_keeps_null_a_tombstone():
    s = JsonSerializer()
    assert s.serialize("t", [], None) is None
    assert s.deserialize("t", [], s.serialize("t", [], {"a": [1, "é"]})) == {"a": [1, "é"]}


def test_arity_of_what_python_cannot_inspect_is_unknown():
    assert arity(min) is None or arity(min).takes(1)
    assert arity(lambda *a, k: 0).takes(3) is False
