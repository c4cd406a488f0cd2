"""The kinds of histories, and the two brokers that each needs."""

from __future__ import annotations

from contextlib import ExitStack

from kafka.broker import Broker
from test.real import sasl
from test.real.kafka_process import KafkaCluster
from test.real.releases import NEWEST

from .classic_groups import ClassicGroups
from .cleaning import Cleaning
from .consumer_groups import ConsumerGroups
from .lockstep import Address, Kind
from .records import IdempotentProduce
from .rights import ADMIN, ALICE, Rights
from .share_groups import ShareGroups
from .topics import Topics
from .transactions import Transactions

KINDS: dict[str, type[Kind]] = {
    "records": IdempotentProduce,
    "transactions": Transactions,
    "consumer-groups": ConsumerGroups,
    "classic-groups": ClassicGroups,
    "share-groups": ShareGroups,
    "rights": Rights,
    "topics": Topics,
    "cleaning": Cleaning,
}

#: How often both brokers look for what to delete and to compact; Kafka's defaults are minutes.
CLEANING = {
    "log.cleaner.backoff.ms": "50",
    "log.retention.check.interval.ms": "100",
}
#: Delays that the embedded broker does without by default.
QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "group.share.assignment.interval.ms": "0",
    "share.coordinator.state.topic.min.isr": "1",
    "share.coordinator.state.topic.num.partitions": "2",
    "share.coordinator.state.topic.replication.factor": "1",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}
USERS = {ADMIN: "secret", ALICE: "secret"}
LISTENER = "SASL_PLAINTEXT"


def both(stack: ExitStack, *, with_acls: bool = False) -> tuple[Address, Address]:
    """Start Kafka and the embedded broker; with ACLs for the histories that are about them."""
    if not with_acls:
        real = stack.enter_context(
            KafkaCluster(NEWEST, properties=QUICK | CLEANING | {"log.initial.task.delay.ms": "100"})
        )
        ours = stack.enter_context(Broker(configs=CLEANING))
        return real.address(1), ("127.0.0.1", ours.port())
    security = [sasl.plain(USERS), sasl.access_control(NEWEST, ADMIN)]
    real = stack.enter_context(KafkaCluster(NEWEST, listeners=[LISTENER], security=security, properties=QUICK))
    rules = {name: value for one in security for name, value in one.properties.items()}
    users = [("PLAIN", name, password) for name, password in USERS.items()]
    ours = stack.enter_context(Broker(sasl=users, configs=rules))
    return real.address(1, LISTENER), ("127.0.0.1", ours.port())
