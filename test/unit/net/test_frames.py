"""Framing at every split, and a send queue that loses nothing."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.errors import InvalidReceiveError, KafkaError, SslAuthenticationError
from kafka.net.pipeline import FrameReader, SendQueue, mapped_memory


def framed(*bodies):
    return b"".join(len(body).to_bytes(4, "big") + body for body in bodies)


def feed(reader, stream, sizes):
    """Receive as a connection does: into the reader's own memory where it offers some."""
    frames, position = [], 0
    sizes = iter(sizes)
    while position < len(stream):
        size = next(sizes, None) or 7
        target = reader.target()
        if target is None:
            piece = stream[position : position + size]
            frames += reader.receive(memoryview(piece))
        else:
            piece = stream[position : position + min(size, len(target))]
            target[: len(piece)] = piece
            frame = reader.filled(len(piece))
            frames += [] if frame is None else [frame]
        position += len(piece)
    return frames


@given(st.lists(st.binary(max_size=50), max_size=6), st.lists(st.integers(1, 40)))
def test_frames_come_out_whole_however_they_came_in(bodies, sizes):
    assert feed(FrameReader(1000), framed(*bodies), sizes) == bodies


@given(st.lists(st.binary(max_size=30), min_size=1, max_size=4), st.lists(st.integers(1, 9)))
def test_bytes_may_also_be_copied_into_a_frame_that_has_begun(bodies, sizes):
    reader, stream, frames, position = FrameReader(1000), framed(*bodies), [], 0
    for size in [*sizes, len(stream)]:
        frames += reader.receive(memoryview(stream[position : position + size]))
        position += size
    assert frames == bodies


@pytest.mark.parametrize(
    ("head", "error", "text"),
    [
        (b"\xff\xff\xff\xff", InvalidReceiveError, "frame size -1"),
        (b"\x00\x00\x03\xe9", InvalidReceiveError, "receive_message_max_bytes"),
        (b"\x16\x03\x03\x00", SslAuthenticationError, "TLS"),
        (b"HTTP", InvalidReceiveError, "HTTP"),
        (b"SSH-", InvalidReceiveError, "SSH"),
    ],
)
def test_a_size_that_cannot_be_is_explained(head, error, text):
    with pytest.raises(error, match=text):
        FrameReader(1000).receive(memoryview(head))


@given(st.binary(max_size=100))
def test_whatever_comes_only_kafka_errors_go_out(data):
    with contextlib.suppress(KafkaError):
        FrameReader(1 << 20).receive(memoryview(data))


def test_an_announced_size_alone_takes_no_real_memory():
    tracemalloc.start()
    try:
        reader = FrameReader(100_000_000)
        reader.receive(memoryview((90_000_000).to_bytes(4, "big") + b"x"))
        assert len(reader.target()) == 1 << 20  # it is read in pieces, so that no pass of the loop is long
    finally:
        tracemalloc.stop()
    with open("/proc/self/statm", encoding="utf-8") as file:
        resident = int(file.read().split()[1]) * 4096
    assert resident < 2_000_000_000


@given(st.lists(st.lists(st.binary(max_size=9), max_size=4), max_size=6), st.lists(st.integers(1, 11)))
def test_queued_bytes_are_sent_in_order_and_reported_when_they_have_left(messages, sizes):
    queue, left, out = SendQueue(), [], b""
    expected = b"".join(b"".join(message) for message in messages)
    for number, message in enumerate(messages):
        queue.put(list(message), lambda number=number: left.append((number, len(out))))
    sizes = iter(sizes)
    while queue:
        available = b"".join(bytes(piece) for piece in queue.waiting)
        size = min(len(available), next(sizes, 5))
        out += available[:size]
        queue.sent(size)
    queue.sent(0)
    assert out == expected
    assert [number for number, _ in left] == list(range(len(messages)))
    total = 0
    for (_, when), message in zip(left, messages, strict=True):
        total += sum(map(len, message))
        assert when >= total


def test_many_small_pieces_are_queued_as_one_and_a_large_one_is_not_copied():
    """A Fetch request for 1,000 topics has 3,061 pieces, which took 47 system calls."""
    queue, large = SendQueue(), b"x" * 100_000
    assert queue.put([b"ab"] * 3061) == len(queue) == 6122
    assert list(queue.waiting) == [b"ab" * 3061]
    queue.put([b"ab", large] * 20)
    assert all(piece is large for piece in list(queue.waiting)[2::2])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_child_of_a_fork_does_not_write_into_the_memory_of_its_parent():
    memory = mapped_memory(1 << 16)
    memory[:6] = b"parent"
    child = multiprocessing.get_context("fork").Process(target=memory.__setitem__, args=(slice(0, 6), b"child!"))
    child.start()
    child.join(60)
    assert child.exitcode == 0
    assert memory[:6] == b"parent"
