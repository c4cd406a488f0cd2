"""Partitioners put keys where the Java client puts them, in every historic form of call."""

import random
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.errors import KafkaConfigurationError, UnknownTopicOrPartitionError
from kafka.partitioner import (
    DefaultPartitioner,
    HashedPartitioner,
    LegacyPartitioner,
    Murmur2Partitioner,
    Partitioner,
    RoundRobinPartitioner,
    StickyPartitioner,
    bind_partitioner,
    murmur2,
)

# Printed by org.apache.kafka.common.utils.Utils.murmur2 of kafka-clients 4.3.1, as unsigned.
JAVA = [
    (b"", 275646681),
    (b"21", 3321034988),
    (b"abc", 479470107),
    (b"foobar", 3504634814),
    (b"a-little-bit-long-string", 3308985760),
    (bytes.fromhex("b3f2c728d98ddd"), 856578227),
    (bytes.fromhex("57718c1a10393f0827ceb7f4130f60e961e833294c93"), 1978197357),
    (bytes.fromhex("c9c38fbf7ae22a00a4174c64b5144dc69831c2"), 2425706488),
    (bytes.fromhex("8d0e5bb8411fea46a495305d0eff286e855b432a7a2365ff83ddeab5886c0be323f9f692"), 2665666130),
]


class Cluster:
    def __init__(self, everything, available=None):
        self.everything = everything
        self.available = everything if available is None else available

    def partitions_for_topic(self, topic):
        return self.everything

    def available_partitions_for_topic(self, topic):
        return self.available


def plain_murmur2(data):
    """The definition, byte by byte."""
    mask, m = 0xFFFFFFFF, 0x5BD1E995
    h = 0x9747B28C ^ len(data)
    for i in range(0, len(data) & ~3, 4):
        k = int.from_bytes(data[i : i + 4], "little") * m & mask
        k = (k ^ k >> 24) * m & mask
        h = (h * m & mask) ^ k
    rest = data[len(data) & ~3 :]
    for i in reversed(range(len(rest))):
        h ^= rest[i] << 8 * i
    if rest:
        h = h * m & mask
    h = (h ^ h >> 13) * m & mask
    return h ^ h >> 15


@pytest.mark.parametrize(("data", "expected"), JAVA)
def test_murmur2_agrees_with_java(data, expected):
    assert murmur2(data) == expected
    assert murmur2(bytearray(data)) == murmur2(memoryview(data)) == expected


@given(st.binary(max_size=300))
def test_murmur2_agrees_with_its_plain_twin(data):
    assert murmur2(data) == plain_murmur2(data)


def test_long_keys_are_not_kept_in_the_cache():
    from kafka.partitioner.murmur2_hash import _cached

    before = _cached.cache_info().currsize
    murmur2(b"x" * 1_000_000)
    assert _cached.cache_info().currsize == before


@pytest.mark.parametrize("cls", [DefaultPartitioner, StickyPartitioner, Murmur2Partitioner])
def test_a_key_goes_by_its_hash_in_all_forms_of_call(cls):
    expected = (murmur2(b"key") & 0x7FFFFFFF) % 5
    partitioner = cls()
    assert partitioner(b"key", [0, 1, 2, 3, 4], [1]) == expected
    assert partitioner.partition("t", "key", b"key", None, None, Cluster({4, 3, 2, 1, 0}, {1})) == expected
    assert cls([0, 1, 2, 3, 4]).partition(b"key") == expected
    assert cls([9]).partition(b"key", [0, 1, 2, 3, 4]) == expected
    assert bind_partitioner(partitioner)("t", "key", b"key", None, None, Cluster({0, 1, 2, 3, 4})) == expected


def test_arguments_of_the_six_may_be_named():
    partition = DefaultPartitioner().partition(
        topic="t", key="k", serialized_key=b"k", value=None, serialized_value=None, cluster=Cluster({0})
    )
    assert partition == 0


def test_without_key_the_default_picks_among_the_available():
    partitioner = DefaultPartitioner(rng=random.Random(1))
    seen = Counter(partitioner(None, [0, 1, 2], [0, 2]) for _ in range(300))
    assert set(seen) == {0, 2}
    assert min(seen.values()) > 100
    assert {partitioner(None, [0, 1], []) for _ in range(50)} == {0, 1}


def test_a_topic_without_partitions_is_an_error_that_names_it():
    for nothing in (None, set()):
        with pytest.raises(UnknownTopicOrPartitionError, match="'gone'"):
            DefaultPartitioner().partition("gone", None, None, None, None, Cluster(nothing))


def test_legacy_partitioner_uses_pythons_hash():
    assert HashedPartitioner is LegacyPartitioner
    assert LegacyPartitioner([0, 1, 2]).partition("k") == hash("k") % 3
    assert LegacyPartitioner([0, 1, 2])("k", [0, 1]) == hash("k") % 2


def test_murmur2_partitioner_takes_text_and_no_key():
    assert Murmur2Partitioner([0, 1, 2]).partition("abc") == 479470107 % 3
    assert Murmur2Partitioner([0, 1, 2]).partition(None) == 275646681 % 3


def test_round_robin_takes_partitions_in_turn_per_topic():
    partitioner = RoundRobinPartitioner()
    cluster = Cluster({0, 1, 2})
    turns = [partitioner.partition(t, None, b"same", None, None, cluster) for t in "ababab"]
    assert turns == [0, 0, 1, 1, 2, 2]


def test_round_robin_leaves_out_what_has_no_leader_and_takes_changes():
    partitioner = RoundRobinPartitioner([5, 6])
    assert [partitioner.partition(None) for _ in range(3)] == [5, 6, 5]
    assert {partitioner(None, [0, 1, 2], [2]) for _ in range(3)} == {2}
    assert {partitioner(None, [0, 1, 2, 3], []) for _ in range(4)} == {0, 1, 2, 3}


def test_sticky_stays_until_a_new_batch_is_opened():
    partitioner = StickyPartitioner(rng=random.Random(3))
    cluster = Cluster({0, 1, 2})

    def place():
        return partitioner.partition("t", None, None, None, None, cluster)

    first = place()
    assert {place() for _ in range(20)} == {first}
    partitioner.on_new_batch("t", cluster, first)
    second = place()
    assert second != first
    partitioner.on_new_batch("t", cluster, first)  # an old batch: the topic has moved on already
    assert place() == second


def test_sticky_leaves_a_partition_that_lost_its_leader():
    partitioner = StickyPartitioner()
    cluster = Cluster({0, 1})
    first = partitioner.partition("t", None, None, None, None, cluster)
    cluster.available = {1 - first}
    assert partitioner.partition("t", None, None, None, None, cluster) == 1 - first


def test_sticky_stays_where_there_is_no_other():
    partitioner = StickyPartitioner()
    cluster = Cluster({7})
    assert partitioner.partition("t", None, None, None, None, cluster) == 7
    partitioner.on_new_batch("t", cluster, 7)
    assert partitioner.partition("t", None, None, None, None, cluster) == 7


def test_a_callable_of_the_1_x_generation_is_given_sorted_partitions():
    seen = []
    bound = bind_partitioner(lambda key, everything, available: seen.append((key, everything, available)) or 1)
    assert bound("t", "k", b"k", None, None, Cluster({2, 0, 1}, {2, 1})) == 1
    assert seen == [(b"k", [0, 1, 2], [1, 2])]


def test_a_users_partitioner_is_called_directly():
    class Mine(Partitioner):
        def partition(self, topic, key, serialized_key, value, serialized_value, cluster):
            return key

    mine = Mine()
    assert bind_partitioner(mine)("t", 4, b"4", None, None, None) == 4
    assert mine.on_new_batch("t", None, 0) is None
    assert mine.close() is None


@pytest.mark.parametrize("given", [DefaultPartitioner, 42, lambda key: 0, object()])
def test_an_object_that_cannot_partition_is_refused(given):
    with pytest.raises(KafkaConfigurationError, match="partitioner") as caught:
        bind_partitioner(given)
    assert caught.value.option == "partitioner"


@pytest.mark.parametrize("base", [DefaultPartitioner, Murmur2Partitioner, RoundRobinPartitioner, LegacyPartitioner])
def test_a_subclass_that_overrides_the_call_of_1_x_is_called(base):
    class First(base):
        def __call__(self, key, all_partitions=None, available=None):
            return min(all_partitions) if key is None else super().__call__(key, [max(all_partitions)], [])

    choose = bind_partitioner(First())
    assert choose("t", None, None, None, None, Cluster({3, 4, 5})) == 3
    assert choose("t", "key", b"key", None, None, Cluster({3, 4, 5})) == 5


@pytest.mark.parametrize("base", [object, DefaultPartitioner])
def test_the_call_of_1_x_may_be_a_class_method(base):
    class Last(base):
        @classmethod
        def __call__(cls, key, all_partitions, available):
            return all_partitions[-1]

    assert bind_partitioner(Last())("t", None, None, None, None, Cluster({3, 4, 5})) == 5
