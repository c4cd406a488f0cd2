"""The command line: one module per command, imported only when that command runs."""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from kafka.errors import KafkaError
from kafka.version import __version__

if TYPE_CHECKING:
    from collections.abc import Sequence

#: Command -> what it does. The module of that name has ``add_arguments(parser)`` and ``run(arguments) -> exit code``.
COMMANDS = {
    "protocol": "show the messages of the protocol; decode and encode them",
    "demo": "a first look: a broker, a producer and a group of consumers in one process",
    "request": "send a request of the protocol to a broker and print the reply as JSON",
    "spark": "jobs on Spark: a pipeline, copies, dumps, lag",
    "broker": "run a broker of one or several nodes on this machine",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; return the exit code: 0 fine, 1 it failed, 2 the words are wrong."""
    words = list(sys.argv[1:] if argv is None else argv)
    parser = argparse.ArgumentParser(prog="purekafka", description="Kafka from the shell, in pure Python.")
    parser.add_argument("--version", action="version", version=f"purekafka {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, help_ in COMMANDS.items():
        command = commands.add_parser(name, help=help_, description=help_[0].upper() + help_[1:] + ".")
        if words[:1] == [name]:
            import_module(f"kafka.cli.{name}").add_arguments(command)
    arguments, rest = parser.parse_known_args(words)
    if len(rest) == 1 and not rest[0].startswith("-") and getattr(arguments, "json", None) == "{}":
        # argparse gives up an optional last word when options stand before it: request Metadata --version 1 '{...}'
        arguments.json = rest.pop()
    if rest:
        parser.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        return int(import_module(f"kafka.cli.{arguments.command}").run(arguments))
    except KafkaError as error:
        print(f"purekafka {arguments.command}: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # the reader of our output, head for example, has seen enough
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        return 130
