"""The metrics of a producer: per request, per batch, per call that waits; never per record. The names are Kafka's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kafka._core.metrics import SensorGroup
from kafka.metrics.stats import Avg, Max, Rate, Total

if TYPE_CHECKING:
    from kafka.metrics import Metrics
    from kafka.producer.producer_batch import ProducerBatch
    from kafka.producer.record_accumulator import RecordAccumulator

__all__ = ["ProducerMetrics"]


# The calls that wait (KIP-761), as the metrics spell them. send() waits for metadata and for room in the buffer.
_CALLS: Final = (
    "bufferpool-wait",
    "flush",
    "metadata-wait",
    "txn-init",
    "txn-begin",
    "txn-send-offsets",
    "txn-commit",
    "txn-abort",
)


class ProducerMetrics(SensorGroup):
    """The sensors of a producer."""

    def __init__(self, metrics: Metrics, prefix: str, accumulator: RecordAccumulator) -> None:
        super().__init__(metrics, f"{prefix}-metrics")
        self._sizes = self._sensor("batch-size", ("batch-size-avg", Avg()), ("batch-size-max", Max(empty=0.0)))
        self._records = self._sensor(
            "records", ("record-send-rate", Rate()), ("record-send-total", Total()), ("records-per-request-avg", Avg())
        )
        self._compression = self._sensor("compression", ("compression-rate-avg", Avg()))
        self._queued = self._sensor(
            "queue", ("record-queue-time-avg", Avg()), ("record-queue-time-max", Max(empty=0.0))
        )
        self._retries = self._sensor("retries", ("record-retry-rate", Rate()), ("record-retry-total", Total()))
        self._errors = self._sensor("errors", ("record-error-rate", Rate()), ("record-error-total", Total()))
        self._calls = {name: self._sensor(f"{name}-time", (f"{name}-time-ns-total", Total())) for name in _CALLS}
        self._exhausted = self._sensor(
            "buffer-exhausted", ("buffer-exhausted-rate", Rate()), ("buffer-exhausted-total", Total())
        )
        self._buffer_wait = self._sensor("bufferpool-wait", ("bufferpool-wait-ratio", Rate()))
        memory = accumulator.memory
        self._gauge("buffer-total-bytes", lambda: memory.total)
        self._gauge("buffer-available-bytes", lambda: memory.free)
        self._gauge("waiting-threads", lambda: memory.waiting)

    def sent(self, batches: Iterable[ProducerBatch], now: float) -> None:
        """Count a request and its batches."""
        records = 0
        for batch in batches:
            sealed = batch.sealed
            assert sealed is not None
            records += sealed.count
            if batch.attempts == 1:
                self._sizes.record(sealed.size)
                self._queued.record((now - batch.created) * 1000)
                self._compression.record(sealed.size / max(1, sealed.uncompressed_size))
        self._records.record(records)

    def retried(self, batch: ProducerBatch) -> None:
        """Count the records of a batch that must be sent again."""
        self._retries.record(batch.count)

    def failed(self, batch: ProducerBatch) -> None:
        """Count the records of a batch that was given up."""
        self._errors.record(batch.count)

    def waited(self, call: str, seconds: float) -> None:
        """Record how long a call, one of `_CALLS`, has delayed the application, whether it failed or not."""
        self._calls[call].record(round(seconds * 1e9))
        if call == "bufferpool-wait":
            self._buffer_wait.record(seconds)

    def exhausted(self) -> None:
        """Count a record that was refused because the buffer stayed full."""
        self._exhausted.record(1)
