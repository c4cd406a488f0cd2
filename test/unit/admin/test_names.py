"""Names, parameters and defaults of kafka-python 2.0 to 3.0, and the names of Java's Admin, on one client."""

from __future__ import annotations

import ast
import inspect
import re
from importlib import import_module

from kafka.admin import KafkaAdminClient

# Modules and the names that programs import from them.
MODULES = {
    "kafka": "KafkaAdminClient OffsetSpec IsolationLevel TopicPartitionReplica",
    "kafka.admin.client": "KafkaAdminClient",
    "kafka.admin": "KafkaAdminClient NewTopic NewPartitions ConfigResource ConfigResourceType ACL ACLFilter "
    "ACLOperation ACLPermissionType ACLResourcePatternType ResourceType ResourcePattern "
    "ResourcePatternFilter AlterConfigOp ConfigFilterType ConfigType ConfigSourceType "
    "UpdateFeatureType GroupState GroupType MemberToRemove OffsetSpec OffsetTimestamp "
    "AbortTransactionSpec PartitionProducerState ProducerState TransactionDescription "
    "TransactionListing TransactionState ScramMechanism UserScramCredentialDeletion "
    "UserScramCredentialUpsertion",
    "kafka.admin.acl_resource": "ACL ACLFilter ACLOperation ACLPermissionType ACLResourcePatternType ResourceType "
    "ResourcePattern ResourcePatternFilter valid_acl_operations",
    "kafka.admin.config_resource": "ConfigResource ConfigResourceType",
    "kafka.admin.new_partitions": "NewPartitions",
    "kafka.admin.new_topic": "NewTopic",
    "kafka.protocol.admin": "ElectionType",
    "kafka.structs": "GroupInformation MemberInformation TopicPartitionReplica",
}

# Each call with its parameters in order, as `name` or `name=default`; a program may give them by position.
CALLS = {
    # of kafka-python 2
    "list_topics": "",
    "describe_topics": "topics=None",
    "describe_cluster": "",
    "create_topics": "new_topics, timeout_ms=None, validate_only=False, raise_errors=True, wait_for_metadata=False",
    "delete_topics": "topics, timeout_ms=None, raise_errors=True",
    "create_partitions": "topic_partitions, timeout_ms=None, validate_only=False, raise_errors=True",
    "delete_records": "records_to_delete, timeout_ms=None, partition_leader_id=None",
    "describe_configs": "config_resources, include_synonyms=False",
    "alter_configs": "config_resources, validate_only=False, raise_on_unknown=True, incremental=None",
    "describe_acls": "acl_filter",
    "create_acls": "acls",
    "delete_acls": "acl_filters",
    "list_consumer_groups": "broker_ids=None",
    "describe_consumer_groups": "group_ids, group_coordinator_id=None, include_authorized_operations=False",
    "list_consumer_group_offsets": "group_id, group_coordinator_id=None, partitions=None",
    "delete_consumer_groups": "group_ids, group_coordinator_id=None",
    "perform_leader_election": "election_type, topic_partitions=None, timeout_ms=None",
    "describe_log_dirs": "topic_partitions=None, brokers=None",
    "send_request": "request, node_id=None",
    "send_requests": "requests_and_node_ids, response_fn",
    # of kafka-python 3
    "wait_for_topics": "topics, timeout_ms=10000",
    "list_groups": "broker_ids=None, states_filter=None, types_filter=None",
    "describe_groups": "group_ids, group_coordinator_id=None, include_authorized_operations=False",
    "list_group_offsets": "group_specs",
    "alter_group_offsets": "group_id, offsets, group_coordinator_id=None",
    "reset_group_offsets": "group_id, offset_specs, group_coordinator_id=None",
    "delete_group_offsets": "group_id, partitions, group_coordinator_id=None",
    "delete_groups": "group_ids, group_coordinator_id=None",
    "remove_group_members": "group_id, members, group_coordinator_id=None",
    "elect_leaders": "election_type, topic_partitions=None, timeout_ms=None, raise_errors=True",
    "alter_partition_reassignments": "reassignments, timeout_ms=None",
    "list_partition_reassignments": "topic_partitions=None, timeout_ms=None",
    "describe_topic_partitions": "topics, response_partition_limit=2000, cursor=None",
    "list_partition_offsets": "topic_partition_specs, isolation_level=0, timeout_ms=None",
    "reset_configs": "config_resources, validate_only=False, raise_on_unknown=True, incremental=None",
    "list_config_resources": "resource_types=None",
    "describe_metadata_quorum": "",
    "get_broker_version_data": "broker_id",
    "api_versions": "",
    "describe_features": "send_request_to_controller=False",
    "update_features": "updates, validate_only=False, timeout_ms=60000",
    "alter_replica_log_dirs": "assignments",
    "list_transactions": "broker_ids, producer_id_filters, state_filters, duration_filter_ms, transactional_id_pattern",
    "describe_transactions": "transactional_ids",
    "describe_producers": "topic_partitions, broker_id=None",
    "abort_transaction": "spec",
    "find_hanging_transactions": "broker_ids=None, max_transaction_timeout_ms=900000",
    "alter_user_scram_credentials": "alterations",
    "describe_user_scram_credentials": "users=None",
}

# Java's Admin 4.3; what it has by another name than ours.
JAVA = [
    "abortTransaction",
    "addRaftVoter",
    "alterClientQuotas",
    "alterConsumerGroupOffsets",
    "alterPartitionReassignments",
    "alterReplicaLogDirs",
    "alterShareGroupOffsets",
    "alterStreamsGroupOffsets",
    "alterUserScramCredentials",
    "clientInstanceId",
    "close",
    "createAcls",
    "createDelegationToken",
    "createPartitions",
    "createTopics",
    "deleteAcls",
    "deleteConsumerGroupOffsets",
    "deleteConsumerGroups",
    "deleteRecords",
    "deleteShareGroupOffsets",
    "deleteShareGroups",
    "deleteStreamsGroupOffsets",
    "deleteStreamsGroups",
    "deleteTopics",
    "describeAcls",
    "describeClassicGroups",
    "describeClientQuotas",
    "describeCluster",
    "describeConfigs",
    "describeConsumerGroups",
    "describeDelegationToken",
    "describeFeatures",
    "describeLogDirs",
    "describeMetadataQuorum",
    "describeProducers",
    "describeReplicaLogDirs",
    "describeShareGroups",
    "describeStreamsGroups",
    "describeTopics",
    "describeTransactions",
    "describeUserScramCredentials",
    "electLeaders",
    "expireDelegationToken",
    "fenceProducers",
    "forceTerminateTransaction",
    "incrementalAlterConfigs",
    "listClientMetricsResources",
    "listConfigResources",
    "listConsumerGroupOffsets",
    "listConsumerGroups",
    "listGroups",
    "listOffsets",
    "listPartitionReassignments",
    "listShareGroupOffsets",
    "listStreamsGroupOffsets",
    "listTopics",
    "listTransactions",
    "metrics",
    "removeMembersFromConsumerGroup",
    "removeRaftVoter",
    "renewDelegationToken",
    "unregisterBroker",
    "updateFeatures",
]


def test_names_are_at_their_places():
    for module, names in MODULES.items():
        found = import_module(module)
        assert [name for name in names.split() if not hasattr(found, name)] == []


def test_a_call_takes_the_parameters_of_its_generation():
    for name, call in CALLS.items():
        ours = inspect.signature(getattr(KafkaAdminClient, name)).parameters.values()
        parameters = [one for one in ours if one.name != "self"]
        wanted = [part.split("=") for part in call.split(", ") if part]
        for (known, *default), parameter in zip(wanted, parameters, strict=False):
            assert parameter.name == known
            assert parameter.kind is parameter.POSITIONAL_OR_KEYWORD
            if default:
                assert parameter.default == ast.literal_eval(default[0])
        assert len(wanted) <= len(parameters)
        # All others are optional.
        assert [one.name for one in parameters[len(wanted) :] if one.default is one.empty] == []


def test_each_call_of_java_has_one_of_ours():
    for name in JAVA:
        spelled = re.sub("([A-Z])", lambda found: "_" + found[1].lower(), name)
        assert callable(getattr(KafkaAdminClient, spelled))


def test_members_of_enums_have_kafkas_numbers():
    from kafka import IsolationLevel, OffsetSpec
    from kafka.admin import (
        ACLOperation,
        ACLPermissionType,
        ACLResourcePatternType,
        AlterConfigOp,
        ConfigResourceType,
        ConfigSourceType,
        ConfigType,
        GroupState,
        GroupType,
        ResourceType,
        ScramMechanism,
        TransactionState,
        UpdateFeatureType,
    )
    from kafka.protocol.admin import ElectionType

    assert [one.value for one in ACLOperation] == list(range(16))
    assert (ACLOperation.IDEMPOTENT_WRITE, ACLOperation.CREATE_TOKENS, ACLOperation.DESCRIBE_TOKENS) == (12, 13, 14)
    assert [one.name for one in ACLPermissionType] == ["UNKNOWN", "ANY", "DENY", "ALLOW"]
    assert [one.name for one in ACLResourcePatternType] == ["UNKNOWN", "ANY", "MATCH", "LITERAL", "PREFIXED"]
    assert (ResourceType.DELEGATION_TOKEN, ResourceType.USER) == (6, 7)
    assert [one.value for one in ConfigResourceType] == [0, 2, 4, 8, 16, 32]
    assert [one.value for one in ConfigSourceType] == list(range(9))
    assert [one.value for one in ConfigType] == list(range(10))
    assert [one.name for one in AlterConfigOp] == ["SET", "DELETE", "APPEND", "SUBTRACT"]
    assert [one.value for one in OffsetSpec] == [-1, -2, -3, -4, -5, -6]
    assert [one.value for one in IsolationLevel] == [0, 1]
    assert [one.name for one in UpdateFeatureType] == ["UNKNOWN", "UPGRADE", "SAFE_DOWNGRADE", "UNSAFE_DOWNGRADE"]
    assert [one.value for one in ScramMechanism] == [0, 1, 2]
    assert (ElectionType.PREFERRED, ElectionType.UNCLEAN) == (0, 1)
    assert GroupState.build_from("preparing-rebalance") == "PreparingRebalance"
    assert GroupType.build_from("CONSUMER") is GroupType.build_from("Consumer") is GroupType.CONSUMER
    assert TransactionState.value_for("ongoing") == "Ongoing"
