"""What goes wrong in the data source, in the words that users of Spark's own connector know and search for."""

from __future__ import annotations

from kafka.errors import KafkaConfigurationError, KafkaError, RecordFacts

__all__ = ["KafkaDataLossError", "KafkaSparkOptionError"]

_ADVICE = (
    "Some data may have been lost because they are not available in Kafka any more; either the data was aged out by "
    "Kafka or the topic may have been deleted before all the data in the topic was processed. If you don't want your "
    "streaming query to fail on such cases, set the source option failOnDataLoss to false."
)


class KafkaSparkOptionError(KafkaConfigurationError):
    """An option of the data source is missing, not supported, or has a value that it cannot have."""


class KafkaDataLossError(RecordFacts, KafkaError):
    """Records that the query has not read are gone, and failOnDataLoss is on."""

    @classmethod
    def because(cls, condition: str, reason: str) -> KafkaDataLossError:
        """Return the error of a condition, such as ``ADDED_PARTITION_DOES_NOT_START_FROM_OFFSET_ZERO``.

        >>> str(KafkaDataLossError.because("PARTITIONS_DELETED", "Partitions events-0 have been deleted."))[:40]
        '[KAFKA_DATA_LOSS.PARTITIONS_DELETED] Som'
        """
        return cls(f"[KAFKA_DATA_LOSS.{condition}] {_ADVICE} Reason: {reason}")
