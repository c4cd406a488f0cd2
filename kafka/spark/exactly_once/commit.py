"""The driver's part of an exactly-once sink: comparing a batch that may be done again, and committing what is open.

`exactly_once` says why and when. All but the first batch of a run cost nothing here, no connection either. The process
is one that Spark starts for each batch.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import closing
from typing import TYPE_CHECKING, Any

from kafka._runtime.network_thread import run_here
from kafka.client_async import KafkaClient
from kafka.config import resolve
from kafka.errors import IllegalStateError, KafkaError, KafkaTimeoutError
from kafka.producer.transaction_coordinator import CoordinatorClient, end_request_of, init_request_of
from kafka.producer.transaction_protocol import Who
from kafka.spark.exactly_once.markers import read_marker, task_numbers
from kafka.spark.exactly_once.producer import TIMEOUT_MS
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.producer.transaction_handover import OpenTransaction
    from kafka.spark.exactly_once.task import TaskOutcome
    from kafka.spark.options import SinkOptions

__all__ = ["finish_batch", "give_up_batch"]


log = logging.getLogger(__name__)

_NOBODY = -1


def finish_batch(options: SinkOptions, outcomes: Sequence[TaskOutcome], batch: int) -> None:
    """Commit what the tasks of a batch have left open, all of them being done; raise if they were cut anew."""
    if not options.verify_replays or all(each.is_certain for each in outcomes):
        return
    with closing(_Coordinators(options)) as coordinators:
        coordinators.check(outcomes[0].id_prefix, len(outcomes), batch)
        coordinators.end(_held(outcomes), committed=True)


def give_up_batch(options: SinkOptions, outcomes: Sequence[TaskOutcome]) -> None:
    """Abort what tasks have left open, so that readers of the topic need not wait for their timeout."""
    held = _held(outcomes)
    if not held:
        return
    try:
        with closing(_Coordinators(options)) as coordinators:
            coordinators.end(held, committed=False)
    except KafkaError as error:
        # Those that are committed, or taken over by now, cannot be aborted.
        log.info("Not all transactions were aborted: %s", error)


def _held(outcomes: Sequence[TaskOutcome]) -> list[OpenTransaction]:
    return [each.held for each in outcomes if each.held is not None]


class _Coordinators:
    """Those of the transactions and groups of tasks."""

    def __init__(self, options: SinkOptions) -> None:
        assert options.topic is not None
        self._config = resolve("producer", {"transaction_timeout_ms": TIMEOUT_MS, **options.client})
        self._client = KafkaClient(config=self._config)
        self._asker = CoordinatorClient(self._client.core, self._config)
        self._place = TopicPartition(options.topic, 0)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def check(self, id_prefix: str, tasks: int, batch: int) -> None:
        """Raise if tasks with numbers that there are no more have written this batch, or later ones."""
        found = self._run(self._written(id_prefix, tasks, batch), "looking for other tasks of the batch")
        if found:
            raise IllegalStateError(
                f"Batch {batch} consists of {tasks} tasks, but was written by at least {max(found) + 1} in an earlier "
                "run of this query. Restore minPartitions, maxRecordsPerPartition and rowsPerTask until the batch is "
                "done, or start once with verifyReplays=false, which takes what is written for right"
            )

    async def _written(self, id_prefix: str, tasks: int, batch: int) -> list[int]:
        """Return the numbers of tasks that there are no more and that have written this batch; it cannot go on."""
        found = []
        for number in sorted(await task_numbers(self._client.core, id_prefix)):
            if number >= tasks:
                await self._lock_out(f"{id_prefix}{number}")
                marker = await read_marker(self._asker, f"{id_prefix}{number}", self._place)
                if marker is not None and marker.next_batch > batch:
                    found.append(number)
        return found

    async def _lock_out(self, name: str) -> None:
        timeout = self._config.seconds("transaction_timeout_ms")
        await self._asker.send(init_request_of(Who(name, _NOBODY, _NOBODY), timeout))

    def end(self, held: Sequence[OpenTransaction], *, committed: bool) -> None:
        """Commit or abort open transactions; each is tried, the first error raised."""
        self._run(self._end_all(held, committed), "ending the transactions of the batch")

    async def _end_all(self, held: Sequence[OpenTransaction], committed: bool) -> None:
        tasks = [self._client.core.loop.spawn(self._end(each, committed), "end a transaction") for each in held]
        first: KafkaError | None = None
        for task in tasks:
            try:
                await task
            except KafkaError as error:  # noqa: PERF203 - each may fail
                first = first or error
        if first is not None:
            raise first

    async def _end(self, held: OpenTransaction, committed: bool) -> None:
        who = Who(held.transactional_id, held.producer_id, held.epoch)
        try:
            await self._asker.send(end_request_of(who, committed=committed, is_v2=held.is_v2))
        except KafkaError as error:
            raise type(error)(
                f"the transaction {who.transactional_id!r} was not ended: {error} If the batch takes longer than "
                "kafka.transaction.timeout.ms, start once with verifyReplays=false: its tasks commit by themselves then"
            ) from error

    def _run(self, work: Any, what: str) -> Any:
        loop, limit = self._client.core.loop, self._config.seconds("max_block_ms")
        deadline = loop.time() + limit
        try:
            return run_here(loop, loop.spawn(work, what), deadline)
        except KafkaTimeoutError as error:
            if loop.time() < deadline:  # its own
                raise
            raise self._asker.timeout_error(what, limit) from error
