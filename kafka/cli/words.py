"""What the commands have in common: how their words are read, and how it is said that one means nothing."""

from __future__ import annotations

import argparse

from kafka.errors import KafkaError

__all__ = ["WrongWord", "pair", "positive"]


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


def positive(word: str) -> float:
    """Read a number above zero, for argparse's ``type=``.

    >>> positive("0.5")
    0.5
    """
    number = float(word)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{word} is not above zero")
    return number
