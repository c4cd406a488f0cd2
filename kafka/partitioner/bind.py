"""Recognise a partitioner's form once."""

# ruff: noqa: ARG002 - the interface names what it passes

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kafka._signature import arity
from kafka.errors import KafkaConfigurationError
from kafka.partitioner.abc import Cluster, KeyPartitioner

__all__ = ["PartitionFunction", "bind_partitioner"]

PartitionFunction = Callable[[str, Any, "bytes | None", Any, "bytes | None", Cluster], int]
"""``f(topic, key, key_bytes, value, value_bytes, cluster)``."""


class _Callable(KeyPartitioner):
    """A user's ``f(key_bytes, all_partitions, available_partitions)``."""

    def __init__(self, function: Callable[..., int]) -> None:
        super().__init__()
        self._function = function

    def choose(self, topic: str | None, key: Any, all_partitions: Sequence[int], available: Sequence[int]) -> int:
        return self._function(key, all_partitions, available)


def _overrides_call(cls: type) -> bool:
    """Whether a subclass of a partitioner of ours has a call of the form of kafka-python 1.x and 2.x.

    >>> class Last(KeyPartitioner):
    ...     def __call__(self, key, all_partitions=None, available=None): return all_partitions[-1]
    >>> _overrides_call(Last), _overrides_call(_Callable)
    (True, False)
    """
    for base in cls.__mro__:
        if vars(base).keys() & {"choose", "partition"}:
            return False
        if "__call__" in vars(base):
            return issubclass(cls, KeyPartitioner)
    return False


def bind_partitioner(partitioner: Any, option: str = "partitioner") -> PartitionFunction:
    """Return the function that a producer calls for a partitioner of either form.

    >>> class Cluster:
    ...     def partitions_for_topic(self, topic): return {0, 1, 2}
    ...     available_partitions_for_topic = partitions_for_topic
    >>> last = bind_partitioner(lambda key, all_partitions, available: all_partitions[-1])
    >>> last("events", None, None, "v", b"v", Cluster())
    2
    """
    if isinstance(partitioner, type):
        raise KafkaConfigurationError(
            f"{option} is the class {partitioner.__name__}; give an instance: {partitioner.__name__}()", option=option
        )
    method = getattr(partitioner, "partition", None)
    if callable(method) and not _overrides_call(type(partitioner)):
        found = arity(method)
        if found is None or found.takes(6):
            function: PartitionFunction = method
            return function
    if callable(partitioner):
        declared = next(
            (vars(base)["__call__"] for base in type(partitioner).__mro__ if "__call__" in vars(base)), None
        )
        # Python's signature of an object leaves one argument out if its __call__ is a class method, as in 1.x.
        found = arity(partitioner.__call__ if isinstance(declared, (classmethod, staticmethod)) else partitioner)
        if found is None or found.takes(3):
            return _Callable(partitioner).partition
    raise KafkaConfigurationError(
        f"{option} must be callable with (key_bytes, all_partitions, available_partitions) or have a method "
        f"partition(topic, key, serialized_key, value, serialized_value, cluster), not {partitioner!r}",
        option=option,
    )
