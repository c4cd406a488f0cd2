"""The world of an asyncio client: blocking work without a thread of the client's.

Name look-ups run in the event loop's executor, and so does a provider of tokens or credentials that blocks. A provider
whose ``token()`` is a coroutine function is awaited in a task of the event loop; all else runs in the loop itself.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from inspect import iscoroutinefunction
from ipaddress import ip_address
from typing import Any, TypeVar

from kafka._runtime.workers import InlineWorkers
from kafka.config import Config
from kafka.future import Future
from kafka.net.environment import Environment

__all__ = ["AioEnvironment", "AwaitedTokens", "with_awaited_tokens"]

T = TypeVar("T")


class _Executor:
    """The executor of the event loop."""

    def __init__(self, aio: asyncio.AbstractEventLoop) -> None:
        self._aio = aio

    def submit(self, function: Callable[..., T], *args: object) -> Future[T]:
        future: Future[T] = Future()

        def done(outcome: asyncio.Future[T]) -> None:
            if outcome.cancelled():  # the event loop ends
                future.try_failure(RuntimeError("the event loop was closed"))
            elif (error := outcome.exception()) is not None:
                future.try_failure(error)
            else:
                future.try_success(outcome.result())

        try:
            self._aio.run_in_executor(None, function, *args).add_done_callback(done)
        except RuntimeError as error:  # the event loop or its executor is shut down
            future.try_failure(error)
        return future


class _Names(_Executor):
    """Look-ups of names. An address needs none, and is taken apart in the event loop."""

    def submit(self, function: Callable[..., T], *args: object) -> Future[T]:
        if _is_address(args[0]):
            return InlineWorkers().submit(function, *args)
        return super().submit(function, *args)


def _is_address(host: object) -> bool:
    try:
        ip_address(str(host).partition("%")[0])
    except ValueError:
        return False
    return True


class AwaitedTokens:
    """A provider of tokens for the handshake, in front of one whose ``token()`` is a coroutine function."""

    def __init__(self, provider: Any) -> None:
        self.provider = provider
        self.current = ""

    def token(self) -> str:
        """Return the token that was awaited last."""
        return self.current

    def extensions(self) -> dict[str, str]:
        """Return what the provider sends beside it."""
        ask = getattr(self.provider, "extensions", None)
        return dict(ask() or {}) if callable(ask) else {}


class _Tokens:
    """Awaits a token in a task of the event loop before a step of the handshake that uses it."""

    def __init__(self, aio: asyncio.AbstractEventLoop, tokens: AwaitedTokens) -> None:
        self._aio = aio
        self._tokens = tokens
        self._context = contextvars.copy_context()  # that of start()
        self._tasks: set[asyncio.Task[None]] = set()

    def submit(self, function: Callable[..., T], *args: object) -> Future[T]:
        future: Future[T] = Future()

        async def step() -> None:
            try:
                if function.__name__ == "auth_bytes":  # not to take the broker's answer
                    self._tokens.current = await self._tokens.provider.token()
                result = function(*args)
            except asyncio.CancelledError:
                future.try_failure(RuntimeError("the event loop was closed"))
                raise
            except Exception as error:
                future.try_failure(error)
            else:
                future.try_success(result)

        task = self._context.run(self._aio.create_task, step())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return future

    def cancel(self) -> None:
        """End what is awaited."""
        for task in tuple(self._tasks):
            task.cancel()


def with_awaited_tokens(options: dict[str, Any]) -> dict[str, Any]:
    """Return options in which a provider of tokens that must be awaited stands behind an `AwaitedTokens`."""
    provider = options.get("sasl_oauth_token_provider")
    if provider is None or not iscoroutinefunction(getattr(provider, "token", None)):
        return options
    return {**options, "sasl_oauth_token_provider": AwaitedTokens(provider)}


class AioEnvironment(Environment):
    """The world of a client with a configuration, on the running event loop."""

    def __init__(self, config: Config) -> None:
        aio = asyncio.get_running_loop()
        super().__init__(workers=_Executor(aio))  # of tokens and of codecs
        self.lookup_workers = _Names(aio)
        provider = config["sasl_oauth_token_provider"]
        self._tokens: _Tokens | None = None
        if isinstance(provider, AwaitedTokens):
            self.workers = self._tokens = _Tokens(aio, provider)
        elif str(config["sasl_mechanism"]).startswith("SCRAM-"):
            self.workers = InlineWorkers()  # hashing a password takes milliseconds

    def close(self) -> None:
        """End what is awaited for a handshake."""
        if self._tokens is not None:
            self._tokens.cancel()
