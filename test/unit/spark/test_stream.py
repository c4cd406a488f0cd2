"""The streaming reader as Spark drives it: which offsets it names, and what its batches consist of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kafka.spark.errors import KafkaAvailableNowError, KafkaDataLossError
from kafka.spark.options import SourceOptions
from kafka.structs import TopicPartition
from test.unit.spark.fakes import FakeCluster

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'purekafka[spark]'")

A0, A1 = TopicPartition("a", 0), TopicPartition("a", 1)


class ReadMaxRows:
    """Spark's limit of that name, which is not in every release of it."""


class ReadAllAvailable:
    """Spark's limit of that name."""


SOME, ALL = ReadMaxRows(), ReadAllAvailable()


def reader(cluster: FakeCluster, **more: str) -> Any:
    """Return the reader for the Spark that is installed."""
    from kafka.spark.micro_batch_reader import stream_reader

    given = {"kafka.bootstrap.servers": "b", "subscribe": "a", "startingOffsets": "earliest"}
    given |= {name.replace("__", "."): value for name, value in more.items()}
    found: Any = stream_reader(SourceOptions.parse(given, streaming=True), ["value"])
    found._cluster = cluster
    return found


# The group of commitOffsetsToGroup.


def test_a_group_gets_what_a_batch_has_read_though_nothing_more_comes() -> None:
    cluster = FakeCluster({A0: (0, 50)})
    query = reader(cluster, commitOffsetsToGroup="g")
    start = query.initialOffset()
    end = query.latestOffset(start, ALL)
    assert cluster.commits == [], "nothing is read yet"
    assert query.latestOffset(end, ALL) == end
    assert cluster.commits == [("g", {A0: 50})]
    query.commit(end)
    assert query.latestOffset(end, ALL) == end
    assert len(cluster.commits) == 1, "what the group has is not committed again"


def test_releases_that_give_no_start_commit_the_batch_before() -> None:
    cluster = FakeCluster({A0: (0, 50)})
    query = reader(cluster, commitOffsetsToGroup="g")
    start, end = query.initialOffset(), query.latestOffset()
    query.partitions(start, end)
    assert cluster.commits == []
    cluster.append(5, A0)
    query.latestOffset()
    assert cluster.commits == [("g", {A0: 50})]


def test_a_commit_that_fails_is_tried_again_after_a_while() -> None:
    now = 0.0
    cluster = FakeCluster({A0: (0, 50)})
    cluster.commits_fail = True
    query = reader(cluster, commitOffsetsToGroup="g")
    query._clock = lambda: now
    end = query.latestOffset(query.initialOffset(), ALL)
    for _ in range(3):
        query.latestOffset(end, ALL)
    assert len(cluster.commits) == 1
    cluster.commits_fail, now = False, 6.0
    for _ in range(3):
        query.latestOffset(end, ALL)
    assert len(cluster.commits) == 2


# Holding.


@pytest.mark.parametrize("limit", [SOME, ALL])
def test_while_it_is_held_no_batch_begins(tmp_path: Path, limit: Any) -> None:
    hold = tmp_path / "hold"
    query = reader(FakeCluster({A0: (0, 50)}), holdFile=str(hold), maxOffsetsPerTrigger="10")
    start = {"a": {"0": 10}}
    assert query.latestOffset(start, limit) != start
    hold.touch()
    assert query.latestOffset(start, limit) == start
    hold.unlink()
    assert query.latestOffset(start, limit) != start


def test_releases_that_give_no_start_are_held_where_they_are(tmp_path: Path) -> None:
    hold = tmp_path / "hold"
    cluster = FakeCluster({A0: (3, 50)})
    query = reader(cluster, HOLDFILE=str(hold))
    hold.touch()
    assert query.latestOffset() == query.initialOffset() == {"a": {"0": 3}}
    hold.unlink()
    assert query.latestOffset() == {"a": {"0": 50}}
    cluster.append(10)
    hold.touch()
    assert query.latestOffset() == {"a": {"0": 50}}
    # Begun anew: Spark plans from the last batch's end to the same before it asks.
    query = reader(cluster, holdFile=str(hold))
    query.partitions({"a": {"0": 40}}, {"a": {"0": 40}})
    assert query.latestOffset() == {"a": {"0": 40}}


def test_all_that_is_available_is_held_too(tmp_path: Path) -> None:
    pytest.importorskip("pyspark.sql.streaming.datasource", reason="triggers are told from Spark 4.2 on")
    hold = tmp_path / "hold"
    query = reader(FakeCluster({A0: (0, 50)}), holdFile=str(hold))
    query.prepareForTriggerAvailableNow()
    hold.touch()
    assert query.latestOffset({"a": {"0": 10}}, ALL) == {"a": {"0": 10}}
    hold.unlink()
    assert query.latestOffset({"a": {"0": 10}}, ALL) == {"a": {"0": 50}}


# All that is available now.


@pytest.fixture
def admitting() -> None:
    pytest.importorskip("pyspark.sql.streaming.datasource", reason="triggers are told from Spark 4.2 on")


def nested(*offsets: int) -> dict[str, dict[str, int]]:
    return {"a": {str(number): offset for number, offset in enumerate(offsets)}}


@pytest.mark.usefixtures("admitting")
@pytest.mark.parametrize("start", [{}, {"startingTimestamp": "9", "startingOffsetsByTimestampStrategy": "latest"}])
def test_records_available_now_are_found_after_the_start_of_a_query(start: dict[str, str]) -> None:
    cluster = FakeCluster({A0: (0, 100)})
    query = reader(cluster, **{"startingOffsets": "latest", **start})
    query.prepareForTriggerAvailableNow()
    cluster.append(5)
    begin = query.initialOffset()
    assert begin == nested(105)
    assert query.latestOffset(begin, ALL) == begin  # where it starts is written down
    assert query.partitions(begin, begin) == []
    cluster.append(5)
    assert query.latestOffset(begin, ALL) == nested(110)
    cluster.append(5)
    assert query.partitions(begin, nested(110))[0].ranges == (("a", 0, 105, 110),)
    assert query.latestOffset(nested(110), ALL) == query.reportLatestOffset() == nested(110)


@pytest.mark.usefixtures("admitting")
@pytest.mark.parametrize(
    ("edges", "end", "condition"),
    [
        ({A0: (0, 9), A1: (0, 9)}, nested(9), "MISMATCHED_TOPIC_PARTITIONS_BETWEEN_END_OFFSET_AND_PREFETCHED"),
        ({A0: (0, 9), A1: (0, 9)}, nested(9, 10), "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_PREFETCHED"),
        ({A0: (0, 9)}, nested(9, 9), "LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW"),
        (
            {A0: (0, 9), A1: (0, 5)},
            nested(9, 9),
            "END_OFFSET_HAS_GREATER_OFFSET_FOR_TOPIC_PARTITION_THAN_LATEST_WITH_TRIGGER_AVAILABLENOW",
        ),
    ],
)
def test_available_records_must_exist_when_they_are_read(edges: Any, end: Any, condition: str) -> None:
    cluster = FakeCluster({A0: (0, 9), A1: (0, 9)})
    query = reader(cluster, failOnDataLoss="false")
    query.prepareForTriggerAvailableNow()
    assert query.latestOffset(nested(0, 0), ALL) == nested(9, 9)
    cluster.all = edges
    with pytest.raises(KafkaAvailableNowError, match=condition):
        query.partitions(nested(0, 0), end)


# Records that are gone.


def test_the_driver_says_what_a_batch_skips_and_plans_the_tasks_that_it_would(caplog: Any) -> None:
    cluster = FakeCluster({A0: (30, 100), A1: (0, 100)})
    query = reader(cluster, failOnDataLoss="false")
    planned = query.partitions(nested(10, 10), nested(90, 90))
    assert "failOnDataLoss is false: skipped 20 offsets of a-0, continuing at 30" in caplog.text
    assert "a-1" not in caplog.text
    cluster.all = {A0: (0, 100), A1: (0, 100)}
    whole = reader(cluster, failOnDataLoss="false").partitions(nested(10, 10), nested(90, 90))
    assert [each.ranges for each in planned] == [each.ranges for each in whole], "a repeated batch has equal tasks"
    caplog.clear()
    cluster.all = {A0: (0, 100), A1: (95, 100)}
    query.partitions(nested(10, 10), nested(90, 90))
    assert "skipped 80 offsets of a-1, continuing at 95" in caplog.text


def test_a_query_that_fails_on_lost_records_does_not_ask_where_partitions_begin() -> None:
    cluster = FakeCluster({A0: (30, 100)})
    cluster.edges = None  # type: ignore[assignment, method-assign]
    assert reader(cluster).partitions(nested(10), nested(90))


# Partitions that are gone.


def test_a_partition_that_is_gone_fails_a_query_before_it_is_written_down_without_it() -> None:
    cluster = FakeCluster({A0: (0, 9)})
    query = reader(cluster)
    with pytest.raises(KafkaDataLossError, match=r"PARTITIONS_DELETED\].*Partitions a-1 have been deleted"):
        query.latestOffset(nested(5, 5), SOME)
    query = reader(cluster, failOnDataLoss="false")
    assert query.latestOffset(nested(5, 5), SOME) == nested(9)


def test_with_a_group_id_the_error_about_a_missing_partition_names_more() -> None:
    query = reader(FakeCluster({A0: (0, 9)}), kafka__group__id="g")
    with pytest.raises(KafkaDataLossError, match=r"PARTITIONS_DELETED_AND_GROUP_ID_CONFIG_PRESENT.*only one query per"):
        query.latestOffset(nested(5, 5), SOME)


def test_a_query_whose_topics_are_all_gone_waits_where_it_is() -> None:
    cluster = FakeCluster({})
    query = reader(cluster, failOnDataLoss="false")
    assert query.latestOffset(nested(5), SOME) == nested(5)
    assert query.reportLatestOffset() == {}


# Restarts.


def test_a_restart_that_is_not_told_where_it_is_does_not_look_up_where_it_would_start() -> None:
    cluster = FakeCluster({A0: (0, 50), A1: (0, 7)})  # a-1 is new
    query = reader(cluster, startingOffsets='{"a":{"0":-2}}')
    query.partitions(nested(40), nested(40))
    assert query.latestOffset() == nested(50, 7)


def test_a_first_batch_that_is_done_again_is_the_same_for_all_who_scan_it(caplog: pytest.LogCaptureFixture) -> None:
    cluster = FakeCluster({A0: (0, 250)})
    query = reader(cluster, startingOffsets="latest")
    begin = query.initialOffset()
    for _ in range(2):
        assert query.partitions(begin, nested(200)) == []
    (said,) = caplog.records
    assert said.levelname == "WARNING"
    assert "nothing before that is read from a-0" in said.getMessage()
    assert query.latestOffset(nested(200), ALL) == nested(250)
    # Later batches are not excused.
    with pytest.raises(KafkaDataLossError, match="PARTITION_OFFSET_CHANGED"):
        query.partitions(begin, nested(201))


def test_a_first_batch_that_is_done_again_may_be_announced(caplog: pytest.LogCaptureFixture) -> None:
    # Before 4.2 Spark first plans from the end of what it has written down to the same.
    query = reader(FakeCluster({A0: (0, 250)}), startingOffsets="latest")
    assert query.partitions(nested(200), nested(200)) == []
    assert query.partitions(query.initialOffset(), nested(200)) == []
    assert query.latestOffset() == nested(250)
    assert len(caplog.records) == 1


def test_the_latest_offsets_are_where_a_query_starts_before_spark_has_asked_for_that() -> None:
    cluster = FakeCluster({A0: (0, 100)})
    query = reader(cluster, startingOffsets="latest")
    end = query.latestOffset()
    cluster.append(5)
    assert query.initialOffset() == end
    assert query.partitions(end, end) == []
    assert query.partitions(end, query.latestOffset())[0].ranges == (("a", 0, 100, 105),)


def test_a_first_batch_before_spark_knows_its_start_is_silent(caplog: pytest.LogCaptureFixture) -> None:
    cluster = FakeCluster({A0: (0, 100)})
    query = reader(cluster, startingTimestamp="9", startingOffsetsByTimestampStrategy="latest")
    end = query.latestOffset()
    cluster.append(5)
    assert query.partitions(query.initialOffset(), end) == []
    assert not caplog.records
    assert query.partitions(end, query.latestOffset())[0].ranges == (("a", 0, 100, 105),)


def test_a_first_batch_that_is_done_again_leaves_partitions_that_came_meanwhile_to_the_next_one() -> None:
    """The driver died in its first batch, whose end is written down, and the topic grew before the restart."""
    cluster = FakeCluster({A0: (0, 50), A1: (0, 20)})
    query = reader(cluster)
    start, end = query.initialOffset(), {"a": {"0": 30}}
    assert start == {"a": {"0": 0, "1": 0}}
    first = query.partitions(start, end)
    second = query.partitions(end, query.latestOffset(end, ALL))
    read = [
        [(each.partition, each.start, each.end) for task in tasks for each in task.ranges] for tasks in (first, second)
    ]
    assert read == [[(0, 0, 30)], [(0, 30, 50), (1, 0, 20)]]
