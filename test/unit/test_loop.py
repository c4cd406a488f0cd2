"""The scheduler: order, timers, tasks, cancellation, wake-ups, and how many turns it takes."""

from __future__ import annotations

import contextlib
import gc
import itertools
import math
import multiprocessing
import os
import selectors
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
import traceback
import weakref
from functools import partial
from pathlib import Path

import pytest

from kafka._runtime import signals
from kafka._runtime.asyncio_driver import AsyncioDriver, asyncio_driver
from kafka._runtime.gate import Waker
from kafka._runtime.loop import READ, Loop
from kafka._runtime.network_thread import ThreadDriver, complete, run_here
from kafka._runtime.signals import SignalsDeferred
from kafka._runtime.tasks import Event, Scope, Shield, TaskCancelled, TaskGroup, checkpoint, wait_any
from kafka._runtime.timers import TimerHeap
from kafka.errors import Cancelled, ClientClosedError, ForkedClientError, IllegalStateError, KafkaTimeoutError
from kafka.future import Future
from kafka.testing import FakeClock, MemoryNetwork, NothingWillHappenError
from test.speed import slowness

ROOT = Path(__file__).parents[2]


@pytest.fixture
def network():
    return MemoryNetwork()


@pytest.fixture
def loop(network):
    loop = Loop(clock=network.clock, selector=network.selector)
    yield loop
    loop.close()


@pytest.fixture
def driver():
    driver = ThreadDriver(Loop())
    yield driver
    complete(driver.close())


def run(loop, coro):
    return loop.run_until(loop.spawn(coro))


# The timer heap


def test_timers_of_one_instant_run_in_the_order_in_which_they_were_made():
    timers = TimerHeap()
    for number in range(5):
        timers.add(1.0, print, (number,))
    assert [timer.args[0] for timer in timers.take_due(1.0)] == [0, 1, 2, 3, 4]


def test_cancelled_timers_do_not_pile_up():
    timers = TimerHeap()
    keep = timers.add(1e9, print)
    for number in range(10_000):
        timers.add(float(number), print).cancel()
    assert timers.entries < 200
    assert len(timers) == 1
    assert timers.earliest == keep.when


def test_a_cancelled_timer_lets_go_of_its_callback():
    class Held:
        def run(self):
            pass

    held = Held()
    gone = weakref.ref(held)
    timer = TimerHeap().add(1.0, held.run)
    timer.cancel()
    del held
    gc.collect()
    assert gone() is None
    timer.cancel()  # idempotent


# Passes


def test_a_pass_runs_what_its_callbacks_queue_but_not_for_ever(loop):
    seen = []

    def again(left):
        seen.append(left)
        if left:
            loop.call_soon(again, left - 1)

    loop.call_soon(again, 10)
    loop.turn(0)
    assert seen == [10, 9, 8, 7]
    loop.turn(0)
    assert seen == [10, 9, 8, 7, 6, 5, 4, 3]


def test_a_pass_with_a_budget_leaves_what_its_callbacks_queue_to_the_next(loop):
    seen = []
    loop.call_soon(loop.call_soon, seen.append, "queued")
    loop.turn(0, budget=1.5)
    assert not seen
    loop.turn(0, budget=1.5)
    assert seen == ["queued"]


@pytest.mark.internal_errors
def test_a_failing_callback_is_logged_and_does_not_stop_the_others(loop, caplog):
    seen = []
    loop.call_soon(lambda: 1 / 0)
    loop.call_soon(seen.append, "ran")
    loop.turn(0)
    assert seen == ["ran"]
    assert "ZeroDivisionError" in caplog.text


def test_work_deferred_to_the_end_of_a_pass_runs_there(loop):
    seen = []

    def first():
        loop.call_at_end(lambda: seen.append("at the end"))
        loop.call_soon(seen.append, "queued in this pass")

    loop.call_soon(first)
    loop.call_soon(seen.append, "queued before")
    loop.turn(0)
    assert seen == ["queued before", "queued in this pass", "at the end"]


def test_work_deferred_at_the_end_of_a_pass_or_between_passes_runs_in_the_next(loop):
    seen = []
    loop.call_soon(loop.call_at_end, lambda: loop.call_at_end(lambda: seen.append("again")))
    loop.turn(0)
    assert not seen
    assert loop.has_ready
    loop.call_at_end(lambda: seen.append("between"))
    loop.turn(0)
    assert seen == ["again", "between"]


def test_work_deferred_to_the_end_of_a_pass_that_is_cut_off_runs_in_the_next(loop):
    seen = []

    def interrupted():
        loop.call_at_end(lambda: seen.append("sent"))
        raise KeyboardInterrupt

    loop.call_soon(interrupted)
    with pytest.raises(KeyboardInterrupt):
        loop.turn(0)
    assert not seen
    loop.turn(0)
    assert seen == ["sent"]


def test_a_timer_cancelled_by_an_earlier_one_of_the_same_pass_does_not_run(loop):
    seen = []
    loop.call_later(1, lambda: second.cancel())  # noqa: PLW0108 - made in the next line
    second = loop.call_later(1, seen.append, "second")
    loop.call_later(2, seen.append, "third")
    while not seen:
        loop.turn()
    assert seen == ["third"]


def test_an_idle_loop_takes_one_turn_per_deadline(loop):
    for delay in (10, 20, 30):
        loop.call_later(delay, lambda: None)
    started = loop.turns
    end = loop.spawn(loop.sleep(60))
    loop.run_until(end)
    assert loop.turns - started <= 2 * 4 + 1


def test_a_loop_with_nothing_to_wait_for_says_so_under_the_fake_clock(loop):
    with pytest.raises(NothingWillHappenError):
        loop.turn()


def test_run_until_gives_up_at_the_deadline(loop):
    with pytest.raises(KafkaTimeoutError):
        loop.run_until(Future(), loop.time() + 5)


def test_a_handler_may_unwatch_and_close_another_ready_socket(loop, network):
    network.listen("b", 1)
    socks = [network.socket() for _ in range(2)]
    seen = []

    def handler(events):
        seen.append(events)
        for sock in socks:
            if not sock.closed:
                loop.unwatch(sock)
                sock.close()

    for sock in socks:
        sock.connect_ex(("b", 1))
        sock.peer.send(b"x")
        loop.watch(sock, READ, handler)
    loop.turn(0)
    assert seen == [READ]
    loop.turn(0)


# Tasks


def test_a_task_returns_its_result_and_its_error(loop):
    async def good():
        await checkpoint()
        return 1

    async def bad():
        await loop.sleep(1)
        raise ValueError("no")

    assert run(loop, good()) == 1
    with pytest.raises(ValueError, match="no"):
        run(loop, bad())


def test_tasks_await_tasks_and_futures_of_other_threads(loop):
    outside = Future()

    async def inner():
        return await outside

    async def outer():
        return await loop.spawn(inner()) + 1

    task = loop.spawn(outer())
    loop.turn(0)
    loop.turn(0)
    thread = threading.Thread(target=outside.success, args=(41,))
    thread.start()
    thread.join()
    assert loop.run_until(task, loop.time() + 1) == 42


def test_awaiting_something_foreign_fails_the_task(loop):
    class Foreign:
        def __await__(self):
            yield "something"

    async def wrong():
        await Foreign()

    with pytest.raises(TypeError, match="not of this library"):
        run(loop, wrong())


def test_cancelling_a_waiting_task_unwinds_it(loop):
    unwound = []

    async def waits():
        try:
            await Future()
        except Exception:  # must not catch a cancellation
            unwound.append("wrong")
        finally:
            unwound.append("finally")

    task = loop.spawn(waits())
    loop.turn(0)
    task.cancel()
    with pytest.raises(Cancelled):
        loop.run_until(task)
    assert unwound == ["finally"]


def test_cancelling_a_task_before_it_ran_never_runs_it(loop):
    async def never():
        raise AssertionError

    task = loop.spawn(never())
    task.cancel()
    with pytest.raises(Cancelled):
        loop.run_until(task)


def test_cancelling_a_done_task_changes_nothing(loop):
    async def value():
        return 1

    task = loop.spawn(value())
    loop.run_until(task)
    task.cancel()
    loop.turn(0)
    assert task.value == 1


def test_a_stale_wake_up_does_not_resume_the_wrong_wait(loop):
    first, second = Future(), Future()

    async def waits():
        with contextlib.suppress(TaskCancelled):
            await first
        return await second

    task = loop.spawn(waits())
    loop.turn(0)
    task.cancel()
    loop.turn(0)
    first.success("stale")
    loop.turn(0)
    assert not task.is_done
    second.success("right")
    assert loop.run_until(task) == "right"


def test_a_shield_puts_off_the_cancellation(loop):
    steps = []

    async def waits():
        with Shield(loop):
            await loop.sleep(1)
            steps.append("cleaned up")
        await loop.sleep(1)
        steps.append("wrong")

    task = loop.spawn(waits())
    loop.turn(0)
    task.cancel()
    with pytest.raises(Cancelled):
        loop.run_until(task)
    assert steps == ["cleaned up"]


def test_a_timeout_becomes_an_error_outside_its_block(loop, network):
    async def waits():
        with loop.timeout_at(loop.time() + 5, "asking for metadata"):
            await Future()

    before = network.clock.monotonic()
    with pytest.raises(KafkaTimeoutError, match="asking for metadata"):
        run(loop, waits())
    assert network.clock.monotonic() - before == 5


def test_the_outer_of_two_timeouts_passes_through_the_inner(loop):
    async def waits():
        with loop.timeout_at(loop.time() + 1, "outer"), loop.timeout_at(loop.time() + 2, "inner"):
            await Future()

    with pytest.raises(KafkaTimeoutError, match="outer"):
        run(loop, waits())


def test_a_timeout_that_the_block_outlives_under_a_shield_is_forgotten(loop):
    async def waits():
        with loop.timeout_at(loop.time() + 1, "never"), Shield(loop):
            await loop.sleep(2)
        await loop.sleep(1)
        return "fine"

    assert run(loop, waits()) == "fine"


def test_a_cancellation_is_not_a_timeout(loop):
    async def waits():
        with loop.timeout_at(loop.time() + 1, "never"):
            await Future()

    task = loop.spawn(waits())
    loop.turn(0)
    task.cancel()
    with pytest.raises(Cancelled):
        loop.run_until(task)


def test_a_group_ends_with_its_last_task(loop, network):
    async def main():
        async with TaskGroup(loop) as group:
            group.spawn(loop.sleep(3))
            group.spawn(loop.sleep(7))

    before = network.clock.monotonic()
    run(loop, main())
    assert network.clock.monotonic() - before == 7


def test_a_failing_task_cancels_its_group_and_names_its_error(loop):
    ended = []

    async def fails():
        await loop.sleep(1)
        raise ValueError("first")

    async def waits():
        try:
            await Future()
        finally:
            with Shield(loop):
                await loop.sleep(1)
            ended.append(True)

    async def main():
        async with TaskGroup(loop) as group:
            group.spawn(waits())
            group.spawn(fails())

    with pytest.raises(ValueError, match="first"):
        run(loop, main())
    assert ended == [True]


def test_cancelling_who_waits_for_a_group_cancels_the_group(loop):
    async def main():
        async with TaskGroup(loop) as group:
            group.spawn(waits())

    ended = []

    async def waits():
        try:
            await Future()
        finally:
            ended.append(True)

    task = loop.spawn(main())
    loop.turn(0)
    loop.turn(0)
    task.cancel()
    with pytest.raises(Cancelled):
        loop.run_until(task)
    assert ended == [True]


def test_an_event_wakes_all_and_keeps_no_cancelled_waiter(loop):
    event = Event()
    tasks = [loop.spawn(event.wait()) for _ in range(3)]
    loop.turn(0)
    tasks[0].cancel()
    loop.turn(0)
    assert len(event._waiters) == 2
    event.set()
    for task in tasks[1:]:
        loop.run_until(task)


def test_a_scope_ends_its_tasks_and_timers_with_one_cancel(loop):
    scope, seen = Scope(loop), []

    async def never():
        try:
            await Future()
        finally:
            seen.append("task")

    for name in "ab":
        scope.spawn(never(), name, lambda task: seen.append(f"{task.name} reported"))
    scope.call_at(loop.time() + 1, lambda: seen.append("timer"))
    loop.turn(0)
    scope.cancel()
    loop.run_until(loop.spawn(loop.sleep(10)))
    assert seen == ["task", "task"]


def test_a_scope_reports_what_its_tasks_return_and_can_be_used_after_its_end(loop):
    scope, ended = Scope(loop), []

    async def value(number):
        return number

    scope.cancel()
    scope.spawn(value(1), "first", lambda task: ended.append(task.value))
    loop.run_until(loop.spawn(loop.sleep(1)))
    scope.cancel()
    scope.spawn(value(2), "second", lambda task: ended.append(task.value))
    loop.run_until(loop.spawn(loop.sleep(1)))
    assert ended == [1, 2]
    assert not scope._tasks


def test_a_scope_has_one_timer_for_each_callback(loop):
    scope, fired = Scope(loop), []
    began = loop.time()

    def callback():
        fired.append(loop.time() - began)

    scope.call_at(began + 5, callback)
    scope.call_at(began + 2, callback)
    loop.run_until(loop.spawn(loop.sleep(10)))
    assert fired == [pytest.approx(2)]


def test_wait_any_ends_with_the_first_or_the_deadline(loop):
    early, late = Future(), Future()
    loop.call_later(2, early.success, 1)

    async def main():
        assert not await wait_any(loop, early, late, deadline=loop.time() + 1)
        assert await wait_any(loop, early, late)

    run(loop, main())


# Ending


def test_close_ends_tasks_and_resolves_what_does_not_end(loop, caplog):
    async def polite():
        await Future()

    async def stubborn():
        while True:
            with contextlib.suppress(TaskCancelled):
                await Future()

    tasks = [loop.spawn(polite()), loop.spawn(stubborn())]
    loop.turn(0)
    loop.close()
    assert isinstance(tasks[0].exception, Cancelled)
    assert isinstance(tasks[1].exception, ClientClosedError)
    assert "did not end" in caplog.text
    loop.close()
    with pytest.raises(ClientClosedError):
        loop.turn(0)


# The network thread


def test_run_returns_results_and_errors(driver):
    async def good():
        await driver.loop.sleep(0.001)
        return 1

    async def bad():
        raise ValueError("no")

    assert complete(driver.run(good())) == 1
    with pytest.raises(ValueError, match="no"):
        complete(driver.run(bad()))


def test_run_cancels_at_the_deadline(driver):
    begun, ended = [], []

    async def waits():
        begun.append(True)
        try:
            await Future()
        finally:
            ended.append(True)

    while not begun:  # on a busy machine the deadline may pass before the coroutine begins
        with pytest.raises(KafkaTimeoutError, match="fetching took too long"):
            complete(driver.run(waits(), driver.loop.time() + 0.02, "fetching"))
    assert ended == [True]


def test_many_threads_run_at_once(driver):
    results = []

    async def work(number):
        for _ in range(5):
            await driver.loop.sleep(0.001)
        return number

    def use(base):
        results.extend(complete(driver.run(work(number), driver.loop.time() + 30)) for number in range(base, base + 10))

    threads = [threading.Thread(target=use, args=(base,)) for base in range(0, 80, 10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(results) == list(range(80))


def test_the_network_thread_continues_while_no_thread_waits(driver):
    done = threading.Event()

    async def work():
        await driver.loop.sleep(0.005)
        done.set()

    driver.start()
    driver.loop.spawn(work())
    assert done.wait(60)


def test_a_timer_set_by_a_waiting_thread_is_met_after_it_left(driver):
    """The network thread sleeps without a deadline meanwhile, and has to hear of the new one."""
    done = threading.Event()

    async def sets():
        driver.loop.call_later(0.01, done.set)

    driver.start()
    complete(driver.run(sets()))
    assert done.wait(60)


def test_an_idle_network_thread_does_not_turn(driver):
    async def nothing():
        await checkpoint()

    complete(driver.run(nothing()))
    turns = driver.loop.turns
    threading.Event().wait(0.1)
    assert driver.loop.turns - turns <= 1


def wait_for_one_after_another(driver, times):
    for _ in range(times):
        future = Future()
        driver.loop.call_soon(future.success, None)
        assert complete(driver.wait(future, driver.loop.time() + 10))


def test_the_driver_dozes_while_a_thread_waits_for_one_thing_after_another(driver, monkeypatch):
    """It was woken for each: two threads that wanted the GIL, at each record that was sent and waited for."""
    monkeypatch.setattr("kafka._runtime.gate._DOZE", 0.3)  # on a busy machine too, they come in short succession
    loop, wakes = driver.loop, []
    notify = loop.notify
    loop.notify = lambda: wakes.append(loop.time()) or notify()
    driver.start()
    for _ in range(200):
        wait_for_one_after_another(driver, 1)
        time.sleep(0.001)  # as for a broker, in which the driver goes to sleep again
    # Twice before it dozes; and again where a busy machine lets it go to sleep late. Without, once for each.
    assert len(wakes) < 100
    soon = threading.Event()
    loop.call_soon(soon.set)
    assert soon.wait(10), "a doze ends by itself"
    monkeypatch.setattr("kafka._runtime.gate._DOZE", 30.0)
    wait_for_one_after_another(driver, 20)
    timed = threading.Event()
    assert loop.claim()
    loop.call_later(0.01, timed.set)
    loop.release()
    assert timed.wait(20), "a deadline before the end of the doze wakes the driver"


def test_a_deadline_that_a_claim_leaves_behind_ends_the_sleep_of_the_driver(driver):
    """The driver fell asleep before there was any deadline; the thread with the claim slept towards an earlier one."""
    loop = driver.loop
    first, fired = Future(), threading.Event()
    driver.start()
    wait_for_sleep(loop)
    assert loop.claim()
    loop.call_later(0.01, first.success, None)
    loop.call_later(0.02, fired.set)
    while not first.is_done:
        loop.turn()
    loop.release()
    assert fired.wait(10)


def wait_for_sleep(loop):
    while not loop._sleepers:
        time.sleep(0.001)


def test_the_driver_sleeps_on_while_another_thread_has_claimed_the_loop(driver):
    """Each event woke both, and the network thread waited for the GIL only to find that it had nothing to do."""
    near, far = socket.socketpair()
    got = []
    with near, far:
        driver.start()
        driver.loop.call_soon(driver.loop.watch, near, READ, lambda _: got.append(near.recv(1)))
        complete(driver.wait(driver.loop.spawn(driver.loop.sleep(0)), driver.loop.time() + 10))
        wait_for_sleep(driver.loop)
        turns = driver.loop.turns
        for number in range(1, 21):
            assert driver.loop.claim()
            far.send(b"x")
            while len(got) < number:
                driver.loop.turn(10)
            driver.loop.release()
        # One for each claim, and perhaps one for a wake-up of before. With two sleepers they were 40 and more.
        assert 20 <= driver.loop.turns - turns <= 21
        complete(driver.run(_unwatch(driver.loop, near)))


def test_the_beginning_of_a_wait_wakes_no_other_thread(driver):
    """The thread that waits turns the loop: one that is woken meanwhile would only wait for the GIL."""
    loop, threads, signals = driver.loop, [], []
    driver.start()
    wait_for_sleep(loop)
    notify, loop.notify = loop.notify, lambda: (signals.append(threading.get_ident()), notify())
    turns = loop.turns
    for _ in range(20):
        future = Future()
        future.add_both(lambda _: threads.append(threading.get_ident()))
        assert complete(driver.wait(future, loop.time() + 10, partial(future.success, 1)))
    assert threads == [threading.get_ident()] * 20
    assert signals == []
    assert loop.turns - turns <= 21
    # What is done already needs no wait, and what is to begin does begin.
    begun = threading.Event()
    assert complete(driver.wait(Future().success(1), None, begun.set))
    assert begun.wait(10)
    # Another thread has the loop, and runs it.
    assert loop.claim()
    future = Future()
    other = threading.Thread(target=lambda: complete(driver.wait(future, loop.time() + 10, partial(future.success, 1))))
    other.start()
    while not future.is_done:
        loop.turn(0.01)
    loop.release()
    other.join()


def test_a_call_that_queues_work_does_it_in_its_own_thread_while_the_loop_rests(driver):
    loop, threads = driver.loop, []
    done = threading.Event()

    def queue(*callbacks):
        for callback in callbacks:
            loop.call_soon(callback)
        return "result"

    def note():
        threads.append(threading.get_ident())
        loop.call_at_end(lambda: threads.append(threading.get_ident()))

    driver.start()
    wait_for_sleep(loop)
    turns = loop.turns
    assert driver.run_now(queue, note) == "result"
    assert threads == [threading.get_ident()] * 2
    assert loop.turns == turns
    # What that queues in turn, and what is due later, are the driver's.
    driver.run_now(queue, lambda: loop.call_soon(lambda: loop.call_later(0.001, done.set)))
    assert done.wait(10)
    with pytest.raises(ZeroDivisionError):
        driver.run_now(lambda: 1 / 0)
    # In a pass it is a call like any other, as it is for a thread that has claimed the loop.
    complete(driver.run(_returns(driver.run_now, queue, note)))
    assert loop.claim()
    assert driver.run_now(queue, note) == "result"
    loop.release()
    wait_for_one_after_another(driver, 1)
    assert len(threads) == 6


async def _returns(function, *args):
    return function(*args)


def test_work_without_a_waiter_is_done_between_the_claims_of_a_thread_that_waits(driver):
    near, far = socket.socketpair()
    arrived = threading.Event()

    def receive(_events):
        near.recv(1)
        arrived.set()

    with near, far:
        driver.start()
        driver.loop.call_soon(driver.loop.watch, near, READ, receive)
        for _ in range(20):
            wait_for_one_after_another(driver, 50)
            queued, timed = threading.Event(), threading.Event()
            driver.loop.call_soon(queued.set)
            driver.loop.call_soon(driver.loop.call_later, 0.001, timed.set)
            far.send(b"x")
            assert all(event.wait(10) for event in (queued, timed, arrived))
            arrived.clear()
        complete(driver.run(_unwatch(driver.loop, near)))


async def _unwatch(loop, file):
    loop.unwatch(file)


def test_a_selector_that_cannot_be_shared_is_turned_by_the_thread_alone():
    driver = ThreadDriver(Loop(selector=selectors.PollSelector))
    try:
        assert not driver.loop.claim()

        async def work():
            await driver.loop.sleep(0.001)
            return threading.current_thread().name

        assert complete(driver.run(work(), driver.loop.time() + 10)) == "kafka-network"
    finally:
        complete(driver.close())


def test_blocking_on_the_network_thread_is_refused(driver):
    async def inner():
        return 1

    async def outer():
        return complete(driver.run(inner()))

    with pytest.raises(IllegalStateError, match="the call blocks, so it cannot be called from a callback"):
        complete(driver.run(outer()))


def test_a_callback_that_waits_costs_others_no_deadline_and_no_ctrl_c(driver):
    driver.start()
    entered, released = threading.Event(), threading.Event()
    driver.loop.call_soon(lambda: (entered.set(), released.wait(30)))
    assert entered.wait(60)

    async def never():
        await Future()

    before = time.monotonic()
    with pytest.raises(KafkaTimeoutError):
        complete(driver.run(never(), driver.loop.time() + 0.1))
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012
        timer.start()
        complete(driver.wait(Future(), driver.loop.time() + 20))
    assert time.monotonic() - before < 15
    timer.join()
    released.set()


def test_close_from_a_callback_ends_the_thread():
    driver = ThreadDriver(Loop())

    async def closes():
        await checkpoint()

    driver.start()
    driver.loop.call_soon(lambda: complete(driver.close()))
    driver._thread.join(60)
    assert not driver._thread.is_alive()
    coro = closes()
    with pytest.raises(ClientClosedError):
        complete(driver.run(coro))


def test_close_from_a_callback_in_a_waiting_thread_does_not_wait_for_the_network_thread():
    driver = ThreadDriver(Loop())
    future = Future()
    before = time.monotonic()

    def callback():
        complete(driver.close(timeout=20))
        future.success(None)

    driver.loop.call_later(0.01, callback)
    assert complete(driver.wait(future, driver.loop.time() + 40))
    assert time.monotonic() - before < 15  # a join would have taken its whole time, for this thread has the loop
    complete(driver.close())
    assert not driver._thread.is_alive()


def test_close_resolves_a_call_that_another_thread_waits_in(driver):
    errors = []
    started = threading.Event()

    async def waits():
        started.set()
        await Future()

    def use():
        try:
            complete(driver.run(waits()))
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=use)
    thread.start()
    assert started.wait(10)
    complete(driver.close())
    thread.join(60)
    assert not thread.is_alive()
    assert isinstance(errors[0], (Cancelled, ClientClosedError)), errors
    assert not driver._thread.is_alive()


def test_a_forgotten_driver_ends_its_thread():
    driver = ThreadDriver(Loop())
    driver.start()
    thread = driver._thread
    del driver
    gc.collect()
    thread.join(60)
    assert not thread.is_alive()


def test_no_descriptor_is_left():
    def use():
        driver = ThreadDriver(Loop())

        async def nothing():
            pass

        complete(driver.run(nothing()))
        complete(driver.close())

    use()
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(10):
        use()
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize("inline", [True, False])
def test_ctrl_c_ends_a_blocking_call_at_once(inline):
    driver = ThreadDriver(Loop() if inline else Loop(selector=selectors.PollSelector))
    ended = threading.Event()

    async def waits():
        try:
            await Future()
        finally:
            ended.set()

    driver.start()
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGINT))
    began = time.monotonic()
    try:
        with pytest.raises(KeyboardInterrupt):  # noqa: PT012
            timer.start()
            complete(driver.run(waits()))
        assert time.monotonic() - began < 60  # a busy machine takes its time; unheard, it would wait for ever
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        assert ended.wait(60)
    finally:
        timer.join()
        complete(driver.close())


@pytest.mark.parametrize("how", ["wait", "here"])
def test_a_signal_right_before_the_system_call_that_sleeps_is_heard_soon(how):
    class EpollSelector(selectors.DefaultSelector):  # the name of one that may be claimed
        missed = 1

        def select(self, timeout=None):
            if threading.current_thread() is not threading.main_thread() or timeout == 0 or not self.missed:
                return super().select(timeout)
            self.missed = 0
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
            os.kill(os.getpid(), signal.SIGINT)
            try:
                return super().select(timeout)  # as if it had come in between: nothing ends this
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    loop = Loop(selector=EpollSelector)
    driver = ThreadDriver(loop)
    began = time.monotonic()
    if how == "wait":
        driver.start()
        while not loop._sleepers:  # it begins with a pass
            time.sleep(0.001)
        with pytest.raises(KeyboardInterrupt):
            complete(driver.wait(Future(), loop.time() + 100))
    else:
        with pytest.raises(KeyboardInterrupt):
            run_here(loop, loop.spawn(loop.sleep(100)))
    assert time.monotonic() - began < 50
    assert loop._selector.missed == 0
    complete(driver.close())


def test_the_network_thread_steps_aside_while_another_thread_is_about_to_shut_the_gate(driver, monkeypatch):
    """With events for that thread it would take the interpreter from it, turn by turn."""
    loop = driver.loop
    driver.start()
    ours, theirs = socket.socketpair()
    gate = loop._gate
    shut, turns = gate.shut, []

    def hesitates():
        theirs.send(b"x")
        begun = time.monotonic()
        before = loop.turns
        while time.monotonic() < begun + 0.1:
            time.sleep(0.001)
        turns.append(loop.turns - before)
        shut()

    with ours, theirs:
        complete(driver.run(watched(loop, ours)))
        monkeypatch.setattr(gate, "shut", hesitates)
        assert loop.claim()
        loop.release()
        monkeypatch.undo()
        complete(driver.run(unwatched(loop, ours)))
    assert 0 < turns[0] < 1000  # the least that a turn takes then is 0.2 ms; without that it is some 3 us


async def watched(loop, sock):
    loop.watch(sock, READ, lambda _: sock.recv(1))


async def unwatched(loop, sock):
    loop.unwatch(sock)


@pytest.mark.parametrize("how", ["run", "wait", "here"])
@pytest.mark.parametrize("inline", [True, False])
def test_a_signal_that_is_only_taken_note_of_ends_no_call(inline, how):
    """A service that was told to stop commits first: SIGTERM must not make that fail."""
    loop = Loop() if inline else Loop(selector=selectors.PollSelector)
    driver = ThreadDriver(loop)
    noted = []
    before = signal.signal(signal.SIGTERM, lambda number, _: noted.append(number))
    timer = threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGTERM))
    timer.start()
    try:
        if how == "run":
            complete(driver.run(loop.sleep(0.3), loop.time() + 10))
        elif how == "wait":
            driver.start()
            assert complete(driver.wait(loop.spawn(loop.sleep(0.3)), loop.time() + 10))
        else:
            run_here(loop, loop.spawn(loop.sleep(0.3)), loop.time() + 10)
        assert noted == [signal.SIGTERM]
    finally:
        timer.join()
        signal.signal(signal.SIGTERM, before)
        complete(driver.close())


class SignalsAt:
    """Stands in for the module `_signal`: right after the handler of one signal was set, another signal comes."""

    getsignal = staticmethod(signal.getsignal)

    def __init__(self, after):
        self.after = after
        self.comes = None

    def signal(self, number, handler):
        found = signal.signal(number, handler)
        if number == self.after and self.comes is not None:
            comes, self.comes = self.comes, None
            signal.raise_signal(comes)
        return found


def terminated(*_):
    raise SystemExit("terminated")


@pytest.fixture
def handlers():
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, terminated)
    yield lambda: (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("after", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("comes", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_at_the_edge_of_where_signals_wait_costs_no_handler(loop, monkeypatch, handlers, when, after, comes):
    sender = SignalsAt(after)
    monkeypatch.setattr(signals, "_signal", sender)
    if when == "before":
        sender.comes = comes
    with pytest.raises((KeyboardInterrupt, SystemExit)), SignalsDeferred(loop):
        sender.comes = comes
    assert handlers() == (signal.default_int_handler, terminated)


def test_each_of_the_signals_that_waited_is_handled(loop, handlers):
    seen = []
    signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))

    def both():
        with SignalsDeferred(loop):
            signal.raise_signal(signal.SIGINT)
            signal.raise_signal(signal.SIGTERM)

    with pytest.raises(KeyboardInterrupt):
        both()
    assert seen == [signal.SIGTERM]


def test_a_handler_that_the_program_sets_later_waits_too(loop, handlers):
    seen = []
    with SignalsDeferred(loop):
        pass
    signal.signal(signal.SIGTERM, lambda number, _: seen.append(number))
    with SignalsDeferred(loop):
        signal.raise_signal(signal.SIGTERM)
        assert not seen
    assert seen == [signal.SIGTERM]


def test_a_handler_that_is_set_at_the_edge_of_where_signals_wait_is_given_back(loop, monkeypatch, handlers):
    def later(*_):
        pass

    class Sets:
        getsignal = staticmethod(signal.getsignal)
        left = [signal.SIGINT]

        def signal(self, number, handler):
            found = signal.signal(number, handler)
            if number in self.left:
                self.left.clear()
                signal.signal(signal.SIGTERM, later)
            return found

    monkeypatch.setattr(signals, "_signal", Sets())
    with SignalsDeferred(loop):
        pass
    assert handlers() == (signal.default_int_handler, later)


MISTAKEN_THREADING = """
    import _thread, signal, sys

    assert "threading" not in sys.modules
    done = _thread.allocate_lock()
    done.acquire()


    def blocking_call():
        from kafka._runtime.network_thread import ThreadDriver, complete
        from kafka._runtime.loop import Loop

        async def work():
            return 1, signal.getsignal(signal.SIGINT) is not signal.default_int_handler

        driver = ThreadDriver(Loop())
        print(*complete(driver.run(work(), driver.loop.time() + 20)), flush=True)
        complete(driver.close())


    def first():
        try:
            import threading
            blocking_call()
        finally:
            done.release()


    _thread.start_new_thread(first, ())
    done.acquire()
    blocking_call()
"""


def test_threading_that_was_first_imported_off_the_main_thread_does_no_harm():
    """`threading` then takes another thread for the main one; only Python itself knows which one handles signals."""
    program = textwrap.dedent(MISTAKEN_THREADING)
    arguments = [sys.executable, "-S", "-c", program]  # -S: what is installed may import `threading` before
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False, cwd=ROOT)
    assert (done.stdout.splitlines(), done.stderr, done.returncode) == (["1 False", "1 True"], "", 0)


def test_many_handlers_that_raise_while_they_are_given_back_end_in_one_error(loop, monkeypatch, handlers):
    class Raises:
        getsignal = staticmethod(signal.getsignal)
        left = 2000  # deeper than Python's stack

        def signal(self, number, handler):
            if handler is signal.default_int_handler and self.left:
                self.left -= 1
                raise KeyboardInterrupt
            return signal.signal(number, handler)

    monkeypatch.setattr(signals, "_signal", Raises())
    with pytest.raises(KeyboardInterrupt), SignalsDeferred(loop):
        pass
    assert handlers() == (signal.default_int_handler, terminated)


@pytest.mark.skipif(not hasattr(os, "eventfd"), reason="no eventfd here")
def test_a_waker_that_is_closed_while_another_thread_signals_writes_into_no_other_file(monkeypatch, tmp_path):
    waker = Waker()
    number = waker.fileno()
    path = tmp_path / "another"
    path.write_bytes(b"another file's content")
    opened = []

    def write(fd, value, write=os.eventfd_write):
        waker.close()  # another thread does that here
        opened.append(os.open(path, os.O_RDWR))
        write(fd, value)

    monkeypatch.setattr(os, "eventfd_write", write)
    waker.signal()
    os.close(opened[0])
    assert path.read_bytes() == b"another file's content"
    with pytest.raises(OSError, match="Bad file"):  # it was freed in the end
        os.fstat(number)
    monkeypatch.undo()
    waker.signal()
    waker.drain()
    waker.close()


def open_files():
    return len(os.listdir("/proc/self/fd"))


def interrupted_at(at, act, *args):
    """Call `act` with KeyboardInterrupt before a bytecode of the loop's code, by its number; None if it has fewer."""
    left = at

    def trace(frame, event, _arg):
        nonlocal left
        if "/kafka/_runtime/" not in frame.f_code.co_filename:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            left -= 1
            if left < 0:
                sys.settrace(None)
                raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act(*args)
    except KeyboardInterrupt as error:
        return error
    finally:
        sys.settrace(before)


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc here")
def test_an_interrupt_at_any_bytecode_while_a_loop_is_made_leaves_no_descriptor():
    made = []

    def make():
        made.append(ThreadDriver(Loop()))

    gc.collect()
    gc.freeze()  # a collection is to look at no more than was made here
    try:
        before = open_files()
        for at in itertools.count():
            if interrupted_at(at, make) is None:
                break
            if open_files() != before:
                gc.collect()
                assert open_files() == before, at
    finally:
        gc.unfreeze()
    complete(made[0].close())
    assert at > 100


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="no /proc here")
@pytest.mark.filterwarnings(
    "ignore:coroutine .ThreadDriver.close. was never awaited"
)  # interrupted before its first step
def test_an_interrupt_at_any_bytecode_of_closing_leaves_nothing_when_it_is_closed_again():
    before = open_files()
    error = KeyboardInterrupt()
    for at in itertools.count():
        driver = ThreadDriver(Loop())
        driver.start()
        error = interrupted_at(at, lambda driver=driver: complete(driver.close()))
        complete(driver.close())
        driver._thread.join(10)
        assert open_files() == before, traceback.format_tb(error.__traceback__)[-2:]
        if error is None:
            break
    assert at > 50


@pytest.mark.skipif(not hasattr(os, "eventfd") or not os.path.isdir("/proc/self/fd"), reason="no eventfd here")
def test_the_traceback_of_an_interrupt_holds_no_descriptor_of_a_waker_that_is_closed():
    def use(waker):
        waker.signal()
        waker.drain()

    before = open_files()
    for at in itertools.count():
        waker = Waker()
        error = interrupted_at(at, use, waker)
        waker.close()
        if error is None:
            break
        assert open_files() == before, traceback.format_tb(error.__traceback__)[-1]
    assert at > 10


@pytest.mark.internal_errors
def test_a_thread_that_breaks_down_fails_what_it_was_doing(driver, caplog):
    async def waits():
        await Future()

    closed = []
    driver.loop.on_close(lambda: closed.append(True))
    driver.start()
    task = driver.loop.spawn(waits())
    done = threading.Event()
    task.add_both(lambda _: done.set())
    driver.loop.call_soon(sys.exit, 3)
    assert done.wait(60)
    assert isinstance(task.exception, (Cancelled, ClientClosedError))
    driver._thread.join(60)
    assert closed == [True]
    assert "please report it" in caplog.text
    with pytest.raises(ClientClosedError, match="broke down"):
        complete(driver.run(waits()))


@pytest.mark.internal_errors
def test_callbacks_that_end_the_program_do_not_end_the_network_thread(driver, caplog):
    driver.start()
    future, rest = Future(), threading.Event()
    future.add_callback(sys.exit)
    future.add_callback(lambda _: rest.set())
    driver.loop.call_soon(future.success, 3)
    assert rest.wait(10)

    async def fine():
        return 1

    assert complete(driver.run(fine())) == 1
    deadline = time.monotonic() + 60
    while "SystemExit(3)" not in caplog.text:  # it is told after the pass
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_callbacks_that_end_the_program_end_it_after_the_pass_where_that_is_made_for_a_call(loop):
    future, ran = Future(), []
    future.add_callback(sys.exit)
    loop.call_soon(lambda: (future.success(3), ran.append("the rest of what completed it")))
    loop.call_soon(ran.append, "the rest of the pass")
    with pytest.raises(SystemExit) as ended:
        loop.turn(0)
    assert ended.value.code == 3
    assert ran == ["the rest of what completed it", "the rest of the pass"]
    loop.turn(0)  # it is told once


def test_callbacks_that_end_the_program_end_it_at_once_outside_of_passes(loop):
    with pytest.raises(SystemExit):
        Future().success(3).add_callback(sys.exit)


def test_a_driver_that_was_closed_before_its_first_use_refuses_calls():
    driver = ThreadDriver(Loop())
    complete(driver.close())

    async def never():
        raise AssertionError

    with pytest.raises(ClientClosedError):
        complete(driver.run(never()))


def test_waiting_for_a_future_ends_when_the_driver_is_closed(driver):
    waiting, ended = threading.Event(), threading.Event()

    def use(future):
        waiting.set()
        complete(driver.wait(future))
        ended.set()

    driver.start()
    threads = [threading.Thread(target=use, args=(Future(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    assert waiting.wait(10)
    complete(driver.close())
    for thread in threads:
        thread.join(60)
    assert ended.is_set()
    assert not any(thread.is_alive() for thread in threads)


def test_waiting_for_a_future_ends_with_it_or_at_the_deadline(driver):
    future = Future()
    assert not complete(driver.wait(future, driver.loop.time() + 0.01))
    driver.loop.call_soon(future.success, 1)
    assert complete(driver.wait(future, driver.loop.time() + 10))
    assert complete(driver.wait(future))


def test_try_turn_makes_one_pass_in_the_calling_thread(driver):
    names = []
    driver.start()
    driver.loop.claim()  # keeps the network thread out
    driver.loop.call_soon(lambda: names.append(threading.current_thread()))
    driver.loop.release()
    deadline = time.monotonic() + 60
    while not names and time.monotonic() < deadline:
        complete(driver.turn())
    assert names


def test_interpreter_exit_ends_what_was_left_open():
    program = """
from kafka._runtime.network_thread import ThreadDriver, complete
from kafka._runtime.loop import Loop
from kafka.future import Future
driver = ThreadDriver(Loop())
driver.start()
async def waits():
    await Future()
task = driver.loop.spawn(waits())
task.add_both(lambda outcome: print("resolved:", type(outcome).__name__))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "resolved: Cancelled\n", "")


def _use_in_child(driver, pipe):
    async def nothing():
        pass

    coro = nothing()
    try:
        complete(driver.run(coro))
    except Exception as error:
        pipe.send(type(error).__name__)
    complete(driver.close())
    pipe.close()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_child_of_a_fork_gets_an_error_and_the_parent_is_unharmed(driver):
    async def answer():
        await driver.loop.sleep(0.001)
        return 42

    assert complete(driver.run(answer())) == 42
    here, there = multiprocessing.get_context("fork").Pipe()
    child = multiprocessing.get_context("fork").Process(target=_use_in_child, args=(driver, there))
    child.start()
    assert here.poll(30)
    assert here.recv() == ForkedClientError.__name__
    child.join(30)
    assert child.exitcode == 0
    assert complete(driver.run(answer(), driver.loop.time() + 10)) == 42


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_fork_while_another_thread_is_in_a_pass_does_not_lock_the_child_up(driver):
    """The locks that were held at the fork are held for ever in the child."""
    inside, leave = threading.Event(), threading.Event()

    def busy():
        inside.set()
        leave.wait(30)

    driver.start()
    driver.loop.call_soon(busy)
    assert inside.wait(10)
    here, there = multiprocessing.get_context("fork").Pipe()
    child = multiprocessing.get_context("fork").Process(target=_use_in_child, args=(driver, there))
    child.start()
    try:
        assert here.poll(30)
        assert here.recv() == ForkedClientError.__name__
    finally:
        leave.set()
        child.join(30)
    assert child.exitcode == 0


def test_no_wake_up_is_lost_between_threads(driver):  # noqa: C901 - three small bodies
    interval = sys.getswitchinterval()
    end = time.monotonic() + 0.5
    problems = []

    async def work():
        future = Future()
        driver.loop.call_soon(future.success, 1)
        await driver.loop.sleep(0.0001)
        return await future

    def run_tasks():
        while time.monotonic() < end and not problems:
            if complete(driver.run(work(), driver.loop.time() + 20)) != 1:
                problems.append("wrong")

    def wait_for_futures():
        while time.monotonic() < end and not problems:
            future = Future()
            driver.loop.call_soon(future.success, 1)
            if not complete(driver.wait(future, driver.loop.time() + 20)):
                problems.append("lost")

    def turn():
        while time.monotonic() < end:
            complete(driver.turn())

    threads = [threading.Thread(target=use) for use in (run_tasks, run_tasks, wait_for_futures, wait_for_futures, turn)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(interval)
    assert not problems
    assert not any(thread.is_alive() for thread in threads)


# Asyncio


def test_asyncio_turns_the_loop():
    import asyncio

    async def main():
        driver = asyncio_driver(Loop())
        assert isinstance(driver, AsyncioDriver)
        left, right = socket.socketpair()
        left.setblocking(False)
        got = Future()

        async def receives():
            driver.loop.watch(left, READ, lambda _: got.try_success(left.recv(10)))
            data = await got
            driver.loop.unwatch(left)
            await driver.loop.sleep(0.01)
            return data

        task = asyncio.create_task(driver.run(receives()))
        await asyncio.sleep(0)
        right.send(b"hello")
        assert await task == b"hello"
        turns = driver.loop.turns
        await asyncio.sleep(0.05)
        assert driver.loop.turns - turns <= 1
        await driver.close()
        left.close()
        right.close()

    asyncio.run(main())


def test_asyncio_meets_a_deadline_that_comes_before_the_armed_one():
    import asyncio

    async def main():
        driver = asyncio_driver(Loop())
        slow = asyncio.create_task(driver.run(driver.loop.sleep(30)))
        await asyncio.sleep(0.01)
        await asyncio.wait_for(driver.run(driver.loop.sleep(0.01)), 5)
        slow.cancel()
        await asyncio.gather(slow, return_exceptions=True)
        await driver.close()

    asyncio.run(main())


def test_cancelling_in_asyncio_cancels_the_coroutine():
    import asyncio

    async def main():
        driver = asyncio_driver(Loop())
        ended = []

        async def waits():
            try:
                await Future()
            finally:
                ended.append(True)

        task = asyncio.create_task(driver.run(waits()))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.sleep(0.01)
        assert ended == [True]
        assert not driver.loop._tasks
        await driver.close()

    asyncio.run(main())


def test_asyncio_is_woken_by_other_threads():
    import asyncio

    async def main():
        driver = asyncio_driver(Loop())
        gate = Future()

        async def waits():
            return await gate

        task = asyncio.create_task(driver.run(waits()))
        await asyncio.sleep(0.01)
        thread = threading.Thread(target=gate.success, args=("woken",))
        thread.start()
        assert await asyncio.wait_for(task, 5) == "woken"
        thread.join()
        await driver.close()

    asyncio.run(main())


def test_without_a_pollable_selector_a_thread_serves_asyncio():
    import asyncio

    class NoDescriptor(selectors.SelectSelector):
        pass

    async def main():
        driver = asyncio_driver(Loop(selector=NoDescriptor))
        assert not isinstance(driver, AsyncioDriver)

        async def answer():
            await driver.loop.sleep(0.001)
            return 42

        assert await driver.run(answer()) == 42
        await driver.close()

    asyncio.run(main())


def test_the_fake_clock_moves_both_times_together():
    clock = FakeClock()
    wall = clock.time()
    clock.advance(1.5)
    assert clock.time() - wall == 1.5


def test_a_turn_is_cut_by_time_and_a_busy_socket_starves_neither_its_neighbours_nor_a_timer(network, loop):
    server = network.listen("b", 1)
    seen = []

    def slow(name, sock):
        def handler(_events):
            seen.append(name)
            network.clock.advance(0.010)

        loop.watch(sock, READ, handler)

    for name in "abc":
        sock = network.socket()
        assert sock.connect_ex(("b", 1)) == 0
        server.accept().send(b"always readable")
        slow(name, sock)
    loop.call_later(0.001, seen.append, "timer")
    for _ in range(4):
        loop.call_soon(lambda: (seen.append("callback"), network.clock.advance(0.010)))
    for _ in range(6):
        began = network.clock.monotonic()
        loop.turn(0, budget=0.002)
        assert network.clock.monotonic() - began < 0.021, "one handler and one callback"
    assert [name for name in seen if name in "abc"] == ["a", "b", "c", "a", "b", "c"]
    assert seen.index("timer") > seen.index("c"), "what has arrived is read before a timer ends it"
    assert seen.count("callback") == 4
    assert seen.count("timer") == 1


def test_a_turn_without_a_budget_does_all_that_was_ready(network, loop):
    seen = []
    for number in range(100):
        loop.call_soon(lambda number=number: (seen.append(number), network.clock.advance(0.010)))
    loop.turn(0)
    assert seen == list(range(100))


def test_asyncio_has_its_turn_between_two_slices():
    import asyncio

    from kafka._runtime.asyncio_driver import SLICE

    async def main():
        driver = asyncio_driver(Loop())
        ended = time.thread_time() + 0.2

        def busy():
            if time.thread_time() < ended:
                for _ in range(1000):
                    pass
                driver.loop.call_soon(busy)

        for _ in range(100):
            driver.loop.call_soon(busy)
        longest = 0.0
        while driver.loop.has_ready:
            before = time.thread_time()
            await asyncio.sleep(0)
            longest = max(longest, time.thread_time() - before)
        await driver.close()
        return longest

    assert asyncio.run(main()) < 5 * SLICE * slowness()


def test_asyncio_that_was_closed_first_is_left_alone(caplog):
    import asyncio

    drivers = []

    async def main():
        drivers.append(asyncio_driver(Loop()))

    asyncio.run(main())
    (driver,) = drivers
    driver.loop.call_soon(print)  # wakes nobody, and raises nothing
    driver.loop.wakeup()
    thread = threading.Thread(target=driver.loop.call_soon, args=(print,))
    thread.start()
    thread.join()
    driver.abort()
    driver.abort()
    assert driver.loop.closed
    assert not caplog.records


def test_an_asyncio_driver_can_be_aborted_from_a_callback_of_its_loop():
    import asyncio

    async def main():
        driver = asyncio_driver(Loop())
        driver.loop.call_soon(driver.abort)
        for _ in range(10):
            await asyncio.sleep(0)
        assert driver.loop.closed
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


@pytest.mark.parametrize("threaded", [False, True])
def test_an_aborted_asyncio_driver_ends_what_waits(threaded):
    import asyncio

    class NoDescriptor(selectors.SelectSelector):
        pass

    async def main():
        driver = asyncio_driver(Loop(selector=NoDescriptor) if threaded else Loop())
        waiting = asyncio.create_task(driver.run(driver.loop.sleep(60)))
        await asyncio.sleep(0.01)
        driver.abort()
        with pytest.raises((ClientClosedError, Cancelled)):
            await asyncio.wait_for(waiting, 5)

    asyncio.run(main())


# Work in slices


def steps(count, turns=None):
    for number in range(count):
        if turns is not None:
            turns.append(number)
        yield
    if count == 3:
        raise ValueError("the third")
    return count


@pytest.mark.parametrize(("slice_", "first"), [(0.0, 1), (math.inf, 10)])
def test_a_generator_runs_in_slices_and_other_callbacks_have_their_turn(slice_, first):
    loop = Loop()
    loop.slice = slice_
    done = []
    task = loop.spawn(loop.in_slices(steps(10, done)))
    loop.turn(0, budget=0.0)
    assert len(done) == first
    assert loop.run_until(task) == 10
    loop.close()


def test_the_error_of_a_generator_is_that_of_its_task():
    loop = Loop()
    loop.slice = 0.0
    task = loop.spawn(loop.in_slices(steps(3)))
    with pytest.raises(ValueError, match="the third"):
        loop.run_until(task)
    loop.close()


def test_a_task_that_began_while_the_loop_ended_has_not_failed(caplog):
    """It ends with the loop, without a word: in asyncio another task of the program may still begin something."""
    loop = Loop()
    begun = []

    async def late():
        await loop.sleep(60)

    async def first():
        try:
            await loop.sleep(60)
        finally:
            begun.append(loop.spawn_logged(late(), "late"))

    loop.spawn_logged(first(), "first")
    loop.turn(0)
    loop.close(grace=0.01)
    assert isinstance(begun[0].exception, ClientClosedError)
    assert not caplog.records
