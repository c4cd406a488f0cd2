"""What filters leave to be read: never less than the rows that pass them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.spark.batch_reader import KafkaPartition, RangeReader
from kafka.spark.filters import Condition, condition_of, narrowed
from kafka.spark.offset_ranges import OffsetRange
from kafka.spark.options import SourceOptions
from kafka.structs import TopicPartition

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
WHOLE = [OffsetRange("a", 0, 0, 10), OffsetRange("a", 1, 0, 10), OffsetRange("b", 0, 5, 20)]


def at(millis: float) -> datetime:
    return EPOCH + timedelta(milliseconds=millis)


def unasked(wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
    raise AssertionError("no time had to be looked up")


def left(*conditions: Condition) -> list[tuple[str, int, int, int]]:
    return [tuple(each) for each in narrowed(WHOLE, conditions, unasked)]


# What is left out.


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (Condition("partition", "EqualTo", 1), [("a", 1, 0, 10)]),
        (Condition("partition", "EqualTo", 1, negated=True), [("a", 0, 0, 10), ("b", 0, 5, 20)]),
        (Condition("partition", "In", [1, 7, None]), WHOLE),
        (Condition("partition", "In", [1, 7]), [("a", 1, 0, 10)]),
        (Condition("partition", "GreaterThan", 0), [("a", 1, 0, 10)]),
        (Condition("topic", "EqualTo", "b"), [("b", 0, 5, 20)]),
        (Condition("topic", "StringStartsWith", "b"), [("b", 0, 5, 20)]),
        (Condition("topic", "In", ["b", "c"], negated=True), [("a", 0, 0, 10), ("a", 1, 0, 10)]),
        (Condition("topic", "IsNull"), []),
        (Condition("topic", "IsNotNull"), WHOLE),
        (Condition("topic", "EqualTo", None), WHOLE),
        (Condition("offset", "EqualTo", 12), [("b", 0, 12, 13)]),
        (Condition("offset", "GreaterThanOrEqual", 8), [("a", 0, 8, 10), ("a", 1, 8, 10), ("b", 0, 8, 20)]),
        (Condition("offset", "LessThan", 6), [("a", 0, 0, 6), ("a", 1, 0, 6), ("b", 0, 5, 6)]),
        (Condition("offset", "In", [12, 14]), [("b", 0, 12, 15)]),
        (Condition("offset", "LessThan", 5, negated=True), WHOLE),
        (Condition("offset", "GreaterThan", 100), []),
        (Condition("value", "EqualTo", b"x"), WHOLE),
        (Condition("timestamp", "LessThan", at(5)), WHOLE),
        (Condition("timestamp", "GreaterThan", at(-5)), WHOLE),
    ],
)
def test_a_filter_leaves_out_what_cannot_pass_it(condition: Condition, expected: Sequence[Any]) -> None:
    assert left(condition) == [tuple(each) for each in expected]


def test_filters_hold_together() -> None:
    conditions = [
        Condition("topic", "EqualTo", "a"),
        Condition("partition", "EqualTo", 0),
        Condition("offset", "GreaterThan", 2),
        Condition("offset", "LessThanOrEqual", 4),
    ]
    assert left(*conditions) == [("a", 0, 3, 5)]


@pytest.mark.parametrize(
    ("kind", "value", "millis"),
    [
        ("GreaterThanOrEqual", at(7), 7),
        ("GreaterThanOrEqual", at(7.001), 8),
        ("GreaterThan", at(7), 8),
        ("EqualTo", at(7), 7),
        ("In", [at(9), at(7)], 7),
    ],
)
def test_late_records_before_the_first_one_are_left_out(kind: str, value: Any, millis: int) -> None:
    asked: list[set[int]] = []

    def first(wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        asked.append(set(wanted.values()))
        return {TopicPartition("a", 0): 6, TopicPartition("a", 1): None, TopicPartition("b", 0): 20}

    # No record as late in a-1, says a broker, which may have overlooked some; that is left to Spark.
    found = narrowed(WHOLE, [Condition("timestamp", kind, value)], first)
    assert found == [OffsetRange("a", 0, 6, 10), OffsetRange("a", 1, 0, 10)]
    assert asked == [{millis}]


def test_a_time_without_a_zone_is_left_to_spark() -> None:
    assert left(Condition("timestamp", "GreaterThan", datetime(2026, 1, 1))) == [tuple(each) for each in WHOLE]


# The rows are the same.


class Row(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp: datetime


@st.composite
def logs(draw: st.DrawFn) -> list[Row]:
    """Return records with holes between their offsets, and timestamps in any order."""
    rows = []
    for topic, partition in [("a", 0), ("a", 1), ("b", 0)]:
        offsets = draw(st.lists(st.integers(0, 20), unique=True, max_size=12).map(sorted))
        rows += [Row(topic, partition, offset, at(draw(st.integers(0, 9)))) for offset in offsets]
    return rows


VALUES: dict[str, st.SearchStrategy[Any]] = {
    "topic": st.sampled_from(["a", "b", "c", ""]),
    "partition": st.integers(-1, 3),
    "offset": st.integers(-2, 22),
    "timestamp": st.floats(-2, 11, width=16).map(at),
}
COMPARISONS = ["EqualTo", "EqualNullSafe", "GreaterThan", "GreaterThanOrEqual", "LessThan", "LessThanOrEqual"]


@st.composite
def conditions(draw: st.DrawFn) -> Condition:
    column = draw(st.sampled_from(sorted(VALUES)))
    kind = draw(st.sampled_from([*COMPARISONS, "In", "IsNull", "IsNotNull"]))
    value = VALUES[column] | st.none()
    drawn = draw(st.lists(value, max_size=3)) if kind == "In" else draw(value)
    return Condition(column, kind, drawn, draw(st.booleans()))


def passes(row: Row, condition: Condition) -> bool:
    """Say what SQL says; what is null does not pass."""
    value, given = getattr(row, condition.column), condition.value
    found: bool | None
    if condition.kind in {"IsNull", "IsNotNull"}:
        found = condition.kind == "IsNotNull"
    elif condition.kind == "In":
        found = True if value in given else None if None in given else False
    elif given is None:
        found = False if condition.kind == "EqualNullSafe" else None
    else:
        index = COMPARISONS.index(condition.kind)
        found = [value == given, value == given, value > given, value >= given, value < given, value <= given][index]
    return found is not None and found is not condition.negated


@given(logs(), st.lists(conditions(), max_size=4))
def test_the_rows_that_pass_are_among_what_is_read(rows: list[Row], filters: list[Condition]) -> None:
    ranges = [OffsetRange(topic, partition, 0, 21) for topic, partition in [("a", 0), ("a", 1), ("b", 0)]]

    def first(wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        def find(tp: TopicPartition, millis: int) -> Iterator[int]:
            return (row.offset for row in rows if row[:2] == tp and row.timestamp >= at(millis))

        return {tp: next(find(tp, millis), None) for tp, millis in wanted.items()}

    read = {
        (each.topic, each.partition, offset)
        for each in narrowed(ranges, filters, first)
        for offset in range(each.start, each.end)
    }
    assert read <= {(each.topic, each.partition, offset) for each in ranges for offset in range(21)}
    assert {row[:3] for row in rows if all(passes(row, each) for each in filters)} <= read


# What Spark gives, and the option.


class EqualTo(SimpleNamespace):
    pass


class Not(SimpleNamespace):
    pass


def test_filters_of_spark_are_known_by_their_names() -> None:
    one = EqualTo(attribute=("partition",), value=3)
    assert condition_of(one) == Condition("partition", "EqualTo", 3)
    assert condition_of(Not(child=one)) == Condition("partition", "EqualTo", 3, negated=True)
    assert condition_of(EqualTo(attribute=("headers", "key"), value="x")) is None


def test_filters_are_pushed_down_only_when_asked() -> None:
    base = {"kafka.bootstrap.servers": "b", "subscribe": "a"}
    assert not SourceOptions.parse(base, streaming=False).pushdown
    assert SourceOptions.parse({**base, "filterPushdown": "true"}, streaming=False).pushdown


def test_a_plan_that_a_second_query_reads_is_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Context:
        """A task of the query that runs."""

        query = "1"

        @classmethod
        def get(cls) -> type[Context]:
            return cls

        @classmethod
        def getLocalProperty(cls, name: str) -> str:
            assert name == "spark.sql.execution.id"
            return cls.query

    monkeypatch.setattr("pyspark.TaskContext", Context)
    monkeypatch.setattr("kafka.spark.batch_reader._executions", {})
    first, other = KafkaPartition((), "14:03:12 a"), KafkaPartition((), "14:03:13 b")
    reader = RangeReader(
        SourceOptions.parse({"kafka.bootstrap.servers": "b:9092", "subscribe": "a"}, streaming=False), ["value"]
    )
    for partition in (first, first, other, KafkaPartition(())):
        assert list(reader.read(partition)) == []
    assert caplog.messages == [], "the tasks of one query, also if it reads the frame twice"
    Context.query = "2"
    for partition in (first, first, KafkaPartition(())):
        assert list(reader.read(partition)) == []
    (said,) = caplog.messages
    assert said.startswith("A frame that was planned at 14:03:12 is read again: it has the records up to then")
