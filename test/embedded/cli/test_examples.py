"""Every example of the help runs as it is printed."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka.cli.grammar import COMMANDS, Noun, load

from .shell import run

# Commands that run until they are stopped, or need Spark; they have tests of their own.
ELSEWHERE = ("purekafka broker ", "purekafka demo", "purekafka spark", "purekafka logs")
# Without --sandbox an example needs a cluster that has what it is about.
NEEDS_A_CLUSTER = (" -b localhost:9092", " -b b1:9093")
# Examples that end with another exit code than 0, because they wait until a time is over.
CODES = {
    "purekafka partitions move-dir events --broker 1 --directory /data/2 --dry-run --sandbox": 0,
    "purekafka transactions describe shop --sandbox": 1,
    "purekafka transaction describe shop --sandbox -f json": 1,
    "purekafka tail orders --sandbox --timeout 1 -K ' = '": 124,
}
# What must exist for examples with files.
FILES = {
    "plan.json": '{"version": 1, "partitions": [{"topic": "events", "partition": 0, "replicas": [1]}]}',
    "records.jsonl": '{"value": "a"}\n',
    "users.csv": "id,name\n7,Ada\n",
    "client.properties": "bootstrap.servers=b1:9092\n",
    "kcat.conf": "bootstrap.servers=b1:9092\nsasl.mechanisms=PLAIN\n",
}


def examples() -> list[str]:
    found = []
    for name in COMMANDS:
        command = load(name)
        for verb in command.verbs.values() if isinstance(command, Noun) else [command]:
            found += [
                example
                for example in verb.examples
                if not example.startswith(ELSEWHERE)
                and (not example.endswith(NEEDS_A_CLUSTER) or " contexts " in example)
            ]
    return found


@pytest.mark.parametrize("example", examples())
def test_c2_c20_each_example_runs_as_it_is_printed(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in FILES.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    if example.startswith("purekafka context"):
        for line in (
            "purekafka contexts add local -b localhost:9092",
            "purekafka contexts add prod -b b1:9093",
        ):
            if "contexts add" not in example and not ("import" in example and "--replace" not in example):
                assert run(line).code == 0
    outcome = run(example)
    assert outcome.code == CODES.get(example, 0), outcome.err
    assert "Traceback" not in outcome.err
