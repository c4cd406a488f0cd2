"""kafka.future.Future: completes once, calls back once, loses no wake-up."""

import gc
import logging
import threading
import weakref

import pytest

from kafka.errors import IllegalStateError, KafkaError, KafkaTimeoutError, NodeNotReadyError
from kafka.future import Future


def drive(coro):
    """Run a coroutine as the scheduler does, and list the futures that it yields."""
    yielded = []
    try:
        while True:
            future = coro.send(None)
            yielded.append(future)
            if not future.is_done:
                return yielded, None
    except StopIteration as stop:
        return yielded, stop.value


def test_a_pending_future_has_no_outcome():
    future = Future()
    assert not future.is_done
    assert not future.succeeded()
    assert not future.failed()
    assert not future.retriable()
    assert future.value is None
    assert future.exception is None
    with pytest.raises(IllegalStateError):
        future.result()


@pytest.mark.parametrize("value", [42, None, 0, b"", KafkaError("as a value")])
def test_success_keeps_the_value(value):
    future = Future().success(value)
    assert future.is_done
    assert future.succeeded()
    assert not future.failed()
    assert future.value is value
    assert future.result() is value


def test_failure_keeps_the_exception():
    error = NodeNotReadyError("b1")
    future = Future().failure(error)
    assert future.failed()
    assert not future.succeeded()
    assert future.exception is error
    assert future.retriable()
    with pytest.raises(NodeNotReadyError):
        future.result()


def test_failure_takes_a_class_too():
    assert isinstance(Future().failure(KafkaTimeoutError).exception, KafkaTimeoutError)


def test_failure_refuses_a_value_that_is_not_an_exception():
    future = Future()
    with pytest.raises(TypeError, match="not with 'oops'"):
        future.failure("oops")
    assert not future.is_done


def test_an_exception_that_is_falsy_is_a_failure():
    class Falsy(Exception):
        def __bool__(self):
            return False

    assert Future().failure(Falsy()).failed()


def test_a_second_completion_raises_and_changes_nothing():
    future = Future().success(1)
    with pytest.raises(IllegalStateError, match="already complete"):
        future.success(2)
    with pytest.raises(IllegalStateError, match="already complete"):
        future.failure(KafkaError())
    assert future.result() == 1


def test_try_success_and_try_failure_tell_who_was_first():
    future = Future()
    assert future.try_failure(KafkaError("first"))
    assert not future.try_success(1)
    assert not future.try_failure(KafkaError("second"))
    assert future.exception == KafkaError("first")
    assert len(future._outcome) == 1


def test_callbacks_run_in_order_before_and_after_completion():
    seen = []
    future = Future()
    future.add_callback(seen.append).add_both(lambda v: seen.append(("both", v))).add_errback(seen.append)
    future.success("v")
    future.add_callback(lambda v: seen.append(("late", v)))
    assert seen == ["v", ("both", "v"), ("late", "v")]


def test_errbacks_get_the_exception():
    seen = []
    error = KafkaError("x")
    future = Future().add_callback(seen.append).add_errback(seen.append).add_both(seen.append)
    future.failure(error)
    future.add_errback(seen.append)
    assert seen == [error] * 3


def test_further_arguments_come_before_the_value():
    seen = []
    Future().add_callback(lambda *args, **kw: seen.append((args, kw)), 1, 2, x=3).success("v")
    Future().add_errback(lambda *args, **kw: seen.append((args, kw)), 1, y=3).failure(KafkaError())
    assert seen == [((1, 2, "v"), {"x": 3}), ((1, KafkaError()), {"y": 3})]


def test_a_callback_that_raises_is_logged_and_harms_no_other(caplog):
    seen = []
    future = Future().add_callback(lambda _: 1 / 0).add_callback(seen.append)
    with caplog.at_level(logging.ERROR, "kafka.future"):
        future.success(1)
    assert seen == [1]
    assert "ZeroDivisionError" in caplog.text


def test_error_on_callbacks_raises_after_all_have_run(monkeypatch, caplog):
    monkeypatch.setattr(Future, "error_on_callbacks", True)
    seen = []
    with pytest.raises(ZeroDivisionError):
        Future().add_callback(lambda _: 1 / 0).add_callback(seen.append).success(1)
    assert seen == [1]


def test_ctrl_c_in_a_callback_costs_no_other_its_wake_up():
    def interrupt(_):
        raise KeyboardInterrupt

    seen = []
    future = Future().add_callback(interrupt).add_callback(seen.append)
    with pytest.raises(KeyboardInterrupt):
        future.success(1)
    assert seen == [1]
    assert future.succeeded()


def test_a_callback_may_add_callbacks_to_the_same_future():
    seen = []
    future = Future()
    future.add_callback(lambda _: future.add_callback(seen.append))
    future.success(1)
    assert seen == [1]


def test_chain_passes_on_value_and_exception_but_not_over_an_outcome():
    one, two, three = Future(), Future(), Future().success("own")
    one.chain(two).chain(three)
    one.success("v")
    assert two.value == "v"
    assert three.value == "own"
    failed, follower = Future(), Future()
    failed.chain(follower).failure(KafkaError("x"))
    assert follower.exception == KafkaError("x")


def test_await_yields_the_future_itself_until_done():
    async def wait(future):
        return await future

    future = Future()
    coro = wait(future)
    assert coro.send(None) is future
    assert coro.send(None) is future  # woken without reason: it waits on
    future.success(7)
    with pytest.raises(StopIteration) as stop:
        coro.send(None)
    assert stop.value.value == 7


def test_await_of_a_done_future_does_not_yield():
    async def wait(future):
        return await future

    assert drive(wait(Future().success(1))) == ([], 1)
    with pytest.raises(KafkaError, match="x"):
        drive(wait(Future().failure(KafkaError("x"))))


def test_a_failed_future_is_freed_without_the_cycle_collector():
    gc.disable()
    try:
        future = Future().failure(KafkaError("x"))
        with pytest.raises(KafkaError):
            future.result()
        gone = weakref.ref(future)
        del future
        assert gone() is None
    finally:
        gc.enable()


def frames_of(error):
    count, traceback = 0, error.__traceback__
    while traceback is not None:
        count, traceback = count + 1, traceback.tb_next
    return count


def test_an_error_that_is_raised_repeatedly_keeps_the_traceback_that_it_came_with():
    def origin():
        raise KafkaTimeoutError("late")

    with pytest.raises(KafkaTimeoutError) as caught:
        origin()
    future = Future().failure(caught.value)
    before, seen = frames_of(caught.value), set()
    for _ in range(5):
        with pytest.raises(KafkaTimeoutError) as caught:
            future.result()
        names = [entry.name for entry in caught.traceback]
        assert "origin" in names
        seen.add(frames_of(caught.value))
    assert seen == {before + 2}


def test_repr_says_the_state():
    assert repr(Future()) == "<Future pending>"
    assert repr(Future().success(1)) == "<Future value=1>"
    assert repr(Future().failure(KafkaError("x"))) == "<Future exception=KafkaError('x')>"


def test_callbacks_added_while_it_completes_run_exactly_once():
    rounds, adders = 300, 3
    for _ in range(rounds):
        future = Future()
        calls = []
        start = threading.Barrier(adders + 2)

        def add(number, future=future, calls=calls, start=start):
            start.wait()
            for i in range(5):
                future.add_both(lambda *call: calls.append(call), number, i)

        def complete(value, future=future, start=start):
            start.wait()
            future.try_success(value)

        threads = [threading.Thread(target=add, args=(n,)) for n in range(adders)]
        threads += [threading.Thread(target=complete, args=(v,)) for v in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert sorted((n, i) for n, i, _ in calls) == [(n, i) for n in range(adders) for i in range(5)]
        assert {v for _, _, v in calls} == {future.value}
        assert len(future._outcome) == 1
