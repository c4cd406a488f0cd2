"""Metrics in OpenTelemetry's protocol: its official classes read what is written, and hostile bytes are refused."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest

from kafka.errors import KafkaProtocolError
from kafka.protocol.otlp import CUMULATIVE, DELTA, Point, decode_metrics, encode_metrics

official = pytest.importorskip("opentelemetry.proto.metrics.v1.metrics_pb2", reason="pip install opentelemetry-proto")

NAME = "org.apache.kafka.producer."
POINTS = [
    Point(f"{NAME}record.send.total", 7.0, {}, 1, True),
    Point(f"{NAME}node.request.latency.avg", 1.5, {"node_id": "node-1"}, 0, False),
    Point(f"{NAME}node.request.latency.avg", -2.5, {"node_id": "node-ä" * 40}, 0, False),
]
RESOURCE = {"group_id": "g" * 200, "transactional_id": "tx"}


def encoded(temporality: int = DELTA) -> bytes:
    return encode_metrics(POINTS, 99, temporality=temporality, resource=RESOURCE, scope=("purekafka", "1.2.3"))


@pytest.mark.parametrize("temporality", [DELTA, CUMULATIVE])
def test_the_official_classes_read_the_same(temporality: int) -> None:
    data = encoded(temporality)
    parsed: Any = official.MetricsData.FromString(data)
    assert len(parsed.SerializeToString()) == len(data)
    (resource,) = parsed.resource_metrics
    assert {one.key: one.value.string_value for one in resource.resource.attributes} == RESOURCE
    (scope,) = resource.scope_metrics
    assert (scope.scope.name, scope.scope.version) == ("purekafka", "1.2.3")
    total, first, second = scope.metrics
    assert (total.name, total.WhichOneof("data"), total.sum.is_monotonic) == (POINTS[0].name, "sum", True)
    assert total.sum.aggregation_temporality == temporality
    (point,) = total.sum.data_points
    assert (point.as_double, point.start_time_unix_nano, point.time_unix_nano) == (7.0, 1, 99)
    for metric, expected in ((first, POINTS[1]), (second, POINTS[2])):
        (point,) = metric.gauge.data_points
        assert point.as_double == expected.value
        assert {one.key: one.value.string_value for one in point.attributes} == expected.labels


def test_written_values_are_read_back() -> None:
    assert decode_metrics(encoded()) == (POINTS, RESOURCE, True)
    assert not decode_metrics(encoded(CUMULATIVE)).is_delta
    assert decode_metrics(b"") == ([], {}, False)


def test_what_java_writes_is_read() -> None:
    """One resource for each metric, whole numbers, NaN, attributes that are numbers, and more fields."""
    data: Any = official.MetricsData()
    metric = data.resource_metrics.add().scope_metrics.add().metrics.add(name="a", description="d", unit="ms")
    point = metric.sum.data_points.add(as_int=-5, start_time_unix_nano=3, flags=1)
    point.attributes.add(key="n").value.int_value = 8
    other = data.resource_metrics.add().scope_metrics.add().metrics.add(name="b")
    other.gauge.data_points.add(as_double=float("nan"))
    other.histogram.SetInParent()
    found = decode_metrics(data.SerializeToString())
    assert found.points[0] == Point("a", -5, {"n": "8"}, 3, True)


def test_hostile_bytes_raise_the_library_s_error() -> None:
    rng = random.Random(7)
    data = encoded()
    for size in range(0, len(data), 7):
        _decode(data[:size])
    for _ in range(500):
        broken = bytearray(data)
        for _ in range(rng.randint(1, 8)):
            broken[rng.randrange(len(broken))] = rng.randrange(256)
        _decode(bytes(broken))
    with pytest.raises(KafkaProtocolError, match="not metrics"):
        decode_metrics(b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff")


def _decode(data: bytes) -> None:
    with suppress(KafkaProtocolError):
        decode_metrics(data)
