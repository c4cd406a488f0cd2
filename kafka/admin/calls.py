"""The base of the calls of both faces: a deadline, and the application that waits.

A class of calls (`Topics`, `Groups`) has a coroutine for each call, with the parameters that users know. `call` makes
it an application-side coroutine: it runs on the client's loop while the caller's thread or task waits. Generators among
the arguments are code of the caller, and are read there. `kafka.aio.AIOKafkaAdminClient` inherits the calls;
`KafkaAdminClient` has for each of them a method that `kafka._runtime.network_thread.blocking` makes, with the same
parameters and types.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Coroutine, Iterator
from functools import wraps
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from kafka._arguments import check_time
from kafka.admin.core import Deadline
from kafka.errors import ClientClosedError

if TYPE_CHECKING:
    from kafka._runtime.application import Application
    from kafka.admin.core import AdminCore

C = TypeVar("C", bound="Calls")
P = ParamSpec("P")
T = TypeVar("T")

# How long a call may take to end by its own error after its deadline, in seconds; that error says more.
_GRACE: Final = 1.0


class Calls:
    """The base of the classes that have the calls about one of Kafka's nouns."""

    _core: AdminCore
    _application: Application

    def _check_usable(self) -> None:
        """Raise if the client is closed; the asyncio face looks whether it is started, and at the event loop, too."""
        loop = self._core.loop
        if loop.forked:
            loop.check_usable()
        if loop.closed:
            raise ClientClosedError("This admin client is closed.")


def call(
    method: Callable[Concatenate[C, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[C, P], Coroutine[Any, Any, T]]:
    """Return the call that runs a coroutine, which has a parameter `timeout_ms`, on the client's loop by its deadline.

    A call that another call makes gets that one's `Deadline` for its timeout, and runs where it is. For a parameter
    without a default None is refused.
    """
    name = method.__name__
    parameters = list(inspect.signature(method).parameters.values())[1:]
    place = [parameter.name for parameter in parameters].index("timeout_ms")
    required = [parameter for parameter in parameters if parameter.default is parameter.empty]

    @wraps(method)
    async def run(self: C, /, *args: P.args, **kwargs: P.kwargs) -> T:
        timeout_ms: Any = args[place] if len(args) > place else kwargs.get("timeout_ms")
        if isinstance(timeout_ms, Deadline):
            return await method(self, *args, **kwargs)
        self._check_usable()
        core = self._core
        if timeout_ms is not None:
            check_time("timeout_ms", timeout_ms)
        for at, parameter in enumerate(required):
            if (args[at] if len(args) > at else kwargs.get(parameter.name, "missing")) is None:
                raise TypeError(f"{name}(): {parameter.name} must be {parameter.annotation}, not None")
        given: Any = [list(one) if isinstance(one, Iterator) else one for one in args]
        named: Any = {key: list(one) if isinstance(one, Iterator) else one for key, one in kwargs.items()}
        series, began, result = core.client.series, core.loop.time(), "ok"
        deadline = core.deadline(timeout_ms) + _GRACE
        try:
            return await self._application.run(method(self, *given, **named), deadline, f"{name}()")
        except BaseException as error:
            result = type(error).__name__
            raise
        finally:
            if series is not None:
                series.count("kafka_admin_calls_total", (name, result))
                series.count("kafka_admin_call_seconds_total", (name, result), core.loop.time() - began)

    return run
