"""Ctrl-C while poll() takes records: what it has not returned comes again."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from types import FrameType
from typing import Any

import pytest

from kafka._runtime.application import complete
from kafka.consumer import KafkaConsumer
from test.unit.consumer.scripted import T0, Cluster, MakeConsumer, read, rest

WAYS: dict[str, Callable[[Any], list[int]]] = {
    "poll": lambda consumer: [one.offset for one in consumer.poll(timeout_ms=100, max_records=3).get(T0, [])],
    "poll_batches": lambda consumer: [
        int(offset) for columns in consumer.poll_batches(timeout_ms=100).values() for offset in columns.offsets
    ],
    "next": lambda consumer: [next(consumer).offset],
}


@contextmanager
def interrupted_at_call(number: int) -> Iterator[list[int]]:
    """Have Ctrl-C come where a function of Python begins, until the call is complete; count these places."""
    begun = [0]

    def watch(frame: FrameType, event: str, _argument: object) -> None:
        if frame.f_code is complete.__code__ and event == "return":
            sys.setprofile(None)
        elif event == "call":
            begun[0] += 1
            if begun[0] == number:
                signal.raise_signal(signal.SIGINT)

    sys.setprofile(watch)
    try:
        yield begun
    finally:
        sys.setprofile(None)


# A call that is interrupted before it began, or while a generator is closed, leaves only a warning of Python's.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("way", WAYS)
def test_no_record_is_lost_wherever_ctrl_c_comes(cluster: Cluster, make: MakeConsumer, way: str) -> None:
    cluster.fill(10)
    for at in count():  # at 0 never: what is imported at the first call takes thousands of functions
        consumer: KafkaConsumer = make(auto_offset_reset="earliest")
        consumer.assign([T0])
        consumer.poll(timeout_ms=0, update_offsets=False)
        rest(consumer, 1)  # now they are there
        found: list[int] = []
        with suppress(KeyboardInterrupt), interrupted_at_call(at) as begun:
            found = WAYS[way](consumer)
        if len(found) < 10:
            found += [one.offset for one in read(consumer, 10 - len(found))]
        assert found == list(range(10)), at
        consumer.close()
        if begun[0] < at:
            return
