"""What on_delivery is told: the outcome of one batch."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafka._runtime.callback_errors import raise_after_pass
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.producer.batch import Delivered, ProducerBatch

__all__ = ["DeliveryReport", "reporter"]

log = logging.getLogger(__name__)


class DeliveryReport:
    """Records of one partition that were handed over one after another, and what became of them.

    >>> DeliveryReport(TopicPartition("events", 0), base_offset=10, count=3, error=None).offsets
    range(10, 13)
    """

    # Written out, because importing dataclasses would take a tenth of the time that importing kafka takes.
    __slots__ = ("base_offset", "count", "error", "topic_partition")

    def __init__(
        self, topic_partition: TopicPartition, base_offset: int, count: int, error: BaseException | None
    ) -> None:
        self.topic_partition = topic_partition
        self.base_offset = base_offset
        """The offset of the first record; -1 if it is unknown."""
        self.count = count
        self.error = error
        """Why the records failed; None if they are written."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DeliveryReport) and self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def _values(self) -> tuple[Any, ...]:
        return self.topic_partition, self.base_offset, self.count, self.error

    def __repr__(self) -> str:
        return (
            f"DeliveryReport(topic_partition={self.topic_partition}, base_offset={self.base_offset}, "
            f"count={self.count}, error={self.error!r})"
        )

    @classmethod
    def of(cls, batch: ProducerBatch, outcome: Delivered | BaseException) -> DeliveryReport:
        """Return the report on a batch."""
        if isinstance(outcome, BaseException):
            return cls(batch.partition.tp, -1, batch.count, outcome)
        return cls(batch.partition.tp, outcome.base_offset, batch.count, None)

    @property
    def offsets(self) -> range:
        """The records' offsets; empty where they are not known."""
        return range(self.base_offset, self.base_offset + self.count) if self.base_offset >= 0 else range(0)


def reporter(report: Callable[[DeliveryReport], object]) -> Callable[[ProducerBatch, Any], None]:
    """Return what tells the user's on_delivery of each batch; its exceptions are logged."""

    def settled(batch: ProducerBatch, outcome: Any) -> None:
        try:
            report(DeliveryReport.of(batch, outcome))
        except Exception:
            log.exception("on_delivery failed")
        except BaseException as error:  # sys.exit(): not at the cost of other batches
            raise_after_pass(error)

    return settled
