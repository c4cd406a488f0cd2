"""Arguments that commands share: how they are read, and how a wrong one is reported."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from kafka.errors import IllegalArgumentError, KafkaError

if TYPE_CHECKING:
    from uuid import UUID

    from kafka.protocol.registry import ApiKey

#: For the help of a command whose options take values that may be secret.
SECRETS = "A VALUE or PASSWORD may be @env:NAME, @FILE or @- (standard input): purekafka help values"
#: The same at length.
VALUES = (
    "A VALUE or PASSWORD may be @env:NAME (an environment variable), @FILE (what a file contains) or "
    "@- (standard input), which keeps it out of the list of processes and the shell's history; @@ begins a value "
    "that itself begins with @."
)


class CommandError(KafkaError):
    """A command could not do what its arguments ask for; it ends with exit code 1."""

    def __str__(self) -> str:
        return str(self.args[0])


class UsageError(CommandError):
    """An argument on the command line is wrong; the command ends with exit code 2."""


def reason(error: object) -> str:
    """Return the text of an error, without the number and the name of a broker's error, and the name of a call.

    >>> from kafka.errors import UnknownTopicOrPartitionError
    >>> reason(UnknownTopicOrPartitionError("topic 'a': unknown"))
    "topic 'a': unknown"
    """
    if isinstance(error, type):  # some answers of brokers are classes of errors
        return str(getattr(error, "description", "") or error.__name__)
    given = getattr(error, "args", ())[:1]
    if getattr(error, "errno", None) is not None and given and isinstance(given[0], str):
        return given[0].removeprefix(f"{given[0].partition('(')[0]}(): ")  # a call that the user has not made
    return str(error)


def find_api(word: str) -> ApiKey:
    """Find an API by its name, or say which one may have been meant.

    >>> find_api("fetch").key
    1
    >>> find_api("Fetsh")
    Traceback (most recent call last):
    kafka.cli.arguments.UsageError: Kafka has no API named 'Fetsh': did you mean Fetch? See "purekafka protocol list"
    """
    from kafka.protocol.registry import api_named

    try:
        return api_named(word)
    except IllegalArgumentError as error:
        sentence = f"{error}{'' if str(error).endswith('?') else '.'}"
        raise UsageError(f'{sentence} See "purekafka protocol list"') from None


def parse_json(text: str) -> Any:
    """Read a JSON argument; ``-`` stands for standard input.

    >>> parse_json('{"topics": null}')
    {'topics': None}
    """
    try:
        return from_json(sys.stdin.read() if text == "-" else text)
    except ValueError as error:
        raise UsageError(f"this is not JSON: {error}") from None


def from_json(text: str | bytes) -> Any:
    """Read JSON; ValueError also for NaN, which Python takes, and for text that is nested too deeply for Python.

    >>> from_json("[NaN]")
    Traceback (most recent call last):
    ValueError: NaN is not JSON
    """
    import json

    try:
        return json.loads(text, parse_constant=_not_json)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None


def _not_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def pair(word: str, option: str) -> tuple[str, str]:
    """Split the argument of an option that takes NAME=VALUE, and expand the value.

    >>> pair("client.id=shell", "-X")
    ('client.id', 'shell')
    """
    name, equals, value = word.partition("=")
    if not equals:
        raise no_value(word, option)
    return name, expand(value, f"{option} {name}")


def no_value(word: str, option: str) -> UsageError:
    """Return the error of a word without =, which may have a password behind another sign."""
    end = next((at for at, char in enumerate(word) if not (char.isalnum() or char in "._-")), len(word))
    return UsageError(f"{option} takes NAME=VALUE, not {word[:end] + '…' if end < len(word) else word!r}")


def pairs(words: Sequence[str], option: str) -> dict[str, str]:
    """Read all arguments of an option that takes NAME=VALUE and may be repeated."""
    return dict(pair(word, option) for word in words)


def setting_pairs(words: Sequence[str], option: str) -> dict[str, str]:
    """Read settings or quotas; a number may have a unit, if the name says which unit Kafka takes.

    >>> setting_pairs(["retention.ms=7d", "segment.bytes=1MiB", "consumer_byte_rate=5MB", "cleanup.policy=7d"], "--set")
    {'retention.ms': '604800000', 'segment.bytes': '1048576', 'consumer_byte_rate': '5000000', 'cleanup.policy': '7d'}
    """
    from kafka.cli.ranges import parse_duration

    found = pairs(words, option)
    for name, value in found.items():
        number: float | None = None
        if name.endswith(".ms"):
            seconds = parse_duration(value)
            number = None if seconds is None else seconds * 1000
        elif name.endswith((".bytes", "_byte_rate")):
            number = size_of(value)
        if number is not None and not value.lstrip("-").isdecimal():
            found[name] = str(round(number))
    return found


_UNITS: Final = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "KI": 2**10, "MI": 2**20, "GI": 2**30}


def size_of(word: str) -> int | None:
    """Return the bytes of a size, None if it is not one.

    >>> size_of("50MB"), size_of("1MiB"), size_of("1000"), size_of("many")
    (50000000, 1048576, 1000, None)
    """
    text = word.upper().removesuffix("B")
    number = text.rstrip("KMGI")
    try:
        return int(float(number) * _UNITS[text[len(number) :]])
    except (ValueError, KeyError, OverflowError):
        return None


def expand(value: str, option: str) -> str:
    """Return a value, or what its ``@`` refers to, so that secrets need not stand on the command line.

    >>> expand("me@home", "-X client.id"), expand("@@home", "-X client.id")
    ('me@home', '@home')
    >>> expand("@env:NO_SUCH_VARIABLE", "-X sasl.password")
    Traceback (most recent call last):
    kafka.cli.arguments.UsageError: -X sasl.password: the environment has no variable NO_SUCH_VARIABLE
    """
    if not value.startswith("@"):
        return value
    source = value[1:]
    if not source:
        raise UsageError(f"{option}: @ needs env:NAME, a file or - behind it; a value that begins with @ is written @@")
    if source.startswith("@"):
        return source
    if source.startswith("env:"):
        name = source.removeprefix("env:")
        if name not in os.environ:
            raise UsageError(f"{option}: the environment has no variable {name}")
        return os.environ[name]
    text = text_of(source, option, "; a value that begins with @ is written @@")
    # Editors and echo end a file with a line end, which is not part of the password.
    text = text.removesuffix("\n").removesuffix("\r")
    if not text:
        # Standard input also is empty for the second option that asks for it.
        raise UsageError(f"{option}: {'standard input' if source == '-' else source} is empty")
    return text


def text_of(path: str, option: str, hint: str = "") -> str:
    """Return the text of a file that an option names; ``-`` is standard input, which stays open for questions."""
    try:
        return sys.stdin.read() if path == "-" else Path(path).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        cause = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
        raise UsageError(f"{option}: cannot read {path}: {cause}{hint}") from None


def principal(word: str) -> str:
    """Return a principal that may be given without its type.

    >>> principal("ada"), principal("User:ada")
    ('User:ada', 'User:ada')
    """
    return word if ":" in word else f"User:{word}"


def kafka_uuid(value: UUID) -> str:
    """Return a UUID as Kafka's own tools print it.

    >>> from uuid import UUID
    >>> kafka_uuid(UUID(int=1))
    'AAAAAAAAAAAAAAAAAAAAAQ'
    """
    from base64 import urlsafe_b64encode

    return urlsafe_b64encode(value.bytes).decode().rstrip("=")


def count(word: str) -> int:
    """Read a whole number from one on, for argparse's ``type=``.

    >>> count("3")
    3
    """
    number = int(word)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{word} is below one")
    return number


def writable_directory(path: Path, option: str) -> Path:
    """Make a directory if it is not there, and see that it can be written to, before work is done for it."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"{option} {path}: {error.strerror}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise UsageError(f"{option} {path}: it cannot be written to")
    return path
