"""The metrics of a producer: per request, per batch, per call that waits; never per record. The names are Kafka's."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Final

from kafka._core.metrics import SensorGroup
from kafka.metrics.sensor import Journal
from kafka.metrics.stats import Avg, Max, Rate, Total

if TYPE_CHECKING:
    from kafka.metrics import Metrics
    from kafka.metrics.series import Series
    from kafka.producer.partition import Topic
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
# The reason of a wait, by the call.
_REASONS: Final = {"bufferpool-wait": "buffer", "flush": "flush", "metadata-wait": "metadata"}


class ProducerMetrics(SensorGroup):
    """The sensors of a producer."""

    def __init__(self, metrics: Metrics, series: Series, prefix: str, accumulator: RecordAccumulator) -> None:
        super().__init__(metrics, f"{prefix}-metrics")
        self._count = series.count
        sizes = self._sensor("batch-size", ("batch-size-avg", Avg()), ("batch-size-max", Max(empty=0.0)))
        records = self._sensor(
            "records", ("record-send-rate", Rate()), ("record-send-total", Total()), ("records-per-request-avg", Avg())
        )
        compression = self._sensor("compression", ("compression-rate-avg", Avg()))
        queued = self._sensor("queue", ("record-queue-time-avg", Avg()), ("record-queue-time-max", Max(empty=0.0)))
        throttle = self._sensor(
            "produce-throttle", ("produce-throttle-time-avg", Avg()), ("produce-throttle-time-max", Max(empty=0.0))
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
        series.gauges(
            kafka_producer_buffer_total_bytes=lambda: memory.total,
            kafka_producer_buffer_available_bytes=lambda: max(0, memory.free),
            kafka_producer_queue_seconds_count=lambda: self._batches,
            kafka_producer_queue_seconds_sum=lambda: self._queue_seconds,
            kafka_producer_batch_records_count=lambda: self._batches,
            kafka_producer_batch_records_sum=lambda: self._batch_records,
        )
        series.gauge("kafka_producer_records_total", partial(_of_topics, accumulator, attrgetter("written_records")))
        series.gauge("kafka_producer_bytes_total", partial(_of_topics, accumulator, attrgetter("written_bytes")))
        # Plain numbers, which the loop alone writes: of batches, without their retries.
        self._batches = self._batch_records = 0
        self._queue_seconds = 0.0
        self._first_attempts = Journal(sizes, queued, compression)
        self._requests = Journal(records)
        self.throttle_times = Journal(throttle)

    def sent(self, batches: Iterable[ProducerBatch], now: float) -> None:
        """Count a request that is sent now, and its batches: one that hangs has been sent."""
        records = 0
        for batch in batches:
            sealed = batch.sealed
            assert sealed is not None
            records += sealed.count
            if batch.attempts == 1:
                queued = now - batch.created
                self._batches += 1
                self._batch_records += sealed.count
                self._queue_seconds += queued
                self._first_attempts.add(sealed.size, queued * 1000, sealed.size / max(1, sealed.uncompressed_size))
        self._requests.add(records)

    def failed(self, batch: ProducerBatch, error: BaseException) -> None:
        """Count the records of a batch that was given up."""
        self._errors.record(batch.count)
        labels = batch.partition.tp.topic, type(error).__name__
        self._count("kafka_producer_record_errors_total", labels, batch.count)

    def refused(self, topic: str, error: BaseException) -> None:
        """Count a record that did not get into a batch."""
        self._count("kafka_producer_record_errors_total", (topic, type(error).__name__))

    def ended(self, result: str) -> None:
        """Count a transaction."""
        self._count("kafka_producer_transactions_total", (result,))

    def retried(self, batch: ProducerBatch) -> None:
        """Count the records of a batch that must be sent again."""
        self._retries.record(batch.count)
        self._count("kafka_producer_record_retries_total", (batch.partition.tp.topic,), batch.count)

    def waited(self, call: str, seconds: float) -> None:
        """Record how long a call, one of `_CALLS`, has delayed the application, whether it failed or not."""
        self._calls[call].record(round(seconds * 1e9))
        self._count("kafka_producer_blocked_seconds_total", (_REASONS.get(call, "transaction"),), seconds)
        if call == "bufferpool-wait":
            self._buffer_wait.record(seconds)

    def exhausted(self) -> None:
        """Count a record that was refused because the buffer stayed full."""
        self._exhausted.record(1)


def _of_topics(accumulator: RecordAccumulator, number: Callable[[Topic], float]) -> dict[tuple[str, ...], float]:
    return {(topic.name,): count for topic in accumulator.all_topics() if (count := number(topic))}
