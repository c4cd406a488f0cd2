"""What every assignor promises, on random groups; and what each promises beyond that."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

import pytest

from kafka.coordinator.assignors import (
    AbstractPartitionAssignor,
    CooperativeStickyAssignor,
    RangePartitionAssignor,
    RebalanceProtocol,
    RoundRobinPartitionAssignor,
    StickyPartitionAssignor,
    common_protocol,
    make_assignors,
)
from kafka.coordinator.assignors.sticky.user_data import write_claim
from kafka.coordinator.protocol import ConsumerProtocolMemberAssignment, ConsumerProtocolMemberMetadata
from kafka.errors import KafkaConfigurationError
from kafka.structs import TopicPartition
from test.unit.coordinator.clusters import make_cluster

ALL = [RangePartitionAssignor, RoundRobinPartitionAssignor, StickyPartitionAssignor, CooperativeStickyAssignor]
STICKY = [StickyPartitionAssignor, CooperativeStickyAssignor]
Owned = dict[str, list[TopicPartition]]


def member(
    topics: Any, owned: Any = (), generation: int = -1, rack: str | None = None, sticky: bool = True
) -> ConsumerProtocolMemberMetadata:
    data = write_claim(owned, generation) if sticky else b""
    return ConsumerProtocolMemberMetadata(0, sorted(topics), data, list(owned), generation, rack)


def assign(assignor: Any, cluster: Any, members: Mapping[str, Any]) -> Owned:
    return {name: found.partitions() for name, found in assignor().assign(cluster, members).items()}


def random_group(seed: int) -> tuple[dict[str, int], dict[str, set[str]]]:
    rng = random.Random(seed)
    topics = {f"t{number}": rng.randint(0, 12) for number in range(rng.randint(1, 6))}
    same = rng.random() < 0.4
    everything = set(topics)
    wants = {
        f"m{number:02}": everything if same else {topic for topic in topics if rng.random() < 0.6}
        for number in range(rng.randint(1, 9))
    }
    return topics, wants


def check_complete(topics: Mapping[str, int], wants: Mapping[str, set[str]], owned: Owned) -> None:
    assert owned.keys() == wants.keys()
    given = Counter(partition for partitions in owned.values() for partition in partitions)
    wanted = set().union(*wants.values())
    expected = {TopicPartition(topic, number) for topic in wanted for number in range(topics[topic])}
    assert set(given) == expected
    assert set(given.values()) <= {1}
    for name, partitions in owned.items():
        assert {partition.topic for partition in partitions} <= wants[name]


@pytest.mark.parametrize("assignor", ALL)
def test_every_partition_goes_to_exactly_one_member_that_wants_it(assignor: Any) -> None:
    for seed in range(150):
        topics, wants = random_group(seed)
        cluster = make_cluster(topics)
        members = {name: member(topics) for name, topics in wants.items()}
        owned = assign(assignor, cluster, members)
        check_complete(topics, wants, owned)
        shuffled = dict(sorted(members.items(), key=lambda item: hash((item[0], seed))))
        assert assign(assignor, cluster, shuffled) == owned, f"seed {seed}: depends on the order of members"


def test_range_gives_runs_and_the_same_ones_of_topics_alike() -> None:
    cluster = make_cluster({"a": 5, "b": 5, "c": 1})
    owned = assign(RangePartitionAssignor, cluster, {"x": member("abc"), "y": member("abc")})
    assert owned["x"] == [*(TopicPartition(topic, n) for topic in "ab" for n in (0, 1, 2)), TopicPartition("c", 0)]
    assert owned["y"] == [TopicPartition(topic, n) for topic in "ab" for n in (3, 4)]


def test_static_members_keep_their_place_when_their_member_ids_change() -> None:
    cluster = make_cluster({"a": 4})

    def named(instance: str) -> ConsumerProtocolMemberMetadata:
        return member("a")._replace(group_instance_id=instance)

    for assignor in (RangePartitionAssignor, RoundRobinPartitionAssignor):
        first = assign(assignor, cluster, {"x1": named("one"), "x2": named("two")})
        second = assign(assignor, cluster, {"z9": named("one"), "a0": named("two")})
        assert (first["x1"], first["x2"]) == (second["z9"], second["a0"])


def test_roundrobin_deals_over_topics() -> None:
    cluster = make_cluster({"a": 3, "b": 3})
    owned = assign(RoundRobinPartitionAssignor, cluster, {"x": member("ab"), "y": member("ab")})
    assert owned["x"] == [TopicPartition("a", 0), TopicPartition("a", 2), TopicPartition("b", 1)]


def test_range_prefers_partitions_with_a_copy_in_the_rack() -> None:
    replicas = {("a", number): [number % 3] for number in range(6)}
    cluster = make_cluster({"a": 6}, racks=["r0", "r1", "r2"], replicas=replicas)
    members = {name: member("a", rack=rack) for name, rack in (("x", "r2"), ("y", "r0"), ("z", "r1"))}
    owned = assign(RangePartitionAssignor, cluster, members)
    assert {name: [p.partition for p in partitions] for name, partitions in owned.items()} == {
        "x": [2, 5],
        "y": [0, 3],
        "z": [1, 4],
    }


@pytest.mark.parametrize("assignor", STICKY)
def test_sticky_prefers_partitions_with_a_copy_in_the_rack(assignor: Any) -> None:
    replicas = {("a", number): [number % 3] for number in range(6)}
    cluster = make_cluster({"a": 6}, racks=["r0", "r1", "r2"], replicas=replicas)
    members = {name: member("a", rack=rack) for name, rack in (("x", "r2"), ("y", "r0"), ("z", "r1"))}
    owned = assign(assignor, cluster, members)
    assert {name: [p.partition % 3 for p in partitions] for name, partitions in owned.items()} == {
        "x": [2, 2],
        "y": [0, 0],
        "z": [1, 1],
    }


def loads(owned: Owned) -> list[int]:
    return sorted(len(partitions) for partitions in owned.values())


def best_squares(topics: Mapping[str, int], wants: Mapping[str, set[str]]) -> int:
    """The least sum of squares of loads, by successive cheapest augmenting paths over single partitions."""
    owner: dict[TopicPartition, str] = {}
    load = dict.fromkeys(wants, 0)
    for topic, count in topics.items():
        readers = [name for name in wants if topic in wants[name]]
        for number in range(count if readers else 0):
            reach, queue = {}, list(readers)
            came: dict[str, Any] = dict.fromkeys(readers)
            while queue:
                name = queue.pop(0)
                reach[name] = load[name]
                for partition, has in owner.items():
                    if has == name:
                        for other in wants:
                            if partition.topic in wants[other] and other not in came:
                                came[other] = (name, partition)
                                queue.append(other)
            end = min(reach, key=lambda name: reach[name])
            load[end] += 1
            while came[end] is not None:
                before, partition = came[end]
                owner[partition] = end
                end = before
            owner[TopicPartition(topic, number)] = end
    return sum(n * n for n in load.values())


@pytest.mark.parametrize("assignor", STICKY)
def test_sticky_is_as_even_as_subscriptions_allow(assignor: Any) -> None:
    for seed in range(120):
        topics, wants = random_group(seed)
        owned = assign(assignor, make_cluster(topics), {name: member(topics) for name, topics in wants.items()})
        assert sum(n * n for n in loads(owned)) == best_squares(topics, wants), f"seed {seed}"


def test_a_chain_of_members_is_balanced_where_no_single_pass_helps() -> None:
    cluster = make_cluster({"a": 2, "b": 1})
    members = {
        "x": member("a", [TopicPartition("a", 0), TopicPartition("a", 1)], 1),
        "y": member("ab", [TopicPartition("b", 0)], 1),
        "z": member("b", [], 1),
    }
    assert loads(assign(StickyPartitionAssignor, cluster, members)) == [1, 1, 1]


def settle(cluster: Any, wants: Mapping[str, set[str]], had: Owned, generation: int) -> tuple[Owned, int]:
    """Run cooperative rebalances until nobody has anything to give up; the final ownership and the rounds it took."""
    for rounds in range(1, 5):
        members = {name: member(topics, had.get(name, ()), generation, sticky=False) for name, topics in wants.items()}
        claimed = {partition: name for name in wants for partition in had.get(name, ())}
        given = assign(CooperativeStickyAssignor, cluster, members)
        for name, partitions in given.items():
            for partition in partitions:
                assert claimed.get(partition, name) == name, "given away while another still owns it"
        revoked = any(set(had.get(name, ())) - set(given[name]) for name in wants)
        had, generation = given, generation + 1
        if not revoked:
            return had, rounds
    raise AssertionError("a cooperative rebalance takes two rounds at most")


def test_cooperative_never_gives_away_what_another_owns_and_ends_where_sticky_does() -> None:
    for seed in range(150):
        topics, wants = random_group(seed)
        cluster = make_cluster(topics)
        owned, _ = settle(cluster, wants, {}, 1)
        check_complete(topics, wants, owned)
        rng = random.Random(seed)
        after = {name: topics for name, topics in wants.items() if rng.random() < 0.8} or wants
        after = {**after, "new": set(topics)}
        had = {name: partitions for name, partitions in owned.items() if name in after}
        final, rounds = settle(cluster, after, had, 2)
        check_complete(topics, after, final)
        assert rounds <= 2


def kept(before: Owned, after: Owned) -> int:
    return sum(len(set(before.get(name, ())) & set(partitions)) for name, partitions in after.items())


@pytest.mark.parametrize("assignor", STICKY)
def test_a_hundred_members_and_a_thousand_partitions_move_no_more_than_needed(assignor: Any) -> None:
    topics = {f"t{number:02}": 50 for number in range(20)}
    cluster = make_cluster(topics)
    names = [f"m{number:03}" for number in range(100)]
    first = assign(assignor, cluster, {name: member(topics) for name in names})
    assert set(loads(first)) == {10}

    def again(members: list[str]) -> Owned:
        metadata = {name: member(topics, first.get(name, ()), 1) for name in members}
        if assignor is StickyPartitionAssignor:
            return assign(assignor, cluster, metadata)
        return settle(cluster, {name: set(topics) for name in members}, first, 1)[0]

    assert again(names) == first
    # One more: 1000 = 101 * 9 + 91, so the new one gets 9 and all others keep what they do not give it.
    joined = again([*names, "m100"])
    assert kept(first, joined) == 1000 - 9
    # Ten fewer: their hundred partitions move and no other.
    left = again(names[10:])
    assert kept(first, left) == 900
    assert set(loads(left)) <= {11, 12}


@pytest.mark.parametrize("assignor", STICKY)
def test_different_subscriptions_at_size_take_no_long_time_and_move_little(assignor: Any) -> None:
    topics = {f"t{number:02}": 50 for number in range(20)}
    cluster = make_cluster(topics)
    rng = random.Random(4)
    wants = {f"m{number:03}": set(rng.sample(sorted(topics), 6)) for number in range(100)}
    first = assign(assignor, cluster, {name: member(topics) for name, topics in wants.items()})
    assert max(loads(first)) - min(loads(first)) <= 1
    again = assign(assignor, cluster, {name: member(topics, first[name], 1) for name, topics in wants.items()})
    assert again == first


def test_the_claim_of_the_latest_generation_counts() -> None:
    cluster = make_cluster({"a": 2})
    both = [TopicPartition("a", 0), TopicPartition("a", 1)]
    zombie = member("a", both, 3)
    members = {"a": zombie, "b": member("a", [both[0]], 7), "c": member("a", [both[1]], 7)}
    owned = assign(StickyPartitionAssignor, cluster, members)
    assert owned == {"a": [], "b": [both[0]], "c": [both[1]]}


def test_damaged_user_data_makes_a_new_member_not_a_broken_group() -> None:
    cluster = make_cluster({"a": 2})
    for data in (b"\x00", b"\x7f\xff\xff\xff", b"\x00\x00\x00\x01\x00\x05ab", b"\x00\x00\x00\x01\xff\xff"):
        members = {"x": ConsumerProtocolMemberMetadata(0, ["a"], data), "y": member("a")}
        assert loads(assign(StickyPartitionAssignor, cluster, members)) == [1, 1]


class OfOld(AbstractPartitionAssignor):
    """As such classes were written for 1.x."""

    name = "of-old"
    version = 0
    seen: Any = None

    @classmethod
    def assign(cls, cluster: Any, member_metadata: Any) -> Any:
        everything: dict[str, Any] = {name: defaultdict(list) for name in member_metadata}
        for name, metadata in member_metadata.items():
            for topic in metadata.subscription:
                everything[name][topic] = sorted(cluster.partitions_for_topic(topic))
        return {
            name: ConsumerProtocolMemberAssignment(cls.version, sorted(topics.items()), b"")
            for name, topics in everything.items()
        }

    @classmethod
    def metadata(cls, topics: Any) -> Any:
        return ConsumerProtocolMemberMetadata(cls.version, list(topics), b"mine")

    @classmethod
    def on_assignment(cls, assignment: Any) -> None:
        cls.seen = assignment


def test_assignors_written_for_1_x_work() -> None:
    (assignor,) = make_assignors([OfOld])
    metadata = assignor.metadata(["a"])
    assert ConsumerProtocolMemberMetadata.decode(metadata.encode()).user_data == b"mine"
    given = assignor.assign(make_cluster({"a": 2}), {"x": metadata})
    assert given["x"].partitions() == [TopicPartition("a", 0), TopicPartition("a", 1)]
    assert common_protocol([assignor]) is RebalanceProtocol.EAGER


def test_a_group_is_cooperative_only_if_all_its_assignors_are() -> None:
    assert common_protocol(make_assignors(["cooperative-sticky"])) is RebalanceProtocol.COOPERATIVE
    assert common_protocol(make_assignors(["range", "cooperative-sticky"])) is RebalanceProtocol.EAGER


def test_unknown_and_doubled_strategies_are_refused_in_words() -> None:
    with pytest.raises(KafkaConfigurationError, match="partition_assignment_strategy has an unknown assignor 'fair'"):
        make_assignors(["fair"])
    with pytest.raises(KafkaConfigurationError, match="'range' twice"):
        make_assignors(["range", RangePartitionAssignor])
