"""The Produce request that is put together from batches, and its usual reply, against the structs of the protocol."""

from __future__ import annotations

import random
from uuid import UUID

import pytest

from kafka.errors import KafkaProtocolError
from kafka.net.pipeline import InFlightRequest, Pipeline, Traffic
from kafka.producer.produce_request import OLDEST, TOPIC_IDS_SINCE, Written, read_reply, request_type
from kafka.protocol.api import reply_decoder
from kafka.protocol.negotiation import ApiVersions
from kafka.protocol.produce import ProduceRequest, ProduceResponse
from kafka.record.batch_builder import BatchBuilder

VERSIONS = range(OLDEST, 14)
IDS = {"a": UUID(int=7), "b" * 200: UUID(int=2**127 + 1)}


def sealed(size):
    builder = BatchBuilder(size + 1000)
    builder.append(1700000000000, b"key", b"v" * size)
    return builder.seal(producer_id=7, producer_epoch=0, base_sequence=3)


def frame_of_structs(placed, version, *, acks, transactional_id):
    bound = ProduceRequest[version]
    topics = {}
    for name, index, batch in placed:
        topics.setdefault(name, []).append(bound.PartitionProduceData(index=index, records=batch.data))
    data = [
        bound.TopicProduceData(name=name, partition_data=partitions)
        if version < TOPIC_IDS_SINCE
        else bound.TopicProduceData(topic_id=IDS.get(name, UUID(int=0)), partition_data=partitions)
        for name, partitions in topics.items()
    ]
    request = bound(transactional_id=transactional_id, acks=acks, timeout_ms=30_000, topic_data=data)
    return request.frame(9, "me")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("sizes", [[1], [100], [16_000], [200_000], [1, 5_000, 40_000, 70_000], [3_000] * 200])
@pytest.mark.parametrize("transactional_id", [None, "mover"])
def test_the_bytes_equal_the_encoded_structs(version, sizes, transactional_id):
    names = [*IDS, "täglich"]
    placed = [(names[at % 3], at // 3, sealed(size)) for at, size in enumerate(sizes)]
    request = request_type(version)(placed, IDS, -1, 30_000, transactional_id)
    parts = request.frame_parts(9, "me", version)
    assert b"".join(parts) == frame_of_structs(placed, version, acks=-1, transactional_id=transactional_id)
    assert request.expect_response()


def test_a_client_without_a_name_and_requests_without_replies():
    placed = [("a", 0, sealed(10))]
    request = request_type(13)(placed, IDS, 0, 30_000, None)
    expected = ProduceRequest[13](
        acks=0, timeout_ms=30_000, topic_data=[{"topic_id": IDS["a"], "partition_data": [(0, placed[0][2].data)]}]
    )
    assert b"".join(request.frame_parts(9, None, 13)) == expected.frame(9, None)
    assert not request.expect_response()


def test_the_records_of_a_large_batch_are_not_copied():
    large = sealed(100_000)
    parts = request_type(13)([("a", 0, large)], IDS, -1, 30_000, None).frame_parts(9, "me", 13)
    assert sum(part is large.body for part in parts) == 1


def test_a_request_keeps_the_records_of_a_batch_that_is_settled_before_it_leaves():
    batch = sealed(1000)
    before = batch.data
    request = request_type(13)([("a", 0, batch)], IDS, -1, 30_000, None)
    batch.forget()
    assert before in b"".join(request.frame_parts(9, "me", 13))


def test_errors_and_metrics_call_it_by_the_name_of_the_request():
    pipeline = Pipeline("me", 5, Traffic())
    pipeline.open, pipeline.versions = True, ApiVersions({0: (3, 12)})
    pipeline.waiting.append(InFlightRequest(request_type(12)([("a", 0, sealed(10))], IDS, -1, 30_000, None), 10.0))
    pipeline.pump(0.0)
    assert pipeline.oldest_unanswered() == "ProduceRequest version 12"


def test_no_more_requests_are_in_flight_than_allowed_and_the_others_wait_their_turn():
    pipeline = Pipeline("me", 2, Traffic())
    pipeline.open, pipeline.versions = True, ApiVersions({0: (3, 12)})
    for _ in range(4):
        pipeline.waiting.append(InFlightRequest(request_type(12)([("a", 0, sealed(10))], IDS, -1, 30_000, None), 10.0))
    for in_flight, waiting in ((2, 2), (2, 1), (2, 0), (1, 0)):
        pipeline.pump(0.0)
        assert (pipeline.in_flight, len(pipeline.waiting)) == (in_flight, waiting)
        assert pipeline.can_send_more() is (in_flight < 2)
        correlation_id = 3 - waiting if in_flight == 2 else 4
        assert pipeline.received(correlation_id.to_bytes(4, "big") + reply(12, [[(0, 0, 1, -1)]])[4:], 0.0), (
            correlation_id
        )


# Replies…


def reply(version, topics, throttle_time_ms=0, **more):
    """The frame (without its size) of a reply: topics are lists of (index, error, base offset, append time)."""
    bound = ProduceResponse[version]
    responses = []
    for at, results in enumerate(topics):
        name = list(IDS)[at]
        partitions = [
            bound.PartitionProduceResponse(
                index=index, error_code=error, base_offset=offset, log_append_time_ms=time, log_start_offset=3
            )
            for index, error, offset, time in results
        ]
        label = {"name": name} if version < TOPIC_IDS_SINCE else {"topic_id": IDS[name]}
        responses.append(bound.TopicProduceResponse(partition_responses=partitions, **label))
    return bound(responses=responses, throttle_time_ms=throttle_time_ms, **more).frame(9)[4:]


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("count", [1, 6, 126])
def test_a_reply_that_all_is_written_is_read_without_structs(version, count):
    results = [(index, 0, 10**12 + index, -1 if index % 2 else 1700000000000) for index in range(count)]
    written = read_reply(version)(bytearray(reply(version, [results], 250)))
    assert type(written) is Written
    assert written.topic == ("a" if version < TOPIC_IDS_SINCE else IDS["a"].int)
    assert written.offsets == {index: (offset, time, 3) for index, _, offset, time in results}
    assert written.throttle_time_ms == 250


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "topics",
    [
        [],
        [[]],
        [[(0, 6, -1, -1)]],
        [[(0, 0, 5, -1), (1, 7, -1, -1)]],
        [[(0, 0, 5, -1)], [(0, 0, 6, -1)]],
        [[(index, 0, index, -1) for index in range(200)]],
    ],
)
def test_any_other_reply_is_read_by_the_structs(version, topics):
    frame = reply(version, topics)
    found = read_reply(version)(frame)
    if type(found) is Written:
        assert topics == [[]]
        assert not found.offsets
    else:
        assert found == reply_decoder(ProduceResponse, version)(frame)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_damaged_reply_raises_what_the_structs_raise_or_is_read_as_they_read_it(version):
    rng = random.Random(version)
    whole = reply(version, [[(index, 0, 5 + index, -1) for index in range(3)]])
    by_structs = reply_decoder(ProduceResponse, version)
    for _ in range(1000):
        frame = bytearray(whole[: rng.choice((len(whole), rng.randrange(4, len(whole))))])
        for _ in range(rng.randrange(3)):
            frame[rng.randrange(4, len(frame)) if len(frame) > 4 else 0] = rng.randrange(256)
        try:
            expected = by_structs(bytes(frame))
        except KafkaProtocolError as error:
            with pytest.raises(KafkaProtocolError) as caught:
                read_reply(version)(frame)
            assert str(caught.value) == str(error)
            continue
        found = read_reply(version)(frame)
        if type(found) is Written:
            (topic,) = expected.responses
            label = topic.name if version < TOPIC_IDS_SINCE else topic.topic_id.int
            assert found.topic == label
            results = {one.index: one for one in topic.partition_responses}
            assert found.offsets == {
                at: (one.base_offset, one.log_append_time_ms, one.log_start_offset) for at, one in results.items()
            }
            assert not any(one.error_code or one.record_errors or one.error_message for one in results.values())
            assert found.throttle_time_ms == expected.throttle_time_ms
        else:
            assert found == expected
