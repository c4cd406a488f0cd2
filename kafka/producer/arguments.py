"""What the caller gives to a producer, checked: options, records' parts. Errors say what to write instead."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any, Final

from kafka.config import Config, resolve
from kafka.errors import IllegalArgumentError, KafkaConfigurationError
from kafka.record.batch_builder import BatchBuilder

__all__ = ["Headers", "as_bytes", "checked_config", "checked_headers", "checked_timestamp"]

_NUMBERS: Final = itertools.count(1)
_PAIR: Final = 2

Headers = Sequence[tuple[str, "bytes | None"]] | Mapping[str, "bytes | None"]


def checked_config(configs: dict[str, Any]) -> Config:
    """Return the configuration; refuse what this release does not have yet, which must not be ignored."""
    if configs.get("client_id") is None:
        configs = {**configs, "client_id": f"purekafka-producer-{next(_NUMBERS)}"}
    config = resolve("producer", configs)
    for option in ("transaction_two_phase_commit_enable",):
        if config[option]:
            raise KafkaConfigurationError(f"{option} is not supported by this release", option=option)
    # A codec whose package is missing is said now, not with the first record.
    BatchBuilder(1, config["compression_type"], config["compression_level"])
    return config


def as_bytes(data: Any, what: str, serialized: bool = False) -> bytes | None:
    """Return bytes, which a serializer may have made; other buffers are copied, as they could change meanwhile."""
    if data is None or type(data) is bytes:
        return data
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    if serialized:
        raise TypeError(f"{what}_serializer must return bytes, not {type(data).__name__}")
    hint = f"; set {what}_serializer, as in {what}_serializer=str.encode" if what in {"key", "value"} else ""
    raise TypeError(f"{what} must be bytes, not {type(data).__name__}{hint}")


def checked_timestamp(timestamp: Any) -> int:
    """Return a record's time as a whole number of milliseconds."""
    if isinstance(timestamp, bool) or not isinstance(timestamp, (int, float)):
        raise TypeError(f"timestamp_ms must be a number of milliseconds, not {type(timestamp).__name__}")
    if timestamp < 0:
        raise IllegalArgumentError(f"timestamp_ms must not be negative, it is {timestamp}")
    return int(timestamp)


def checked_headers(headers: Headers) -> list[tuple[str, bytes | None]]:
    """Return headers whose names are text and whose values are bytes."""
    checked = []
    for pair in headers.items() if isinstance(headers, Mapping) else headers:
        if not isinstance(pair, (tuple, list)) or len(pair) != _PAIR:
            raise TypeError(f"headers must be pairs of name and bytes, as in headers=[('trace', b'7')], not {pair!r}")
        name, data = pair
        if not isinstance(name, str):
            raise TypeError(f"a header's name must be a str, not {type(name).__name__}")
        checked.append((name, as_bytes(data, f"header {name!r}")))
    return checked
