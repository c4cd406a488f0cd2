"""The embedded broker's coordinators against a real broker's: the same requests, the same replies, field by field.

Left out of the comparison: times, addresses, node ids and the wording of messages (whether there is one is compared);
random ids are compared by the order in which they first appear.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from kafka.broker import Broker
from test.real import sasl
from test.real.kafka_process import KafkaCluster

from .group_scripts import CONSUMER_SCRIPTS, GROUP_SCRIPTS
from .sasl_scripts import SASL_SCRIPTS, SESSION_SCRIPTS, TOKEN_SCRIPTS
from .script import Script
from .security_scripts import SECURITY_SCRIPTS
from .transaction_scripts import TRANSACTION_SCRIPTS

# Two delays that the embedded broker does without by default, and one that it does not have.
QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "group.consumer.assignment.interval.ms": "0",
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "100",
}
# Everybody here is nobody in particular, and may do everything.
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@pytest.fixture(scope="module")
def real(kafka_version: str) -> Iterator[tuple[str, int]]:
    with KafkaCluster(kafka_version, properties=QUICK | AUTHORIZER) as cluster:
        yield cluster.address(1)


@pytest.fixture
def embedded() -> Iterator[tuple[str, int]]:
    with Broker() as broker:
        yield "127.0.0.1", broker.port()


def notes_of(run: Callable[[Script], None], address: tuple[str, int]) -> list[str]:
    script = Script(address)
    with script.running():
        run(script)
    return script.notes


@pytest.mark.parametrize("run", GROUP_SCRIPTS + CONSUMER_SCRIPTS + TRANSACTION_SCRIPTS, ids=lambda run: run.__name__)
def test_the_embedded_broker_answers_as_kafka_does(
    run: Callable[[Script], None], real: tuple[str, int], embedded: tuple[str, int]
) -> None:
    assert notes_of(run, embedded) == notes_of(run, real)


@pytest.mark.parametrize("run", SECURITY_SCRIPTS, ids=lambda run: run.__name__)
def test_the_embedded_broker_gives_rights_as_kafka_does(run: Callable[[Script], None], real: tuple[str, int]) -> None:
    with Broker(configs=AUTHORIZER) as broker:
        assert notes_of(run, ("127.0.0.1", broker.port())) == notes_of(run, real)


TOKENS = {"delegation.token.secret.key": "between us"}
SESSIONS = {"connections.max.reauth.ms": "5000"}
# At the second listener sessions do not end.
OF_LISTENERS = {
    f"listener.name.short.{mechanism}.{name}": value
    for mechanism in ("plain", "scram-sha-256")
    for name, value in SESSIONS.items()
}
USERS = [("PLAIN", "eve", "secret")]
USERS += [(mechanism, "alice", "secret") for mechanism in ("PLAIN", "SCRAM-SHA-256", "OAUTHBEARER")]


@pytest.fixture(scope="module")
def real_with_sasl(kafka_version: str) -> Iterator[KafkaCluster]:
    users = sasl.plain({"alice": "secret", "eve": "secret"})
    security = [users, sasl.scram("SCRAM-SHA-256"), sasl.unsecured_oauth()]
    listeners = ["SHORT:SASL_PLAINTEXT", "LASTING:SASL_PLAINTEXT"]
    with KafkaCluster(
        kafka_version, listeners=listeners, security=security, properties=OF_LISTENERS | TOKENS
    ) as cluster:
        cluster.add_scram_user("alice", "secret", "SCRAM-SHA-256")
        yield cluster


@pytest.mark.parametrize("run", SASL_SCRIPTS, ids=lambda run: run.__name__)
def test_the_embedded_broker_lets_in_whom_kafka_does(
    run: Callable[[Script], None], real_with_sasl: KafkaCluster
) -> None:
    with Broker(sasl=USERS, configs=TOKENS) as broker:
        assert notes_of(run, ("127.0.0.1", broker.port())) == notes_of(run, real_with_sasl.address(1, "LASTING"))


@pytest.mark.parametrize("run", SESSION_SCRIPTS, ids=lambda run: run.__name__)
def test_sessions_end_as_with_kafka(run: Callable[[Script], None], real_with_sasl: KafkaCluster) -> None:
    with Broker(sasl=USERS, configs=SESSIONS | TOKENS) as broker:
        theirs = real_with_sasl.address(1, "SHORT")
        assert notes_of(run, ("127.0.0.1", broker.port())) == notes_of(run, theirs)


@pytest.mark.parametrize("run", TOKEN_SCRIPTS, ids=lambda run: run.__name__)
def test_tokens_are_handed_on_as_with_kafka(run: Callable[[Script], None], real_with_sasl: KafkaCluster) -> None:
    with Broker(sasl=USERS, configs=TOKENS) as broker:
        theirs = real_with_sasl.address(1, "LASTING")
        assert notes_of(run, ("127.0.0.1", broker.port())) == notes_of(run, theirs)
