"""Why records are not acknowledged yet, in words: what is wrong, where, and what to look at.

For errors and the log. It only looks, on whichever thread asks: at attributes that the loop may change meanwhile, each
read once, and at no lock. What it says may be a moment old.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kafka._core.client import PRODUCE
from kafka._text import counted
from kafka.errors import KafkaConnectionError

if TYPE_CHECKING:
    from kafka._core.client import Client
    from kafka.net.connection import Connection
    from kafka.producer.core import ProducerCore
    from kafka.producer.producer_batch import Partition, ProducerBatch

__all__ = ["counted", "hindrance", "hindrances", "no_answers", "transaction_hindrance"]

# What differs is listed so far; the rest is counted.
_MOST_REASONS: Final = 3
_UNREACHED: Final = "see whether it runs, and whether the address that it advertises can be reached from here"


def hindrances(core: ProducerCore, batches: Iterable[ProducerBatch]) -> str:
    """Return what keeps batches from being acknowledged: each reason once, that of most records first."""
    records: dict[Partition, int] = {}
    oldest: dict[Partition, ProducerBatch] = {}
    for batch in batches:
        partition = batch.partition
        oldest.setdefault(partition, batch)
        records[partition] = records.get(partition, 0) + batch.count
    by_reason: Counter[str] = Counter()
    for partition, batch in oldest.items():
        by_reason[hindrance(core, batch)] += records[partition]
    if len(by_reason) < 2:
        return next(iter(by_reason), "")
    told = [f"{counted(count)}: {reason}" for reason, count in by_reason.most_common(_MOST_REASONS)]
    if len(by_reason) > _MOST_REASONS:
        told.append(f"and {len(by_reason) - _MOST_REASONS} other reasons")
    return "; ".join(told)


def hindrance(core: ProducerCore, batch: ProducerBatch) -> str:
    """Return what keeps a batch from being acknowledged."""
    present, error = _present(core, batch), batch.error
    if error is None:
        return present or "it was about to be sent"
    if str(error) in present:
        return present
    last = f"the last attempt: {error}"
    return f"{present}; {last}" if present else last


def _present(core: ProducerCore, batch: ProducerBatch) -> str:
    """Return what it waits for now; nothing if that is the time after an error, or its turn."""
    partition = batch.partition
    leader = core.cluster.leader_for_partition(partition.tp)
    if batch.attempts and batch.error is None:
        return _silence(core, partition)
    return (
        transaction_hindrance(core)
        or (_no_leader(core, partition) if leader is None or leader < 0 else "")
        or _no_producer_id(core)
        or _connection(core, partition, -1 if leader is None else leader)
        or _turn(core, partition, batch)
    )


def _silence(core: ProducerCore, partition: Partition) -> str:
    """It was sent."""
    sink = partition.sink
    link = None if sink is None else core.client.known_link(sink.node_id, PRODUCE)
    if link is None:
        return "sent, and not answered"
    return _no_answer(link, core.now()) or f"sent to {link}, and not answered"


def _no_answer(link: Connection, now: float) -> str:
    since = link.pipeline.oldest_sent_at()
    if since is None:
        return ""
    return f"{link} has not answered for {max(0.0, now - since):.1f} seconds: see whether it hangs or is overloaded"


def transaction_hindrance(core: ProducerCore) -> str:
    """Return what keeps the producer's transaction from going on; nothing if it goes on, or there is none."""
    if core.transactions is None:
        return ""
    asker = core.transactions.asker
    if asker.waiting_for is not None:
        return f"the transaction waits for its coordinator, {asker.waiting_for}"
    if asker.asking is not None:
        silent = no_answers(core.client)
        return f"the transaction waits for its coordinator, {asker.asking}{f': {silent}' if silent else ''}"
    return ""


def _no_leader(core: ProducerCore, partition: Partition) -> str:
    tp = partition.tp
    known = core.cluster.topology.partition(tp.topic, tp.partition)
    if known is None:
        return f"no leader is known for {tp.topic}-{tp.partition}: the cluster does not know this partition"
    why = "" if known.error is None else f" ({known.error.__name__})"
    said = (
        f"no leader for {tp.topic}-{tp.partition}{why}: see whether one of its replicas, brokers {known.replicas}, runs"
    )
    return _with_those_who_should_know(core, said)


def _with_those_who_should_know(core: ProducerCore, said: str) -> str:
    """What is known of the cluster may be long past, if nobody can be asked."""
    unasked = "" if any(link.ready for link in core.client.links()) else no_answers(core.client)
    return f"{said}; {unasked}" if unasked else said


def _no_producer_id(core: ProducerCore) -> str:
    identity = core.identity
    if not identity.wanted or identity.producer_id >= 0:
        return ""
    if identity.error is not None:
        return f"no producer id yet: {identity.error}"
    silent = no_answers(core.client)
    return f"no producer id yet, which was asked for{f': {silent}' if silent else ''}"


def _connection(core: ProducerCore, partition: Partition, leader: int) -> str:
    """The way to the leader."""
    if core.cluster.broker_metadata(leader) is None:
        tp, all_down = partition.tp, not core.cluster.topology.brokers
        gone = "no broker is left that metadata could be asked of" if all_down else "the cluster names no such broker"
        return _with_those_who_should_know(core, f"broker {leader}, the leader of {tp.topic}-{tp.partition}: {gone}")
    link = core.client.known_link(leader, PRODUCE)
    if link is None:
        return ""
    throttled = link.throttled()
    if throttled:
        return (
            f"{link} throttles this client for another {throttled:.1f} seconds: see its quotas for user and client id"
        )
    return "" if link.ready else _unreached(link)


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


def _turn(core: ProducerCore, partition: Partition, batch: ProducerBatch) -> str:
    """Nothing is wrong with the broker: it waits for others, or for a point in time."""
    sink = partition.sink
    link = None if sink is None else core.client.known_link(sink.node_id, PRODUCE)
    if link is not None and sink is not None and (partition.answers_due or sink.in_flight >= core.sender.max_in_flight):
        return f"waits for the answers to what was sent before: {_no_answer(link, core.now()) or link}"
    if partition.open is batch and not batch.hurried and batch.error is None:
        return "it waits for more records (linger_ms)"
    return ""


def no_answers(client: Client) -> str:
    """Return each broker that cannot be reached or does not answer, and why."""
    now = client.loop.time()
    said: dict[str, str] = {}
    refused = False
    for link in client.links():
        text = _no_answer(link, now) if link.ready else _not_ready(link)
        if text and len(said) < _MOST_REASONS:
            said[str(link)] = text
            refused = refused or (not link.ready and link.error is not None)
    if refused:
        return "; ".join([*said.values(), _UNREACHED])
    # The connections of brokers that the client has given up are gone; the refresh of metadata remembers why.
    error = client.metadata.error
    reasons = [*said.values(), *([] if error is None else [str(error)])]
    return "; ".join([*reasons, _UNREACHED] if isinstance(error, KafkaConnectionError) else reasons)
