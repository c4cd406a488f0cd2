"""The event loops that the asyncio clients are tested on, and what they may leave behind: nothing."""

from __future__ import annotations

import asyncio
import gc
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest


def _selector_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.SelectorEventLoop()
    # Under -X dev each of 100,000 tasks would note where it was made, which takes minutes; there is a loop for that.
    loop.set_debug(False)
    return loop


def _uvloop() -> asyncio.AbstractEventLoop:
    uvloop = pytest.importorskip("uvloop")
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    loop.set_debug(False)
    return loop


def _debug_loop() -> asyncio.AbstractEventLoop:
    loop = asyncio.SelectorEventLoop()
    loop.set_debug(True)
    return loop


def _eager_loop() -> asyncio.AbstractEventLoop:
    if sys.version_info < (3, 12):
        pytest.skip("eager tasks are new in Python 3.12")
    loop = asyncio.SelectorEventLoop()
    loop.set_task_factory(asyncio.eager_task_factory)
    return loop


class _WithoutReaders(asyncio.SelectorEventLoop):
    """Watches no descriptors for others, as Windows' proactor. In debug mode it refuses calls from other threads."""

    def add_reader(self, *_: Any) -> None:
        raise NotImplementedError


def _loop_without_readers() -> asyncio.AbstractEventLoop:
    loop = _WithoutReaders()
    loop.set_debug(True)
    return loop


LOOPS: dict[str, Callable[[], asyncio.AbstractEventLoop]] = {
    "selector": _selector_loop,
    "uvloop": _uvloop,
    "debug": _debug_loop,
    "eager": _eager_loop,
    "without_readers": _loop_without_readers,
}


@pytest.fixture(scope="session", autouse=True)
def pipe_of_libuv() -> None:
    """Have libuv open the pipe that it keeps for the life of the process before a test must leave nothing open."""
    try:
        import uvloop
    except ImportError:
        return
    uvloop.new_event_loop().close()


def run_on(make_loop: Callable[[], asyncio.AbstractEventLoop], main: Coroutine[Any, Any, Any]) -> Any:
    """Run a coroutine on a new event loop, which no task may outlive and on which nothing may fail unseen."""
    loop = make_loop()
    failures: list[str] = []
    loop.set_exception_handler(lambda _loop, context: failures.append(repr(context)))
    threads = threading.active_count()
    try:
        result = loop.run_until_complete(main)
        left = [task for task in asyncio.all_tasks(loop) if not task.done()]
        assert not left, f"tasks outlived their client: {left}"
        loop.run_until_complete(loop.shutdown_asyncgens())
        gc.collect()
        loop.run_until_complete(asyncio.sleep(0))
        assert not failures, failures
        if make_loop is _loop_without_readers:  # the client's thread ends with it, that of the executor does not
            loop.run_until_complete(loop.shutdown_default_executor())
        names = [thread.name for thread in threading.enumerate()]
        assert threading.active_count() <= threads, f"a client has started a thread: {names}"
        return result
    finally:
        loop.run_until_complete(loop.shutdown_default_executor())
        loop.close()


@pytest.fixture(params=[pytest.param(name, id=name) for name in LOOPS])
def run(request: pytest.FixtureRequest) -> Iterator[Callable[[Coroutine[Any, Any, Any]], Any]]:
    """Run a coroutine on each kind of event loop in turn."""
    coroutines = []

    def runner(main: Coroutine[Any, Any, Any]) -> Any:
        coroutines.append(main)
        return run_on(LOOPS[request.param], main)

    yield runner
    for coroutine in coroutines:
        coroutine.close()


@pytest.fixture
def run_once() -> Callable[[Coroutine[Any, Any, Any]], Any]:
    """Run a coroutine on asyncio's own event loop alone."""
    return lambda main: run_on(_selector_loop, main)
