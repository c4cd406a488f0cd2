"""Field by field, the administrator tells the same facts of a cluster as Java's Admin: of Apache Kafka and of ours.

The cluster has topics, settings of each kind, ACLs, quotas, users, tokens, groups of each kind, and transactions in
each state that lasts. On Apache Kafka a broker is down: there is a fenced broker, a partition without a leader, and
a reassignment that does not end, and there are transactions that are prepared and cannot be completed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetAndMetadata, TopicPartition
from kafka.admin import (
    ACL,
    ConfigResource,
    NewTopic,
    ResourcePattern,
    UserScramCredentialUpsertion,
    consumer_acls,
)
from kafka.broker import Broker
from kafka.protocol.group import JoinGroupRequest, SyncGroupRequest
from kafka.protocol.sasl import DescribeDelegationTokenRequest
from kafka.protocol.share import ShareGroupHeartbeatRequest
from kafka.protocol.streams import StreamsGroupHeartbeatRequest
from test.real.admin.java_admin import Call, java_facts, our_facts
from test.real.conftest import need_kafka
from test.real.kafka_process import KafkaCluster
from test.real.releases import NEWEST
from test.real.sasl import access_control, scram

MEMBER = "AAAAAAAAAAAAAAAAAAAAAQ"
EVENTS = [TopicPartition("events", number) for number in range(3)]
SHORT = TopicPartition("short", 0)  # without the broker that is down it has too few replicas for a write
_TEN_MINUTES = "600000"
_SESSIONS = {
    f"group.{kind}.{limit}session.timeout.ms": _TEN_MINUTES for kind in ("share", "streams") for limit in ("", "max.")
}
# What changes from moment to moment, from one answer to the next only upwards.
_GROWING = {
    "finalizedFeaturesEpoch",
    "highWatermark",
    "logEndOffset",
    "lastFetchTimestamp",
    "lastCaughtUpTimestamp",
}


def until(answer: Callable[[], Any], seconds: float = 60) -> Any:
    """Ask until the answer is true."""
    deadline = time.monotonic() + seconds
    while not (found := answer()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert found
    return found


class State:
    """What a cluster has, made by our clients."""

    def __init__(self, servers: str, stack: ExitStack) -> None:
        self.servers = servers
        self.stack = stack
        self.admin = stack.enter_context(KafkaAdminClient(bootstrap_servers=servers))
        self.producers: dict[str, KafkaProducer] = {}

    def make_topics_and_records(self) -> None:
        self.admin.create_topics(
            [
                NewTopic("events", replica_assignments={0: [1, 2], 1: [2, 3], 2: [3, 1]}),
                NewTopic(
                    "compacted", 1, 2, topic_configs={"cleanup.policy": "compact,delete", "min.insync.replicas": 2}
                ),
                NewTopic("lost", replica_assignments={0: [3]}),
                NewTopic("short", replica_assignments={0: [1, 3]}, topic_configs={"min.insync.replicas": 2}),
                NewTopic("moving", replica_assignments={0: [1, 2]}),
                NewTopic("app-store-changelog", replica_assignments={0: [1, 2], 1: [2, 1], 2: [1, 2]}),
            ],
            wait_for_metadata=True,
        )
        with KafkaProducer(bootstrap_servers=self.servers) as producer:
            for number in range(30):
                producer.send("events", b"record %d" % number, partition=number % 2, timestamp_ms=1000 * (30 - number))
        self.admin.delete_records({EVENTS[0]: 4})

    def make_settings(self) -> None:
        logger = "kafka.server.KafkaApis"
        wanted = [
            ConfigResource("topic", "events", {"retention.ms": -1, "max.message.bytes": 2_000_000}),
            ConfigResource("broker", "1", {"num.io.threads": 6}),
            ConfigResource("broker", "", {"log.cleaner.threads": 2, "num.io.threads": 5}),
            ConfigResource("broker_logger", "2", {logger: "WARN"}),
            ConfigResource("client_metrics", "own", {"metrics": "org.apache.kafka.producer.", "interval.ms": 5000}),
            ConfigResource("group", "consumers", {"consumer.session.timeout.ms": 50_000}),
        ]
        assert all(
            outcome == "OK"
            for kind in self.admin.incremental_alter_configs(wanted).values()
            for outcome in kind.values()
        )

    def make_rules(self) -> None:
        self.admin.create_acls(
            [
                *consumer_acls("User:bob", ["events"], ["consumers"]),
                ACL("User:bob", "10.0.0.1", "write", "deny", ResourcePattern("topic", "e", "prefixed")),
                ACL("User:*", "*", "describe", "allow", ResourcePattern("cluster", "kafka-cluster")),
                ACL("User:eve", "*", "all", "allow", ResourcePattern("transactional_id", "*")),
                ACL("User:eve", "*", "describe", "allow", ResourcePattern("delegation_token", "token")),
                ACL("User:eve", "*", "create_tokens", "allow", ResourcePattern("user", "User:bob")),
            ]
        ).raise_for_error()
        self.admin.alter_client_quotas(
            [
                ({"user": "bob"}, {"producer_byte_rate": 1024.0, "request_percentage": 12.5}),
                ({"user": None}, {"consumer_byte_rate": 2048.0}),
                ({"user": "bob", "client-id": None}, {"controller_mutation_rate": 3.0}),
                ({"client-id": "c"}, {"producer_byte_rate": 7.0}),
                ({"ip": "10.0.0.1"}, {"connection_creation_rate": 5.0}),
            ]
        )
        self.admin.alter_user_scram_credentials(
            [
                UserScramCredentialUpsertion("bob", "SCRAM-SHA-256", "secret"),
                UserScramCredentialUpsertion("bob", "SCRAM-SHA-512", "secret", iterations=8192),
                UserScramCredentialUpsertion("eve", "SCRAM-SHA-256", "secret", iterations=5000),
            ],
            raise_errors=False,  # of the two for one user, which Kafka refuses
        )

    def make_groups(self) -> None:
        self.admin.alter_group_offsets(
            "simple", {EVENTS[0]: OffsetAndMetadata(5, "a note", 0), EVENTS[1]: OffsetAndMetadata(3, "", -1)}
        )
        self.admin.alter_streams_group_offsets("app", {EVENTS[0]: 6})
        self.admin.alter_share_group_offsets("sharers", {EVENTS[0]: 7, EVENTS[1]: 2})
        for protocol, group in (("classic", "classics"), ("consumer", "consumers")):
            consumer = self.stack.enter_context(
                KafkaConsumer(
                    "events",
                    bootstrap_servers=self.servers,
                    group_id=group,
                    group_protocol=protocol,
                    group_instance_id=f"static-{protocol}",
                    client_id=f"reader-{protocol}",
                    client_rack="rack-1",
                    auto_offset_reset="earliest",
                    enable_auto_commit=False,
                )
            )
            until(
                lambda consumer=consumer: consumer.poll(timeout_ms=100) is not None and len(consumer.assignment()) == 3
            )
        self._join_connect()
        self._send(
            ShareGroupHeartbeatRequest(
                group_id="sharers",
                member_id=MEMBER,
                member_epoch=0,
                rack_id="rack-2",
                subscribed_topic_names=["events"],
            )
        )
        self._join_streams()

    def _send(self, request: Any) -> Any:
        response = self.admin.send_request(request)
        assert response.error_code == 0, response
        return response

    def _join_connect(self) -> None:
        """Have a member join a group whose protocol is not the consumers'."""
        protocol = JoinGroupRequest.JoinGroupRequestProtocol(name="default", metadata=b"\0\1connect")

        def join(member: str) -> Any:
            return self.admin.send_request(
                JoinGroupRequest(
                    group_id="workers",
                    session_timeout_ms=int(_TEN_MINUTES),
                    rebalance_timeout_ms=int(_TEN_MINUTES),
                    member_id=member,
                    protocol_type="connect",
                    protocols=[protocol],
                )
            )

        joined = join(join("").member_id)
        assert joined.error_code == 0
        member = SyncGroupRequest.SyncGroupRequestAssignment(member_id=joined.member_id, assignment=b"")
        self._send(
            SyncGroupRequest(
                group_id="workers",
                generation_id=joined.generation_id,
                member_id=joined.member_id,
                protocol_type="connect",
                protocol_name="default",
                assignments=[member],
            )
        )

    def _join_streams(self) -> None:
        kind = StreamsGroupHeartbeatRequest
        part = kind.Subtopology(
            subtopology_id="counts",
            source_topics=["events"],
            source_topic_regex=[],
            state_changelog_topics=[
                kind.TopicInfo(
                    name="app-store-changelog",
                    partitions=0,
                    replication_factor=2,
                    topic_configs=[kind.KeyValue(key="cleanup.policy", value="compact")],
                )
            ],
            repartition_sink_topics=[],
            repartition_source_topics=[],
            copartition_groups=[],
        )
        self._send(
            kind(
                group_id="app",
                member_id=MEMBER,
                member_epoch=0,
                instance_id=None,
                rack_id="rack-1",
                rebalance_timeout_ms=30_000,
                topology=kind.Topology(epoch=3, subtopologies=[part]),
                active_tasks=[],
                standby_tasks=[],
                warmup_tasks=[],
                process_id="process",
                user_endpoint=kind.Endpoint(host="app-1", port=8080),
                client_tags=[kind.KeyValue(key="zone", value="a")],
            )
        )

    def begin_transaction(self, name: str, *partitions: TopicPartition) -> KafkaProducer:
        producer = KafkaProducer(bootstrap_servers=self.servers, transactional_id=name, transaction_timeout_ms=600_000)
        self.stack.callback(producer.close, timeout=0)
        producer.init_transactions()
        if partitions:
            producer.begin_transaction()
        for partition in partitions:
            producer.send(partition.topic, b"in a transaction", partition=partition.partition).get(timeout=30)
        self.producers[name] = producer
        return producer

    def make_transactions(self) -> None:
        self.begin_transaction("empty")
        self.begin_transaction("ongoing", EVENTS[0])
        self.begin_transaction("committed", EVENTS[0], EVENTS[1]).commit_transaction()
        self.begin_transaction("aborted", EVENTS[1]).abort_transaction()


TRANSACTIONS = ["empty", "ongoing", "committed", "aborted", "preparing-commit", "preparing-abort", "unknown"]


def calls(brokers: list[int], *, down: bool) -> list[Call]:
    """All calls of Java's Admin that tell of a cluster."""
    partitions = [[*one] for one in EVENTS] + ([["short", 0]] if down else [])
    resources = [
        ("TOPIC", "events"),
        ("TOPIC", "compacted"),
        ("TOPIC", "unknown"),
        ("BROKER", "1"),
        ("BROKER", "2"),
        ("BROKER", ""),
        ("BROKER_LOGGER", "2"),
        ("CLIENT_METRICS", "own"),
        ("GROUP", "consumers"),
        ("GROUP", "simple"),
    ]
    consumer_groups = ["simple", "classics", "consumers", "nobody"]
    offset_specs = [
        "LATEST",
        "EARLIEST",
        "MAX_TIMESTAMP",
        "EARLIEST_LOCAL",
        "LATEST_TIERED",
        "EARLIEST_PENDING_UPLOAD",
        9000,
        0,
    ]
    return [
        {"call": "describeCluster"},
        {"call": "listTopics"},
        {"call": "describeTopics", "names": ["events", "compacted", "lost", "short", "moving", "__consumer_offsets"]},
        {"call": "describeConfigs", "resources": resources},
        {"call": "listConfigResources"},
        {"call": "listClientMetricsResources"},
        {"call": "describeAcls"},
        {"call": "describeClientQuotas"},
        {"call": "describeUserScramCredentials"},
        {"call": "describeUserScramCredentials", "names": ["eve", "unknown"]},
        {"call": "describeDelegationToken"},
        {"call": "describeFeatures"},
        {"call": "describeMetadataQuorum"},
        {"call": "describeLogDirs", "brokers": brokers},
        {"call": "describeReplicaLogDirs", "replicas": [["events", 0, 1], ["events", 1, 2], ["compacted", 7, 1]]},
        {"call": "listPartitionReassignments"},
        {"call": "listGroups"},
        {"call": "describeConsumerGroups", "names": consumer_groups},
        {"call": "describeClassicGroups", "names": ["simple", "classics", "workers", "nobody"]},
        {"call": "describeShareGroups", "names": ["sharers", "nobody"]},
        {"call": "describeStreamsGroups", "names": ["app", "nobody"]},
        {"call": "listConsumerGroupOffsets", "names": consumer_groups},
        {"call": "listStreamsGroupOffsets", "names": ["app"]},
        {"call": "listShareGroupOffsets", "names": ["sharers"]},
        *({"call": "listOffsets", "partitions": partitions[:3], "spec": spec} for spec in offset_specs),
        {"call": "describeProducers", "partitions": partitions},
        {"call": "listTransactions"},
        {"call": "describeTransactions", "names": TRANSACTIONS},
    ]


def compare(before: Any, java: Any, after: Any, path: str = "") -> list[str]:
    """Return where Java's facts differ from ours, which were asked for before and after Java."""
    if isinstance(java, dict) and isinstance(before, dict) and isinstance(after, dict) and java.keys() == before.keys():
        return [line for key in java for line in compare(before[key], java[key], after.get(key), f"{path}.{key}")]
    if isinstance(java, list) and isinstance(before, list) and isinstance(after, list) and len(java) == len(before):
        sides = zip(before, java, [*after, *before][: len(java)], strict=True)
        return [
            line
            for number, (one, two, three) in enumerate(sides)
            for line in compare(one, two, three, f"{path}[{number}]")
        ]
    name = path.rpartition(".")[2]
    if name in _GROWING and None not in (before, java, after):
        same = before <= java <= after
    elif name == "controller":  # a broker names any broker that runs, to which requests for the controller may go
        same = {java, before} <= {1, 2, 3}
    elif name == "usableBytes":  # of a disk that others write to as well
        same = (java is None) == (before is None)
    else:
        same = java == before
    return [] if same else [f"{path}: Java {json.dumps(java)}, ours {json.dumps(before)}"]


def differences(admin: KafkaAdminClient, version: str, servers: str, wanted: list[Call], **config: str) -> list[str]:
    before = our_facts(admin, wanted)
    java = java_facts(version, {"bootstrap.servers": servers, **config}, wanted)
    after = our_facts(admin, wanted)
    return [
        line
        for call, one, two, three in zip(wanted, before, java, after, strict=True)
        for line in compare(one, two, three, json.dumps(call, separators=(",", ":"))[:100] + " ")
    ]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.soak  # each run compares the facts about the embedded broker, whose answers are compared with Kafka's
@pytest.mark.timeout(900)
def test_facts_about_apache_kafka(kafka_version: str, stack: ExitStack):
    cluster = stack.enter_context(
        KafkaCluster(
            kafka_version,
            nodes=3,
            listeners=["PLAINTEXT", "SASL_PLAINTEXT"],
            security=[scram(), access_control(kafka_version)],
            properties={"delegation.token.secret.key": "a cluster secret", **_SESSIONS},
            node_properties={node: {"broker.rack": f"rack-{node}"} for node in (1, 2, 3)},
        )
    )
    state = State(cluster.bootstrap_servers, stack)
    admin = state.admin
    state.make_topics_and_records()
    state.make_settings()
    state.make_rules()
    admin.alter_group_offsets("simple", {EVENTS[0]: 1})  # so that the topics of the coordinators have three replicas
    admin.alter_share_group_offsets("sharers", {EVENTS[0]: 1})
    for name in ("preparing-commit", "preparing-abort"):
        state.begin_transaction(name, SHORT)
    cluster.stop(3)
    until(lambda: len(admin.describe_cluster().brokers) == 2)
    admin.alter_partition_reassignments({TopicPartition("moving", 0): [1, 3]})
    state.make_groups()
    state.make_transactions()

    token_login = {
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "SCRAM-SHA-256",
        "sasl_plain_username": "eve",
        "sasl_plain_password": "secret",
    }
    with KafkaAdminClient(bootstrap_servers=cluster.bootstrap("SASL_PLAINTEXT"), **token_login) as eve:
        token = eve.create_delegation_token(["User:bob", "User:carol"], max_lifetime_ms=3_600_000)
        ask = DescribeDelegationTokenRequest(owners=None)
        until(  # any broker may be asked, by us and by Java
            lambda: all(
                [one.token_id for one in answer.tokens] == [token.token_id]
                for answer in eve.broadcast_request(ask).values()
            )
        )
        module = "org.apache.kafka.common.security.scram.ScramLoginModule"
        security = {
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-256",
            "sasl.jaas.config": f'{module} required username="eve" password="secret";',
        }
        tokens = [{"call": "describeDelegationToken"}]
        assert our_facts(eve, tokens) != [[]]
        assert differences(eve, kafka_version, cluster.bootstrap("SASL_PLAINTEXT"), tokens, **security) == []

    # From here on the coordinator tries to end them without a pause.
    state.producers["preparing-commit"].commit_transaction()
    state.producers["preparing-abort"].abort_transaction()
    wanted = calls([1, 2], down=True)
    lasting = {"EMPTY", "ONGOING", "COMPLETE_COMMIT", "COMPLETE_ABORT", "PREPARE_COMMIT", "PREPARE_ABORT"}

    def states() -> set[str]:
        (described,) = our_facts(admin, wanted[-1:])
        return {one["state"] for one in described.values() if "state" in one}

    until(lambda: states() == lasting)  # what was committed or aborted is completed a little later
    found = dict(zip((json.dumps(call) for call in wanted), our_facts(admin, wanted), strict=True))
    assert found[json.dumps({"call": "listPartitionReassignments"})]
    assert any(one["isFenced"] for one in found[json.dumps({"call": "describeCluster"})]["nodes"])
    assert "\n".join(differences(admin, kafka_version, cluster.bootstrap_servers, wanted)) == ""


def test_facts_about_the_embedded_broker(stack: ExitStack):
    version = need_kafka(NEWEST)
    secured = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:ANONYMOUS", **_SESSIONS}
    broker = stack.enter_context(Broker(nodes=3, configs=secured))
    state = State(broker.bootstrap_servers, stack)
    state.make_topics_and_records()
    state.make_settings()
    state.make_rules()
    state.make_groups()
    state.make_transactions()
    wanted = calls([1, 2, 3], down=False)
    assert "\n".join(differences(state.admin, version, broker.bootstrap_servers, wanted)) == ""
