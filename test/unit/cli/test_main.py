"""What holds for all commands: help, exit codes, how values are read."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka.cli import COMMANDS, main, words
from kafka.cli.words import WrongWord, expand, pair, pairs


def test_without_a_command_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    places = [shown.out.index(f"\n    {name} ") for name in COMMANDS]
    assert places == sorted(places)
    assert list(COMMANDS)[:2] == ["demo", "broker"], "what a newcomer needs comes first"


@pytest.mark.parametrize(("command", "action"), [("protocol", "decode"), ("spark", "lag")])
def test_without_an_action_the_help_of_the_command_is_printed(
    command: str, action: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([command]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: purekafka {command} ")
    assert f"\n    {action} " in shown


@pytest.mark.parametrize("arguments", [["frobnicate"], ["--frobnicate"], ["protocol", "frobnicate"], ["request"]])
def test_an_unknown_command_or_option_ends_with_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert capsys.readouterr().err.startswith("usage: purekafka")


@pytest.mark.parametrize("command", COMMANDS)
def test_each_argument_is_explained(command: str) -> None:
    """Help of fewer than three words, or none, says nothing."""
    import argparse
    from importlib import import_module

    def parsers(parser: argparse.ArgumentParser) -> Any:
        yield parser
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for inner in action.choices.values():
                    yield from parsers(inner)

    parser = argparse.ArgumentParser(prog=command)
    import_module(f"kafka.cli.{command}").add_arguments(parser)
    for each in parsers(parser):
        for action in each._actions:
            if not isinstance(action, argparse._SubParsersAction | argparse._HelpAction):
                said = (action.help or "").partition("(")[0].split()
                assert len(said) >= 3, f"{each.prog} {action.option_strings or action.dest}: {action.help!r}"


# Values that are not on the command line.


def test_a_value_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", "hush=hush")
    assert pair("sasl.plain.password=@env:KAFKA_PASSWORD", "-X") == ("sasl.plain.password", "hush=hush")


def test_a_value_comes_from_a_file_without_the_line_end(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    for end in ("", "\n", "\r\n"):
        secret.write_bytes(f" hü sh{end}".encode())
        assert expand(f"@{secret}", "-X") == " hü sh"
    secret.write_bytes(b"two\n\n")
    assert expand(f"@{secret}", "-X") == "two\n"


def test_a_value_comes_from_standard_input_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("hush\n"))
    assert pairs(["sasl.password=@-", "client.id=a"], "-X") == {"sasl.password": "hush", "client.id": "a"}
    with pytest.raises(WrongWord, match="-X other: standard input is empty"):
        pair("other=@-", "-X")


def test_a_value_that_begins_with_an_at_sign_can_be_written() -> None:
    assert expand("@@env:HOME", "-X") == "@env:HOME"
    assert expand("a@env:HOME", "-X") == "a@env:HOME"
    assert expand("", "-X") == ""


@pytest.mark.parametrize(
    ("value", "complaint"),
    [
        ("@env:NO_SUCH_VARIABLE", "-X password: the environment has no variable NO_SUCH_VARIABLE"),
        ("@/no/such/file", "-X password: cannot read /no/such/file: No such file or directory; a value that begins"),
        ("@", "-X password: @ needs env:NAME, a file or - behind it"),
        ("@{empty}", "-X password: {empty} is empty"),
        ("@{binary}", "-X password: cannot read {binary}: it is not text in UTF-8"),
    ],
)
def test_a_value_that_cannot_be_had_is_an_error_that_names_the_option(
    value: str, complaint: str, tmp_path: Path
) -> None:
    files = {"empty": tmp_path / "empty", "binary": tmp_path / "binary"}
    files["empty"].touch()
    files["binary"].write_bytes(b"\xff\xfe")
    with pytest.raises(WrongWord) as caught:
        pair(f"password={value.format(**files)}", "-X")
    assert complaint.format(**files) in str(caught.value)


def test_secrets_of_the_broker_need_not_be_on_the_command_line(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from kafka.cli import broker

    made: list[dict[str, Any]] = []
    loaded: list[tuple[Any, ...]] = []
    monkeypatch.setattr(broker, "Broker", lambda **options: made.append(options))
    context = SimpleNamespace(load_cert_chain=lambda *given: loaded.append(given))
    monkeypatch.setattr("ssl.SSLContext", lambda _protocol: context)
    monkeypatch.setenv("ADA", "hush:hush")
    (tmp_path / "bob").write_text("psst\n", encoding="utf-8")
    (tmp_path / "cert.pem").touch()
    import argparse

    parser = argparse.ArgumentParser()
    broker.add_arguments(parser)
    sasl = ["--sasl", "PLAIN:ada:@env:ADA", "--sasl", f"scram-sha-256:bob:@{tmp_path / 'bob'}"]
    tls = ["--tls", f"cert={tmp_path / 'cert.pem'},password=@env:ADA"]
    broker._make(parser.parse_args([*sasl, *tls, "--sasl", "PLAIN:eve:x@y", "--sasl", "OAUTHBEARER"]))
    assert made[0]["sasl"] == [
        ("PLAIN", "ada", "hush:hush"),
        ("SCRAM-SHA-256", "bob", "psst"),
        ("PLAIN", "eve", "x@y"),
        ("OAUTHBEARER", "", ""),
    ]
    assert loaded == [(str(tmp_path / "cert.pem"), None, "hush:hush")]


def test_the_help_of_commands_that_take_secrets_says_how(capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["broker"], ["request"], ["spark", "copy"]):
        with pytest.raises(SystemExit):
            main([*command, "--help"])
        shown = " ".join(capsys.readouterr().out.split())
        assert words.VALUES in shown
