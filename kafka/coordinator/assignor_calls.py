"""Calling a consumer's assignors where they belong: ours on the loop, the application's own in its thread.

An assignor of the application may take locks, ask a database or just take long; and what it keeps is used by
its other code. So it is called from within poll(), as everything else of the application's is. It may take as long as
max_poll_interval_ms: heartbeats go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from kafka.coordinator.assignors import comes_with_us
from kafka.coordinator.callbacks import CallKind, RebalanceCall, Rendezvous
from kafka.errors import KafkaError, RejoinNeededError

__all__ = ["AssignorCalls"]

T = TypeVar("T")


class AssignorCalls:
    """The assignors of one consumer, as its coordinator calls them."""

    def __init__(self, assignors: Sequence[Any], rendezvous: Rendezvous) -> None:
        self._assignors = assignors
        self._rendezvous = rendezvous

    def named(self, name: str) -> Any:
        """Return the assignor that the group chose."""
        for assignor in self._assignors:
            if assignor.name == name:
                return assignor
        raise KafkaError(f"the group chose the assignor {name!r}, which this member did not offer")

    async def ask(self, assignor: Any, action: Callable[[], T]) -> T:
        """Do something with one assignor. Whatever it raises comes out as a KafkaError that names it."""
        return await self._do(action, [assignor])

    async def ask_all(self, action: Callable[[], T]) -> T:
        """Do something with all of them."""
        return await self._do(action, self._assignors)

    async def tell(self, assignor: Any, assignment: Any, generation: int) -> None:
        """Tell an assignor what this member got; both methods may be missing."""
        hears = [getattr(assignor, name, None) for name in ("on_assignment", "on_generation_assignment")]
        facts = (assignment, generation)

        def action() -> None:
            for method, fact in zip(hears, facts, strict=True):
                if method is not None:
                    method(fact)

        if any(hears):
            await self.ask(assignor, action)

    async def _do(self, action: Callable[[], T], assignors: Sequence[Any]) -> T:
        names = ", ".join(repr(assignor.name) for assignor in assignors if not comes_with_us(assignor))
        if not names:
            return action()
        results: list[T] = []
        errors: list[Exception] = []

        def run() -> None:
            try:
                results.append(action())
            except Exception as error:  # told in poll(), and the member stops, as with any error that does not pass
                errors.append(error)

        await self._rendezvous.ask(RebalanceCall(CallKind.ASSIGNOR, (), run))
        if errors:
            error = errors[0]
            raise (
                error if isinstance(error, KafkaError) else KafkaError(f"the assignor {names} failed: {error!r}")
            ) from error
        if not results:
            raise RejoinNeededError("the application unsubscribed before its assignor was asked")
        return results[0]
