"""The calls of a producer that have the same form on both faces, each written once: application-side coroutines.

`KafkaProducer` has them as methods that `blocking` makes, a producer of asyncio awaits them in the calling task.
`ProducerCalls`, which is one with them, has what they work with. The client core is imported with the first producer
only: it is most of what importing `KafkaProducer` would take.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

from kafka._core.status import ClientStatus
from kafka._runtime.tasks import deferred
from kafka._text import counted
from kafka.errors import (
    AbortableTransactionError,
    ClientClosedError,
    IllegalArgumentError,
    IllegalStateError,
    InvalidTopicError,
    KafkaError,
    KafkaTimeoutError,
    OutcomeUnknownTimeoutError,
)
from kafka.producer.arguments import checked_group, checked_offsets, checked_timeout
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition, check_topic

if TYPE_CHECKING:
    from uuid import UUID

    from kafka._core.client import Client
    from kafka._hooks import ProducerTracer
    from kafka._runtime.application import Application
    from kafka._runtime.tasks import Coro
    from kafka.metrics import Metrics
    from kafka.producer.core import ProducerCore
    from kafka.producer.partition import Topic
    from kafka.producer.transaction_manager import TransactionManager

__all__ = ["CommonCalls", "FOREVER", "ImmediateCalls"]

T = TypeVar("T")

#: Seconds that no wait takes.
FOREVER: Final = 10.0**9
# How long a transaction whose block was interrupted waits for the end of its abort, in seconds.
_ABORT_PATIENCE: Final = 0.5
# The result of a transaction, by the call that has ended it.
_RESULTS: Final = {"txn-commit": "committed", "txn-abort": "aborted"}


class ImmediateCalls(ClientStatus):
    """The calls that are no coroutines on either face."""

    _calls: CommonCalls
    """Made by the constructor or by `start()`."""

    def health(self) -> dict[str, Any]:
        """Return what works and what does not, and why: for people, probes and dashboards; `json.dumps` accepts it.

        In the form of all clients (``docs/operations.rst``). ``partitions`` has those with records under way: how many
        records, the age of the oldest in seconds, and the problem that keeps it from being written;
        ``buffer_available`` is in bytes, ``buffer_waited_for`` whether a call waits for room in the buffer; with a
        `transactional_id`, ``transaction`` has the state, the error, and what the transaction waits for.

        >>> from kafka import KafkaProducer
        >>> from kafka.broker import Broker
        >>> with Broker() as broker, KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        ...     health = producer.health()
        >>> health["ok"], health["problems"], health["partitions"]
        (True, [], {})
        """
        return self._health()

    def __len__(self) -> NoReturn:
        # In confluent-kafka the number of records under way.
        text = f"{type(self).__name__} has no length: health()['partitions'] has the records under way by partition"
        raise TypeError(text)

    def __bool__(self) -> bool:
        return True  # Python would ask __len__

    def _health(self) -> dict[str, Any]:
        raise NotImplementedError

    def _connections(self) -> Client | None:
        return self._calls.core.client

    def _measured(self) -> Metrics | None:
        return self._calls.metrics


class CommonCalls:
    """See the head of this module."""

    core: ProducerCore
    application: Application
    max_block: float
    """The seconds of max_block_ms."""
    metrics: Metrics | None = None
    tracer: ProducerTracer | None = None
    closed = False

    # Waiting…

    async def flush(self, timeout: float | None = None) -> None:
        """Send all records that were added so far, and wait until each is written or given up.

        `timeout` is in seconds; `KafkaTimeoutError` if it was not enough. Errors of records come out of their futures.
        """
        timeout = checked_timeout(timeout, "flush()")
        self.check_open()
        core = self.core
        try:
            with self._measured("flush"):
                await self._run(core.sender.flush(), self._deadline(timeout), "flush()")
        except KafkaTimeoutError as error:
            left = sum(batch.count for batch in core.accumulator.unsettled())
            if not left:
                return
            why = core.reasons()
            raise KafkaTimeoutError(
                f"flush() took longer than {timeout:g} seconds; {counted(left)} left{f': {why}' if why else ''}"
            ) from error

    async def client_instance_id(self, timeout: float | None = None) -> UUID:
        """Return the id that brokers know this client by in its metrics (KIP-714), the same for its life.

        UnsupportedVersionError if no broker has a plugin that takes metrics.
        """
        from kafka._core.telemetry import client_instance_id

        timeout = checked_timeout(timeout, "client_instance_id()")
        deadline = self.core.now() + (self.max_block if timeout is None else timeout)
        return await self._run(
            client_instance_id(self.core.client.telemetry, deadline), deadline, "client_instance_id()"
        )

    async def partitions_for(self, topic: str, timeout: float | None = None) -> set[int]:
        """Return the numbers of a topic's partitions, waiting for metadata for at most `timeout` seconds.

        The default is `max_block_ms`. `send()` to the topic does not wait for metadata afterwards.

        >>> from kafka import KafkaProducer
        >>> from kafka.broker import Broker
        >>> with Broker(topics={"events": 3}) as broker:
        ...     with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        ...         producer.partitions_for("events")
        {0, 1, 2}
        """
        if type(topic) is not str:
            check_topic(topic)
        timeout = checked_timeout(timeout, "partitions_for()")
        state = self.core.accumulator.topics.get(topic)
        if state is None:
            seconds = self.max_block if timeout is None else timeout
            limit = None if timeout is None else f"{timeout:g} seconds"
            state = await self.find_topic(topic, self.core.now() + seconds, limit, to_send=False)
        return set(state.indexes)

    async def find_topic(
        self,
        topic: str,
        deadline: float,
        limit: str | None = None,
        *,
        to_send: bool = True,
        partition: int | None = None,
    ) -> Topic:
        """Return a topic, requesting its metadata if necessary; `to_send` a record there, if that is possible now.

        Metadata without the `partition` is requested once more: it may have been added.
        """
        core = self.core
        self.check_open()
        if to_send:
            self.core.accumulator.check_admits()
        try:
            check_topic(topic)
        except IllegalArgumentError as error:
            # As the cluster would answer: the record's future fails, as with other errors of topics.
            raise InvalidTopicError(str(error)) from None
        if core.on_loop:
            if (known := core.known_topic(topic)) is not None:
                return known
            call = f"send() to topic {topic!r}" if to_send else f"partitions_for({topic!r})"
            raise IllegalStateError(
                f"{call} would wait for the topic's metadata, so a callback cannot call it: call "
                f"partitions_for({topic!r}) once before"
            )
        what = f"finding topic {topic!r}"
        self.core.accumulator.check_outside(what)
        with self._measured("metadata-wait"):
            return await self.application.run(core.find_topic(topic, deadline, limit, partition), deadline + 1, what)

    async def current_health(self) -> dict[str, Any]:
        """Return the health of a producer as the network thread knows it."""
        core = self.core
        if core.loop.closed or core.on_loop:
            return core.health_now()
        return await self._run(core.health(), None, "health()")

    async def purge(self, *, in_flight: bool = False) -> int:
        """Give up all records that are not sent, with `in_flight` also the unanswered ones; return how many.

        Their futures fail with `Cancelled`, or with an error whose ``outcome_unknown`` is true.

        >>> from kafka import KafkaProducer
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=60_000) as producer:
        ...         _ = producer.send("events", b"not meant")
        ...         producer.purge()
        1
        """
        self.check_open()
        return await self._run(self.core.purge(in_flight), None, "purge()")

    def _run(self, coro: Coro[T], deadline: float | None, what: str) -> Coro[T]:
        """Run a coroutine of the core; refuses in a thread that was interrupted within `send()`."""
        try:
            self.core.accumulator.check_outside(what)
        except IllegalStateError:
            coro.close()
            raise
        return self.application.run(coro, deadline, what)

    # Transactions…

    async def init_transactions(self, timeout: float | None = None) -> None:
        """Take over the `transactional_id`: call this once, before the first transaction.

        An open transaction of an earlier producer with this id is aborted, and that producer is fenced. Waits for
        `timeout` seconds, `max_block_ms` by default, then raises `KafkaTimeoutError`; the call can be repeated.

        A call that is interrupted or cancelled, here and below, continues: the same call waits for its end.
        """
        await self.transact(self.transactions.init, "init_transactions()", "txn-init", timeout)

    async def begin_transaction(self) -> None:
        """Open a transaction. Records that are sent until its commit or abort belong to it."""
        await self.transact(self.transactions.begin, "begin_transaction()", "txn-begin", None)

    async def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int | tuple[int, str]],
        group_metadata: ConsumerGroupMetadata | str | None = None,
        *,
        group_id: ConsumerGroupMetadata | str | None = None,
        consumer_group_id: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Commit the offsets of a consumer with the transaction, or not at all.

        `group_metadata` is ``consumer.group_metadata()``, by which the cluster recognises a consumer that its group
        has replaced (KIP-447), or the group's name, which needs a separate `transactional_id` for each input partition.
        (``group_id`` is aiokafka's name of this argument, ``consumer_group_id`` that of older releases.) The offsets
        are the ones of the *next* records to be read: numbers, pairs of a number and a text, or `OffsetAndMetadata`.
        The consumer must not commit itself: ``enable_auto_commit=False``.
        """
        given = (each for each in (group_metadata, group_id, consumer_group_id) if each is not None)
        checked_in = checked_group(next(given, None))
        checked = checked_offsets(offsets)
        work = partial(self.transactions.send_offsets, checked, checked_in)
        with nullcontext() if self.tracer is None else self.tracer.settling("send_offsets_to_transaction"):
            await self.transact(work, "send_offsets_to_transaction()", "txn-send-offsets", timeout)

    async def commit_transaction(self, timeout: float | None = None) -> None:
        """Send the remaining records, wait for them, and commit the transaction.

        When this returns, readers of committed records will see all records of the transaction, and its offsets are
        committed; nothing can undo that. It raises

        * `AbortableTransactionError` if a record or an offset could not be written: call `abort_transaction()`;
        * a `FatalError` (`ProducerFencedError` and others) if this producer cannot continue: close it. Nothing of the
          transaction is visible, unless ``outcome_unknown`` of the error is true;
        * `OutcomeUnknownTimeoutError` after `timeout` seconds, `max_block_ms` by default: call it again.

        >>> from kafka import KafkaProducer
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="mover") as producer:
        ...         producer.init_transactions()
        ...         producer.begin_transaction()
        ...         _ = producer.send("events", b"all or nothing")
        ...         producer.commit_transaction()
        ...     [record.value for record in broker.records("events", committed=True)]
        [b'all or nothing']
        """
        try:
            await self.transact(self.transactions.commit, "commit_transaction()", "txn-commit", timeout)
        except KafkaTimeoutError as error:
            raise OutcomeUnknownTimeoutError(*error.args) from error

    async def abort_transaction(self, timeout: float | None = None) -> None:
        """End the transaction; readers of committed records see nothing of it.

        Records that are not sent yet fail with `TransactionAbortedError`. Waits for `timeout` seconds, `max_block_ms`
        by default, then raises `KafkaTimeoutError`; the call can be repeated.
        """
        await self.transact(self.transactions.abort, "abort_transaction()", "txn-abort", timeout)

    async def abort_because_of(self, error: BaseException) -> None:
        """Abort the transaction of a block that has raised; after Ctrl-C, or cancelled, do not wait long for that.

        If that fails, the error of the application is the one to be raised nevertheless.
        """
        try:
            await self.abort_transaction(None if isinstance(error, Exception) else _ABORT_PATIENCE)
        except KafkaError as second:
            if isinstance(error, AbortableTransactionError):
                raise
            if second is not error:
                _add_note(error, f"abort_transaction() failed after that: {second}")

    @property
    def transactions(self) -> TransactionManager:
        """The transaction manager; IllegalStateError without a transactional_id."""
        found = self.core.transactions
        if found is None:
            raise IllegalStateError(
                "this producer has no transactional_id; transactions need one: KafkaProducer(transactional_id=...)"
            )
        return found

    async def transact(self, work: Callable[[], Coro[None]], what: str, metric: str, timeout: float | None) -> None:
        """Run the work of a transactional call, for `timeout` seconds or max_block_ms.

        The work continues if this ends early, by a timeout or a cancellation: calling again waits for the rest.
        """
        timeout = checked_timeout(timeout, what)
        self.check_open()
        self.core.accumulator.check_outside(what)
        seconds = self.max_block if timeout is None else timeout
        try:
            with self._measured(metric):
                # Made where it runs: Ctrl-C before that would leave a coroutine that was never awaited.
                await self.application.run(deferred(work), self._deadline(seconds), what)
            self.transactions.received(what)
            self._count_end(_RESULTS.get(metric))
        except KafkaTimeoutError as error:
            raise KafkaTimeoutError(self._why_late(what, seconds)) from error

    def _count_end(self, result: str | None) -> None:
        if result is not None and self.core.metrics is not None:
            self.core.metrics.ended(result)

    def _why_late(self, what: str, seconds: float) -> str:
        core = self.core
        from kafka.producer.diagnostics import no_answers

        why = core.transaction_problem() or core.reasons() or no_answers(core.client)
        why = f" ({why})" if why else ""
        outcome = "its outcome is not known yet" if what.startswith("commit") else "it continues"
        return f"{what} took longer than {seconds:g} seconds{why}; {outcome}: call it again, which waits for the rest"

    # For all of them…

    def check_open(self) -> None:
        """Raise where the producer is closed, or was made in another process."""
        self.core.loop.check_usable()
        if self.closed:
            raise ClientClosedError("This producer is closed.")

    def _deadline(self, timeout: float | None) -> float | None:
        return None if timeout is None else self.core.now() + min(timeout, FOREVER)

    @contextmanager
    def _measured(self, call: str) -> Iterator[None]:
        """Record in the metrics how long the block has delayed the application."""
        core = self.core
        began = core.now()
        try:
            yield
        finally:
            if core.metrics is not None:
                core.metrics.waited(call, core.now() - began)


def _add_note(error: BaseException, note: str) -> None:
    """`BaseException.add_note`, which Python has since 3.11."""
    notes = getattr(error, "__notes__", [])
    error.__notes__ = [*notes, note]  # type: ignore[attr-defined]
