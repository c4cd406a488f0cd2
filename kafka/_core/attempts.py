"""Trying again by a deadline: the one loop for calls that a moved leader, controller or coordinator may refuse.

::

    async for attempt in client.attempts(deadline, "create_topics()"):
        with attempt:
            response = await client.request(request, deadline=attempt.deadline)
            attempt.check(response.error_code)

The loop ends with the first attempt that raises nothing. A retriable error is tried again after the backoff of
``retry_backoff_ms``, with fresh metadata where the error asks for that; any other error, and the last one before the
deadline, is raised.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection
from types import TracebackType
from typing import TYPE_CHECKING, Final, Protocol

from kafka.errors import (
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    NodeNotReadyError,
    RequestTimedOutError,
    for_code,
)

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka._runtime.loop import Loop
    from kafka._runtime.timers import Backoff
    from kafka.net.settings import ConnectionSettings

__all__ = ["Attempts", "is_not_sent", "is_retriable", "pause_after"]

log: Final = logging.getLogger("kafka.client")


def pause_after(error: KafkaError, failures: int, backoff: Backoff) -> float:
    """Return the seconds until another attempt. A connection that fails has its own backoff, which is enough.

    >>> from random import Random
    >>> from kafka._runtime.timers import Backoff
    >>> backoff = Backoff(0.1, 100.0, Random(1))
    >>> pause_after(KafkaConnectionError("refused"), 9, backoff) < 1 < pause_after(KafkaTimeoutError(), 9, backoff)
    True
    """
    # Both backoffs together took up to twice retry_backoff_max_ms after a coordinator was back.
    return backoff.delay(1 if isinstance(error, (KafkaConnectionError, NodeNotReadyError)) else failures)


def is_retriable(error: KafkaError) -> bool:
    """Whether another attempt may succeed."""
    return error.retriable


def is_not_sent(error: KafkaError) -> bool:
    """Whether the request of an attempt was not sent, so that sending it elsewhere sends it once."""
    return isinstance(error, (NodeNotReadyError, KafkaTimeoutError)) and error.retriable


class AttemptClient(Protocol):
    """The part of a client that attempts need."""

    loop: Loop
    settings: ConnectionSettings

    @property
    def backoff(self) -> Backoff:
        """The delays between attempts."""
        ...

    async def refresh(self, deadline: float, topics: Collection[str] = ()) -> None:
        """Ask for metadata, of some topics or of all."""
        ...


class Attempts:
    """An asynchronous iterator over the attempts of one call, and the context of the present attempt."""

    __slots__ = ("_client", "_delay", "_error", "_has_answers", "_may_retry", "_what", "failures", "limit", "topics")

    def __init__(
        self,
        client: AttemptClient,
        deadline: float,
        what: str,
        *,
        may_retry: Callable[[KafkaError], bool] = is_retriable,
    ) -> None:
        self._client = client
        self._what = what
        self._may_retry = may_retry
        self._error: KafkaError | None = None
        self._delay = 0.0
        self._has_answers = False
        self.limit: Final = deadline
        """The deadline of the call."""
        self.topics: Collection[str] = ()
        """The topics that an attempt needs metadata of; empty for all that the client wants."""
        self.failures = -1
        """How many attempts have failed; -1 before the first one."""

    @property
    def deadline(self) -> float:
        """The deadline of the present attempt: request_timeout_ms from now, at most that of the call."""
        return min(self.limit, self._client.loop.time() + self._client.settings.request_timeout)

    def check(self, code: int, message: str | None = None) -> None:
        """Raise the error of a code in a response."""
        if code:
            raise for_code(code)(message or f"the answer to {self._what}")

    def may_retry(self, error: BaseException) -> bool:
        """Return whether an error is one to try again after, and time is left for that."""
        if not isinstance(error, KafkaError) or not self._may_retry(error):
            return False
        self._delay = pause_after(error, max(self.failures, 0) + 1, self._client.backoff)
        return self._client.loop.time() + self._delay < self.limit

    def again(self, error: BaseException | None) -> bool:
        """Have another attempt follow because of an error that part of a response has; whether there will be one.

        The iteration ends without an error if no metadata comes for that attempt: the caller has the other parts.
        """
        if not isinstance(error, KafkaError) or not self.may_retry(error):
            return False
        self._error, self._has_answers = error, True
        return True

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Self:
        error, self._error = self._error, None
        if error is not None:
            log.debug("%s: attempt %d failed, trying again: %s", self._what, self.failures + 1, error)
            if not await self._recover(error):
                raise StopAsyncIteration
        elif self.failures >= 0:
            raise StopAsyncIteration
        self.failures += 1
        return self

    async def _recover(self, error: KafkaError) -> bool:
        """Wait, and refresh the metadata if need be; whether to try again."""
        await self._client.loop.sleep(self._delay)
        if error.invalid_metadata:
            try:
                await self._client.refresh(self.deadline, self.topics)
            except KafkaError as failed:
                if self.may_retry(failed):
                    return True
                if self._has_answers:
                    return False
                if isinstance(failed, KafkaTimeoutError):  # that no metadata came says less than the attempt's error
                    raise KafkaTimeoutError(f"{self._what} took too long: {error}") from error
                raise
        return True

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, error: BaseException | None, _trace: TracebackType | None
    ) -> bool:
        if isinstance(error, KafkaError) and self.may_retry(error):
            self._error, self._has_answers = error, False
            return True
        # The time left is shorter than the backoff. Where no sent request is retried, the error says enough.
        if isinstance(error, RequestTimedOutError) and self._may_retry is not is_not_sent:
            raise KafkaTimeoutError(f"{self._what} took too long: {error}") from error
        return False
