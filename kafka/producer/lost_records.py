"""Records that failed and whose error the program has not looked at: they are logged, so that none is lost unseen.

A batch that fails comes here; one that succeeds does not. The batch knows which of its records a call (`get()`,
`await`, `exception`) or a callback has looked at. A minute after the first failure, and when the producer is closed,
the others are logged: one line for each topic and kind of error, with the number of records.

Records that the program itself has given up (`purge()`), and records of a transaction, whose end says that it failed,
do not come here.
"""

from __future__ import annotations

import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from kafka._text import counted
from kafka.errors import Cancelled

if TYPE_CHECKING:
    from kafka._runtime.loop import Loop
    from kafka.producer.producer_batch import ProducerBatch

__all__ = ["LostRecords"]

log = logging.getLogger(__name__)

#: For how long a program may leave failures alone before the log has them, in seconds.
PATIENCE: Final = 60.0

#: How many failed batches are kept for that; older ones count as not looked at.
MOST: Final = 10_000

# One template for all, by which handlers group what is logged.
_LOST: Final = "%s to topic %r failed, and the program has not looked at the error: %s"


class LostRecords:
    """The failed batches of one producer. See the head of this module. Any thread may call it."""

    def __init__(self, loop: Loop) -> None:
        self._loop = loop
        self._failed: deque[ProducerBatch] = deque()
        self._counts: dict[tuple[str, type], int] = {}
        self._errors: dict[tuple[str, type], object] = {}
        self._is_due = False
        """There will be a report."""

    def add(self, batch: ProducerBatch) -> None:
        """Note a batch that has failed."""
        error = batch.outcome
        if isinstance(error, Cancelled) or isinstance(getattr(error, "__cause__", None), Cancelled):
            return
        self._failed.append(batch)
        if len(self._failed) > MOST:
            self._count(self._failed.popleft())
        if not self._is_due:
            self._is_due = True
            self._loop.call_soon(self._loop.call_later, PATIENCE, self.report)

    def _count(self, batch: ProducerBatch) -> None:
        kind = batch.partition.tp.topic, type(batch.outcome)
        unseen = max(1, batch.count) - len(batch.looked_at)
        if unseen > 0:
            self._counts[kind] = self._counts.get(kind, 0) + unseen
            self._errors.setdefault(kind, batch.outcome)

    def report(self) -> list[str]:
        """Log the failures that the program has not looked at, and forget all; return the lines."""
        self._is_due = False
        while self._failed:
            self._count(self._failed.popleft())
        counts, errors = self._counts, self._errors
        self._counts, self._errors = {}, {}
        lines = []
        for (topic, error), count in counts.items():
            values = counted(count), topic, errors[topic, error]
            log.error(_LOST, *values, extra={"kafka_topic": topic, "kafka_error": error.__name__})
            lines.append(_LOST % values)
        return lines
