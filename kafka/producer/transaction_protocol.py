"""The transaction protocol, without I/O: requests, the meaning of errors, and the states of a producer.

Requests come in the form that each version has. Versions that belong to the second version of the protocol (KIP-890)
must not be used where the cluster has not finalized it: the broker takes them to mean more than their predecessors. The
meaning of an error depends on the error and the step alone (KIP-98 as KIP-360, 447, 588, 654 and 890 left it). The
states are a table: a call that is not in it is refused in that state, with advice; an event that happens and is not in
it is a bug.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka.cluster import GROUP, TRANSACTION
from kafka.errors import (
    AbortableTransactionError,
    AuthenticationError,
    BrokerResponseError,
    ClusterAuthorizationFailedError,
    ConcurrentTransactionsError,
    IllegalStateError,
    InvalidCoordinatorError,
    InvalidProducerEpochError,
    InvalidProducerIdMappingError,
    InvalidTxnStateError,
    KafkaError,
    OperationNotAttemptedError,
    ProducerFencedError,
    RequestTimedOutError,
    TransactionalIdAuthorizationFailedError,
    UnknownError,
    UnknownProducerIdError,
    UnsupportedVersionError,
    for_code,
)
from kafka.protocol.produce import ProduceRequest
from kafka.protocol.transaction import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    EndTxnRequest,
    InitProducerIdRequest,
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
)
from kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from kafka.protocol.api import Response

__all__ = [
    "CALLS",
    "NEWEST_CLASSIC_END",
    "OFFSETS_KNOW_MEMBERS",
    "Event",
    "Meaning",
    "State",
    "Step",
    "Transaction",
    "Who",
    "add_offsets_request",
    "add_partitions_request",
    "commit_offsets_request",
    "end_request",
    "error_of",
    "init_request",
    "is_allowed",
    "meaning_of",
    "meaning_of_lost_record",
    "newest_version",
    "next_state",
]

NEWEST_CLASSIC_END: Final = 4
# Versions after these are not for producers, or (the classic ones) mean more than the classic protocol has.
_NEWEST: Final[dict[type, int]] = {InitProducerIdRequest: 5, AddPartitionsToTxnRequest: 3}  # 6 has two-phase commit
_NEWEST_CLASSIC: Final[dict[type, int]] = {
    ProduceRequest: 11,
    EndTxnRequest: NEWEST_CLASSIC_END,
    TxnOffsetCommitRequest: 4,
}
_ANY: Final = 2**15
OFFSETS_KNOW_MEMBERS: Final = 3
"""The first version of TxnOffsetCommit that names the consumer's group member (KIP-447)."""
_INIT_KNOWS_EPOCHS: Final = 3


def newest_version(request_type: type, *, is_v2: bool) -> int:
    """Return the last version of a request to use, even if the broker supports later ones.

    >>> from kafka.protocol.transaction import EndTxnRequest
    >>> newest_version(EndTxnRequest, is_v2=False)
    4
    """
    return _NEWEST.get(request_type, _ANY if is_v2 else _NEWEST_CLASSIC.get(request_type, _ANY))


class Who(NamedTuple):
    """A transactional producer, as its requests name it."""

    transactional_id: str
    producer_id: int
    epoch: int


def init_request(version: int, who: Who, timeout: float) -> InitProducerIdRequest:
    """Return the request for a producer id, or for another epoch of the one that `who` has (KIP-360)."""
    fields: dict[str, object] = {
        "transactional_id": who.transactional_id,
        "transaction_timeout_ms": round(timeout * 1000),
    }
    if version >= _INIT_KNOWS_EPOCHS:
        fields |= {"producer_id": who.producer_id, "producer_epoch": who.epoch}
    return InitProducerIdRequest[version](**fields)


def add_partitions_request(version: int, who: Who, partitions: Iterable[TopicPartition]) -> AddPartitionsToTxnRequest:
    """Return the request that makes partitions part of the transaction."""
    by_topic: dict[str, list[int]] = {}
    for topic, number in sorted(partitions):
        by_topic.setdefault(topic, []).append(number)
    topic_type = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic
    return AddPartitionsToTxnRequest[version](
        v3_and_below_transactional_id=who.transactional_id,
        v3_and_below_producer_id=who.producer_id,
        v3_and_below_producer_epoch=who.epoch,
        v3_and_below_topics=[topic_type(name=topic, partitions=numbers) for topic, numbers in by_topic.items()],
    )


def add_offsets_request(version: int, who: Who, group_id: str) -> AddOffsetsToTxnRequest:
    """Return the request that makes a group's offsets part of the transaction."""
    return AddOffsetsToTxnRequest[version](
        transactional_id=who.transactional_id, producer_id=who.producer_id, producer_epoch=who.epoch, group_id=group_id
    )


def commit_offsets_request(
    version: int, who: Who, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: ConsumerGroupMetadata
) -> TxnOffsetCommitRequest:
    """Return the request that lets offsets be committed with the transaction."""
    partition_type = TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition
    topic_type = TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic
    by_topic: dict[str, list[TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition]] = {}
    for (topic, number), offset in sorted(offsets.items()):
        entry = partition_type(
            partition_index=number,
            committed_offset=offset.offset,
            committed_leader_epoch=-1 if offset.leader_epoch is None else offset.leader_epoch,
            committed_metadata=offset.metadata or "",
        )
        by_topic.setdefault(topic, []).append(entry)
    fields: dict[str, object] = {
        "transactional_id": who.transactional_id,
        "group_id": group.group_id,
        "producer_id": who.producer_id,
        "producer_epoch": who.epoch,
        "topics": [topic_type(name=topic, partitions=entries) for topic, entries in by_topic.items()],
    }
    if version >= OFFSETS_KNOW_MEMBERS:
        fields |= {
            "generation_id": group.generation_id,
            "member_id": group.member_id,
            "group_instance_id": group.group_instance_id,
        }
    return TxnOffsetCommitRequest[version](**fields)


def end_request(version: int, who: Who, *, committed: bool) -> EndTxnRequest:
    """Return the request that ends the transaction."""
    return EndTxnRequest[version](
        transactional_id=who.transactional_id,
        producer_id=who.producer_id,
        producer_epoch=who.epoch,
        committed=committed,
    )


# Errors in answers


def error_of(response: Response) -> KafkaError | None:
    """Return the error that decides about a request; None if there is none.

    >>> from kafka.protocol.transaction import EndTxnResponse
    >>> error_of(EndTxnResponse(error_code=47))
    InvalidProducerEpochError()
    """
    if isinstance(response, AddPartitionsToTxnResponse):
        return _worst(
            {
                TopicPartition(topic.name, entry.partition_index): entry.partition_error_code
                for topic in response.results_by_topic_v3_and_below
                for entry in topic.results_by_partition
            }
        )
    if isinstance(response, TxnOffsetCommitResponse):
        return _worst(
            {
                TopicPartition(topic.name, entry.partition_index): entry.error_code
                for topic in response.topics
                for entry in topic.partitions
            }
        )
    code: int = response.error_code
    return for_code(code)() if code else None


def _worst(codes: Mapping[TopicPartition, int]) -> KafkaError | None:
    """Return an error that a retry does not clear before one that it may, OPERATION_NOT_ATTEMPTED last."""
    found = [for_code(code)(topic_partition=partition) for partition, code in codes.items() if code]
    causes = [error for error in found if not isinstance(error, OperationNotAttemptedError)] or found
    return min(causes, key=lambda error: error.retriable, default=None)


class Step(Enum):
    """The steps of a transaction that need a coordinator."""

    INIT = "getting a producer id"
    ADD = "adding partitions to the transaction"
    ADD_GROUP = "adding a group to the transaction"
    OFFSETS = "adding offsets to the transaction"
    END = "ending the transaction"

    @property
    def coordinator(self) -> int:
        """The kind of coordinator: TxnOffsetCommit goes to that of the group."""
        return GROUP if self is Step.OFFSETS else TRANSACTION


class Meaning(Enum):
    """What to do about an error."""

    SOON = "send the request again in a moment: the last transaction's markers are not all written"
    RETRY = "send the request again"
    LOOK_UP = "look the coordinator up and send the request again"
    ABORT = "the transaction must be aborted; the producer can continue after that"
    LOST_ID = "as ABORT, and the coordinator has lost the producer id: get another (KIP-360)"
    FENCED = "another producer has this transactional id, or the transaction took too long"
    FATAL = "the producer cannot continue"
    REFUSED = "nothing was done; the call may be repeated when the cause is fixed"

    @property
    def is_retriable(self) -> bool:
        """Whether sending the request again may help."""
        return self in {Meaning.SOON, Meaning.RETRY, Meaning.LOOK_UP}


# The first rule that fits decides.
_RULES: Final[tuple[tuple[type[KafkaError] | tuple[type[KafkaError], ...], Meaning], ...]] = (
    (AbortableTransactionError, Meaning.ABORT),
    (ConcurrentTransactionsError, Meaning.SOON),
    ((InvalidCoordinatorError, RequestTimedOutError), Meaning.LOOK_UP),
    ((ProducerFencedError, InvalidProducerEpochError), Meaning.FENCED),
    ((InvalidProducerIdMappingError, UnknownProducerIdError), Meaning.LOST_ID),
    (
        (
            TransactionalIdAuthorizationFailedError,
            ClusterAuthorizationFailedError,
            UnsupportedVersionError,
            AuthenticationError,
            InvalidTxnStateError,
        ),
        Meaning.FATAL,
    ),
)
_OTHERWISE: Final = {
    Step.INIT: Meaning.REFUSED,
    Step.ADD: Meaning.ABORT,
    # A member that its group has replaced, missing permissions, metadata that is too long: an abort undoes all of it,
    # and nothing of it harms the next transaction.
    Step.ADD_GROUP: Meaning.ABORT,
    Step.OFFSETS: Meaning.ABORT,
    Step.END: Meaning.FATAL,
}


def meaning_of(error: KafkaError, step: Step) -> Meaning:
    """Return what an error at a step means.

    >>> from kafka.errors import for_code
    >>> [meaning_of(for_code(code)(), Step.END).name for code in (16, 51, 90, 49, 53)]
    ['LOOK_UP', 'SOON', 'FENCED', 'LOST_ID', 'FATAL']
    >>> meaning_of(for_code(53)(), Step.INIT)
    <Meaning.REFUSED: 'nothing was done; the call may be repeated when the cause is fixed'>
    """
    for kinds, meaning in _RULES:
        if isinstance(error, kinds):
            return Meaning.REFUSED if step is Step.INIT and meaning is Meaning.FATAL else meaning
    if error.retriable:
        # An error that no broker has sent concerns the way there: another broker may be the coordinator by now.
        return Meaning.RETRY if isinstance(error, BrokerResponseError) else Meaning.LOOK_UP
    return _OTHERWISE[step]


def meaning_of_lost_record(error: BaseException) -> Meaning:
    """Return what it means for the transaction that a batch was given up with an error.

    A partition's leader answers INVALID_PRODUCER_EPOCH both to a producer that another one has replaced and to one
    whose transaction took too long. The coordinator distinguishes the two, in its answer to the abort (KIP-588).
    """
    if isinstance(error, InvalidProducerEpochError):
        return Meaning.ABORT
    if isinstance(error, ProducerFencedError):
        return Meaning.FENCED
    if isinstance(error, (TransactionalIdAuthorizationFailedError, ClusterAuthorizationFailedError)):
        return Meaning.FATAL
    return Meaning.ABORT


class State(Enum):
    """The state of a transactional producer."""

    UNINITIALIZED = "not initialized"
    INITIALIZING = "being initialized"
    READY = "ready"
    IN_TRANSACTION = "in a transaction"
    COMMITTING = "committing"
    ABORTING = "aborting"
    MUST_ABORT = "in a transaction that must be aborted"
    FAILED = "failed"


class Event(Enum):
    """Calls of the application, and events of the producer."""

    INIT = "init_transactions()"
    TAKE_OVER = "take_over()"
    BEGIN = "begin_transaction()"
    SEND = "send()"
    SEND_OFFSETS = "send_offsets_to_transaction()"
    COMMIT = "commit_transaction()"
    ABORT = "abort_transaction()"
    DONE = "the end of a call"
    REFUSED = "a refusal"
    ABORTABLE_ERROR = "an error that an abort clears"
    FATAL_ERROR = "an error that ends the producer"


CALLS: Final = (Event.INIT, Event.TAKE_OVER, Event.BEGIN, Event.SEND, Event.SEND_OFFSETS, Event.COMMIT, Event.ABORT)

_NEXT: Final = {
    (State.UNINITIALIZED, Event.INIT): State.INITIALIZING,
    (State.UNINITIALIZED, Event.TAKE_OVER): State.INITIALIZING,
    (State.INITIALIZING, Event.INIT): State.INITIALIZING,  # again, after a timeout: waits for the rest
    (State.INITIALIZING, Event.DONE): State.READY,
    (State.INITIALIZING, Event.REFUSED): State.UNINITIALIZED,
    (State.READY, Event.TAKE_OVER): State.INITIALIZING,  # under another id, or again under the same
    (State.READY, Event.BEGIN): State.IN_TRANSACTION,
    (State.IN_TRANSACTION, Event.SEND): State.IN_TRANSACTION,
    (State.IN_TRANSACTION, Event.SEND_OFFSETS): State.IN_TRANSACTION,
    (State.IN_TRANSACTION, Event.COMMIT): State.COMMITTING,
    (State.IN_TRANSACTION, Event.ABORT): State.ABORTING,
    (State.IN_TRANSACTION, Event.ABORTABLE_ERROR): State.MUST_ABORT,
    (State.COMMITTING, Event.COMMIT): State.COMMITTING,
    (State.COMMITTING, Event.DONE): State.READY,
    (State.COMMITTING, Event.ABORTABLE_ERROR): State.MUST_ABORT,
    (State.MUST_ABORT, Event.ABORT): State.ABORTING,
    (State.MUST_ABORT, Event.ABORTABLE_ERROR): State.MUST_ABORT,  # the first error is kept
    (State.ABORTING, Event.ABORT): State.ABORTING,
    (State.ABORTING, Event.DONE): State.READY,
    (State.ABORTING, Event.ABORTABLE_ERROR): State.ABORTING,  # it is being aborted already
    **{(state, Event.FATAL_ERROR): State.FAILED for state in State},
}

_ADVICE: Final = {
    State.UNINITIALIZED: "call init_transactions() first, once",
    State.INITIALIZING: "init_transactions() is not done: call it again, which waits for the rest",
    State.READY: "no transaction is open: call begin_transaction() first",
    State.IN_TRANSACTION: "a transaction is open: call commit_transaction() or abort_transaction() first",
    State.COMMITTING: (
        "commit_transaction() was called and its outcome is not known: call it again, which waits for the rest"
    ),
    State.ABORTING: "abort_transaction() is not done: call it again, which waits for the rest",
    State.MUST_ABORT: "the transaction cannot be committed any more: call abort_transaction()",
    State.FAILED: "this producer cannot continue: close it and make another",
}


def is_allowed(state: State, event: Event) -> bool:
    """Whether an event is possible in a state.

    >>> is_allowed(State.READY, Event.BEGIN), is_allowed(State.READY, Event.SEND)
    (True, False)
    """
    return (state, event) in _NEXT


def next_state(state: State, event: Event) -> State:
    """Return the state after an event; IllegalStateError with advice where it is not possible.

    >>> next_state(State.READY, Event.BEGIN)
    <State.IN_TRANSACTION: 'in a transaction'>
    >>> next_state(State.READY, Event.COMMIT)
    Traceback (most recent call last):
    kafka.errors.IllegalStateError: cannot call commit_transaction() while the producer is ready: \
no transaction is open: call begin_transaction() first
    """
    try:
        return _NEXT[state, event]
    except KeyError:
        raise IllegalStateError(
            f"cannot call {event.value} while the producer is {state.value}: {_advice(state, event)}"
        ) from None


def _advice(state: State, event: Event) -> str:
    if state is State.READY and event is Event.INIT:
        return "it is initialized, which is needed once: continue with begin_transaction()"
    return _ADVICE[state]


class Transaction:
    """One transaction: what brokers may know of it, which decides how it can end and how the next one begins."""

    __slots__ = (
        "groups",
        "has_unanswered",
        "is_v2",
        "lost_id",
        "maybe_ended",
        "outcome_unknown",
        "registered",
        "registration_sent",
        "sequence_gap",
        "started",
        "timed_out",
    )

    def __init__(self, started: float, *, is_v2: bool) -> None:
        self.started = started
        self.is_v2 = is_v2
        self.groups: set[str] = set()
        """The groups that were added at the coordinator."""
        self.registration_sent = False
        """A request was sent that makes the transaction known to the coordinator."""
        self.registered = False
        """The coordinator knows the transaction."""
        self.has_unanswered = False
        """A request of the transaction was not answered, and may still arrive at a broker."""
        self.maybe_ended = False
        """The coordinator may have ended it, though the last answer is an error."""
        self.sequence_gap = False
        """A sequence number was spent on a batch that is not in the log."""
        self.outcome_unknown = False
        """A sequence number was spent on a batch of which no broker has said whether it is in the log."""
        self.lost_id = False
        """The coordinator does not accept this producer id and epoch any more: others are needed."""
        self.timed_out = False
        """The coordinator has aborted the transaction because it took too long."""

    def note(self, error: KafkaError, step: Step) -> None:
        """Remember what an attempt to send a request may have left behind at the coordinator.

        A broker that stops being the coordinator while it writes the decision does not know whether it was written.
        """
        self.has_unanswered = self.has_unanswered or error.outcome_unknown
        if step is Step.END and (
            error.outcome_unknown or isinstance(error, (InvalidCoordinatorError, RequestTimedOutError, UnknownError))
        ):
            self.maybe_ended = True
