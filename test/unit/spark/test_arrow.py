"""What becomes of records on their way into Spark's columns."""

from __future__ import annotations

from array import array

import pytest

from kafka.errors import CorruptRecordError
from kafka.record.columns import BinaryColumn, Columns, HeaderColumn
from kafka.spark.arrow import batch_of
from kafka.structs import TopicPartition

EVENTS = TopicPartition("events", 3)
_LAST_MILLISECOND = (2**63 - 1) // 1000


def columns_at(*timestamps: int) -> Columns:
    count = len(timestamps)
    values = BinaryColumn.from_values([b"v"] * count)
    offsets, kinds = array("q", range(7, 7 + count)), array("b", bytes(count))
    return Columns(offsets, array("q", timestamps), kinds, values, values, HeaderColumn.none(count))


@pytest.mark.parametrize("beyond", [_LAST_MILLISECOND + 1, -_LAST_MILLISECOND - 1, 2**63 - 1, -(2**63)])
def test_a_timestamp_that_spark_cannot_hold_is_reported_with_the_record_and_the_likely_cause(beyond: int) -> None:
    with pytest.raises(CorruptRecordError) as caught:
        batch_of(columns_at(5, beyond), EVENTS, 100, ["timestamp"])
    said = str(caught.value)
    assert "[KAFKA_MALFORMED_RECORD_TIMESTAMP] Record at topic events partition 3 offset 8 has timestamp" in said
    assert f"value {beyond} that overflows when converting to Spark's microsecond-precision TimestampType." in said
    assert "milliseconds" in said
    assert (caught.value.topic_partition, caught.value.offset) == (EVENTS, 8)


def test_a_timestamp_behind_the_end_of_the_range_is_nobodys_business() -> None:
    assert batch_of(columns_at(5, 2**62), EVENTS, 8, ["offset", "timestamp"])["offset"].to_pylist() == [7]


def test_the_outermost_timestamps_are_kept() -> None:
    batch = batch_of(columns_at(_LAST_MILLISECOND, -_LAST_MILLISECOND), EVENTS, 100, ["timestamp"])
    assert batch["timestamp"].cast("int64").to_pylist() == [_LAST_MILLISECOND * 1000, -_LAST_MILLISECOND * 1000]
