"""Acknowledgements as requests have them."""

from __future__ import annotations

from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from kafka.share.acknowledgements import GAP, AcknowledgedRange, Acknowledgements, AcknowledgeType, acknowledged_ranges
from kafka.share.session import merged
from kafka.structs import TopicPartition

TYPES = st.sampled_from([GAP, *AcknowledgeType])


@given(st.dictionaries(st.integers(0, 40), TYPES))
def test_ranges_ascend_and_state_the_answer_of_each_offset(types: dict[int, int]) -> None:
    read: dict[int, int] = {}
    before = -2
    for first, last, kinds in acknowledged_ranges(types):
        assert before + 1 < first <= last, "a run of offsets is one range"
        assert len(kinds) in {1, last - first + 1}
        read.update({offset: kinds[0 if len(kinds) == 1 else offset - first] for offset in range(first, last + 1)})
        before = last
    assert read == types


def test_one_type_for_a_range_is_written_once() -> None:
    assert acknowledged_ranges(dict.fromkeys(range(500), AcknowledgeType.ACCEPT)) == [(0, 499, [1])]


def test_of_two_acknowledgements_on_the_way_the_later_one_counts() -> None:
    entries = [
        Acknowledgements(TopicPartition("jobs", 0), UUID(int=1), 1, [AcknowledgedRange(first, last, [kind])])
        for first, last, kind in ((0, 3, 2), (2, 5, 1))
    ]
    assert merged(entries) == {(UUID(int=1), 0): [(0, 5, [2, 2, 1, 1, 1, 1])]}
