"""The command line: one module per command, imported only when that command runs.

Exit codes of all commands:

0. It succeeded.
1. It failed: a broker cannot be reached, refuses, or does not answer in time; a port, directory or file cannot be used.
2. The arguments are wrong: an unknown option, API or field, or a value that is out of range or malformed.
3. ``purekafka request`` printed a reply that has an error code in it.
130. Ctrl-C ended it.
"""

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

#: Command -> what it does, in the order in which a newcomer needs them. The module of that name has
#: ``add_arguments(parser)`` and ``run(arguments) -> exit code``.
COMMANDS = {
    "demo": "a first look: a broker, a producer and a group of consumers in one process",
    "broker": "run a broker of one or several nodes on this machine",
    "request": "send a request of the protocol to a broker and print the reply as JSON",
    "spark": "jobs on Spark: a pipeline, copies, dumps, lag",
    "protocol": "show the messages of the protocol; decode and encode them",
}


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code; the codes are listed in this module's docstring."""
    words = list(sys.argv[1:] if argv is None else argv)
    if words and words[0] in COMMANDS:
        return _run(words[0], words[1:])
    parser = argparse.ArgumentParser(
        prog="purekafka",
        description="Kafka from the shell, in pure Python.",
        epilog='"purekafka COMMAND --help" shows the arguments of a command.',
    )
    parser.add_argument("--version", action="version", version=f"purekafka {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, help_ in COMMANDS.items():
        commands.add_parser(name, help=help_)
    parser.parse_args(words)
    parser.print_help()
    return 0


def _run(command: str, words: list[str]) -> int:
    module = import_module(f"kafka.cli.{command}")
    about = COMMANDS[command]
    parser = argparse.ArgumentParser(prog=f"purekafka {command}", description=about[0].upper() + about[1:] + ".")
    module.add_arguments(parser)
    command_line: list[str] = []
    if getattr(module, "RUNS_COMMAND", False) and "--" in words:
        at = words.index("--")
        words, command_line = words[:at], words[at + 1 :]
    # An optional word may stand behind options, `request Metadata --version 1 '{...}'`; argparse can do that for
    # commands without actions only.
    arguments = (parser.parse_args if hasattr(module, "ACTIONS") else parser.parse_intermixed_args)(words)
    if hasattr(module, "RUNS_COMMAND"):
        arguments.command = command_line
    if getattr(arguments, "print_help", None) is not None:
        arguments.print_help()
        return 0
    try:
        code = int(module.run(arguments))
        sys.stdout.flush()
    except (WrongWord, KafkaConfigurationError, IllegalArgumentError) as error:
        return _failed(command, error, 2)
    except KafkaError as error:
        return _failed(command, error, 1)
    except BrokenPipeError:  # the reader of our output, head for example, has seen enough
        _forget_output()
        sys.stderr.close()
        return 0
    except OSError as error:  # a disk that is full, a file that is not there
        _forget_output()
        return _failed(command, error, 1)
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
