"""``python -m kafka.admin``, ``kafka.consumer`` and ``kafka.producer``: the words of kafka-python 3.

They are translated into the words of `kafka.cli`, which does the work.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Final

from kafka.cli import main

# The groups of commands whose names differ here.
_VERBS: Final = {
    ("cluster", "describe"): ["cluster", "describe"],
    ("cluster", "log-dirs"): ["brokers", "log-dirs"],
    ("cluster", "features"): ["cluster", "features"],
    ("partitions", "create"): ["topics", "alter"],
    ("partitions", "list-offsets"): ["offsets", "list"],
    ("partitions", "delete-records"): ["records", "delete-before"],
    ("partitions", "elect-leaders"): ["partitions", "elect"],
    ("partitions", "list-reassignments"): ["partitions", "reassign-status"],
    ("groups", "list-offsets"): ["groups", "offsets"],
    ("configs", "alter"): ["configs", "set"],
    ("users", "describe"): ["users", "list"],
}
_FORMATS: Final = {"raw": "jsonl", "json": "json", "pretty": "table"}


def _common(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("-b", "--bootstrap-servers", action="append", default=[], help="brokers; may be repeated")
    parser.add_argument("-S", "--security-protocol", help="PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL")
    parser.add_argument("-M", "--sasl-mechanism", help="PLAIN, SCRAM-SHA-256 and so on")
    parser.add_argument("-U", "--sasl-user", help="the user for SASL")
    parser.add_argument("-P", "--sasl-password", help="the password for SASL")
    parser.add_argument("-C", "--extra-config", action="append", default=[], metavar="NAME=VALUE", help="an option")
    parser.add_argument("-c", "--config-file", help="a properties file")
    parser.add_argument("-l", "--log-level", help="a level of logging, such as INFO or DEBUG")


def _connection(given: argparse.Namespace) -> list[str]:
    """Return the words of our connection options."""
    words: list[str] = []
    if given.bootstrap_servers:
        words += ["-b", ",".join(given.bootstrap_servers)]
    options = {
        "security_protocol": given.security_protocol,
        "sasl_mechanism": given.sasl_mechanism,
        "sasl_plain_username": given.sasl_user,
        "sasl_plain_password": given.sasl_password,
    }
    # A value there was literal; here a leading @ would name its source.
    pairs = [f"{name}={_literal(value)}" for name, value in options.items() if value is not None]
    for word in given.extra_config:
        name, equals, value = word.partition("=")
        pairs.append(f"{name}{equals}{_literal(value)}")
    for pair in pairs:
        words += ["-X", pair]
    if given.config_file:
        words += ["--config", given.config_file]
    if given.log_level:
        words += ["-vv" if given.log_level.upper() == "DEBUG" else "-v"]
    return words


def _literal(value: str) -> str:
    return f"@{value}" if value.startswith("@") else value


def translate_admin(argv: Sequence[str]) -> list[str]:
    """Return our words for a command line of ``python -m kafka.admin``.

    >>> translate_admin(["-b", "b1:9092", "topics", "create", "-t", "events", "--num-partitions", "3"])
    ['topics', 'create', 'events', '--partitions', '3', '-b', 'b1:9092']
    >>> translate_admin(["partitions", "list-offsets", "-t", "events"])
    ['offsets', 'list', 'events']
    """
    parser = argparse.ArgumentParser(prog="python -m kafka.admin", allow_abbrev=False)
    _common(parser)
    parser.add_argument("--format", choices=sorted(_FORMATS), help="how results are printed")
    parser.add_argument("noun", metavar="COMMAND", help="topics, groups, configs, cluster, partitions, acls, users")
    parser.add_argument("verb", metavar="SUBCOMMAND", help="list, describe, create, delete and so on")
    given, rest = parser.parse_known_args(argv)
    words = list(_VERBS.get((given.noun, given.verb), [given.noun, given.verb]))
    own = argparse.ArgumentParser(prog=f"python -m kafka.admin {given.noun} {given.verb}", allow_abbrev=False)
    own.add_argument(
        "-t", "--topic", "--topics", "-g", "--group", "--group-id", action="append", default=[], dest="names"
    )
    own.add_argument("--num-partitions", "--partitions")
    own.add_argument("--replication-factor")
    found, more = own.parse_known_args(rest)
    words += found.names
    if found.num_partitions:
        words += ["--partitions", found.num_partitions]
    if found.replication_factor:
        words += ["--replication-factor", found.replication_factor]
    if given.format:
        words += ["--format", _FORMATS[given.format]]
    if given.verb == "delete":
        words.append("--yes")
    return [*words, *more, *_connection(given)]


def admin(argv: Sequence[str] | None = None) -> int:
    """Run ``python -m kafka.admin``."""
    return main(translate_admin(sys.argv[1:] if argv is None else argv))


def consumer(argv: Sequence[str] | None = None) -> int:
    """Run ``python -m kafka.consumer``: print the records of topics as they arrive."""
    parser = argparse.ArgumentParser(prog="python -m kafka.consumer", allow_abbrev=False)
    _common(parser)
    parser.add_argument("-t", "--topic", action="append", required=True, help="a topic; may be repeated")
    parser.add_argument("-g", "--group", help="the group to join")
    parser.add_argument("-f", "--format", choices=("str", "raw", "full"), default="str", help="how records are printed")
    parser.add_argument("--from-beginning", action="store_true", help="begin with the first record")
    parser.add_argument("--max-messages", help="end after this number of records")
    given = parser.parse_args(argv)
    words = ["consume", *given.topic, "--follow"]
    if given.group:
        words += ["--group", given.group]
    if given.from_beginning or not given.group:
        words += ["--from", "beginning" if given.from_beginning else "end"]
    if given.max_messages:
        words += ["-n", given.max_messages]
    if given.format == "full":
        words += ["--format", "jsonl"]
    return main([*words, *_connection(given)])


def producer(argv: Sequence[str] | None = None) -> int:
    """Run ``python -m kafka.producer``: write a record for each line."""
    parser = argparse.ArgumentParser(prog="python -m kafka.producer", allow_abbrev=False)
    _common(parser)
    parser.add_argument("-t", "--topic", required=True, help="the topic to write to")
    given = parser.parse_args(argv)
    return main(["produce", given.topic, *_connection(given)])
