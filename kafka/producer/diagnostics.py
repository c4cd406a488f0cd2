"""Why records are not acknowledged yet, in words: which cause, where, and what to check.

For errors, the log and `health()`. These functions only look, on the thread that asks: at attributes that the loop may
change meanwhile, each read once, and without a lock. The text may be out of date by a moment.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from kafka._core.client import PRODUCE
from kafka._text import counted
from kafka.errors import KafkaConnectionError

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka.net.connection import Connection
    from kafka.producer.partition import Partition
    from kafka.producer.producer_batch import ProducerBatch
    from kafka.structs import TopicPartition

__all__ = ["Diagnostics", "no_answers"]

# This many different reasons are listed; the others are counted.
_MOST_REASONS: Final = 3
_UNREACHED: Final = "see whether it runs, and whether the address that it advertises can be reached from here"
# How long a record may wait for its turn and for an answer before `health()` calls that a problem, in seconds.
_PATIENCE: Final = 1.0


class Diagnostics:
    """Explains what a producer's batches wait for.

    `transaction_problem` and `producer_id_problem` return the problem of these, or an empty text.
    """

    def __init__(
        self,
        client: Client,
        max_in_flight: int,
        linger: float,
        transaction_problem: Callable[[], str],
        producer_id_problem: Callable[[], str],
    ) -> None:
        self._client = client
        self._cluster = client.cluster
        self._now = client.loop.time
        self._max_in_flight = max_in_flight
        self._linger = linger
        self._transaction_problem = transaction_problem
        self._producer_id_problem = producer_id_problem

    def reasons(self, batches: Iterable[ProducerBatch]) -> str:
        """Return why batches are not acknowledged: each reason once, the one of most records first."""
        records: dict[Partition, int] = {}
        oldest: dict[Partition, ProducerBatch] = {}
        for batch in batches:
            partition = batch.partition
            oldest.setdefault(partition, batch)
            records[partition] = records.get(partition, 0) + batch.count
        by_reason: Counter[str] = Counter()
        for partition, batch in oldest.items():
            by_reason[self.why_unacknowledged(batch)] += records[partition]
        if len(by_reason) < 2:
            return next(iter(by_reason), "")
        listed = [f"{counted(count)}: {reason}" for reason, count in by_reason.most_common(_MOST_REASONS)]
        if len(by_reason) > _MOST_REASONS:
            listed.append(f"and {len(by_reason) - _MOST_REASONS} other reasons")
        return "; ".join(listed)

    def why_unacknowledged(self, batch: ProducerBatch) -> str:
        """Return why a batch is not acknowledged."""
        present, error = self._present(batch), batch.error
        if error is None:
            return present or "it was about to be sent"
        if str(error) in present:
            return present
        last = f"the last attempt: {error}"
        return f"{present}; {last}" if present else last

    def _present(self, batch: ProducerBatch) -> str:
        """Return what it waits for now; empty if that is the pause after an error, or its turn."""
        partition = batch.partition
        leader = self._cluster.leader_for_partition(partition.tp)
        if batch.attempts and batch.error is None:
            return self._unanswered(partition)
        return (
            self._transaction_problem()
            or (self._no_leader(partition) if leader is None or leader < 0 else "")
            or self._producer_id_problem()
            or self._connection(partition, -1 if leader is None else leader)
            or self._queued(partition, batch)
        )

    def _unanswered(self, partition: Partition) -> str:
        """It was sent."""
        link = self._link_of(partition)
        if link is None:
            return "sent, and not answered"
        return _no_answer(link, self._now()) or f"sent to {link}, and not answered"

    def _link_of(self, partition: Partition) -> Connection | None:
        sink = partition.sink
        return None if sink is None else self._client.known_link(sink.node_id, PRODUCE)

    def _no_leader(self, partition: Partition) -> str:
        tp = partition.tp
        known = self._cluster.topology.partition(tp.topic, tp.partition)
        if known is None:
            return self._no_partition(tp)
        why = "" if known.error is None else f" ({known.error.__name__})"
        return self._with_silent_brokers(
            f"no leader for {tp.topic}-{tp.partition}{why}: see whether one of its replicas, brokers {known.replicas}, "
            "runs"
        )

    def _no_partition(self, tp: TopicPartition) -> str:
        """A topic was deleted, and perhaps created again."""
        left = len(self._cluster.partitions_for_topic(tp.topic) or ())
        if not left:
            return self._with_silent_brokers(f"topic {tp.topic!r} does not exist any more: create it again")
        return (
            f"topic {tp.topic!r} has only {left} {'partition' if left == 1 else 'partitions'} now, so it was deleted "
            "and created again: add partitions, or send the records again"
        )

    def _with_silent_brokers(self, text: str) -> str:
        """Add why no broker answers, as the metadata may be out of date then."""
        silent = "" if any(link.ready for link in self._client.links()) else no_answers(self._client)
        return f"{text}; {silent}" if silent else text

    def _connection(self, partition: Partition, leader: int) -> str:
        """Return the problem of the connection to the leader; empty if there is none."""
        if self._cluster.broker_metadata(leader) is None:
            tp, all_down = partition.tp, not self._cluster.topology.brokers
            gone = "no broker is left to request metadata from" if all_down else "the cluster names no such broker"
            return self._with_silent_brokers(f"broker {leader}, the leader of {tp.topic}-{tp.partition}: {gone}")
        link = self._client.known_link(leader, PRODUCE)
        if link is None:
            return ""
        return _throttles(link) or ("" if link.ready else _unreached(link))

    def _queued(self, partition: Partition, batch: ProducerBatch) -> str:
        """Return what it waits for where nothing is wrong: other batches, or a point in time."""
        sink, link = partition.sink, self._link_of(partition)
        if link is not None and sink is not None and (partition.unanswered or sink.in_flight >= self._max_in_flight):
            return f"waits for the answers to what was sent before: {_no_answer(link, self._now()) or link}"
        if partition.open is batch and not batch.hurried and batch.error is None:
            return "it waits for more records (linger_ms)"
        return ""

    def partitions(self, batches: Iterable[ProducerBatch]) -> dict[str, dict[str, Any]]:
        """Return the partitions of batches, and for each why its oldest record is not written, as `health()` has them.

        A record that waits for linger_ms, or for the answer to a request that has just been sent, has no problem yet.
        """
        found: dict[str, dict[str, Any]] = {}
        patience = self._linger + _PATIENCE
        now = self._now()
        for batch in batches:
            if batch.outcome is not None:
                continue
            partition = batch.partition
            name = f"{partition.tp.topic}-{partition.index}"
            entry = found.get(name)
            if entry is None:
                waited = max(0.0, now - batch.created)
                late = batch.error is not None or waited > patience
                entry = found[name] = {
                    "records": 0,
                    "oldest_s": waited,
                    "attempts": 0,
                    "leader": self._cluster.leader_for_partition(partition.tp),
                    "problem": self.why_unacknowledged(batch) if late else None,
                }
            entry["records"] += batch.count
            entry["attempts"] = max(entry["attempts"], batch.attempts)
        return found


def no_answers(client: Client) -> str:
    """Return each broker that cannot be reached or does not answer, and why."""
    now = client.loop.time()
    found: dict[str, str] = {}
    refused = False
    for link in client.links():
        text = _no_answer(link, now) if link.ready else _not_ready(link)
        if text and len(found) < _MOST_REASONS:
            found[str(link)] = text
            refused = refused or (not link.ready and link.error is not None)
    if refused:
        return "; ".join([*found.values(), _UNREACHED])
    # The connections of brokers that the client has given up are gone; the refresh of metadata remembers why.
    error = client.cluster.error
    reasons = [*found.values(), *([] if error is None else [str(error)])]
    return "; ".join([*reasons, _UNREACHED] if isinstance(error, KafkaConnectionError) else reasons)


def _no_answer(link: Connection, now: float) -> str:
    since = link.pipeline.oldest_sent_at()
    if since is None:
        return ""
    # It reads what was sent before the client knew only when the time is up.
    return _throttles(link) or (
        f"{link} has not answered for {max(0.0, now - since):.1f} seconds: see whether it hangs or is overloaded"
    )


def _throttles(link: Connection) -> str:
    throttled = link.throttled()
    if not throttled:
        return ""
    return f"{link} throttles this client for another {throttled:.1f} seconds: see its quotas for user and client id"


def _unreached(link: Connection) -> str:
    text = _not_ready(link)
    return f"{text}; {_UNREACHED}" if text and link.error is not None else text


def _not_ready(link: Connection) -> str:
    """Return why a connection cannot be used."""
    if link.error is not None:
        text = str(link.error).removeprefix(f"{link}: ").removeprefix(f"{link.host}:{link.port}: ")
        times = f" ({link.failures} times in a row)" if link.failures > 1 else ""
        return f"{text}{times}" if str(link) in text else f"{link}: {text}{times}"
    if link.is_opening:
        return f"the connection to {link} is not there yet ({link.state.value.strip('<>')})"
    return ""
