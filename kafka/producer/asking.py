"""Asking the coordinators of transactions and groups, again and again until one answers.

Runs on the loop. Knows where to ask, in which version, and when to ask again; what an answer means for the transaction
is not its business.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from kafka._core.client import COORDINATOR
from kafka._runtime.timers import Backoff
from kafka.errors import KafkaError, KafkaTimeoutError
from kafka.producer.hindrance import no_answers
from kafka.producer.transaction_errors import Meaning, Step, may_have_happened, meaning_of

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka.config import Config
    from kafka.net.versions import BrokerVersions

__all__ = ["Asker", "Question"]

log = logging.getLogger(__name__)

# Markers are written within milliseconds, so the first wait for them is short: in seconds.
_SOON: Final = 0.005
_WORTH_TELLING: Final = 4
"""Failures in a row after which somebody should hear of it: about a second, with the default backoff."""


class Question:
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


class Asker:
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

    async def ask(self, question: Question) -> Any:
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

    async def _send(self, question: Question) -> Any:
        client = self._client
        deadline = self._loop.time() + client.settings.request_timeout
        node_id = await client.coordinator(question.kind, question.key, deadline)
        link = client.link(node_id, COORDINATOR)
        await client.open(link, deadline)
        assert link.versions is not None
        self.versions = link.versions
        version = min(link.versions.version_for(question.request_type), question.newest)
        return await link.submit(question.build(version), deadline - self._loop.time())

    async def _pause(self, question: Question, error: KafkaError, failures: int) -> None:
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
