"""The broker's time and timers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from kafka.broker.cluster.clock import BrokerClock, Timers


def on_loop(test: Callable[[BrokerClock, Timers, list[Any]], None]) -> list[Any]:
    """Run a test on a loop with a frozen clock; what it collected."""
    fired: list[Any] = []

    async def body() -> None:
        clock = BrokerClock()
        clock.freeze()
        timers = Timers(clock, asyncio.get_running_loop())
        clock.listen(timers.run_due)
        test(clock, timers, fired)
        timers.close()

    asyncio.run(body())
    return fired


def test_timers_fire_in_the_order_of_their_deadlines() -> None:
    def body(clock: BrokerClock, timers: Timers, fired: list[Any]) -> None:
        for delay in (5, 1, 3):
            timers.call_later(delay, fired.append, delay)
        clock.advance(3)
        assert fired == [1, 3]
        clock.advance(300)

    assert on_loop(body) == [1, 3, 5]


def test_cancelled_timers_do_not_fire() -> None:
    def body(clock: BrokerClock, timers: Timers, fired: list[Any]) -> None:
        timer = timers.call_later(1, fired.append, 1)
        assert timer.is_pending
        timer.cancel()
        assert not timer.is_pending
        clock.advance(2)

    assert on_loop(body) == []


def test_a_timer_may_set_another() -> None:
    def body(clock: BrokerClock, timers: Timers, fired: list[Any]) -> None:
        def again(left: int) -> None:
            fired.append(left)
            if left:
                timers.call_later(1, again, left - 1)

        timers.call_later(1, again, 2)
        for _ in range(3):
            clock.advance(1)

    assert on_loop(body) == [2, 1, 0]


def test_one_that_fails_does_not_stop_the_others() -> None:
    problems: list[dict[str, Any]] = []

    def body(clock: BrokerClock, timers: Timers, fired: list[Any]) -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: problems.append(context))
        timers.call_later(1, lambda: 1 / 0)
        timers.call_later(1, fired.append, "fine")
        clock.advance(1)

    assert on_loop(body) == ["fine"]
    assert isinstance(problems[0]["exception"], ZeroDivisionError)


def test_many_cancelled_timers_are_swept() -> None:
    def body(clock: BrokerClock, timers: Timers, fired: list[Any]) -> None:
        for _ in range(10_000):
            timers.call_later(1000, fired.append, 1).cancel()
        fired.append(len(timers._heap))

    (held,) = on_loop(body)
    assert held < 1000


def test_real_time_fires_timers() -> None:
    async def body() -> None:
        clock = BrokerClock()
        timers = Timers(clock, asyncio.get_running_loop())
        done = asyncio.get_running_loop().create_future()
        timers.call_later(0.01, done.set_result, None)
        await asyncio.wait_for(done, 5)

    asyncio.run(body())


def test_the_clock_stops_continues_and_never_runs_backwards() -> None:
    clock = BrokerClock()
    clock.freeze()
    stood = clock.monotonic(), clock.time()
    clock.freeze()
    assert (clock.monotonic(), clock.time()) == stood
    clock.advance(60)
    assert clock.monotonic() == pytest.approx(stood[0] + 60)
    assert clock.now_ms() == pytest.approx((stood[1] + 60) * 1000, abs=2)
    clock.resume()
    clock.resume()
    assert stood[0] + 60 <= clock.monotonic() < stood[0] + 70
    with pytest.raises(ValueError, match="must not be negative"):
        clock.advance(-1)
