"""Requests from the shell."""

from __future__ import annotations

import json

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
        (["-X", "client_id", "Metadata"], "-X takes name=value, not 'client_id'"),
        (["-X", "clinet.id=x", "Metadata"], "did you mean 'client.id'"),
    ],
)
def test_mistakes_are_told_in_one_line(words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:
        assert main(["request", "-b", broker.bootstrap_servers, *words]) == 1
    error = capsys.readouterr().err
    assert complaint in error
    assert len(error.splitlines()) == 1
