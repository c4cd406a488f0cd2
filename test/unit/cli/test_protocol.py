"""`purekafka protocol`: what messages look like, and what bytes mean."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stderr, redirect_stdout

import pytest

from kafka.cli import main
from kafka.protocol.metadata import MetadataResponse


def run(*words: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(words)
    return code, out.getvalue(), err.getvalue()


def test_list_shows_every_api() -> None:
    code, out, _ = run("protocol", "list")
    assert code == 0
    assert len(out.splitlines()) == 94
    assert "  1  Fetch                            0-18      12+       broker controller" in out


def test_show_prints_fields_in_wire_order() -> None:
    code, out, _ = run("protocol", "show", "MetadataRequest", "--version", "1")
    assert code == 0
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [
        ["topics", "[MetadataRequestTopic]"],
        ["name", "string"],
    ]
    assert "versions 8-10" in run("protocol", "show", "metadata")[1]
    assert run("protocol", "show", "ConsumerProtocolSubscription")[0] == 0


def test_decode_and_encode_are_inverse() -> None:
    code, out, _ = run("protocol", "encode", "MetadataRequest", "--version", "1", '{"topics": [{"name": "x"}]}')
    assert (code, out.strip()) == (0, "00000001000178")
    code, out, _ = run("protocol", "decode", "MetadataRequest", "--version", "1", "00000001 000178")
    assert json.loads(out) == {"topics": [{"name": "x"}]}
    frame = MetadataResponse[1]().frame(5)[4:].hex()
    code, out, err = run("protocol", "decode", "MetadataResponse", "--version", "1", "--framed", frame)
    assert (code, err) == (0, "correlation id 5\n")


@pytest.mark.parametrize(
    "words",
    [
        ["--version", "0", "00000000", "00000000"],
        ["00000000", "00000000", "--version", "0"],
        ["--version", "0", "00000000 00000000"],
        ["--version", "0", "0x0000000000000000"],
        ["--version", "0", "00:00:00:00:00:00:00:00"],
    ],
)
def test_bytes_may_be_in_several_words(words: list[str]) -> None:
    code, out, _ = run("protocol", "decode", "MetadataResponse", *words)
    assert (code, json.loads(out)) == (0, {"brokers": [], "topics": []})


def test_bytes_and_fields_may_come_from_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("00000000\n00000000\n"))
    code, out, _ = run("protocol", "decode", "MetadataResponse", "--version", "0", "-")
    assert (code, json.loads(out)) == (0, {"brokers": [], "topics": []})
    monkeypatch.setattr("sys.stdin", io.StringIO('{"topics": []}'))
    assert run("protocol", "encode", "MetadataRequest", "--version", "1", "-")[:2] == (0, "00000000\n")


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("show", "Fetsh"), "Kafka has no API named 'Fetsh': did you mean Fetch?"),
        (("show", "Frobnicate"), "Kafka has no API named 'Frobnicate'. See \"purekafka protocol list\""),
        (("show", "RequestHeadr"), "Kafka has no message named 'RequestHeadr': did you mean RequestHeader?"),
        (("show", "Fetch", "--version", "99"), "--version 99: FetchRequest has versions 0-18, not 99"),
        (("decode", "Metadata", "--version", "1", "00"), "write MetadataRequest or MetadataResponse"),
        (("decode", "MetadataRequest", "--version", "1", "0x0g"), "this is not hexadecimal"),
        (("encode", "MetadataRequest", "--version", "1", "{"), "this is not JSON"),
        (("encode", "MetadataRequest", "--version", "1", "[]"), "is made of an object, not of []"),
        (("encode", "MetadataRequest", "--version", "1", '{"topcis": []}'), "has no field 'topcis'; it has topics"),
        (("encode", "FetchRequest", "--version", "13", '{"topics": [{"topicId": "?"}]}'), "is no Uuid"),
    ],
)
def test_wrong_arguments_are_reported_in_one_line_with_2(words: tuple[str, ...], complaint: str) -> None:
    code, _, err = run("protocol", *words)
    assert code == 2
    assert complaint in err
    assert "Error 35" not in err
    assert len(err.splitlines()) == 1


def test_bytes_that_are_not_the_message_end_with_1() -> None:
    code, _, err = run("protocol", "decode", "MetadataRequest", "--version", "1", "0000")
    assert code == 1
    assert "needs 4 bytes, only 2 are left" in err
    assert len(err.splitlines()) == 1
