"""Requests to the coordinators of transactions and groups, each sent until one is answered; and the producer id.

`CoordinatorClient.request` knows where to send a request, in which version, and when to send it again; its callers know
what an answer means. Runs on the loop only.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from kafka._core.client import COORDINATOR
from kafka._runtime.timers import Backoff
from kafka.errors import KafkaError, KafkaTimeoutError, UnsupportedVersionError
from kafka.producer.diagnostics import no_answers
from kafka.producer.producer_id import ProducerId
from kafka.producer.transaction_protocol import (
    Meaning,
    Step,
    Transaction,
    Who,
    end_request,
    error_of,
    init_request,
    meaning_of,
    newest_version,
)
from kafka.protocol.registry import ApiKey
from kafka.protocol.transaction import EndTxnRequest, InitProducerIdRequest

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka.config import Config
    from kafka.net.connection import Connection
    from kafka.producer.sender import Sender
    from kafka.protocol.api import Request, Response
    from kafka.protocol.negotiation import ApiVersions
    from kafka.protocol.transaction import EndTxnResponse

__all__ = ["CoordinatorClient", "TransactionalProducerId", "end_transaction"]

log = logging.getLogger(__name__)

ResponseT = TypeVar("ResponseT", bound="Response")

# Markers are written within milliseconds, so the first wait for them is short: in seconds.
_SOON: Final = 0.005
_WORTH_LOGGING: Final = 4
"""Failures in a row after which the log shows them: about a second, with the default backoff."""
_NO_ID: Final = -1


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
        self._backoff = client.backoff
        self._short = Backoff(_SOON, config.seconds("retry_backoff_ms"), self._loop.rng)

    async def request(
        self,
        step: Step,
        key: str,
        request_type: type[Request[ResponseT]],
        build: Callable[[int], Request[ResponseT]],
        transaction: Transaction,
        wanted: Callable[[], bool] = lambda: True,
    ) -> ResponseT:
        """Return the response without an error; raises an error that a retry does not clear.

        `build` makes the request of a version, for the coordinator of `key`: a transactional id, or a group. The
        transaction notes the consequences of the attempts. After a retriable error another follows while `wanted`.
        """
        newest = newest_version(request_type, is_v2=transaction.is_v2)
        failures = 0
        self.requesting, self._waited_for = step.value, None
        try:
            while True:
                try:
                    deadline = self._loop.time() + self.client.settings.request_timeout
                    link = await self._connect(step, key, deadline)
                    assert link.versions is not None
                    self.versions = link.versions
                    version = min(link.versions.version_for(request_type), newest)
                    response = await link.submit(build(version), deadline=deadline)
                    error = error_of(response)
                except KafkaError as failed:
                    error = failed
                if error is None:
                    return response
                failures += 1
                transaction.note(error, step)
                if not meaning_of(error, step).is_retriable or not wanted():
                    raise error
                await self._pause(step, key, error, failures)
        finally:
            self.waiting_for = self.requesting = None

    async def _connect(self, step: Step, key: str, deadline: float) -> Connection:
        client = self.client
        link = client.link(await client.coordinator(step.coordinator, key, deadline), COORDINATOR)
        await client.open(link, deadline)
        return link

    async def _pause(self, step: Step, key: str, error: KafkaError, failures: int) -> None:
        """Wait before the next attempt."""
        meaning = meaning_of(error, step)
        if meaning is Meaning.SOON:
            await self._loop.sleep(self._short.delay(failures))
            return
        self.waiting_for = self._waited_for = f"{step.value}: {error}"
        # Not the errors of an instant, which each coordinator has when it starts; then once a minute or so.
        if failures == _WORTH_LOGGING or failures % 60 == 0:
            log.warning("Transaction of %s waits for %s", key, self.waiting_for)
        if meaning is Meaning.LOOK_UP:
            self.client.cluster.forget_coordinator(step.coordinator, key)
        await self._loop.sleep(self._backoff.delay(failures))

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
        key, build = self.transactional_id, partial(init_request, who=expected, timeout=self.timeout)
        response = await self._coordinator.request(
            Step.INIT, key, InitProducerIdRequest, build, Transaction(0.0, is_v2=False), wanted
        )
        self.accept(response.producer_id, response.producer_epoch)


async def end_transaction(
    coordinator: CoordinatorClient, who: Who, transaction: Transaction, *, committed: bool
) -> EndTxnResponse:
    """Commit or abort a transaction."""
    build = partial(end_request, who=who, committed=committed)
    return await coordinator.request(Step.END, who.transactional_id, EndTxnRequest, build, transaction)
