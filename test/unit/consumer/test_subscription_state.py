"""What is asked for, what is had, and what may be committed."""

from __future__ import annotations

import re
from uuid import uuid4

import pytest

from kafka.consumer.partition_state import EARLIEST, Chunk, Cursor
from kafka.consumer.subscription_state import Mode, SubscriptionState
from kafka.errors import IllegalArgumentError, IllegalStateError
from kafka.record.consumer_record import ConsumerRecord
from kafka.structs import OffsetAndMetadata, TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


def subscribed(*partitions: TopicPartition) -> SubscriptionState:
    state = SubscriptionState()
    state.subscribe(sorted({partition.topic for partition in partitions}))
    state.assign_from_group(partitions)
    return state


def records(*offsets: int) -> list[ConsumerRecord]:
    return [ConsumerRecord("a", 0, offset, 0, 0, None, b"", leader_epoch=7) for offset in offsets]


def chunk(state: SubscriptionState, *offsets: int, end: int) -> Chunk:
    cursor = state.get(A).cursor
    start = cursor.position
    cursor.advance(end, 7)
    made = state.chunk = Chunk(state.get(A), records(*offsets), start, 6)
    return made


def return_up_to(chunk: Chunk, offset: int) -> None:
    """Move the position as the iteration does."""
    chunk.cursor.returned = next(record for record in chunk.records if record.offset == offset)


def test_a_partition_that_stays_keeps_its_place_and_its_pause() -> None:
    state = subscribed(A, B)
    state.seek(A, 5)
    state.pause(A)
    state.assign_from_group([A])
    assert state.get(A).cursor.position == 5
    assert state.paused() == {A}
    state.assign_from_group([])
    state.assign_from_group([A])
    assert state.get(A).cursor.position is None
    assert state.paused() == set()


def test_the_version_counts_changes_of_the_subscription_only() -> None:
    state = SubscriptionState()
    state.subscribe(["a"])
    version = state.subscription_version
    state.subscribe(["a"])
    state.assign_from_group([A])
    assert state.subscription_version == version
    state.subscribe(["a", "b"])
    assert state.subscription_version == version + 1


def test_a_pattern_matches_from_the_start_of_the_name() -> None:
    state = SubscriptionState()
    state.subscribe(pattern="a|bb")
    assert state.mode is Mode.PATTERN
    assert state.match(["a", "ab", "b", "bb", "cbb"])
    assert state.subscribed_topics == {"a", "ab", "bb"}
    assert not state.match(["a", "ab", "bb"])
    state.subscribe(pattern=re.compile("b$"))
    assert state.match(["b", "bb"])
    assert state.subscribed_topics == {"b"}


def test_the_group_leader_watches_more_than_it_subscribes_to() -> None:
    state = SubscriptionState()
    state.subscribe(["a"])
    state.watch_for_group(["b"])
    assert state.wanted_topics == {"a", "b"}
    assert state.subscribed_topics == {"a"}


def test_only_what_was_handed_out_may_be_committed() -> None:
    state = subscribed(A, B)
    assert state.consumed() == {}
    state.seek(A, 10)
    iteration = chunk(state, 10, 11, 15, end=20)
    assert state.consumed()[A] == OffsetAndMetadata(10, "", 6)
    return_up_to(iteration, 10)
    assert state.consumed() == {A: OffsetAndMetadata(11, "", 7)}
    return_up_to(iteration, 15)
    assert state.consumed()[A].offset == 16
    state.end_iteration()
    assert state.consumed()[A] == OffsetAndMetadata(20, "", 7)


def test_the_position_in_a_topic_that_was_created_again_is_not_committed() -> None:
    state = subscribed(A, B)
    ids = {"a": uuid4(), "b": uuid4()}
    state.topic_ids = lambda: ids
    for partition in (A, B):
        state.seek(partition, 10)
        state.get(partition).cursor.topic_id = ids[partition.topic]
    ids = {"a": uuid4()}
    assert set(state.consumed()) == {B}, "a topic that the metadata does not have may be the same"
    state.seek(A, 3)
    assert state.consumed()[A].offset == 3


def test_records_that_an_iteration_has_not_handed_out_are_given_back() -> None:
    state = subscribed(A)
    state.seek(A, 10)
    returned: list[object] = []
    state.on_ready = returned.append
    iteration = chunk(state, 10, 11, 12, end=13)
    return_up_to(iteration, 10)
    state.pause(A)
    assert [record.offset for record in state.get(A).cursor.given_back] == [11, 12]
    assert iteration.interrupted
    assert returned == [state.get(A)]


def test_a_chunk_that_is_put_down_twice_gives_back_the_same() -> None:
    state = subscribed(A)
    state.seek(A, 10)
    iteration = chunk(state, 10, 11, 12, end=13)
    return_up_to(iteration, 10)
    assert iteration.give_back()  # as where Ctrl-C comes before the subscription takes note
    state.end_iteration()
    assert [record.offset for record in state.get(A).cursor.given_back] == [11, 12]
    assert state.consumed()[A].offset == 11
    assert state.chunk is None


def test_moving_elsewhere_leaves_nothing_of_before() -> None:
    state = subscribed(A)
    state.seek(A, 10)
    iteration = chunk(state, 10, 11, end=12)
    before = state.get(A).cursor
    state.seek_to(A, EARLIEST)
    assert state.get(A).cursor is not before
    assert iteration.interrupted
    assert state.get(A).cursor.given_back == []
    assert state.consumed() == {}


def test_partitions_that_are_leaving_can_still_be_committed() -> None:
    state = subscribed(A)
    state.seek(A, 3)
    state.mark_leaving([A, B])
    assert state.get(A).leaving
    assert state.consumed()[A].offset == 3


def test_without_position_lists_what_the_committed_offset_decides() -> None:
    state = subscribed(A, B)
    assert state.without_position() == [A, B]
    state.seek_to(A, EARLIEST)
    assert state.without_position() == [B]
    state.seek(B, 1)
    assert state.without_position() == []
    state.seek_to_committed(B)
    assert state.without_position() == [B]


def test_assigning_by_hand_and_by_group_exclude_each_other() -> None:
    state = SubscriptionState()
    state.assign_by_user([A])
    with pytest.raises(IllegalStateError):
        state.subscribe(["a"])
    with pytest.raises(IllegalStateError):
        state.assign_from_group([A])
    state.unsubscribe()
    assert state.mode is Mode.NONE
    state.subscribe(["a"])
    with pytest.raises(IllegalStateError):
        state.assign_by_user([A])


@pytest.mark.parametrize("topic", ["", ".", "..", "a b", "x" * 250, "ä"])
def test_impossible_topics_are_refused(topic: str) -> None:
    with pytest.raises(IllegalArgumentError):
        SubscriptionState().subscribe([topic])


def test_either_topics_or_a_pattern() -> None:
    with pytest.raises(IllegalArgumentError):
        SubscriptionState().subscribe()
    with pytest.raises(IllegalArgumentError):
        SubscriptionState().subscribe(["a"], pattern="b")
    with pytest.raises(TypeError):
        SubscriptionState().subscribe(["a"], listener=object())
    with pytest.raises(TypeError):
        SubscriptionState().assign_by_user([("a", 0)])  # type: ignore[list-item]


def test_a_reply_for_a_place_that_was_left_goes_nowhere() -> None:
    from kafka.consumer.fetch_response import FetchTarget

    state = subscribed(A)
    state.seek(A, 3)
    before = FetchTarget(state.get(A))
    stale = [before.stale]
    state.seek(A, 3)
    stale.append(before.stale)
    assert stale == [False, True]
    slow = FetchTarget(state.get(A))
    state.get(A).cursor.fetch_offset = 9  # another connection was faster
    assert slow.stale
    assert repr(Cursor(3)) == "<Cursor at 3 fetches 3 has 0 waiting>"


def test_only_positions_that_no_commit_reached_before_their_partitions_went_are_unstored() -> None:
    state = subscribed(A, B)
    for partition in (A, B):
        state.seek(partition, 0)
        state.get(partition).cursor.advance(5, 7)
    state.assign_from_group([])
    state.note_answered({A: OffsetAndMetadata(5), B: OffsetAndMetadata(4)})
    assert state.take_unstored() == {B}
    assert state.take_unstored() == set()
