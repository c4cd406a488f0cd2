"""How a transaction ends at its coordinator, what a refusal means, and what has to be mended before the next one.

Runs on the loop. What `Transactions` decides, this carries out; nothing here looks at records.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kafka.cluster import TRANSACTION
from kafka.errors import (
    AbortableTransactionError,
    FatalTransactionError,
    InvalidTxnStateError,
    KafkaError,
    TransactionOutcomeUnknownError,
)
from kafka.producer.asking import Question
from kafka.producer.transaction_errors import Meaning, Step, meaning_of
from kafka.producer.transaction_requests import NEWEST_CLASSIC_END, Who, end_request, plain_error
from kafka.protocol.transaction import EndTxnRequest

if TYPE_CHECKING:
    from kafka.producer.core import ProducerCore
    from kafka.producer.transaction import Transaction
    from kafka.producer.transactions import Transactions

__all__ = ["Ending", "end_question"]

log = logging.getLogger(__name__)


def end_question(who: Who, *, committed: bool, is_v2: bool) -> Question:
    """Return what is asked of the coordinator to commit or abort a transaction."""
    return Question(
        Step.END,
        TRANSACTION,
        who.transactional_id,
        EndTxnRequest,
        lambda version: end_request(version, who, committed=committed),
        plain_error,
        newest=2**15 if is_v2 else NEWEST_CLASSIC_END,
    )


class Ending:
    """See the head of this file."""

    def __init__(self, transactions: Transactions, core: ProducerCore) -> None:
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
        question = end_question(who, committed=committed, is_v2=current.is_v2)
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

    def _not_committed(self, error: KafkaError, question: Question) -> KafkaError:
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

    def _not_aborted(self, error: KafkaError, question: Question) -> None:
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
