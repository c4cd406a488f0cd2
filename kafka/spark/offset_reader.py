"""The driver's one connection set: which partitions there are, and their offsets.

Calls block and are made from one thread. Nothing runs between them, so a query that triggers once an hour costs
nothing meanwhile. While a query idles Spark asks every 13 ms, which is one ListOffsets per leader; the partitions
are looked up every 5 seconds.

Topics that a query names must exist. An answer that silently lacked a topic would go into the checkpoint, and when the
topic is back its partitions would be new ones, read from their beginning.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka import KafkaClient
from kafka.config import resolve
from kafka.errors import (
    BrokerResponseError,
    KafkaError,
    KafkaTimeoutError,
    NoError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafka.spark.client_cache import ClientCache, admin_client
from kafka.spark.offsets import LATEST, Offsets, format_partitions
from kafka.spark.options import SourceOptions
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka import KafkaAdminClient
    from kafka.protocol.metadata import MetadataRequest

__all__ = ["KafkaOffsetReader", "patient_client", "planner"]


log = logging.getLogger(__name__)

T = TypeVar("T")

# How old may be what is known of the partitions, in seconds: new ones are found so late at most.
_PARTITIONS_AGE: Final = 5.0
# How long one lookup may take before it is asked whether its partitions are still there, in seconds.
_PATIENCE: Final = 10.0
# After how many seconds without an answer the log shows that the brokers are silent.
_SILENCE: Final = 5.0
# How long a query that starts waits for a broker, in milliseconds: as long as Java's admin client does.
_START_MS: Final = 60_000
# How long a commit of progress may hold up the query, in milliseconds.
_COMMIT_MS: Final = 10_000


class KafkaOffsetReader:
    """See the head of this file."""

    def __init__(
        self,
        options: SourceOptions,
        client: KafkaClient | None = None,
        *,
        clock: Callable[[], float] = time.monotonic,
        patience: float = _PATIENCE,
    ) -> None:
        self._client = _make(options.client) if client is None else client
        config = self._client.config
        self._options = options
        self._clock = clock
        self._timeout = config.seconds("default_api_timeout_ms")
        self._patience = patience
        self._committed_only: bool = config["isolation_level"] == "read_committed"
        self._admin: KafkaAdminClient | None = None
        self._found: set[TopicPartition] = set()
        self._found_at: float | None = None
        self._silent_since: float | None = None
        """Since when the brokers do not answer."""

    def close(self) -> None:
        """Close the connections."""
        self._client.close()
        if self._admin is not None:
            self._admin.close()

    # Partitions…

    def partitions(self) -> set[TopicPartition]:
        """Return the partitions of the subscription, up to a few seconds old."""
        if self._found_at is None or self._clock() - self._found_at >= _PARTITIONS_AGE:
            self._found = self._insist(self._ask_partitions)
            self._found_at = self._clock()
        return set(self._found)

    def look_again(self) -> None:
        """Ask for partitions the next time, however old the answer is."""
        self._found_at = None

    def _ask_partitions(self, *, strict: bool = True) -> set[TopicPartition]:
        subscription = self._options.subscription
        pattern = None if subscription.pattern is None else re.compile(subscription.pattern)
        names = subscription.topics or sorted({tp.topic for tp in subscription.partitions})
        request = self._metadata_request(names if pattern is None else None)
        response = self._patiently(lambda timeout: self._client.ask(request, timeout_ms=timeout * 1000), self._timeout)
        # It names the leaders. Without them the first lookup of offsets would fail and be repeated after a backoff.
        self._client.cluster.update_metadata(response, whole=pattern is not None)
        found = set()
        for topic in response.topics:
            if topic.name is None:  # only where topics are asked for by their ids
                continue
            if pattern is not None and (topic.is_internal or pattern.search(topic.name) is None):
                continue
            if topic.error_code:
                self._topic_error(topic, needed=strict and pattern is None)
            found |= {TopicPartition(topic.name, part.partition_index) for part in topic.partitions}
        if not subscription.partitions:
            return found
        if subscription.partitions - found:
            log.warning(
                "There are no partitions %s, which are to be read", format_partitions(subscription.partitions - found)
            )
        return found & subscription.partitions

    def _metadata_request(self, topics: Sequence[str] | None) -> MetadataRequest:
        from kafka.protocol.metadata import MetadataRequest

        wanted = None if topics is None else [{"name": name} for name in topics]
        return MetadataRequest(topics=wanted, allow_auto_topic_creation=False)

    def _topic_error(self, topic: Any, *, needed: bool) -> None:
        kind = for_code(topic.error_code)
        # A topic that a pattern has found may be deleted by now. A topic that a query names must exist: a misspelled
        # name would give no rows and no error.
        if needed or not issubclass(kind, UnknownTopicOrPartitionError):
            raise kind(_topic_sentence(kind, topic.name, self._options))

    # Offsets…

    def edges(self, wanted: Mapping[TopicPartition, int]) -> Offsets:
        """Return the earliest or latest offsets; a partition that is gone is left out."""
        found = self._find(wanted)
        return {tp: place for tp, place in found.items() if place is not None}

    def everywhere(self, edge: int) -> Offsets:
        """Return the earliest or latest offsets of all partitions that the subscription has."""
        for _ in range(self._options.retries + 1):
            wanted = self.partitions()
            found = self.edges(dict.fromkeys(wanted, edge))
            gone = wanted - set(found)
            if not gone:
                return found
            # The known partitions are old. Asking again raises, unless a pattern has found the ones that are gone.
            self.look_again()
        raise UnknownTopicOrPartitionError(f"the offsets of {format_partitions(gone)} cannot be found")

    def latest(self, known: Mapping[TopicPartition, int]) -> Offsets:
        """Return the latest offsets of all partitions. One that went back is asked for again: a leader may lag."""
        for attempt in range(self._options.retries + 1):
            found = self.everywhere(LATEST)
            behind = [tp for tp, offset in found.items() if offset < known.get(tp, 0)]
            if not behind:
                return found
            if not attempt:  # what follows, an error for instance, stays on the first screen
                log.warning("The latest offsets of %s went back; asking again", format_partitions(behind))
            self._client.poll(timeout_ms=self._options.retry_interval * 1000)
        return found

    def at_times(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """Return the first offsets at or after times in milliseconds; None where no record is as late."""
        return self._find(wanted)

    def _find(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        if not wanted:
            return {}
        return self._insist(lambda: self._find_once(wanted))

    def _find_once(self, wanted: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        timeout = min(self._timeout, self._patience)
        try:
            found = self._patiently(
                lambda left: self._client.list_offsets(
                    wanted, committed_only=self._committed_only, timeout_ms=left * 1000
                ),
                timeout,
            )
        except KafkaTimeoutError:
            left = self._still_there(wanted)
            if len(left) == len(wanted):
                raise
            return self._find_once({tp: wanted[tp] for tp in left}) if left else {}
        return {tp: None if place is None else place.offset for tp, place in found.items()}

    def _still_there(self, wanted: Mapping[TopicPartition, int]) -> set[TopicPartition]:
        self.look_again()
        return self._ask_partitions(strict=False) & set(wanted)

    # Progress…

    def commit(self, group: str, offsets: Mapping[TopicPartition, int]) -> bool:
        """Commit offsets for a group without members, which tools then show the lag of; return whether all were.

        Progress is in the checkpoint: a commit that fails is logged and fails nothing.
        """
        try:
            if self._admin is None:
                self._admin = admin_client(self._options.client)
            outcomes = self._admin.alter_group_offsets(group, offsets, timeout_ms=_COMMIT_MS, raise_errors=False)
        except KafkaError as error:
            log.warning("Committing progress to the group %r failed: %s", group, error)
            return False
        for tp, kind in outcomes.items():
            if kind is not NoError:
                log.warning("Committing progress of %s to %r failed: %s", format_partitions([tp]), group, kind())
        return all(kind is NoError for kind in outcomes.values())

    def _patiently(self, ask: Callable[[float], T], timeout: float) -> T:
        """Ask, and say after some seconds that the brokers do not answer, and when they do: once, however often."""
        first = min(timeout, _SILENCE)
        try:
            found = ask(first)
        except KafkaTimeoutError:
            if self._silent_since is None:
                self._silent_since = self._clock() - first
                log.warning(
                    "The brokers at %s have not answered for %.0f s: the query waits for them, and asks again",
                    self._options.client["bootstrap_servers"],
                    first,
                )
            if first == timeout:
                raise
            found = ask(timeout - first)
        if self._silent_since is not None:
            log.warning("The brokers answer again, after %.0f s", self._clock() - self._silent_since)
            self._silent_since = None
        return found

    def _insist(self, ask: Callable[[], T]) -> T:
        """Ask as often as fetchOffset.numRetries says."""
        for attempt in range(self._options.retries + 1):
            try:
                return ask()
            except KafkaError as error:  # noqa: PERF203 - one round trip each
                if not error.retriable or attempt == self._options.retries:
                    raise
                # A name that does not exist is the error in the end: said once is enough.
                level = logging.INFO if isinstance(error, UnknownTopicOrPartitionError) else logging.WARNING
                log.log(level, "Asking for offsets failed, attempt %d: %s", attempt + 1, error)
                self._client.poll(timeout_ms=self._options.retry_interval * 1000)
        raise AssertionError("the last attempt returns or raises")


def _topic_sentence(kind: type[BrokerResponseError], topic: str, options: SourceOptions) -> str:
    """Return what is wrong with a topic that the query names."""
    if not issubclass(kind, UnknownTopicOrPartitionError):
        return f"topic {topic!r}"
    option = "assign" if options.subscription.partitions else "subscribe"
    return (
        f"Topic {topic!r} does not exist on {options.client['bootstrap_servers']}: create it, or correct the option "
        f"{option}"
    )


def _make(options: Mapping[str, object]) -> KafkaClient:
    return KafkaClient(config=resolve("consumer", options))


def patient_client(options: SourceOptions) -> KafkaClient:
    """Return a client for a query that runs for long, and that may be started while the brokers are away."""
    return _make({"bootstrap_timeout_ms": options.client.get("default_api_timeout_ms", _START_MS), **options.client})


_clients: Final = ClientCache(_make)


@contextmanager
def planner(options: SourceOptions) -> Iterator[KafkaOffsetReader]:
    """Give the offsets to plan a batch query with, over the connections that the process has kept."""
    try:
        yield KafkaOffsetReader(options, _clients.get(options.client))
    except BaseException:
        _clients.drop(options.client)
        raise
