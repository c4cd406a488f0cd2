"""What a batch reads: splits, limits, bounds, and what is said about lost data."""

from __future__ import annotations

import logging
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.errors import IllegalStateError, UnknownTopicOrPartitionError
from kafka.spark.errors import KafkaDataLossError, KafkaSparkOptionError
from kafka.spark.offset_ranges import MinOffsetsGate, OffsetRange, group, limited, split
from kafka.spark.offsets import LATEST, Offsets, from_nested, to_json, to_nested
from kafka.spark.options import SourceOptions
from kafka.spark.planning import DataLoss, batch_ranges, find_bound, stream_ranges, tasks
from kafka.structs import TopicPartition
from test.unit.spark.fakes import FakeCluster

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


def options(streaming: bool = False, **more: str) -> SourceOptions:
    return SourceOptions.parse({"kafka.bootstrap.servers": "b", "subscribe": "a", **more}, streaming=streaming)


def ranges(*sizes: int) -> list[OffsetRange]:
    return [OffsetRange("t", at, 1, 1 + size) for at, size in enumerate(sizes)]


# Splitting.


@pytest.mark.parametrize(
    ("sizes", "least", "parts"),
    [
        ((5, 5), None, [5, 5]),
        ((5, 5), 2, [5, 5]),
        ((5,), 3, [1, 2, 2]),
        ((10, 0, 10), 3, [5, 5, 5, 5]),
        ((1, 100), 10, [1, *([11] * 8), 12]),
        ((1, 1, 1, 97), 4, [1, 1, 1, 97]),
    ],
)
def test_min_partitions_cuts_what_is_large(sizes: tuple[int, ...], least: int | None, parts: list[int]) -> None:
    assert [part.size for part in split(ranges(*sizes), min_partitions=least)] == parts


def test_max_records_cuts_into_equal_parts() -> None:
    assert [part.size for part in split(ranges(10, 3), max_records=4)] == [3, 3, 4, 3]


@given(
    st.lists(st.integers(0, 500), max_size=6),
    st.none() | st.integers(1, 40),
    st.none() | st.integers(1, 100),
)
def test_a_split_covers_every_offset_once(sizes: list[int], least: int | None, most: int | None) -> None:
    found = split(ranges(*sizes), min_partitions=least, max_records=most)
    assert sorted((p.partition, o) for p in found for o in range(p.start, p.end)) == [
        (at, o) for at, size in enumerate(sizes) for o in range(1, 1 + size)
    ]
    assert all(part.size > 0 for part in found)
    if most is not None:
        assert all(part.size <= most for part in found)
    grouped = group(found, 50)
    assert [part for each in grouped for part in each] == found
    assert all(len(each) == 1 or sum(part.size for part in each) <= 50 for each in grouped)


def test_small_ranges_share_a_task_unless_parts_were_asked_for() -> None:
    assert len(tasks(ranges(5, 5, 20_000), options())) == 2
    assert len(tasks(ranges(5, 5, 20_000), options(minPartitions="2"))) == 3
    assert len(tasks(ranges(5, 5, 20_000), options(rowsPerTask="0"))) == 3


# Limits.


@given(st.integers(1, 1000), st.lists(st.tuples(st.integers(0, 100), st.integers(0, 1000)), min_size=1, max_size=8))
def test_a_limit_moves_every_backlog_and_passes_no_end(limit: int, logs: list[tuple[int, int]]) -> None:
    start = {TopicPartition("t", at): begin for at, (begin, _) in enumerate(logs)}
    end = {TopicPartition("t", at): begin + size for at, (begin, size) in enumerate(logs)}
    found = limited(limit, start, end)
    taken = {tp: found[tp] - start[tp] for tp in start}
    assert all(0 <= taken[tp] <= end[tp] - start[tp] for tp in start)
    assert all(taken[tp] > 0 for tp in start if end[tp] > start[tp])
    assert sum(taken.values()) <= limit + len(logs)


def test_too_little_waits_until_the_delay_is_over() -> None:
    now = [0.0]
    gate = MinOffsetsGate(10, 60.0, lambda: now[0])
    assert not gate.holds_back({A0: 0}, {A0: 1})
    assert gate.holds_back({A0: 1}, {A0: 2})
    now[0] = 60.0
    assert not gate.holds_back({A0: 1}, {A0: 2})


# Offsets as JSON.


@given(st.dictionaries(st.tuples(st.sampled_from(["b", "a", "c.d"]), st.integers(0, 30)), st.integers(0, 2**62)))
def test_offsets_survive_json_and_equal_ones_are_equal_text(numbers: dict[tuple[str, int], int]) -> None:
    offsets = {TopicPartition(*tp): offset for tp, offset in numbers.items()}
    assert from_nested(to_nested(offsets)) == offsets
    assert to_json(dict(reversed(offsets.items()))) == to_json(offsets)


# Bounds.


def test_offsets_of_an_option_have_to_name_every_partition() -> None:
    cluster = FakeCluster({A0: (0, 5), A1: (0, 5)})
    chosen = options(startingOffsets='{"a":{"0":-2}}')
    with pytest.raises(
        KafkaSparkOptionError, match=r"Use -1 for latest, -2 for earliest. Specified: a-0. Assigned: a-0, a-1"
    ):
        find_bound(cluster, chosen.start, chosen, starting=True)


def test_edges_among_offsets_are_looked_up() -> None:
    cluster = FakeCluster({A0: (2, 5), A1: (3, 9)})
    chosen = options(streaming=True, startingOffsets='{"a":{"0":-2,"1":-1}}')
    assert find_bound(cluster, chosen.start, chosen, starting=True) == {A0: 2, A1: 9}


def test_a_starting_time_without_a_record_is_an_error_or_the_latest() -> None:
    cluster = FakeCluster({A0: (0, 5), A1: (0, 7)}, {A0: 3})
    strict = options(startingTimestamp="5")
    with pytest.raises(KafkaSparkOptionError, match="No offset matched from request of topic-partition a-1"):
        find_bound(cluster, strict.start, strict, starting=True)
    lax = options(startingTimestamp="5", startingOffsetsByTimestampStrategy="latest")
    assert find_bound(cluster, lax.start, lax, starting=True) == {A0: 3, A1: 7}
    ending = options(endingTimestamp="5")
    assert find_bound(cluster, ending.end, ending, starting=False) == {A0: 3, A1: 7}


def test_edges_that_cross_are_refused() -> None:
    cluster = FakeCluster({A0: (0, 5)})
    crossed = options(startingOffsets='{"a":{"0":4}}', endingOffsets='{"a":{"0":3}}')
    with pytest.raises(KafkaSparkOptionError, match="UNRESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET"):
        batch_ranges(cluster, crossed)
    late = options(startingOffsets='{"a":{"0":9}}', endingOffsets='{"a":{"0":-1}}')
    with pytest.raises(KafkaSparkOptionError, match=r"\[RESOLVED_START_OFFSET_GREATER_THAN_END_OFFSET"):
        batch_ranges(cluster, late)


@pytest.mark.parametrize(
    "edges",
    [
        {"startingOffsets": '{"a":{"0":9}}'},
        {"startingTimestamp": "3", "endingOffsets": '{"a":{"0":3}}'},
        {"endingOffsets": '{"a":{"0":1}}'},
    ],
)
def test_edges_that_turn_out_to_cross_are_refused_with_advice(edges: dict[str, str]) -> None:
    cluster = FakeCluster({A0: (2, 5)}, {A0: 4})
    with pytest.raises(KafkaSparkOptionError, match=r"\[RESOLVED_START_.*1\. Check whether start offset is set beyond"):
        batch_ranges(cluster, options(False, **edges))


class Shrinking(FakeCluster):
    """A cluster in which a partition vanishes when the earliest offsets have been asked for."""

    def everywhere(self, edge: int) -> Offsets:
        found = super().everywhere(edge)
        self.all.pop(A1, None)
        return found


def test_the_edges_of_a_batch_are_of_the_same_partitions() -> None:
    cluster = Shrinking({A0: (0, 5), A1: (0, 5)})
    with pytest.raises(IllegalStateError, match=r"offsets topics\[a-0, a-1\] and ending offsets topics\[a-0\]"):
        batch_ranges(cluster, options())


def test_a_start_that_is_not_found_is_not_an_offset() -> None:
    class Deleted(FakeCluster):
        def edges(self, _wanted: Mapping[TopicPartition, int]) -> Offsets:
            return {}

        def at_times(self, _wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
            return {}

    for start in ({"startingOffsets": '{"a":{"0":-1}}'}, {"startingTimestamp": "5"}):
        chosen = options(True, **start)
        with pytest.raises(UnknownTopicOrPartitionError, match="the offsets of a-0 cannot be found"):
            find_bound(Deleted({A0: (0, 5)}), chosen.start, chosen, starting=True)


def test_a_batch_reads_from_the_earliest_to_the_latest() -> None:
    assert batch_ranges(FakeCluster({A0: (2, 5), A1: (0, 0)}), options()) == [("a", 0, 2, 5), ("a", 1, 0, 0)]


# Data loss.


@pytest.mark.parametrize(
    ("start", "end", "edges", "condition", "instead", "left"),
    [
        (
            {A0: 0},
            {A0: 5, A1: 3},
            {A0: (0, 5), A1: (1, 3)},
            "ADDED_PARTITION_DOES_NOT_START",
            "skipped 1 offsets of a-1, starting at 1",
            {A0: 5, A1: 2},
        ),
        ({A0: 0}, {A0: 5, A1: 3}, {A0: (0, 5)}, "INITIAL_OFFSET_NOT_FOUND", "continuing without a-1", {A0: 5}),
        ({A0: 0, A1: 0}, {A0: 5}, {A0: (0, 5)}, "PARTITIONS_DELETED", "continuing without a-1", {A0: 5}),
        (
            {A0: 7},
            {A0: 5},
            {A0: (0, 5)},
            "PARTITION_OFFSET_CHANGED",
            "this batch reads nothing of a-0, the next one continues at 5",
            {},
        ),
    ],
)
def test_lost_data_fails_the_query_or_is_logged(
    start: Offsets,
    end: Offsets,
    edges: dict[TopicPartition, tuple[int, int]],
    condition: str,
    instead: str,
    left: Offsets,
    caplog: pytest.LogCaptureFixture,
) -> None:
    with pytest.raises(KafkaDataLossError, match=condition) as caught:
        stream_ranges(FakeCluster(edges), start, end, DataLoss(fail=True))
    assert "set the source option failOnDataLoss to false" in str(caught.value)
    with caplog.at_level(logging.WARNING):
        found = stream_ranges(FakeCluster(edges), start, end, DataLoss(fail=False))
    assert condition in caplog.text
    assert f"failOnDataLoss is false: {instead}\n" in caplog.text
    assert "set the source option" not in caplog.text  # it is set
    assert {part.tp: part.size for part in split(found)} == left


def test_a_partition_that_is_new_begins_at_its_earliest_offset() -> None:
    found = stream_ranges(FakeCluster({A0: (0, 5), A1: (0, 3)}), {A0: 4}, {A0: 5, A1: 3}, DataLoss(fail=True))
    assert found == [("a", 0, 4, 5), ("a", 1, 0, 3)]
    assert LATEST == -1
