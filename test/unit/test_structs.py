"""kafka.structs: what is passed around keeps its field order, and later fields have defaults."""

import pickle

import pytest

import kafka
from kafka import structs
from kafka.structs import BrokerMetadata, ConsumerGroupMetadata, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition

TUPLES = [
    c
    for c in (getattr(structs, name) for name in dir(structs))
    if isinstance(c, type) and issubclass(c, tuple) and hasattr(c, "_fields")
]

# The leading fields of each tuple, in releases 1.3.4 and 2.x where they had it.
HISTORIC = {
    "TopicPartition": "topic partition",
    "TopicPartitionReplica": "topic partition broker_id",
    "BrokerMetadata": "nodeId host port rack",
    "PartitionMetadata": "topic partition leader replicas isr error",
    "OffsetAndMetadata": "offset metadata leader_epoch",
    "OffsetAndTimestamp": "offset timestamp leader_epoch",
    "ConsumerGroupMetadata": "group_id generation_id member_id group_instance_id",
    "MemberInformation": "member_id client_id client_host member_metadata member_assignment",
    "GroupInformation": "error_code group state protocol_type protocol members authorized_operations",
    "RetryOptions": "limit backoff_ms retry_on_timeouts",
    "MetadataRequest": "topics",
    "MetadataResponse": "brokers topics",
    "ConsumerMetadataRequest": "groups",
    "ConsumerMetadataResponse": "error nodeId host port",
    "ProduceRequestPayload": "topic partition messages",
    "ProduceResponsePayload": "topic partition error offset",
    "FetchRequestPayload": "topic partition offset max_bytes",
    "FetchResponsePayload": "topic partition error highwaterMark messages",
    "OffsetRequestPayload": "topic partition time max_offsets",
    "ListOffsetRequestPayload": "topic partition time",
    "OffsetResponsePayload": "topic partition error offsets",
    "ListOffsetResponsePayload": "topic partition error timestamp offset",
    "OffsetCommitRequestPayload": "topic partition offset metadata",
    "OffsetCommitResponsePayload": "topic partition error",
    "OffsetFetchRequestPayload": "topic partition",
    "OffsetFetchResponsePayload": "topic partition offset metadata error",
    "OffsetAndMessage": "offset message",
    "Message": "magic attributes key value",
    "KafkaMessage": "topic partition offset key value",
    # Ours since then.
    "SubscriptionPattern": "pattern",
}


def test_fields_stand_in_their_historic_order():
    for name, fields in HISTORIC.items():
        cls = getattr(structs, name)
        assert list(cls._fields)[: len(fields.split())] == fields.split()
        later = cls._fields[len(fields.split()) :]
        assert set(later) <= set(cls._field_defaults)


def test_every_tuple_is_listed_documented_and_picklable():
    for cls in TUPLES:
        assert cls.__name__ in HISTORIC
        assert cls.__doc__
        assert not cls.__doc__.startswith(f"{cls.__name__}(")
        value = cls(*range(len(cls._fields)))
        assert pickle.loads(pickle.dumps(value)) == value


def test_topic_partition_hashes_and_compares_as_a_plain_tuple():
    assert TopicPartition.__hash__ is tuple.__hash__
    assert TopicPartition.__eq__ is tuple.__eq__


def test_older_forms_need_no_leader_epoch():
    assert OffsetAndMetadata(5, "m").leader_epoch == -1
    assert OffsetAndTimestamp(5, 6).leader_epoch == -1


def test_broker_metadata_reads_in_both_spellings():
    broker = BrokerMetadata(1, "b1", 9092, None)
    assert broker.nodeId == broker.node_id == 1
    assert str(broker) == "broker 1 (b1:9092)"


def test_group_metadata_of_a_consumer_without_group():
    assert ConsumerGroupMetadata() == (None, -1, "", None, structs.MemberState.UNJOINED)


def test_the_package_exports_lazily_what_it_lists():
    for name in kafka.__all__:
        assert getattr(kafka, name) is not None
    assert set(kafka.__all__) | {"structs"} <= set(dir(kafka))
    assert not {"Any", "TYPE_CHECKING", "annotations", "import_module"} & set(dir(kafka))
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = kafka.nothing
