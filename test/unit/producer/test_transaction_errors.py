"""What each error code means at each step, in one table; and the forms of the requests."""

from __future__ import annotations

import pytest

from kafka import errors
from kafka.errors import for_code
from kafka.producer.transaction_protocol import (
    Meaning,
    Step,
    Transaction,
    Who,
    add_offsets_request,
    add_partitions_request,
    commit_offsets_request,
    end_request,
    error_of,
    init_request,
    meaning_of,
    meaning_of_lost_record,
)
from kafka.protocol.transaction import AddPartitionsToTxnResponse
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

M = Meaning
# code: INIT, ADD, OFFSETS, END
TABLE = {
    3: (M.RETRY, M.RETRY, M.RETRY, M.RETRY),
    7: (M.LOOK_UP,) * 4,
    14: (M.RETRY,) * 4,
    15: (M.LOOK_UP,) * 4,
    16: (M.LOOK_UP,) * 4,
    51: (M.SOON,) * 4,
    12: (M.REFUSED, M.ABORT, M.ABORT, M.FATAL),
    22: (M.REFUSED, M.ABORT, M.ABORT, M.FATAL),
    25: (M.REFUSED, M.ABORT, M.ABORT, M.FATAL),
    29: (M.REFUSED, M.ABORT, M.ABORT, M.FATAL),
    30: (M.REFUSED, M.ABORT, M.ABORT, M.FATAL),
    35: (M.REFUSED, M.FATAL, M.FATAL, M.FATAL),
    47: (M.FENCED,) * 4,
    48: (M.REFUSED, M.FATAL, M.FATAL, M.FATAL),
    49: (M.LOST_ID,) * 4,
    50: (M.REFUSED, M.ABORT, M.ABORT, M.FATAL),
    53: (M.REFUSED, M.FATAL, M.FATAL, M.FATAL),
    82: (M.REFUSED, M.ABORT, M.ABORT, M.FATAL),
    90: (M.FENCED,) * 4,
    120: (M.ABORT,) * 4,
    -1: (M.REFUSED, M.ABORT, M.ABORT, M.FATAL),
}


@pytest.mark.parametrize("code", TABLE)
def test_codes_at_each_step(code):
    error = for_code(code)()
    assert tuple(meaning_of(error, step) for step in (Step.INIT, Step.ADD, Step.OFFSETS, Step.END)) == TABLE[code]
    assert meaning_of(error, Step.ADD_GROUP) is meaning_of(error, Step.OFFSETS)


@pytest.mark.parametrize(
    "error",
    [errors.KafkaConnectionError("x"), errors.NodeNotReadyError("x"), errors.KafkaTimeoutError("x")],
    ids=lambda error: type(error).__name__,
)
def test_what_no_broker_said_is_about_the_way_there(error):
    assert all(meaning_of(error, step) is M.LOOK_UP for step in Step)


def test_records_that_are_lost():
    assert meaning_of_lost_record(for_code(47)()) is M.ABORT  # KIP-588: fence or timeout, the coordinator knows
    assert meaning_of_lost_record(for_code(90)()) is M.FENCED
    assert meaning_of_lost_record(for_code(53)()) is M.FATAL
    assert meaning_of_lost_record(for_code(29)()) is M.ABORT
    assert meaning_of_lost_record(for_code(45)()) is M.ABORT


def noted(error, step=Step.END):
    transaction = Transaction(0.0, is_v2=False)
    transaction.note(error, step)
    return transaction


def test_a_coordinator_that_loses_its_office_may_have_written():
    assert all(noted(for_code(code)()).maybe_ended for code in (-1, 7, 15, 16))
    assert noted(errors.KafkaConnectionError("x")).maybe_ended
    assert not any(noted(for_code(code)()).maybe_ended for code in (14, 47, 48, 51, 90))
    assert not noted(for_code(16)(), Step.ADD).maybe_ended


def test_a_request_without_an_answer_may_still_arrive():
    assert noted(errors.KafkaConnectionError("x"), Step.ADD).has_unanswered
    assert not noted(for_code(16)(), Step.ADD).has_unanswered


WHO = Who("id", 7, 3)


def test_only_newer_versions_tell_the_epoch_when_they_ask_for_another():
    assert init_request(2, WHO, 60.0).encode() == init_request(2, Who("id", -1, -1), 60.0).encode()
    newer = init_request(5, WHO, 60.0)
    assert (newer.producer_id, newer.producer_epoch, newer.transaction_timeout_ms) == (7, 3, 60000)


def test_partitions_are_grouped_by_topic():
    request = add_partitions_request(3, WHO, [TopicPartition("b", 1), TopicPartition("a", 2), TopicPartition("a", 0)])
    assert [(topic.name, topic.partitions) for topic in request.v3_and_below_topics] == [("a", [0, 2]), ("b", [1])]
    request.encode()


def test_members_are_sent_since_kip_447():
    offsets = {TopicPartition("t", 1): OffsetAndMetadata(5, "note", 2)}
    group = ConsumerGroupMetadata("g", 4, "member", "instance")
    for version in range(6):
        request = commit_offsets_request(version, WHO, offsets, group)
        request.encode()
        if version >= 3:
            assert (request.generation_id, request.member_id, request.group_instance_id) == (4, "member", "instance")
    entry = request.topics[0].partitions[0]
    assert (entry.committed_offset, entry.committed_leader_epoch, entry.committed_metadata) == (5, 2, "note")


@pytest.mark.parametrize("version", range(5))
def test_all_versions_can_be_written(version):
    end_request(version, WHO, committed=True).encode()
    add_offsets_request(version, WHO, "g").encode()


def test_an_error_that_stays_goes_before_one_that_passes_and_the_spared_say_nothing():
    def reply(*codes):
        partition, topic = (
            AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult,
            AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult,
        )
        results = [partition(partition_index=at, partition_error_code=code) for at, code in enumerate(codes)]
        found = [topic(name="t", results_by_partition=results)]
        return error_of(AddPartitionsToTxnResponse[3](results_by_topic_v3_and_below=found))

    assert reply(0, 0) is None
    assert isinstance(reply(55, 3), errors.UnknownTopicOrPartitionError)
    found = reply(55, 3, 29)
    assert isinstance(found, errors.TopicAuthorizationFailedError)
    assert found.topic_partition == TopicPartition("t", 2)
