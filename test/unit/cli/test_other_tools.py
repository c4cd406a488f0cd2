"""Words of other tools are answered with the words here."""

from __future__ import annotations

import shlex

import pytest

from kafka.cli import main


@pytest.mark.parametrize(
    ("line", "answer"),
    [
        ("consume --topic events", "TOPIC is an argument"),
        ("produce --topic=events", "TOPIC is an argument"),
        ("topics create -t events", "TOPIC is an argument"),
        ("groups lag --group billing", "GROUP is an argument"),
        ("consume events --from-beginning", "did you mean --from beginning?"),
        ("consume events --offset 3", "did you mean --from OFFSET?"),
        ("consume events --max-messages 3", "did you mean --max-records?"),
        ("produce events --broker-list b:1", "did you mean --bootstrap-server?"),
        ("topics list --json", "did you mean --format json?"),
        ("groups reset-offsets g --to-datetime 2026-01-31", "did you mean --to 2026-01-31T12:00Z?"),
        ("topics --list", "the verb stands without dashes: purekafka topics list"),
        ("topics --describe --topic events", "the verb stands without dashes: purekafka topics describe"),
        ("topics create events --config retention.ms=1", "a setting of a topic is --set NAME=VALUE"),
        ("consume events --follo", "did you mean --follow?"),
        ("consume events --tail 2", "did you mean --from -N?"),
        ("query events -k 1", "did you mean purekafka consume TOPIC --filter-key GLOB?"),
        ("metrics list", "did you mean purekafka configs list client-metrics?"),
        ("cluster partitions list", "did you mean purekafka topics describe"),
        ("consumer-groups --list", "did you mean purekafka groups?"),
        ("leader-election", "did you mean purekafka partitions elect?"),
        ("elect", "did you mean purekafka partitions elect?"),
        ("reassign", "did you mean purekafka partitions reassign-plan or"),
        ("users set ada", "did you mean set-password?"),
    ],
)
def test_the_answer_names_the_word_here(line: str, answer: str, capsys: pytest.CaptureFixture[str]) -> None:
    try:
        code = main(shlex.split(line))
    except SystemExit as ended:
        code = int(ended.code or 0)
    printed = capsys.readouterr()
    assert (code, printed.out) == (2, "")
    assert answer in printed.err


@pytest.mark.parametrize(
    "line",
    ["clicks", "tail events --offset 3", "topics create events --topik x", "consume events --wibble"],
)
def test_a_word_that_is_like_none_gets_no_advice(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(shlex.split(line))
    assert "did you mean" not in capsys.readouterr().err


#: Ten commands from habit of each tool, as fingers write them after the name of the program; and the command that runs,
#: or the words of the answer.
HABITS = {
    "kcat": [
        ("kcat -b b:1 -L", "kcat"),
        ("kcat -C -b b:1 -t events -o beginning -e", "kcat"),
        ("kcat -P -b b:1 -t events -K : -z lz4", "kcat"),
        ("kcat -Q -b b:1 -t events:0:-1", "kcat"),
        ("kcat -b b:1 -G billing events orders", "kcat"),
        ("-C -t events", "purekafka kcat -C"),
        ("-L", "purekafka kcat -L"),
        ("consume -t events", "TOPIC is an argument"),
        ("consume events -o beginning", "did you mean --from PLACE?"),
        ("consume events -J", "did you mean --format jsonl?"),
    ],
    "scripts": [
        ("kafka-topics.sh --list", "did you mean purekafka topics?"),
        ("topics --list", "purekafka topics list"),
        ("topics create --topic events --partitions 3", "TOPIC is an argument"),
        ("kafka-console-consumer --topic events", "did you mean purekafka consume?"),
        ("consume events --from-beginning", "--from beginning"),
        ("groups describe --group billing", "GROUP is an argument"),
        ("groups reset-offsets billing --to-earliest --execute", "--to beginning"),
        ("configs --alter --entity-type topics", "configs set KIND NAME SETTING=VALUE"),
        ("acls allow --allow-principal User:ada --operation Read --topic events", "acls allow"),
        ("kafka-reassign-partitions.sh --generate", "partitions reassign-plan"),
    ],
    "kaf": [
        ("topics", "help of topics"),
        ("topic describe events", "topics describe"),
        ("topic create events -p 3 -r 1", "topics create"),
        ("topic delete events", "topics delete"),
        ("topic lag events", "groups lag --topic TOPIC"),
        ("consume events -f", "expected one argument"),
        ("produce events -k key", "produce"),
        ("group describe billing", "groups describe"),
        ("group commit billing", "groups reset-offsets GROUP --to PLACE"),
        ("nodes", "brokers list"),
    ],
    "rpk": [
        ("topic list", "topics list"),
        ("topic create events -p 3 -r 3 -c retention.ms=1", "topics create"),
        ("topic produce events -k key", "produce"),
        ("topic consume events -n 5 -g billing", "consume"),
        ("topic add-partitions events -n 3", "topics alter TOPIC --partitions N"),
        ("topic alter-config events --set retention.ms=1", "topics alter TOPIC --set NAME=VALUE"),
        ("group seek billing --to start", "groups reset-offsets"),
        ("cluster health", "health"),
        ("cluster info", "cluster describe"),
        ("acl create --allow-principal ada --operation read --topic events", "acls allow"),
    ],
    "kcl": [
        ("metadata", "cluster describe"),
        ("topic create events", "topics create"),
        ("consume events -n 3", "consume"),
        ("group list", "groups list"),
        ("group seek billing --to end", "groups reset-offsets"),
        ("group offset-delete billing --topic events", "groups delete-offsets"),
        ("misc list-offsets events", "offsets list"),
        ("admin elect-leaders", "partitions"),
        ("acl list", "acls list"),
        ("config alter topic events", "configs set KIND NAME SETTING=VALUE"),
    ],
}


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("records decode __consumer_offsets", "did you mean purekafka consume __consumer_offsets --key-type offsets"),
        ("records events --place 3", "unknown verb 'events'"),  # the only verb is implied where it changes nothing
    ],
)
def test_the_only_verb_of_a_noun_is_not_implied_if_it_destroys(
    line: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit):
        main(shlex.split(line))
    assert expected in capsys.readouterr().err


@pytest.mark.parametrize(("tool", "line", "expected"), [(tool, *row) for tool, rows in HABITS.items() for row in rows])
def test_fifty_commands_from_habit_work_or_name_the_right_word(
    tool: str, line: str, expected: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is run: the verb that would run is seen here, with kcat's main in place of its own."""
    assert len(HABITS[tool]) == 10
    ran: list[str] = []
    monkeypatch.setattr("kafka.cli.kcat.main", lambda _words: ran.append("kcat") or 0)
    monkeypatch.setattr("kafka.cli._run", lambda _verb, arguments, _watchdog: ran.append(arguments.prog[10:]) or 0)
    try:
        code = main(shlex.split(line))
    except SystemExit as ended:
        code = int(ended.code or 0)
    printed = capsys.readouterr()
    if ran:
        assert (code, ran) == (0, [expected])
    elif expected.startswith("help of "):
        assert (code, printed.out[:24]) == (0, f"usage: purekafka {expected[8:]}  "[:24].rstrip() + " ")
    else:
        assert (code, expected in printed.err) == (2, True), printed.err
