"""One way to use both faces: asyncio clients that are called like the synchronous ones, from the thread of a test.

`Loop` runs an event loop in a thread. `AIOConsumer` has the calls of `KafkaConsumer`, `AIOProducer` those of
`KafkaProducer`, `AIOShareConsumer` those of `KafkaShareConsumer`: each runs on the loop, while the calling thread
waits. User code runs where an asyncio program has it: callbacks of futures, interceptors, serializers on the loop; a
rebalance listener in another thread and in the context in which the client has called it, so that it may call the
client too.

What the faces do differently by contract stands here, once: options whose defaults are aiokafka's get the synchronous
ones; a record that is refused, and a topic's error, come out of `send()` and are put into the future; errors that
aiokafka's programs catch by their own names get the names of the synchronous face; `start()` of a producer does what
`init_transactions()` does. A test module that sets ``FACES = "both"`` runs on both: a promise that holds on one face
holds on the other.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ClassVar

import pytest

from kafka import KafkaConsumer, KafkaProducer, KafkaShareConsumer
from kafka.aio import AIOKafkaConsumer, AIOKafkaProducer, AIOKafkaShareConsumer
from kafka.errors import (
    BrokerResponseError,
    ClientClosedError,
    ConsumerStoppedError,
    FatalError,
    IllegalOperation,
    IllegalStateError,
    KafkaTimeoutError,
    RecordTooLargeError,
    UnsupportedVersionError,
)
from kafka.producer.future import FutureRecordMetadata

#: What a call of the client may take beyond the limits of its own.
PATIENCE = 60.0


class Loop:
    """An event loop in a thread."""

    open: ClassVar[list[Loop]] = []
    """Those of the present test, which ends them: a client is used after close() too."""

    def __init__(self) -> None:
        self.open.append(self)
        self._loop = asyncio.new_event_loop()
        self.listeners = ThreadPoolExecutor(8, "listener")
        self._thread = threading.Thread(target=self._loop.run_forever, name="event loop", daemon=True)
        self._thread.start()

    @property
    def is_here(self) -> bool:
        """Whether the caller is on the loop, as a callback is."""
        return threading.current_thread() is self._thread

    def run(self, make: Callable[[], Any]) -> Any:
        """Call a function on the loop, await what it returns, and return the result."""
        assert not self.is_here, "a callback on the event loop cannot wait: the test is one of the synchronous face"
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
        try:
            self._loop.call_soon_threadsafe(
                lambda: tasks.append(self._loop.create_task(call())), context=contextvars.copy_context()
            )
            return done.result(PATIENCE)
        except KeyboardInterrupt:
            self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
            raise
        except IllegalOperation as error:
            raise IllegalStateError(*error.args) from error
        except ConsumerStoppedError as error:
            raise ClientClosedError(*error.args) from error

    def close(self) -> None:
        """End the loop; what is left of tasks is an error. No error if it has ended."""
        if self._loop.is_closed():
            return
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
                awaits = inspect.iscoroutinefunction(function)
                setattr(self, name, function if awaits else self._awaited(function, loop))

    @staticmethod
    def _awaited(function: Callable[..., Any], loop: Loop) -> Callable[..., Any]:
        async def call(*args: Any) -> Any:
            inside = contextvars.copy_context()
            return await asyncio.get_running_loop().run_in_executor(loop.listeners, inside.run, function, *args)

        return call


def _differing(kind: Any, other: Any) -> dict[str, Any]:
    """Return the defaults of a synchronous client that differ from those of the asyncio one."""
    of_aio = other.DEFAULT_CONFIG
    return {name: value for name, value in kind.DEFAULT_CONFIG.items() if name in of_aio and of_aio[name] != value}


_OF_CLASSIC = {"session_timeout_ms", "partition_assignment_strategy"}


class _Client:
    """Calls of an asyncio client, one at a time, for the calling thread."""

    kind: Callable[..., Any]
    defaults: dict[str, Any]

    def __init__(self, *args: Any, environment: Any = None, **configs: Any) -> None:
        self._run = Loop()
        defaults = self.defaults
        if configs.get("group_protocol", "classic") != "classic":  # the options of the other protocol are refused
            defaults = {name: value for name, value in defaults.items() if name not in _OF_CLASSIC}
        self.client = self._run.run(lambda: self.kind(*args, **{**defaults, **configs}))
        self.client._environment = environment
        self._begin()

    def _begin(self) -> None:
        self._run.run(self.client.start)

    def __getattr__(self, name: str) -> Any:
        if name == "client":
            raise AttributeError(name)
        value = getattr(self.client, name)
        if not callable(value) or isinstance(value, type):
            return value

        def call(*args: Any, **options: Any) -> Any:
            return self._run.run(lambda: value(*args, **options))

        return call

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def close(self, *args: Any, **options: Any) -> None:
        """Close the client."""
        self._run.run(lambda: self.client.close(*args, **options))


class Outcome:
    """A future of asyncio, looked at from the thread of a test like one of the library's."""

    def __init__(self, future: Any, loop: Loop) -> None:
        self.future = future
        self._loop = loop

    @property
    def is_done(self) -> bool:
        """See `kafka.future.Future`, here and below."""
        return bool(self.future.done())

    @property
    def exception(self) -> Any:
        return self.future.exception() if self.is_done else None

    @property
    def value(self) -> Any:
        return self.future.result() if self.succeeded() else None

    def succeeded(self) -> bool:
        return self.is_done and self.future.exception() is None

    def failed(self) -> bool:
        return self.is_done and self.future.exception() is not None

    def add_callback(self, f: Callable[..., object], *args: object, **kwargs: object) -> Any:
        return self._when_done(lambda found: found.exception() or f(*args, found.result(), **kwargs))

    def add_errback(self, f: Callable[..., object], *args: object, **kwargs: object) -> Any:
        return self._when_done(lambda found: found.exception() and f(*args, found.exception(), **kwargs))

    def add_both(self, f: Callable[..., object], *args: object, **kwargs: object) -> Any:
        return self._when_done(lambda found: f(*args, found.exception() or found.result(), **kwargs))

    def _when_done(self, callback: Callable[[Any], object]) -> Any:
        self._loop.run(lambda: self.future.add_done_callback(callback))
        return self


class AIOConsumer(_Client):
    """`AIOKafkaConsumer`, called like a `KafkaConsumer`."""

    kind = AIOKafkaConsumer
    defaults = _differing(KafkaConsumer, AIOKafkaConsumer)

    def __init__(self, *topics: str, consumer_timeout_ms: float = float("inf"), **configs: Any) -> None:
        # The time that a listener may take is that of the application, as below the synchronous face.
        configs.setdefault("rebalance_timeout_ms", configs.get("max_poll_interval_ms", 300_000))
        self._timeout = None if consumer_timeout_ms == float("inf") else consumer_timeout_ms / 1000
        super().__init__(*topics, **configs)

    def subscribe(self, topics: Any = (), pattern: Any = None, listener: Any = None) -> None:
        """Subscribe; the listener is a synchronous one."""
        wrapped = None if listener is None else _Listener(listener, self._run)
        self._run.run(lambda: self.client.subscribe(topics, pattern, wrapped))

    def commit_async(self, *args: Any, **options: Any) -> Outcome:
        """Commit; the outcome is there later."""
        made: list[Any] = []
        self._run.run(lambda: made.append(self.client.commit_async(*args, **options)))
        return Outcome(made[0], self._run)

    def crash(self) -> None:
        """End without a word to the cluster."""

        async def end() -> None:
            core = self.client._core
            core.client.shut_down()
            await core.application.close(1.0)
            self.client._stopped()

        self._run.run(end)

    def subscription(self) -> Any:
        """Return the topics; None if there are none."""
        return self.client.subscription() or None

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        async def following() -> Any:
            return await asyncio.wait_for(self.client.__anext__(), self._timeout)

        try:
            return self._run.run(following)
        except (asyncio.TimeoutError, StopAsyncIteration):
            raise StopIteration from None


class AIOShareConsumer(_Client):
    """`AIOKafkaShareConsumer`, called like a `KafkaShareConsumer`."""

    kind = AIOKafkaShareConsumer
    defaults = _differing(KafkaShareConsumer, AIOKafkaShareConsumer)

    def wakeup(self) -> None:
        """End a call; from any thread, also while another one waits."""
        self.client.wakeup()

    def crash(self) -> None:
        """End without a word to the cluster."""

        async def end() -> None:
            core = self.client._core
            core.client.shut_down()
            await core.application.close(1.0)
            self.client._stopped()

        self._run.run(end)

    def __iter__(self) -> Iterator[Any]:
        self._run.run(self.client.__aiter__)
        return self

    def __next__(self) -> Any:
        try:
            return self._run.run(self.client.__anext__)
        except StopAsyncIteration:
            raise StopIteration from None


class Sent(Outcome):
    """The future of a record."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.future, name)

    def get(self, timeout: float | None = None) -> Any:
        """Await the outcome."""
        # A wait that ends early cancels what it awaits: another future of the same record.
        again = self.future._moved(*self.future.place)

        async def outcome() -> Any:
            return await again

        async def wait() -> Any:
            if timeout is None or again.done():
                return await outcome()
            return await asyncio.wait_for(outcome(), timeout)

        try:
            return self._loop.run(wait)
        except asyncio.TimeoutError as error:
            raise FutureRecordMetadata._not_yet(self.future.place[0], timeout) from error


class Refused:
    """The future of a record that `send()` has refused."""

    is_done = True
    value = None

    def __init__(self, error: BaseException) -> None:
        self.exception = error

    def get(self, timeout: float | None = None) -> Any:
        """Raise the error."""
        raise self.exception

    def succeeded(self) -> bool:
        """See `FutureRecordMetadata`."""
        return False

    def failed(self) -> bool:
        """See `FutureRecordMetadata`."""
        return True


class SentMany(Sequence[Any]):
    """The futures of many records."""

    def __init__(self, sent: Any, loop: Loop) -> None:
        self._sent = sent
        self._loop = loop

    def __len__(self) -> int:
        return len(self._sent)

    def __getitem__(self, at: Any) -> Any:
        found = self._sent[at]
        return [Sent(each, self._loop) for each in found] if isinstance(at, slice) else Sent(found, self._loop)

    def get(self, timeout: float | None = None) -> Any:
        """Await all outcomes."""

        async def outcomes() -> Any:
            return await self._sent

        async def wait() -> Any:
            return await asyncio.wait_for(outcomes(), timeout)

        try:
            return self._loop.run(wait)
        except asyncio.TimeoutError as error:
            raise KafkaTimeoutError("the records were not acknowledged") from error


class _Block:
    """An asynchronous context manager, entered and left from the thread of a test."""

    def __init__(self, block: Any, loop: Loop) -> None:
        self._block = block
        self._loop = loop

    def __enter__(self) -> Any:
        return self._loop.run(self._block.__aenter__)

    def __exit__(self, *exc: object) -> Any:
        return self._loop.run(lambda: self._block.__aexit__(*exc))


class AIOProducer(_Client):
    """`AIOKafkaProducer`, called like a `KafkaProducer`."""

    kind = AIOKafkaProducer
    _started = False
    defaults = _differing(KafkaProducer, AIOKafkaProducer)

    def _begin(self) -> None:
        if self.client.config["transactional_id"] is None:
            super()._begin()
            self._started = True

    def init_transactions(self) -> None:
        """Start the producer, if no other call has done it: that takes the transactional_id over."""
        self._run.run(self.client.init_transactions if self._started else self.client.start)
        self._started = True

    def __getattr__(self, name: str) -> Any:
        if not self._started:
            self.init_transactions()
        return super().__getattr__(name)

    def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        headers: Any = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
    ) -> Any:
        """Send a record; the arguments are in the order of `KafkaProducer.send`."""
        make = lambda: self.client.send(  # noqa: E731
            topic, value, key, headers=headers, partition=partition, timestamp_ms=timestamp_ms
        )
        try:
            return Sent(self._run.run(make), self._run)
        except (RecordTooLargeError, BrokerResponseError) as error:
            if isinstance(error, (KafkaTimeoutError, FatalError, UnsupportedVersionError)):
                raise
            return Refused(error)

    def send_many(self, topic: str, records: Any) -> SentMany:
        """Send records."""
        return SentMany(self._run.run(lambda: self.client.send_many(topic, records)), self._run)

    def transaction(self) -> Any:
        """Return the block of a transaction."""
        return _Block(self.client.transaction(), self._run)

    # What tests look at inside…

    @property
    def _core(self) -> Any:
        return self.client._calls.core

    @property
    def _accumulator(self) -> Any:
        return self.client._calls.accumulator


# Which faces a test runs on: for the conftest of a tier…


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of a module with ``FACES = "both"`` on both, unless they are marked `one_face`."""
    if getattr(metafunc.module, "FACES", "") == "both":
        one = metafunc.definition.get_closest_marker("one_face") is not None
        metafunc.parametrize("face", ["threads"] if one else ["threads", "asyncio"], indirect=True)


@pytest.fixture(autouse=True)
def face(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The face of the clients that a test makes as `KafkaConsumer` or `KafkaProducer`, itself or by a helper."""
    chosen: str = getattr(request, "param", "threads")
    if chosen == "asyncio":
        package = request.module.__package__ + "."
        for name, module in tuple(sys.modules.items()):
            if name.startswith(package):
                for kind, other in (
                    (KafkaConsumer, AIOConsumer),
                    (KafkaProducer, AIOProducer),
                    (KafkaShareConsumer, AIOShareConsumer),
                ):
                    if getattr(module, kind.__name__, None) is kind:
                        monkeypatch.setattr(module, kind.__name__, other)
    yield chosen
    while Loop.open:
        Loop.open.pop().close()
