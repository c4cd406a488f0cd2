"""A sealed batch in a request: which bytes go out, which are copied, and that nothing changes them on their way."""

from __future__ import annotations

from itertools import chain, repeat

import pytest

from kafka.net.pipeline import SendQueue
from kafka.producer.sink import on_the_wire
from kafka.protocol.produce import ProduceRequest
from kafka.record.batch_builder import BatchBuilder
from kafka.record.message_v0_v1 import LegacyBuilder


def full(builder, value=b"v" * 1000):
    while builder.append(1700000000000, b"key", value) >= 0:
        pass
    return builder


def request_of(*sealed):
    partitions = [{"index": index, "records": on_the_wire(one)} for index, one in enumerate(sealed)]
    return ProduceRequest[9](acks=-1, timeout_ms=1000, topic_data=[{"name": "t", "partition_data": partitions}])


@pytest.mark.parametrize("codec", [None, "gzip"])
def test_the_body_of_a_large_batch_is_a_piece_of_its_request(codec):
    value = b"v" * 1000 if codec is None else bytes(range(256)) * 4
    builder = BatchBuilder(500_000 if codec is None else 3_000_000, codec)
    sealed = full(builder, value).seal(producer_id=7, producer_epoch=0, base_sequence=3)
    parts = request_of(sealed).frame_parts(1, "me")
    assert sum(part is sealed.body for part in parts) == 1
    assert sealed.data in b"".join(parts)


def test_a_small_batch_goes_out_in_one_piece():
    sealed = full(BatchBuilder(2000)).seal()
    assert on_the_wire(sealed) == sealed.data


def test_messages_of_earlier_formats_are_written_unchanged():
    for size in (2000, 200_000):
        sealed = full(LegacyBuilder(1, size)).seal()
        assert bytes(on_the_wire(sealed)) == sealed.data


def test_a_request_on_its_way_keeps_the_bytes_that_it_was_made_of():
    sealed = full(BatchBuilder(100_000)).seal(producer_id=7, producer_epoch=0, base_sequence=3)
    request = request_of(sealed)
    before = request.encode()
    again = sealed.with_producer(7, 1, 0)  # other numbers for the same records
    sealed.forget()  # settled, for instance by its time limit, while bytes of it wait for the socket
    assert request.encode() == before
    assert (
        before
        == request_of(full(BatchBuilder(100_000)).seal(producer_id=7, base_sequence=3, producer_epoch=0)).encode()
    )
    assert again.data[61:] in before
    assert again.data not in before


def test_a_body_is_read_only():
    for builder in (BatchBuilder(100_000), BatchBuilder(100_000, "gzip"), LegacyBuilder(1, 100_000)):
        assert memoryview(full(builder).seal().body).readonly


@pytest.mark.parametrize("sizes", [[1], [61, 1000, 7], [100_000], [8191, 8192, 8193]])
def test_for_any_sizes_of_writes_the_bytes_equal_the_batches(sizes):
    batches = [full(BatchBuilder(size)).seal() for size in (20_000, 1500, 9_000)]
    request = request_of(*batches)
    queue = SendQueue()
    queue.put(request.frame_parts(5, "me"))
    sent = bytearray()
    for size in chain(sizes, repeat(sizes[-1] if sizes != [1] else 997)):
        pieces = list(queue.waiting)
        if not pieces:
            break
        taken = b"".join(pieces)[:size]
        sent += taken
        queue.sent(len(taken))
    assert sent == request.frame(5, "me")
    for batch in batches:
        assert batch.data in sent
