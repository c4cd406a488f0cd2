"""Transactions: which calls are possible, what follows from errors, and how each transaction ends.

Runs on the loop only. Each call moves the state (`transaction_protocol`) and leaves its work to a task: a caller that
times out, or is interrupted, leaves while the work continues, and calling again waits for the rest. The state is busy
(INITIALIZING, COMMITTING, ABORTING) until a call has waited for the end. If that call is interrupted at this very
moment, its caller does not know the outcome (`unreported`): the same call then returns it, another one is refused.

There are two ways to run a transaction. *Classic*: each partition and group is added at the coordinator before
anything is written to it, and the epoch stays as it is. *Version two* (KIP-890), where the cluster has finalized it:
the first write adds, and each end gives the producer another epoch, so that no late request can get into the next
transaction. Classic gets there by requesting an epoch after every transaction with a request that may still be under
way: otherwise that request could end, or join, a later transaction.

A transaction that cannot be committed fails at once: the state is MUST_ABORT, no record is accepted, nothing more is
sent, records that wait fail.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from kafka.errors import (
    AbortableTransactionError,
    FatalTransactionError,
    IllegalStateError,
    InvalidTxnStateError,
    KafkaError,
    ProducerFencedError,
    TransactionAbortedError,
    TransactionOutcomeUnknownError,
    UnknownProducerIdError,
    UnsupportedVersionError,
)
from kafka.producer import transaction_protocol as requests
from kafka.producer.transaction_coordinator import (
    CoordinatorClient,
    ResponseT,
    TransactionalProducerId,
    end_transaction,
)
from kafka.producer.transaction_protocol import (
    Event,
    Meaning,
    State,
    Step,
    Transaction,
    is_allowed,
    meaning_of,
    meaning_of_lost_record,
    next_state,
)
from kafka.protocol.produce import ProduceRequest
from kafka.protocol.registry import ApiKey
from kafka.protocol.transaction import AddOffsetsToTxnRequest, AddPartitionsToTxnRequest, TxnOffsetCommitRequest

if TYPE_CHECKING:
    from kafka._runtime.tasks import Coro, Task
    from kafka.config import Config
    from kafka.producer.partition import Partition
    from kafka.producer.producer_batch import ProducerBatch
    from kafka.producer.sender import Sender
    from kafka.protocol.api import Request
    from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

__all__ = ["TransactionManager"]

log = logging.getLogger(__name__)

_FEATURE: Final = "transaction.version"

_SENDING: Final = frozenset({State.IN_TRANSACTION, State.COMMITTING})
_OUTCOMES: Final = {Event.COMMIT: "committed", Event.ABORT: "aborted"}


class TransactionManager:
    """The transactions of one producer. See the head of this module."""

    def __init__(self, sender: Sender, config: Config) -> None:
        client, accumulator = sender.client, sender.accumulator
        self.sender = sender
        self.state = State.UNINITIALIZED
        self.error: KafkaError | None = None
        """Why the transaction must be aborted, or the producer cannot continue."""
        self.coordinator = CoordinatorClient(client, config)
        self.producer = TransactionalProducerId(
            sender, self.coordinator, config["transactional_id"], config.seconds("transaction_timeout_ms")
        )
        self.current = Transaction(0.0, is_v2=False)
        self._accumulator = accumulator
        self._loop = client.loop
        self.unreported: Event | None = None
        """The call that has moved the state last, until its caller has received that."""
        self._added: set[TopicPartition] = set()
        """The partitions that are part of a classic transaction."""
        self._to_add: dict[TopicPartition, Partition] = {}
        """Partitions whose batches wait until they are added."""
        self._adding: Task[None] | None = None
        self._work: Task[None] | None = None
        """The task that ends the present state."""
        self._offsets: Task[None] | None = None
        """The last send_offsets_to_transaction; the one before it has ended when it begins."""
        self._clearing: Task[None] | None = None
        self._renewing: Task[None] | None = None
        accumulator.pause(self._refusal())

    # Calls…

    async def init(self) -> None:
        """Take over the transactional id, once."""
        await self._do(Event.INIT, self._init)

    async def take_over(self, transactional_id: str) -> None:
        """Between two transactions: continue under another id, or under the same one as a new producer."""

        async def change() -> None:
            await _quietly(self._renewing)
            self._check_not_failed()
            self.producer.transactional_id = transactional_id
            await self._init()

        await self._do(Event.TAKE_OVER, change)

    async def leave_open(self) -> tuple[requests.Who, bool]:
        """Write all of the transaction; return what another producer needs to end it: the id, and whether it is v2."""
        await self.sender.flush()
        if self._offsets is not None:
            await self._offsets
        if self.state is not State.IN_TRANSACTION:
            raise self._refusal().with_traceback(None)
        return self.producer.who, self.current.is_v2

    async def begin(self) -> None:
        """Open a transaction; this sends no request."""
        if self.unreported is Event.BEGIN:
            return
        self._allow(Event.BEGIN)
        self.unreported = Event.BEGIN
        versions = self.coordinator.versions
        level = 0 if versions is None else versions.features.get(_FEATURE, (0, 0))[1]
        is_v2 = versions is not None and level >= 2 and versions.reaches(ApiKey.EndTxn, requests.NEWEST_CLASSIC_END + 1)
        self.current = Transaction(self._loop.time(), is_v2=is_v2)
        self._added.clear()
        self._to_add.clear()
        self._offsets = self._clearing = None

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> None:
        """Let a group's offsets be committed with the transaction."""
        versions = self.coordinator.versions
        since = requests.OFFSETS_KNOW_MEMBERS
        if group.member_id and versions is not None and not versions.reaches(ApiKey.TxnOffsetCommit, since):
            raise UnsupportedVersionError(
                "fencing by the consumer's group membership (KIP-447) needs brokers of Kafka 2.5 or newer; for older "
                "ones give the group's name instead of consumer.group_metadata(), and use one producer, with its "
                "own transactional_id, for each input partition"
            )
        self._allow(Event.SEND_OFFSETS)
        if offsets:
            task = self._offsets = self._loop.spawn(self._send_offsets(offsets, group, self._offsets), "send offsets")
            await task

    async def commit(self) -> None:
        """Send the remaining batches, then end the transaction: all of it becomes visible."""
        await self._do(Event.COMMIT, self._commit)

    async def abort(self) -> None:
        """End the transaction: nothing of it becomes visible."""
        await self._do(Event.ABORT, self._abort)

    async def finish(self) -> None:
        """Abort an open transaction, or wait for one that is ending: the producer is being closed."""
        if is_allowed(self.state, Event.ABORT):
            await self.abort()
        elif self.state is State.COMMITTING:
            await self.commit()

    async def _do(self, call: Event, work: Callable[[], Coro[None]]) -> None:
        """Begin the work of a call, or join the work that is under way, and wait for its end."""
        if self.unreported is call is not Event.TAKE_OVER:  # which may name another id
            return
        before = self.state
        self._allow(call)
        if self.state is not before:
            self._work = self._loop.spawn(work(), call.value)
        task = self._work
        assert task is not None
        await task
        if self._work is task:
            self._work = None
            self._move(Event.DONE)
            self.unreported = call

    def received(self, call: str) -> None:
        """Remember that the caller has received the outcome of its call."""
        if self.unreported is not None and self.unreported.value == call:
            self.unreported = None

    def _allow(self, call: Event) -> None:
        if not is_allowed(self.state, call):
            if self.error is not None:
                raise self.error.with_traceback(None)
            if self.unreported in _OUTCOMES:
                raise IllegalStateError(
                    f"cannot call {call.value}: {self.unreported.value}, which was interrupted, has ended, and the "
                    f"transaction is {_OUTCOMES[self.unreported]}"
                )
        self._move(call)

    def _move(self, event: Event) -> None:
        self.state = next_state(self.state, event)
        self.unreported = None
        if event is Event.DONE:
            self.error = None
        if is_allowed(self.state, Event.SEND):
            self._accumulator.admit()
        else:
            self._accumulator.pause(self._refusal())

    def _refusal(self) -> KafkaError:
        """Return what `send()` raises in this state."""
        if self.error is not None:
            return self.error
        try:
            next_state(self.state, Event.SEND)
        except IllegalStateError as error:
            return error
        raise AssertionError("records are refused where there is a reason")

    # Errors…

    def must_abort(self, cause: BaseException) -> None:
        """Let the transaction end by an abort only."""
        if self.state not in _SENDING:
            return
        if isinstance(cause, AbortableTransactionError):
            self.error = cause
        else:
            self.error = AbortableTransactionError(
                f"The transaction cannot be committed; abort_transaction() lets the producer continue: {cause}"
            )
            self.error.__cause__ = cause
        self._move(Event.ABORTABLE_ERROR)
        self._clear_soon()

    def fatal(self, cause: BaseException) -> KafkaError:
        """Let the producer end; return the error that says why."""
        if self.state is not State.FAILED:
            if isinstance(cause, FatalTransactionError):
                self.error = cause
            elif isinstance(cause, KafkaError) and meaning_of(cause, Step.END) is Meaning.FENCED:
                self.error = ProducerFencedError(
                    f"another producer has taken over transactional_id {self.producer.transactional_id!r}, or the "
                    f"transaction took longer than transaction_timeout_ms; close this producer"
                )
            else:
                self.error = FatalTransactionError(f"This producer cannot continue, close it: {cause}")
            if self.error is not cause:
                self.error.__cause__ = cause
            self._work = None
            self._move(Event.FATAL_ERROR)
            self._clear_soon()
        assert self.error is not None
        return self.error

    # For the sender…

    @property
    def is_sending(self) -> bool:
        """Whether batches may be sent."""
        return self.state in _SENDING

    def admits(self, partition: Partition) -> bool:
        """Whether a partition may be written to now; if not, it is added, and the sender looks at it again."""
        if self.state not in _SENDING:
            return False
        if self.current.is_v2:
            self.current.registration_sent = True
            return True
        if partition.tp in self._added:
            return True
        self._to_add[partition.tp] = partition
        if self._adding is None:
            self._adding = self._loop.spawn(self._add_partitions(), "add partitions")
        return False

    def newest_produce(self) -> int:
        """Return the last version of Produce to use."""
        return requests.newest_version(ProduceRequest, is_v2=self.current.is_v2)

    def written(self) -> None:
        """Remember that a leader has written a batch."""
        self.current.registered = True

    def unanswered(self) -> None:
        """Remember that a produce request has no definite answer: it may still arrive."""
        self.current.has_unanswered = True

    def lost(self, batch: ProducerBatch, error: BaseException) -> None:
        """Let the transaction end without a commit, as a batch was given up."""
        current = self.current
        current.sequence_gap = current.sequence_gap or batch.sealed is not None
        current.outcome_unknown = current.outcome_unknown or (
            batch.unsure and not isinstance(error, UnknownProducerIdError)
        )
        if not isinstance(error, TransactionAbortedError) and self.state in _SENDING:
            if meaning_of_lost_record(error) is Meaning.ABORT:
                self.must_abort(error)
            else:
                self.fatal(error)

    def aborted(self, cause: BaseException | None) -> TransactionAbortedError:
        """Return the error of records whose transaction is not committed."""
        if isinstance(cause, TransactionAbortedError):
            return cause
        cause = cause or self.error
        error = TransactionAbortedError("The transaction of this record was aborted" + (f": {cause}" if cause else ""))
        error.__cause__ = cause
        return error

    # The steps of a transaction…

    async def _init(self) -> None:
        try:
            await self.producer.obtain(self._is_open)
        except KafkaError:
            self._work = None
            self._move(Event.REFUSED)
            raise

    async def _add_partitions(self) -> None:
        """Add partitions to a classic transaction before they are written to: in one request all that wait by then."""
        try:
            await self._ready()
            while self._to_add and self.is_sending:
                some, who = dict(self._to_add), self.producer.who
                build = partial(requests.add_partitions_request, who=who, partitions=some)
                await self._request(Step.ADD, who.transactional_id, AddPartitionsToTxnRequest, build)
                self._added.update(some)
                for tp, partition in some.items():
                    self._to_add.pop(tp, None)
                    partition.schedule()
        except KafkaError as error:
            log.debug("Partitions were not added: %s", error)  # the end of the transaction raises it
        finally:
            self._adding = None

    async def _send_offsets(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: ConsumerGroupMetadata,
        before: Task[None] | None,
    ) -> None:
        if before is not None:
            await before
        await self._ready()
        current, who, name = self.current, self.producer.who, str(group.group_id)
        current.registration_sent = True
        if not current.is_v2 and name not in current.groups:
            add_group = partial(requests.add_offsets_request, who=who, group_id=name)
            await self._request(Step.ADD_GROUP, who.transactional_id, AddOffsetsToTxnRequest, add_group)
            current.groups.add(name)
        commit = partial(requests.commit_offsets_request, who=who, offsets=offsets, group=group)
        await self._request(Step.OFFSETS, name, TxnOffsetCommitRequest, commit)

    async def _request(
        self,
        step: Step,
        key: str,
        request_type: type[Request[ResponseT]],
        build: Callable[[int], Request[ResponseT]],
    ) -> None:
        """Send a request that makes something part of the transaction; an error decides how that can end."""
        current = self.current
        current.registration_sent = True
        try:
            await self.coordinator.request(step, key, request_type, build, current, lambda: self.is_sending)
        except KafkaError as error:
            meaning = meaning_of(error, step)
            if meaning is Meaning.FENCED and self._has_timed_out():
                self.must_abort(self._timeout_error(error))
            elif meaning in {Meaning.FENCED, Meaning.FATAL}:
                self.fatal(error)
            else:
                current.lost_id = current.lost_id or meaning is Meaning.LOST_ID
                self.must_abort(error)
            raise self.error or error from error
        current.registered = True

    async def _ready(self) -> None:
        """Wait until the producer has its epoch."""
        if self._renewing is not None:
            await self._renewing

    async def _commit(self) -> None:
        await self.sender.flush()
        if self._offsets is not None:
            await self._offsets
        if self.state is not State.COMMITTING:
            assert self.error is not None
            raise self.error.with_traceback(None)
        current = self.current
        if not current.registration_sent:
            return
        await self._ready()
        await self._end(committed=True)
        if not current.is_v2 and current.has_unanswered and self.producer.can_renew:
            # The commit stands, however this ends. The next transaction waits for it.
            self._renewing = self._loop.spawn(self._renew_epoch(), "get another epoch")

    async def _abort(self) -> None:
        self._clear_soon()
        assert self._clearing is not None
        await self._clearing
        self._to_add.clear()
        if self._adding is not None:
            await self._adding
        if self._offsets is not None:
            await _quietly(self._offsets)
        await _quietly(self._renewing)
        self._check_not_failed()
        current = self.current
        if current.registration_sent and not (current.lost_id or current.timed_out):
            await self._end(committed=False)
        has_leftovers = not current.is_v2 and (current.has_unanswered or current.sequence_gap)
        if current.lost_id or current.timed_out or has_leftovers:
            await self._renew_epoch()

    async def _end(self, *, committed: bool) -> None:
        """Commit or abort at the coordinator; raises what the application must know."""
        current = self.current
        try:
            response = await end_transaction(self.coordinator, self.producer.who, current, committed=committed)
        except KafkaError as error:
            if committed:
                raise self._not_committed(error) from error
            self._not_aborted(error)
            return
        if current.is_v2 and response.producer_id >= 0:
            self.producer.accept(response.producer_id, response.producer_epoch)

    def _not_committed(self, error: KafkaError) -> KafkaError:
        """The coordinator refuses to commit; returns what to raise."""
        if self.current.maybe_ended:
            # It may have committed at an earlier attempt, and refuse the repetition now.
            return self.fatal(
                TransactionOutcomeUnknownError(
                    f"Whether the transaction was committed is not known: {error}; close this producer, and find out "
                    f"from what is in the log how far it came"
                )
            )
        meaning = meaning_of(error, Step.END)
        # In version two, INVALID_TXN_STATE answers a commit of what the coordinator has aborted without a request.
        if (meaning is Meaning.FENCED or isinstance(error, InvalidTxnStateError)) and self._has_timed_out():
            self.must_abort(self._timeout_error(error))
        elif meaning in {Meaning.FENCED, Meaning.FATAL}:
            self.fatal(error)
        else:
            self.current.lost_id = meaning is Meaning.LOST_ID
            self.must_abort(error)
        return self.error or error

    def _not_aborted(self, error: KafkaError) -> None:
        """The coordinator refuses to abort: there is nothing to abort any more, or the producer is fenced."""
        current, meaning = self.current, meaning_of(error, Step.END)
        if meaning is Meaning.LOST_ID:
            current.lost_id = True
        elif meaning is Meaning.FENCED and not current.maybe_ended and self._has_timed_out():
            name = self.producer.transactional_id
            log.info("The transaction of %s took too long: the coordinator has aborted it already", name)
        elif isinstance(error, InvalidTxnStateError) and not current.registered:
            # The requests that were sent have not registered it at the coordinator, and may do so later.
            current.lost_id = True
        else:
            raise self.fatal(error) from error

    async def _renew_epoch(self) -> None:
        """Get an epoch that no request of the past has (KIP-360)."""
        if not self.producer.can_renew:
            self._reset_sequences()
            return
        try:
            await self.producer.renew_epoch(ahead=int(self.current.timed_out), wanted=self._is_open)
        except KafkaError as error:
            raise self.fatal(error) from error

    def _reset_sequences(self) -> None:
        """Before 2.5 the numbers continue from what each leader has; where that is not known, the producer ends."""
        current = self.current
        if current.outcome_unknown or current.lost_id:
            unknown = "records were sent and never answered for"
            why = unknown if current.outcome_unknown else "the coordinator has lost it"
            raise self.fatal(
                FatalTransactionError(
                    f"The transaction is aborted, but {why}, and brokers before 2.5 let no producer continue after "
                    "that: close this one and make another"
                )
            )
        for topic in self._accumulator.all_topics():
            for partition in topic.ordered:
                partition.next_sequence = partition.acknowledged
                partition.sequence_gap = False

    def _has_timed_out(self) -> bool:
        """Whether a fence is the coordinator's own, for a transaction that took longer than transaction_timeout_ms.

        It ends such a transaction under the next epoch, which it gives to no producer: a newer producer gets the one
        after that. So a request for another epoch with that one in hand succeeds if, and only if, no producer has taken
        over. That holds only if the coordinator knew the transaction, and was not asked to end it before.
        """
        current = self.current
        is_late = self._loop.time() - current.started >= self.producer.timeout
        current.timed_out = is_late and current.registered and self.producer.can_renew
        return current.timed_out

    def _timeout_error(self, cause: KafkaError) -> AbortableTransactionError:
        error = AbortableTransactionError(
            f"The transaction took longer than transaction_timeout_ms ({self.producer.timeout * 1000:.0f}), so the "
            f"coordinator has aborted it; abort_transaction() lets the producer continue, if no other has taken over"
        )
        error.__cause__ = cause
        return error

    def _is_open(self) -> bool:
        return not self._accumulator.closed

    def _check_not_failed(self) -> None:
        if self.state is State.FAILED:
            assert self.error is not None
            raise self.error.with_traceback(None)

    # Giving up the batches of a transaction…

    def _clear_soon(self) -> None:
        """Give up all batches: the unsent ones at once, the others when their answers have arrived."""
        if self._clearing is None and not self._accumulator.closed:
            self._clearing = self._loop.spawn(self._clear(), "give up the transaction's records")

    async def _clear(self) -> None:
        sender = self.sender
        sender.abandon(self.aborted(None), in_flight=False)
        await sender.quiet()
        # Batches that returned to the queue meanwhile, to be sent again.
        sender.abandon(self.aborted(None))

    # Health…

    def health(self) -> dict[str, Any]:
        """Return the part of `health()` that is about transactions."""
        return {
            "transactional_id": self.producer.transactional_id,
            "state": self.state.value,
            "error": None if self.error is None else str(self.error),
            "waiting_for": self.coordinator.waiting_for,
            "producer_id": self.producer.producer_id,
            "epoch": self.producer.epoch,
        }


async def _quietly(task: Task[None] | None) -> None:
    """Wait for a task whose outcome has been raised elsewhere."""
    if task is not None:
        try:
            await task
        except KafkaError as error:
            log.debug("Before the abort: %s", error)
