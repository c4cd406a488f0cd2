"""What goes wrong in the data source, in the words that users of Spark's own connector know and search for."""

from __future__ import annotations

from typing import Final

from kafka.errors import KafkaConfigurationError, KafkaError, RecordFacts

__all__ = ["CROSSED_ADVICE", "GROUP_ID_ADVICE", "KafkaAvailableNowError", "KafkaDataLossError", "KafkaSparkOptionError"]

_ADVICE: Final = (
    "Some data may have been lost because they are not available in Kafka any more; either the data was aged out by "
    "Kafka or the topic may have been deleted before all the data in the topic was processed. If you don't want your "
    "streaming query to fail on such cases, set the source option failOnDataLoss to false."
)

GROUP_ID_ADVICE: Final = (
    "Kafka option 'kafka.group.id' has been set on this query, it is not recommended to set this option. This option "
    "is unsafe to use since multiple concurrent queries or sources using the same group id will interfere with each "
    "other as they are part of the same consumer group. Restarted queries may also suffer interference from the "
    "previous run having the same group id. The user should have only one query per group id, and/or set the option "
    "'kafka.session.timeout.ms' to be very small so that the Kafka consumers from the previous query are marked dead "
    "by the Kafka group coordinator before the restarted query starts running."
)
CROSSED_ADVICE: Final = (
    "Please investigate in this order: 1. Check whether start offset is set beyond the end offset or the latest "
    "available offset after resolution. Possible inputs are: (a) Start offset is set to a timestamp, and the end "
    "offset is set to an index of offset. (b) Start offset is set to an index of offset, and the end offset is set to"
    " a timestamp. (c) Start offset is set, and the end offset is set to latest. 2. Check whether the Kafka topic-"
    "partition is deleted and re-created."
)
_TRANSIENT: Final = "The error could be transient - restart your query, and report if you still see the same issue."


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


class KafkaAvailableNowError(KafkaError):
    """What a query with the trigger available-now was to read is not there any more, or was not to be read."""

    @classmethod
    def because(cls, condition: str, sentence: str, facts: str) -> KafkaAvailableNowError:
        """Return the error of a condition, such as ``LOST_TOPIC_PARTITIONS_IN_END_OFFSET_WITH_TRIGGER_AVAILABLENOW``.

        >>> str(KafkaAvailableNowError.because("MISMATCHED", "These differ.", "a: 1, b: 2"))[:51]
        '[MISMATCHED] These differ. The error could be trans'
        """
        return cls(f"[{condition}] {sentence} {_TRANSIENT} {facts}")
