"""Words of Kafka's scripts, kcat and rpk, and what they are called here; read when an option is unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Collection

__all__ = ["advice"]

#: Word of another tool -> the words here, of which the first that a command has is shown. A word in capital letters is
#: an argument that stands without an option.
_WORDS: Final = {
    "--topic": ("TOPIC",),
    "-t": ("TOPIC",),
    "--group": ("GROUP",),
    "-g": ("GROUP",),
    "--group-id": ("GROUP",),
    "--all-groups": ("[GROUP...]",),
    "--entity-name": ("NAME",),
    "--offset": ("--from OFFSET", "--place OFFSET"),
    "--from-beginning": ("--from beginning",),
    "--max-messages": ("--max-records", "--last"),
    "--num-records": ("--records",),
    "--record-size": ("--size",),
    "--throughput": ("--rate",),
    "--broker-list": ("--bootstrap-server",),
    "--zookeeper": ("--bootstrap-server",),
    "--brokers": ("--bootstrap-server",),
    "--command-config": ("--config",),
    "--consumer.config": ("--config",),
    "--consumer-config": ("--config",),
    "--producer.config": ("--config",),
    "--producer-config": ("--config",),
    "--consumer-property": ("-X NAME=VALUE",),
    "--producer-property": ("-X NAME=VALUE",),
    "--property": ("--key-delimiter, --format and --value-type",),
    "--key-separator": ("--key-delimiter",),
    "--compression-codec": ("--compression",),
    "--request-required-acks": ("--acks",),
    "--timeout-ms": ("--timeout SECONDS",),
    "--whitelist": ("--pattern",),
    "--include": ("--pattern",),
    "--isolation-level": ("--read-committed",),
    "--json": ("--format json",),
    "--output": ("--format",),
    "--to-datetime": ("--to 2026-01-31T12:00Z",),
    "--to-offset": ("--to OFFSET",),
    "--to-earliest": ("--to beginning",),
    "--to-latest": ("--to end",),
    "--by-duration": ("--to '2h ago'",),
    "--execute": ("--yes",),
    "--to-current": ("--to stored",),
    "--reassignment-json-file": ("FILE",),
    "--if-empty": ("--fail-if-empty",),
    "--add-config": ("--set NAME=VALUE",),
    "--delete-config": ("--unset NAME",),
}


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
