"""Interceptors (KIP-42): code of the application, or of a tracing library, that observes or changes records.

The option ``interceptors`` takes a list of objects, or of classes, each with any of these methods; deriving from the
base classes is optional. `Interceptors` is the list as a client uses it.

An exception of an interceptor neither reaches the application nor stops a record: the client logs it, and the next
interceptor receives the record unchanged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

if TYPE_CHECKING:
    from kafka.structs import OffsetAndMetadata, TopicPartition

__all__ = ["ConsumerInterceptor", "Interceptors", "ProducerInterceptor", "ProducerRecord"]

log = logging.getLogger(__name__)

T = TypeVar("T")

_HOOKS: Final = ("on_send", "on_acknowledgement", "on_consume", "on_commit")


class ProducerRecord(NamedTuple):
    """The arguments of `send()`; ``record._replace(value=...)`` makes a changed one.

    >>> ProducerRecord("events", b"hello")._replace(headers=[("trace", b"1f")]).headers
    [('trace', b'1f')]
    """

    topic: str
    value: Any = None
    key: Any = None
    headers: Sequence[tuple[str, bytes | None]] | None = None
    partition: int | None = None
    timestamp_ms: int | None = None


class ProducerInterceptor:
    """Sees what a producer sends, and what became of it.

    >>> class Trace(ProducerInterceptor):
    ...     def on_send(self, record):
    ...         return record._replace(headers=[*(record.headers or ()), ("trace", b"1f")])
    """

    def configure(self, configs: Mapping[str, object]) -> None:
        """Receive the client's configuration; called once, first. The constructor raises its exception."""

    def on_send(self, record: ProducerRecord) -> ProducerRecord:
        """Return the record, or another in its place. Called in the thread of `send()`, before the serializers."""
        return record

    def on_acknowledgement(self, metadata: object, exception: BaseException | None) -> None:
        """Hear what became of a record: its `RecordMetadata`, and the exception if it was given up.

        The offset is -1 then. Called in the producer's thread, or in one that waits in `get()` or `flush()`, before the
        record's own callbacks: be brief.
        """

    def close(self) -> None:
        """Called once when the client is closed."""


class ConsumerInterceptor:
    """Sees what a consumer returns, and what it commits."""

    def configure(self, configs: Mapping[str, object]) -> None:
        """Receive the client's configuration; called once, first. The constructor raises its exception."""

    def on_consume(self, records: Mapping[TopicPartition, Sequence[object]]) -> Mapping[TopicPartition, Sequence[Any]]:
        """Return the records that `poll()` is to return. Called in the thread of `poll()`."""
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> None:
        """Observe a successful commit."""

    def close(self) -> None:
        """Called once when the client is closed."""


class Interceptors:
    """A client's interceptors, in their order.

    >>> class Upper(ProducerInterceptor):
    ...     def on_send(self, record):
    ...         return record._replace(value=record.value.upper())
    >>> Interceptors([Upper], {}).through("on_send", ProducerRecord("events", b"a")).value
    b'A'
    """

    def __init__(self, listed: Iterable[object], configs: Mapping[str, object]) -> None:
        self._all = [one() if isinstance(one, type) else one for one in listed]
        self._hooks = {name: [hook for one in self._all if (hook := _method(one, name))] for name in _HOOKS}
        for one in self._all:
            if configure := _method(one, "configure"):
                configure(dict(configs))

    def has(self, name: str) -> bool:
        """Whether any has such a method, apart from the ones inherited from a base above, which do nothing."""
        return bool(self._hooks[name])

    def through(self, name: str, thing: T) -> T:
        """Let each see a thing, and change it for the next."""
        for hook in self._hooks[name]:
            try:
                changed = hook(thing)
            except Exception:
                log.exception("The interceptor %r failed", hook)
                continue
            if isinstance(thing, dict) and isinstance(changed, Mapping):
                thing = cast("T", changed if isinstance(changed, dict) else dict(changed))
            elif isinstance(changed, type(thing)):
                thing = changed
            else:
                expected = "mapping" if isinstance(thing, dict) else type(thing).__name__
                log.error("The interceptor %r returned %r, which is not a %s", hook, changed, expected)
        return thing

    def tell(self, name: str, *facts: object) -> None:
        """Call the named method of each interceptor."""
        for hook in self._hooks[name]:
            try:
                hook(*facts)
            except Exception:  # noqa: PERF203 - each for itself
                log.exception("The interceptor %r failed", hook)

    def close(self) -> None:
        """Let each free what it has."""
        for one in self._all:
            if close := _method(one, "close"):
                try:
                    close()
                except Exception:
                    log.exception("The interceptor %r could not be closed", one)


def _method(thing: object, name: str) -> Callable[..., object] | None:
    method = getattr(thing, name, None)
    if getattr(method, "__func__", None) in _INHERITED:
        return None
    return method if callable(method) else None


_INHERITED: Final = {
    function
    for base in (ProducerInterceptor, ConsumerInterceptor)
    for function in vars(base).values()
    if callable(function)
}
