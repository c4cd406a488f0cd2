"""The calls of a producer with a `transactional_id`. They check arguments and wait; the work is in `transactions`.

Runs on the threads of the application. Whoever calls `send()` in several threads sees to it that they are done before
one of them commits.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from kafka.errors import (
    AbortableTransactionError,
    IllegalArgumentError,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
    OutcomeUnknownTimeoutError,
)
from kafka.producer.arguments import checked_partition, checked_timeout
from kafka.producer.face import ProducerFace
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition, check_topic

if TYPE_CHECKING:
    from kafka.producer.transactions import Transactions

__all__ = ["TransactionalFace"]


class TransactionalFace(ProducerFace):
    """See the head of this file."""

    def init_transactions(self, timeout: float | None = None) -> None:
        """Take over the `transactional_id`: call this once, before the first transaction.

        What an earlier producer of this id left open is aborted, and that producer is locked out. Waits for `timeout`
        seconds, `max_block_ms` by default, then raises `KafkaTimeoutError`; the call can be repeated.
        """
        self._wait_for(self._transactions.init(), "init_transactions()", "txn-init", timeout)

    def begin_transaction(self) -> None:
        """Open a transaction. What is sent from now on belongs to it, until it is committed or aborted."""
        self._wait_for(self._transactions.begin(), "begin_transaction()", "txn-begin", None)

    def send_offsets_to_transaction(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int],
        group_metadata: ConsumerGroupMetadata | str | None = None,
        *,
        consumer_group_id: str | None = None,
        timeout: float | None = None,
    ) -> None:
        """Let the offsets that a consumer has come to be committed with the transaction, or not at all.

        `group_metadata` is ``consumer.group_metadata()``, by which the cluster recognises a consumer that its group
        has moved on from (KIP-447), or the group's name, which needs a `transactional_id` of its own for each input
        partition (``consumer_group_id`` is the older way to say the latter). The offsets are those of the *next*
        records to be read. The consumer must not commit itself: ``enable_auto_commit=False``.
        """
        group = _checked_group(consumer_group_id if group_metadata is None else group_metadata)
        if not isinstance(offsets, Mapping):
            raise TypeError(f"offsets must be a dict of offsets by TopicPartition, not {type(offsets).__name__}")
        checked = {_checked_partition(where): _checked_offset(offset) for where, offset in offsets.items()}
        self._wait_for(
            self._transactions.send_offsets(checked, group),
            "send_offsets_to_transaction()",
            "txn-send-offsets",
            timeout,
        )

    def commit_transaction(self, timeout: float | None = None) -> None:
        """Send what is left, wait for it, and commit the transaction.

        When this returns, all records and offsets of the transaction will be seen by readers of committed records, and
        nothing can take that back. It raises

        * `AbortableTransactionError` if something of it could not be written: call `abort_transaction()`;
        * a `FatalError` (`ProducerFencedError` and others) if this producer cannot go on: close it. Nothing of the
          transaction is visible, unless the error's ``outcome_unknown`` says otherwise;
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
            self._wait_for(self._transactions.commit(), "commit_transaction()", "txn-commit", timeout)
        except KafkaTimeoutError as error:
            raise OutcomeUnknownTimeoutError(*error.args) from error

    def abort_transaction(self, timeout: float | None = None) -> None:
        """End the transaction so that nothing of it is ever seen by readers of committed records.

        Records that are not sent yet fail with `TransactionAbortedError`. Waits for `timeout` seconds, `max_block_ms`
        by default, then raises `KafkaTimeoutError`; the call can be repeated.
        """
        self._wait_for(self._transactions.abort(), "abort_transaction()", "txn-abort", timeout)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Begin a transaction; commit it at the end of the block, or abort it if the block raises.

        If it cannot be committed it is aborted, and `AbortableTransactionError` comes out: the block can be run again.

        >>> from kafka import KafkaProducer
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="mover") as producer:
        ...         producer.init_transactions()
        ...         with producer.transaction():
        ...             _ = producer.send("events", b"all or nothing")
        ...     [record.value for record in broker.records("events", committed=True)]
        [b'all or nothing']
        """
        self.begin_transaction()
        try:
            yield
        except BaseException as error:
            self._abort_because_of(error)
            raise
        try:
            self.commit_transaction()
        except AbortableTransactionError:
            # What this raises goes first: a fence, or that the abort has to be called again.
            self.abort_transaction()
            raise

    def _abort_because_of(self, error: BaseException) -> None:
        """Abort; if that fails, the application's own error is still the one to be raised."""
        try:
            self.abort_transaction()
        except KafkaError as second:
            if isinstance(error, AbortableTransactionError):
                raise
            if second is not error:
                _add_note(error, f"abort_transaction() failed after that: {second}")

    @property
    def _transactions(self) -> Transactions:
        found = self._core.transactions
        if found is None:
            raise IllegalStateError(
                "this producer has no transactional_id; transactions need one: KafkaProducer(transactional_id=...)"
            )
        return found

    def _wait_for(self, work: Coroutine[Any, Any, None], what: str, metric: str, timeout: float | None) -> None:
        try:
            timeout = checked_timeout(timeout, what)
            self._check_open()
        except BaseException:
            work.close()
            raise
        seconds = self._max_block if timeout is None else timeout
        try:
            with self._measured(metric):
                self._driver.run(work, self._deadline(seconds), what)
        except KafkaTimeoutError as error:
            raise KafkaTimeoutError(self._why_late(what, seconds)) from error

    def _why_late(self, what: str, seconds: float) -> str:
        core = self._core
        from kafka.producer.hindrance import no_answers, transaction_hindrance

        why = transaction_hindrance(core) or core.hindrances() or no_answers(core.client)
        why = f" ({why})" if why else ""
        outcome = "its outcome is not known yet" if what.startswith("commit") else "it goes on"
        return f"{what} took longer than {seconds:g} seconds{why}; {outcome}: call it again, which waits for the rest"


def _checked_group(group: Any) -> ConsumerGroupMetadata:
    if isinstance(group, str):
        group = ConsumerGroupMetadata(group)
    if not isinstance(group, ConsumerGroupMetadata):
        raise TypeError(
            f"group_metadata must be consumer.group_metadata() or the name of a group, not {type(group).__name__}"
        )
    if not group.group_id:
        raise IllegalArgumentError("group_metadata names no group: the consumer needs a group_id")
    if group.generation_id > 0 and not group.member_id:
        raise IllegalArgumentError("group_metadata has a generation but no member: take consumer.group_metadata()")
    return group


def _checked_partition(partition: Any) -> TopicPartition:
    try:
        topic, number = partition
    except (TypeError, ValueError):
        raise TypeError(f"offsets are by TopicPartition, not {partition!r}") from None
    check_topic(topic)
    number = checked_partition(number)
    if number < 0:
        raise IllegalArgumentError(f"the number of a partition must not be negative: {partition!r}")
    return TopicPartition(topic, number)


def _checked_offset(offset: Any) -> OffsetAndMetadata:
    if isinstance(offset, int):
        found = OffsetAndMetadata(offset, "", -1)
    elif isinstance(offset, tuple) and 1 <= len(offset) <= len(OffsetAndMetadata._fields):
        found = OffsetAndMetadata(*offset)
    else:
        raise TypeError(f"an offset is a number or an OffsetAndMetadata, not {offset!r}")
    if not isinstance(found.offset, int) or not isinstance(found.metadata or "", str):
        raise TypeError(f"an OffsetAndMetadata has a number and a str, not {offset!r}")
    if found.offset < 0:
        raise IllegalArgumentError(f"offsets must not be negative: {offset}")
    return found


def _add_note(error: BaseException, note: str) -> None:
    """`BaseException.add_note`, which Python has since 3.11."""
    notes = getattr(error, "__notes__", [])
    error.__notes__ = [*notes, note]  # type: ignore[attr-defined]
