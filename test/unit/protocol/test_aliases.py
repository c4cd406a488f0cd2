from __future__ import annotations

import importlib

import pytest

from kafka.protocol.aliases import CLASS_ALIASES, FIELD_ALIASES, HISTORIC_APIS, SCALAR_ARRAYS
from kafka.protocol.registry import APIS, api_named
from kafka.protocol.types import AbstractType, Boolean, Bytes, Records, String

HOME = {"RequestHeader": "headers", "ConsumerProtocolSubscription": "consumer_protocol"}
HOME["ConsumerProtocolAssignment"] = "consumer_protocol"

FIELDS = [(label, old, new) for label, names in FIELD_ALIASES.items() for old, new in names.items()]


def message(name):
    module = HOME[name] if name in HOME else api_named(name).module
    return getattr(importlib.import_module(f"kafka.protocol.{module}"), name)


def struct(label, version=None):
    name, _, part = label.partition(".")
    found = message(name)
    found = found if version is None else found[version]
    return getattr(found, part) if part else found


def versions_with(label, field):
    cls = message(label.partition(".")[0])
    versions = struct(label)._fields[field].versions
    return [version for version in range(cls._versions.low, cls._versions.high + 1) if version in versions]


def another_value(field, version):
    """A value that is not the default, so that a field which took nothing cannot pass."""
    element = field.element
    one = {String: "a", Bytes: b"a", Records: b"a", Boolean: True}.get(element, 7)
    if not issubclass(element, AbstractType):
        one = element._of_version(version)()
    return [one] if field.is_array else one


def test_an_old_field_name_stands_for_a_field():
    for label, old, new in FIELDS:
        assert old != new
        assert new in struct(label)._fields


def test_no_version_has_a_field_of_the_old_name_next_to_what_it_stands_for():
    for label, old, new in FIELDS:
        if old in struct(label)._fields:
            assert not set(versions_with(label, old)) & set(versions_with(label, new))


def test_a_field_can_be_given_and_read_by_its_old_name():
    for label, old, new in FIELDS:
        version = versions_with(label, new)[0]
        cls = struct(label, version)
        value = another_value(cls._fields[new], version)
        made = cls(**{old: value})
        assert getattr(made, new) == value
        assert getattr(made, old) == value


def test_a_field_of_that_name_comes_before_an_old_name():
    cls = struct("DeleteTopicsRequest", 6)
    assert cls(topics=[(None, cls.DeleteTopicState().topic_id)]).topics[0].name is None


@pytest.mark.parametrize(
    ("label", "version", "old_names"),
    [
        # The order on the wire, by the names of 2.0: what tuples were unpacked by.
        ("MetadataResponse.MetadataResponseTopic", 0, "error_code topic partitions"),
        ("MetadataResponse.MetadataResponsePartition", 0, "error_code partition leader replicas isr"),
        ("MetadataResponse.MetadataResponsePartition", 5, "error_code partition leader replicas isr offline_replicas"),
        ("FetchRequest", 0, "replica_id max_wait_time min_bytes topics"),
        ("FetchRequest.FetchPartition", 0, "partition offset max_bytes"),
        ("FetchResponse.PartitionData", 0, "partition error_code highwater_offset message_set"),
        ("ProduceRequest", 2, "required_acks timeout topics"),
        ("ProduceResponse.PartitionProduceResponse", 2, "partition error_code offset timestamp"),
        ("ListOffsetsRequest.ListOffsetsPartition", 0, "partition timestamp max_offsets"),
        ("ListOffsetsResponse.ListOffsetsPartitionResponse", 0, "partition error_code offsets"),
        (
            "OffsetCommitRequest",
            2,
            "consumer_group consumer_group_generation_id consumer_id retention_time topics",
        ),
        ("OffsetCommitRequest.OffsetCommitRequestPartition", 1, "partition offset timestamp metadata"),
        ("OffsetFetchResponse.OffsetFetchResponsePartition", 1, "partition offset metadata error_code"),
        ("FindCoordinatorResponse", 0, "error_code coordinator_id host port"),
        (
            "JoinGroupRequest",
            1,
            "group session_timeout rebalance_timeout member_id protocol_type group_protocols",
        ),
        ("JoinGroupResponse", 0, "error_code generation_id group_protocol leader_id member_id members"),
        ("DescribeGroupsResponse.DescribedGroup", 0, "error_code group state protocol_type protocol members"),
        ("CreateTopicsRequest", 1, "create_topic_requests timeout validate_only"),
    ],
)
def test_old_names_lie_in_wire_order(label, version, old_names):
    names = FIELD_ALIASES.get(label, {})
    assert tuple(names.get(old, old) for old in old_names.split()) == struct(label, version)._wire_names()


def test_arrays_of_plain_values_became_arrays_of_structs_with_one_field():
    for label, arrays in SCALAR_ARRAYS.items():
        for name, inner in arrays.items():
            field = struct(label)._fields[name]
            assert field.is_array
            assert struct(label, 0)._fields[name].element._of_version(0)._wire_names() == (inner,)


def test_historic_modules_had_messages_that_exist():
    names = {api.name for api in APIS.values()}
    for module, apis in HISTORIC_APIS.items():
        assert module.startswith("kafka.protocol.")
        assert set(apis) <= names


def test_old_names_of_messages_stand_for_messages():
    for module, names in CLASS_ALIASES.items():
        for old, new in names.items():
            assert old != new
            assert message(new).__name__ == new
            assert new.removesuffix("Request").removesuffix("Response") in HISTORIC_APIS[module]
