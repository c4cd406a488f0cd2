"""The life of a client of `kafka.aio`: made anywhere, bound to an event loop by `start()`, ended by `stop()`.

A client that is made holds nothing. `start()` opens the core of the client, and a driver that turns the core's loop on
the running event loop; from then on the client belongs to that event loop. A start that fails or is cancelled frees
everything, and may be tried again. `stop()` ends the client in a task that the caller only waits for, so that closing
continues when the caller is cancelled; it is bounded in time. All that is freed is freed without waiting (`_free`).

A subclass brings `_open` (make the core), `_begin` (find the cluster), `_finish` (what takes time at the end) and
`_release` (fail what is under way).
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
import traceback
import warnings
from collections.abc import Callable
from enum import Enum
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Final, NoReturn

# The modules of a first connection are loaded here: loaded in a pass they would hold the event loop for 40 ms.
import kafka._core.metrics
import kafka.net.connection_setup
import kafka.protocol.admin
import kafka.protocol.codec.compiler
import kafka.protocol.commit
import kafka.protocol.metadata  # noqa: F401
from kafka._runtime.asyncio_driver import AsyncioDriver, ThreadedAsyncioDriver, asyncio_driver
from kafka.aio.environment import AioEnvironment
from kafka.errors import ClientClosedError, IllegalStateError, KafkaError
from kafka.producer.arguments import checked_timeout

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka._runtime.loop import Loop
    from kafka.config import Config
    from kafka.net.environment import Environment

__all__ = ["STOP_TIMEOUT", "Lifecycle", "Phase"]

log = logging.getLogger(__name__)

#: How long `stop()` may take unless the caller says otherwise, in seconds.
STOP_TIMEOUT: Final = 10.0
# How long a start() that is cancelled or fails waits until it is undone, in seconds.
_MOMENT: Final = 0.3
# How long after its time a stop() is ended that user code holds up, in seconds.
_GRACE: Final = 0.5


class Phase(Enum):
    """How far a client has come."""

    NEW = "not started"
    STARTING = "starting"
    STARTED = "started"
    STOPPING = "stopping"
    STOPPED = "stopped"


class Lifecycle:
    """See the head of this file."""

    _kind: ClassVar[str] = "client"
    """The name of an unclosed one in the context of the event loop's exception handler."""
    _stopped_error: ClassVar[type[Exception]] = ClientClosedError
    _stop_timeout: ClassVar[float] = STOP_TIMEOUT
    """What calls raise after `stop()`."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self._phase = Phase.NEW
        self._wanted_aio = loop
        self._aio: asyncio.AbstractEventLoop | None = None
        # Hot calls compare the thread and ask whether the loop runs, which together say that it is the running one:
        # up to Python 3.11 get_running_loop() makes a system call (0.4 µs, November 2026).
        self._thread = -1
        self._aio_runs: Callable[[], bool]
        self._loop: Loop | None = None
        self._driver: AsyncioDriver | ThreadedAsyncioDriver | None = None
        self._application: AsyncioDriver | ThreadedAsyncioDriver
        self._ended: asyncio.Future[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._limits: list[asyncio.TimerHandle] = []
        self._abandoning: asyncio.Task[None] | None = None
        self._stops = 0
        self._freed = False
        self._environment: Environment | None = None
        self._environment_is_ours = False
        self._source_traceback: traceback.StackSummary | None = None
        if loop is not None:
            warnings.warn(
                f"{type(self).__name__}(loop=...) is deprecated: the client belongs to the event loop that start() "
                "runs on",
                DeprecationWarning,
                stacklevel=3,
            )

    def _world(self, config: Config) -> Environment:
        """Return the environment for the core: a test's, if it has set one, or the running event loop's."""
        if self._environment is None or self._environment_is_ours:
            self._environment, self._environment_is_ours = AioEnvironment(config), True
        return self._environment

    # For subclasses to implement…

    def _open(self) -> Loop:
        """Make the core of the client, and return its loop."""
        raise NotImplementedError

    async def _begin(self) -> None:
        """Bring the client to where it can be used."""
        raise NotImplementedError

    async def _give_up(self, seconds: float) -> None:
        """Undo at the cluster what a `_begin` that fails has done there, within a time."""

    async def _finish(self, deadline: float) -> None:
        """Do what takes time at the end, by the deadline as the loop counts."""

    def _release(self) -> None:
        """Fail what is under way. Called once, before the loop is closed; without waiting."""

    # Starting…

    async def start(self) -> None:  # noqa: C901 - one after the other
        """Connect to the cluster; the client belongs to the running event loop from now on.

        When it raises, or is cancelled, everything is freed, and it may be called again. A consumer leaves its group
        before; a task continues with that, for `STOP_TIMEOUT` at most, where the coordinator does not answer at once.
        """
        if self._abandoning is not None:
            await self._wait_for_abandoned_start()
        if self._phase is not Phase.NEW:
            self._refuse_start()
        aio = asyncio.get_running_loop()
        if self._wanted_aio is not None and self._wanted_aio is not aio:
            raise IllegalStateError(
                f"{self!r} was made for another event loop (loop=...): start it there, or leave loop out"
            )
        self._phase, self._freed = Phase.STARTING, False
        self._aio, self._loop, self._driver = aio, None, None
        self._thread, self._aio_runs = threading.get_ident(), aio.is_running
        if aio.get_debug():
            self._source_traceback = traceback.extract_stack(sys._getframe(1))  # noqa: SLF001 - as asyncio does it
        try:
            self._loop = self._open()
            self._driver = self._application = asyncio_driver(self._loop)
            await self._begin()
        except BaseException as error:
            if self._phase is Phase.STARTING:
                try:
                    if isinstance(error, (Exception, asyncio.CancelledError)):  # else nothing can be awaited any more
                        self._abandon(STOP_TIMEOUT)
                        await self._abandoned(_MOMENT)
                    else:
                        self._free()
                finally:
                    if self._phase is Phase.STARTING:  # else it was stopped meanwhile
                        self._phase = Phase.NEW
                raise
            if not isinstance(error, KafkaError):
                raise
        if self._phase is not Phase.STARTING:
            raise self._stopped_error(f"{self!r} was stopped while it was starting")
        self._phase = Phase.STARTED

    def _abandon(self, seconds: float) -> None:
        """End a start that does not succeed, in a task: the members of a group would wait for the end of a session."""

        async def abandon() -> None:
            try:
                await self._give_up(seconds)
            except Exception:
                log.exception("%r could not undo its start", self)
            finally:
                self._free()

        assert self._aio is not None
        self._abandoning = self._aio.create_task(abandon(), name=f"undo the start of {self!r}")

    async def _wait_for_abandoned_start(self) -> None:
        stops = self._stops
        await self._abandoned()
        if self._stops != stops:
            raise self._stopped_error(f"{self!r} was stopped while it was starting")

    async def _abandoned(self, timeout: float | None = None) -> None:
        """Wait until an earlier start is undone, `timeout` seconds at most."""
        task = self._abandoning
        if task is not None and task.get_loop() is asyncio.get_running_loop():
            await asyncio.wait({task}, timeout=timeout)
        if task is not None and (task.done() or task.get_loop().is_closed()):
            self._abandoning = None

    def _refuse_start(self) -> NoReturn:
        if self._phase in {Phase.STOPPING, Phase.STOPPED}:
            raise self._stopped_error(f"{self!r} was stopped and cannot be started again: make a new one")
        raise IllegalStateError(f"start() was called twice: {self!r}")

    # Using…

    def _check_usable(self) -> None:
        """Raise unless the client is started, and the caller runs on its event loop."""
        if self._phase is not Phase.STARTED:
            self._refuse()
        try:
            if asyncio.get_running_loop() is self._aio:
                return
        except RuntimeError:
            pass
        self._refuse()

    def _refuse(self) -> NoReturn:
        """Raise what says why the client cannot be used, or not here."""
        name = type(self).__name__
        if self._loop is not None and self._loop.forked:
            self._loop.check_usable()
        if self._phase in {Phase.STOPPING, Phase.STOPPED}:
            raise self._stopped_error(f"This {name} was stopped")
        if self._phase is Phase.STARTING:
            raise IllegalStateError(f"This {name} is starting: use it when its start() has returned")
        if self._phase is not Phase.STARTED:
            raise IllegalStateError(
                f"This {name} is {self._phase.value}: call `await client.start()` first, or use `async with`"
            )
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            raise IllegalStateError(
                f"This {name} belongs to the event loop that started it, and was used in thread "
                f"{threading.current_thread().name!r}, outside of a task: call "
                "asyncio.run_coroutine_threadsafe(client.method(), loop) there"
            ) from None
        raise IllegalStateError(
            f"This {name} belongs to the event loop that started it, and was used on another one: make a client for "
            "each event loop"
        )

    @property
    def closed(self) -> bool:
        """Whether the client was stopped."""
        return self._phase in {Phase.STOPPING, Phase.STOPPED}

    def _deadline(self, seconds: float) -> float:
        """Return the time of the client's loop in this number of seconds."""
        assert self._loop is not None
        return self._loop.time() + seconds

    # Stopping…

    async def stop(self, timeout: float | None = None) -> None:
        """End the client within about `timeout` seconds, also while brokers are down. Idempotent.

        By default it takes 10 seconds at most; a producer ends when 30 have passed without an acknowledgement. Closing
        continues when the caller is cancelled; a second call waits for its end, and ends it after its own `timeout`.
        """
        seconds = self._stop_seconds(timeout)
        self._stops += 1
        if self._phase in {Phase.NEW, Phase.STOPPED}:
            await self._abandoned(seconds)
            return
        aio = self._aio
        assert aio is not None
        if aio.is_closed():
            self._free()
            self._phase = Phase.STOPPED
            return
        self._check_own_loop()
        if self._phase is Phase.STARTING:  # the wait of start() ends with an error
            self._phase = Phase.STOPPED
            self._abandon(seconds)
            await self._abandoned(seconds)
            return
        if self._phase is Phase.STARTED:
            self._phase = Phase.STOPPING
            self._ended = aio.create_future()
            self._closing = aio.create_task(self._close(seconds), name=f"stop {self!r}")
        elif self._ended is None or asyncio.current_task() is self._closing:
            return  # a listener that is called at the end calls stop(): it must not wait for itself
        elif timeout is not None:
            self._close_within(seconds)
        assert self._ended is not None
        await asyncio.shield(self._ended)

    def _stop_seconds(self, timeout: float | None) -> float:
        seconds = checked_timeout(timeout, "stop()")
        return self._stop_timeout if seconds is None else max(0.0, seconds)

    def _check_own_loop(self) -> None:
        if self._loop is not None and self._loop.forked:
            self._loop.check_usable()
        if asyncio.get_running_loop() is not self._aio:
            raise IllegalStateError(
                f"This {type(self).__name__} belongs to the event loop that started it: stop it there"
            )

    async def _close(self, seconds: float) -> None:
        self._close_within(seconds)
        try:
            await self._finish(self._deadline(seconds))
        except KafkaError as error:
            log.warning("%r could not end what was under way: %s", self, error)
        except Exception:
            log.exception("%r could not end what was under way", self)
        finally:
            self._stopped()

    def _close_within(self, seconds: float) -> None:
        """End closing after a time: user code that it calls may take long, and may ignore that it is cancelled."""
        assert self._aio is not None
        assert self._closing is not None
        self._limits += [
            self._aio.call_later(seconds + _GRACE, self._closing.cancel),
            self._aio.call_later(seconds + 2 * _GRACE, self._stopped),
        ]

    def _stopped(self) -> None:
        if self._phase is Phase.STOPPED:
            return
        for limit in self._limits:
            limit.cancel()
        self._free()
        self._phase = Phase.STOPPED
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)

    def _free(self) -> None:
        """Free everything now: no socket, timer or task is left."""
        loop, driver = self._loop, self._driver
        if loop is None or self._freed:
            return
        self._freed = True
        try:
            self._release()
            if isinstance(self._environment, AioEnvironment):
                self._environment.close()
        finally:
            if driver is not None:
                driver.abort()
            else:
                loop.close(0.0)
            self._released()

    def _released(self) -> None:
        """Close what the application has passed in; after the loop."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        await self.stop()

    def __del__(self) -> None:
        # Any thread may run this, in the middle of anything: the event loop frees the rest.
        aio, loop = getattr(self, "_aio", None), getattr(self, "_loop", None)
        if aio is None or loop is None or self._phase is not Phase.STARTED or sys.is_finalizing() or loop.forked:
            return
        text = f"Unclosed {type(self).__name__}"
        # Before the warning, which may be an error: the frame of that would keep the client.
        context: dict[str, Any] = {"message": text, self._kind: self}
        if self._source_traceback is not None:
            context["source_traceback"] = self._source_traceback
        if aio.is_closed():
            self._free()
        else:
            free = self._free
            try:
                aio.call_soon_threadsafe(free)
            except RuntimeError:  # closed this moment
                free()
            aio.call_exception_handler(context)
        warnings.warn(f"{text} {self!r}: call its stop(), or use it in `async with`", ResourceWarning, 2, self)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._phase.value}>"
