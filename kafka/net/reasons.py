"""Errors of a connection in words: which broker it was, and what was not foreseen."""

from __future__ import annotations

from copy import copy

from kafka.errors import KafkaConnectionError, KafkaError

__all__ = ["NobodyThereError", "named", "unexpected"]


class NobodyThereError(KafkaConnectionError):
    """Every address of the host refuses connections, or it has none: not slow or lost on the way, but not there."""


def named(broker: object, error: KafkaError) -> KafkaError:
    """Return the error with the broker's name in front, once, and all its facts.

    >>> str(named("broker 1 (b1:9092)", KafkaConnectionError("refused")))
    'broker 1 (b1:9092): refused'
    """
    if str(broker) in str(error):
        return error
    told = copy(error)
    told.args = (f"{broker}: {error.args[0] if error.args else type(error).__name__}",)
    return told


def unexpected(error: BaseException) -> KafkaError:
    """Return a KafkaError for something that is none: a bug of ours, or of code that the application plugged in."""
    wrapped = KafkaConnectionError(f"connecting failed unexpectedly: {type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
