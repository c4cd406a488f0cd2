"""What an operator stumbled on who solved thirty tasks on three Kafka nodes by help and messages alone."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka import KafkaAdminClient, KafkaConsumer
from kafka.broker import Broker

from .shell import run


@pytest.fixture(scope="module")
def cluster() -> Iterator[Broker]:
    configs = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:ANONYMOUS"}
    with Broker(nodes=3, configs=configs) as broker:
        yield broker


@pytest.fixture(autouse=True)
def here(cluster: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", cluster.bootstrap_servers)


def test_times_and_sizes_have_units_where_the_name_of_a_setting_says_which(cluster: Broker) -> None:
    assert run("purekafka topics create units --set retention.ms=7d --set segment.bytes=16MiB").code == 0
    found = run("purekafka configs describe topic units retention.ms segment.bytes -f json").json
    assert [row["value"] for row in found] == ["604800000", "16777216"]
    assert run("purekafka configs set topic units retention.ms=36h --yes").code == 0
    assert run("purekafka configs describe topic units retention.ms -f '{value}'").lines == ["129600000"]
    set_ = run("purekafka quotas set consumer_byte_rate=5MB --client units")
    assert (set_.code, set_.out) == (0, "client-id units: consumer_byte_rate=5000000\n")
    wrong = run("purekafka quotas set consumer_byte_rate=much --client units")
    assert (wrong.code, "a size such as 5MB" in wrong.err) == (2, True)


def test_a_group_that_is_alive_is_not_deleted_and_its_members_are_named(cluster: Broker) -> None:
    cluster.create_topic("alive-topic", 1)
    consumer = KafkaConsumer("alive-topic", bootstrap_servers=cluster.bootstrap_servers, group_id="alive")
    with KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        admin.alter_group_offsets("alive-not", {("alive-topic", 0): 0})
    try:
        while not consumer.assignment():
            consumer.poll(100)
        refused = run("purekafka groups delete alive alive-not --yes")
    finally:
        consumer.close()
    assert (refused.code, refused.lines[-1]) == (1, "alive-not: deleted")
    assert "group 'alive' has 1 member: stop them first (purekafka groups describe alive shows them)" in refused.err
    assert run("purekafka groups delete alive --yes").code == 0


def test_all_topics_leave_a_broker_before_its_maintenance(cluster: Broker) -> None:
    for name, replicas in (("leave-a", [1, 3]), ("leave-b", [3, 2])):
        run(f"purekafka topics create {name} --assignment {':'.join(map(str, replicas))}")
    rows = run("purekafka partitions reassign-plan 'leave-*' --without 3 -f json").json
    assert {row["topic"] for row in rows} == {"leave-a", "leave-b"}
    assert all(sorted(row["new_replicas"]) == [1, 2] for row in rows)
    few = run("purekafka partitions reassign-plan 'leave-*' --without 2,3")
    assert (few.code, "2 replicas need as many brokers; there are 1: -r 1 has fewer" in few.err) == (2, True)
    none = run("purekafka partitions reassign-plan 'nosuch-*'")
    assert (none.code, "no topic matches 'nosuch-*'" in none.err) == (2, True)
    ends = run("purekafka offsets list 'leave-*' -f '{topic}'")
    assert ends.lines == ["leave-a", "leave-b"]


def test_writers_by_a_prefix_and_by_the_operation_all_are_listed(cluster: Broker) -> None:
    for words in ("ada --operation write --topic may-orders", "eve --operation all --topic may --pattern prefixed"):
        assert run(f"purekafka acls allow --principal {words} --yes").code == 0
    run("purekafka acls allow --principal bob --operation read --topic may-orders --yes")
    found = run("purekafka acls list --topic may-orders --operation write --pattern match -f json").json
    assert [row["principal"] for row in found] == ["User:ada", "User:eve"]
    exact = run("purekafka acls list --topic may-orders --operation write -f json").json
    assert [row["principal"] for row in exact] == ["User:ada"]


def test_faults_of_internal_topics_are_listed_and_a_line_tells_of_none(cluster: Broker) -> None:
    cluster.create_topic("__consumer_offsets", 1)
    whole = run("purekafka topics describe __consumer_offsets --offline")
    assert (whole.code, whole.out) == (0, "")
    assert whole.err == "purekafka topics describe: no partition is offline\n"
    at_least = run("purekafka topics describe --at-min-isr -q")  # with one replica each
    assert "__consumer_offsets" in at_least.lines


def test_the_largest_topics_come_first(cluster: Broker) -> None:
    run("purekafka topics create size-small size-large")
    for _ in range(3):
        run("purekafka produce size-large --value " + "x" * 1000)
    run("purekafka produce size-small --value x")
    rows = run("purekafka brokers log-dirs --by topic --topic size-small --topic size-large -f json").json
    assert [row["topic"] for row in rows] == ["size-large", "size-small"]
    assert rows[0]["bytes"] > 3000


def test_a_topic_that_a_user_may_not_see_need_not_be_missing() -> None:
    with Broker(topics={"events": 1}, sasl=[("PLAIN", "ada", "secret")]) as broker:
        options = (
            "-X security.protocol=SASL_PLAINTEXT -X sasl.mechanism=PLAIN -X sasl.username=ada -X sasl.password=secret"
        )
        hidden = run(f"purekafka consume nosuch -b {broker.bootstrap_servers} {options}")
    assert (hidden.code, hidden.err) == (
        1,
        "purekafka consume: topic 'nosuch' does not exist, or this user may not describe it\n",
    )
