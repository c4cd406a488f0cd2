"""What programs of the 1.x and 2.x generations import from kafka.protocol, and what they do with it."""

from __future__ import annotations

import importlib
import io
import pickle

import pytest

from kafka.errors import CorrelationIdError, InvalidReceiveError, KafkaProtocolError, UnsupportedCodecError
from kafka.protocol import API_KEYS, create_message
from kafka.protocol._declarative import schema_of
from kafka.protocol.admin import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    CreatePartitionsRequest,
    DescribeGroupsResponse_v0,
    ElectionType,
)
from kafka.protocol.aliases import CLASS_ALIASES, HISTORIC_APIS, MOVED_NAMES
from kafka.protocol.api import Request, RequestHeader, RequestHeaderV2, Response, ResponseHeader, ResponseHeaderV2
from kafka.protocol.broker_api_versions import BROKER_API_VERSIONS
from kafka.protocol.commit import GroupCoordinatorRequest, GroupCoordinatorResponse, OffsetFetchResponse_v1
from kafka.protocol.fetch import AbortedTransaction, FetchRequest_v0, FetchResponse_v0
from kafka.protocol.frame import KafkaBytes
from kafka.protocol.group import GroupMember, MemberAssignment, ProtocolMetadata
from kafka.protocol.legacy import (
    CODEC_GZIP,
    CODEC_SNAPPY,
    KafkaProtocol,
    create_gzip_message,
    create_message_set,
    create_snappy_message,
)
from kafka.protocol.message import Message, MessageSet, PartialMessage
from kafka.protocol.metadata import MetadataRequest, MetadataRequest_v1, MetadataResponse
from kafka.protocol.offset import OffsetRequest, OffsetResetStrategy, OffsetResponse
from kafka.protocol.parser import KafkaProtocol as Parser
from kafka.protocol.produce import ProduceRequest, ProduceResponse
from kafka.protocol.types import Array, BitField, Int16, Int32, Schema, String, TaggedFields
from kafka.structs import (
    FetchRequestPayload,
    OffsetCommitRequestPayload,
    OffsetFetchRequestPayload,
    OffsetRequestPayload,
    ProduceRequestPayload,
    ProduceResponsePayload,
    TopicPartition,
)

#: Module -> the APIs whose messages it had, with the last version that any generation had.
MESSAGES = {
    "add_offsets_to_txn": "AddOffsetsToTxn:2",
    "add_partitions_to_txn": "AddPartitionsToTxn:2",
    "admin": "AlterConfigs:1 AlterPartitionReassignments:0 ApiVersion:2 CreateAcls:1 CreatePartitions:1 CreateTopics:3"
    " DeleteAcls:1 DeleteGroups:1 DeleteRecords:0 DeleteTopics:3 DescribeAcls:2 DescribeClientQuotas:0"
    " DescribeConfigs:2 DescribeGroups:3 DescribeLogDirs:0 ElectLeaders:1 ListGroups:2 ListPartitionReassignments:0"
    " SaslAuthenticate:1 SaslHandShake:1",
    "api_versions": "ApiVersions:4",
    "commit": "GroupCoordinator:1 OffsetCommit:7 OffsetFetch:5",
    "end_txn": "EndTxn:2",
    "fetch": "Fetch:11",
    "find_coordinator": "FindCoordinator:2",
    "group": "Heartbeat:3 JoinGroup:5 LeaveGroup:3 SyncGroup:3",
    "init_producer_id": "InitProducerId:1",
    "list_offsets": "ListOffsets:5",
    "metadata": "Metadata:8",
    "offset": "Offset:5",
    "offset_for_leader_epoch": "OffsetForLeaderEpoch:4",
    "produce": "Produce:8",
    "sasl_authenticate": "SaslAuthenticate:1",
    "sasl_handshake": "SaslHandshake:1",
    "txn_offset_commit": "TxnOffsetCommit:2",
}

#: Module -> what else it had.
OTHERS = {
    "": "ALL_CODECS API_KEYS ATTRIBUTE_CODEC_MASK CODEC_GZIP CODEC_NONE CODEC_SNAPPY KafkaProtocol create_gzip_message"
    " create_message create_message_set create_snappy_message",
    "abstract": "AbstractType",
    "admin": "ElectionType",
    "api": "Request RequestHeader RequestHeaderV2 Response ResponseHeader ResponseHeaderV2",
    "api_versions": "BaseApiVersionsResponse",
    "broker_api_versions": "BROKER_API_VERSIONS",
    "fetch": "AbortedTransaction",
    "frame": "KafkaBytes",
    "group": "DEFAULT_GENERATION_ID GroupMember MemberAssignment ProtocolMetadata UNKNOWN_MEMBER_ID",
    "legacy": "ALL_CODECS ATTRIBUTE_CODEC_MASK CODEC_GZIP CODEC_NONE CODEC_SNAPPY KafkaProtocol create_gzip_message"
    " create_message create_message_set create_snappy_message",
    "list_offsets": "OffsetResetStrategy UNKNOWN_OFFSET",
    "message": "Message MessageSet PartialMessage",
    "offset": "OffsetResetStrategy UNKNOWN_OFFSET",
    "parser": "KafkaProtocol",
    "pickle": "",
    "struct": "Struct",
    "types": "Array BitField Boolean Bytes CompactArray CompactBytes CompactString Float64 Int16 Int32 Int64 Int8"
    " Schema String TaggedFields UnsignedVarInt32 VarInt32 VarInt64",
}


def full(module):
    return f"kafka.protocol.{module}" if module else "kafka.protocol"


FAMILIES = [
    (full(module), f"{api.partition(':')[0]}{kind}", int(api.partition(":")[2]))
    for module, apis in MESSAGES.items()
    for api in apis.split()
    for kind in ("Request", "Response")
]


def imported(module, name):
    namespace = {}
    exec(f"from {module} import {name}", namespace)
    return namespace[name]


# Importing


def test_a_name_can_be_imported_from_where_it_was():
    for module, name in [(full(m), n) for m, names in OTHERS.items() for n in names.split()]:
        assert imported(module, name) is not None


def test_a_message_can_be_imported_by_version_from_where_it_was():
    for module, name, last in FAMILIES:
        family = imported(module, name)
        assert len(family) > last
        for version in range(last + 1):
            cls = imported(module, f"{name}_v{version}")
            assert cls is family[version]
            assert version == cls.API_VERSION
            assert cls.decode(cls().encode()) == cls()


def test_every_module_can_be_imported_and_has_what_it_exports():
    for module in sorted({*MESSAGES, *OTHERS}):
        found = importlib.import_module(full(module))
        for name in getattr(found, "__all__", ()):
            assert getattr(found, name) is not None


def test_every_module_of_the_tables_looks_names_up_in_them():
    for module in sorted({*HISTORIC_APIS, *CLASS_ALIASES, *MOVED_NAMES}):
        names = [*MOVED_NAMES.get(module, ()), *CLASS_ALIASES.get(module, ())]
        names += [f"{api}Request_v0" for api in HISTORIC_APIS.get(module, ())]
        for name in names:
            assert imported(module, name) is not None


@pytest.mark.parametrize(
    ("module", "name", "says"),
    [
        ("metadata", "MetadataRequest_v99", "no MetadataRequest_v99: MetadataRequest has versions 0-13"),
        ("metadata", "FetchRequest", "no attribute 'FetchRequest'"),
        ("metadata", "MetadataRequest_vx", "no attribute"),
        ("metadata", "metadatarequest_v1", "no attribute"),
        ("offset", "GroupCoordinatorRequest", "no attribute"),
        ("api_versions", "nothing", "no attribute 'nothing'"),
        ("", "nothing", "no attribute 'nothing'"),
    ],
)
def test_other_names_are_not_there(module, name, says):
    with pytest.raises(AttributeError, match=says):
        getattr(importlib.import_module(full(module)), name)
    with pytest.raises(ImportError):
        imported(full(module), name)


def test_old_names_of_messages_are_the_messages_of_today():
    assert MetadataRequest_v1 is MetadataRequest[1]
    assert GroupCoordinatorRequest[0](consumer_group="g").key == "g"
    assert GroupCoordinatorRequest.RESPONSE_TYPE is GroupCoordinatorResponse
    assert OffsetRequest[1].RESPONSE_TYPE is OffsetResponse[1]
    assert issubclass(ApiVersionsResponse[2], imported("kafka.protocol.api_versions", "BaseApiVersionsResponse"))


def test_values_are_what_they_were():
    from kafka.protocol.group import DEFAULT_GENERATION_ID, UNKNOWN_MEMBER_ID
    from kafka.protocol.list_offsets import UNKNOWN_OFFSET

    strategies = (OffsetResetStrategy.LATEST, OffsetResetStrategy.EARLIEST, OffsetResetStrategy.NONE)
    assert (*strategies, UNKNOWN_OFFSET, DEFAULT_GENERATION_ID, UNKNOWN_MEMBER_ID) == (-1, -2, 0, -1, -1, "")
    assert (ElectionType.PREFERRED, ElectionType.UNCLEAN) == (0, 1)
    assert GroupMember() == (None, None, None)
    assert AbortedTransaction(producer_id=1, first_offset=2) == (1, 2)
    assert (API_KEYS[0], API_KEYS[1], API_KEYS[18]) == ("Produce", "Fetch", "ApiVersions")


@pytest.mark.parametrize("release", [(0, 8, 0), (0, 8, 2), (0, 9), (0, 10, 1), (0, 11), (1, 0), (2, 8), (3, 9), (4, 0)])
def test_broker_api_versions_has_the_releases_by_their_old_tuples(release):
    low, high = BROKER_API_VERSIONS[release][3]
    assert 0 <= low <= high < len(MetadataRequest)


# Messages in the old way


def test_an_old_program_asks_for_metadata():
    request = MetadataRequest[0](topics=["events"])
    message = b"".join([RequestHeader(request, correlation_id=1, client_id="me").encode(), request.encode()])
    assert Int32.encode(len(message)) + message == request.frame(1, "me")
    response = MetadataResponse[0]([(1, "a", 9092)], [(0, "events", [(0, 0, 1, [1], [1])])])
    read = MetadataResponse[0].decode(io.BytesIO(response.encode()))
    [(node_id, host, port)] = read.brokers
    [(error, topic, partitions)] = read.topics
    assert (node_id, host, port, error, topic) == (1, "a", 9092, 0, "events")
    assert [tuple(partition) for partition in partitions] == [(0, 0, 1, [1], [1])]


def test_a_response_becomes_plain_objects_with_the_historic_names():
    response = DescribeGroupsResponse_v0([(0, "g", "Stable", "consumer", "range", [("m", "c", "h", b"1", b"2")])])
    assert response.to_object() == {
        "groups": [
            {
                "error_code": 0,
                "group": "g",
                "state": "Stable",
                "protocol_type": "consumer",
                "protocol": "range",
                "members": [
                    {
                        "member_id": "m",
                        "client_id": "c",
                        "client_host": "h",
                        "member_metadata": b"1",
                        "member_assignment": b"2",
                    }
                ],
            }
        ]
    }


def test_plain_objects_have_bytes_for_views_and_lists_of_plain_values_as_they_were():
    records = MessageSet.encode([(0, Message(b"v"))], prepend_size=False)
    response = FetchResponse_v0.decode(FetchResponse_v0([("t", [(0, 0, 1, records)])]).encode())
    assert response.to_object()["topics"][0]["partitions"][0]["message_set"] == records
    assert MetadataRequest[1](["a"]).to_object() == {"topics": ["a"]}
    assert MetadataRequest[1](None).to_object() == {"topics": None}
    assert "topic_id" in MetadataRequest[12]([{"name": "a"}]).to_object()["topics"][0]


def test_a_field_is_found_by_its_present_and_by_its_old_name():
    request = ProduceRequest[2](1, 1000, [])
    assert request.get_item("acks") == request.get_item("required_acks") == 1
    with pytest.raises(KeyError, match="has no field 'encode'"):
        request.get_item("encode")


@pytest.mark.parametrize("assignments", [None, [[1, 2], [2, 3]]])
def test_new_partitions_are_taken_as_the_pair_that_they_were(assignments):
    old = CreatePartitionsRequest[1]([("t", (3, assignments))], 100, False)
    flat = None if assignments is None else [(ids,) for ids in assignments]
    new = CreatePartitionsRequest[1]([("t", 3, flat)], 100, False)
    assert old == new
    assert old.encode() == new.encode()
    assert CreatePartitionsRequest[1](topic_partitions=[("t", (3, assignments))], timeout=100) == new


def test_tags_of_flexible_versions_are_taken_by_place_and_by_name():
    cls = imported("kafka.protocol.admin", "AlterPartitionReassignmentsRequest_v0")
    request = cls(1000, [("t", [(0, [1], {})], {5: b"x"})], tags={7: b"y"})
    assert request.tags == request.unknown_tags == {7: b"y"}
    assert request.topics[0].tags == {5: b"x"}
    assert cls.decode(request.encode()) == request
    with pytest.raises(AttributeError, match="no field 'tags'"):
        _ = MetadataRequest[1]([]).tags


def test_a_request_carries_messages_as_pairs():
    message = Message(b"value", b"key").encode()
    pairs = ProduceRequest[0](1, 1000, [("t", [(0, [(0, message)])])])
    raw = ProduceRequest[0](1, 1000, [("t", [(0, MessageSet.encode([(0, message)], prepend_size=False))])])
    assert pairs.encode() == raw.encode()


# Headers


def test_headers_are_made_for_requests():
    request = MetadataRequest[1]([])
    assert RequestHeader(request, 7, "me").encode() == bytes.fromhex("0003 0001 00000007 0002 6d65")
    assert RequestHeader(request).client_id == "kafka-python"
    assert RequestHeaderV2(request, 7, None, {1: b"x"}).encode() == bytes.fromhex("0003 0001 00000007 ffff 01 01 01 78")
    assert RequestHeader[2](3, 1, 7, "me") == RequestHeaderV2(
        api_key=3, api_version=1, correlation_id=7, client_id="me"
    )
    header = RequestHeader.decode(bytes.fromhex("0003 0001 00000007 0002 6d65"))
    assert isinstance(header, RequestHeader)
    assert (header.api_key, header.api_version, header.correlation_id, header.client_id) == (3, 1, 7, "me")


def test_headers_are_made_for_responses():
    assert ResponseHeader(7).encode() == bytes(3) + b"\x07"
    assert ResponseHeaderV2(7, {1: b"x"}).encode() == bytes.fromhex("00000007 01 01 01 78")
    assert isinstance(ResponseHeaderV2.decode(bytes(5)), ResponseHeader)


@pytest.mark.parametrize("version", [1, 12])
def test_a_request_builds_its_header_and_a_response_reads_its_own(version):
    request = MetadataRequest[version]([])
    assert request.FLEXIBLE_VERSION is MetadataRequest[version].FLEXIBLE_VERSION is (version == 12)
    frame = request.build_header(7, "me").encode() + request.encode()
    assert Int32.encode(len(frame)) + frame == request.frame(7, "me")
    buffer = io.BytesIO(MetadataResponse[version]().frame(9)[4:] + b"rest")
    assert MetadataResponse[version].parse_header(buffer).correlation_id == 9
    assert MetadataResponse[version].decode(buffer) == MetadataResponse[version]()
    assert buffer.read() == b"rest"


# Schemas


def test_a_message_has_a_schema_with_the_historic_names():
    schema = MetadataResponse[0].SCHEMA
    assert schema.names == ("brokers", "topics")
    assert schema.fields[1].array_of.names == ("error_code", "topic", "partitions")
    assert repr(MetadataRequest[4].SCHEMA) == "Schema(topics=Array(String), allow_auto_topic_creation=Boolean)"
    assert MetadataRequest[4].SCHEMA.encode((["a"], True)) == MetadataRequest[4](["a"], True).encode()
    assert MetadataRequest[9].SCHEMA.fields[-1] is TaggedFields
    with pytest.raises(AttributeError, match=r"each version has one, MetadataRequest\[n\]"):
        _ = MetadataRequest.SCHEMA


def test_a_program_defines_a_version_by_the_schema_of_another():
    class PeekRequest_v9(Request):
        API_KEY = 9999
        API_VERSION = 9
        FLEXIBLE_VERSION = True
        SCHEMA = MetadataRequest[4].SCHEMA

    class PeekResponse_v9(Response):
        API_KEY = 9999
        API_VERSION = 9
        SCHEMA = Schema(("entries", Array(("id", Int16), ("name", String("utf-8")))))

    PeekRequest_v9.RESPONSE_TYPE = PeekResponse_v9
    request = PeekRequest_v9(["a"], True)
    assert request.encode() == MetadataRequest[4](["a"], True).encode()
    assert request.to_object() == {"topics": ["a"], "allow_auto_topic_creation": True}
    assert PeekRequest_v9.header_version() == 2
    response = PeekResponse_v9([(1, "x")])
    assert response.to_object() == {"entries": [{"id": 1, "name": "x"}]}
    assert PeekResponse_v9.decode(response.encode()) == response
    assert schema_of(PeekResponse_v9) is PeekResponse_v9.SCHEMA


def test_a_class_that_states_a_schema_can_be_subclassed():
    class Hello(Request):
        API_KEY = 9999
        API_VERSION = 0
        SCHEMA = Schema(("text", String("utf-8")))

    class Shout(Hello):
        def loud(self):
            return self.text.upper()

    assert Shout("hi").loud() == "HI"
    assert Shout.decode(Shout("hi").encode()).text == "hi"


def test_nullable_structs_keep_their_marker_in_a_schema():
    cls = imported("kafka.protocol.group", "ConsumerGroupHeartbeatResponse")[0]
    message = cls(member_id="m")
    assert cls.SCHEMA.encode((0, 0, None, "m", 0, 0, None, {})) == message.encode()
    read = cls.SCHEMA.decode(cls(member_id="m", assignment=([],)).encode())
    assert read == (0, 0, None, "m", 0, 0, ([], {}), {})


def test_bit_fields_are_sets_of_numbers():
    assert BitField.decode(io.BytesIO(BitField.encode({3, 8, 31}))) == {3, 8, 31}
    assert BitField.decode(io.BytesIO(Int32.encode(-(2**31)))) == {31}
    with pytest.raises(KafkaProtocolError, match="from 0 to 31, not 32"):
        BitField.encode({32})


def test_the_consumer_protocol_has_its_version_in_front():
    subscription = ProtocolMetadata(0, ["t"], b"u")
    assert ProtocolMetadata.decode(subscription.encode()) == subscription
    assignment = MemberAssignment.decode(
        MemberAssignment(version=0, assignment=[("t", [0, 1])], user_data=b"").encode()
    )
    assert assignment.partitions() == [TopicPartition("t", 0), TopicPartition("t", 1)]
    assert pickle.loads(pickle.dumps(assignment)) == assignment


# Messages of formats v0 and v1


def test_a_message_of_format_v0_has_known_bytes():
    message = Message(b"value", key=b"key")
    assert message.encode().hex() == "2356c1370000000000036b65790000000576616c7565"
    assert message.validate_crc()
    read = Message.decode(message.encode())
    assert (read.magic, read.attributes, read.key, read.value) == (0, 0, b"key", b"value")
    assert (read.timestamp, read.timestamp_type, read.crc) == (None, None, message.crc)
    assert repr(read).startswith("Message(crc=592888119, magic=0, attributes=0, key=")


def test_a_message_of_format_v1_has_a_timestamp():
    message = Message.decode(io.BytesIO(Message(None, magic=1, timestamp=5, attributes=8).encode()))
    assert (message.key, message.value, message.timestamp, message.timestamp_type) == (None, None, 5, 1)
    assert Message(b"", magic=1).timestamp == -1
    assert message == Message.decode(message.encode())
    assert pickle.loads(pickle.dumps(message)) == message


def test_a_checksum_can_be_kept_and_is_checked():
    message = Message(b"value", crc=5)
    assert not message.validate_crc()
    assert message.encode(recalc_crc=False)[:4] == b"\0\0\0\x05"
    message.encode()
    assert message.validate_crc()
    torn = bytearray(message.encode())
    torn[-1] ^= 1
    assert not Message.decode(bytes(torn)).validate_crc()


@pytest.mark.parametrize(
    "data", [b"", bytes(3), bytes(20), Message(b"value").encode()[:-1], b"\0" * 4 + b"\2" + bytes(60)]
)
def test_bytes_that_are_not_a_message_are_an_error(data):
    with pytest.raises(KafkaProtocolError):
        Message.decode(data)


@pytest.mark.parametrize(
    ("arguments", "error"), [({"value": "text"}, TypeError), ({"magic": 2}, ValueError), ({"timestamp": 1}, ValueError)]
)
def test_a_message_refuses_what_it_cannot_hold(arguments, error):
    with pytest.raises(error):
        Message(**{"value": b"", **arguments})


def test_a_set_of_messages_has_its_size_in_front_unless_told():
    messages = [(0, Message(b"one").encode()), (1, Message(b"two"))]
    raw = MessageSet.encode(messages, prepend_size=False)
    sized = MessageSet.encode(messages)
    assert sized == MessageSet.encode(io.BytesIO(sized)) == Int32.encode(len(raw)) + raw
    for read in (MessageSet.decode(sized), MessageSet.decode(io.BytesIO(sized)), MessageSet.decode(raw, len(raw))):
        assert [(offset, size, message.value) for offset, size, message in read] == [(0, 17, b"one"), (1, 17, b"two")]
    rest = io.BytesIO(sized + b"rest")
    MessageSet.decode(rest)
    assert rest.read() == b"rest"
    assert MessageSet.repr(raw) == MessageSet.repr(MessageSet.decode(sized))


@pytest.mark.parametrize("missing", [1, 17, 20, 28])
def test_a_message_that_the_broker_cut_off_is_reported(missing):
    raw = MessageSet.encode([(0, Message(b"one")), (1, Message(b"two"))], prepend_size=False)[:-missing]
    first, (offset, size, partial) = MessageSet.decode(memoryview(raw), bytes_to_read=len(raw))
    assert first[2].value == b"one"
    assert (offset, size, type(partial)) == (None, None, PartialMessage)
    assert MessageSet.decode(Int32.encode(-1)) == []


# SimpleClient's functions


def test_create_message_takes_text_as_the_manual_shows():
    assert create_message("some message") == (0, 0, None, b"some message")
    assert create_message(b"v", "k").key == b"k"


@pytest.mark.parametrize(
    ("codec", "create"), [(CODEC_GZIP, create_gzip_message), (CODEC_SNAPPY, create_snappy_message)]
)
def test_compressed_messages_hold_others(codec, create):
    pairs = [(b"one", b"k"), ("two", None)]
    wrapper = create(pairs, b"key")
    assert [wrapper] == create_message_set(pairs, codec, b"key")
    assert (wrapper.attributes, wrapper.key) == (codec, b"key")
    within = Message(wrapper.value, wrapper.key, attributes=wrapper.attributes).decompress()
    assert [(message.key, message.value) for _, _, message in within] == [(b"k", b"one"), (None, b"two")]
    with pytest.raises(KafkaProtocolError, match="no compressed set"):
        Message(b"").decompress()


def test_an_unknown_codec_is_refused():
    assert [message.value for message in create_message_set([("a", None), ("b", None)])] == [b"a", b"b"]
    with pytest.raises(UnsupportedCodecError, match="codec 9 is not one of"):
        create_message_set([], codec=9)


def test_payloads_become_a_produce_request_and_its_response_payloads():
    payloads = [ProduceRequestPayload("t", p, [create_message("a"), create_message("b")]) for p in (0, 1)]
    request = ProduceRequest[0].decode(KafkaProtocol.encode_produce_request(payloads, acks=-1).encode())
    [(topic, partitions)] = request.topics
    assert (request.required_acks, request.timeout, topic, [p.partition for p in partitions]) == (-1, 1000, "t", [0, 1])
    read = MessageSet.decode(partitions[1].messages, bytes_to_read=len(partitions[1].messages))
    assert [message.value for _, _, message in read] == [b"a", b"b"]
    response = ProduceResponse[0]([("t", [(0, 0, 17)])])
    assert KafkaProtocol.decode_produce_response(response) == [ProduceResponsePayload("t", 0, 0, 17)]
    with pytest.raises(KafkaProtocolError, match="two payloads for t, partition 0"):
        KafkaProtocol.encode_produce_request([payloads[0], payloads[0]])
    with pytest.raises(ValueError, match="acks is 1, 0 or -1, not 2"):
        KafkaProtocol.encode_produce_request(acks=2)


def test_fetched_messages_come_out_of_their_compressed_sets():
    request = KafkaProtocol.encode_fetch_request([FetchRequestPayload("t", 0, 5, 100)])
    assert request == FetchRequest_v0(-1, 100, 4096, [("t", [(0, 5, 100)])])
    wrapper = create_gzip_message([(b"a", None), (b"b", None)])
    records = [(1, Message(wrapper.value, attributes=wrapper.attributes)), (2, Message(b"c"))]
    response = FetchResponse_v0.decode(FetchResponse_v0([("t", [(0, 0, 3, records), (1, 0, 0, None)])]).encode())
    first, second = KafkaProtocol.decode_fetch_response(response)
    assert (first.topic, first.partition, first.error, first.highwaterMark) == ("t", 0, 0, 3)
    assert [found.message.value for found in first.messages] == [b"a", b"b", b"c"]
    assert second.messages == []


def test_offsets_are_asked_for_committed_and_fetched_by_payload():
    request = KafkaProtocol.encode_offset_request([OffsetRequestPayload("t", 0, -1, 1)])
    assert request == OffsetRequest[0](-1, [("t", [(0, -1, 1)])])
    found = KafkaProtocol.decode_offset_response(OffsetResponse[0]([("t", [(0, 0, [7])])]))
    assert found == [("t", 0, 0, [7])]
    request = KafkaProtocol.encode_list_offset_request([OffsetRequestPayload("t", 0, -1, 1)])
    assert request == OffsetRequest[1](-1, [("t", [(0, -1)])])
    found = KafkaProtocol.decode_list_offset_response(OffsetResponse[1]([("t", [(0, 0, 5, 7)])]))
    assert found == [("t", 0, 0, 5, 7)]
    request = KafkaProtocol.encode_offset_commit_request("g", [OffsetCommitRequestPayload("t", 0, 7, b"m")])
    assert type(request).decode(request.encode()).topics[0].partitions[0].metadata == "m"
    response = type(request).RESPONSE_TYPE([("t", [(0, 0)])])
    assert KafkaProtocol.decode_offset_commit_response(response) == [("t", 0, 0)]
    for from_kafka in (False, True):
        request = KafkaProtocol.encode_offset_fetch_request("g", [OffsetFetchRequestPayload("t", 0)], from_kafka)
        assert (request.API_VERSION, request.topics[0].partitions) == (int(from_kafka), [0])
    response = OffsetFetchResponse_v1([("t", [(0, 7, "m", 0)])])
    assert KafkaProtocol.decode_offset_fetch_response(response) == [("t", 0, 7, "m", 0)]


def test_metadata_and_coordinators_are_asked_for_by_the_historic_functions():
    assert KafkaProtocol.encode_metadata_request(["t"]) == MetadataRequest[0](["t"])
    assert KafkaProtocol.encode_metadata_request(payloads=["t"]) == MetadataRequest[0](["t"])
    response = MetadataResponse[0]([], [])
    assert KafkaProtocol.decode_metadata_response(response) is response
    frame = KafkaProtocol.encode_consumer_metadata_request("me", 7, "g")
    assert frame == GroupCoordinatorRequest[0]("g").frame(7, "me")
    answer = GroupCoordinatorResponse[0](0, 1, "a", 9092).frame(7)[4:]
    assert KafkaProtocol.decode_consumer_metadata_response(answer) == (0, 1, "a", 9092)


# The parser


def test_a_parser_sends_and_receives_in_order_however_the_bytes_are_cut():
    parser = Parser(client_id="me")
    requests = [MetadataRequest[0](["t"]), ApiVersionsRequest[0](), MetadataRequest[12]([])]
    assert [parser.send_request(request) for request in requests] == [1, 2, 3]
    assert parser.send_bytes() == b"".join(request.frame(at, "me") for at, request in enumerate(requests, 1))
    assert parser.send_bytes() == b""
    answers = [MetadataResponse[0]([], []), ApiVersionsResponse[0](0, []), MetadataResponse[12]()]
    stream = b"".join(answer.frame(at) for at, answer in enumerate(answers, 1))
    for cut in range(len(stream)):
        if cut:
            for request in requests:
                parser.send_request(request)
            stream = b"".join(
                answer.frame(at) for (at, _), answer in zip(parser.in_flight_requests, answers, strict=True)
            )
        received = parser.receive_bytes(stream[:cut]) + parser.receive_bytes(stream[cut:])
        assert [answer for _, answer in received] == answers
        assert not parser.in_flight_requests


def test_a_parser_waits_for_no_answer_where_there_is_none():
    parser = Parser()
    assert parser.send_request(ProduceRequest[0](0, 1000, []), correlation_id=55) == 55
    assert not parser.in_flight_requests
    assert parser.send_bytes() == ProduceRequest[0](0, 1000, []).frame(55)


def test_a_parser_tells_what_belongs_to_no_request():
    parser = Parser()
    with pytest.raises(CorrelationIdError, match="no request waits for"):
        parser.receive_bytes(MetadataResponse[0]([], []).frame(1))
    parser = Parser()
    parser.send_request(MetadataRequest[0]([]))
    with pytest.raises(CorrelationIdError, match="has correlation id 9, the request 1"):
        parser.receive_bytes(MetadataResponse[0]([], []).frame(9))


@pytest.mark.parametrize("size", [-1, 101])
def test_a_parser_takes_no_frame_beyond_its_limit(size):
    with pytest.raises(InvalidReceiveError, match="max_frame_size is 100"):
        Parser(max_frame_size=100).receive_bytes(Int32.encode(size))


def test_a_parser_reads_the_refusal_of_a_version_and_the_careless_answer_of_0_8_2():
    parser = Parser(api_version=(0, 8, 2))
    parser.send_request(ApiVersionsRequest[3]("me", "1"))
    [(_, refusal)] = parser.receive_bytes(ApiVersionsResponse[0](35, []).frame(1))
    assert refusal == ApiVersionsResponse[0](35, [])
    parser.send_request(GroupCoordinatorRequest[0]("g"))
    answer = GroupCoordinatorResponse[0](0, 1, "a", 9092)
    assert parser.receive_bytes(answer.frame(0)) == [(2, answer)]


def test_a_frame_is_filled_and_read_like_a_file():
    frame = KafkaBytes(6)
    assert (frame.write(b"abcd"), frame.tell(), len(frame)) == (4, 4, 6)
    with pytest.raises(ValueError, match="3 bytes do not fit in the 2"):
        frame.write(b"efg")
    frame.seek(0)
    assert (frame.read(3), frame.read(), frame.read(1)) == (b"abc", b"d\0\0", b"")
    assert (frame.seek(-2, 2), frame.seek(1, 1), frame.seek(99), frame.tell()) == (4, 5, 6, 6)
    assert MetadataRequest[0].decode(KafkaBytes(4)) == MetadataRequest[0]([])
    assert repr(KafkaBytes(1)) == r"KafkaBytes(b'\x00')"
