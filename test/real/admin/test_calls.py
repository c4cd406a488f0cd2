"""Every call of the administrator against Apache Kafka, on the three nodes of `kafka_cluster`.

The plain listener's clients are super users; the others authenticate with SCRAM.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, OffsetSpec, TopicPartition, TopicPartitionReplica
from kafka.admin import (
    ACL,
    AbortTransactionSpec,
    ACLFilter,
    ConfigResource,
    MemberToRemove,
    NewTopic,
    ResourcePattern,
    ResourcePatternFilter,
    Shift,
    TransactionState,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
    consumer_acls,
)
from kafka.aio import AIOKafkaAdminClient
from kafka.errors import (
    BrokerIdNotRegisteredError,
    DelegationTokenNotFoundError,
    DelegationTokenRequestNotAllowedError,
    GroupIdNotFoundError,
    InvalidConfigurationError,
    InvalidReplicaAssignmentError,
    InvalidRequestError,
    KafkaError,
    LogDirNotFoundError,
    NoError,
    NonEmptyGroupError,
    OffsetOutOfRangeError,
    ProducerFencedError,
    ResourceNotFoundError,
    TopicAlreadyExistsError,
    TopicAuthorizationFailedError,
    TransactionalIdNotFoundError,
    UnknownMemberIdError,
    UnknownTopicOrPartitionError,
    UnsupportedEndpointTypeError,
    UnsupportedVersionError,
)
from kafka.protocol.acl import DescribeAclsRequest
from kafka.protocol.admin import ListGroupsRequest
from test.real.kafka_process import KafkaCluster

OF_BOB = ACLFilter("User:bob", None, "any", "any", ResourcePatternFilter("any", None))


@pytest.fixture(scope="module")
def cluster(three_nodes: KafkaCluster) -> KafkaCluster:
    return three_nodes


@pytest.fixture(scope="module")
def admin(cluster: KafkaCluster) -> Iterator[KafkaAdminClient]:
    with KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
        yield admin


@pytest.fixture
def topic(admin: KafkaAdminClient, request: pytest.FixtureRequest) -> Iterator[str]:
    """A topic with two partitions and ten records in the first."""
    name = f"topic-{uuid.uuid4().hex[:8]}"
    admin.create_topics([NewTopic(name, 2, 2)], wait_for_metadata=True)
    with KafkaProducer(bootstrap_servers=admin.config["bootstrap_servers"]) as producer:
        for number in range(10):
            producer.send(name, b"record", partition=0, timestamp_ms=1000 * number)
    yield name
    admin.delete_topics([name])


@pytest.fixture
def group() -> str:
    return f"group-{uuid.uuid4().hex[:8]}"


def until(answer: Callable[[], Any], seconds: float = 30) -> Any:
    """Ask until the answer is true.

    A change reaches one broker after another, and any of them may answer: so each question about a change needs this,
    even if the question before it found the change.
    """
    deadline = time.monotonic() + seconds
    while not (found := answer()) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert found
    return found


def log_in(cluster: KafkaCluster, user: str, password: str, server: str | None = None) -> KafkaAdminClient:
    return KafkaAdminClient(
        bootstrap_servers=server or cluster.bootstrap("SASL_PLAINTEXT"),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-256",
        sasl_plain_username=user,
        sasl_plain_password=password,
    )


def test_topics_and_partitions(admin: KafkaAdminClient, topic: str):
    until(lambda: topic in admin.list_topics())
    (found,) = until(lambda: admin.describe_topics([topic]))
    assert (found.name, len(found.partitions), found.is_internal) == (topic, 2, False)
    (by_id,) = admin.describe_topics([found.topic_id])
    assert by_id == found
    assert admin.create_topics([topic + "-x"], validate_only=True).topics.ok
    with pytest.raises(TopicAlreadyExistsError, match=topic) as caught:
        admin.create_topics([NewTopic(topic, 1, 1), NewTopic(topic + "-new", 1, 1)])
    assert [one.ok for one in caught.value.results.topics] == [False, True]
    assert admin.create_partitions({topic: 4}, validate_only=True).results.ok
    assert admin.create_partitions({topic: 4}).results.ok
    admin.wait_for_topics([topic])
    until(lambda: len(admin.describe_topics([topic])[0].partitions) == 4)
    page = until(lambda: (some := admin.describe_topic_partitions([topic], 3)).next_cursor and some)
    assert (len(page.topics[0].partitions), page.next_cursor["partition_index"]) == (3, 3)
    rest = until(
        lambda: (some := admin.describe_topic_partitions([topic], 3, page.next_cursor)).topics[0].partitions and some
    )
    assert (len(rest.topics[0].partitions), rest.next_cursor) == (1, None)
    assert rest.topics[0].partitions[0].eligible_leader_replicas in (None, [])
    assert admin.delete_topics([topic + "-new"]).topics.ok
    with pytest.raises(InvalidRequestError, match="internal topic"):
        admin.create_topics({"__cluster_metadata": {"num_partitions": 1}})


def test_configuration_of_each_kind(admin: KafkaAdminClient, topic: str):
    loggers = admin.describe_configs([ConfigResource("broker_logger", 2)], config_filter="all")["broker_logger"]["2"]
    logger = min(name for name in loggers if name != "root")
    wanted = [
        ConfigResource("topic", topic, {"retention.ms": 5000}),
        ConfigResource("broker", "1", {"log.cleaner.threads": 2}),
        ConfigResource("broker_logger", "2", {logger: "WARN"}),
        ConfigResource("client_metrics", "own", {"metrics": "org.apache.kafka.producer."}),
        ConfigResource("group", "some-group", {"consumer.session.timeout.ms": 50_000}),
    ]
    altered = admin.alter_configs(wanted, raise_on_unknown=False)
    assert {outcome for kind in altered.values() for outcome in kind.values()} == {"OK"}

    plain = [ConfigResource(one.resource_type, one.name, list(one.configs or ())) for one in wanted]

    def values() -> list[str | None]:
        found = admin.describe_configs(plain, config_filter="all")
        return [
            found[one.resource_type.name.lower()][one.name][name].value for one in plain for name in one.configs or ()
        ]

    until(lambda: values() == ["5000", "2", "WARN", "org.apache.kafka.producer.", "50000"])
    until(lambda: admin.list_client_metrics_resources() == ["own"])
    until(lambda: "own" in admin.list_config_resources(["client_metrics"])["client_metrics"])
    reset = admin.reset_configs(plain, raise_on_unknown=False)
    assert {outcome for kind in reset.values() for outcome in kind.values()} == {"OK"}
    own = ConfigResource("topic", topic, ["cleanup.policy"])
    admin.replace_configs([ConfigResource("topic", topic, {"cleanup.policy": "compact"})])

    def policy() -> str | None:
        return admin.describe_configs([own], config_filter="all")["topic"][topic]["cleanup.policy"].value

    until(lambda: policy() == "compact")
    with pytest.raises(UnknownTopicOrPartitionError) as caught:
        admin.describe_configs([own, ConfigResource("topic", "missing")])
    assert topic in caught.value.results["topic"]


def test_records_and_offsets(admin: KafkaAdminClient, topic: str):
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    ends = admin.list_partition_offsets({first: "latest", second: "latest"})
    assert (ends[first].offset, ends[second].offset) == (10, 0)
    for place, offset in (
        (OffsetSpec.EARLIEST, 0),
        (OffsetSpec.MAX_TIMESTAMP, 9),
        (OffsetSpec.EARLIEST_LOCAL, 0),
        (3000, 3),
        (timedelta(days=1), -1),
    ):
        assert admin.list_offsets({first: place})[first].offset == offset, place
    assert admin.offsets_for_leader_epochs({first: 0})[first] == (0, 10)
    assert admin.delete_records({first: 4})[first].low_watermark == 4
    with pytest.raises(OffsetOutOfRangeError) as caught:
        admin.delete_records({first: 6, second: 99})
    assert caught.value.results[first].low_watermark == 6
    assert admin.list_partition_offsets({first: "earliest"})[first].offset == 6


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_groups_with_members(admin: KafkaAdminClient, topic: str, group: str, protocol: str):
    with KafkaConsumer(
        topic,
        group_id=group,
        bootstrap_servers=admin.config["bootstrap_servers"],
        group_protocol=protocol,
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    ) as consumer:
        while len(consumer.assignment()) < 2:
            consumer.poll(timeout_ms=100)

        def listed() -> Any:
            """Return the group when it is stable: the member has told its coordinator that it has its partitions."""
            consumer.poll(timeout_ms=100)
            stable = admin.list_groups(states_filter=["Stable"], types_filter=[protocol])
            return next((one for one in stable if one.group_id == group), None)

        assert until(listed).group_type.lower() == protocol
        assert (group, "consumer") in admin.list_consumer_groups()
        found = admin.describe_groups([group, "nobody"], include_authorized_operations=True)
        (member,) = found[group].members
        assert (found[group].group_state, found[group].group_type) == ("Stable", protocol)
        assert member.member_assignment.assignment == [(topic, [0, 1])]
        assert "DELETE" in (found[group].authorized_operations or ())
        assert isinstance(found["nobody"].error, GroupIdNotFoundError)
        lag = admin.group_lag([group])[group]
        assert (lag.total, lag.by_member) == (10, {member.member_id: 10})
        assert isinstance(admin.delete_groups([group], raise_errors=False)[group].error, NonEmptyGroupError)
        if protocol == "classic":
            assert admin.describe_classic_groups([group])[group].group_state == "Stable"
            assert admin.remove_group_members(group, ["stranger"], raise_errors=False) == {
                "stranger": UnknownMemberIdError
            }
            assert admin.remove_group_members(group, [MemberToRemove(member.member_id, reason="test")]) == {
                member.member_id: NoError
            }
    until(lambda: admin.describe_groups([group])[group].group_state == "Empty")
    assert admin.delete_groups([group]) == {group: "OK"}


def test_committed_offsets(admin: KafkaAdminClient, topic: str, group: str):
    first, second = TopicPartition(topic, 0), TopicPartition(topic, 1)
    assert admin.alter_group_offsets(group, {first: 3, second: 0}) == {first: NoError, second: NoError}
    assert admin.list_group_offsets(group)[group][first].offset == 3
    assert admin.list_consumer_group_offsets(group, partitions=[first])[first].offset == 3
    others = admin.list_group_offsets({group: [first], "nobody": None}, require_stable=True)
    assert (others[group][first].offset, others["nobody"]) == (3, {})
    for place, offset in ((Shift(2), 5), ("earliest", 0), (99, 10), (timedelta(days=1), 10)):
        assert admin.reset_group_offsets(group, {first: place})[first].offset == offset
    assert admin.reset_group_offsets(group, "latest", dry_run=True)[second].previous == 0
    assert admin.group_lag()[group].by_topic == {topic: 0}
    assert admin.delete_group_offsets(group, [first]) == {first: NoError}
    assert list(admin.list_group_offsets(group)[group]) == [second]
    assert admin.delete_groups([group]) == {group: "OK"}


def test_share_groups(admin: KafkaAdminClient, topic: str, group: str):
    partition = TopicPartition(topic, 0)
    # The coordinator learns of a new topic a little later than its broker names the topic's leaders.
    until(lambda: admin.alter_share_group_offsets(group, {partition: 3}, raise_errors=False) == {partition: NoError})
    assert admin.describe_share_groups([group])[group].group_state == "Empty"
    assert until(lambda: admin.list_share_group_offsets(group)[group])[partition].start_offset == 3
    assert group in [one.group_id for one in admin.list_groups(types_filter=["share"])]
    assert admin.delete_share_group_offsets(group, [topic]) == {topic: NoError}
    assert admin.delete_share_groups([group])[group].ok


def test_groups_of_a_kind_that_do_not_exist(admin: KafkaAdminClient):
    assert isinstance(admin.describe_share_groups(["nobody"])["nobody"].error, GroupIdNotFoundError)
    assert isinstance(admin.describe_streams_groups(["nobody"])["nobody"].error, GroupIdNotFoundError)
    assert admin.list_streams_group_offsets("nobody") == {"nobody": {}}
    assert isinstance(admin.delete_streams_groups(["nobody"], raise_errors=False)["nobody"].error, GroupIdNotFoundError)


def test_elections_and_reassignments(admin: KafkaAdminClient, topic: str):
    first = TopicPartition(topic, 0)
    result = admin.elect_leaders("preferred", {topic: [0, 1]})
    assert result.partitions.ok
    assert len(result.partitions) == 2
    with pytest.raises(UnknownTopicOrPartitionError, match="missing-0"):
        admin.perform_leader_election(0, {"missing": [0], topic: [0]})
    assert admin.alter_partition_reassignments({first: [3, 1, 2]}) == {first: None}
    until(lambda: not admin.list_partition_reassignments([first]))
    until(lambda: admin.describe_topics([topic])[0].partitions[0].replica_nodes == [3, 1, 2])
    with pytest.raises(InvalidReplicaAssignmentError):
        admin.alter_partition_reassignments({first: [99]})
    assert admin.list_partition_reassignments() == {}


@pytest.mark.parametrize("name", ["ssl.keystore.location", "scram-sha-256.sasl.jaas.config"])
def test_settings_of_a_listener_that_are_not_set_yet(admin: KafkaAdminClient, name: str):
    """A broker lists them once they are set; without a value the broker itself checks whether they may be changed."""
    resource = ConfigResource("broker", 1, {f"listener.name.nobody.{name}": "x"})
    admin.alter_configs([resource], validate_only=True)
    wrong = ConfigResource("broker", 1, {"listener.name.nobody.ssl.keystoer.location": "x"})
    hint = r"did you mean 'listener\.name\.nobody\.ssl\.keystore\.location'"
    with pytest.raises(InvalidConfigurationError, match=hint):
        admin.alter_configs([wrong], validate_only=True)


def test_log_directories(admin: KafkaAdminClient, topic: str):
    found = admin.describe_log_dirs({topic: [0, 1]})
    assert [one.broker for one in found] == [1, 2, 3]
    assert all(one.log_dirs[0].total_bytes > 0 for one in found)
    (leader,) = {part.leader_id for part in admin.describe_topics([topic])[0].partitions if part.partition_index == 0}
    replica = TopicPartitionReplica(topic, 0, leader)
    place = admin.describe_replica_log_dirs([replica])[replica].current_log_dir
    assert place == next(one.log_dirs[0].log_dir for one in found if one.broker == leader)
    assert admin.alter_replica_log_dirs({replica: place}) == {replica: NoError}
    assert admin.alter_replica_log_dirs({replica: "/nowhere"}, raise_errors=False) == {replica: LogDirNotFoundError}


def test_acls(admin: KafkaAdminClient, cluster: KafkaCluster, topic: str):
    admin.alter_user_scram_credentials([UserScramCredentialUpsertion("bob", "SCRAM-SHA-256", "pässword")])
    until(lambda: can_log_in(cluster, "bob", "pässword"))
    acls = consumer_acls("User:bob", [topic], ["readers"])
    prefix = ACL("User:bob", "*", "write", "deny", ResourcePattern("topic", topic[:8], "prefixed"))
    assert admin.create_acls([*acls, prefix]).ok
    until(lambda: set(admin.describe_acls(OF_BOB)[0]) == {*acls, prefix})
    every = DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter="User:bob",
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    until(  # bob's requests go to the leaders and to the group's coordinator, which may be any of the brokers
        lambda: all(
            sum(len(resource.acls) for resource in answer.resources) == len(acls) + 1
            for answer in admin.broadcast_request(every).values()
        )
    )
    with log_in(cluster, "bob", "pässword") as bob:
        assert bob.list_topics() == [topic]
        with pytest.raises(TopicAuthorizationFailedError):
            bob.delete_topics([topic])
        bob.group_lag(["readers"])
    ((_, matching, error),) = admin.delete_acls([OF_BOB])
    assert {acl for acl, _ in matching} == {*acls, prefix}
    assert error is NoError
    until(lambda: admin.describe_acls(OF_BOB) == ([], NoError))


def can_log_in(cluster: KafkaCluster, user: str, password: str) -> bool:
    """Whether each broker accepts the password."""
    with contextlib.suppress(KafkaError):
        for server in cluster.bootstrap("SASL_PLAINTEXT").split(","):
            log_in(cluster, user, password, server).close()
        return True
    return False


def test_users(admin: KafkaAdminClient):
    outcome = admin.alter_user_scram_credentials(
        [
            UserScramCredentialUpsertion("carol", "SCRAM-SHA-512", "secret", iterations=8192),
            UserScramCredentialDeletion("nobody", "SCRAM-SHA-256"),
        ],
        raise_errors=False,
    )
    assert outcome["carol"] is None
    assert isinstance(outcome["nobody"].error, ResourceNotFoundError)  # type: ignore[union-attr]
    (info,) = until(lambda: admin.describe_user_scram_credentials(["carol"])["carol"].credential_infos)
    assert (info.mechanism, info.iterations) == (2, 8192)
    until(lambda: "carol" in admin.describe_user_scram_credentials())  # any broker answers, each learns of it by itself


def test_quotas(admin: KafkaAdminClient):
    entity = {"user": "dave", "client-id": None}
    wanted = [(entity, {"producer_byte_rate": 1024.0, "request_percentage": 12.5})]
    assert admin.alter_client_quotas(wanted, validate_only=True).ok
    assert admin.alter_client_quotas(wanted).ok
    (found,) = until(lambda: admin.describe_client_quotas({"user": "dave", "client-id": None}))
    assert found == {"entity": entity, "quotas": {"producer_byte_rate": 1024.0, "request_percentage": 12.5}}
    admin.alter_client_quotas([(entity, {"producer_byte_rate": None, "request_percentage": None})])
    until(lambda: admin.describe_client_quotas({"user": ...}) == [])


def test_delegation_tokens(admin: KafkaAdminClient, cluster: KafkaCluster):
    with pytest.raises(DelegationTokenRequestNotAllowedError):
        admin.create_delegation_token()
    admin.alter_user_scram_credentials([UserScramCredentialUpsertion("owner", "SCRAM-SHA-256", "secret")])
    until(lambda: can_log_in(cluster, "owner", "secret"))
    with log_in(cluster, "owner", "secret") as owner:
        token = owner.create_delegation_token(["User:bob"], max_lifetime_ms=3_600_000)
        assert (token.owner, token.renewers) == ("User:owner", ["User:bob"])
        until(lambda: [one.token_id for one in owner.describe_delegation_token()] == [token.token_id])
        # The controller learns of the token by its own log, like a broker.
        assert until(lambda: renewed(owner, token.hmac)) <= token.max_timestamp
        owner.expire_delegation_token(token.hmac)
        until(lambda: owner.describe_delegation_token(["User:owner"]) == [])
        with pytest.raises(DelegationTokenNotFoundError):
            owner.renew_delegation_token(b"not a token")


def renewed(admin: KafkaAdminClient, hmac: bytes) -> int:
    with contextlib.suppress(DelegationTokenNotFoundError):
        return admin.renew_delegation_token(hmac, 60_000)
    return 0


def test_transactions(admin: KafkaAdminClient, topic: str):
    partition = TopicPartition(topic, 1)
    name = f"transaction-{topic}"
    producer = KafkaProducer(bootstrap_servers=admin.config["bootstrap_servers"], transactional_id=name)
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"record", partition=1).get(timeout=30)
    listed = [one for some in admin.list_transactions(state_filters=["Ongoing"]).values() for one in some]
    assert name in [one.transactional_id for one in listed]
    assert not any(admin.list_transactions(duration_filter_ms=3_600_000).values())
    assert not any(admin.list_transactions(transactional_id_pattern="other.*").values())
    described = admin.describe_transactions([name])[name]
    assert (described.state, described.topic_partitions) == (TransactionState.ONGOING, {partition})
    (state,) = admin.describe_producers([partition])[partition].active_producers
    assert (state.producer_id, state.current_transaction_start_offset) == (described.producer_id, 0)
    assert admin.find_hanging_transactions() == []
    with pytest.raises(TransactionalIdNotFoundError, match="'nobody'"):
        admin.describe_transactions([name, "nobody"])
    fenced = admin.fence_producers([name])[name]
    assert fenced.producer_epoch > state.producer_epoch or fenced.producer_id != state.producer_id
    with pytest.raises(ProducerFencedError):
        producer.commit_transaction()
    producer.close(timeout=5)
    admin.force_terminate_transaction(name)
    until(lambda: admin.list_partition_offsets({partition: "latest"}, "read_committed")[partition].offset >= 2)


def test_an_open_transaction_is_aborted(admin: KafkaAdminClient, topic: str):
    partition = TopicPartition(topic, 1)
    producer = KafkaProducer(bootstrap_servers=admin.config["bootstrap_servers"], transactional_id=f"abort-{topic}")
    producer.init_transactions()
    producer.begin_transaction()
    producer.send(topic, b"record", partition=1).get(timeout=30)
    (state,) = admin.describe_producers([partition])[partition].active_producers
    spec = AbortTransactionSpec(partition, state.producer_id, state.producer_epoch, max(0, state.coordinator_epoch))
    admin.abort_transaction(spec)
    (after,) = admin.describe_producers([partition])[partition].active_producers
    assert after.current_transaction_start_offset == -1
    with contextlib.suppress(KafkaError):
        producer.abort_transaction()
    producer.close(timeout=5)


def test_features_quorum_and_cluster(admin: KafkaAdminClient):
    cluster = admin.describe_cluster(include_authorized_operations=True, include_fenced_brokers=True)
    assert [node.broker_id for node in cluster.brokers] == [1, 2, 3]
    assert "ALTER" in (cluster.authorized_operations or ())
    features = admin.describe_features()
    assert features.finalized_features["metadata.version"].max_version > 0
    assert admin.describe_features(send_request_to_controller=True).supported_features.keys() >= {"metadata.version"}
    level = features.finalized_features["group.version"].max_version
    assert admin.update_features({"group.version": level}, validate_only=True)["group.version"].ok
    assert not admin.update_features({"group.version": 0}, raise_errors=False)["group.version"].ok
    quorum = admin.describe_metadata_quorum()
    assert quorum.leader_id in {1, 2, 3}
    assert {voter.replica_id for voter in quorum.voters} == {1, 2, 3}
    assert quorum.high_watermark > 0
    with pytest.raises(BrokerIdNotRegisteredError):
        admin.unregister_broker(99)
    # Voters that server.properties names cannot be changed.
    with pytest.raises(KafkaError):
        admin.add_raft_voter(9, uuid.uuid4(), [("CONTROLLER", "127.0.0.1", 1)])
    with pytest.raises(KafkaError):
        admin.remove_raft_voter(1, uuid.uuid4())
    assert admin.api_versions()[3][1] >= 12
    assert admin.get_broker_version_data(2).ranges == admin.api_versions()


def test_controllers_are_asked_directly(kafka_cluster: KafkaCluster):
    controllers = kafka_cluster.bootstrap("CONTROLLER")
    brokers = KafkaAdminClient(bootstrap_servers=kafka_cluster.bootstrap_servers)
    direct = KafkaAdminClient(bootstrap_controllers=controllers)
    with brokers, direct:
        until(lambda: len(direct.describe_cluster().brokers) == 3)  # each controller has to register first
        found = direct.describe_cluster(include_authorized_operations=True)
        assert {f"{one.host}:{one.port}" for one in found.brokers} == set(controllers.split(","))
        assert [one.broker_id for one in found.brokers] == [1, 2, 3]
        assert found.cluster_id == brokers.describe_cluster().cluster_id
        assert direct.describe_metadata_quorum().leader_id == found.controller_id
        level = direct.describe_features().finalized_features["group.version"].max_version
        assert direct.update_features({"group.version": level}, validate_only=True)["group.version"].ok
        settings = ConfigResource("broker", "1", {"log.cleaner.threads": 2})
        assert direct.alter_configs([settings]) == {"broker": {"1": "OK"}}
        until(lambda: brokers.describe_configs([settings], config_filter="dynamic")["broker"]["1"])
        assert direct.reset_configs([settings]) == {"broker": {"1": "OK"}}
        active = ConfigResource("broker", found.controller_id)
        roles = direct.describe_configs([active], config_filter="all")["broker"][active.name]["process.roles"]
        assert roles.value == "broker,controller"
        assert direct.create_topics([NewTopic("of-a-controller", 2, 3)]).topics.ok
        brokers.wait_for_topics(["of-a-controller"])
        with pytest.raises(UnsupportedEndpointTypeError, match="list_groups"):
            direct.list_groups()
        # The calls about voters reach the controller, which refuses: these voters are fixed by its configuration.
        with pytest.raises(UnsupportedVersionError):
            direct.remove_raft_voter(2, uuid.uuid4())
        with pytest.raises(UnsupportedVersionError):
            direct.add_raft_voter(9, uuid.uuid4(), [("CONTROLLER", "127.0.0.1", 1)])

        # After the active controller is gone, and a broker with it, which registers again when it comes back.
        kafka_cluster.kill(found.controller_id)
        quorum = direct.describe_metadata_quorum()
        assert quorum.leader_id not in {found.controller_id, -1}
        until(lambda: direct.describe_cluster().controller_id == quorum.leader_id)
        direct.unregister_broker(found.controller_id)


def test_raw_requests_and_coordinators(admin: KafkaAdminClient):
    answers = admin.broadcast_request(ListGroupsRequest())
    assert sorted(answers) == [1, 2, 3]
    # Until the broker has read all groups that it coordinates it answers with an error.
    until(lambda: admin.send_requests([(ListGroupsRequest(), 1)], lambda response: response.error_code) == [0])
    assert set(admin.find_coordinators([f"g{number}" for number in range(20)]).values()) <= {1, 2, 3}
    assert admin.find_coordinator("t", "transaction") in {1, 2, 3}


def test_telemetry_needs_a_plugin_of_the_broker(admin: KafkaAdminClient):
    for call in (admin.client_instance_id, admin.telemetry_subscription):
        with pytest.raises(UnsupportedVersionError, match=r"needs Kafka 3\.7, and brokers with a plugin"):
            call()


def test_from_asyncio(cluster: KafkaCluster, topic: str):
    async def program() -> tuple[Any, ...]:
        async with AIOKafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers) as admin:
            return tuple(
                await asyncio.gather(
                    admin.list_topics(),
                    admin.describe_cluster(),
                    admin.list_partition_offsets({(topic, 0): "latest"}),  # type: ignore[dict-item]
                    admin.group_lag(),
                )
            )

    topics, described, offsets, lags = asyncio.run(program())
    assert topic in topics
    assert len(described.brokers) == 3
    assert offsets[topic, 0].offset == 10
    assert lags.failed_brokers == {}
