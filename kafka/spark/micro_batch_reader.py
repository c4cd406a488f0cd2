"""The streaming reader: the offsets of a query, the size of the next micro-batch, and its partitions.

One instance plans, in a separate process that lives as long as the query; another, pickled before any planning, reads
in the tasks. Offsets are passed as the objects that become the checkpoint's JSON.

The first batch of a query that starts at the latest offsets, or from Spark 4.2 on at a timestamp, is empty: its end is
its start. Spark records it, so a query that dies before its first batch is done continues from there, and not from the
offsets that are the latest by then. (Spark's own connector keeps a file beside the checkpoint for that; Spark does not
tell a Python source where the checkpoint is.)
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceStreamReader

from kafka.spark.batch_reader import KafkaPartition, RangeReader
from kafka.spark.client_cache import show_warnings, spare_collector
from kafka.spark.errors import concise
from kafka.spark.offset_ranges import MinOffsetsGate, limited
from kafka.spark.offsets import EARLIEST, LATEST, Offsets, format_partitions, from_nested, to_nested
from kafka.spark.options import SourceOptions
from kafka.spark.planning import DataLoss, check_available, find_bound, stream_ranges, tasks, tell_lost

limits: Any
try:
    from pyspark.sql.streaming import datasource as limits  # since Spark 4.2
except ImportError:
    limits = None

if TYPE_CHECKING:
    from kafka.spark.offset_reader import KafkaOffsetReader
    from kafka.spark.registry_columns import TypedColumns

__all__ = ["KafkaStreamReader", "stream_reader"]


log = logging.getLogger(__name__)

Nested = dict[str, dict[str, int]]
#: A commit to the group that failed is tried again after this many seconds, also if nothing new comes.
_TELL_AGAIN: Final = 5.0


class KafkaStreamReader(RangeReader, DataSourceStreamReader):
    """See the head of this file. For Spark of any release; what newer ones offer is added by `stream_reader`."""

    def __init__(
        self,
        options: SourceOptions,
        columns: Sequence[str],
        typed: TypedColumns | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(options, columns, typed)
        self._cluster: KafkaOffsetReader | None = None
        self._initial: Offsets | None = None
        self._anchored = options.start.is_fixed
        """Whether where the query starts is written down, or will be the same when it is asked for again."""
        self._asked = False
        self._planned = False
        self._seen: Offsets | None = None
        """Where the last batch ends that this process knows of."""
        self._redone: tuple[Offsets, Offsets] | None = None
        """Start and end of the first batch, where the start was found after the end."""
        self._ends_now = False
        """Whether the trigger is available-now."""
        self._target: Offsets | None = None
        """Where the query ends then, found when the first batch is asked for that reads."""
        self._latest: Offsets | None = None
        self._loss = DataLoss.of(options)
        self._clock = clock
        self._told: Offsets | None = None
        """The offsets that the group of commitOffsetsToGroup has, as far as this process knows."""
        self._tell_at = 0.0
        self._gate: MinOffsetsGate | None = None
        if options.min_offsets is not None:
            self._gate = MinOffsetsGate(options.min_offsets, options.max_delay, clock)

    def __getstate__(self) -> dict[str, Any]:
        # The copy that goes to the tasks reads; it has no clock and no connection.
        return {"options": self.options, "columns": self.columns, "typed": self.typed}

    @property
    def cluster(self) -> KafkaOffsetReader:
        """The connections, made when first needed."""
        if self._cluster is None:
            show_warnings()
            spare_collector()
            from kafka.spark.offset_reader import KafkaOffsetReader, patient_client

            self._cluster = KafkaOffsetReader(self.options, patient_client(self.options))
        return self._cluster

    # Offsets…

    @concise
    def initialOffset(self) -> Nested:
        """Return where a query without a checkpoint starts."""
        return to_nested(self._initial_offsets())

    def _initial_offsets(self) -> Offsets:
        if self._initial is None:
            self._initial = find_bound(self.cluster, self.options.start, self.options, starting=True)
            log.info("The query would start at %s", to_nested(self._initial))
        return self._initial

    @concise
    def latestOffset(self, start: Mapping[str, Mapping[str, int]] | None = None, limit: object = None) -> Nested:
        """Return where the next micro-batch ends: its start if there is to be none."""
        begin = None if start is None else from_nested(start)
        # Spark asks when the batch before is done and in its log, and asks on where nothing comes: what that batch has
        # read is committed now, and not when the next one begins.
        processed = self._seen if begin is None else begin
        if processed is not None and processed != self._initial:
            self._tell_group(processed)
        self._seen = self._end(begin, limit)
        self._asked = True
        return to_nested(self._seen)

    def _end(self, start: Offsets | None, limit: object) -> Offsets:
        if start is None:
            return self._end_untold()
        if self._is_first(start) or self._is_held():
            return start
        latest = self._available(start)
        return latest if _takes_all(limit) else self._admitted(start, latest)

    def _end_untold(self) -> Offsets:
        """Return where the next micro-batch ends with releases before 4.2, which do not tell where it starts.

        They may ask before they know where the query starts. That is looked up only where it does no harm in a query
        that has a checkpoint: it may not even be there any more.
        """
        if self._seen is None and (self._is_held() or self.options.start.everywhere == LATEST):
            return self._initial_offsets()
        begin = self._seen or {}
        return begin if self._is_held() else self._available(begin)

    def _is_held(self) -> bool:
        """Whether no new batch is to begin, as the query is about to be stopped."""
        return self.options.hold_file is not None and os.path.exists(self.options.hold_file)

    def _is_first(self, begin: Offsets) -> bool:
        """Whether this is to be the batch that writes down where the query starts."""
        first = not self._anchored and begin == self._initial
        self._anchored = True
        return first

    def _available(self, begin: Offsets) -> Offsets:
        if self._target is None:
            self._latest = self.cluster.latest(begin)
            if self._ends_now:
                self._target = self._latest
        else:
            self._latest = self._target
        missing = set(begin) - set(self._latest)
        if missing and self.options.fail_on_data_loss:
            # Said before it is written down that the query now stands where these are not.
            self._loss.deleted(missing)
        # With nothing left to read there is no batch. One that ends nowhere would forget where the query stands.
        return self._latest or begin

    def _admitted(self, begin: Offsets, latest: Offsets) -> Offsets:
        # With the trigger available-now all records must be read, however few are left.
        if self._gate is not None and self._target is None and self._gate.holds_back(begin, latest):
            return begin
        if self.options.max_offsets is None:
            return latest
        new = dict.fromkeys(set(latest) - set(begin), EARLIEST)
        return limited(self.options.max_offsets, {**(self.cluster.edges(new) if new else {}), **begin}, latest)

    def reportLatestOffset(self) -> Nested | None:
        """Return the latest offsets, for progress reports: those found by the last question."""
        return None if self._latest is None else to_nested(self._latest)

    # Planning…

    @concise
    def partitions(
        self, start: Mapping[str, Mapping[str, int]], end: Mapping[str, Mapping[str, int]]
    ) -> list[KafkaPartition]:
        """Return the tasks of a micro-batch."""
        begin, until = from_nested(start), from_nested(end)
        if self._target is not None:
            check_available(self.cluster, self._target, until)
        if self._is_redone(begin, until):
            begin = {tp: min(offset, until[tp]) for tp, offset in begin.items() if tp in until}
        elif begin == self._initial:
            # The first batch is done again after a restart: partitions that came meanwhile belong to the next one.
            begin = {tp: offset for tp, offset in begin.items() if tp in until}
        self._seen = until
        if begin == until:
            return []
        ranges = stream_ranges(self.cluster, begin, until, self._loss)
        if not self.options.fail_on_data_loss:
            tell_lost(self.cluster, ranges)
        return [KafkaPartition(each) for each in tasks(ranges, self.options)]

    def _is_redone(self, begin: Offsets, until: Offsets) -> bool:
        """Whether this is the first batch, planned when its start could not be known any more.

        Where the query begins is then found once more, and later than where the batch ends. All scans of the batch
        must get the same answer, so it is remembered.
        """
        # Before 4.2 Spark plans from the last batch's end to the same, when it has a checkpoint.
        if begin == until:
            return False
        first, self._planned = not self._planned, True
        if first and not self.options.start.is_fixed and begin == self._initial:
            self._redone = begin, until
            late = sorted(tp for tp, offset in begin.items() if offset > until.get(tp, offset))
            if late and not self._asked:
                log.warning(
                    "The first batch is done again, and where it began is not known any more: now it would begin at "
                    "%s. It ends at %s, and nothing before that is read from %s. If this source planned it, with "
                    "startingOffsets=latest or under Spark 4.2 and later, it was empty; else it may have had records, "
                    "which are skipped",
                    to_nested({tp: begin[tp] for tp in late}),
                    to_nested({tp: until[tp] for tp in late}),
                    format_partitions(late),
                )
        return (begin, until) == self._redone

    @concise
    def commit(self, end: Mapping[str, Mapping[str, int]]) -> None:
        """Hear that all before these offsets is processed; tell the group of commitOffsetsToGroup."""
        self._tell_group(from_nested(end))

    def _tell_group(self, processed: Offsets) -> None:
        if self.options.group is None or processed == self._told or self._clock() < self._tell_at:
            return
        if self.cluster.commit(self.options.group, processed):
            self._told = processed
        else:
            self._tell_at = self._clock() + _TELL_AGAIN

    def stop(self) -> None:
        """Close the connections; Spark may also just end the process."""
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None


def _takes_all(limit: object) -> bool:
    return type(limit).__name__ == "ReadAllAvailable"


if limits is not None:

    class LimitedStreamReader(KafkaStreamReader, limits.SupportsTriggerAvailableNow):  # type: ignore[misc]
        """The reader for Spark 4.2 and later, which limits micro-batches and splits availableNow."""

        def getDefaultReadLimit(self) -> limits.ReadLimit:
            """Return what Spark gives back with each question for the latest offsets."""
            most = self.options.max_offsets
            if most is None and self.options.min_offsets is None:
                return limits.ReadAllAvailable()
            # There is no limit that says both; the rest of them is kept by the reader itself.
            return limits.ReadMaxRows(2**63 - 1 if most is None else most)

        def prepareForTriggerAvailableNow(self) -> None:
            """End the query at the offsets that are the latest when it first reads.

            Not at the latest offsets now: the start may be looked up later, and would be behind the end.
            """
            self._ends_now = True


def stream_reader(
    options: SourceOptions, columns: Sequence[str], typed: TypedColumns | None = None
) -> KafkaStreamReader:
    """Return the reader for the release of Spark that runs."""
    if limits is not None:
        return LimitedStreamReader(options, columns, typed)
    if options.max_offsets is not None or options.min_offsets is not None:
        log.warning("maxOffsetsPerTrigger and minOffsetsPerTrigger have no effect before Spark 4.2")
    return KafkaStreamReader(options, columns, typed)
