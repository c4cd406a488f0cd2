"""The helpers for tests of applications: users and rights, stable groups, the requests that have come."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from kafka import KafkaConsumer, KafkaProducer
from kafka.broker import Broker
from kafka.errors import (
    GroupAuthorizationFailedError,
    IllegalArgumentError,
    KafkaTimeoutError,
    SaslAuthenticationFailedError,
    TopicAuthorizationFailedError,
)

WITH_USERS = pytest.mark.kafka_broker(
    topics=["orders", "other"], sasl=[("SCRAM-SHA-256", "admin", "a")], configs={"super.users": "User:admin"}
)


def producer(broker: Broker, user: str, password: str) -> KafkaProducer:
    return KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_plain_username=user,
        sasl_plain_password=password,
    )


@WITH_USERS
def test_a_user_that_was_added_logs_in_with_the_last_password(broker: Broker) -> None:
    broker.add_user("alice", "first")
    broker.add_user("alice", "last")
    with producer(broker, "alice", "last") as alice:
        alice.send("orders", b"1").get(10)
    with pytest.raises(SaslAuthenticationFailedError):
        producer(broker, "alice", "first").close()


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
@WITH_USERS
def test_a_user_of_a_mechanism_that_clients_cannot_use_is_refused(broker: Broker, mechanism: str) -> None:
    with pytest.raises(IllegalArgumentError, match=r"mechanisms: SCRAM-SHA-256.*sasl=\["):
        broker.add_user("alice", "secret", mechanism)


@WITH_USERS
def test_an_allowed_operation_is_all_that_a_user_may_do(broker: Broker) -> None:
    broker.add_user("alice", "wonderland")
    broker.allow("alice", "write", topic="ord*")
    with producer(broker, "alice", "wonderland") as alice:
        alice.send("orders", b"1").get(10)
        with pytest.raises(TopicAuthorizationFailedError):
            alice.send("other", b"1").get(10)
    with producer(broker, "admin", "a") as admin:
        admin.send("other", b"1").get(10)
    broker.deny("alice", "write", topic="orders")
    with producer(broker, "alice", "wonderland") as alice, pytest.raises(TopicAuthorizationFailedError):
        alice.send("orders", b"2").get(10)
    assert [record.value for record in broker.records("orders")] == [b"1"]


@pytest.mark.kafka_broker(topics=["orders"])
def test_a_group_that_is_not_allowed_is_refused_to_clients_without_a_name(broker: Broker) -> None:
    broker.append("orders", b"1")
    broker.allow("User:ANONYMOUS", "read", topic="orders")
    broker.allow("User:ANONYMOUS", "read", group="billing")
    for group, is_allowed in (("billing", True), ("other", False)):
        with KafkaConsumer(
            "orders", bootstrap_servers=broker.bootstrap_servers, group_id=group, auto_offset_reset="earliest"
        ) as consumer:
            if is_allowed:
                assert next(consumer).value == b"1"
            else:
                with pytest.raises(GroupAuthorizationFailedError):
                    consumer.poll(10_000)


@pytest.mark.parametrize(
    ("operations", "resource", "reason"),
    [
        (("read",), {}, "name one resource"),
        (("read",), {"topic": "a", "group": "b"}, "name one resource"),
        (("read",), {"table": "a"}, "the kinds are topic, group, cluster, transactional_id"),
        ((), {"topic": "a"}, "name the operations"),
        (("reed",), {"topic": "a"}, "'reed' is not an operation; they are all, read, write"),
        (("any",), {"topic": "a"}, "'any' is not an operation"),
    ],
)
def test_a_right_that_makes_no_sense_is_refused(
    broker: Broker, operations: tuple[str, ...], resource: dict[str, str], reason: str
) -> None:
    with pytest.raises(IllegalArgumentError, match=reason):
        broker.allow("alice", *operations, **resource)
    assert broker.run(lambda cluster: cluster.authorizer) is None


@contextmanager
def polling(broker: Broker, client_id: str, protocol: str) -> Iterator[None]:
    """Have a member of the group ``billing`` poll in another thread."""
    is_over = threading.Event()

    def poll() -> None:
        with KafkaConsumer(
            "orders",
            bootstrap_servers=broker.bootstrap_servers,
            group_id="billing",
            client_id=client_id,
            group_protocol=protocol,
        ) as consumer:
            while not is_over.is_set():
                consumer.poll(20)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
@pytest.mark.kafka_broker(topics={"orders": 2})
def test_a_group_is_waited_for_until_it_is_stable(broker: Broker, protocol: str) -> None:
    with polling(broker, "one", protocol):
        assert list(broker.wait_for_group("billing", 1).values()) == ["one"]
        with polling(broker, "two", protocol):
            assert sorted(broker.wait_for_group("billing", 2, timeout=30).values()) == ["one", "two"]
        assert list(broker.wait_for_group("billing", 1, timeout=30).values()) == ["one"]
        with pytest.raises(
            KafkaTimeoutError, match="'billing' to be stable with 5 members: it is Stable with 1 members"
        ):
            broker.wait_for_group("billing", 5, timeout=0.05)
    with pytest.raises(KafkaTimeoutError, match="the group 'none' to be stable: it does not exist"):
        broker.wait_for_group("none", timeout=0.05)


@pytest.mark.kafka_broker(topics=["orders"])
def test_requests_are_asserted_on_by_their_api_and_client(broker: Broker) -> None:
    for client_id, acks in (("one", 1), ("two", 0)):
        with KafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, client_id=client_id, acks=acks, enable_idempotence=False
        ) as sender:
            sender.send("orders", b"1")
    broker.wait_for("orders", 2)
    assert [request.acks for request in broker.asked("Produce")] == [1, 0]
    assert [request.acks for request in broker.asked("Produce", "two")] == [0]
    assert broker.asked("Fetch") == []
    broker.forget_requests()
    assert broker.asked("Produce") == []
