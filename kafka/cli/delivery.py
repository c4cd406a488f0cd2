"""Records on their way to brokers: counted when they are acknowledged, with a line for each that failed."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from kafka.cli.arguments import CommandError, reason
from kafka.cli.connection import HASTE
from kafka.cli.output import Progress, complain, counted
from kafka.errors import IllegalArgumentError, KafkaError

if TYPE_CHECKING:
    from kafka.producer import FutureRecordMetadata, KafkaProducer

_PENDING: Final = 64
#: Failures that are shown each; the rest are counted.
_SHOWN_FAILURES: Final = 20
#: Partitions that are named where records were written.
_NAMED: Final = 3
#: Seconds after which records of a slow input are counted.
_SHOWN_EVERY: Final = 1.0
#: Records that are settled together.
_TOGETHER: Final = 1000
#: A value of this size is sent alone, so that its error is its own.
_LARGE: Final = 100_000

# A record as KafkaProducer.send_many() takes it.
Record = tuple[Any, ...]


class Delivery:
    """Hands records to a producer, and reports the lines that failed; memory stays bounded.

    After Ctrl-C the records that were sent have a second more; the rest is given up and counted.
    """

    def __init__(
        self, arguments: Namespace, producer: KafkaProducer, unit: str = "line", total: int | None = None
    ) -> None:
        self._arguments = arguments
        self._producer = producer
        self._unit = unit
        self._pending: deque[tuple[int, Sequence[FutureRecordMetadata], int]] = deque()
        """The first line, the futures and the bytes of records whose outcome is not known yet."""
        self._single: list[FutureRecordMetadata] = []
        self._single_first = self._single_size = 0
        self._next_flush = 0.0
        self._progress = Progress(arguments, "produced", total, alone=True)
        self._places: dict[tuple[str, int], list[int]] = {}
        """The first and the last offset in each partition, for the user who watches."""
        self.failures = 0

    @property
    def delivered(self) -> int:
        """How many records the brokers have acknowledged."""
        return self._progress.records

    @property
    def code(self) -> int:
        """The exit code."""
        return 1 if self.failures else 0

    def send_values(self, topic: str, values: list[bytes], first: int) -> None:
        """Send values without keys, the first of which is of the line `first`."""
        if max(map(len, values)) > _LARGE:  # one may be too large, which must not be the fault of the others
            for line, value in enumerate(values, first):
                self.send(topic, (None, value, None, None, None), line)
            return
        self._flush()
        self._pending.append((first, self._producer.send_many(topic, values), sum(map(len, values))))
        self._settle_done()

    def send(self, topic: str, record: Record, line: int) -> None:
        """Send a record."""
        key, value, headers, partition, timestamp = record
        try:
            future = self._producer.send(topic, value, key, headers, partition, timestamp)
        except (IllegalArgumentError, TypeError, ValueError) as error:
            self.fail(line, error)
            return
        if self._single and line != self._single_first + len(self._single):
            self._flush()
        if not self._single:
            self._single_first = line
        self._single.append(future)
        self._single_size += len(value or b"") + len(key or b"")
        if len(self._single) == _TOGETHER or time.monotonic() > self._next_flush:
            self._flush()

    def _flush(self) -> None:
        self._next_flush = time.monotonic() + _SHOWN_EVERY
        self._close_single()
        self._settle_done()

    def _close_single(self) -> None:
        """Let the records that were sent one by one be pending, once, whenever Ctrl-C comes."""
        if self._single and not (self._pending and self._pending[-1][1] is self._single):
            self._pending.append((self._single_first, self._single, self._single_size))
        self._single, self._single_size = [], 0

    def _settle_done(self) -> None:
        while self._pending and (
            len(self._pending) > _PENDING or all(future.is_done for future in self._pending[0][1])
        ):
            self._settle()

    def fail(self, line: int, error: BaseException) -> None:
        """Report a record that was not written."""
        self.failures += 1
        if self.failures <= _SHOWN_FAILURES:
            complain(self._arguments, f"{self._unit} {line}: {error.args[0] if error.args else error}")

    def _settle(self) -> None:
        """Wait for the records that were sent first, and count them."""
        first, sent, size = self._pending[0]
        failed = []
        for line, future in enumerate(sent, first):
            with suppress(KafkaError):
                if not future.is_done:
                    future.get()
            error = future.exception
            if error is not None:
                failed.append((line, error))
        self._pending.popleft()
        done = len(sent) - len(failed)
        self._progress.add(done, size * done // len(sent))
        if self._progress.shows:
            self._remember(sent)
        for line, error in failed:
            self.fail(line, error)

    def _remember(self, sent: Sequence[FutureRecordMetadata]) -> None:
        for future in sent:
            if future.exception is None and (found := future.get()).offset >= 0:
                edges = self._places.setdefault((found.topic, found.partition), [found.offset, found.offset])
                edges[1] = found.offset

    def _tell_places(self) -> None:
        """Say where the records are."""
        found = [
            f"{topic}-{partition} {f'offset {first}' if first == last else f'offsets {first} to {last}'}"
            for (topic, partition), (first, last) in sorted(self._places.items())
        ]
        if found:
            more = f" and {counted(len(found) - _NAMED, 'more partition')}" if len(found) > _NAMED else ""
            print(f"written to {', '.join(found[:_NAMED])}{more}", file=sys.stderr)

    def run(self, send: Callable[[], object]) -> int:
        """Call the function that sends the records, wait for all of them, and return the exit code."""
        try:
            try:
                send()
            except Exception:
                self._settle_all()
                raise
            self._settle_all()
        except KeyboardInterrupt:
            self._give_up()
            raise
        return self.code

    def _settle_all(self) -> None:
        self._flush()
        while self._pending:
            self._settle()
        self._progress.end()
        self._tell_places()
        if self.failures > _SHOWN_FAILURES:
            complain(self._arguments, f"{counted(self.failures, 'record')} failed")

    def _give_up(self) -> None:
        """After Ctrl-C: a second for the records that were sent, then count them."""
        self._producer.close(timeout=HASTE)
        errors = []
        self._close_single()
        while self._pending:
            _, sent, size = self._pending.popleft()
            found = [future.exception for future in sent if not future.is_done or future.exception is not None]
            errors += found
            done = len(sent) - len(found)
            self._progress.add(done, size * done // len(sent))
        self._progress.end(always=True)
        if errors:
            lost = f"{counted(len(errors), 'record')} had no acknowledgement, and may not be written"
            complain(self._arguments, f"{lost}: {reason(errors[0])}")


def in_transaction(
    arguments: Namespace, producer: KafkaProducer, delivery: Delivery, send: Callable[[], object]
) -> int:
    """Commit the records that a function sends together; an error of one of them, or Ctrl-C, aborts them all."""
    producer.init_transactions()
    producer.begin_transaction()
    try:
        code = delivery.run(send)
    except KeyboardInterrupt:  # the producer has been closed
        complain(arguments, "the transaction is not committed: no record is visible to readers of committed records")
        raise
    except Exception:
        _abort(arguments, producer)
        raise
    if code:
        _abort(arguments, producer)
        raise CommandError("not all records of the transaction could be written")
    try:
        producer.commit_transaction()
    except KeyboardInterrupt:
        complain(arguments, "the commit of the transaction was interrupted: it may or may not be committed")
        raise
    return 0


def _abort(arguments: Namespace, producer: KafkaProducer) -> None:
    try:
        producer.abort_transaction()
    except KafkaError as error:
        complain(arguments, f"the transaction is not committed, and could not be aborted: {reason(error)}")
    else:
        complain(arguments, "the transaction was aborted: no record is visible to readers of committed records")
