"""The producer id of a producer with transactions: given by the coordinator, with an epoch that locks out others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kafka.cluster import TRANSACTION
from kafka.errors import UnsupportedVersionError
from kafka.producer.asking import Question
from kafka.producer.identity import Identity
from kafka.producer.transaction_errors import Step
from kafka.producer.transaction_requests import NEWEST_INIT, Who, init_request, plain_error
from kafka.protocol.transaction import InitProducerIdRequest

if TYPE_CHECKING:
    from kafka.producer.asking import Asker
    from kafka.producer.core import ProducerCore

__all__ = ["TransactionalIdentity", "init_question"]

_INIT_PRODUCER_ID: Final = 22
_NOBODY: Final = -1


def init_question(expected: Who, timeout: float, wanted: Callable[[], bool] = lambda: True) -> Question:
    """Return what is asked of the coordinator for a transactional id: by who has it, or without a producer id anew."""
    return Question(
        Step.INIT,
        TRANSACTION,
        expected.transactional_id,
        InitProducerIdRequest,
        lambda version: init_request(version, expected, timeout),
        plain_error,
        newest=NEWEST_INIT,
        wanted=wanted,
    )


class TransactionalIdentity(Identity):
    """Waits to be told: `init_transactions()` and each end of a transaction say who the producer is."""

    def __init__(self, core: ProducerCore, transactional_id: str, timeout: float, asker: Asker) -> None:
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
        response = await self._asker.ask(init_question(expected, self.timeout, wanted))
        self.take(response.producer_id, response.producer_epoch)
