"""What `purekafka request` makes of its arguments, before it connects; the rest is in test/embedded."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafka.cli import main, request
from kafka.cli.request import _complete
from kafka.protocol.registry import APIS, api_named


def completed(api: str, version: int, fields: Any, timeout_ms: int = 30000) -> Any:
    return _complete(api_named(api).request[version], fields, timeout_ms)


def test_a_topic_gets_the_broker_s_defaults_for_partitions_and_replicas() -> None:
    topics = [{"name": "a"}, {"name": "b", "numPartitions": 3}, {"name": "c", "replication_factor": 2}]
    request = completed("CreateTopics", 7, {"topics": topics})
    found = [(topic.name, topic.num_partitions, topic.replication_factor) for topic in request.topics]
    assert found == [("a", -1, -1), ("b", 3, -1), ("c", -1, 2)]


def test_what_only_brokers_since_2_4_understand_is_not_sent_to_older_ones() -> None:
    (topic,) = completed("CreateTopics", 3, {"topics": [{"name": "a"}]}).topics
    assert (topic.num_partitions, topic.replication_factor) == (0, 0)


def test_every_request_that_has_a_timeout_gets_that_of_the_command() -> None:
    seen = set()
    for api in APIS.values():
        cls = api.request
        if "timeout_ms" not in cls._fields:
            continue
        seen.add(api.name)
        for version in range(api.min_version, api.max_version + 1):
            if version in cls._fields["timeout_ms"].versions:
                assert completed(api.name, version, {}, 12345).timeout_ms == 12345
                assert completed(api.name, version, {"timeoutMs": 0}, 12345).timeout_ms == 0
    assert seen >= {"CreateTopics", "DeleteTopics", "DeleteRecords", "CreatePartitions", "ElectLeaders", "Produce"}
    assert completed("ListOffsets", 9, {}).encode() == api_named("ListOffsets").request[9]().encode()


def test_a_timeout_beyond_what_the_message_can_carry_is_cut() -> None:
    assert completed("DeleteTopics", 6, {}, 10**12).timeout_ms == 2**31 - 1


def test_a_message_made_in_python_has_the_defaults_of_kafkas_definition() -> None:
    """The command fills in, not the message, whose bytes are those of Kafka's own converters."""
    assert api_named("DeleteTopics").request[6]().timeout_ms == 0
    assert api_named("CreateTopics").request[7](topics=[{"name": "a"}]).topics[0].replication_factor == 0


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["Metadatta"], "Kafka has no API named 'Metadatta': did you mean Metadata? See \"purekafka protocol list\""),
        (["Frobnicate"], "Kafka has no API named 'Frobnicate'. See \"purekafka protocol list\""),
        (["Metadata", "--version", "99"], "--version 99: MetadataRequest has versions 0-13, not 99"),
        (["Metadata", "{"], "this is not JSON: Expecting property name"),
        (["-X", "client_id", "Metadata"], "-X takes NAME=VALUE, not 'client_id'"),
        (["-X", "clinet.id=x", "Metadata"], "did you mean client.id"),
        (["-X", "sasl.plain.password=@env:NO_SUCH_VARIABLE", "Metadata"], "the environment has no variable NO_SUCH"),
    ],
)
def test_wrong_arguments_are_reported_in_one_line_with_2(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["request", "-b", "localhost:1", *arguments]) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert "Error 35" not in error
    assert len(error.splitlines()) == 1


@pytest.mark.parametrize(
    "order",
    [
        ["Metadata", "JSON", "--version", "1"],
        ["Metadata", "--version", "1", "JSON"],
        ["--version", "1", "Metadata", "JSON"],
    ],
)
def test_options_may_stand_anywhere(order: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, int, Any]] = []

    def record(arguments: Any, _connection: object) -> int:
        seen.append((arguments.api, arguments.version, json.loads(arguments.json)))
        return 0

    monkeypatch.setattr(request.COMMAND, "run", record)
    fields = {"topics": [{"name": "a b"}]}
    words = [json.dumps(fields) if word == "JSON" else word for word in order]
    assert main(["request", "-b", "localhost:1", *words]) == 0
    assert seen == [("Metadata", 1, fields)]
