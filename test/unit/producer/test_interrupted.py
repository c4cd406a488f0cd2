"""Adding records while signal handlers and finalizers come in between: at each line the same thread sends, or ends."""

from __future__ import annotations

import functools
import gc
import linecache
import sys
import time
from contextlib import contextmanager
from functools import partial
from types import SimpleNamespace

import pytest

from kafka.config import resolve
from kafka.errors import IllegalStateError
from kafka.producer.calls import ProducerCalls
from kafka.producer.future import FutureRecordMetadata, SentRecords
from kafka.producer.kafka import KafkaProducer
from kafka.producer.plugins import Plugins
from kafka.producer.record_accumulator import RecordAccumulator
from kafka.record.batch import decode_batch
from kafka.record.header import read_header

_SEND = ("kafka/producer/",)
_APPEND = ("batch_builder.py",)


class Filled:
    """A producer without a loop: what is sent stays where it is put."""

    def __init__(self, batch_size=1000, partitions=2):
        turn = iter(range(10**6))
        core = SimpleNamespace(
            now=time.monotonic,
            keeper=lambda: None,
            work=lambda: None,
            hurry_all=lambda: None,
            call_soon=lambda f, *args: None,
            transactions=None,
        )

        def choose(topic):
            return topic.ordered[next(turn) % len(topic.ordered)]

        self.accumulator = accumulator = RecordAccumulator(
            core, choose, batch_size=batch_size, buffer_memory=20_000, max_request_size=20_000, codec=None, level=None
        )
        self.topic = accumulator.topic("t", range(partitions))
        self.producer = producer = object.__new__(KafkaProducer)
        calls = producer._calls = object.__new__(ProducerCalls)
        calls.core, calls.accumulator = core, accumulator
        calls.sent_records, calls.record_future = SentRecords, FutureRecordMetadata
        calls._topics, calls._time = accumulator.topics, lambda: 1_700_000_000.0
        calls.plugins = Plugins(resolve("producer", {}))
        calls.plain = calls.hashes = True
        calls._serialize, calls._place = calls.plugins.serialize, calls.plugins.place
        calls._serializes, calls._places_keyless = False, True
        producer._core = core
        producer._accumulator = accumulator
        producer._inside = accumulator.inside
        producer._lock = accumulator.lock
        producer._sticky = accumulator.sticky
        producer._topics = accumulator.topics
        producer._time = lambda: 1_700_000_000.0
        producer._plain = producer._hashes = True
        self.futures = {}
        self.numbers = iter(range(10**6))
        self.inside = False

    def send(self, **more):
        value = b"%04d" % next(self.numbers) + b"." * 90
        self.futures[value] = self.producer.send("t", value, **more)

    def memory_lost(self):
        memory = self.accumulator.memory
        return memory.total - memory.free - sum(batch.reserved for batch in self.accumulator.incomplete)

    def check(self):
        """Each record is where its future says, and all that is queued is accounted for."""
        assert set(self.accumulator.unsettled()) == set(self.accumulator.incomplete)  # as the loop does, soon
        assert self.memory_lost() == 0
        queued = [batch for partition in self.topic.ordered for batch in partition.queue]
        assert set(queued) == set(self.accumulator.incomplete) == set(self.accumulator._fresh)
        for batch in self.accumulator.sticky.values():
            assert batch.partition.open is batch
        for partition in self.topic.ordered:
            assert partition.open is None or partition.queue[-1] is partition.open
        values = {batch: _values(batch.builder.seal().data) for batch in queued}
        for value, future in self.futures.items():
            assert values[future._batch][future._index] == value


def _values(data):
    return [row.value for row in decode_batch(data, read_header(data))]


@functools.cache
def _is_meant(file, parts):
    return any(part in file for part in parts)


@functools.cache
def _ends_a_block(file, number):
    """At the end of a `with` block an interpreter looks for no signals, though it says that it is at that line."""
    return linecache.getline(file, number).lstrip().startswith("with ")


@contextmanager
def interrupted(at, what, parts):
    """Call `what` before the line number `at` that the block runs in the producer's code."""
    lines = [0]

    def trace_lines(frame, event, arg):
        if event == "line" and not _ends_a_block(frame.f_code.co_filename, frame.f_lineno):
            lines[0] += 1
            if lines[0] == at + 1:
                sys.settrace(None)
                what()
        return trace_lines

    def trace(frame, event, arg):
        return trace_lines if _is_meant(frame.f_code.co_filename, parts) else None

    before = sys.gettrace()
    gc.disable()  # other tests' finalizers are not meant
    sys.settrace(trace)
    try:
        yield lines
    finally:
        sys.settrace(before)
        gc.enable()


def every_line(prepare, act, what, parts=_SEND):
    """Yield what is there after an interruption at each line in turn."""
    at = 0
    while True:
        filled = Filled()
        prepare(filled)
        error = None
        with interrupted(at, partial(what, filled), parts) as lines:
            try:
                act(filled)
            except KeyboardInterrupt as ended:
                error = ended
        yield filled, error
        if lines[0] <= at:
            return
        at += 1


def fill(count, **more):
    def prepare(filled):
        for _ in range(count):
            filled.send(**more)

    return prepare


def keyed_elsewhere(filled):
    """The batch for records without a key is full, and where they go next one with keys is open."""
    for _ in range(8):
        filled.send(partition=0)
    filled.send(partition=1)
    filled.topic.sticky = filled.topic.ordered[1]


PREPARED = {
    "nothing open": fill(0),
    "a batch open": fill(2),
    "a batch with keys open": fill(2, key=b"k"),
    "a batch full": fill(8),
    "another open": keyed_elsewhere,
}
ACTS = {
    "plain": lambda filled: filled.send(),
    "keyed": lambda filled: filled.send(key=b"k"),
}


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("inner", ACTS)
@pytest.mark.parametrize("prepare", PREPARED)
def test_a_handler_that_sends_within_send_is_served_and_harms_nothing(prepare, inner, act):
    for filled, _ in every_line(PREPARED[prepare], ACTS[act], ACTS[inner]):
        filled.send()
        filled.send(key=b"k")
        assert not filled.accumulator.inside()
        filled.check()


def test_a_handler_that_sends_while_a_record_is_added_to_a_batch_does_not_add_to_it():
    for filled, _ in every_line(PREPARED["a batch open"], ACTS["plain"], ACTS["plain"], _APPEND):
        filled.send(headers=[("h", b"1")])
        filled.check()


def many(filled):
    values = [b"%04d" % next(filled.numbers) + b"." * 90 for _ in range(12)]
    filled.futures.update(zip(values, filled.producer.send_many("t", values), strict=True))


def many_pairs(filled):
    values = [b"%04d" % next(filled.numbers) + b"." * 90 for _ in range(12)]
    pairs = [(None if number % 3 else b"k", value) for number, value in enumerate(values)]
    filled.futures.update(zip(values, filled.producer.send_many("t", pairs), strict=True))


@pytest.mark.parametrize(
    ("prepare", "inner", "act"),
    [  # each pair of two of them
        ("nothing open", "plain", many),
        ("nothing open", "keyed", many_pairs),
        ("a batch open", "plain", many_pairs),
        ("a batch open", "keyed", many),
        ("another open", "plain", many_pairs),
        ("another open", "keyed", many),
    ],
)
def test_a_handler_that_sends_within_send_many_is_served_too(prepare, inner, act):
    for filled, _ in every_line(PREPARED[prepare], act, ACTS[inner]):
        filled.send()
        filled.check()


@pytest.mark.parametrize("act", ACTS)
@pytest.mark.parametrize("prepare", PREPARED)
def test_records_sent_after_a_handler_are_behind_the_ones_it_sent(prepare, act):
    def send_inside(filled):
        filled.send(partition=0)
        filled.inner = next(reversed(filled.futures))

    for filled, _ in every_line(PREPARED[prepare], ACTS[act], send_inside):
        filled.send(partition=0)
        last = filled.futures[next(reversed(filled.futures))]
        if hasattr(filled, "inner"):
            inner = filled.futures[filled.inner]
            queue = list(filled.topic.ordered[0].queue)
            assert (queue.index(inner._batch), inner._index) < (queue.index(last._batch), last._index)


def end(filled):
    raise KeyboardInterrupt


@pytest.mark.parametrize("act", [*ACTS, "many"])
@pytest.mark.parametrize("prepare", PREPARED)
def test_a_handler_that_raises_within_send_costs_no_memory(prepare, act):
    ended = 0
    for filled, error in every_line(PREPARED[prepare], ACTS.get(act, many), end):
        ended += error is not None
        assert filled.memory_lost() == 0
        assert not filled.accumulator.inside()
        filled.send()
        filled.send(key=b"k")
        filled.check()
    assert ended > 3


def test_no_memory_is_waited_for_inside():
    def send_inside(filled):
        filled.inside = filled.accumulator.inside()
        if filled.inside:
            for _ in range(30):
                filled.send(partition=1)

    def prepare(filled):
        while filled.accumulator.memory.has(1000):
            filled.send(partition=0)

    seen = 0
    for filled, _ in every_line(prepare, lambda filled: filled.producer.send("t", b"", partition=0), send_inside):
        if filled.inside:
            seen += 1
            filled.accumulator.unsettled()  # queues them, as the loop does, soon
            assert filled.accumulator.memory.free < 0
        filled.check()
    assert seen


def test_what_would_wait_for_the_interrupted_thread_is_refused():
    filled = Filled()
    filled.accumulator.check_outside("flush()")
    with filled.accumulator.lock, pytest.raises(IllegalStateError, match=r"flush\(\) was called by a signal handler"):
        filled.accumulator.check_outside("flush()")
