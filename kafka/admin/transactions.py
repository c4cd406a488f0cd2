"""Transactions and their producers: list, describe, abort and fence them, and find hanging ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import Enum
from typing import Any, Final, NamedTuple, cast

from kafka.acl import Named
from kafka.admin.calls import Calls, call
from kafka.admin.partitions import as_partitions, by_topic
from kafka.admin.results import Result, error_of, raise_first
from kafka.cluster import TRANSACTION
from kafka.errors import KafkaError
from kafka.protocol.transaction import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    InitProducerIdRequest,
    ListTransactionsRequest,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from kafka.structs import TopicPartition

_DURATION_SINCE: Final = 1
_PATTERN_SINCE: Final = 2
_LONGEST_TRANSACTION_MS: Final = 900_000
# How long the transaction may take that fencing begins, which no producer will use.
_FENCING_TIMEOUT_MS: Final = 60_000


class TransactionState(Named, str, Enum):
    """The state of a transaction, as Kafka writes it."""

    UNKNOWN = "Unknown"
    EMPTY = "Empty"
    ONGOING = "Ongoing"
    PREPARE_COMMIT = "PrepareCommit"
    PREPARE_ABORT = "PrepareAbort"
    COMPLETE_COMMIT = "CompleteCommit"
    COMPLETE_ABORT = "CompleteAbort"
    DEAD = "Dead"
    PREPARE_EPOCH_FENCE = "PrepareEpochFence"

    __str__ = str.__str__


class TransactionListing(NamedTuple):
    """A transactional id, its producer and its state."""

    transactional_id: str
    producer_id: int
    state: TransactionState


class ListedTransactions(dict[int, list[TransactionListing]]):
    """Transactions by the broker that coordinates them; `failed` has the errors of brokers that did not answer."""

    __slots__ = ("failed",)

    def __init__(self, found: Mapping[int, list[TransactionListing]], failed: Mapping[int, KafkaError]) -> None:
        super().__init__(found)
        self.failed: dict[int, KafkaError] = dict(failed)

    @property
    def ok(self) -> bool:
        """Whether every broker answered."""
        return not self.failed


class TransactionDescription(NamedTuple):
    """A transaction: its coordinator, its producer, its state, and the partitions that it wrote to.

    The start is in milliseconds since 1970, -1 for a transaction that has not begun.
    """

    coordinator_id: int
    state: TransactionState
    producer_id: int
    producer_epoch: int
    transaction_timeout_ms: int
    transaction_start_time_ms: int
    topic_partitions: set[TopicPartition]


class ProducerState(NamedTuple):
    """The state of a producer at the leader of a partition; -1 for the start of a transaction that there is not."""

    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_transaction_start_offset: int


class PartitionProducerState(NamedTuple):
    """The producers that have written to a partition lately."""

    active_producers: list[ProducerState]


class AbortTransactionSpec(NamedTuple):
    """An open transaction of a partition, with what `describe_producers` says of its producer."""

    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int


class FencedProducer(Result):
    """The producer that has the transactional id now: those before it are fenced."""

    __slots__ = ()
    producer_id: int
    producer_epoch: int


class HangingTransaction(Result):
    """An open transaction of a partition that its coordinator does not know."""

    __slots__ = ()
    topic_partition: TopicPartition
    producer_id: int
    producer_epoch: int
    coordinator_epoch: int
    start_offset: int
    last_timestamp: int
    duration_ms: int

    def as_abort(self) -> AbortTransactionSpec:
        """Return what `abort_transaction` takes."""
        return AbortTransactionSpec(
            self.topic_partition, self.producer_id, self.producer_epoch, max(0, self.coordinator_epoch)
        )


class Transactions(Calls):
    """The calls about transactions."""

    @call
    async def list_transactions(
        self,
        broker_ids: Iterable[int] | None = None,
        producer_id_filters: Iterable[int] | None = None,
        state_filters: Iterable[TransactionState | str] | None = None,
        duration_filter_ms: int | None = None,
        transactional_id_pattern: str | None = None,
        timeout_ms: float | None = None,
        *,
        raise_errors: bool = True,
    ) -> ListedTransactions:
        """List the transactions that brokers coordinate (Kafka 3.0), by broker.

        They may be chosen by producer, by state, by how long they run at least (3.8), and by a regular expression
        (4.1). A broker that does not answer raises its error; with ``raise_errors=False`` the transactions of the
        others are returned, with the errors by broker in ``failed``.
        """
        deadline = self._core.deadline(timeout_ms)
        kind = ListTransactionsRequest
        request = kind(
            producer_id_filters=list(producer_id_filters or ()),
            state_filters=[TransactionState.build_from(state).value for state in state_filters or ()],
            duration_filter=-1 if duration_filter_ms is None else duration_filter_ms,
            transactional_id_pattern=transactional_id_pattern,
        )
        await self._core.require(deadline, kind.API_KEY, 0, "list_transactions()", "3.0")
        version = await self._core.version_of(kind(), deadline)
        if request.duration_filter >= 0 and version < _DURATION_SINCE:
            raise self._core.unsupported("duration_filter_ms", "3.8")
        if transactional_id_pattern is not None and version < _PATTERN_SINCE:
            raise self._core.unsupported("transactional_id_pattern", "4.1")
        nodes = await self._core.brokers(deadline) if broker_ids is None else list(broker_ids)
        answers = await self._core.ask_each(nodes, lambda _: request, deadline, "list_transactions()", checked=True)
        found = ListedTransactions(
            {
                node: [
                    TransactionListing(
                        transactional_id=one.transactional_id,
                        producer_id=one.producer_id,
                        state=TransactionState.known(one.transaction_state),
                    )
                    for one in answer.transaction_states
                ]
                for node, answer in answers.items()
                if not isinstance(answer, KafkaError)
            },
            {node: answer for node, answer in answers.items() if isinstance(answer, KafkaError)},
        )
        if raise_errors:
            raise_first(found.failed.values(), found)
        return found

    @call
    async def describe_transactions(
        self, transactional_ids: Iterable[str], timeout_ms: float | None = None, *, raise_errors: bool = True
    ) -> dict[str, TransactionDescription]:
        """Describe transactions by their transactional ids (Kafka 3.0).

        The first error is raised, with all answers in ``error.results``; with ``raise_errors=False`` an id that cannot
        be described has its error instead.
        """
        deadline = self._core.deadline(timeout_ms)
        ids = list(dict.fromkeys(_transactional_ids(transactional_ids)))
        kind = DescribeTransactionsRequest
        await self._core.require(deadline, kind.API_KEY, 0, "describe_transactions()", "3.0")

        def read(response: DescribeTransactionsResponse) -> dict[str, TransactionDescription | KafkaError]:
            return {
                one.transactional_id: error_of(
                    one.error_code, f"describe_transactions(): transaction {one.transactional_id!r}"
                )
                or _described(one, self._core.coordinator_of(one.transactional_id, TRANSACTION))
                for one in response.transaction_states
            }

        found = await self._core.ask_coordinators(
            ids,
            lambda some: kind(transactional_ids=some),
            read,
            deadline,
            "describe_transactions()",
            key_type=TRANSACTION,
        )
        if raise_errors:
            raise_first(found.values(), found)
        return cast("dict[str, TransactionDescription]", found)

    @call
    async def describe_producers(
        self,
        topic_partitions: Mapping[str, Iterable[int]] | Iterable[TopicPartition],
        broker_id: int | None = None,
        timeout_ms: float | None = None,
        *,
        raise_errors: bool = True,
    ) -> dict[TopicPartition, PartitionProducerState]:
        """Return the producers that the leaders of partitions know, or that one broker knows (Kafka 2.8).

        The first error is raised, with all answers in ``error.results``; with ``raise_errors=False`` a partition that
        failed has its error instead.

        >>> from kafka import KafkaAdminClient, KafkaProducer
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        ...         sent = producer.send("events", b"record").get(timeout=10)
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         (state,) = admin.describe_producers({"events": [0]}).values()
        >>> [producer.last_sequence for producer in state.active_producers]
        [0]
        """
        deadline = self._core.deadline(timeout_ms)
        wanted = as_partitions(topic_partitions)
        kind = DescribeProducersRequest
        await self._core.require(deadline, kind.API_KEY, 0, "describe_producers()", "2.8")

        def request(some: list[TopicPartition]) -> DescribeProducersRequest:
            return kind(topics=by_topic(some, "name", "partition_indexes"))

        def read(response: DescribeProducersResponse) -> dict[TopicPartition, PartitionProducerState | KafkaError]:
            return {
                TopicPartition(topic.name, one.partition_index): error_of(
                    one.error_code, f"{topic.name}-{one.partition_index}", one.error_message
                )
                or PartitionProducerState(active_producers=[_producer(entry) for entry in one.active_producers])
                for topic in response.topics
                for one in topic.partitions
            }

        found: dict[TopicPartition, Any] = await self._core.ask_leaders(
            wanted, request, read, deadline, "describe_producers()", node_id=broker_id
        )
        if raise_errors:
            raise_first(found.values(), found)
        return found

    @call
    async def abort_transaction(self, spec: AbortTransactionSpec, timeout_ms: float | None = None) -> None:
        """Abort the open transaction of a producer in one partition (Kafka 2.8), for transactions that hang."""
        deadline = self._core.deadline(timeout_ms)
        if not isinstance(spec, (tuple, list)):
            raise TypeError(f"spec must be an AbortTransactionSpec, not {spec!r}")
        wanted = AbortTransactionSpec(*spec)
        (partition,) = as_partitions([wanted.topic_partition])
        chosen = wanted._replace(topic_partition=partition)
        kind = WriteTxnMarkersRequest
        # The first release whose partitions tell of their producers: others cannot say what to abort.
        await self._core.require(deadline, DescribeProducersRequest.API_KEY, 0, "abort_transaction()", "2.8")
        partition = chosen.topic_partition

        def request(_: object) -> WriteTxnMarkersRequest:
            topic = kind.WritableTxnMarkerTopic(name=partition.topic, partition_indexes=[partition.partition])
            marker = kind.WritableTxnMarker(
                producer_id=chosen.producer_id,
                producer_epoch=chosen.producer_epoch,
                transaction_result=False,
                topics=[topic],
                coordinator_epoch=chosen.coordinator_epoch,
            )
            return kind(markers=[marker])

        def read(response: WriteTxnMarkersResponse) -> dict[TopicPartition, KafkaError | None]:
            return {
                TopicPartition(topic.name, one.partition_index): error_of(
                    one.error_code, f"abort_transaction(): {topic.name}-{one.partition_index}"
                )
                for marker in response.markers
                for topic in marker.topics
                for one in topic.partitions
            }

        found = await self._core.ask_leaders([partition], request, read, deadline, "abort_transaction()")
        raise_first(found.values(), found)

    @call
    async def fence_producers(
        self, transactional_ids: Iterable[str], timeout_ms: float | None = None, *, raise_errors: bool = True
    ) -> dict[str, FencedProducer]:
        """Fence the producers that have these transactional ids, and abort their transactions (Kafka 0.11).

        The first error is raised, with all answers in ``error.results``; with ``raise_errors=False`` an id that failed
        has its error instead.
        """
        ids = list(dict.fromkeys(_transactional_ids(transactional_ids)))
        found = await self._fence_producers(self._core.deadline(timeout_ms), ids)
        if raise_errors:
            raise_first(found.values(), found)
        return found

    @call
    async def force_terminate_transaction(self, transactional_id: str, timeout_ms: float | None = None) -> None:
        """Abort the transaction of a transactional id, also a prepared one, and fence its producer (Kafka 0.11)."""
        (name,) = _transactional_ids([transactional_id])
        found = await self._fence_producers(self._core.deadline(timeout_ms), [name])
        raise_first(found.values(), found)

    async def _fence_producers(self, deadline: float, ids: list[str]) -> dict[str, Any]:
        kind = InitProducerIdRequest
        await self._core.require(deadline, kind.API_KEY, 0, "fence_producers()", "0.11")

        async def fence(name: str) -> FencedProducer | KafkaError:
            request = kind(transactional_id=name, transaction_timeout_ms=_FENCING_TIMEOUT_MS)
            try:
                response = await self._core.ask_coordinator(
                    name,
                    lambda: request,
                    lambda response: response.error_code,
                    deadline,
                    "fence_producers()",
                    key_type=TRANSACTION,
                )
            except KafkaError as error:
                return error
            return FencedProducer.of_entry(response)

        return dict(zip(ids, await self._core.gather([fence(name) for name in ids]), strict=True))

    @call
    async def find_hanging_transactions(
        self,
        broker_ids: Iterable[int] | None = None,
        max_transaction_timeout_ms: int = _LONGEST_TRANSACTION_MS,
        timeout_ms: float | None = None,
    ) -> list[HangingTransaction]:
        """Return the transactions that are open in partitions, but not at their coordinators (Kafka 3.0).

        Such a transaction holds up consumers that read committed records; `abort_transaction` ends it. The call looks
        for transactions without a write for `max_transaction_timeout_ms`, in the partitions that these brokers lead, or
        in all.
        """
        deadline = self._core.deadline(timeout_ms)
        brokers = None if broker_ids is None else list(broker_ids)
        await self._core.require(deadline, ListTransactionsRequest.API_KEY, 0, "find_hanging_transactions()", "3.0")
        topics = await self._core.topic_metadata(None, deadline, "find_hanging_transactions()")
        partitions = [
            TopicPartition(topic.name, entry.partition_index)
            for topic in topics
            if topic.name is not None
            for entry in topic.partitions
            if brokers is None or entry.leader_id in brokers
        ]
        now = int(self._core.client.environment.clock.time() * 1000)
        states = await self.describe_producers(partitions, timeout_ms=deadline, raise_errors=False)
        open_ones = [
            HangingTransaction.of_entry(
                producer,
                topic_partition=partition,
                start_offset=producer.current_transaction_start_offset,
                duration_ms=now - producer.last_timestamp,
            )
            for partition, state in states.items()
            if not isinstance(state, KafkaError)
            for producer in state.active_producers
            if producer.current_transaction_start_offset >= 0
            and now - producer.last_timestamp >= max_transaction_timeout_ms
        ]
        if not open_ones:
            return []
        ids = {one.producer_id for one in open_ones}
        listed = await self.list_transactions(producer_id_filters=sorted(ids), timeout_ms=deadline)
        names = [one.transactional_id for some in listed.values() for one in some]
        described = await self.describe_transactions(names, timeout_ms=deadline, raise_errors=False)
        known = {
            (one.producer_id, one.producer_epoch, partition)
            for one in described.values()
            if isinstance(one, TransactionDescription)
            for partition in one.topic_partitions
        }
        return [one for one in open_ones if (one.producer_id, one.producer_epoch, one.topic_partition) not in known]


def _transactional_ids(given: Iterable[str]) -> list[str]:
    if isinstance(given, str):
        raise TypeError(f"transactional_ids must be a list, not {given!r}; for one, a list with one element")
    found = list(given)
    for one in found:
        if not isinstance(one, str):
            raise TypeError(f"a transactional id must be a str, not {one!r}")
    return found


def _described(one: DescribeTransactionsResponse.TransactionState, coordinator: int) -> TransactionDescription:
    return TransactionDescription(
        coordinator_id=coordinator,
        state=TransactionState.known(one.transaction_state),
        producer_id=one.producer_id,
        producer_epoch=one.producer_epoch,
        transaction_timeout_ms=one.transaction_timeout_ms,
        transaction_start_time_ms=one.transaction_start_time_ms,
        topic_partitions={TopicPartition(topic.topic, number) for topic in one.topics for number in topic.partitions},
    )


def _producer(entry: DescribeProducersResponse.ProducerState) -> ProducerState:
    return ProducerState(
        producer_id=entry.producer_id,
        producer_epoch=entry.producer_epoch,
        last_sequence=entry.last_sequence,
        last_timestamp=entry.last_timestamp,
        coordinator_epoch=entry.coordinator_epoch,
        current_transaction_start_offset=entry.current_txn_start_offset,
    )
