"""TM"""

from __future__ import annotations

import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka.cluster import GROUP, TRANSACTION
from kafka.errors import (
    AbortableTransactionError,
    FatalTransactionError,
    IllegalStateError,
    KafkaError,
    ProducerFencedError,
    TransactionAbortedError,
    UnknownProducerIdError,
    UnsupportedVersionError,
)
from kafka.producer import transaction_protocol as requests
from kafka.producer.transaction_coordinator import (
    AddPartitions,
    CoordinatorClient,
    CoordinatorRequest,
    EndTransaction,
    TransactionalProducerId,
)
from kafka.producer.transaction_protocol import (
    Event,
    Meaning,
    State,
    Step,
    is_allowed,
    meaning_of,
    meaning_of_lost_record,
    next_state,
)
from kafka.protocol.transaction import AddOffsetsToTxnRequest, TxnOffsetCommitRequest

if TYPE_CHECKING:
    from kafka._runtime.tasks import Task
    from kafka.producer.core import ProducerCore
    from kafka.producer.producer_batch import Partition, ProducerBatch
    from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

__all__ = ["TransactionManager"]

log = logging.getLogger(__name__)

_END: Final = 26
_TXN_OFFSET_COMMIT: Final = 28
_FEATURE: Final = "transaction.version"

_SENDING: Final = frozenset({State.IN_TRANSACTION, State.COMMITTING})


class TransactionManager:
    """See the head of this file."""

    def __init__(self, core: ProducerCore, transactional_id: str, timeout: float) -> None:
        self.state = State.UNINITIALIZED
        self.error: KafkaError | None = None
        """Why the transaction has to be aborted, or the producer cannot go on."""
        self.asker = CoordinatorClient(core.client, core.config)
        self.identity = TransactionalProducerId(core, transactional_id, timeout, self.asker)
        self.current = Transaction(0.0, is_v2=False)
        self._core = core
        self._loop = core.loop
        self._enlisting = AddPartitions(self)
        self._ending = EndTransaction(self, core)
        self._work: Task[None] | None = None
        """What the state is busy with."""
        self._offsets: Task[None] | None = None
        """The last send_offsets_to_transaction; the one before it has ended when it begins."""
        self._clearing: Task[None] | None = None
        self._renewing: Task[None] | None = None
        core.accumulator.pause(self._refusal())

    # Calls…

    async def init(self) -> None:
        """Take over the transactional id, once."""
        await self._do(Event.INIT, self._init)

    async def take_over(self, transactional_id: str) -> None:
        """Between two transactions: go on under another id, or under the same as a producer that was just made."""

        async def change() -> None:
            await _quietly(self._renewing)
            self._check_not_failed()
            self.identity.transactional_id = transactional_id
            await self._init()

        await self._do(Event.TAKE_OVER, change)

    async def leave_open(self) -> tuple[requests.Who, bool]:
        """Have all of the transaction written; return what somebody else needs to end it: who, and whether it is v2."""
        await self._core.flush()
        if self._offsets is not None:
            await self._offsets
        if self.state is not State.IN_TRANSACTION:
            raise self._refusal()
        return self.identity.who, self.current.is_v2

    async def begin(self) -> None:
        """Open a transaction; nothing is asked of anybody."""
        self._allow(Event.BEGIN)
        versions = self.asker.versions
        level = 0 if versions is None else versions.features.get(_FEATURE, (0, 0))[1]
        is_v2 = versions is not None and level >= 2 and versions.supports(_END, requests.NEWEST_CLASSIC_END + 1)
        self.current = Transaction(self._loop.time(), is_v2=is_v2)
        self._enlisting.reset()
        self._offsets = self._clearing = None

    async def send_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
    ) -> None:
        """Let a group's offsets be committed with the transaction."""
        versions = self.asker.versions
        if versions is not None and group.member_id:
            self._check_members(versions.supports(_TXN_OFFSET_COMMIT, requests.OFFSETS_KNOW_MEMBERS))
        self._allow(Event.SEND_OFFSETS)
        if offsets:
            task = self._offsets = self._loop.spawn(self._send_offsets(offsets, group, self._offsets), "send offsets")
            await task

    @staticmethod
    def _check_members(supported: bool) -> None:
        if not supported:
            raise UnsupportedVersionError(
                "fencing by the consumer's group membership (KIP-447) needs brokers of Kafka 2.5 or newer; for older "
                "ones give the group's name instead of consumer.group_metadata(), and let each input partition have "
                "a producer with a transactional_id of its own"
            )

    async def commit(self) -> None:
        """Send what is left, then end the transaction: all of it becomes visible."""
        await self._do(Event.COMMIT, self._commit)

    async def abort(self) -> None:
        """End the transaction: nothing of it becomes visible."""
        await self._do(Event.ABORT, self._abort)

    async def wind_up(self) -> None:
        """The producer is being closed: abort what is open, wait for what is ending."""
        if is_allowed(self.state, Event.ABORT):
            await self.abort()
        elif self.state is State.COMMITTING:
            await self.commit()

    async def _do(self, call: Event, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Begin the work of a call, or join the one that goes on, and hear its end."""
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

    def _allow(self, call: Event) -> None:
        if self.error is not None and not is_allowed(self.state, call):
            raise self.error.with_traceback(None)
        self._move(call)

    def _move(self, event: Event) -> None:
        self.state = next_state(self.state, event)
        if event is Event.DONE:
            self.error = None
        if self._core.closed:
            return
        if is_allowed(self.state, Event.SEND):
            self._core.accumulator.admit()
        else:
            self._core.accumulator.pause(self._refusal())

    def _refusal(self) -> KafkaError:
        """Return what `send()` raises in this state."""
        if self.error is not None:
            return self.error
        try:
            next_state(self.state, Event.SEND)
        except IllegalStateError as error:
            return error
        raise AssertionError("records are refused where there is a reason")

    # What goes wrong…

    def trouble(self, cause: BaseException) -> None:
        """The transaction cannot be committed any more."""
        if self.state not in _SENDING:
            return
        if isinstance(cause, AbortableTransactionError):
            self.error = cause
        else:
            self.error = AbortableTransactionError(
                f"The transaction cannot be committed; abort_transaction() lets the producer go on: {cause}"
            )
            self.error.__cause__ = cause
        self._move(Event.TROUBLE)
        self._clear_soon()

    def fail(self, cause: BaseException) -> KafkaError:
        """The producer cannot go on; returns the error that says so."""
        if self.state is not State.FAILED:
            if isinstance(cause, FatalTransactionError):
                self.error = cause
            elif isinstance(cause, KafkaError) and meaning_of(cause, Step.END) is Meaning.FENCED:
                self.error = ProducerFencedError(
                    f"another producer has taken over transactional_id {self.identity.transactional_id!r}, or the "
                    f"transaction took longer than transaction_timeout_ms; close this producer"
                )
            else:
                self.error = FatalTransactionError(f"This producer cannot go on, close it: {cause}")
            if self.error is not cause:
                self.error.__cause__ = cause
            self._work = None
            self._move(Event.FAILURE)
            self._clear_soon()
        assert self.error is not None
        return self.error

    def take_error(self, error: KafkaError, question: CoordinatorRequest) -> KafkaError:
        """Do what an error at a step before the end means; returns what to raise."""
        self.current.late = self.current.late or question.unanswered
        meaning = meaning_of(error, question.step)
        if meaning is Meaning.FENCED and self._ending.ran_out_of_time():
            self.trouble(self._ending.out_of_time(error))
        elif meaning in {Meaning.FENCED, Meaning.FATAL}:
            self.fail(error)
        else:
            self.current.lost_id = self.current.lost_id or meaning is Meaning.LOST_ID
            self.trouble(error)
        return self.error or error

    # What the sender asks and tells…

    @property
    def is_sending(self) -> bool:
        """Whether batches may go out."""
        return self.state in _SENDING

    def admits(self, partition: Partition) -> bool:
        """Whether a partition may be written to now; sees to it that it may be later."""
        if self.state not in _SENDING:
            return False
        if self.current.is_v2:
            self.current.asked = True
            return True
        return self._enlisting.admits(partition)

    def newest_produce(self) -> int | None:
        """The last version of Produce to use; None is whatever the broker has."""
        return None if self.current.is_v2 else requests.NEWEST_CLASSIC_PRODUCE

    def written(self) -> None:
        """A leader has taken a batch."""
        self.current.confirmed = True

    def unanswered(self) -> None:
        """A produce request has no definite answer: it may still arrive."""
        self.current.late = True

    def lost(self, batch: ProducerBatch, error: BaseException) -> None:
        """A batch was given up, so there is nothing whole to commit."""
        current = self.current
        current.broken = current.broken or batch.sealed is not None
        current.unsure = current.unsure or (batch.unsure and not isinstance(error, UnknownProducerIdError))
        if not isinstance(error, TransactionAbortedError) and self.state in _SENDING:
            if meaning_of_lost_record(error) is Meaning.ABORT:
                self.trouble(error)
            else:
                self.fail(error)

    def aborted(self, cause: BaseException | None) -> TransactionAbortedError:
        """Return the error of records whose transaction is not committed."""
        if isinstance(cause, TransactionAbortedError):
            return cause
        error = TransactionAbortedError("The transaction of this record was aborted.")
        error.__cause__ = cause or self.error
        return error

    # Working…

    async def _init(self) -> None:
        try:
            await self.identity.obtain(lambda: not self._core.closed)
        except KafkaError:
            self._work = None
            self._move(Event.REFUSED)
            raise

    async def _send_offsets(
        self,
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: ConsumerGroupMetadata,
        before: Task[None] | None,
    ) -> None:
        if before is not None:
            await before
        await self.ready()
        current, who, name = self.current, self.identity.who, str(group.group_id)
        current.asked = True
        if not current.is_v2 and name not in current.groups:
            await self._ask_in_transaction(
                TRANSACTION,
                who.transactional_id,
                AddOffsetsToTxnRequest,
                lambda version: requests.add_offsets_request(version, who, name),
                requests.plain_error,
            )
            current.groups.add(name)
        await self._ask_in_transaction(
            GROUP,
            name,
            TxnOffsetCommitRequest,
            lambda version: requests.commit_offsets_request(version, who, offsets, group),
            requests.worst_of_offsets,
            newest=2**15 if current.is_v2 else requests.NEWEST_CLASSIC_OFFSETS,
        )

    async def _ask_in_transaction(
        self, kind: int, key: str, request_type: Any, build: Any, read: Any, newest: int = 2**15
    ) -> None:
        question = CoordinatorRequest(
            Step.OFFSETS, kind, key, request_type, build, read, newest=newest, wanted=lambda: self.is_sending
        )
        try:
            await self.asker.ask(question)
        except KafkaError as error:
            raise self.take_error(error, question) from error
        self.current.late = self.current.late or question.unanswered
        self.current.confirmed = True

    async def ready(self) -> None:
        """Wait until the producer has its epoch."""
        if self._renewing is not None:
            await self._renewing

    async def _commit(self) -> None:
        await self._core.flush()
        if self._offsets is not None:
            await self._offsets
        if self.state is not State.COMMITTING:
            assert self.error is not None
            raise self.error.with_traceback(None)
        current = self.current
        if not current.asked:
            return
        await self.ready()
        await self._ending.end(committed=True)
        if not current.is_v2 and current.late and self.identity.can_renew:
            # The commit stands, whatever becomes of this. The next transaction waits for it.
            self._renewing = self._loop.spawn(self._ending.renew(), "get another epoch")

    async def _abort(self) -> None:
        self._clear_soon()
        assert self._clearing is not None
        await self._clearing
        await self._enlisting.over()
        if self._offsets is not None:
            await _quietly(self._offsets)
        await _quietly(self._renewing)
        self._check_not_failed()
        current = self.current
        if current.asked and not (current.lost_id or current.ran_out):
            await self._ending.end(committed=False)
        if current.lost_id or current.ran_out or (not current.is_v2 and (current.late or current.broken)):
            await self._ending.renew()

    def _check_not_failed(self) -> None:
        if self.state is State.FAILED:
            assert self.error is not None
            raise self.error.with_traceback(None)

    # Clearing away what will not be sent…

    def _clear_soon(self) -> None:
        """Give up all batches: at once those that are not sent, the others when their answers are in."""
        if self._clearing is None and not self._core.closed:
            self._clearing = self._loop.spawn(self._clear(), "give up the transaction's records")

    async def _clear(self) -> None:
        sender = self._core.sender
        sender.abandon(self.aborted(None), in_flight=False)
        await sender.quiet()
        # What came back to the queue meanwhile, to be sent again.
        sender.abandon(self.aborted(None))

    # How it is…

    def health(self) -> dict[str, Any]:
        """Return what people want to know."""
        return {
            "transactional_id": self.identity.transactional_id,
            "state": self.state.value,
            "error": None if self.error is None else str(self.error),
            "waiting_for": self.asker.waiting_for,
            "producer_id": self.identity.producer_id,
            "epoch": self.identity.epoch,
        }


async def _quietly(task: Task[None] | None) -> None:
    """Wait for a task whose outcome was told already."""
    if task is not None:
        try:
            await task
        except KafkaError as error:
            log.debug("Before the abort: %s", error)


class Transaction:
    """One transaction: what may be known of it outside."""

    __slots__ = (
        "asked",
        "broken",
        "confirmed",
        "groups",
        "is_v2",
        "late",
        "lost_id",
        "ran_out",
        "started",
        "unsure",
    )

    def __init__(self, started: float, *, is_v2: bool) -> None:
        self.started = started
        self.is_v2 = is_v2
        self.groups: set[str] = set()
        """Added at the coordinator."""
        self.asked = False
        """Something was sent that makes it known to the coordinator."""
        self.confirmed = False
        """The coordinator has it for sure."""
        self.late = False
        """A request of it was not answered, and may still arrive somewhere."""
        self.broken = False
        """A sequence number was spent on a batch that is not in the log."""
        self.unsure = False
        """One was spent on a batch of which nobody knows."""
        self.lost_id = False
        """The coordinator does not go on with this producer id and epoch: others are needed."""
        self.ran_out = False
        """The coordinator has aborted it because it took too long."""
