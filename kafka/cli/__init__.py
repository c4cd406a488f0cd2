"""The command line: one module per command, imported only when that command runs."""

from __future__ import annotations

import argparse
import os
import sys
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING

from kafka.cli.words import WrongWord
from kafka.errors import IllegalArgumentError, KafkaConfigurationError, KafkaError
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
    asked = parser
    for name, help_ in COMMANDS.items():
        command = commands.add_parser(name, help=help_, description=help_[0].upper() + help_[1:] + ".")
        if words[:1] == [name]:
            asked = command
            import_module(f"kafka.cli.{name}").add_arguments(command)
    arguments, rest = parser.parse_known_args(words)
    if len(rest) == 1 and not rest[0].startswith("-") and getattr(arguments, "json", None) == "{}":
        # argparse gives up an optional last word when options stand before it: request Metadata --version 1 '{...}'
        arguments.json = rest.pop()
    if rest:
        asked.error(f"unrecognized arguments: {' '.join(rest)}")
    try:
        code = int(import_module(f"kafka.cli.{arguments.command}").run(arguments))
        sys.stdout.flush()
    except (WrongWord, KafkaConfigurationError, IllegalArgumentError) as error:
        return _failed(arguments.command, error, 2)
    except KafkaError as error:
        return _failed(arguments.command, error, 1)
    except BrokenPipeError:  # the reader of our output, head for example, has seen enough
        _forget_output()
        sys.stderr.close()
        return 0
    except OSError as error:  # a disk that is full, a file that is not there
        _forget_output()
        return _failed(arguments.command, error, 1)
    except KeyboardInterrupt:
        return 130
    return code


def _failed(command: str, error: Exception, code: int) -> int:
    text = str(error)
    if isinstance(error, OSError) and error.strerror and not isinstance(error, KafkaError):
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    print(f"purekafka {command}: {text}", file=sys.stderr)
    return code


def _forget_output() -> None:
    """Let what cannot be written go, or the interpreter tries once more at its end and prints a traceback."""
    with suppress(OSError, ValueError):  # who calls main() may have an output that is no file
        output = sys.stdout.fileno()
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, output)
        os.close(nothing)
