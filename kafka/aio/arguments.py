"""The options of the asyncio clients: the table of `kafka.config`, with the defaults that aiokafka documents."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from typing import Any, Final

from kafka.aio.environment import with_awaited_tokens
from kafka.config import CLASSES, Config, resolve
from kafka.consumer.arguments import as_offset, checked_offsets
from kafka.errors import KafkaConfigurationError
from kafka.structs import OffsetAndMetadata, TopicPartition

__all__ = ["SHARED_DEFAULTS", "AIOConfigurationError", "as_offsets", "checked_config"]

_PAIR: Final = 2

#: Defaults of all asyncio clients that differ from the synchronous clients' defaults.
SHARED_DEFAULTS: Final[dict[str, Any]] = {"request_timeout_ms": 40_000}


class AIOConfigurationError(KafkaConfigurationError, ValueError):
    """An option of an asyncio client is unknown, has a value that is not allowed, or contradicts another.

    >>> isinstance(AIOConfigurationError("acks"), ValueError)
    True
    """


def checked_config(
    kind: str,
    name: str,
    given: Mapping[str, object],
    defaults: Mapping[str, object] = SHARED_DEFAULTS,
    resolve: Callable[[str, Mapping[str, Any]], Config] = resolve,
) -> Config:
    """Return the configuration of the asyncio client `name`, which takes the options of `kind`.

    >>> checked_config("client", "AIOKafkaClient", {})["request_timeout_ms"]
    40000
    """
    options = with_awaited_tokens({**defaults, **given})
    if options.pop("api_version", None) not in {None, "auto"}:
        warnings.warn(
            f"api_version has no effect on {name}: each connection asks its broker", DeprecationWarning, stacklevel=4
        )
    # aiokafka's default is PLAIN; programs that state it connect without SASL there.
    if str(options.get("security_protocol")).startswith("SASL_"):
        options.setdefault("sasl_mechanism", "PLAIN")
    elif options.get("sasl_mechanism") == "PLAIN":
        del options["sasl_mechanism"]
    try:
        return resolve(kind, options)
    except KafkaConfigurationError as error:
        text = str(error.args[0]).replace(CLASSES[kind], name)
        raise AIOConfigurationError(text, option=error.option) from None


def as_offsets(offsets: object) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return offsets to commit, which may be numbers, or pairs of a number and a text.

    >>> as_offsets({TopicPartition("t", 0): 5, TopicPartition("t", 1): (6, "note")})[TopicPartition("t", 1)]
    OffsetAndMetadata(offset=6, metadata='note', leader_epoch=-1)
    """
    if not isinstance(offsets, Mapping) or not offsets:
        raise ValueError(f"offsets must be a mapping of partitions to offsets that is not empty, not {offsets!r}")
    found = {}
    for partition, offset in offsets.items():
        if not isinstance(partition, tuple) or len(partition) != _PAIR:
            raise TypeError(f"each key of offsets must be a TopicPartition, not {partition!r}")
        made = as_offset(offset)
        if not isinstance(made, OffsetAndMetadata):
            raise ValueError(f"an offset must be a number, a pair (number, str) or OffsetAndMetadata, not {offset!r}")
        found[TopicPartition(*partition)] = made
    return checked_offsets(found)
