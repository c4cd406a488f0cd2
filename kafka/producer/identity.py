"""The producer id, by which brokers recognise batches that come twice (KIP-98)."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from kafka.errors import ClusterAuthorizationFailedError, KafkaError, UnsupportedVersionError, for_code

if TYPE_CHECKING:
    from kafka.producer.core import ProducerCore

__all__ = ["Identity"]

log = logging.getLogger(__name__)

_INIT_PRODUCER_ID: Final = 22
# The longest there is: it has no meaning without transactions, but the field is checked.
_NO_TIMEOUT_MS: Final = 2**31 - 1


class Identity:
    """Asks for the id when the first batch is to be sent."""

    def __init__(self, core: ProducerCore, wanted: bool, insisted: bool) -> None:
        self.wanted = wanted
        """Whether batches are numbered."""
        self.producer_id = -1
        self.epoch = -1
        self.error: KafkaError | None = None
        """Why the last attempt to get an id has failed."""
        self._core = core
        self._insisted = insisted
        self._asking = False

    def check_supported(self) -> None:
        """Do without where brokers do not have it, unless it was asked for by name. Called when one has answered."""
        versions = self._core.client.versions
        if not self.wanted or versions is None or versions.supports(_INIT_PRODUCER_ID):
            return
        if self._insisted:
            release = ".".join(map(str, versions.release))
            raise UnsupportedVersionError(
                f"enable_idempotence=True needs brokers of Kafka 0.11 or newer; this one is {release}"
            )
        self.wanted = False

    def ready(self) -> bool:
        """Whether batches can be numbered, or need not be; asks for the id otherwise."""
        if not self.wanted or self.producer_id >= 0:
            return True
        if not self._asking:
            self._asking = True
            self._core.loop.spawn_logged(self._obtain(), "get a producer id")
        return False

    def renew(self) -> None:
        """Get another id: this one is used up, or not ours any more."""
        self.producer_id = self.epoch = -1
        self.ready()

    async def _obtain(self) -> None:
        core = self._core
        failures = 0
        try:
            while not core.closed:
                try:
                    await self._ask()
                    return
                except KafkaError as error:  # noqa: PERF203 - each attempt may fail
                    failures += 1
                    self.error = error
                    if not error.retriable:
                        self._refused(error)
                        if not isinstance(error, ClusterAuthorizationFailedError) or not self.wanted:
                            return
                    elif failures == 1:
                        log.warning("No producer id yet: %s", error)
                    await core.loop.sleep(core.sender.backoff(failures))
        finally:
            self._asking = False
            core.sender.resume()

    async def _ask(self) -> None:
        from kafka.protocol.transaction import InitProducerIdRequest

        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT_MS)
        response = await self._core.client.request(request)
        if response.error_code:
            raise for_code(response.error_code)
        self.producer_id, self.epoch = response.producer_id, response.producer_epoch
        self.error = None

    def _refused(self, error: KafkaError) -> None:
        """Trying again is in vain. Go on without numbers, unless they were asked for."""
        if isinstance(error, ClusterAuthorizationFailedError) and not self._insisted:
            # Brokers before 2.8 want a right of its own for it (KIP-679).
            log.warning("This principal may not write idempotently: going on without (%s)", error)
            self.wanted = False
            return
        log.error("No producer id can be had: %s", error)
        for batch in self._core.accumulator.unsettled():
            if batch.outcome is None:
                self._core.sender.give_up(batch.partition, error)
