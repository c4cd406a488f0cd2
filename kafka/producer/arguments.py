"""Checks of the arguments of a producer: options, parts of records, offsets. Each error names the form to use."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Real
from operator import index
from typing import Any, Final, NoReturn, SupportsIndex

from kafka.config import Config, name_client, resolve
from kafka.errors import IllegalArgumentError, KafkaConfigurationError
from kafka.record.batch_builder import BatchBuilder
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition, check_topic

__all__ = [
    "Headers",
    "as_bytes",
    "checked_config",
    "checked_group",
    "checked_headers",
    "checked_offsets",
    "checked_partition",
    "checked_records",
    "checked_release",
    "checked_timeout",
    "checked_timestamp",
]

_PAIR: Final = 2
_LATEST: Final = 2**63 - 1

Headers = Sequence[tuple[str, "bytes | None"]] | Mapping[str, "bytes | None"]


def checked_config(configs: Mapping[str, Any], declared: Mapping[str, Any] | None = None) -> Config:
    """Return the configuration; refuse an option that this release does not support, as it must not be ignored.

    `declared` is the DEFAULT_CONFIG of the producer's class.
    """
    given = {name: value for name, value in configs.items() if name != "client_id" or value is not None}
    config = resolve("producer", given, declared)
    name_client(config, "producer")
    for option in ("transaction_two_phase_commit_enable",):
        if config[option]:
            raise KafkaConfigurationError(f"{option} is not supported by this release", option=option)
    # A codec whose package is missing is an error now, not with the first record.
    BatchBuilder(1, config["compression_type"], config["compression_level"])
    return config


def as_bytes(data: object, what: str, serialized: bool = False) -> bytes | None:
    """Return bytes, `serialized` if a serializer has made them; other buffers are copied, as they could change."""
    if data is None or type(data) is bytes:
        return data
    if isinstance(data, (bytes, bytearray, memoryview)):
        return bytes(data)
    if serialized:
        raise TypeError(f"{what}_serializer must return bytes, not {type(data).__name__}")
    hint = _serializer_for(data, what) if what in {"key", "value"} else ""
    raise TypeError(f"{what} must be bytes, not {type(data).__name__}{hint}")


def _serializer_for(data: object, what: str) -> str:
    """Return which serializer accepts such a value, in words."""
    option = f"{what}_serializer"
    if isinstance(data, str):
        return f"; set {option}, as in KafkaProducer({option}=str.encode)"
    if isinstance(data, (dict, list, tuple, int, float)):
        return f"; set {option}, as in KafkaProducer({option}=kafka.JsonSerializer())"
    return f"; set {option} to a function that takes the {what} and returns bytes"


def checked_partition(partition: SupportsIndex) -> int:
    """Return the number of a partition."""
    try:
        return index(partition)
    except TypeError:
        raise TypeError(f"partition must be the number of a partition, not {partition!r}") from None


def checked_timestamp(timestamp: object) -> int:
    """Return a record's time as a whole number of milliseconds."""
    if not isinstance(timestamp, float):
        if isinstance(timestamp, bool) or not hasattr(timestamp, "__index__"):
            raise TypeError(f"timestamp_ms must be a number of milliseconds, not {type(timestamp).__name__}")
        timestamp = index(timestamp)  # of numpy
    if not 0 <= timestamp <= _LATEST:  # which NaN is not
        raise IllegalArgumentError(f"timestamp_ms must be from 0 to 2**63 - 1, it is {timestamp}")
    return int(timestamp)


def checked_timeout(timeout: object, what: str) -> float | None:
    """Return seconds, None for no limit."""
    if timeout is None:
        return None
    if type(timeout) is int:  # the look-up of Real costs more than all else here
        return float(min(timeout, _LATEST))
    if isinstance(timeout, bool) or not isinstance(timeout, Real):
        raise TypeError(f"the timeout of {what} must be a number of seconds, not {timeout!r}")
    if math.isnan(timeout):
        raise IllegalArgumentError(f"the timeout of {what} must be a number of seconds, not NaN")
    return float(timeout)


def checked_headers(headers: Headers) -> list[tuple[str, bytes | None]]:
    """Return headers whose names are text and whose values are bytes."""
    checked: list[tuple[str, bytes | None]] = []
    pairs: Any = headers
    if type(headers) is not list:  # the abstract classes take longer than all the rest
        if isinstance(headers, Mapping):
            pairs = headers.items()
        elif not isinstance(headers, Iterable):
            raise TypeError(
                f"headers must be pairs of name and bytes, as in headers=[('trace', b'7')], not {headers!r}"
            )
    for pair in pairs:
        if not isinstance(pair, (tuple, list)) or len(pair) != _PAIR:
            raise TypeError(f"headers must be pairs of name and bytes, as in headers=[('trace', b'7')], not {pair!r}")
        name, data = pair
        if not isinstance(name, str):
            raise TypeError(f"a header's name must be a str, not {type(name).__name__}")
        if not name.isascii():
            try:
                name.encode()
            except UnicodeEncodeError as error:
                raise IllegalArgumentError(f"a header's name must be text that UTF-8 can encode: {error}") from None
        checked.append((name, data if type(data) is bytes else as_bytes(data, f"header {name!r}")))
    return checked


def header_size(pairs: Sequence[tuple[str, bytes | None]] | None) -> int:
    """Return the bytes of checked headers; -1 without any.

    >>> header_size([("trace", b"1f"), ("none", None)]), header_size(None)
    (11, -1)
    """
    if not pairs:
        return -1
    size = 0
    for name, data in pairs:
        size += (len(name) if name.isascii() else len(name.encode())) + (len(data) if data else 0)
    return size


def checked_records(records: object) -> list[Any]:
    """Return records for `send_many()` as a list."""
    if type(records) is list:
        return records
    if isinstance(records, (str, bytes, bytearray, memoryview, Mapping)) or not isinstance(records, Iterable):
        raise TypeError(
            "send_many() takes an iterable of records, each a value or a tuple "
            f"(key, value[, headers[, partition[, timestamp_ms]]]), not {type(records).__name__}"
        )
    return list(records)


def checked_release(release: object) -> tuple[int, ...]:
    """Return a release of Kafka, which must be a tuple of numbers."""
    if not isinstance(release, tuple) or not all(isinstance(part, int) for part in release):
        raise TypeError(f"a release is a tuple of numbers, as in (0, 11), not {release!r}")
    return release


def checked_group(group: object) -> ConsumerGroupMetadata:
    """Return the group whose offsets are committed with a transaction."""
    if isinstance(group, str):
        group = ConsumerGroupMetadata(group)
    if not isinstance(group, ConsumerGroupMetadata):
        raise TypeError(
            f"group_metadata must be consumer.group_metadata() or the name of a group, not {type(group).__name__}"
        )
    if not group.group_id:
        raise IllegalArgumentError("group_metadata names no group: the consumer needs a group_id")
    if group.generation_id > 0 and not group.member_id:
        raise IllegalArgumentError("group_metadata has a generation but no member: take consumer.group_metadata()")
    return group


def _offsets_partition(partition: Any) -> TopicPartition:
    try:
        topic, number = partition
    except (TypeError, ValueError):
        raise TypeError(f"offsets are by TopicPartition, not {partition!r}") from None
    check_topic(topic)
    number = checked_partition(number)
    if number < 0:
        raise IllegalArgumentError(f"the number of a partition must not be negative: {partition!r}")
    return TopicPartition(topic, number)


def _checked_offset(offset: object) -> OffsetAndMetadata:
    if isinstance(offset, int):
        found = OffsetAndMetadata(offset, "", -1)
    elif isinstance(offset, tuple) and 1 <= len(offset) <= len(OffsetAndMetadata._fields):
        found = OffsetAndMetadata(*offset)
    else:
        raise TypeError(f"an offset is a number or an OffsetAndMetadata, not {offset!r}")
    if not isinstance(found.offset, int) or not isinstance(found.metadata or "", str):
        raise TypeError(f"an OffsetAndMetadata has a number and a str, not {offset!r}")
    if found.offset < 0:
        raise IllegalArgumentError(f"offsets must not be negative: {offset}")
    return found


def checked_offsets(offsets: object) -> dict[TopicPartition, OffsetAndMetadata]:
    """Return the offsets that are committed with a transaction."""
    if not isinstance(offsets, Mapping):
        raise TypeError(f"offsets must be a dict of offsets by TopicPartition, not {type(offsets).__name__}")
    return {_offsets_partition(where): _checked_offset(offset) for where, offset in offsets.items()}


# Names that other clients have…


class _Elsewhere:
    """A method of another client. (`__getattr__` would slow each access to an attribute in `send()` down.)"""

    def __init__(self, name: str, use: str) -> None:
        self._name = name
        self._use = use

    def __get__(self, held: object, kind: type) -> NoReturn:
        text = f"{kind.__name__!r} object has no attribute {self._name!r}: use {self._use}"
        raise AttributeError(text, name=self._name, obj=held)


def point_elsewhere(kind: type, uses: Mapping[str, str]) -> None:
    """Have a class answer methods of other clients with the error that says what to use here.

    >>> class Client: ...
    >>> point_elsewhere(Client, {"stop": "close()"})
    >>> Client().stop()
    Traceback (most recent call last):
    AttributeError: 'Client' object has no attribute 'stop': use close()
    """
    for name, use in uses.items():
        setattr(kind, name, _Elsewhere(name, use))
