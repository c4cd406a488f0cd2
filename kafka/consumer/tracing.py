"""The spans of a consumer's calls, where a program has set a tracer (`kafka._hooks`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from kafka.consumer.partition_state import Chunk
from kafka.errors import ClientClosedError, KafkaError, WakeupError

if TYPE_CHECKING:
    from kafka._hooks import ConsumerTracer
    from kafka._runtime.tasks import Coro

__all__ = ["processed_records", "traced_poll"]

T = TypeVar("T")

# The caller has ended the call; nothing has failed.
_ENDED = (WakeupError, ClientClosedError)


async def traced_poll(
    poll: Callable[..., Coro[T]],
    tracer: ConsumerTracer,
    take: Callable[..., T | None],
    limit: int,
    deadline: float,
    nothing: T,
    only: Any = None,
) -> T:
    """Call the core's `poll`; tell the tracer what it has taken, or that it has failed."""
    began = tracer.now()
    seen: object = None

    def traced_take(limit: int, only: Any) -> T | None:
        # Where Ctrl-C comes, here too, the core takes the records back.
        nonlocal seen
        found = take(limit, only)
        if isinstance(found, Chunk):
            if found.is_traced:  # another task has taken it meanwhile
                return found
            found.is_traced = True
            tracer.received(began, {found.state.topic_partition: found.records})
        elif isinstance(found, Mapping) and found:
            tracer.received(began, found)
        return found

    try:
        return await poll(traced_take, limit, deadline, nothing, only)
    except _ENDED:
        raise
    except KafkaError as error:
        tracer.failed(began, error)
        raise


def processed_records(take: Callable[[], T], tracer: ConsumerTracer) -> Iterator[T]:
    """Yield the records that `take` returns; each is being processed while the body of the loop runs.

    A loop that ends early lets go of this generator, which ends the last span.
    """
    while True:
        try:
            record = take()
        except StopIteration:
            return
        with tracer.processing(record):
            yield record
