"""The batch reader; the partition that a task gets; and the part of both readers that runs in tasks.

A reader is pickled before it plans anything, so what a task needs is in the options or in the partition.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.datasource import DataSourceReader, InputPartition

from kafka.errors import KafkaError
from kafka.spark.errors import concise, raise_concisely
from kafka.spark.filters import Condition, condition_of, narrowed
from kafka.spark.offset_ranges import OffsetRange
from kafka.spark.offsets import LATEST
from kafka.spark.options import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql.datasource import Filter

    from kafka.spark.registry_columns import TypedColumns

__all__ = ["FilteredBatchReader", "KafkaBatchReader", "KafkaPartition", "RangeReader", "batch_reader", "warn_once"]


log = logging.getLogger(__name__)

#: How many plans a process remembers.
_PLANS: Final = 100
_warned: set[str] = set()
"""The warnings that this process has logged."""


class KafkaPartition(InputPartition):
    """What one task reads."""

    def __init__(self, ranges: tuple[OffsetRange, ...], plan: str | None = None) -> None:
        self.ranges = ranges
        self.plan = plan
        """Of a batch query that reads to the latest offsets: when these were looked up, and a number beside that."""

    def __repr__(self) -> str:
        return f"KafkaPartition{self.ranges!r}"


class RangeReader:
    """The part of both readers that runs in tasks."""

    def __init__(self, options: SourceOptions, columns: Sequence[str], typed: TypedColumns | None = None) -> None:
        self.options = options
        self.columns = columns
        self.typed = typed
        """What makes typed columns of the records, with a schema registry."""

    def read(self, partition: InputPartition) -> Iterator[Any]:
        """Yield the records of a task as Arrow batches."""
        # Where a query has no partition, Spark makes an empty one.
        ranges = getattr(partition, "ranges", ())
        _look_for_second_use(getattr(partition, "plan", None))
        return self._read(ranges)

    def _read(self, ranges: tuple[OffsetRange, ...]) -> Iterator[Any]:
        from kafka.spark.client_cache import prepare_worker
        from kafka.spark.fetcher import read_ranges

        prepare_worker(freeze=self.options.freeze)
        batches = read_ranges(ranges, self.options, self.columns)
        try:
            yield from batches if self.typed is None else self.typed.of(batches)
        except KafkaError as error:
            raise_concisely(error)


_EXECUTION: Final = "spark.sql.execution.id"
_executions: dict[str, str | None] = {}
"""The query that first read a plan in this process, by the plan."""


def _look_for_second_use(plan: str | None) -> None:
    """Warn where another query reads what was planned for an earlier one: Spark plans a frame once for all its uses."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if plan is None or context is None:
        return
    execution = context.getLocalProperty(_EXECUTION)
    if _executions.setdefault(plan, execution) != execution:
        warn_once(
            f"A frame that was planned at {plan.split()[0]} is read again: it has the records up to then, as Spark "
            "plans a frame of a source in Python once. load() it again for later records"
        )
    while len(_executions) > _PLANS:
        _executions.pop(next(iter(_executions)))


class KafkaBatchReader(RangeReader, DataSourceReader):
    """Reads what there is between two bounds."""

    conditions: tuple[Condition, ...] = ()
    """What Spark has told of the query's filters."""

    @concise
    def partitions(self) -> list[InputPartition]:
        """Return the tasks."""
        from kafka.spark.offset_reader import planner
        from kafka.spark.planning import batch_ranges, tasks

        with planner(self.options) as offsets:
            # Times are looked up after the ends, so that nothing between them can be missed.
            ranges = narrowed(batch_ranges(offsets, self.options), self.conditions, offsets.at_times)
        is_open = self.options.end.everywhere == LATEST
        plan = f"{time.strftime('%H:%M:%S')} {os.urandom(8).hex()}" if is_open else None
        return [KafkaPartition(each, plan) for each in tasks(ranges, self.options)]


class FilteredBatchReader(KafkaBatchReader):
    """Reads what there is between two bounds, and not what the query's filters leave out. Needs Spark 4.1."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take what filters say of topics, partitions, offsets and times; Spark applies all of them once more."""
        found = (condition_of(each) for each in filters)
        self.conditions = tuple(each for each in found if each is not None)
        return filters


def _has_pushdown() -> bool:
    if not hasattr(DataSourceReader, "pushFilters"):
        warn_once("filterPushdown has no effect before Spark 4.1")
        return False
    # Up to 4.3 what a filter left to be read is kept with the frame's relation, where its other uses find it. The
    # releases that keep it with the scan push limits too.
    if not hasattr(DataSourceReader, "pushLimit"):
        warn_once(
            "filterPushdown: this release of Spark reads for all uses of a frame what its last filter needed. load() a "
            "frame for each filter, or rows are missing"
        )
    return True


def batch_reader(options: SourceOptions, columns: Sequence[str], typed: TypedColumns | None = None) -> KafkaBatchReader:
    """Return the reader for the release of Spark that runs."""
    # Spark refuses a reader that takes filters unless its configuration allows it.
    kind = FilteredBatchReader if options.pushdown and _has_pushdown() else KafkaBatchReader
    return kind(options, columns, typed)


def warn_once(sentence: str) -> None:
    """Log a warning, once in this process."""
    if sentence not in _warned:
        _warned.add(sentence)
        log.warning("%s", sentence)
