"""What a streams topology needs of topics, and which member has which task."""

from __future__ import annotations

from kafka.broker.groups.streams_group import Target, assign_tasks
from kafka.broker.groups.streams_topology import InternalTopic, Subtopology, Topology

COUNTS = {"in": 2, "wide": 6}


def chain(*, given: int = 0) -> Topology:
    """Subtopology 0 writes to r1, which 1 reads and writes to r2, which 2 reads."""
    return Topology(
        0,
        (
            Subtopology("0", ("in", "wide"), sinks=("r1",)),
            Subtopology("1", repartition_sources=(InternalTopic("r1", given),), sinks=("r2",)),
            Subtopology("2", repartition_sources=(InternalTopic("r2"),), changelogs=(InternalTopic("store"),)),
        ),
    )


def test_a_repartition_topic_has_as_many_partitions_as_its_largest_writer() -> None:
    found = {topic.name: topic.partitions for topic in chain().internal_topics(COUNTS.get)}
    assert found == {"r1": 6, "r2": 6, "store": 6}


def test_a_number_of_partitions_that_is_given_counts_downstream() -> None:
    found = {topic.name: topic.partitions for topic in chain(given=4).internal_topics(COUNTS.get)}
    assert found == {"r1": 4, "r2": 4, "store": 4}
    tasks = chain(given=4).tasks(COUNTS.get)
    assert [sum(task[0] == name for task in tasks) for name in "012"] == [6, 4, 4]


def test_a_topology_that_feeds_itself_ends() -> None:
    circle = Topology(0, (Subtopology("0", repartition_sources=(InternalTopic("r"),), sinks=("r",)),))
    assert circle.tasks(COUNTS.get) == []


def test_only_subtopologies_with_a_changelog_are_stateful() -> None:
    assert chain().stateful() == {"2"}


def test_tasks_are_spread_evenly_and_stay_where_they_were() -> None:
    tasks = [("0", index) for index in range(5)]
    before = {"a": Target(frozenset(tasks[:2])), "b": Target(frozenset(tasks[2:])), "c": Target()}
    after = assign_tasks(before, {name: name for name in before}, tasks, (), 0)
    assert sorted(len(target.active) for target in after.values()) == [1, 2, 2]
    assert after["a"].active == before["a"].active
    assert after["b"].active < before["b"].active


def test_a_standby_runs_on_another_process() -> None:
    members = {"a": Target(), "b": Target(), "c": Target()}
    processes = {"a": "one", "b": "one", "c": "two"}
    found = assign_tasks(members, processes, [("0", 0), ("1", 0)], {"0"}, 2)
    (active,) = [member for member, target in found.items() if ("0", 0) in target.active]
    (standby,) = [member for member, target in found.items() if ("0", 0) in target.standby]  # of two processes
    assert processes[standby] != processes[active]
    assert not any(("1", 0) in target.standby for target in found.values())
