"""The assignors: everything once, evenly, with few moves."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from kafka.broker.groups.assignors import ASSIGNORS, Subscriber, range_assignor, uniform_assignor

TOPICS = [UUID(int=number) for number in range(1, 5)]


@st.composite
def groups(draw: st.DrawFn, *, same: bool = False) -> tuple[dict[str, Subscriber], dict[UUID, int]]:
    partitions = {topic: draw(st.integers(0, 6)) for topic in TOPICS}
    names = draw(st.lists(st.sampled_from("abcdef"), min_size=1, unique=True))
    topics = st.frozensets(st.sampled_from(TOPICS), min_size=1)
    shared = draw(topics)
    return {name: Subscriber(shared if same else draw(topics)) for name in names}, partitions


@given(groups(), st.sampled_from(sorted(ASSIGNORS)))
@settings(max_examples=150, deadline=None)
def test_each_partition_goes_to_one_member_that_reads_its_topic(
    case: tuple[dict[str, Subscriber], dict[UUID, int]], name: str
) -> None:
    members, partitions = case
    plan = ASSIGNORS[name](members, partitions)
    assert set(plan) == set(members)
    given_out = [(topic, index) for owned in plan.values() for topic, indexes in owned.items() for index in indexes]
    wanted = {topic for member in members.values() for topic in member.topics}
    assert sorted(given_out, key=repr) == sorted(
        ((topic, index) for topic in wanted for index in range(partitions[topic])), key=repr
    )
    for member, owned in plan.items():
        assert set(owned) <= members[member].topics


@given(groups(same=True))
@settings(max_examples=100, deadline=None)
def test_uniform_differs_by_one_at_most_and_moves_nothing_without_need(
    case: tuple[dict[str, Subscriber], dict[UUID, int]],
) -> None:
    members, partitions = case
    plan = uniform_assignor(members, partitions)
    sizes = [sum(map(len, owned.values())) for owned in plan.values()]
    assert max(sizes) - min(sizes) <= 1
    again = {name: Subscriber(member.topics, target=plan[name]) for name, member in members.items()}
    assert uniform_assignor(again, partitions) == plan
    more = {**again, "z": Subscriber(next(iter(members.values())).topics)}
    grown = uniform_assignor(more, partitions)
    for name, owned in plan.items():
        for topic, indexes in grown[name].items():
            assert indexes <= owned.get(topic, frozenset())  # a newcomer gives nobody anything new


def test_range_gives_runs_and_the_first_members_the_rest() -> None:
    topic = TOPICS[0]
    members = {name: Subscriber(frozenset([topic])) for name in "cab"}
    plan = range_assignor(members, {topic: 5})
    assert {name: sorted(plan[name][topic]) for name in "abc"} == {"a": [0, 1], "b": [2, 3], "c": [4]}


def test_range_goes_by_instance_ids_before_member_ids() -> None:
    topic = TOPICS[0]
    members = {
        "zz": Subscriber(frozenset([topic]), "i1"),
        "aa": Subscriber(frozenset([topic]), "i2"),
        "a0": Subscriber(frozenset([topic])),
    }
    plan = range_assignor(members, {topic: 3})
    assert {name: sorted(owned[topic]) for name, owned in plan.items()} == {"zz": [0], "aa": [1], "a0": [2]}
