"""Which offsets a member may commit: those of its present stays."""

from __future__ import annotations

from kafka.coordinator.rebalance import Ownership
from kafka.structs import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def test_a_stay_goes_on_while_the_partition_is_kept():
    ownership = Ownership()
    ownership.replace([A])
    ids = ownership.ids([A])
    ownership.replace([A, B])
    assert ownership.ended(ids) == []
    assert ownership.held() == {A, B}


def test_an_offset_of_an_earlier_stay_is_not_of_a_later_one():
    ownership = Ownership()
    ownership.replace([A, B])
    ids = ownership.ids([A, B])
    ownership.replace([B])
    ownership.replace([A, B])
    assert ownership.ended(ids) == [A]


def test_what_was_never_held_is_nobody_s_to_commit():
    assert Ownership().ended(Ownership().ids([A])) == [A]
