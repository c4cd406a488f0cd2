"""What the administrator promises, with figures: time, memory, threads, and what becomes of a failing broker."""

from __future__ import annotations

import threading
import time
import tracemalloc
from pathlib import Path

import pytest

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.broker import Broker
from kafka.errors import (
    KafkaError,
    KafkaTimeoutError,
    NoBrokersAvailable,
    SaslAuthenticationFailedError,
    UnsupportedVersionError,
)
from test.speed import slowness

ROOT = Path(__file__).resolve().parents[3]
GROUPS, PARTITIONS = 250, 100
#: Of the 1,000 groups that the promise is about: time and memory grow with their number.
SHARE = GROUPS / 1000


@pytest.mark.alone
def test_the_lag_of_1000_groups_and_100_partitions_takes_under_3_s_and_100_mb():
    """The time is CPU time of the client and the broker together, and so is the memory."""
    offsets = {("events", number): 0 for number in range(PARTITIONS)}
    with (
        Broker(nodes=3, topics={"events": PARTITIONS}) as broker,
        # Under tracemalloc and on a busy machine a request may take a minute.
        KafkaAdminClient(
            bootstrap_servers=broker.bootstrap_servers, default_api_timeout_ms=600_000, request_timeout_ms=600_000
        ) as admin,
    ):
        for number in range(GROUPS):
            admin.alter_group_offsets(f"group-{number}", offsets)
        broker.forget_requests()
        began = time.process_time()
        lags = admin.group_lag()
        took = time.process_time() - began
        assert len(lags) == GROUPS
        assert sum(len(lag.partitions) for lag in lags.values()) == GROUPS * PARTITIONS
        assert lags.ok
        assert took < 3 * SHARE * slowness()
        asked = [request.name for request in broker.requests]
        assert asked.count("OffsetFetch") == 3  # all groups of a coordinator in a request
        assert asked.count("FindCoordinator") == 0  # they were known from the commits
        del lags
        tracemalloc.start()
        try:
            admin.group_lag()
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 100_000_000 * SHARE


@pytest.mark.parametrize("api", ["CreateTopics", "DeleteTopics", "CreatePartitions"])
def test_a_controller_that_moves_costs_attempts(api: str):
    with Broker(nodes=3, topics=["doomed"]) as broker:
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
            broker.fail(api, "NOT_CONTROLLER", times=3)
            admin.create_topics(["events"])
            admin.create_partitions({"events": 2})
            admin.delete_topics(["doomed"])
        assert len([request for request in broker.requests if request.name == api]) == 4


def test_a_broker_that_dies_during_a_call_costs_attempts():
    with (
        Broker(nodes=3, topics={"events": 3}) as broker,
        KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin,
    ):
        controller = admin.describe_cluster().controller_id
        broker.delay("CreateTopics", 30, node=controller)
        outcome: list[object] = []
        thread = threading.Thread(target=lambda: outcome.append(admin.create_topics(["new"])))
        thread.start()
        deadline = time.monotonic() + 10
        while not [one for one in broker.requests if one.name == "CreateTopics"] and time.monotonic() < deadline:
            pass
        broker.stop_node(controller, crash=True)
        thread.join(30)
        assert outcome
        assert "new" in admin.list_topics()


@pytest.mark.parametrize("error", ["NOT_COORDINATOR", "COORDINATOR_LOAD_IN_PROGRESS", "COORDINATOR_NOT_AVAILABLE"])
def test_a_coordinator_that_moves_costs_attempts(error: str):
    partition = TopicPartition("events", 0)
    with (
        Broker(nodes=3, topics=["events"]) as broker,
        KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin,
    ):
        for api in ("OffsetCommit", "OffsetFetch", "OffsetDelete", "DeleteGroups", "DescribeGroups"):
            broker.fail(api, error, times=2)
        admin.alter_group_offsets("readers", {partition: 0})
        assert admin.list_group_offsets("readers")["readers"][partition].offset == 0
        assert admin.describe_groups(["readers"])["readers"].group_state == "Empty"
        assert admin.delete_group_offsets("readers", [partition])
        assert admin.delete_groups(["readers"]) == {"readers": "OK"}


def test_a_leader_that_moves_costs_attempts():
    partition = TopicPartition("events", 0)
    with Broker(nodes=3, topics=["events"]) as broker:
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            producer.send("events", b"record", partition=0).get(timeout=10)
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
            for api in ("ListOffsets", "DeleteRecords", "DescribeProducers", "OffsetForLeaderEpoch"):
                broker.fail(api, "NOT_LEADER_OR_FOLLOWER", times=2)
            assert admin.list_partition_offsets({partition: "latest"})[partition].offset == 1
            assert admin.offsets_for_leader_epochs({partition: 0})[partition] == (0, 1)
            assert admin.describe_producers([partition])[partition].active_producers
            assert admin.delete_records({partition: 1})[partition].low_watermark == 1


def test_one_client_serves_sixteen_threads_with_calls_of_every_kind():
    failures: list[BaseException] = []
    with (
        Broker(nodes=3, topics={"events": 2}) as broker,
        KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin,
    ):

        def work(number: int) -> None:
            try:
                for turn in range(5):
                    group = f"group-{number}"
                    admin.create_topics([f"topic-{number}-{turn}"])
                    admin.alter_group_offsets(group, {("events", 0): turn})
                    assert admin.list_group_offsets(group)[group]["events", 0].offset == turn
                    admin.list_partition_offsets({("events", 1): "latest"})
                    admin.describe_cluster()
                    admin.group_lag([group])
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=work, args=(number,)) for number in range(16)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert failures == []
        assert len([topic for topic in admin.list_topics() if topic.startswith("topic-")]) == 16 * 5


def test_a_wrong_password_fails_at_once():
    with Broker(sasl=[("PLAIN", "admin", "right")]) as broker:
        began = time.monotonic()
        with pytest.raises(SaslAuthenticationFailedError):
            KafkaAdminClient(
                bootstrap_servers=broker.bootstrap_servers,
                bootstrap_timeout_ms=60_000,
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism="PLAIN",
                sasl_plain_username="admin",
                sasl_plain_password="wrong",
            )
        assert time.monotonic() - began < 30


def test_the_constructor_names_each_address_and_needs_no_controller():
    with pytest.raises(NoBrokersAvailable, match=r"127\.0\.0\.1:1: .*127\.0\.0\.1:2: ") as caught:
        KafkaAdminClient(bootstrap_servers="127.0.0.1:1,127.0.0.1:2", bootstrap_timeout_ms=2000)
    assert "refused" in str(caught.value)
    with Broker(nodes=3) as broker:
        broker.intercept("Metadata", _without_controller)
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
            assert admin.list_topics() == []
            with pytest.raises(KafkaError, match="controller"):
                admin.create_topics(["events"], timeout_ms=2000)


def _without_controller(exchange: object) -> object:
    exchange.reply.controller_id = -1  # type: ignore[attr-defined]
    return exchange.reply  # type: ignore[attr-defined]


def test_without_a_bootstrap_timeout_the_first_call_connects():
    with KafkaAdminClient(bootstrap_servers="127.0.0.1:1", bootstrap_timeout_ms=0) as admin:
        assert not admin.bootstrap_connected()
        with pytest.raises(NoBrokersAvailable, match=r"127\.0\.0\.1:1"):
            admin.list_topics(timeout_ms=2000)


def test_calls_end_by_their_deadline():
    with Broker(topics=["events"]) as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        for api in ("Metadata", "DescribeConfigs", "ListGroups", "OffsetFetch", "ListOffsets", "DescribeClientQuotas"):
            broker.delay(api, 60)
        for call in (
            lambda: admin.list_topics(timeout_ms=300),
            lambda: admin.list_groups(timeout_ms=300),
            lambda: admin.list_group_offsets("readers", timeout_ms=300),
            lambda: admin.list_partition_offsets({("events", 0): "latest"}, timeout_ms=300),
            lambda: admin.describe_client_quotas(timeout_ms=300),
        ):
            began = time.monotonic()
            with pytest.raises(KafkaTimeoutError):
                call()
            assert time.monotonic() - began < 10  # the exact figure is tested under a virtual clock


@pytest.mark.parametrize(
    ("release", "calls"),
    [
        ("0.10.2", {"create_acls": "0.11", "describe_log_dirs": "1.0", "delete_groups": "1.1"}),
        ("1.1", {"elect_leaders": "2.2", "delete_group_offsets": "2.4", "describe_client_quotas": "2.6"}),
        ("2.8", {"list_transactions": "3.0", "telemetry_subscription": "3.7", "describe_share_groups": "4.1"}),
        ("3.9", {"describe_share_groups": "4.1", "describe_streams_groups": "4.1", "list_config_resources": "4.1"}),
    ],
)
def test_old_brokers_name_the_release_that_a_call_needs(release: str, calls: dict[str, str]):
    from kafka.admin import ACL, ResourcePattern

    acl = ACL("User:a", "*", "read", "allow", ResourcePattern("topic", "t"))
    arguments: dict[str, tuple[object, ...]] = {
        "create_acls": ([acl],),
        "delete_groups": (["g"],),
        "elect_leaders": ("preferred",),
        "delete_group_offsets": ("g", [("t", 0)]),
        "describe_share_groups": (["g"],),
        "describe_streams_groups": (["g"],),
    }
    with (
        Broker(as_version=release, topics=["t"]) as broker,
        KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin,
    ):
        assert admin.list_topics() == ["t"]
        assert admin.describe_cluster().brokers
        for name, needed in calls.items():
            with pytest.raises(UnsupportedVersionError, match=f"needs Kafka {needed}"):
                getattr(admin, name)(*arguments.get(name, ()))
