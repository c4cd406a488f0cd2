"""Which offsets a member may commit: those of its present stays."""

from __future__ import annotations

from kafka.coordinator.rebalance import Tenures
from kafka.structs import TopicPartition

A, B = TopicPartition("t", 0), TopicPartition("t", 1)


def test_a_stay_goes_on_while_the_partition_is_kept():
    tenures = Tenures()
    tenures.replace([A])
    stays = tenures.of([A])
    tenures.replace([A, B])
    assert tenures.ended(stays) == []
    assert tenures.held() == {A, B}


def test_an_offset_of_an_earlier_stay_is_not_of_a_later_one():
    tenures = Tenures()
    tenures.replace([A, B])
    stays = tenures.of([A, B])
    tenures.replace([B])
    tenures.replace([A, B])
    assert tenures.ended(stays) == [A]


def test_what_was_never_held_is_nobody_s_to_commit():
    assert Tenures().ended(Tenures().of([A])) == [A]
