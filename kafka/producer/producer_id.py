"""The producer id, by which a broker recognises a batch that it has already (KIP-98). Runs on the loop only.

The rules that epochs and sequence numbers follow are in the head of `kafka.producer.partition`.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from kafka.errors import ClusterAuthorizationFailedError, KafkaError, UnsupportedVersionError, for_code
from kafka.producer.diagnostics import no_answers
from kafka.protocol.registry import ApiKey

if TYPE_CHECKING:
    from kafka.producer.sender import Sender

__all__ = ["ProducerId"]

log = logging.getLogger(__name__)

# The longest timeout: it has no meaning without transactions, but the broker checks the field.
_NO_TIMEOUT_MS: Final = 2**31 - 1


class ProducerId:
    """The producer id and its first epoch; requested when the first batch is to be sent."""

    def __init__(self, sender: Sender, *, enabled: bool, required: bool) -> None:
        self.enabled = enabled
        """Whether batches are numbered."""
        self.producer_id = -1
        self.epoch = -1
        self.error: KafkaError | None = None
        """Why the last request for an id failed."""
        self.sender = sender
        self._client = sender.client
        self._required = required
        """The application has set enable_idempotence: records fail where it is not possible."""
        self._requesting = False

    def check_supported(self) -> None:
        """Disable idempotence where the brokers do not support it, unless it is required."""
        versions = self._client.versions
        if not self.enabled or versions is None or versions.reaches(ApiKey.InitProducerId):
            return
        if self._required:
            release = ".".join(map(str, versions.release))
            raise UnsupportedVersionError(
                f"enable_idempotence=True needs brokers of Kafka 0.11 or newer; this one is {release}"
            )
        self.enabled = False

    def ready(self) -> bool:
        """Whether batches can be numbered, or need not be; requests the id otherwise."""
        if not self.enabled or self.producer_id >= 0:
            return True
        if not self._requesting:
            self._requesting = True
            self._client.loop.spawn_logged(self._obtain(), "get a producer id")
        return False

    def renew(self) -> None:
        """Request another id: the epochs of this one are used up, or a broker has fenced it."""
        self.producer_id = self.epoch = -1
        self.ready()

    def problem(self) -> str:
        """Return why there is no producer id; empty if there is one, or none is needed."""
        if not self.enabled or self.producer_id >= 0:
            return ""
        if self.error is not None:
            return f"no producer id yet: {self.error}"
        silent = no_answers(self._client)
        return f"no producer id yet, which was requested{f': {silent}' if silent else ''}"

    async def _obtain(self) -> None:
        failures = 0
        try:
            while True:
                try:
                    await self._request_id()
                    return
                except KafkaError as error:  # noqa: PERF203 - each attempt may fail
                    if self.sender.accumulator.closed:
                        return
                    failures += 1
                    self.error = error
                    if not error.retriable:
                        self._refused(error)
                        if not isinstance(error, ClusterAuthorizationFailedError) or not self.enabled:
                            return
                    elif failures == 1:
                        log.warning("No producer id yet: %s", error)
                    await self._client.loop.sleep(self.sender.backoff.delay(failures))
        finally:
            self._requesting = False
            self.sender.resume()

    async def _request_id(self) -> None:
        from kafka.protocol.transaction import InitProducerIdRequest

        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT_MS)
        response = await self._client.request(request)
        if response.error_code:
            raise for_code(response.error_code)
        self.producer_id, self.epoch = response.producer_id, response.producer_epoch
        self.error = None

    def _refused(self, error: KafkaError) -> None:
        """Continue without sequence numbers, or fail the records where they are required."""
        if isinstance(error, ClusterAuthorizationFailedError) and not self._required:
            # Brokers before 2.8 need a separate permission for it (KIP-679).
            log.warning("This principal may not write idempotently: continuing without idempotence (%s)", error)
            self.enabled = False
            return
        log.error("Cannot obtain a producer id: %s", error)
        for batch in self.sender.accumulator.unsettled():
            if batch.outcome is None:
                batch.partition.give_up_unsent(error)
