"""The base of the calls of both faces: a deadline, and the application that waits.

A class of calls (`Topics`, `Groups`) has application-side coroutines with the parameters that users know. Such a call
checks its arguments in the caller's thread or task, then has `Calls._run` run a coroutine on the client's loop, which
gets the deadline as its first argument. `kafka.aio.AIOKafkaAdminClient` inherits the calls; `KafkaAdminClient` has for
each of them a method that `kafka._runtime.application.blocking` makes, with the same parameters and types.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from kafka._arguments import check_time
from kafka.errors import ClientClosedError

if TYPE_CHECKING:
    from kafka._runtime.application import Application
    from kafka.admin.core import AdminCore

__all__ = ["Calls"]

P = ParamSpec("P")
T = TypeVar("T")

# How long a call may take to end by its own error after its deadline, in seconds; that error says more.
_GRACE: Final = 1.0


class Calls:
    """The base of the classes that have the calls about one of Kafka's nouns."""

    _core: AdminCore
    _application: Application

    def _check_usable(self) -> None:
        if self._core.loop.closed:
            raise ClientClosedError("This admin client is closed.")

    async def _run(
        self,
        timeout_ms: float | None,
        call: Callable[Concatenate[float, P], Coroutine[Any, Any, T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Run a coroutine on the client's loop, with the deadline as its first argument."""
        self._check_usable()
        if timeout_ms is not None:
            check_time("timeout_ms", timeout_ms)
        core = self._core
        deadline = core.deadline(timeout_ms)
        name = getattr(call, "__name__", "the call").strip("_")
        series, began = core.client.series, core.loop.time()
        result = "ok"
        try:
            return await self._application.run(call(deadline, *args, **kwargs), deadline + _GRACE, f"{name}()")
        except BaseException as error:
            result = type(error).__name__
            raise
        finally:
            if series is not None:
                series.count("kafka_admin_calls_total", (name, result))
                series.count("kafka_admin_call_seconds_total", (name, result), core.loop.time() - began)
