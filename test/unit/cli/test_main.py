"""What holds for all commands: help, exit codes, how values are read."""

from __future__ import annotations

import io
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafka.cli import COMMANDS, main
from kafka.cli.arguments import SECRETS, UsageError, expand, pair, pairs
from kafka.cli.grammar import Noun, Verb, load
from kafka.cli.parser import PAGES, parse, shown_example


def test_without_a_command_the_help_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert max(map(len, shown.out.splitlines())) <= 80
    places = [shown.out.index(f"\n  {name} ") for name in COMMANDS]
    assert places == sorted(places)


@pytest.mark.parametrize("name", [name for name in COMMANDS if isinstance(load(name), Noun)])
def test_without_a_verb_the_help_of_the_noun_is_printed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([name]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"usage: purekafka {name} ")
    for verb in load(name).verbs:
        assert f"\n  {verb} " in shown


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["topcis"], "purekafka: unknown command 'topcis': did you mean topics?"),
        (["--frobnicate"], "purekafka: unknown option --frobnicate"),
        (["topics", "lsit"], "purekafka topics: unknown verb 'lsit': did you mean list?"),
        (
            ["topics", "list", "--formt", "json"],
            "purekafka topics list: unknown option --formt: did you mean --format?",
        ),
        (["topics", "create"], "purekafka topics create: the following arguments are required: TOPIC"),
        (["protocol", "frobnicate"], "purekafka protocol: unknown verb 'frobnicate'"),
        (["request"], "purekafka request: the following arguments are required: API"),
        (["-b", "x"], "purekafka: a command is missing"),
        (["consume", "a", "-n", "0"], "purekafka consume: argument -n/--max-records: 0 is below one"),
    ],
)
def test_c2_a_wrong_word_ends_with_2_and_names_the_nearest(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.splitlines()[0] == complaint
    assert shown.err.splitlines()[1].endswith('--help".')


def test_nouns_are_plural_or_singular_and_shared_options_stand_anywhere() -> None:
    verb, arguments = parse(["-b", "b1:9092", "topic", "--format", "json", "describe", "events", "--sandbox"])
    assert verb is load("topics").verbs["describe"]
    assert (arguments.bootstrap_servers, arguments.format, arguments.topics) == ("b1:9092", "json", ["events"])


def _verbs() -> list[Any]:
    found = []
    for name in COMMANDS:
        command = load(name)
        for verb in command.verbs.values() if isinstance(command, Noun) else [command]:
            title = name if isinstance(command, Verb) else f"{name} {verb.name}"
            found.append(pytest.param(title, verb, id=title))
    return found


@pytest.mark.parametrize(("title", "verb"), _verbs())
def test_c2_each_verb_and_argument_is_explained(title: str, verb: Verb, capsys: pytest.CaptureFixture[str]) -> None:
    """Help of fewer than three words, or none, says nothing."""
    with pytest.raises(SystemExit) as ended:
        main([*title.split(), "--help"])
    assert ended.value.code == 0
    shown = capsys.readouterr().out
    assert f"usage: purekafka {title}" in shown
    assert len(verb.examples) >= (1 if title.startswith("spark") else 2)
    for example in verb.examples:
        assert shown_example(example) in shown
    for argument in verb.arguments:
        said = argument.help.partition("(")[0].split()
        assert len(said) >= 3, f"{title} {argument.names}: {argument.help!r}"


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_is_described_in_one_way(name: str) -> None:
    assert load(name).summary == COMMANDS[name].summary


@pytest.mark.parametrize(("columns", "rows"), [(80, 50), (160, 50)])
def test_help_fits_a_screen_and_begins_with_an_example(
    columns: int, rows: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    pages = [f"help {name}" for name in PAGES]
    for title in [*pages, "--help", *COMMANDS, *(param.values[0] for param in _verbs())]:
        with suppress(SystemExit):
            main(title.split() if title in pages else [*title.split(), "--help"])
        lines = capsys.readouterr().out.splitlines()
        assert [line for line in lines if len(line) > columns] == [], title
        assert len(lines) <= rows, title
        if title not in {*pages, "--help"}:
            headings = [line for line in lines if line.endswith(":") and not line.startswith(" ")]
            assert headings[0] == (
                "Verbs:" if isinstance(load(title.split()[0]), Noun) and " " not in title else "Examples:"
            )


def test_a_long_example_is_one_command_of_a_shell() -> None:
    """What stands in several lines is the same words to a shell."""
    for param in _verbs():
        for example in param.values[1].examples:
            if "|" not in example:
                assert shlex.split(shown_example(example).replace("\\\n", "")) == shlex.split(example)


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
    with pytest.raises(UsageError, match="-X other: standard input is empty"):
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
    with pytest.raises(UsageError) as caught:
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
    sasl = ["--sasl", "PLAIN:ada:@env:ADA", "--sasl", f"scram-sha-256:bob:@{tmp_path / 'bob'}"]
    tls = ["--tls", f"cert={tmp_path / 'cert.pem'},password=@env:ADA"]
    _verb, arguments = parse(["broker", *sasl, *tls, "--sasl", "PLAIN:eve:x@y", "--sasl", "OAUTHBEARER"])
    broker._make(arguments)
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
        assert SECRETS in shown


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("topics create --topic events", "unknown option --topic: TOPIC is an argument, and stands without an option"),
        ("quotas set producer_byte_rate=1 --user ada --yes", "unknown option --yes: this command does not ask"),
        ("topics create -t events", "unknown option -t: TOPIC is an argument, and stands without an option"),
        (
            "topics describe --topic=events",
            "unknown option --topic=events: TOPIC is an argument, and stands without an option",
        ),
        (
            "groups describe --group billing",
            "unknown option --group: GROUP is an argument, and stands without an option",
        ),
        (
            "groups reset-offsets g --to-datetime 2026-01-01",
            "unknown option --to-datetime: did you mean --to 2026-01-31T12:00Z?",
        ),
        (
            "groups reset-offsets g --to-earliest --execute",
            "unknown option --to-earliest: did you mean --to beginning?",
        ),
        ("groups reset-offsets g --to end --execute", "unknown option --execute: did you mean --yes?"),
        ("groups lag --all-groups", "unknown option --all-groups: GROUP is an argument, and may be left out"),
        ("topics list --json", "unknown option --json: did you mean --format json?"),
        ("topics list --command-config f", "unknown option --command-config: did you mean --config?"),
        (
            "topics alter events --delete-config retention.ms",
            "unknown option --delete-config: did you mean --unset NAME?",
        ),
        ("consume events --from-beginning", "unknown option --from-beginning: did you mean --from beginning?"),
        ("consume events --offset 3", "unknown option --offset: did you mean --from OFFSET?"),
        ("topics list --formt json", "unknown option --formt: did you mean --format?"),
        ("topics list --frobnicate", "unknown option --frobnicate\n"),
        ("exporter --port 9308", "unknown option --port: did you mean --listen HOST:PORT?"),
        ("topics create x --config retention.ms=1", "a setting of a topic is --set NAME=VALUE"),
    ],
)
def test_a_word_of_another_tool_is_answered_with_the_word_here(
    line: str, hint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        code = main(line.split())
    except SystemExit as ended:
        code = ended.code
    assert (code, hint in capsys.readouterr().err) == (2, True)


@pytest.mark.parametrize(
    ("line", "code", "out", "err"),
    [
        ("protocol list >&-", 1, "", "purekafka protocol list: standard output: Bad file descriptor"),
        ("protocol show Nothing 2>&-", 2, "", ""),
        ("protocol decode MetadataResponse --version 0 - <&-", 1, "", "purekafka protocol decode: MetadataResponse"),
        ("kcat -V >&-", 1, "", "% ERROR: standard output: Bad file descriptor"),
    ],
)
def test_standard_streams_that_the_caller_has_closed(line: str, code: int, out: str, err: str) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -m kafka {line}', sys.executable],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, done.stdout) == (code, out)
    assert done.stderr.startswith(err)
    assert bool(done.stderr) == bool(err)


@pytest.mark.parametrize(
    "words",
    [
        ["consume", "events", "-p", "²"],
        ["consume", "events", "-p", "0-99999999999"],
        ["consume", "events", "--from", "²=3"],
        ["consume", "events", "--from", "0001-01-01"],
        ["produce", "events", "--timestamp", "²"],
        ["topics", "list", "--timeout", "1e11"],
        ["groups", "lag", "--watch", "--interval", "inf"],
        ["top", "--interval", "nan"],
        ["perf", "produce", "events", "--rate", "-1"],
        ["users", "set-password", "ada", "--iterations", "99999999999", "--password", "@env:PATH"],
        ["consume", "events", "--value-type", "avro", "--registry", "http://["],
        ["consume", "events", "--value-type", "avro", "--registry", "http://h:99999"],
        ["produce", "events", "--value", "x", "--key-type", "float", "--key", "1e300"],
        ["broker", "--topic", "events:²"],
        ["broker", "--registry", "99999", "--port", "0"],
    ],
    ids=" ".join,
)
def test_numbers_that_are_none_or_out_of_range_are_usage_errors(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    sandbox = [] if words[0] == "broker" else ["--sandbox"]
    try:
        code = main([*words, *sandbox])
    except SystemExit as ended:  # of argparse
        code = ended.code
    assert code == 2
    assert capsys.readouterr().err.startswith(f"purekafka {words[0]}")
