"""The thirty tasks that people do at a shell, as command lines with the outcome that shows that they worked.

{servers} is the cluster, {dir} a directory for files. A line without ``-b`` gets the cluster from the environment.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from .shell import Outcome, run


class Step(NamedTuple):
    task: str
    line: str
    shows: str = ""
    """A regular expression in the output."""
    code: int = 0
    stdin: bytes = b""


STEPS = [
    Step("connect", "purekafka cluster describe -b {servers}", r"Cluster \S+: \d brokers?, controller \d"),
    Step("create a topic", "purekafka topics create shell -p 3 --set retention.ms=86400000", "shell: created with 3"),
    Step("list topics", "purekafka topics list", r"shell +3"),
    Step("describe a topic", "purekafka topics describe shell", r"retention.ms=86400000[\s\S]*PARTITION +LEADER"),
    Step("add partitions", "purekafka topics alter shell -p 4 --yes", "shell: 4 partitions"),
    Step("produce lines", "purekafka produce shell", stdin=b"one\ntwo\nthree\n"),
    Step("produce keys", "purekafka produce shell -K : -H source=shell", stdin=b"ada:hello\neve:bye\n"),
    Step("produce a tombstone", "purekafka produce shell -K : --null NIL -p 0", stdin=b"ada:NIL\n"),
    Step("consume all", "purekafka consume shell", r"(?=[\s\S]*one)(?=[\s\S]*three)(?=[\s\S]*hello)"),
    Step(
        "consume a format", "purekafka consume shell -f '%t %p %o %k %h %s\\n'", r"shell \d \d ada source=shell hello"
    ),
    Step("consume JSON", "purekafka consume shell -f jsonl", r'"key":"ada","value":"hello"'),
    Step("consume the last", "purekafka consume shell -p 0 --from -1 -f '%k=%S\\n'", "ada=-1"),
    Step("consume a time", 'purekafka consume shell --from "1h ago" --to now -n 2', r".*\n.*\n"),
    Step("follow", "purekafka tail shell -n 1 --timeout 3", code=124),
    Step("read in a group", "purekafka consume shell --group shell-group", r"(?=[\s\S]*one)(?=[\s\S]*bye)"),
    Step("list offsets", "purekafka offsets list shell", r"shell +0 +0 +\d"),
    Step("offsets by time", "purekafka offsets list shell:0 --at yesterday", r"shell +0 +0"),
    Step("list groups", "purekafka groups list", r"shell-group +Empty"),
    Step("describe a group", "purekafka groups describe shell-group", "Group shell-group: Empty"),
    Step("show lag", "purekafka groups lag shell-group --by topic", r"shell-group +shell +\d +0"),
    Step("export offsets", "purekafka groups offsets shell-group --export {dir}/offsets.csv"),
    Step(
        "plan a reset", "purekafka groups reset-offsets shell-group --to beginning --dry-run", r"NEW OFFSET[\s\S]*shell"
    ),
    Step("reset offsets", "purekafka groups reset-offsets shell-group --to beginning --yes", "NEW LAG"),
    Step(
        "import offsets", "purekafka groups reset-offsets shell-group --from-file {dir}/offsets.csv --yes", "NEW OFFSET"
    ),
    Step("show settings", "purekafka configs describe topic shell", r"retention.ms +86400000"),
    Step(
        "change settings", "purekafka configs set topic shell cleanup.policy=compact,delete --yes", "changed 1 setting"
    ),
    Step("a password", "purekafka users set-password shell-user", "password set", stdin=b"secret\n"),
    Step("a quota", "purekafka quotas set producer_byte_rate=1000000 --user shell-user", "producer_byte_rate=1000000"),
    Step("plan a move", "purekafka partitions reassign plan shell --output {dir}/plan.json"),
    Step("elect leaders", "purekafka partitions elect shell --yes", "shell-0: leads already"),
    Step("log directories", "purekafka brokers log-dirs", r"1 +\S+ +\d+ +\d+"),
    Step("API versions", "purekafka brokers versions", r"Metadata +3 +\d+ +\d+ +13"),
    Step("dump a topic", "purekafka topics dump shell {dir}/shell.jsonl", "6 records"),
    Step("copy a topic", "purekafka topics copy shell shell-2 --create", "shell-2: 6 records copied"),
    Step("load a topic", "purekafka topics load {dir}/shell.jsonl shell-2", "6 records loaded"),
    Step("pipe", "purekafka consume shell -f jsonl | purekafka produce shell-2 -f jsonl"),
    Step("delete records", "purekafka records delete-before shell-2 --place end --yes", "NEW START"),
    Step("measure", "purekafka perf produce shell-2 -n 100", r"100 records sent, [\d.]+ records/sec"),
    Step("transactions", "purekafka transactions list"),
    Step("delete a group", "purekafka groups delete shell-group --yes", "shell-group: deleted"),
    Step("delete a user", "purekafka users delete shell-user --yes", "shell-user: deleted"),
    Step("delete topics", "purekafka topics delete shell shell-2 --yes", "shell: deleted"),
]


def perform(servers: str, directory: object, tell: Callable[[str], None] = print) -> None:
    """Do the tasks in order, and print the transcript."""
    for step in STEPS:
        line = step.line.format(servers=servers, dir=directory)
        outcome: Outcome = run(line, stdin=step.stdin)
        tell(f"$ {line}\n{outcome.out}{outcome.err}")
        assert outcome.code == step.code, f"{step.task}: exit code {outcome.code}: {outcome.err}"
        assert re.search(step.shows, outcome.out), f"{step.task}: {outcome.out!r} does not have {step.shows!r}"
