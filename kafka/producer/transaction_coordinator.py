"""The requests of a transactional producer to its coordinators, each sent until one is answered.

`CoordinatorClient` knows where to send a request, in which version, and when to send it again. `AddPartitions`,
`EndTransaction` and `TransactionalProducerId` are the parts of a transaction that need it; they decide what an answer
means and tell their `TransactionOwner`, the transaction manager. Runs on the loop only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Generic, Protocol, TypeVar

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
from kafka.producer.producer_id import ProducerId
from kafka.producer.transaction_protocol import (
    NEWEST_ADD_PARTITIONS,
    NEWEST_CLASSIC_END,
    NEWEST_INIT,
    Meaning,
    Step,
    Transaction,
    Who,
    add_partitions_request,
    end_request,
    init_request,
    may_have_happened,
    meaning_of,
    plain_error,
    worst_of_partitions,
)
from kafka.protocol.registry import ApiKey
from kafka.protocol.transaction import AddPartitionsToTxnRequest, EndTxnRequest, InitProducerIdRequest

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka._runtime.tasks import Task
    from kafka.config import Config
    from kafka.producer.partition import Partition
    from kafka.producer.record_accumulator import RecordAccumulator
    from kafka.producer.sender import Sender
    from kafka.protocol.api import Request, Response
    from kafka.protocol.negotiation import ApiVersions
    from kafka.protocol.transaction import EndTxnResponse, InitProducerIdResponse
    from kafka.structs import TopicPartition

__all__ = [
    "AddPartitions",
    "CoordinatorClient",
    "CoordinatorRequest",
    "EndTransaction",
    "TransactionOwner",
    "TransactionalProducerId",
    "end_request_of",
    "init_request_of",
]

log = logging.getLogger(__name__)

ResponseT = TypeVar("ResponseT", bound="Response")

# Markers are written within milliseconds, so the first wait for them is short: in seconds.
_SOON: Final = 0.005
_WORTH_LOGGING: Final = 4
"""Failures in a row after which the log shows them: about a second, with the default backoff."""
_NO_ID: Final = -1


class CoordinatorRequest(Generic[ResponseT]):
    """A request to a coordinator, and what became of the attempts to send it."""

    __slots__ = (
        "build",
        "key",
        "kind",
        "maybe_applied",
        "newest",
        "read",
        "request_type",
        "step",
        "unanswered",
        "wanted",
    )

    def __init__(
        self,
        step: Step,
        kind: int,
        key: str,
        request_type: type[Request[ResponseT]],
        build: Callable[[int], Request[ResponseT]],
        read: Callable[[ResponseT], KafkaError | None],
        newest: int = 2**15,
        wanted: Callable[[], bool] = lambda: True,
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
        """The last version to use, even if the broker supports later ones."""
        self.wanted = wanted
        """Whether to send it again after a retriable error."""
        self.maybe_applied = False
        """The coordinator may have carried out an earlier attempt, though the last answer is an error."""
        self.unanswered = False
        """An attempt has no answer: it may still arrive at the coordinator."""


class CoordinatorClient:
    """Sends requests to the coordinators of transactions and groups."""

    def __init__(self, client: Client, config: Config) -> None:
        self.versions: ApiVersions | None = None
        """The API versions of the coordinator that was used last."""
        self.waiting_for: str | None = None
        """Why the present request has failed so far, in words; None before its first answer, or without a request."""
        self.requesting: str | None = None
        """The step of the present request, in words."""
        self.client = client
        self._waited_for: str | None = None
        self._loop = client.loop
        limit = config.seconds("retry_backoff_max_ms")
        self.backoff = Backoff(config.seconds("retry_backoff_ms"), limit, self._loop.rng)
        self._short = Backoff(_SOON, config.seconds("retry_backoff_ms"), self._loop.rng)

    async def send(self, request: CoordinatorRequest[ResponseT]) -> ResponseT:
        """Return the response without an error; raises an error that a retry does not clear."""
        failures = 0
        self.requesting, self._waited_for = request.step.value, None
        try:
            while True:
                try:
                    response = await self._attempt(request)
                    error = request.read(response)
                except KafkaError as failed:
                    error = failed
                if error is None:
                    return response
                failures += 1
                await self._pause(request, error, failures)
        finally:
            self.waiting_for = self.requesting = None

    def timeout_error(self, what: str, seconds: float) -> KafkaTimeoutError:
        """Return the error of a call that was not done within this time."""
        why = self._waited_for or no_answers(self.client)
        return KafkaTimeoutError(f"{what} took longer than {seconds:g} seconds{f': {why}' if why else ''}")

    def problem(self) -> str:
        """Return what the present request waits for; empty if there is none."""
        if self.waiting_for is not None:
            return f"the transaction waits for its coordinator, {self.waiting_for}"
        if self.requesting is not None:
            silent = no_answers(self.client)
            return f"the transaction waits for its coordinator, {self.requesting}{f': {silent}' if silent else ''}"
        return ""

    async def _attempt(self, request: CoordinatorRequest[ResponseT]) -> ResponseT:
        client = self.client
        deadline = self._loop.time() + client.settings.request_timeout
        node_id = await client.coordinator(request.kind, request.key, deadline)
        link = client.link(node_id, COORDINATOR)
        await client.open(link, deadline)
        assert link.versions is not None
        self.versions = link.versions
        version = min(link.versions.version_for(request.request_type), request.newest)
        return await link.submit(request.build(version), deadline=deadline)

    async def _pause(self, request: CoordinatorRequest[ResponseT], error: KafkaError, failures: int) -> None:
        """Wait before the next attempt; raise the error if there is not to be one."""
        request.maybe_applied = request.maybe_applied or may_have_happened(error)
        request.unanswered = request.unanswered or error.outcome_unknown
        meaning = meaning_of(error, request.step)
        if not meaning.is_retriable or not request.wanted():
            raise error
        if meaning is Meaning.SOON:
            await self._loop.sleep(self._short.delay(failures))
            return
        self.waiting_for = self._waited_for = f"{request.step.value}: {error}"
        # Not the errors of an instant, which each coordinator has when it starts; then once a minute or so.
        if failures == _WORTH_LOGGING or failures % 60 == 0:
            log.warning("Transaction of %s waits for %s", request.key, self.waiting_for)
        if meaning is Meaning.LOOK_UP:
            self.client.cluster.forget_coordinator(request.kind, request.key)
        await self._loop.sleep(self.backoff.delay(failures))


def init_request_of(
    expected: Who, timeout: float, wanted: Callable[[], bool] = lambda: True
) -> CoordinatorRequest[InitProducerIdResponse]:
    """Return the request for a producer id; `expected` is the present producer, or has no producer id."""
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


def end_request_of(who: Who, *, committed: bool, is_v2: bool) -> CoordinatorRequest[EndTxnResponse]:
    """Return the request to commit or to abort a transaction."""
    return CoordinatorRequest(
        Step.END,
        TRANSACTION,
        who.transactional_id,
        EndTxnRequest,
        lambda version: end_request(version, who, committed=committed),
        plain_error,
        newest=2**15 if is_v2 else NEWEST_CLASSIC_END,
    )


class TransactionOwner(Protocol):
    """The transaction manager, as the parts of a transaction use it."""

    current: Transaction
    error: KafkaError | None
    coordinator: CoordinatorClient
    producer: TransactionalProducerId

    @property
    def is_sending(self) -> bool:
        """Whether batches may be sent."""
        ...

    async def ready(self) -> None:
        """Wait until the producer has its epoch."""
        ...

    def must_abort(self, cause: BaseException) -> None:
        """Let the transaction end by an abort only."""
        ...

    def fatal(self, cause: BaseException) -> KafkaError:
        """Let the producer end; return the error that says why."""
        ...

    def failed(self, error: KafkaError, request: CoordinatorRequest[ResponseT]) -> KafkaError:
        """Do what an error before the end of the transaction means; return what to raise."""
        ...


class TransactionalProducerId(ProducerId):
    """The producer id of a transactional_id: the coordinator gives it, with an epoch that fences other producers.

    `init_transactions()` and the ends of transactions obtain it; nothing that happens to a batch does.
    """

    def __init__(self, sender: Sender, coordinator: CoordinatorClient, transactional_id: str, timeout: float) -> None:
        super().__init__(sender, enabled=True, required=True)
        self.transactional_id = transactional_id
        self.timeout = timeout
        """Seconds that a transaction may take."""
        self._coordinator = coordinator

    @property
    def who(self) -> Who:
        """The producer as requests name it."""
        return Who(self.transactional_id, self.producer_id, self.epoch)

    def check_supported(self) -> None:
        """Raise if the brokers are too old."""
        versions = self._client.versions
        if versions is not None and not versions.reaches(ApiKey.InitProducerId):
            release = ".".join(map(str, versions.release))
            raise UnsupportedVersionError(
                f"transactions (transactional_id) need brokers of Kafka 0.11 or newer; this one is {release}"
            )

    def ready(self) -> bool:
        """Whether batches can be numbered."""
        return self.producer_id != _NO_ID

    def renew(self) -> None:
        """Do nothing: an error of a batch does not change the id, as the transaction is aborted first."""

    def accept(self, producer_id: int, epoch: int) -> None:
        """Use the id and epoch that the coordinator has given."""
        self.producer_id, self.epoch = producer_id, epoch
        self.sender.resume()

    async def obtain(self, wanted: Callable[[], bool]) -> None:
        """Take over the transactional id: the coordinator aborts an open transaction of it and fences its producer."""
        await self._request(Who(self.transactional_id, _NO_ID, _NO_ID), wanted)

    @property
    def can_renew(self) -> bool:
        """Whether the coordinator gives another epoch to a producer that sends its present one (since 2.5)."""
        versions = self._coordinator.versions
        return versions is not None and versions.reaches(ApiKey.InitProducerId, 3)

    async def renew_epoch(self, *, ahead: int, wanted: Callable[[], bool]) -> None:
        """Get another epoch; the coordinator refuses if its own is not ours plus `ahead`."""
        expected = self.who._replace(epoch=self.epoch + ahead)
        self.producer_id = _NO_ID  # not ready meanwhile
        await self._request(expected, wanted)

    async def _request(self, expected: Who, wanted: Callable[[], bool]) -> None:
        response = await self._coordinator.send(init_request_of(expected, self.timeout, wanted))
        self.accept(response.producer_id, response.producer_epoch)


class AddPartitions:
    """Adds partitions to a classic transaction before they are written to: in one request all that wait by then.

    Batches of a partition stay in its queue until it is added. One request is under way at a time.
    """

    def __init__(self, owner: TransactionOwner) -> None:
        self._owner = owner
        self._added: set[TopicPartition] = set()
        self._pending: dict[TopicPartition, Partition] = {}
        self._task: Task[None] | None = None

    def reset(self) -> None:
        """Forget the partitions: another transaction begins."""
        self._added.clear()
        self._pending.clear()

    def admits(self, partition: Partition) -> bool:
        """Whether a partition is added; if not, it will be, and then the sender looks at it again."""
        if partition.tp in self._added:
            return True
        if partition.tp not in self._pending:
            self._pending[partition.tp] = partition
            if self._task is None:
                self._task = self._owner.coordinator.client.loop.spawn(self._add_all(), "add partitions")
        return False

    async def finish(self) -> None:
        """Wait until no request is under way, and send no more."""
        self._pending.clear()
        if self._task is not None:
            await self._task

    async def _add_all(self) -> None:
        owner = self._owner
        try:
            await owner.ready()
            while self._pending and owner.is_sending:
                some = dict(self._pending)
                await self._add(some)
                for partition in some.values():
                    partition.schedule()
        except KafkaError as error:
            log.debug("Partitions were not added: %s", error)  # the owner raises it
        finally:
            self._task = None

    async def _add(self, some: dict[TopicPartition, Partition]) -> None:
        owner, who = self._owner, self._owner.producer.who
        request = CoordinatorRequest(
            Step.ADD,
            TRANSACTION,
            who.transactional_id,
            AddPartitionsToTxnRequest,
            lambda version: add_partitions_request(version, who, some),
            worst_of_partitions,
            newest=NEWEST_ADD_PARTITIONS,
            wanted=lambda: owner.is_sending,
        )
        current = owner.current
        current.registration_sent = True
        try:
            await owner.coordinator.send(request)
        except KafkaError as error:
            raise owner.failed(error, request) from error
        current.note(request.unanswered)
        current.registered = True
        self._added.update(some)
        for tp in some:
            self._pending.pop(tp, None)


class EndTransaction:
    """Ends a transaction at its coordinator, handles a refusal, and gets the epoch that the next transaction needs."""

    def __init__(self, owner: TransactionOwner, accumulator: RecordAccumulator) -> None:
        self._owner = owner
        self._producer = owner.producer
        self._accumulator = accumulator
        self._now = owner.coordinator.client.loop.time

    async def end(self, *, committed: bool) -> None:
        """Commit or abort; raises what the application must know."""
        who, current = self._producer.who, self._owner.current
        request = end_request_of(who, committed=committed, is_v2=current.is_v2)
        try:
            response = await self._owner.coordinator.send(request)
        except KafkaError as error:
            current.note(request.unanswered)
            if committed:
                raise self._not_committed(error, request) from error
            self._not_aborted(error, request)
            return
        current.note(request.unanswered)
        if current.is_v2 and response.producer_id >= 0:
            self._producer.accept(response.producer_id, response.producer_epoch)

    def _not_committed(self, error: KafkaError, request: CoordinatorRequest[ResponseT]) -> KafkaError:
        """The coordinator refuses to commit; returns what to raise."""
        owner = self._owner
        if request.maybe_applied:
            # It may have committed at an earlier attempt, and refuse the repetition now.
            return owner.fatal(
                TransactionOutcomeUnknownError(
                    f"Whether the transaction was committed is not known: {error}; close this producer, and find out "
                    f"from what is in the log how far it came"
                )
            )
        meaning = meaning_of(error, Step.END)
        # In version two, INVALID_TXN_STATE answers a commit of what the coordinator has aborted without a request.
        if (meaning is Meaning.FENCED or isinstance(error, InvalidTxnStateError)) and self.has_timed_out():
            owner.must_abort(self.timeout_error(error))
        elif meaning in {Meaning.FENCED, Meaning.FATAL}:
            owner.fatal(error)
        else:
            owner.current.lost_id = meaning is Meaning.LOST_ID
            owner.must_abort(error)
        return owner.error or error

    def _not_aborted(self, error: KafkaError, request: CoordinatorRequest[ResponseT]) -> None:
        """The coordinator refuses to abort: there is nothing to abort any more, or the producer is fenced."""
        current = self._owner.current
        meaning = meaning_of(error, Step.END)
        if meaning is Meaning.LOST_ID:
            current.lost_id = True
        elif meaning is Meaning.FENCED and not request.maybe_applied and self.has_timed_out():
            log.info("The transaction of %s took too long: the coordinator has aborted it already", request.key)
        elif isinstance(error, InvalidTxnStateError) and not current.registered:
            # The requests that were sent have not registered it at the coordinator, and may do so later.
            current.lost_id = True
        else:
            raise self._owner.fatal(error) from error

    async def renew_epoch(self) -> None:
        """Get an epoch that no request of the past has (KIP-360)."""
        if not self._producer.can_renew:
            self._reset_sequences()
            return
        try:
            await self._producer.renew_epoch(
                ahead=int(self._owner.current.timed_out), wanted=lambda: not self._accumulator.closed
            )
        except KafkaError as error:
            raise self._owner.fatal(error) from error

    def _reset_sequences(self) -> None:
        """Before 2.5 the numbers continue from what each leader has; where that is not known, the producer ends."""
        current = self._owner.current
        if current.outcome_unknown or current.lost_id:
            unknown = "records were sent and never answered for"
            why = unknown if current.outcome_unknown else "the coordinator has lost it"
            raise self._owner.fatal(
                FatalTransactionError(
                    f"The transaction is aborted, but {why}, and brokers before 2.5 let no producer continue after "
                    "that: close this one and make another"
                )
            )
        for topic in self._accumulator.all_topics():
            for partition in topic.ordered:
                partition.next_sequence = partition.acknowledged
                partition.sequence_gap = False

    def has_timed_out(self) -> bool:
        """Whether a fence is the coordinator's own, for a transaction that took longer than transaction_timeout_ms.

        It ends such a transaction under the next epoch, which it gives to no producer: a newer producer gets the one
        after that. So a request for another epoch with that one in hand succeeds if, and only if, no producer has taken
        over. That holds only if the coordinator knew the transaction, and was not asked to end it before.
        """
        current = self._owner.current
        is_late = self._now() - current.started >= self._producer.timeout
        current.timed_out = is_late and current.registered and self._producer.can_renew
        return current.timed_out

    def timeout_error(self, cause: KafkaError) -> AbortableTransactionError:
        """Return the error of a transaction that took too long."""
        error = AbortableTransactionError(
            f"The transaction took longer than transaction_timeout_ms ({self._producer.timeout * 1000:.0f}), so the "
            f"coordinator has aborted it; abort_transaction() lets the producer continue, if no other has taken over"
        )
        error.__cause__ = cause
        return error
