"""What observes the clients of this process: the series of their metrics, and a tracer if a program has set one.

A client looks here when it is made, and never again: without a tracer nothing is slower. The module is at the bottom of
the layers and imports nothing of the library. In the child of a fork both are forgotten: the clients are the parent's.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sized
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias
from weakref import WeakSet

if TYPE_CHECKING:
    from kafka.metrics.series import Series
    from kafka.structs import TopicPartition

__all__ = [
    "CallSpan",
    "ClientFacts",
    "ConsumerTracer",
    "HeaderPairs",
    "ProducerTracer",
    "SendSpan",
    "Tracer",
    "add",
    "discard",
    "living",
    "tracer",
]


HeaderPairs: TypeAlias = "list[tuple[str, bytes]]"


class SendSpan(Protocol):
    """The span of one call that sends records, until they are settled. No method raises."""

    def succeeded(self, metadata: Any = None) -> object:
        """End it: the records are written, a single one at the place that `metadata` says."""

    def failed(self, error: BaseException) -> object:
        """End it: records were refused, or given up."""


class CallSpan(AbstractContextManager[None], Protocol):
    """The span of a block, or of a commit that the caller does not wait for. It raises nothing itself."""

    def ended(self, error: BaseException | None = None) -> object:
        """End it: offsets are committed, or they failed."""


class ProducerTracer(Protocol):
    """The tracer of the records of one producer. No method raises, apart from errors within `settling`."""

    def send(
        self, topic: str, key: object, value: object, headers: Any, partition: int | None, with_headers: bool
    ) -> tuple[SendSpan | None, Any]:
        """Begin the span of a record; return it, and the headers to send. Without `with_headers` none may be added."""

    def send_many(self, topic: str, count: int, with_headers: bool) -> tuple[SendSpan | None, HeaderPairs]:
        """Begin the span of many records; return it, and the headers that each of them gets."""

    def settled(self, topic: str, count: int, seconds: float, error: BaseException | None) -> None:
        """Note a batch that was acknowledged, or given up, this long after it was opened. On the network thread."""

    def settling(self, operation: str) -> CallSpan:
        """Begin the span of a block in which offsets are committed."""


class ConsumerTracer(Protocol):
    """The tracer of the calls of one consumer. No method raises, apart from errors within the blocks."""

    def now(self) -> int:
        """Return the time, for `received` and `failed`."""

    def received(self, began: int, taken: Mapping[TopicPartition, Sized]) -> None:
        """Note a call that has taken records or columns, by partition."""

    def failed(self, began: int, error: BaseException) -> None:
        """Note a call that takes records and has raised an error of Kafka."""

    def processing(self, record: Any) -> AbstractContextManager[object]:
        """Return the block in which a record is processed."""

    def settling(self, operation: str) -> CallSpan:
        """Begin the span of a block in which offsets or acknowledgements are committed, or of a commit."""


class ClientFacts(Protocol):
    """The facts about a client, for its tracer."""

    face: str
    """The name of its class."""

    @property
    def client_id(self) -> str:
        """The name of the client."""

    @property
    def group_id(self) -> str | None:
        """The group of a consumer."""

    @property
    def cluster_id(self) -> str | None:
        """The id of the cluster; None before it is known."""

    def address(self, topic: str, partition: int) -> tuple[str, int] | None:
        """Return host and port of the leader of a partition, if it is known."""


class Tracer(Protocol):
    """The tracer of a program, as it sets `tracer`. Its methods return None for a client that something else traces."""

    def producer(self, facts: ClientFacts) -> ProducerTracer | None:
        """Return the tracer of a producer that is being made."""

    def consumer(self, facts: ClientFacts) -> ConsumerTracer | None:
        """Return the tracer of a consumer that is being made."""

    def writing(self, topic: str | None) -> CallSpan:
        """Begin the span of a block in which other processes send records for this one, as Spark's executors do."""


tracer: Tracer | None = None
"""What traces the clients that are made from now on."""

_series: WeakSet[Series] = WeakSet()
# Re-entrant: a client may be closed by the cycle collector, within any of these.
_lock = threading.RLock()


def add(series: Series) -> None:
    """Show the series of a client that was made."""
    with _lock:
        taken = {other.client_id for other in _series}
        name, number = series.client_id, 2
        while series.client_id in taken:  # two series with the same labels would be an invalid scrape
            series.client_id = f"{name}#{number}"
            number += 1
        _series.add(series)


def discard(series: Series) -> None:
    """Show the series of a client no more: it is closed."""
    with _lock:
        _series.discard(series)


def living() -> list[Series]:
    """Return the series of all clients that are open, in the order of their names."""
    with _lock:
        return sorted(_series, key=lambda series: series.client_id)


def _forget() -> None:
    global _series, _lock, tracer
    _series, _lock, tracer = WeakSet(), threading.RLock(), None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
