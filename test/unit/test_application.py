"""Application-side coroutines: the same one below a synchronous face and below asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from kafka._runtime.application import Application
from kafka._runtime.asyncio_driver import AsyncioDriver
from kafka._runtime.loop import Loop
from kafka._runtime.network_thread import ThreadDriver, complete
from kafka.errors import IllegalStateError, KafkaTimeoutError
from kafka.future import Future


async def a_public_call(application: Application, loop: Loop) -> list[object]:
    """Wait for a future, run work on the loop, call user code: what poll() and commit() consist of."""
    seen: list[object] = []
    soon: Future[int] = Future()
    loop.call_soon(loop.call_later, 0.001, soon.success, 7)
    seen.append(await application.wait(soon))
    seen.append(soon.value)
    seen.append(await application.wait(Future(), loop.time() + 0.001))
    begun: Future[None] = Future()
    seen.append(await application.wait(begun, loop.time() + 10, lambda: begun.success(None)))

    async def work() -> str:
        await loop.sleep(0.001)
        return "done"

    seen.append(await application.run(work()))
    with pytest.raises(KafkaTimeoutError, match=r"^the long call took too long$"):
        await application.run(loop.sleep(60), loop.time() + 0.001, "the long call")
    seen.append(await application.call(lambda word: f"user code says {word}", "hello"))
    return seen


EXPECTED = [True, 7, False, True, "done", "user code says hello"]


@pytest.fixture
def driver() -> Iterator[ThreadDriver]:
    made = ThreadDriver(Loop())
    yield made
    complete(made.close())


def test_a_coroutine_runs_in_the_thread_that_calls_a_synchronous_face(driver: ThreadDriver) -> None:
    assert complete(a_public_call(driver, driver.loop)) == EXPECTED


def test_the_same_coroutine_is_awaited_in_a_task_of_asyncio() -> None:
    async def main() -> list[object]:
        driver = AsyncioDriver(Loop())
        try:
            return await a_public_call(driver, driver.loop)
        finally:
            await driver.close()

    assert asyncio.run(main()) == EXPECTED


async def listener(word: str) -> str:
    await asyncio.sleep(0)
    return word.upper()


def test_listeners_of_a_synchronous_face_may_be_coroutine_functions(driver: ThreadDriver) -> None:
    assert complete(driver.call(listener, "hello")) == "HELLO"


def test_such_a_listener_cannot_run_while_a_coroutine_blocks_its_event_loop(driver: ThreadDriver) -> None:
    async def main() -> None:
        complete(driver.call(listener, "hello"))

    with pytest.raises(IllegalStateError, match=r"^listener is a coroutine function, .* use kafka\.aio"):
        asyncio.run(main())


def test_listeners_of_asyncio_may_be_coroutine_functions() -> None:
    async def main() -> object:
        driver = AsyncioDriver(Loop())
        try:
            return await driver.call(listener, "hello")
        finally:
            await driver.close()

    assert asyncio.run(main()) == "HELLO"


def test_a_cancelled_wait_leaves_no_callback_and_no_timer_behind() -> None:
    never: Future[None] = Future()

    async def main() -> None:
        driver = AsyncioDriver(Loop())
        application = driver
        try:
            for _ in range(100):
                with pytest.raises(asyncio.TimeoutError):
                    await asyncio.wait_for(application.wait(never, driver.loop.time() + 60), 0.0001)
        finally:
            await driver.close()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
    assert not never._backs


def test_what_suspends_below_a_synchronous_face_is_an_error() -> None:
    async def waits_for_asyncio() -> None:
        await asyncio.sleep(0)

    with pytest.raises(IllegalStateError, match="only code that an asyncio task awaits may do"):
        complete(waits_for_asyncio())
