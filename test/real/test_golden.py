"""Java's message classes answer through one pipe, and their refusals come back as errors."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from .conftest import need_kafka
from .golden import Golden, GoldenError, Read

SUBSCRIPTION = {"topics": ["a", "b"], "userData": None, "ownedPartitions": []}
SUBSCRIPTION_V1 = bytes.fromhex("00000002 000161 000162 ffffffff 00000000")


@pytest.fixture(scope="module", params=["3.9.1", "4.3.1"])
def java(request: pytest.FixtureRequest) -> Iterator[Golden]:
    with Golden(need_kafka(request.param)) as golden:
        yield golden


def test_json_becomes_bytes_and_bytes_become_json(java: Golden) -> None:
    assert java.write("ConsumerProtocolSubscription", 1, SUBSCRIPTION) == SUBSCRIPTION_V1
    assert java.read("ConsumerProtocolSubscription", 1, SUBSCRIPTION_V1) == Read(SUBSCRIPTION, SUBSCRIPTION_V1, 0)


def test_requests_headers_and_group_metadata_are_found_by_name(java: Golden) -> None:
    header = {"requestApiKey": 5, "requestApiVersion": 2, "correlationId": 7, "clientId": "x"}
    assert java.write("RequestHeader", 1, header) == bytes.fromhex("0005 0002 00000007 000178")
    commit = {"offset": 5, "leaderEpoch": 2, "metadata": "x", "commitTimestamp": 7}
    assert len(java.write("OffsetCommitValue", 3, commit)) == 23
    assert java.versions("OffsetCommitValue") == (0, 4)
    assert java.versions("MetadataRequest")[1] == 13 if java.version > "4" else 12


def test_bytes_left_over_are_counted(java: Golden) -> None:
    assert java.read("ConsumerProtocolSubscription", 1, SUBSCRIPTION_V1 + b"xyz").rest == 3


def test_records_pass_as_bytes(java: Golden) -> None:
    partition = {"index": 0, "records": "AAEC"}
    request = {"transactionalId": None, "acks": 1, "timeoutMs": 5}
    data = java.write("ProduceRequest", 3, {**request, "topicData": [{"name": "t", "partitionData": [partition]}]})
    seen = java.read("ProduceRequest", 3, data)
    assert seen.data == data
    assert seen.json["topicData"][0]["partitionData"] == [{"index": 0, "recordsSizeInBytes": 3}]


def test_an_error_takes_the_place_of_its_result_only(java: Golden) -> None:
    good = ("ConsumerProtocolSubscription", 1, SUBSCRIPTION_V1)
    seen = java.read_many([good, ("NoSuchMessage", 0, b""), ("MetadataResponse", 4, b"\0\0"), good])
    assert [type(one) for one in seen] == [Read, GoldenError, GoldenError, Read]
    with pytest.raises(GoldenError, match="mandatory in version 4"):
        java.write("FetchRequest", 4, {})


def test_a_large_batch_does_not_block_the_pipe(java: Golden) -> None:
    message = {"topics": ["t" * 30_000], "userData": None, "ownedPartitions": []}
    encoded = java.write_many([("ConsumerProtocolSubscription", 1, message)] * 300)
    assert {len(one) for one in encoded if isinstance(one, bytes)} == {30_014}


def test_facts_about_apis_and_fields(java: Golden) -> None:
    apis = {api["name"]: api for api in java.apis()}
    versions = apis["ApiVersions"]
    assert versions["key"] == 18
    assert set(versions["response_header_versions"]) == {0}  # even where its request's header is flexible
    fetch = java.schema("FetchRequest", 12)
    assert {"name": "cluster_id", "type": "COMPACT_NULLABLE_STRING", "nullable": True, "tag": 0} in fetch
    (topics,) = [field for field in fetch if field["name"] == "topics"]
    assert [field["name"] for field in topics["fields"]] == ["topic", "partitions"]
