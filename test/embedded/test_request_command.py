"""Requests from the shell."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from kafka.broker import Broker
from kafka.cli import main


def test_the_reply_is_printed_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker(topics={"events": 2}) as broker:
        words = ["request", "-b", broker.bootstrap_servers, "metadata"]
        assert main([*words, '{"topics": [{"name": "events"}]}']) == 0
        newest = json.loads(capsys.readouterr().out)
        assert main([*words, "--version", "1", '{"topics": [{"name": "events"}]}']) == 0
        old = json.loads(capsys.readouterr().out)
    assert len(newest["topics"][0]["partitions"]) == len(old["topics"][0]["partitions"]) == 2
    assert "clusterId" in newest
    assert "clusterId" not in old


def test_a_request_goes_to_whom_it_is_for(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker(nodes=3) as broker:
        words = ["request", "-b", broker.bootstrap_servers, "-X", "client.id=shell"]
        assert (
            main([*words, "CreateTopics", '{"topics": [{"name": "new", "numPartitions": 1, "replicationFactor": 1}]}'])
            == 0
        )
        assert json.loads(capsys.readouterr().out)["topics"][0]["errorCode"] == 0
        assert main([*words, "--node", "2", "DescribeCluster"]) == 0
        assert len(json.loads(capsys.readouterr().out)["brokers"]) == 3
        assert any(seen.client_id == "shell" for seen in broker.requests)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["Metadata", "{"], "the fields are no JSON"),
        (["Metadata", '{"topcis": []}'], "has no field 'topcis'"),
        (["Metdata"], "did you mean Metadata?"),
        (["Metadata", '{"topics": "events"}'], "MetadataRequest[13].topics takes a list, not 'events'"),
        (["-X", "client_id", "Metadata"], "-X takes NAME=VALUE, not 'client_id'"),
        (["-X", "clinet.id=x", "Metadata"], "did you mean 'client.id'"),
    ],
)
def test_mistakes_are_told_in_one_line(words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:
        assert main(["request", "-b", broker.bootstrap_servers, *words]) in {1, 2}
    error = capsys.readouterr().err
    assert complaint in error
    assert len(error.splitlines()) == 1


def test_what_does_not_pass_is_told_once(capfd: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:
        words = ["request", "-b", broker.bootstrap_servers, "-X", "security.protocol=SSL", "ApiVersions"]
        assert subprocess.run([sys.executable, "-m", "kafka", *words], check=False, timeout=60).returncode == 1
    assert len(capfd.readouterr().err.splitlines()) == 1


def test_a_time_that_is_none_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["request", "-b", "localhost:1", "--timeout", "0", "Metadata"])
    assert ended.value.code == 2
    assert "0 is not above zero" in capsys.readouterr().err


def test_a_first_look_needs_no_fields(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker(topics={"events": 2}) as broker:
        words = ["request", "-b", broker.bootstrap_servers]
        for version in ([], ["--version", "0"], ["--version", "1"]):
            assert main([*words, "Metadata", *version]) == 0
            assert [topic["name"] for topic in json.loads(capsys.readouterr().out)["topics"]] == ["events"]
        assert main([*words, "Metadata", '{"topics": []}']) == 0
        assert json.loads(capsys.readouterr().out)["topics"] == []
        assert main([*words, "ApiVersions"]) == 0
        assert json.loads(capsys.readouterr().out)["errorCode"] == 0


def test_error_codes_are_told_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:
        assert main(["request", "-b", broker.bootstrap_servers, "Metadata", '{"topics": [{"name": "a b"}]}']) == 0
    assert capsys.readouterr().err == "topics[0].errorCode: 17 is InvalidTopicError\n"


def test_a_request_without_a_reply_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:
        words = ["request", "-b", broker.bootstrap_servers, "--node", "1", "Produce"]
        assert main([*words, '{"acks": 0, "timeoutMs": 1000, "topicData": []}']) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "do not reply" in said.err
