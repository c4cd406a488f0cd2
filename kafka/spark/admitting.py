"""What Spark offers from 4.2 on: limits for a micro-batch, and several of them for all that is there now."""

from __future__ import annotations

from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from kafka.spark.stream import KafkaStreamReader

__all__ = ["AdmittingStreamReader"]


class AdmittingStreamReader(KafkaStreamReader, SupportsTriggerAvailableNow):
    """The reader with what 4.2 knows."""

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return what Spark gives back with each question for the latest offsets."""
        most = self.options.max_offsets
        if most is None and self.options.min_offsets is None:
            return ReadAllAvailable()
        # There is no limit that says both; the rest of them is kept by the reader itself.
        return ReadMaxRows(2**63 - 1 if most is None else most)

    def prepareForTriggerAvailableNow(self) -> None:
        """Hear that the query ends at what is there when it first reads.

        Not at what is there now: where it starts may be found later than this, and would be behind its end.
        """
        self._ends_now = True
