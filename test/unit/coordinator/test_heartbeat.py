"""When heartbeats are due, and when a member is taken for dead: sums over a clock."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafka.coordinator.heartbeat import Heartbeat, HeartbeatTask, PollTimer
from kafka.coordinator.states import Generation
from kafka.errors import KafkaConfigurationError, KafkaConnectionError, KafkaError
from kafka.protocol.group import HeartbeatResponse
from kafka.testing import FakeClock, MemoryNetwork


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def heartbeat(clock: FakeClock) -> Heartbeat:
    return Heartbeat(heartbeat_interval_ms=3000, session_timeout_ms=10000, max_poll_interval_ms=60000, clock=clock)


def test_defaults_match_the_manual() -> None:
    assert Heartbeat.DEFAULT_CONFIG["heartbeat_interval_ms"] == 3000
    assert Heartbeat.DEFAULT_CONFIG["session_timeout_ms"] == 30000


def test_the_interval_must_be_shorter_than_the_session() -> None:
    with pytest.raises(KafkaConfigurationError, match="heartbeat_interval_ms"):
        Heartbeat(heartbeat_interval_ms=10000, session_timeout_ms=10000)


def test_a_heartbeat_is_due_an_interval_after_the_last(heartbeat: Heartbeat, clock: FakeClock) -> None:
    assert heartbeat.ttl() == 3
    clock.advance(3)
    assert heartbeat.should_heartbeat()
    heartbeat.sent_heartbeat()
    assert not heartbeat.should_heartbeat()
    assert heartbeat.ttl() == 3


def test_a_failed_heartbeat_is_repeated_at_once(heartbeat: Heartbeat, clock: FakeClock) -> None:
    clock.advance(3)
    heartbeat.sent_heartbeat()
    heartbeat.fail_heartbeat()
    assert heartbeat.should_heartbeat()


def test_sending_does_not_keep_a_session_alive_but_answers_do(heartbeat: Heartbeat, clock: FakeClock) -> None:
    clock.advance(9)
    heartbeat.sent_heartbeat()
    clock.advance(1)
    assert heartbeat.session_expired()
    heartbeat.received_heartbeat()
    assert not heartbeat.session_expired()
    assert heartbeat.session_left() == 10
    clock.advance(4)
    heartbeat.reset_session_timeout()
    assert heartbeat.session_left() == 10
    assert heartbeat.seconds_since_answer() == 0


def test_an_application_that_does_not_poll_is_stuck(heartbeat: Heartbeat, clock: FakeClock) -> None:
    clock.advance(59)
    assert not heartbeat.poll_timeout_expired()
    heartbeat.poll()
    clock.advance(60)
    assert heartbeat.poll_timeout_expired()


class Polled:
    """A poll timer with a separate loop, and what it has called."""

    def __init__(self) -> None:
        network = MemoryNetwork()
        self.clock = network.clock
        self.loop = network.environment().make_loop()
        self.heartbeat = Heartbeat(max_poll_interval_ms=60_000, clock=self.clock)
        self.is_active = True
        self.seen: list[tuple[str, float]] = []
        self.began = self.clock.monotonic()
        self.taken: object = None
        self.timer = PollTimer(
            self.loop,
            self.heartbeat,
            lambda: self.is_active,
            lambda: self.note("notify"),
            lambda: self.note("stuck"),
            lambda: self.taken,
        )

    def note(self, what: str) -> None:
        self.seen.append((what, round(self.clock.monotonic() - self.began, 1)))

    def run(self, until: float) -> None:
        """Turn the loop until a time after the beginning."""
        self.loop.run_until(self.loop.spawn(self.loop.sleep_until(self.began + until)))


@pytest.fixture
def polled() -> Iterator[Polled]:
    made = Polled()
    yield made
    made.loop.close()


def test_an_application_is_notified_before_it_counts_as_stuck(polled: Polled) -> None:
    polled.timer.arm()
    polled.run(until=200)
    assert polled.seen == [("notify", 60.0), ("stuck", 61.0)]
    assert not polled.timer.notified


def test_an_application_that_polls_after_the_notification_is_not_stuck(polled: Polled) -> None:
    polled.timer.arm()
    polled.run(until=60.5)
    assert polled.timer.notified
    polled.heartbeat.poll()
    polled.run(until=120)
    assert polled.seen == [("notify", 60.0)]
    polled.run(until=200)
    assert polled.seen == [("notify", 60.0), ("notify", 120.5), ("stuck", 121.5)]


def test_an_application_that_takes_records_without_a_call_of_poll_is_not_stuck(polled: Polled) -> None:
    polled.timer.arm()
    for minute in range(5):
        polled.taken = minute
        polled.run(until=60 * (minute + 1))
    assert polled.seen == []
    polled.run(until=400)
    # The last record was taken after four minutes; the next look, a quarter of the interval later, has seen that.
    assert polled.seen == [("notify", 315.0), ("stuck", 316.0)]


@pytest.mark.parametrize("how", ["cancelled", "left"])
def test_a_member_that_has_left_is_not_notified(polled: Polled, how: str) -> None:
    polled.timer.arm()
    polled.run(until=30)
    if how == "cancelled":
        polled.timer.cancel()
    else:
        polled.is_active = False
    polled.run(until=200)
    assert polled.seen == []


class Member:
    """A member of a group, as its heartbeats see it; it leaves in the pass in which a heartbeat becomes due."""

    group_id, group_instance_id, retry_backoff = "g", None, 0.1

    def __init__(self) -> None:
        network = MemoryNetwork()
        self.loop = network.environment().make_loop()
        self.heartbeat = Heartbeat(heartbeat_interval_ms=3000, session_timeout_ms=10_000, clock=network.clock)
        self.generation = Generation(1, "m")
        self.sent: list[Any] = []
        self.failures: list[KafkaError] = []
        self.dead: list[object] = []
        self.task = HeartbeatTask(self)

    async def ask(self, request: Any, use: str, timeout: float | None = None) -> Any:
        self.sent.append(request)
        if self.failures:
            raise self.failures.pop()
        return HeartbeatResponse(error_code=0)

    def heartbeat_answered(self, seconds: float) -> None: ...

    def heartbeat_refused(self, error: object, generation: Generation) -> None: ...

    def coordinator_dead(self, error: object) -> None:
        self.dead.append(error)


def test_a_heartbeat_that_was_lost_is_sent_again_soon_to_the_coordinator_that_is_found_then() -> None:
    member = Member()
    lost = KafkaConnectionError("closed")
    member.failures.append(lost)
    member.task.reset()
    member.loop.run_until(member.loop.spawn(member.loop.sleep(4)))
    assert (len(member.sent), member.dead) == (2, [lost])
    member.task.disable()
    member.loop.close()


def test_a_heartbeat_that_is_due_when_the_member_leaves_is_not_sent() -> None:
    member = Member()
    member.task.reset()
    member.loop.call_later(3.0, member.task.disable)
    member.loop.run_until(member.loop.spawn(member.loop.sleep(4)))
    assert not member.sent
    member.task.reset()
    member.loop.run_until(member.loop.spawn(member.loop.sleep(4)))
    assert len(member.sent) == 1
    member.loop.close()
