"""What an error means for a transaction: one rule per error, without looking at anything but the error and the step.

The rules are those of KIP-98 as KIP-360, 447, 588, 654 and 890 left them.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from kafka.errors import (
    AbortableTransactionError,
    AuthenticationError,
    BrokerResponseError,
    ClusterAuthorizationFailedError,
    ConcurrentTransactionsError,
    InvalidCoordinatorError,
    InvalidProducerEpochError,
    InvalidProducerIdMappingError,
    InvalidTxnStateError,
    KafkaError,
    ProducerFencedError,
    RequestTimedOutError,
    TransactionalIdAuthorizationFailedError,
    UnknownError,
    UnknownProducerIdError,
    UnsupportedVersionError,
)

__all__ = ["Meaning", "Step", "meaning_of", "meaning_of_lost_record", "may_have_happened"]


class Step(Enum):
    """What is asked of a coordinator."""

    INIT = "getting a producer id"
    ADD = "adding partitions to the transaction"
    OFFSETS = "adding offsets to the transaction"
    END = "ending the transaction"


class Meaning(Enum):
    """What to do about an error."""

    SOON = "ask again in a moment: the last transaction's markers are not all written"
    RETRY = "ask again"
    LOOK_UP = "look the coordinator up and ask again"
    ABORT = "the transaction has to be aborted; the producer can go on after that"
    LOST_ID = "the same, and the coordinator knows the producer id no more: take another (KIP-360)"
    FENCED = "another producer has this transactional id, or the transaction took too long"
    FATAL = "the producer cannot go on"
    REFUSED = "nothing was done, and will not be until something is mended; the call may be repeated then"

    @property
    def passes(self) -> bool:
        """Whether asking again may help."""
        return self in {Meaning.SOON, Meaning.RETRY, Meaning.LOOK_UP}


# In this order: the first that fits decides.
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
    # A member that its group has moved on from, missing rights, metadata that is too long: all of it is undone by an
    # abort, and nothing of it harms the next transaction.
    Step.OFFSETS: Meaning.ABORT,
    Step.END: Meaning.FATAL,
}


def meaning_of(error: KafkaError, step: Step) -> Meaning:
    """Return what an error at a step means.

    >>> from kafka.errors import for_code
    >>> [meaning_of(for_code(code)(), Step.END).name for code in (16, 51, 90, 49, 53)]
    ['LOOK_UP', 'SOON', 'FENCED', 'LOST_ID', 'FATAL']
    >>> meaning_of(for_code(53)(), Step.INIT)
    <Meaning.REFUSED: 'nothing was done, and will not be until something is mended; the call may be repeated then'>
    """
    for kinds, meaning in _RULES:
        if isinstance(error, kinds):
            return Meaning.REFUSED if step is Step.INIT and meaning is Meaning.FATAL else meaning
    if error.retriable:
        # What no broker has said is about the way there: another one may be the coordinator by now.
        return Meaning.RETRY if isinstance(error, BrokerResponseError) else Meaning.LOOK_UP
    return _OTHERWISE[step]


def meaning_of_lost_record(error: BaseException) -> Meaning:
    """Return what it means for the transaction that a batch was given up with an error.

    A partition's leader answers INVALID_PRODUCER_EPOCH both to a producer that another one has taken over from and to
    one whose transaction took too long. The coordinator tells the two apart, when it is asked to abort (KIP-588).
    """
    if isinstance(error, InvalidProducerEpochError):
        return Meaning.ABORT
    if isinstance(error, ProducerFencedError):
        return Meaning.FENCED
    if isinstance(error, (TransactionalIdAuthorizationFailedError, ClusterAuthorizationFailedError)):
        return Meaning.FATAL
    return Meaning.ABORT


def may_have_happened(error: KafkaError) -> bool:
    """Whether a coordinator that answers with this, or does not answer, may have done what it was asked all the same.

    A coordinator that loses its office while it writes the decision does not know whether it was written.
    """
    return error.outcome_unknown or isinstance(error, (InvalidCoordinatorError, RequestTimedOutError, UnknownError))
