"""Commits take effect in the order in which they were asked for, whatever has to be repeated."""

from __future__ import annotations

import threading
import time

import pytest

from kafka.errors import CoordinatorLoadInProgressError
from kafka.structs import OffsetAndMetadata, TopicPartition

from .member import PATIENCE, Member, poll_until

T0 = TopicPartition("t", 0)


pytestmark = pytest.mark.kafka_broker(topics={"t": 1})


@pytest.fixture
def one(broker):
    with Member(broker.bootstrap_servers, (), retry_backoff_ms=200, enable_auto_commit=False) as member:
        member.subscription.assign_by_user([T0])
        member.commit(t0=1)
        yield member


def sent(broker):
    requests = [each.request for each in broker.requests if type(each.request).__name__.startswith("OffsetCommit")]
    return [request.topics[0].partitions[0].committed_offset for request in requests]


@pytest.fixture
def repeating(broker, one):
    """A commit of offset 5 that was refused and waits to be repeated, in a thread of its own."""
    broker.forget_requests()
    broker.fail("OffsetCommit", [CoordinatorLoadInProgressError])
    thread = threading.Thread(target=one.commit, kwargs={"t0": 5})
    thread.start()
    deadline = time.monotonic() + PATIENCE
    while not sent(broker):
        assert time.monotonic() < deadline
        time.sleep(0.001)
    yield
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_one_that_is_not_waited_for_comes_after_one_that_is_repeated(broker, one, repeating):
    future = one.coordinator.commit_async({T0: OffsetAndMetadata(9)}, None)
    poll_until(lambda: future.is_done, one)
    assert future.succeeded()
    assert sent(broker) == [5, 5, 9]
    assert one.committed(T0) == [9]


def test_one_that_is_waited_for_comes_after_one_that_is_repeated(broker, one, repeating):
    one.commit(t0=9)
    assert sent(broker) == [5, 5, 9]
    assert one.committed(T0) == [9]


def test_partitions_without_a_waiter_do_not_wait_for_each_other(broker, one):
    broker.forget_requests()
    slow = broker.delay("OffsetCommit", 0.2, times=1)
    futures = [one.coordinator.commit_async({T0: OffsetAndMetadata(number)}, None) for number in range(2, 7)]
    one.commit(t0=9)
    assert all(future.succeeded() for future in futures)
    assert sent(broker) == [2, 3, 4, 5, 6, 9]
    slow.remove()
