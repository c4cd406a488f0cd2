"""What an administrator's calls take."""

from __future__ import annotations

from uuid import UUID

import pytest

from kafka.admin import NewPartitions, NewTopic
from kafka.admin.new_partitions import NewPartitions as HistoricNewPartitions
from kafka.admin.new_topic import NewTopic as HistoricNewTopic
from kafka.admin.resources import ACLOperation, as_new_partitions, as_new_topics, as_topics, config_text, operations
from kafka.errors import IllegalArgumentError

ID = UUID(int=7)


def test_the_historic_modules_have_the_same_classes():
    assert HistoricNewTopic is NewTopic
    assert HistoricNewPartitions is NewPartitions


def test_topics_to_create_are_objects_names_or_a_dict():
    given = NewTopic("a", 2, 1)
    assert as_new_topics([given])[0] is given
    assert as_new_topics(["a"])[0].num_partitions == -1
    (topic,) = as_new_topics({"a": {"assignments": {0: [1]}, "configs": {"retention.ms": 5}}})
    assert topic.replica_assignments == {0: [1]}
    assert topic.topic_configs == {"retention.ms": 5}
    assert as_new_topics({"a": None})[0].name == "a"
    assert as_new_topics({"a": given}) == [given]


@pytest.mark.parametrize(
    ("topics", "error", "text"),
    [
        ("a", TypeError, "must be a list or a dict"),
        ([7], TypeError, "names or NewTopic objects, not 7"),
        ({"a": {"partitions": 3}}, IllegalArgumentError, "unknown setting 'partitions'; there are num_partitions"),
        (["a", "a"], IllegalArgumentError, "topic 'a' more than once"),
    ],
)
def test_wrong_topics_are_refused(topics, error, text):
    with pytest.raises(error, match=text):
        as_new_topics(topics)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"num_partitions": 0}, "num_partitions must be at least 1"),
        ({"replication_factor": 0}, "replication_factor must be at least 1"),
        ({"num_partitions": 1, "replica_assignments": {0: [1]}}, "leave num_partitions"),
    ],
)
def test_a_new_topic_checks_its_numbers(arguments, text):
    with pytest.raises(IllegalArgumentError, match=text):
        NewTopic("t", **arguments)
    with pytest.raises(TypeError, match="num_partitions must be a whole number, not '3'"):
        NewTopic("t", "3")


def test_partitions_are_counts_objects_or_dicts():
    given = NewPartitions(3, [[1]])
    found = as_new_partitions({"a": 2, "b": given, "c": {"count": 4, "assignments": [[2]]}})
    assert [found[name].total_count for name in "abc"] == [2, 3, 4]
    assert found["b"] is given
    assert found["c"].new_assignments == [[2]]


@pytest.mark.parametrize(
    ("topics", "error"),
    [
        (["a"], TypeError),
        ({"a": "2"}, TypeError),
        ({"a": True}, TypeError),
        ({"a": 0}, IllegalArgumentError),
        ({"a": {"number": 2}}, IllegalArgumentError),
        ({"a": {"count": 2, "number": 2}}, IllegalArgumentError),
    ],
)
def test_wrong_partitions_are_refused(topics, error):
    with pytest.raises(error):
        as_new_partitions(topics)


def test_topics_are_names_and_ids_each_once():
    assert as_topics(["a", ID, "a"]) == ["a", ID]
    for wrong in ("a", ID, None):
        with pytest.raises(TypeError, match="a list with one element"):
            as_topics(wrong)


def test_operations_are_names_of_bits():
    assert operations(-(2**31)) is None
    assert operations(0) == []
    assert operations(1 << 14) == ["DESCRIBE_TOKENS"]
    assert ACLOperation.CREATE_TOKENS == 13


def test_values_of_settings_are_written_as_kafka_writes_them():
    assert [config_text(value) for value in (False, 1.5, ("a", 1), None)] == ["false", "1.5", "a,1", None]
