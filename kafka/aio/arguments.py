"""The options of the asyncio clients: the table of `kafka.config`, with the defaults that aiokafka documents."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, Final

from kafka.aio.environment import with_awaited_tokens
from kafka.config import CLASSES, Config, resolve
from kafka.errors import KafkaConfigurationError

__all__ = ["SHARED_DEFAULTS", "AIOConfigurationError", "checked_config"]

#: Defaults of all asyncio clients that differ from the synchronous clients' defaults.
SHARED_DEFAULTS: Final[dict[str, Any]] = {"request_timeout_ms": 40_000}


class AIOConfigurationError(KafkaConfigurationError, ValueError):
    """An option of an asyncio client is unknown, has a value that is not allowed, or contradicts another.

    >>> isinstance(AIOConfigurationError("acks"), ValueError)
    True
    """


def checked_config(
    kind: str, name: str, given: Mapping[str, Any], defaults: Mapping[str, Any] = SHARED_DEFAULTS
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
    # aiokafka's default is PLAIN, and without SASL the mechanism has no effect there.
    if not str(options.get("security_protocol")).startswith("SASL_"):
        options.pop("sasl_mechanism", None)
    else:
        options.setdefault("sasl_mechanism", "PLAIN")
    try:
        return resolve(kind, options)
    except KafkaConfigurationError as error:
        text = str(error.args[0]).replace(CLASSES[kind], name)
        raise AIOConfigurationError(text, option=error.option) from None
