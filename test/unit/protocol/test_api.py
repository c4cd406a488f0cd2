"""Framing, headers and the registry."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from kafka.errors import IllegalArgumentError, KafkaProtocolError, UnsupportedVersionError
from kafka.protocol.admin import ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.api import Request
from kafka.protocol.headers import RequestHeader, ResponseHeader
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.produce import ProduceRequest
from kafka.protocol.registry import APIS, ApiKey, api_named, request_class
from kafka.protocol.replication import ControlledShutdownRequest

ROOT = Path(__file__).parents[3]


def test_a_request_is_framed_and_read_as_a_broker_reads_it() -> None:
    for request in (MetadataRequest[1](["events"]), MetadataRequest[12]([{"name": "events"}])):
        frame = request.frame(7, "me")
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        header, received = Request.unframe(frame[4:])
        assert (header.correlation_id, header.client_id, header.request_api_key) == (7, "me", 3)
        assert received == request
        assert type(received) is type(request)
        assert b"".join(request.frame_parts(7, "me")) == frame


def test_a_client_without_a_name_sends_null() -> None:
    header, _ = Request.unframe(MetadataRequest[1]([]).frame(1)[4:])
    assert header.client_id is None


def test_a_response_is_framed_and_read_with_its_correlation_id() -> None:
    for version in (0, 12):
        response = MetadataResponse[version](brokers=[{"node_id": 1, "host": "a", "port": 9092}])
        assert MetadataResponse[version].unframe(response.frame(9)[4:]) == (9, response)


def test_a_flexible_response_header_may_have_tags() -> None:
    body = MetadataResponse[12]().encode()
    frame = ResponseHeader[1](5, unknown_tags={3: b"x"}).encode() + body
    assert MetadataResponse[12].unframe(frame) == (5, MetadataResponse[12]())


def test_header_versions_follow_kafka_with_its_two_exceptions() -> None:
    assert MetadataRequest[8].header_version() == 1
    assert MetadataRequest[9].header_version() == 2
    assert ControlledShutdownRequest[0].header_version() == 0
    assert ControlledShutdownRequest[1].header_version() == 1
    assert ApiVersionsRequest[3].header_version() == 2
    assert ApiVersionsResponse[3].header_version() == 0
    assert MetadataResponse[9].header_version() == 1


def test_the_oldest_request_has_no_client_name() -> None:
    header, request = Request.unframe(ControlledShutdownRequest[0](5).frame(1, "me")[4:])
    assert type(header) is RequestHeader[0]
    assert request == ControlledShutdownRequest[0](5)


@pytest.mark.parametrize("frame", [b"", b"\0\3", b"\0\3\0\1\0\0\0\7", b"\0\3\0\1\0\0\0\7\0\x09abc"])
def test_a_torn_request_frame_is_an_error(frame: bytes) -> None:
    with pytest.raises(KafkaProtocolError):
        Request.unframe(frame)


def test_an_unknown_api_or_version_is_distinguished_from_garbage() -> None:
    with pytest.raises(UnsupportedVersionError, match="no API with key 9999"):
        Request.unframe(bytes.fromhex("270f 0000 00000001 ffff"))
    with pytest.raises(UnsupportedVersionError, match="MetadataRequest has versions 0-13, not 99"):
        Request.unframe(bytes.fromhex("0003 0063 00000001 ffff"))


@pytest.mark.parametrize("frame", [b"", b"\0\0\0", b"\0\0\0\1", b"\0\0\0\1\xff\xff"])
def test_a_torn_response_frame_is_an_error(frame: bytes) -> None:
    with pytest.raises(KafkaProtocolError, match="MetadataResponse"):
        MetadataResponse[12].unframe(frame)


def test_only_a_produce_request_without_acks_expects_nothing() -> None:
    assert not ProduceRequest[3](acks=0).expect_response()
    assert ProduceRequest[3](acks=1).expect_response()
    assert MetadataRequest[0]().expect_response()


def test_the_registry_knows_all_apis() -> None:
    assert len(APIS) >= 93
    assert ApiKey.Fetch == 1
    assert {key.name: key.value for key in ApiKey} == {api.name: api.key for api in APIS.values()}
    assert api_named("FetchRequest") is api_named("fetch") is APIS[1]
    assert request_class(3) is MetadataRequest
    assert (APIS[22].max_version, APIS[78].min_version) == (5, 1), "unstable versions are never chosen"
    for api in APIS.values():
        assert api.request.API_KEY == api.response.API_KEY == api.key
        assert api.request.RESPONSE_TYPE is api.response
        assert api.min_version in api.request._versions


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("Fetsh", "Fetch"),
        ("Metadatta", "Metadata"),
        ("MetadattaRequest", "Metadata"),
        ("FetchReqest", "Fetch"),
        ("deletetopics_response", "DeleteTopics"),
    ],
)
def test_a_misspelled_api_is_refused_with_the_nearest_name(name: str, meant: str) -> None:
    with pytest.raises(IllegalArgumentError) as caught:
        api_named(name)
    assert str(caught.value) == f"Kafka has no API named {name!r}: did you mean {meant}?"


def test_a_name_that_resembles_no_api_is_refused_without_a_guess() -> None:
    with pytest.raises(IllegalArgumentError, match=r"^Kafka has no API named 'Frobnicate'$"):
        api_named("Frobnicate")


def test_the_docs_list_every_request_with_its_module() -> None:
    tool = runpy.run_path(str(ROOT / "tools" / "generate_api_docs.py"))
    assert tool["OUTPUT"].read_text(encoding="utf-8") == tool["render"](), "run tools/generate_api_docs.py"
    for name, module in re.findall(r"``(\w+Request)`` +``([a-z_.]+)``", tool["render"]()):
        assert hasattr(import_module(module), name)
        assert hasattr(import_module(module), name.removesuffix("Request") + "Response")


def test_importing_kafka_is_quick_and_compiles_nothing() -> None:
    program = "import sys, kafka; print(len([m for m in sys.modules if m.startswith('kafka')]), 'ssl' in sys.modules)"
    seen = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True).stdout.split()
    assert int(seen[0]) < 10
    assert seen[1] == "False"
