"""One way to use both faces: an asyncio client that is called like the synchronous one, from the thread of a test.

`Loop` runs an event loop in a thread. `AIOConsumer` has the calls of `KafkaConsumer`: each runs on the loop, while the
calling thread waits. A listener is called in another thread, so
that it may call the client too, and inside the context in which the client has called it. A test module that sets
``FACES = "both"`` has its tests run on both (`conftest`): a promise that holds on one face holds on the other.
"""

from __future__ import annotations

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from kafka.aio import AIOKafkaConsumer

#: What a call of the client may take beyond the limits of its own.
PATIENCE = 120.0


class Loop:
    """An event loop in a thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self.listeners = ThreadPoolExecutor(8, "listener")
        self._thread = threading.Thread(target=self._loop.run_forever, name="event loop", daemon=True)
        self._thread.start()

    def run(self, make: Callable[[], Any]) -> Any:
        """Call a function on the loop, await what it returns, and return the result."""
        done: Future[Any] = Future()
        tasks: list[asyncio.Task[None]] = []

        async def call() -> None:
            try:
                result = make()
                if isinstance(result, Awaitable):
                    result = await result
            except BaseException as error:
                done.set_exception(error)
            else:
                done.set_result(result)

        # The caller's context says whether a listener calls.
        self._loop.call_soon_threadsafe(
            lambda: tasks.append(self._loop.create_task(call())), context=contextvars.copy_context()
        )
        try:
            return done.result(PATIENCE)
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(tasks[0].cancel)
            raise

    def close(self) -> None:
        """End the loop; what is left of tasks is an error."""
        left = self.run(lambda: [task for task in asyncio.all_tasks() if task is not asyncio.current_task()])
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self.listeners.shutdown()
        assert not left, f"tasks that are left: {left}"


class _Listener:
    """Calls a synchronous listener in a thread, while the consumer awaits it."""

    def __init__(self, listener: Any, loop: Loop) -> None:
        for name in ("on_partitions_revoked", "on_partitions_assigned", "on_partitions_lost"):
            if function := getattr(listener, name, None):
                setattr(self, name, self._awaited(function, loop))

    @staticmethod
    def _awaited(function: Callable[..., Any], loop: Loop) -> Callable[..., Any]:
        async def call(*args: Any) -> Any:
            inside = contextvars.copy_context()
            return await asyncio.get_running_loop().run_in_executor(loop.listeners, inside.run, function, *args)

        return call


class _Client:
    """Calls of an asyncio client, one at a time, for the calling thread."""

    kind: Callable[..., Any]

    def __init__(self, *args: Any, **configs: Any) -> None:
        self._run = Loop()
        self._closed = False
        try:
            self.client = self._run.run(lambda: self.kind(*args, **configs))
            self._run.run(self.client.start)
        except BaseException:
            self._run.close()
            raise

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.client, name)
        if not callable(value):
            return value

        def call(*args: Any, **options: Any) -> Any:
            return self._run.run(lambda: value(*args, **options))

        return call

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self, **options: Any) -> None:
        """Close the client, and end its loop."""
        if not self._closed:
            self._closed = True
            try:
                self._run.run(lambda: self.client.close(**options))
            finally:
                self._run.close()


class AIOConsumer(_Client):
    """`AIOKafkaConsumer`, called like a `KafkaConsumer`."""

    kind = AIOKafkaConsumer

    def __init__(self, *topics: str, consumer_timeout_ms: float = float("inf"), **configs: Any) -> None:
        self._timeout = None if consumer_timeout_ms == float("inf") else consumer_timeout_ms / 1000
        super().__init__(*topics, **configs)

    def subscribe(self, topics: Any = (), pattern: Any = None, listener: Any = None) -> None:
        """Subscribe; the listener is a synchronous one."""
        wrapped = None if listener is None else _Listener(listener, self._run)
        self._run.run(lambda: self.client.subscribe(topics, pattern, wrapped))

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        async def following() -> Any:
            return await asyncio.wait_for(self.client.__anext__(), self._timeout)

        try:
            return self._run.run(following)
        except (asyncio.TimeoutError, StopAsyncIteration):
            raise StopIteration from None
