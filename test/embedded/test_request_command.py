"""Requests from the shell."""

from __future__ import annotations

import io
import json
import socket
import subprocess
import sys
import time
from pathlib import Path

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
        (["Metadata", '{"topcis": []}'], "has no field 'topcis'"),
        (["Metadata", '{"topics": "events"}'], "MetadataRequest[13].topics takes a list, not 'events'"),
        (["CreateTopics", '{"topics": [3]}'], "CreateTopicsRequest[7].topics"),
        (["DeleteTopics", '{"topics": [{"topicId": null}]}'], "DeleteTopicsRequest[6].topics[0].topic_id takes"),
    ],
)
def test_fields_that_the_request_does_not_have_are_reported_in_one_line_with_2(
    words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with Broker() as broker:
        assert main(["request", "-b", broker.bootstrap_servers, *words]) == 2
    error = capsys.readouterr().err
    assert complaint in error
    assert len(error.splitlines()) == 1


def test_a_version_that_the_broker_does_not_support_ends_with_1(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker(as_version="2.8") as broker:
        assert main(["request", "-b", broker.bootstrap_servers, "Metadata", "--version", "13"]) == 1
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_the_timeout_holds_while_connecting(capsys: pytest.CaptureFixture[str]) -> None:
    """The server accepts and then is silent: nothing but the timeout ends that, 30 s later if none was given."""
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        servers = f"127.0.0.1:{silent.getsockname()[1]}"
        begun = time.monotonic()
        assert main(["request", "-b", servers, "--timeout", "0.5", "Metadata"]) == 1
        assert time.monotonic() - begun < 15
    assert servers in capsys.readouterr().err


def test_the_timeout_is_one_for_connecting_and_the_request(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:
        broker.delay("Metadata", 60)
        begun = time.monotonic()
        assert main(["request", "-b", broker.bootstrap_servers, "--timeout", "0.5", "Metadata"]) == 1
        assert time.monotonic() - begun < 15
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_a_topic_is_created_and_deleted_by_its_name_alone(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker(nodes=3, configs={"num.partitions": 2, "default.replication.factor": 3}) as broker:
        words = ["request", "-b", broker.bootstrap_servers]
        assert main([*words, "CreateTopics", '{"topics": [{"name": "new"}]}']) == 0
        (created,) = json.loads(capsys.readouterr().out)["topics"]
        assert (created["numPartitions"], created["replicationFactor"]) == (2, 3)
        assert main([*words, "DeleteTopics", '{"topics": [{"name": "new"}]}', "--timeout", "7"]) == 0
        (sent,) = [seen.request for seen in broker.requests if type(seen.request).__name__ == "DeleteTopicsRequest"]
        assert sent.timeout_ms == 7000


@pytest.mark.parametrize("source", ["environment", "file", "standard input"])
def test_a_password_need_not_be_on_the_command_line(
    source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "secret").write_text("hush\n", encoding="utf-8")
    monkeypatch.setenv("ADAS_PASSWORD", "hush")
    monkeypatch.setattr("sys.stdin", io.StringIO("hush\n"))
    value = {"environment": "@env:ADAS_PASSWORD", "file": f"@{tmp_path / 'secret'}", "standard input": "@-"}[source]
    with Broker(sasl=[("PLAIN", "ada", "hush")]) as broker:
        options = ["security.protocol=SASL_PLAINTEXT", "sasl.mechanism=PLAIN", "sasl.plain.username=ada"]
        options.append(f"sasl.plain.password={value}")
        words = [word for option in options for word in ("-X", option)]
        assert main(["request", "-b", broker.bootstrap_servers, *words, "DescribeCluster"]) == 0
    assert json.loads(capsys.readouterr().out)["errorCode"] == 0


def test_an_option_that_does_not_pass_is_logged_once(capfd: pytest.CaptureFixture[str]) -> None:
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


def test_error_codes_in_the_reply_are_named_and_end_with_3(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:
        assert main(["request", "-b", broker.bootstrap_servers, "Metadata", '{"topics": [{"name": "a b"}]}']) == 3
    assert capsys.readouterr().err == "topics[0].errorCode: 17 is InvalidTopicError\n"


def test_a_request_without_a_reply_is_not_a_failure(capsys: pytest.CaptureFixture[str]) -> None:
    with Broker() as broker:
        words = ["request", "-b", broker.bootstrap_servers, "--node", "1", "Produce"]
        assert main([*words, '{"acks": 0, "timeoutMs": 1000, "topicData": []}']) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert "do not reply" in said.err
