"""The transaction coordinator as a service of a cluster, the gate before appends, and what its API files share."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from kafka.broker.cluster.coordinators import TRANSACTION
from kafka.broker.configs.definitions import BROKER_OPTIONS
from kafka.broker.groups.service import GroupService
from kafka.broker.security.acls import Operation, Resource
from kafka.broker.transactions.coordinator import PROPERTIES, Granted, TransactionCoordinator, TransactionSettings
from kafka.errors import (
    BrokerResponseError,
    Code,
    ConcurrentTransactionsError,
    KafkaError,
    NotCoordinatorError,
    ProducerFencedError,
    TransactionAbortableError,
)
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.broker.cluster.cluster import Cluster
    from kafka.broker.server.call import Call

logger = logging.getLogger("kafka.broker")

#: Where Kafka keeps committed offsets: a transaction that commits offsets has one of its partitions.
OFFSETS_TOPIC: Final = "__consumer_offsets"
#: Produce from this version on: clients know TRANSACTION_ABORTABLE.
_ABORTABLE_FROM: Final = 11
#: Produce from this version on: the first write adds the partition (KIP-890).
_ADDS_FROM: Final = 12


class TransactionService:
    """``cluster.service(TransactionService)``: the coordinator; also ``cluster.transaction_gate``."""

    def __init__(self, cluster: Cluster) -> None:
        configs = cluster.configs
        given = {name: configs.broker_value(name) for name in PROPERTIES if name in BROKER_OPTIONS}
        settings = TransactionSettings.from_properties(
            {name: value for name, value in given.items() if value is not None}
        )
        self._cluster = cluster
        self._unwritten: set[TopicPartition] = set()
        self.coordinator = TransactionCoordinator(
            settings, cluster.clock, cluster.timers, self, cluster.new_producer_id, cluster.store.table
        )
        cluster.transaction_gate = self
        self.coordinator.load()

    def close(self) -> None:
        """Stop all timers."""
        self.coordinator.close()

    # The records that the coordinator writes

    def write_marker(self, partition: TopicPartition, producer_id: int, epoch: int, *, committed: bool) -> bool:
        """Write a control record; False while the partition has no leader."""
        if partition.topic == OFFSETS_TOPIC:
            return True
        found = self._cluster.partition(*partition)
        if found is None:
            return True  # the topic was deleted
        if found.leader < 0:
            return False
        try:
            self._cluster.append_marker(found, producer_id, epoch, committed=committed)
        except KafkaError:
            pass  # a later producer has ended it already: there is nothing left to do
        except OSError as error:  # the disk is full: it is tried again
            if partition not in self._unwritten:
                logger.error("cannot end a transaction in %s-%d, trying again: %s", *partition, error)
            self._unwritten.add(partition)
            return False
        self._unwritten.discard(partition)
        return True

    def end_offsets(self, producer_id: int, groups: Iterable[str], *, committed: bool) -> None:
        """End the transaction for the offsets of these groups."""
        self._cluster.service(GroupService).coordinator.end_transaction(producer_id, groups, committed=committed)

    # The gate

    def check_append(
        self, transactional_id: str, producer_id: int, producer_epoch: int, partition: TopicPartition, version: int
    ) -> int:
        """Return an error code, 0 if a transactional append may proceed; ``version`` is the produce request's."""
        producer = Granted(producer_id, producer_epoch)
        try:
            if version >= _ADDS_FROM:
                self.coordinator.add(transactional_id, producer, [partition])
            else:
                self.coordinator.verify(transactional_id, producer, partition)
        except ProducerFencedError:
            return Code.INVALID_PRODUCER_EPOCH  # of the two, the one that a producer can recover from
        except ConcurrentTransactionsError as error:
            return error.code if version >= _ADDS_FROM else Code.NOT_ENOUGH_REPLICAS
        except TransactionAbortableError as error:
            return error.code if version >= _ABORTABLE_FROM else Code.INVALID_TXN_STATE
        except BrokerResponseError as error:
            return error.code
        return Code.NONE


def coordinator(call: Call) -> TransactionCoordinator:
    """Return the cluster's transaction coordinator."""
    return call.cluster.service(TransactionService).coordinator


def check_id(call: Call, transactional_id: str, operation: Operation = Operation.WRITE) -> None:
    """Raise if this client may not ask this node about the transactional id."""
    call.require(operation, Resource.TRANSACTIONAL_ID, transactional_id)
    if not call.cluster.coordinators.is_at(call.node, TRANSACTION, transactional_id):
        raise NotCoordinatorError


def offsets_partition(call: Call, group_id: str) -> TopicPartition:
    """Return the partition that stands for a group's offsets in a transaction."""
    return TopicPartition(OFFSETS_TOPIC, call.cluster.coordinators.partition_for(group_id))
