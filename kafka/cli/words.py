"""What the commands have in common: how their words are read, and how it is said that one means nothing."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from kafka.errors import KafkaError

__all__ = ["WrongWord", "count", "pair", "positive", "writable_directory"]


class WrongWord(KafkaError):  # noqa: N818 - a word on the command line that means nothing
    """Something on the command line cannot be understood; the command ends with exit code 2."""

    def __str__(self) -> str:
        return str(self.args[0])


def pair(word: str, option: str) -> tuple[str, str]:
    """Split what an option of the form NAME=VALUE was given.

    >>> pair("client.id=shell", "-X")
    ('client.id', 'shell')
    """
    name, equals, value = word.partition("=")
    if not equals:
        raise WrongWord(f"{option} takes NAME=VALUE, not {word!r}")
    return name, value


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
        raise WrongWord(f"{option} {path}: {error.strerror}") from error
    if not os.access(path, os.W_OK | os.X_OK):
        raise WrongWord(f"{option} {path}: it cannot be written to")
    return path


def positive(word: str) -> float:
    """Read a number above zero, for argparse's ``type=``.

    >>> positive("0.5")
    0.5
    """
    number = float(word)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{word} is not above zero")
    return number
