"""Words of Kafka's scripts, kcat, kaf, rpk and kcl, and their names here; read when a word is unknown."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

#: Words of other tools with one meaning -> the words here, of which the first that a command has is shown. A word in
#: capital letters is an argument that stands without an option.
_MEANINGS: Final = {
    "--topic -t": "TOPIC",
    "--group -g --group-id": "GROUP",
    "--all-groups": "[GROUP...]",
    "--entity-name": "NAME",
    "--offset": "--from OFFSET / --place OFFSET",
    "--from-beginning": "--from beginning",
    "--max-messages": "--max-records / --last",
    "--num-records": "--records",
    "--record-size": "--size",
    "--throughput": "--rate",
    "--broker-list --zookeeper --brokers": "--bootstrap-server",
    "--command-config --consumer.config --consumer-config --producer.config --producer-config": "--config",
    "--consumer-property --producer-property": "-X NAME=VALUE",
    "--property": "--key-delimiter, --format and --value-type",
    "--key-separator --reader-property": "--key-delimiter",
    "--compression-codec": "--compression",
    "--request-required-acks": "--acks",
    "--timeout-ms": "--timeout SECONDS",
    "--whitelist --include": "--pattern",
    "--isolation-level": "--read-committed",
    "--json --detailed --members": "--format json",
    "-J": "--format jsonl / --format json",
    "-o": "--from PLACE / --format json",
    "-e --exit --shift-by --to-group": "--to PLACE",
    "-G": "--group GROUP",
    "-l": "--max-records / FILE",
    "-D": "--lines",
    "-Z": "--null TEXT",
    "-P": "--partition",
    "--tail": "--from -N",
    "--exclude-internal": "--all",
    "--entity-type": "KIND",
    "--formatter --formatter-property --input --output": "--format",
    "--from-timestamp": "--from TIME",
    "--to-timestamp": "--to TIME",
    "--limit-messages --num": "--max-records",
    "--path-to-json-file --topics-to-move-json-file --topic-partitions": "TOPIC[:N,N-M]",
    "--all-topic-partitions": "[TOPIC[:N,N-M]...]",
    "--election-type": "--unclean",
    "--time": "--at PLACE",
    "--all-topics": "[TOPIC...]",
    "--print-headers": "--format jsonl",
    "--to-datetime": "--to 2026-01-31T12:00Z",
    "--to-offset": "--to OFFSET",
    "--to-earliest": "--to beginning",
    "--to-latest": "--to end",
    "--by-duration": "--to '2h ago'",
    "--execute": "--yes",
    "--to-current": "--to stored",
    "--reassignment-json-file": "FILE",
    "--if-empty": "--fail-if-empty",
    "--add-config": "--set NAME=VALUE",
    "--delete-config": "--unset NAME",
    "--port --web.listen-address": "--listen HOST:PORT",
}
_WORDS: Final = {word: found.split(" / ") for words, found in _MEANINGS.items() for word in words.split()}


#: Kafka's scripts, with or without .sh, and their commands here.
_SCRIPTS: Final = {
    "kafka-topics": "topics",
    "kafka-console-consumer": "consume",
    "kafka-console-producer": "produce",
    "kafka-console-share-consumer": "consume --share GROUP",
    "kafka-consumer-groups": "groups",
    "kafka-share-groups": "groups",
    "kafka-streams-groups": "groups",
    "kafka-groups": "groups",
    "kafka-configs": "configs",
    "kafka-acls": "acls",
    "kafka-get-offsets": "offsets list",
    "kafka-delete-records": "records delete-before",
    "kafka-reassign-partitions": "partitions reassign-plan",
    "kafka-leader-election": "partitions elect",
    "kafka-log-dirs": "brokers log-dirs",
    "kafka-broker-api-versions": "brokers versions",
    "kafka-cluster": "cluster describe",
    "kafka-features": "cluster features",
    "kafka-metadata-quorum": "cluster quorum",
    "kafka-transactions": "transactions list",
    "kafka-delegation-tokens": "tokens list",
    "kafka-client-metrics": "configs list client-metrics",
    "kafka-dump-log": "logs dump",
    "kafka-producer-perf-test": "perf produce",
    "kafka-consumer-perf-test": "perf consume",
    "kafka-e2e-latency": "perf latency",
    "kafka-verifiable-producer": "produce",
    "kafka-verifiable-consumer": "consume",
}
#: Commands of kaf, rpk and kcl that take the same arguments here: they are understood.
_SAME: Final = {
    "nodes": "brokers list",
    "node": "brokers list",
    "node ls": "brokers list",
    "meta": "cluster describe",
    "metadata": "cluster describe",
    "features": "cluster features",
    "lag": "groups lag",
    "cluster info": "cluster describe",
    "cluster metadata": "cluster describe",
    "cluster health": "health",
    "topics consume": "consume",
    "topics produce": "produce",
    "topics ls": "topics list",
    "topics rm": "topics delete",
    "groups ls": "groups list",
    "groups rm": "groups delete",
    "groups peek": "groups describe",
    "groups seek": "groups reset-offsets",
    "configs get": "configs describe",
    "configs show": "configs describe",
    "groups offset-delete": "groups delete-offsets",
    "acls create": "acls allow",
    "users create": "users set-password",
    "contexts use-cluster": "contexts use",
    "contexts use-context": "contexts use",
}
#: Commands whose arguments differ: the answer names the command here.
_OTHERS: Final = {
    "get": "topics list, groups list or brokers list",
    "create": "topics create",
    "delete": "topics delete",
    "describe": "topics describe",
    "alter": "topics alter or configs set",
    "reset": "groups reset-offsets",
    "list-offsets": "offsets list",
    "elect-leaders": "partitions elect",
    "query": "consume TOPIC --filter-key GLOB",
    "metrics": "configs list client-metrics",
    "admin": "topics, groups, configs and partitions",
    "misc": "offsets list, brokers versions or cluster quorum",
    "topics add-partitions": "topics alter TOPIC --partitions N",
    "topics alter-config": "topics alter TOPIC --set NAME=VALUE",
    "records decode": "consume __consumer_offsets --key-type offsets --value-type offsets --format jsonl",
    "topics trim-prefix": "records delete-before TOPIC --place OFFSET",
    "topics describe-storage": "brokers log-dirs --topic TOPIC",
    "topics lag": "groups lag --topic TOPIC",
    "topics set-config": "topics alter TOPIC --set NAME=VALUE",
    "groups commit": "groups reset-offsets GROUP --to PLACE",
    "groups reset": "groups reset-offsets GROUP --to PLACE",
    "configs alter": "configs set KIND NAME SETTING=VALUE",
    "configs add": "configs set KIND NAME SETTING=VALUE",
    "acls add": "acls allow or acls deny",
    "acls remove": "acls delete",
    "partitions alter": "partitions reassign-plan and reassign-apply",
    "partitions move": "partitions reassign-plan and reassign-apply",
    "cluster config": "configs describe broker default",
    "cluster logdirs": "brokers log-dirs",
    "cluster partitions": "topics describe or partitions reassign-status",
}


def understood(words: str) -> str:
    """Return the command here that takes the same arguments as another tool's, or an empty text.

    >>> understood("groups seek"), understood("groups commit")
    ('groups reset-offsets', '')
    """
    return _SAME.get(words, "")


def command_advice(words: str) -> str:
    """Return what a command of another tool is called here, or an empty text.

    >>> command_advice("kafka-topics.sh"), command_advice("topics add-partitions")
    (': did you mean purekafka topics?', ': did you mean purekafka topics alter TOPIC --partitions N?')
    """
    script = words.removesuffix(".sh")
    found = _SCRIPTS.get(script) or _SCRIPTS.get(f"kafka-{script}") or _OTHERS.get(words)
    return f": did you mean purekafka {found}?" if found else ""


def advice(word: str, options: Collection[str], arguments: Collection[str]) -> str:
    """Return what a word of another tool is called here, or an empty text.

    >>> advice("--topic", {"--format"}, {"TOPIC"})
    ': TOPIC is an argument, and stands without an option'
    >>> advice("--max-messages", {"--max-records"}, {"TOPIC"})
    ': did you mean --max-records?'
    """
    for known in _WORDS.get(word, ()):
        if known.startswith("[") and known[1:].partition(".")[0] in arguments:
            return f": {known[1:].partition('.')[0]} is an argument, and may be left out"
        if known in arguments:
            return f": {known} is an argument, and stands without an option"
        if known.split()[0].rstrip(",") in options:
            return f": did you mean {known}?"
    return ""
