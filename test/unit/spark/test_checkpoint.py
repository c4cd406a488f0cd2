"""Where a query stands, from the files that Spark keeps."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka.errors import KafkaConfigurationError
from kafka.spark.progress import committed_offsets, local_path
from kafka.structs import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def note(root: Path, *sources: str) -> Path:
    for name in ("offsets", "commits"):
        (root / name).mkdir(parents=True)
    (root / "offsets" / "0").write_text("\n".join(["v1", "{}", *sources]), encoding="utf-8")
    (root / "commits" / "0").write_text("v1", encoding="utf-8")
    return root


def test_all_sources_that_are_kafka_count_and_of_two_the_one_behind(tmp_path: Path) -> None:
    root = note(tmp_path / "some where", '{"a":{"0":9}}', '{"logOffset":3}', "-", '{"a":{"0":5},"b":{"0":7}}', "12")
    assert committed_offsets(root) == {A: 5, B: 7}
    assert committed_offsets(root, 0) == {A: 9}
    assert committed_offsets(root, 2) == {}
    assert committed_offsets(f"file://localhost{root}") == {A: 5, B: 7}


def test_a_query_without_kafka_gets_an_error_that_says_so(tmp_path: Path) -> None:
    root = note(tmp_path / "c", '{"logOffset":3}', '{"a":{"0":5}}')
    with pytest.raises(KafkaConfigurationError, match=r"source 0 of .* is not Kafka"):
        committed_offsets(root, 0)
    with pytest.raises(KafkaConfigurationError, match=r"source 0 of .* is not Kafka"):
        committed_offsets(note(tmp_path / "d", '{"logOffset":3}'))


@pytest.mark.parametrize("place", ["s3a://bucket/c", "hdfs://name:8020/c", "abfss://c@a.dfs.core.windows.net/c"])
def test_other_file_systems_are_refused_with_what_helps(place: str) -> None:
    with pytest.raises(KafkaConfigurationError, match=r"not on this machine.*commitOffsetsToGroup"):
        local_path(place)


def test_what_only_looks_like_another_file_system_is_a_path() -> None:
    for name in ("a:b", "C:/data", "relative/c", "/data/x:/y"):
        assert local_path(name) == Path(name)
