"""The object model: versions, attributes, tuples, old names, and what is refused."""

from __future__ import annotations

import inspect
import uuid

import pytest

from kafka.errors import KafkaProtocolError, UnsupportedVersionError
from kafka.protocol.admin import ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.api import Request, Response
from kafka.protocol.commit import OffsetCommitRequest
from kafka.protocol.fetch import FetchRequest, FetchResponse
from kafka.protocol.group import JoinGroupRequest
from kafka.protocol.metadata import MetadataRequest, MetadataResponse
from kafka.protocol.sasl import SaslAuthenticateRequest
from kafka.protocol.struct import Struct
from kafka.protocol.transaction import InitProducerIdRequest

# Versions


def test_a_class_tells_its_versions() -> None:
    assert repr(MetadataRequest) == "<class MetadataRequest api_key=3 versions 0-13 flexible 9+>"
    assert "stable 0-5" in repr(InitProducerIdRequest)
    assert len(MetadataRequest) == 14
    assert [cls.API_VERSION for cls in MetadataRequest] == list(range(14))


def test_binding_gives_the_same_class_each_time() -> None:
    assert FetchRequest[4] is FetchRequest[4]
    assert FetchRequest[-1] is FetchRequest[18]
    assert issubclass(FetchRequest[4], FetchRequest)
    assert (FetchRequest[4].API_KEY, FetchRequest[4].API_VERSION) == (1, 4)
    assert FetchRequest[4].RESPONSE_TYPE is FetchResponse[4]
    assert FetchResponse[4].REQUEST_TYPE is FetchRequest[4]
    assert FetchRequest.RESPONSE_TYPE is FetchResponse


@pytest.mark.parametrize("version", [19, -20, 40_000])
def test_a_version_out_of_range_is_refused_by_name(version: int) -> None:
    with pytest.raises(UnsupportedVersionError, match=f"FetchRequest has versions 0-18, not {version}"):
        FetchRequest[version]


def test_an_unbound_message_needs_a_version_to_be_encoded() -> None:
    with pytest.raises(KafkaProtocolError, match=r"FetchRequest is not bound to a version: use FetchRequest\[n\]"):
        FetchRequest().encode()
    assert FetchRequest(max_wait_ms=5).encode(version=0) == FetchRequest[0](max_wait_ms=5).encode()


@pytest.mark.parametrize("message", [Struct, Request, Response, FetchRequest])
def test_all_attributes_of_an_unbound_message_can_be_looked_at(message: type[Struct]) -> None:
    """As editors, mocks and the interpreter's help do."""
    assert dict(inspect.getmembers(message))["decode"]


# Making them


def test_positional_arguments_follow_the_wire_order_of_the_version() -> None:
    old = FetchRequest[0](-1, 100, 1, [("t", [(0, 5, 1000)])])
    new = FetchRequest[4](-1, 100, 1, 50_000, 0, [("t", [(0, 5, 1000)])])
    assert (old.max_wait_ms, old.min_bytes) == (new.max_wait_ms, new.min_bytes) == (100, 1)
    assert old.topics[0].partitions[0].fetch_offset == 5
    assert new.max_bytes == 50_000


def test_structs_are_made_of_tuples_mappings_and_lone_values() -> None:
    by_tuple = MetadataRequest[4]([("events",)], True)
    by_mapping = MetadataRequest[4](topics=[{"name": "events"}])
    by_value = MetadataRequest[4](["events"])
    assert by_tuple == by_mapping == by_value


def test_a_tuple_needs_a_version_to_be_understood() -> None:
    with pytest.raises(KafkaProtocolError, match="the order of a tuple depends on the version"):
        FetchRequest(topics=[("t", [])])
    assert FetchRequest(topics=[{"topic": "t"}]).topics[0].topic == "t"


def test_fields_that_are_not_given_have_the_default() -> None:
    request = FetchRequest[12]()
    assert (request.replica_id, request.max_bytes, request.topics, request.cluster_id) == (-1, 0x7FFFFFFF, [], None)
    assert FetchRequest().replica_state.replica_epoch == -1
    assert FetchRequest[12]().topics is not request.topics


def test_a_struct_that_was_not_given_can_be_changed_in_place() -> None:
    partition = FetchResponse[12].PartitionData()
    partition.current_leader.leader_id = 7
    again = FetchResponse[12].PartitionData.decode(partition.encode())
    assert again.current_leader.leader_id == 7
    assert FetchResponse[12].PartitionData().current_leader.leader_id == -1


def test_an_unknown_name_is_refused_and_the_error_lists_the_names() -> None:
    with pytest.raises(TypeError, match=r"MetadataRequest\[1\] has no field 'topcis'; it has topics"):
        MetadataRequest[1](topcis=[])
    with pytest.raises(AttributeError, match=r"MetadataRequest\[1\] has no field 'topcis'; it has topics"):
        MetadataRequest[1]().topcis  # noqa: B018


# As values


def test_they_unpack_like_tuples_in_wire_order() -> None:
    response = MetadataResponse[0]([(1, "a", 9092)], [(0, "t", [(0, 0, 1, [1], [1])])])
    brokers, topics = response
    node_id, host, port = brokers[0]
    assert (node_id, host, port) == (1, "a", 9092)
    error, name, partitions = topics[0]
    assert (error, name, len(partitions)) == (0, "t", 1)
    assert topics[0][1] == "t"
    assert len(brokers[0]) == 3
    assert brokers[0] == (1, "a", 9092)


def test_they_compare_by_value() -> None:
    assert MetadataRequest[1](["a"]) == MetadataRequest[1](["a"])
    assert MetadataRequest[1](["a"]) != MetadataRequest[1](["b"])
    assert MetadataRequest(topics=[{"name": "a"}]) == MetadataRequest[1](["a"])
    assert MetadataRequest[1]() != MetadataResponse[1]()
    with pytest.raises(TypeError, match="unhashable"):
        hash(MetadataRequest[1]())


def test_repr_can_be_read_and_hides_secrets() -> None:
    assert repr(MetadataRequest[1](["a"])) == "MetadataRequest[1](topics=[MetadataRequestTopic(name='a')])"
    assert "s3cret" not in repr(SaslAuthenticateRequest[0](b"\0user\0s3cret"))
    assert "<1000 bytes>" in repr(JoinGroupRequest[0](protocols=[("range", b"x" * 1000)]))


def test_old_names_still_work() -> None:
    request = FetchRequest[4](-1, max_wait_time=100, min_bytes=1)
    assert request.max_wait_ms == request.max_wait_time == 100
    commit = OffsetCommitRequest[2]("g", 5, "m", -1, [("t", [(0, 7, "")])])
    assert commit.consumer_group == commit.group_id == "g"


# What is refused


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (lambda: FetchRequest[4](max_wait_ms="soon"), r"FetchRequest\[4\].max_wait_ms takes a number of type Int32"),
        (
            lambda: FetchRequest[4](max_wait_ms=1.5),
            r"FetchRequest\[4\].max_wait_ms takes .*Int32, not 1.5",
        ),
        (lambda: FetchRequest[4](max_wait_ms=2**31), r"FetchRequest\[4\].max_wait_ms .*not 2147483648"),
        (lambda: FetchRequest[4](topics=[("t" * 40_000, [])]), r"topics\[0\].topic is too long: 40000"),
        (lambda: FetchRequest[12](topics=[("t" * 40_000, [])]), r"topics\[0\].topic is too long: 40000"),
        (lambda: FetchRequest[4](topics=[(None, [])]), r"FetchRequest\[4\].topics\[0\].topic may not be None"),
        (lambda: FetchRequest[4](topics=[("t", [(0, "x", 1)])]), r"topics\[0\].partitions\[0\].fetch_offset takes"),
        (lambda: MetadataRequest[4](allow_auto_topic_creation="no"), r"allow_auto_topic_creation takes True or False"),
        (lambda: MetadataRequest[4](["a"], 2), r"allow_auto_topic_creation takes True or False, not 2"),
        (lambda: MetadataRequest[1](["\ud800"]), r"topics\[0\].name cannot be written as utf-8"),
        (lambda: MetadataRequest[0](None), r"MetadataRequest\[0\].topics may not be None"),
        (lambda: JoinGroupRequest[0](protocols=[("a", "text")]), r"protocols\[0\].metadata takes bytes, not 'text'"),
        (lambda: FetchRequest[13](topics=[("id", [])]), r"topics\[0\].topic_id takes a uuid.UUID, not 'id'"),
        (
            lambda: MetadataRequest[9](unknown_tags={0: None}),
            r"MetadataRequest\[9\].tagged_fields takes bytes",
        ),
    ],
)
def test_bad_values_are_named_with_message_field_and_version(message: object, complaint: str) -> None:
    with pytest.raises(KafkaProtocolError, match=complaint) as caught:
        message().encode()  # type: ignore[operator]
    assert caught.value.message_name
    assert caught.value.version is not None


def test_a_wrong_container_is_refused_at_once() -> None:
    with pytest.raises(KafkaProtocolError, match="takes a list, not 'events'"):
        MetadataRequest[1]("events")


def test_a_tuple_of_the_wrong_length_is_refused() -> None:
    with pytest.raises(KafkaProtocolError, match="positional arguments"):
        FetchRequest[0](-1, 1, 1, [("t", [(0, 1, 2, 3)])])


def test_a_field_that_the_version_cannot_carry_is_refused() -> None:
    with pytest.raises(UnsupportedVersionError, match=r"FetchRequest\[4\] cannot carry forgotten_topics_data=.*7\+"):
        FetchRequest[4](forgotten_topics_data=[{"topic": "t"}])
    request = FetchRequest[4]()
    with pytest.raises(KafkaProtocolError, match="cannot carry replica_state"):
        request.replica_state = FetchRequest.ReplicaState(replica_id=5)
    with pytest.raises(UnsupportedVersionError, match=r"FetchRequest\[4\] cannot carry forgotten_topics_data"):
        FetchRequest(forgotten_topics_data=[{"topic": "t"}]).encode(version=4)
    nested = FetchRequest(topics=[{"topic": "t", "partitions": [{"last_fetched_epoch": 5}]}])
    with pytest.raises(UnsupportedVersionError, match=r"FetchPartition cannot carry last_fetched_epoch=5"):
        nested.encode(version=4)
    assert nested.encode(version=12)


def test_an_ignorable_field_is_left_out_where_it_cannot_be_carried() -> None:
    with_rack = FetchRequest(max_wait_ms=1, rack_id="r1")
    assert with_rack.encode(version=4) == FetchRequest[4](max_wait_ms=1).encode()
    assert FetchRequest[4](rack_id="r1").rack_id == ""


def test_nothing_is_half_written() -> None:
    parts: list[bytes] = [b"before"]
    request = FetchRequest[4](topics=[("good", []), ("bad", [(0, "x", 1)])])
    with pytest.raises(KafkaProtocolError):
        FetchRequest._codec(4).encode(request, parts)
    assert parts == [b"before"]


def test_tags_do_not_fit_a_version_without_them() -> None:
    with pytest.raises(KafkaProtocolError, match="not a flexible version"):
        MetadataRequest[8](unknown_tags={5: b"x"})


# Unusual but right values


def test_bytes_are_taken_for_text() -> None:
    assert MetadataRequest[1]([b"events"]).encode() == MetadataRequest[1](["events"]).encode()


def test_sets_and_generators_are_taken_for_lists() -> None:
    response = ApiVersionsResponse[0](0, ((key, 0, 1) for key in range(3)))
    assert [version.api_key for version in response.api_keys] == [0, 1, 2]
    assert MetadataRequest[1]({"a"}).encode() == MetadataRequest[1](["a"]).encode()


def test_an_instance_of_another_version_is_written_as_this_one() -> None:
    topic = MetadataRequest[4].MetadataRequestTopic("t")
    assert MetadataRequest[9]([topic]).encode() == MetadataRequest[9](["t"]).encode()


def test_buffers_of_any_kind_are_taken_for_bytes() -> None:
    import array

    wide = memoryview(array.array("i", [1, 2]))
    assert SaslAuthenticateRequest[0](wide).encode() == SaslAuthenticateRequest[0](wide.tobytes()).encode()
    assert SaslAuthenticateRequest[0](bytearray(b"ab")).encode() == b"\0\0\0\2ab"


def test_topic_ids_are_uuids() -> None:
    one = uuid.uuid4()
    assert FetchRequest[13].decode(FetchRequest[13](topics=[(one, [])]).encode()).topics[0].topic_id == one


def test_decode_reads_from_a_file_like_object() -> None:
    from io import BytesIO

    data = ApiVersionsRequest[3]("purekafka", "1").encode()
    assert ApiVersionsRequest[3].decode(BytesIO(data)).client_software_name == "purekafka"
    with pytest.raises(KafkaProtocolError, match="takes bytes, not str"):
        ApiVersionsRequest[3].decode("text")
