"""The source and sink, standing still at chosen points, so that a process can be killed exactly there.

The option ``stalls`` has points such as ``within:3`` with commas between, ``stallsIn`` a directory. Whoever comes to a
point first leaves a file of that name with its process id in it, and stands still; the next one passes.

- ``plan:first``: the driver, before it plans the first batch that it runs
- ``before:N``: a task of batch N, before it writes
- ``within:N``: the same, with some of its rows written
- ``after:N``: the same, with all of them written (and committed), before Spark hears of it
- ``commit:N``: the driver, when all tasks of batch N are done, before it notes that
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import DataSourceStreamArrowWriter

from kafka.spark.datasource import KafkaDataSource
from kafka.spark.exactly_once import task_identity

__all__ = ["StallingSource"]

_PATIENCE = 300.0


class Stalls:
    """Where to stand still."""

    def __init__(self, points: str, directory: str) -> None:
        self._points = frozenset(filter(None, points.split(",")))
        self._directory = directory

    def reach(self, point: str) -> None:
        """Stand still if this is one of the points, and nobody did before."""
        if point not in self._points:
            return
        own = Path(self._directory, f"{point}.{os.getpid()}")
        own.write_text(str(os.getpid()), encoding="utf-8")
        try:
            os.link(own, Path(self._directory, point))  # whole, and of one process alone
        except FileExistsError:
            return
        threading.Event().wait(_PATIENCE)
        raise TimeoutError(f"nobody killed this process, which stood still at {point}")


class StallingSource(KafkaDataSource):
    """The format ``stalling``."""

    @classmethod
    def name(cls) -> str:
        return "stalling"

    def _stalls(self) -> Stalls:
        return Stalls(self.options.get("stalls", ""), self.options.get("stallsIn", ""))

    def streamReader(self, schema: Any) -> Any:
        reader: Any = super().streamReader(schema)
        stalls, plan = self._stalls(), reader.partitions

        def partitions(start: Any, end: Any) -> Any:
            stalls.reach("plan:first")
            return plan(start, end)

        reader.partitions = partitions  # the tasks' copy is made without it
        return reader

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:
        return StallingWriter(super().streamWriter(schema, overwrite), self._stalls())


class StallingWriter(DataSourceStreamArrowWriter):
    """A writer of the sink's, and where it stands still."""

    def __init__(self, inner: Any, stalls: Stalls) -> None:
        self._inner = inner
        self._stalls = stalls

    def write(self, iterator: Iterator[Any]) -> Any:
        batch = task_identity().batch
        self._stalls.reach(f"before:{batch}")
        message = self._inner.write(self._slowly(iterator, batch))
        self._stalls.reach(f"after:{batch}")
        return message

    def _slowly(self, rows: Iterator[Any], batch: int) -> Iterator[Any]:
        for number, some in enumerate(rows):
            if number == 1:
                self._stalls.reach(f"within:{batch}")
            yield some

    def commit(self, messages: Any, batchId: int) -> None:
        self._stalls.reach(f"commit:{batchId}")
        self._inner.commit(messages, batchId)

    def abort(self, messages: Any, batchId: int) -> None:
        self._inner.abort(messages, batchId)
