"""TC"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kafka._core.client import COORDINATOR
from kafka._runtime.timers import Backoff
from kafka.cluster import TRANSACTION
from kafka.errors import (
    AbortableTransactionError,
    FatalTransactionError,
    InvalidTxnStateError,
    KafkaError,
    KafkaTimeoutError,
    TransactionOutcomeUnknownError,
    UnsupportedVersionError,
)
from kafka.producer.diagnostics import no_answers
from kafka.producer.idempotence import ProducerId
from kafka.producer.transaction_protocol import (
    NEWEST_ADD_PARTITIONS,
    NEWEST_CLASSIC_END,
    NEWEST_INIT,
    Meaning,
    Step,
    Who,
    add_partitions_request,
    end_request,
    init_request,
    may_have_happened,
    meaning_of,
    plain_error,
    worst_of_partitions,
)
from kafka.protocol.transaction import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka._runtime.tasks import Task
    from kafka.config import Config
    from kafka.net.versions import BrokerVersions
    from kafka.producer.core import ProducerCore
    from kafka.producer.producer_batch import Partition
    from kafka.producer.transaction_manager import Transaction, TransactionManager
    from kafka.structs import TopicPartition

__all__ = [
    "AddPartitions",
    "CoordinatorClient",
    "CoordinatorRequest",
    "EndTransaction",
    "TransactionalProducerId",
    "end_request_of",
    "init_request_of",
]

log = logging.getLogger(__name__)

# Markers are written within milliseconds, so the first wait for them is short: in seconds.
_SOON: Final = 0.005
_WORTH_TELLING: Final = 4
"""Failures in a row after which somebody should hear of it: about a second, with the default backoff."""


class CoordinatorRequest:
    """A request to a coordinator, and what became of the attempts to ask it."""

    __slots__ = ("build", "doubtful", "key", "kind", "newest", "read", "request_type", "step", "unanswered", "wanted")

    def __init__(
        self,
        step: Step,
        kind: int,
        key: str,
        request_type: Any,
        build: Callable[[int], Any],
        read: Callable[[Any], KafkaError | None],
        newest: int = 2**15,
        wanted: Callable[[], bool] = lambda: True,
        doubtful: bool = False,
    ) -> None:
        self.step = step
        self.kind = kind
        """GROUP or TRANSACTION."""
        self.key = key
        self.request_type = request_type
        self.build = build
        """Makes the request of a version."""
        self.read = read
        """Finds the error in a response."""
        self.newest = newest
        """The last version to use, whatever the broker has."""
        self.wanted = wanted
        """Whether to ask again after an error that may pass."""
        self.doubtful = doubtful
        """An earlier attempt may have been carried out, whatever the last answer says."""
        self.unanswered = False
        """An attempt has no answer: it may still arrive at the coordinator."""


class CoordinatorClient:
    """See the head of this file."""

    def __init__(self, client: Client, config: Config) -> None:
        self.versions: BrokerVersions | None = None
        """What the coordinator that was asked last speaks."""
        self.waiting_for: str | None = None
        """What keeps the present question from its answer, in words; None while nothing does."""
        self.asking: str | None = None
        """What is being asked for, in words."""
        self._waited_for: str | None = None
        self._client = client
        self._loop = client.loop
        limit = config.seconds("retry_backoff_max_ms")
        self._backoff = Backoff(config.seconds("retry_backoff_ms"), limit, self._loop.rng)
        self._short = Backoff(_SOON, config.seconds("retry_backoff_ms"), self._loop.rng)

    async def ask(self, question: CoordinatorRequest) -> Any:
        """Return the response that has no error; raises an error that does not pass by itself."""
        failures = 0
        self.asking, self._waited_for = question.step.value, None
        try:
            while True:
                try:
                    response = await self._send(question)
                    error = question.read(response)
                except KafkaError as failed:
                    error = failed
                if error is None:
                    return response
                failures += 1
                await self._pause(question, error, failures)
        finally:
            self.waiting_for = self.asking = None

    def too_late(self, what: str, seconds: float) -> KafkaTimeoutError:
        """Return the error of something that was asked for and did not come within so many seconds."""
        why = self._waited_for or no_answers(self._client)
        return KafkaTimeoutError(f"{what} took longer than {seconds:g} seconds{f': {why}' if why else ''}")

    async def _send(self, question: CoordinatorRequest) -> Any:
        client = self._client
        deadline = self._loop.time() + client.settings.request_timeout
        node_id = await client.coordinator(question.kind, question.key, deadline)
        link = client.link(node_id, COORDINATOR)
        await client.open(link, deadline)
        assert link.versions is not None
        self.versions = link.versions
        version = min(link.versions.version_for(question.request_type), question.newest)
        return await link.submit(question.build(version), deadline - self._loop.time())

    async def _pause(self, question: CoordinatorRequest, error: KafkaError, failures: int) -> None:
        """Wait before the next attempt; raise the error if there is to be none."""
        question.doubtful = question.doubtful or may_have_happened(error)
        question.unanswered = question.unanswered or error.outcome_unknown
        meaning = meaning_of(error, question.step)
        if not meaning.passes or not question.wanted():
            raise error
        if meaning is Meaning.SOON:
            await self._loop.sleep(self._short.delay(failures))
            return
        self.waiting_for = self._waited_for = f"{question.step.value}: {error}"
        # Not what passes in an instant, as every coordinator has it when it starts; then each minute or so.
        if failures == _WORTH_TELLING or failures % 60 == 0:
            log.warning("Transaction of %s waits for %s", question.key, self.waiting_for)
        if meaning is Meaning.LOOK_UP:
            self._client.cluster.forget_coordinator(question.kind, question.key)
        await self._loop.sleep(self._backoff.delay(failures))


_INIT_PRODUCER_ID: Final = 22
_NOBODY: Final = -1


def init_request_of(expected: Who, timeout: float, wanted: Callable[[], bool] = lambda: True) -> CoordinatorRequest:
    """Return what is asked of the coordinator for a transactional id: by who has it, or without a producer id anew."""
    return CoordinatorRequest(
        Step.INIT,
        TRANSACTION,
        expected.transactional_id,
        InitProducerIdRequest,
        lambda version: init_request(version, expected, timeout),
        plain_error,
        newest=NEWEST_INIT,
        wanted=wanted,
    )


class TransactionalProducerId(ProducerId):
    """Waits to be told: `init_transactions()` and each end of a transaction say who the producer is."""

    def __init__(self, core: ProducerCore, transactional_id: str, timeout: float, asker: CoordinatorClient) -> None:
        super().__init__(core, wanted=True, insisted=True)
        self.transactional_id = transactional_id
        self.timeout = timeout
        """Seconds that a transaction may take."""
        self._asker = asker

    @property
    def who(self) -> Who:
        """The producer as requests name it."""
        return Who(self.transactional_id, self.producer_id, self.epoch)

    def check_supported(self) -> None:
        """Raise if the brokers are too old."""
        versions = self._core.client.versions
        if versions is not None and not versions.supports(_INIT_PRODUCER_ID):
            release = ".".join(map(str, versions.release))
            raise UnsupportedVersionError(
                f"transactions (transactional_id) need brokers of Kafka 0.11 or newer; this one is {release}"
            )

    def ready(self) -> bool:
        """Whether batches can be numbered."""
        return self.producer_id != _NOBODY

    def renew(self) -> None:
        """Nothing that a batch meets changes the id: the transaction is aborted first."""

    def take(self, producer_id: int, epoch: int) -> None:
        """Go on as who the coordinator says."""
        self.producer_id, self.epoch = producer_id, epoch
        self._core.sender.resume()

    async def obtain(self, wanted: Callable[[], bool]) -> None:
        """Take over the transactional id: what an earlier producer left open is aborted, and it is locked out."""
        await self._request(Who(self.transactional_id, _NOBODY, _NOBODY), wanted)

    @property
    def can_renew(self) -> bool:
        """Whether the coordinator gives another epoch to a producer that tells its present one (since 2.5)."""
        versions = self._asker.versions
        return versions is not None and versions.supports(_INIT_PRODUCER_ID, 3)

    async def renew_epoch(self, *, ahead: int, wanted: Callable[[], bool]) -> None:
        """Get another epoch; the coordinator refuses if its own is not ours plus `ahead`."""
        expected = self.who._replace(epoch=self.epoch + ahead)
        self.producer_id = _NOBODY  # not ready meanwhile
        await self._request(expected, wanted)

    async def _request(self, expected: Who, wanted: Callable[[], bool]) -> None:
        response = await self._asker.ask(init_request_of(expected, self.timeout, wanted))
        self.take(response.producer_id, response.producer_epoch)


log = logging.getLogger(__name__)


class AddPartitions:
    """The partitions of the present transaction."""

    def __init__(self, transactions: TransactionManager) -> None:
        self._transactions = transactions
        self._added: set[TopicPartition] = set()
        self._pending: dict[TopicPartition, Partition] = {}
        self._task: Task[None] | None = None

    def reset(self) -> None:
        """Another transaction begins."""
        self._added.clear()
        self._pending.clear()

    def admits(self, partition: Partition) -> bool:
        """Whether a partition is added; it will be, otherwise, and the sender looks at it again then."""
        if partition.tp in self._added:
            return True
        if partition.tp not in self._pending:
            self._pending[partition.tp] = partition
            if self._task is None:
                self._task = partition.core.loop.spawn(self._add_all(partition.core.sender.look), "add partitions")
        return False

    async def over(self) -> None:
        """Wait until no request is under way; nothing more is asked for."""
        self._pending.clear()
        if self._task is not None:
            await self._task

    async def _add_all(self, look: Callable[[Partition], None]) -> None:
        transactions = self._transactions
        try:
            await transactions.ready()
            while self._pending and transactions.is_sending:
                batch = dict(self._pending)
                await self._add(batch)
                for partition in batch.values():
                    look(partition)
        except KafkaError as error:
            log.debug("Partitions were not added: %s", error)  # the transactions know, and tell
        finally:
            self._task = None

    async def _add(self, batch: dict[TopicPartition, Partition]) -> None:
        transactions, who = self._transactions, self._transactions.identity.who
        question = CoordinatorRequest(
            Step.ADD,
            TRANSACTION,
            who.transactional_id,
            AddPartitionsToTxnRequest,
            lambda version: add_partitions_request(version, who, batch),
            worst_of_partitions,
            newest=NEWEST_ADD_PARTITIONS,
            wanted=lambda: transactions.is_sending,
        )
        current = transactions.current
        current.asked = True
        try:
            await transactions.asker.ask(question)
        except KafkaError as error:
            raise transactions.take_error(error, question) from error
        current.late = current.late or question.unanswered
        current.confirmed = True
        self._added.update(batch)
        for tp in batch:
            self._pending.pop(tp, None)


log = logging.getLogger(__name__)


def end_request_of(who: Who, *, committed: bool, is_v2: bool) -> CoordinatorRequest:
    """Return what is asked of the coordinator to commit or abort a transaction."""
    return CoordinatorRequest(
        Step.END,
        TRANSACTION,
        who.transactional_id,
        EndTxnRequest,
        lambda version: end_request(version, who, committed=committed),
        plain_error,
        newest=2**15 if is_v2 else NEWEST_CLASSIC_END,
    )


class EndTransaction:
    """See the head of this file."""

    def __init__(self, transactions: TransactionManager, core: ProducerCore) -> None:
        self._transactions = transactions
        self._identity = transactions.identity
        self._asker = transactions.asker
        self._core = core

    @property
    def _current(self) -> Transaction:
        return self._transactions.current

    async def end(self, *, committed: bool) -> None:
        """Commit or abort at the coordinator; raises what the producer has to hear."""
        who, current = self._identity.who, self._current
        question = end_request_of(who, committed=committed, is_v2=current.is_v2)
        try:
            response = await self._asker.ask(question)
        except KafkaError as error:
            current.late = current.late or question.unanswered
            if committed:
                raise self._not_committed(error, question) from error
            self._not_aborted(error, question)
            return
        current.late = current.late or question.unanswered
        if current.is_v2 and response.producer_id >= 0:
            self._identity.take(response.producer_id, response.producer_epoch)

    def _not_committed(self, error: KafkaError, question: CoordinatorRequest) -> KafkaError:
        """The coordinator refuses to commit; returns what to raise."""
        if question.doubtful:
            # It may have committed at an earlier attempt, and refuses the repetition now.
            return self._transactions.fail(
                TransactionOutcomeUnknownError(
                    f"Whether the transaction was committed is not known: {error}; close this producer, and find out "
                    f"from what is in the log how far it came"
                )
            )
        meaning = meaning_of(error, Step.END)
        # Version two says INVALID_TXN_STATE to who commits what the coordinator has aborted by itself.
        if (meaning is Meaning.FENCED or isinstance(error, InvalidTxnStateError)) and self.ran_out_of_time():
            self._transactions.trouble(self.out_of_time(error))
        elif meaning in {Meaning.FENCED, Meaning.FATAL}:
            self._transactions.fail(error)
        else:
            self._current.lost_id = meaning is Meaning.LOST_ID
            self._transactions.trouble(error)
        return self._transactions.error or error

    def _not_aborted(self, error: KafkaError, question: CoordinatorRequest) -> None:
        """The coordinator refuses to abort: there is nothing to abort any more, or we are out."""
        meaning = meaning_of(error, Step.END)
        if meaning is Meaning.LOST_ID:
            self._current.lost_id = True
        elif meaning is Meaning.FENCED and not question.doubtful and self.ran_out_of_time():
            log.info("The transaction of %s took too long: it is aborted already", question.key)
        elif isinstance(error, InvalidTxnStateError) and not self._current.confirmed:
            # What was sent has not made it known to the coordinator, and may do so later.
            self._current.lost_id = True
        else:
            raise self._transactions.fail(error) from error

    # Another epoch…

    async def renew(self) -> None:
        """Get an epoch that nothing of the past has (KIP-360)."""
        if not self._identity.can_renew:
            self._go_on_as_before()
            return
        try:
            await self._identity.renew_epoch(ahead=int(self._current.ran_out), wanted=lambda: not self._core.closed)
        except KafkaError as error:
            raise self._transactions.fail(error) from error

    def _go_on_as_before(self) -> None:
        """Before 2.5 the numbers go on from what each leader has; where that is not known, nothing goes on."""
        if self._current.unsure or self._current.lost_id:
            why = "records were sent and never answered for" if self._current.unsure else "the coordinator has lost it"
            raise self._transactions.fail(
                FatalTransactionError(
                    f"The transaction is aborted, but {why}, and brokers before 2.5 let no producer go on after that: "
                    "close this one and make another"
                )
            )
        for topic in self._core.accumulator.all_topics():
            for partition in topic.line:
                partition.next_sequence = partition.acknowledged
                partition.broken = False

    # Out of time…

    def ran_out_of_time(self) -> bool:
        """Whether a fence is the coordinator's own, for a transaction that took longer than transaction_timeout_ms.

        It ends such a transaction under the next epoch, which it gives to nobody: a newer producer gets the one after
        that. So asking for another epoch with that one in hand succeeds if, and only if, nobody has taken over. That
        holds only if the coordinator had the transaction for sure, and was not asked to end it before.
        """
        current = self._current
        is_late = self._core.now() - current.started >= self._identity.timeout
        current.ran_out = is_late and current.confirmed and self._identity.can_renew
        return current.ran_out

    def out_of_time(self, cause: KafkaError) -> AbortableTransactionError:
        """Return the error of a transaction that took too long."""
        error = AbortableTransactionError(
            f"The transaction took longer than transaction_timeout_ms ({self._identity.timeout * 1000:.0f}), so the "
            f"coordinator has aborted it; abort_transaction() lets the producer go on, if no other has taken over"
        )
        error.__cause__ = cause
        return error
