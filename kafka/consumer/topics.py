"""The topics of a consumer: follows the cluster's metadata, and looks topics up."""

from __future__ import annotations

import logging
from collections.abc import Collection, Container, Mapping
from typing import TYPE_CHECKING

from kafka.errors import FixNeededError, InvalidTopicError, KafkaError, UnknownTopicOrPartitionError, for_code
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka._runtime.application import Application
    from kafka.consumer.subscription_state import SubscriptionState

__all__ = ["ConsumerTopics", "check_topics"]

log = logging.getLogger(__name__)


def check_topics(errors: Mapping[str, int], wanted: Container[str], missed: frozenset[str]) -> frozenset[str]:
    """Look at the errors that metadata have for topics; return the topics that have one.

    Raises the error of a wanted topic that cannot be read. A wanted topic that does not exist is logged, unless it is
    one of `missed`, what the call before returned.
    """
    for topic, code in errors.items():
        error = for_code(code)
        if topic not in wanted:
            continue
        if issubclass(error, (FixNeededError, InvalidTopicError)):
            raise error(f"topic {topic!r} cannot be read: {error.description}")
        if issubclass(error, UnknownTopicOrPartitionError) and topic not in missed:
            log.warning(
                "The cluster does not have topic %r, check its name; it is read as soon as it exists",
                topic,
                extra={"kafka_topic": topic},
            )
    return frozenset(errors)


class ConsumerTopics:
    """The cluster's topics, as far as one consumer has looked at them."""

    def __init__(
        self,
        client: Client,
        subscription: SubscriptionState,
        application: Application,
        *,
        exclude_internal: bool,
        assigns_all: bool,
    ) -> None:
        self._client = client
        self._cluster = client.cluster
        self._subscription = subscription
        self._application = application
        self._exclude_internal = exclude_internal
        self._assigns_all = assigns_all
        """Whether the consumer has all partitions of its topics, as there is no group."""
        self.seen: object = None
        """The topology that was followed last."""
        self._missed: frozenset[str] = frozenset()

    # Application-side…

    async def follow(self) -> None:
        """Adapt the subscription to the present topology; raises the error of a topic that cannot be read."""
        try:
            self.seen = self._cluster.topology
            await self._follow()
        except Exception:
            raise
        except BaseException:  # Ctrl-C, or a cancelled task: the next call looks again
            self.look_again()
            raise

    def look_again(self) -> None:
        """Compare the subscription with the topology at the next poll."""
        self.seen = None

    async def _follow(self) -> None:
        cluster, subscription = self._cluster, self._subscription
        self._missed = check_topics(cluster.topology.errors, subscription.wanted_topics, self._missed)
        if subscription.is_automatic:
            subscription.match(cluster.topics(exclude_internal_topics=self._exclude_internal))
            if self._assigns_all:
                await self._assign_all()

    async def _assign_all(self) -> None:
        """Assign all partitions of the topics, and call the listener."""
        subscription, call = self._subscription, self._application.call
        found = {
            TopicPartition(topic, number)
            for topic in subscription.subscribed_topics
            for number in self._cluster.partitions_for_topic(topic) or ()
        }
        before = set(subscription.partitions)
        if found == before:
            return
        listener = subscription.listener
        try:
            if listener is not None and before - found:
                await call(listener.on_partitions_revoked, before - found)
        finally:  # whatever it raises, the partitions are gone
            subscription.assign_from_group(sorted(found))
        if listener is not None and found - before:
            await call(listener.on_partitions_assigned, found - before)

    # Library-side…

    async def refresh(self, deadline: float, topics: Collection[str] = ()) -> None:
        """Refresh metadata, of some topics or of all that are wanted, and retry what may pass until the deadline."""
        # Not by `client.attempts`: after a failure they ask for metadata too, beside the request that is repeated here.
        while True:
            try:
                return await self._client.refresh(deadline, topics)
            except KafkaError as error:  # noqa: PERF203 - a request each time round; the backoff keeps them apart
                if not error.retriable or self._client.loop.time() >= deadline:
                    raise

    async def list(self, deadline: float) -> set[str]:
        """Return all topics that this client may see."""
        cluster = self._cluster
        before, cluster.need_all_topic_metadata = cluster.need_all_topic_metadata, True
        try:
            await self.refresh(deadline)
        finally:
            cluster.need_all_topic_metadata = before
        return set(cluster.topics())

    async def partitions(self, topic: str, deadline: float) -> set[int] | None:
        """Return the partitions of a topic; None if there is no such topic."""
        with self._cluster.also({topic}):
            await self.refresh(deadline, {topic})
        return self._cluster.partitions_for_topic(topic)
