"""Metrics as OpenTelemetry's protocol has them (OTLP 1.x, ``MetricsData``), which is what brokers take (KIP-714).

Enough of protobuf to write them; the numbers of fields are those of ``opentelemetry/proto/metrics/v1/metrics.proto``.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

__all__ = ["CUMULATIVE", "DELTA", "Point", "encode_metrics"]

DELTA: Final = 1
CUMULATIVE: Final = 2
_FIXED64, _BYTES = 1, 2
_TIMES: Final = struct.Struct("<Q")
_DOUBLE: Final = struct.Struct("<d")


class Point(NamedTuple):
    """One value of a metric: a gauge, or a sum that only grows since `start_ns`."""

    name: str
    value: float
    labels: Mapping[str, str]
    start_ns: int
    is_sum: bool


def encode_metrics(
    points: Iterable[Point], time_ns: int, *, temporality: int, resource: Mapping[str, str], scope: tuple[str, str]
) -> bytes:
    """Return the bytes of a ``MetricsData`` with one resource; `scope` is the name and the version of the library.

    >>> encode_metrics([], 0, temporality=DELTA, resource={}, scope=("purekafka", "1.0"))
    b''
    >>> point = Point("org.apache.kafka.producer.record.send.total", 7.0, {}, 0, True)
    >>> len(encode_metrics([point], 1, temporality=CUMULATIVE, resource={"group_id": "g"}, scope=("purekafka", "1.0")))
    127
    """
    metrics = b"".join(_bytes(2, _metric(point, time_ns, temporality)) for point in points)
    if not metrics:
        return b""
    name, version = scope
    scoped = _bytes(1, _text(1, name) + _text(2, version)) + metrics
    return _bytes(1, _bytes(1, _attributes(1, resource)) + _bytes(2, scoped))


def _metric(point: Point, time_ns: int, temporality: int) -> bytes:
    data = (
        _attributes(7, point.labels)
        + _key(2, _FIXED64)
        + _TIMES.pack(point.start_ns)
        + _key(3, _FIXED64)
        + _TIMES.pack(time_ns)
        + _key(4, _FIXED64)
        + _DOUBLE.pack(point.value)
    )
    points = _bytes(1, data)
    if not point.is_sum:
        return _text(1, point.name) + _bytes(5, points)
    return _text(1, point.name) + _bytes(7, points + bytes((2 << 3, temporality, 3 << 3, 1)))


def _attributes(field: int, attributes: Mapping[str, str]) -> bytes:
    return b"".join(_bytes(field, _text(1, key) + _bytes(2, _text(1, value))) for key, value in attributes.items())


def _key(field: int, kind: int) -> bytes:
    return bytes((field << 3 | kind,))


def _text(field: int, text: str) -> bytes:
    return _bytes(field, text.encode())


def _bytes(field: int, data: bytes) -> bytes:
    size = len(data)
    prefix = bytearray((field << 3 | _BYTES,))
    while size > 0x7F:
        prefix.append(size & 0x7F | 0x80)
        size >>= 7
    prefix.append(size)
    return bytes(prefix) + data
