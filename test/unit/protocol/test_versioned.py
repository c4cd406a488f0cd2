"""Messages with their version in front."""

from __future__ import annotations

import pytest

from kafka.errors import KafkaProtocolError
from kafka.protocol.consumer_protocol import ConsumerProtocolAssignment, ConsumerProtocolSubscription
from kafka.protocol.group_log import (
    GroupMetadataKey,
    GroupMetadataValue,
    LegacyOffsetCommitKey,
    OffsetCommitKey,
    OffsetCommitValue,
)
from kafka.protocol.transaction_log import TransactionLogKey, TransactionLogValue
from kafka.protocol.versioned import (
    decode_control_record,
    decode_group_log,
    decode_transaction_log,
    decode_versioned,
    encode_versioned,
)


@pytest.mark.parametrize("version", range(4))
def test_subscriptions_of_every_version_come_back(version: int) -> None:
    message = ConsumerProtocolSubscription[version](["a", "b"], b"user data")
    assert decode_versioned(ConsumerProtocolSubscription, encode_versioned(message)) == message


def test_a_newer_version_is_read_as_our_newest() -> None:
    data = encode_versioned(ConsumerProtocolAssignment[3]([("t", [0, 1])], None))
    from_the_future = b"\0\x09" + data[2:] + b"what comes after"
    assert decode_versioned(ConsumerProtocolAssignment, from_the_future).assigned_partitions[0].partitions == [0, 1]


@pytest.mark.parametrize("data", [b"", b"\0", b"\xff\xff", b"\0\0\0"])
def test_torn_messages_are_errors(data: bytes) -> None:
    with pytest.raises(KafkaProtocolError, match="ConsumerProtocolSubscription"):
        decode_versioned(ConsumerProtocolSubscription, data)


def test_offsets_and_groups_are_read_from_the_log() -> None:
    key = b"\0\1" + OffsetCommitKey[0]("g", "t", 3).encode()
    value = encode_versioned(OffsetCommitValue[3](offset=7, leader_epoch=1, metadata="m", commit_timestamp=5))
    entry = decode_group_log(key, value)
    assert (entry.key.group, entry.key.partition, entry.value.offset) == ("g", 3, 7)
    old = decode_group_log(b"\0\0" + LegacyOffsetCommitKey[0]("g", "t", 3).encode(), None)
    assert (old.key.topic, old.value) == ("t", None)
    group = decode_group_log(
        b"\0\2" + GroupMetadataKey[0]("g").encode(),
        encode_versioned(GroupMetadataValue[3]("consumer", 5, "range", "m1", 0, [])),
    )
    assert (group.key.group, group.value.generation) == ("g", 5)


def test_transactions_are_read_from_the_log() -> None:
    value = encode_versioned(TransactionLogValue[0](producer_id=9, producer_epoch=1))
    assert decode_transaction_log(b"\0\0" + TransactionLogKey[0]("tx").encode(), value).value.producer_id == 9


def test_unknown_record_types_are_errors() -> None:
    with pytest.raises(KafkaProtocolError, match="4660 is not a type of record in group_log"):
        decode_group_log(b"\x12\x34", b"")
    with pytest.raises(KafkaProtocolError, match="always has a key"):
        decode_group_log(None, b"")


def test_control_records_are_markers() -> None:
    assert decode_control_record(b"\0\0\0\0", b"\0\0\0\0\0\7")[0] == "abort"
    assert decode_control_record(b"\0\0\0\1", b"\0\0\0\0\0\7")[1].coordinator_epoch == 7
    assert decode_control_record(b"\0\0\0\2", b"")[0] == "type 2"
