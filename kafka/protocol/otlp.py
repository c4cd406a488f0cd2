"""Metrics as OpenTelemetry's protocol has them (OTLP 1.x, ``MetricsData``), which is what brokers take (KIP-714).

Enough of protobuf to write them; the numbers of fields are from ``opentelemetry/proto/metrics/v1/metrics.proto``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from kafka.errors import KafkaProtocolError

__all__ = ["CUMULATIVE", "DELTA", "MetricsData", "Point", "decode_metrics", "encode_metrics"]

DELTA: Final = 1
CUMULATIVE: Final = 2
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_INT: Final = struct.Struct("<q")
_TIMES: Final = struct.Struct("<Q")
_DOUBLE: Final = struct.Struct("<d")
# The end of a point: its times and its value, each behind its key.
_GAUGE: Final = struct.Struct("<BQBd")
_SUM: Final = struct.Struct("<BQBQBd")
_START_KEY, _TIME_KEY, _VALUE_KEY = (field << 3 | _FIXED64 for field in (2, 3, 4))
# Metrics whose bytes before the end are kept: a client in a cluster of 100 brokers has a thousand.
_MOST_METRICS: Final = 2000


class Point(NamedTuple):
    """One value of a metric: a gauge, or a sum that only grows since `start_ns`."""

    name: str
    value: float
    labels: Mapping[str, str]
    start_ns: int
    is_sum: bool


class MetricsData(NamedTuple):
    """What `decode_metrics` reads: values, the attributes of their resources, whether sums are since the last push."""

    points: list[Point]
    resource: dict[str, str]
    is_delta: bool


def encode_metrics(
    points: Iterable[Point], time_ns: int, *, temporality: int, resource: Mapping[str, str], scope: tuple[str, str]
) -> bytes:
    """Return the bytes of a ``MetricsData`` with one resource; `scope` is the name and the version of the library.

    >>> encode_metrics([], 0, temporality=DELTA, resource={}, scope=("purekafka", "1.0"))
    b''
    >>> point = Point("org.apache.kafka.producer.record.send.total", 7.0, {}, 0, True)
    >>> len(encode_metrics([point], 1, temporality=CUMULATIVE, resource={"group_id": "g"}, scope=("purekafka", "1.0")))
    114
    """
    parts = []
    tail = bytes((2 << 3, temporality, 3 << 3, 1))  # of a sum: that it only grows
    for name, value, labels, start_ns, is_sum in points:
        parts.append(_before(name, tuple(labels.items()), bool(start_ns), is_sum))
        if start_ns:
            parts.append(_SUM.pack(_START_KEY, start_ns, _TIME_KEY, time_ns, _VALUE_KEY, value))
        else:
            parts.append(_GAUGE.pack(_TIME_KEY, time_ns, _VALUE_KEY, value))
        if is_sum:
            parts.append(tail)
    if not parts:
        return b""
    name, version = scope
    scoped = _bytes(1, _text(1, name) + _text(2, version)) + b"".join(parts)
    return _bytes(1, _bytes(1, _attributes(1, resource.items())) + _bytes(2, scoped))


@lru_cache(_MOST_METRICS)
def _before(name: str, labels: tuple[tuple[str, str], ...], has_start: bool, is_sum: bool) -> bytes:
    """Return a metric up to its times and its value: these have one size, so that each push has the same bytes here."""
    attributes = _attributes(7, labels)
    end = (_SUM if has_start else _GAUGE).size
    point = _head(1, len(attributes) + end)
    of_kind = _head(7 if is_sum else 5, len(point) + len(attributes) + end + (4 if is_sum else 0))
    metric = _text(1, name) + of_kind + point + attributes
    return _head(2, len(metric) + end + (4 if is_sum else 0)) + metric


def _attributes(field: int, attributes: Iterable[tuple[str, str]]) -> bytes:
    return b"".join(_bytes(field, _text(1, key) + _bytes(2, _text(1, value))) for key, value in attributes)


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode())


def _bytes(field: int, data: bytes) -> bytes:
    return _head(field, len(data)) + data


def _head(field: int, size: int) -> bytes:
    """Return the key and the size of a field of bytes."""
    head = bytearray((field << 3 | _BYTES,))
    while size > 0x7F:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    head.append(size)
    return bytes(head)


# Reading…


def decode_metrics(data: bytes) -> MetricsData:
    """Read a ``MetricsData`` of any library: its gauges and sums. Raise KafkaProtocolError for other bytes.

    >>> point = Point("a", 7.0, {"node_id": "node-1"}, 0, False)
    >>> data = encode_metrics([point], 1, temporality=DELTA, resource={"group_id": "g"}, scope=("purekafka", "1.0"))
    >>> found = decode_metrics(data)
    >>> found.points == [point], found.resource
    (True, {'group_id': 'g'})
    """
    try:
        return _decoded(data)
    except (LookupError, struct.error, UnicodeDecodeError, AttributeError, TypeError, ValueError) as error:
        raise KafkaProtocolError(f"these are not metrics of OpenTelemetry's protocol: {error}") from error


def _decoded(data: bytes) -> MetricsData:
    found = MetricsData([], {}, False)
    is_delta = False
    for _, of_resource in _fields(data):
        for field, part in _fields(of_resource):
            if field == 1:
                found.resource.update(_read_attributes(part, 1))
            elif field == 2:
                for kind, metric in _fields(part):
                    if kind == 2:
                        is_delta = _read_metric(metric, found.points) or is_delta
    return found._replace(is_delta=is_delta)


def _read_metric(data: bytes, points: list[Point]) -> bool:
    """Add the points of a metric; return whether they are since the last push."""
    name, is_delta = "", False
    for field, part in _fields(data):
        if field == 1:
            name = part.decode()
        elif field in {5, 7}:
            parts = list(_fields(part))
            is_sum = field == 7
            is_delta = is_sum and (2, DELTA) in parts
            points += [_read_point(name, one, is_sum) for number, one in parts if number == 1]
    return is_delta


def _read_point(name: str, data: bytes, is_sum: bool) -> Point:
    value, start = 0.0, 0
    for field, part in _fields(data):
        if field == 2:
            (start,) = _TIMES.unpack(part)
        elif field == 4:
            (value,) = _DOUBLE.unpack(part)
        elif field == 6:
            (value,) = _INT.unpack(part)
    return Point(name, value, _read_attributes(data, 7), start, is_sum)


def _read_attributes(data: bytes, field: int) -> dict[str, str]:
    found = {}
    for number, pair in _fields(data):
        if number == field:
            parts = dict(_fields(pair))
            values = dict(_fields(parts[2])) if 2 in parts else {}
            value = values.get(1, values.get(3, b""))
            found[parts[1].decode()] = value.decode() if isinstance(value, bytes) else str(value)
    return found


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """Go through the fields of a message: numbers of varints, bytes of all others."""
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        field, kind = key >> 3, key & 7
        if kind == _VARINT:
            value, at = _read_varint(data, at)
            yield field, value
            continue
        size = 8 if kind == _FIXED64 else 4
        if kind == _BYTES:
            size, at = _read_varint(data, at)
        elif kind not in {_FIXED64, _FIXED32}:
            raise ValueError(f"wire type {kind}")
        if at + size > len(data):
            raise ValueError("a field ends behind its message")
        yield field, data[at : at + size]
        at += size


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")
