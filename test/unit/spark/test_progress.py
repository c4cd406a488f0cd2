"""How far a query is behind, from what Spark reports."""

from __future__ import annotations

from kafka.spark.progress import lag
from kafka.structs import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def source(end: str | None, latest: str | None) -> dict[str, str | None]:
    return {"endOffset": end, "latestOffset": latest}


def test_of_two_sources_that_read_a_partition_the_one_behind_counts() -> None:
    slow, fast = source('{"a":{"0":1}}', '{"a":{"0":10}}'), source('{"a":{"0":9}}', '{"a":{"0":10},"b":{"0":2}}')
    assert lag({"sources": [slow, fast]}) == lag({"sources": [fast, slow]}) == {A: 9, B: 2}


def test_the_lag_is_unknown_where_a_source_s_latest_offsets_are() -> None:
    known, unknown = source('{"a":{"0":9}}', '{"a":{"0":10}}'), source('{"b":{"0":1}}', None)
    assert lag({"sources": [known]}) == {A: 1}
    assert lag({"sources": [known, unknown]}) is None
    assert lag({"sources": [unknown]}) is None
    assert lag(None) is None  # query.lastProgress before the first batch


def test_sources_of_other_kinds_have_none() -> None:
    assert lag({"sources": [source("12", "13"), source('{"logOffset":3}', None), source(None, None)]}) == {}
