"""The command line. `kafka.cli.grammar` has its words; a command's module is imported only when that command runs.

The exit codes of all commands are in docs/command_line.rst.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING

from kafka.cli.grammar import COMMANDS
from kafka.cli.parser import parse

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from kafka.cli.connection import Watchdog
    from kafka.cli.grammar import Verb

__all__ = ["COMMANDS", "forget_output", "main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    from kafka.cli.files import open_streams, whole_output

    open_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    if words[:1] == ["kcat"]:  # with kcat's own options
        from kafka.cli.kcat import main as kcat

        return kcat(words[1:])
    try:
        with whole_output():
            try:
                found = parse(words)
            finally:  # behind --help, which exits
                sys.stdout.flush()
    except BrokenPipeError:
        return _closed()
    except OSError as error:
        forget_output()
        return _failed("purekafka", error, 1)
    if found is None:
        return 0
    verb, arguments = found
    from kafka.cli.connection import Watchdog

    arguments.reads = verb.reads
    arguments.outcomes = [] if verb.changes else None
    seconds = getattr(arguments, "timeout", None)
    # Clients end before the watchdog does, because their errors name the cause.
    arguments.deadline = None if seconds is None else time.monotonic() + seconds
    with Watchdog(seconds) as watchdog, whole_output(unread=verb.changes):
        return _run(verb, arguments, watchdog)


def _run(verb: Verb, arguments: argparse.Namespace, watchdog: Watchdog) -> int:
    from kafka.cli.arguments import UsageError
    from kafka.cli.connection import Connection
    from kafka.cli.output import check_outcomes, print_outcomes
    from kafka.errors import IllegalArgumentError, KafkaConfigurationError, KafkaError, KafkaTimeoutError

    try:
        if arguments.outcomes is not None:
            check_outcomes(arguments)
        try:
            if verb.connects:
                with Connection(arguments) as connection:
                    code = verb.run(arguments, connection)
            else:
                code = verb.run(arguments)
        finally:
            print_outcomes(arguments)
        sys.stdout.flush()
    except (UsageError, KafkaConfigurationError, IllegalArgumentError) as error:
        return _failed(arguments.prog, error, 2)
    except KafkaError as error:
        return _failed(arguments.prog, error, 124 if isinstance(error, KafkaTimeoutError) and watchdog.over() else 1)
    except BrokenPipeError:  # the reader of our output, head for example, has seen enough
        return _closed()
    except OSError as error:  # a disk that is full, a file that is not there
        forget_output()
        return _failed(arguments.prog, error, 1)
    except KeyboardInterrupt:
        with suppress(OSError, ValueError, KeyboardInterrupt):
            sys.stdout.flush()
        if watchdog.barked:
            return _failed(arguments.prog, f"the {arguments.timeout:g} seconds of --timeout are over", 124)
        return 143 if watchdog.terminated else 130
    return code


def _failed(prog: str, error: Exception | str, code: int) -> int:
    from kafka.cli.arguments import reason

    text = reason(error)
    if isinstance(error, OSError) and error.strerror:
        text = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    print(f"{prog}: {text}", file=sys.stderr)
    return code


def _closed() -> int:
    forget_output()
    return 0


def forget_output() -> None:
    """Discard output that cannot be written, or the interpreter tries again at its end and prints a traceback."""
    with suppress(OSError, ValueError):  # a caller of main() may have replaced the output by an object without a file
        output = sys.stdout.fileno()
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, output)
        os.close(nothing)
