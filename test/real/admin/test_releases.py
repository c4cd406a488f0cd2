"""What each release of Apache Kafka can do for the administrator; of the rest the error names the release it needs."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import ConfigResource, NewTopic
from kafka.errors import KafkaError, UnsupportedVersionError
from test.real.kafka_process import KafkaCluster

TOPIC = "administered"
FIRST = TopicPartition(TOPIC, 0)

# Each call, and the first release that serves it.
CALLS: dict[str, tuple[tuple[int, ...], Callable[[KafkaAdminClient], Any]]] = {
    "list_topics": ((0, 8), lambda admin: admin.list_topics()),
    "describe_topics": ((0, 8), lambda admin: admin.describe_topics([TOPIC])),
    "describe_cluster": ((0, 8), lambda admin: admin.describe_cluster()),
    "list_partition_offsets": ((0, 8), lambda admin: admin.list_partition_offsets({FIRST: "latest"})),
    "list_groups": ((0, 9), lambda admin: admin.list_groups()),
    "describe_groups": ((0, 9), lambda admin: admin.describe_groups(["g"])),
    "api_versions": ((0, 10), lambda admin: admin.api_versions()),
    "list_partition_offsets by time": ((0, 10, 1), lambda admin: admin.list_partition_offsets({FIRST: 0})),
    "list_group_offsets": ((0, 10, 2), lambda admin: admin.list_group_offsets("g")),
    "describe_configs": ((0, 11), lambda admin: admin.describe_configs([ConfigResource("topic", TOPIC)])),
    "alter_configs": ((0, 11), lambda admin: admin.alter_configs([ConfigResource("topic", TOPIC, {"flush.ms": 1})])),
    "delete_records": ((0, 11), lambda admin: admin.delete_records({FIRST: 0})),
    "describe_log_dirs": ((1, 0), lambda admin: admin.describe_log_dirs()),
    "create_partitions": ((1, 0), lambda admin: admin.create_partitions({TOPIC: 3}, raise_errors=False)),
    "delete_groups": ((1, 1), lambda admin: admin.delete_groups(["g"], raise_errors=False)),
    "elect_leaders": ((2, 2), lambda admin: admin.elect_leaders("preferred", {TOPIC: [0]})),
    "list_partition_reassignments": ((2, 4), lambda admin: admin.list_partition_reassignments()),
    "delete_group_offsets": ((2, 4), lambda admin: admin.delete_group_offsets("g", [FIRST])),
    "describe_client_quotas": ((2, 6), lambda admin: admin.describe_client_quotas()),
    "describe_features": ((2, 7), lambda admin: admin.describe_features()),
    "describe_user_scram_credentials": ((2, 7), lambda admin: admin.describe_user_scram_credentials()),
    "describe_producers": ((2, 8), lambda admin: admin.describe_producers([FIRST])),
    "list_transactions": ((3, 0), lambda admin: admin.list_transactions()),
    "describe_metadata_quorum": ((3, 3), lambda admin: admin.describe_metadata_quorum()),
    "describe_topic_partitions": ((3, 8), lambda admin: admin.describe_topic_partitions([TOPIC])),
    "list_config_resources": ((4, 1), lambda admin: admin.list_config_resources()),
    "describe_streams_groups": ((4, 1), lambda admin: admin.describe_streams_groups(["g"])),
}
# What a broker answers although it has the API: there is no such group, or it does not run KRaft.
REFUSALS = {"delete_group_offsets", "describe_metadata_quorum"}


@pytest.mark.matrix
def test_each_call_works_or_names_the_release_that_it_needs(kafka_matrix: KafkaCluster):
    release = tuple(int(part) for part in re.findall(r"\d+", kafka_matrix.version))
    with KafkaAdminClient(
        bootstrap_servers=kafka_matrix.bootstrap_servers, client_id=f"admin-{uuid.uuid4().hex[:6]}"
    ) as admin:
        if release >= (0, 10, 1):
            admin.create_topics([NewTopic(TOPIC, 1, 1)], wait_for_metadata=True, timeout_ms=60_000)
        else:
            with pytest.raises(UnsupportedVersionError):
                admin.create_topics([NewTopic(TOPIC, 1, 1)])
            with KafkaProducer(bootstrap_servers=kafka_matrix.bootstrap_servers) as producer:
                producer.send(TOPIC, b"creates the topic").get(timeout=60)
        wrong = {}
        for name, (since, call) in CALLS.items():
            try:
                call(admin)
                works: object = True
            except UnsupportedVersionError as error:
                works = str(error)
            except KafkaError as error:
                works = name in REFUSALS or repr(error)
            expected = release >= since
            needed = ".".join(map(str, since))
            if (works is True) != expected or (not expected and f"needs Kafka {needed};" not in str(works)):
                wrong[name] = works
        assert wrong == {}
