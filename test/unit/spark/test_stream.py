"""The streaming reader as Spark drives it: which offsets it names, and what its batches consist of."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

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
    from kafka.spark.stream import stream_reader

    given = {"kafka.bootstrap.servers": "b", "subscribe": "a", "startingOffsets": "earliest", **more}
    found: Any = stream_reader(SourceOptions.parse(given, streaming=True), ["value"])
    found._cluster = cluster
    return found


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
