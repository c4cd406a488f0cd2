"""Names of the 1.x and 2.x generations, and what they are called now.

Those generations named fields and messages by hand; here they have the names of Kafka's own specs. Old and new name
the same place in the same bytes: the tables were made by laying both descriptions of each message version side by
side. Three old names have no place here, because they stood for something else than a field of the spec does:
``new_partitions`` of CreatePartitionsRequest was a pair of what are now two fields (tuples of that form are taken),
``is_default`` of DescribeConfigsResponse from version 1 on was the ``config_source`` read as a boolean, and the
``version`` at the head of the consumer protocol's structs is chosen by the class now.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

#: Message, or message and the struct within, -> old name of a field -> its name. An old name may be the name of another
#: field in versions that the old generations did not have (``topics`` of DeleteTopicsRequest is): it is an alias only
#: where the version has no field of that name. Of two old names of a field the last is the one that is shown.
FIELD_ALIASES: Final[Mapping[str, Mapping[str, str]]] = {
    "AddPartitionsToTxnRequest": {
        "transactional_id": "v3_and_below_transactional_id",
        "producer_id": "v3_and_below_producer_id",
        "producer_epoch": "v3_and_below_producer_epoch",
        "topics": "v3_and_below_topics",
    },
    "AddPartitionsToTxnRequest.AddPartitionsToTxnTopic": {"topic": "name"},
    "AddPartitionsToTxnResponse": {"results": "results_by_topic_v3_and_below"},
    "AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult": {
        "partition": "partition_index",
        "error_code": "partition_error_code",
    },
    "AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult": {"topic": "name", "partitions": "results_by_partition"},
    "AlterConfigsRequest.AlterConfigsResource": {"config_entries": "configs"},
    "AlterConfigsRequest.AlterableConfig": {"config_name": "name", "config_value": "value"},
    "AlterConfigsResponse": {"resources": "responses"},
    "ApiVersionsResponse": {"api_versions": "api_keys"},
    "ConsumerProtocolAssignment": {"assignment": "assigned_partitions"},
    "ConsumerProtocolSubscription": {"subscription": "topics"},
    "CreateAclsResponse": {"creation_responses": "results"},
    "CreatePartitionsRequest": {"topic_partitions": "topics", "timeout": "timeout_ms"},
    "CreatePartitionsRequest.CreatePartitionsTopic": {"topic": "name"},
    "CreatePartitionsResponse": {"topic_errors": "results"},
    "CreatePartitionsResponse.CreatePartitionsTopicResult": {"topic": "name"},
    "CreateTopicsRequest": {"create_topic_requests": "topics", "timeout": "timeout_ms"},
    "CreateTopicsRequest.CreatableReplicaAssignment": {"partition_id": "partition_index", "replicas": "broker_ids"},
    "CreateTopicsRequest.CreatableTopic": {"topic": "name", "replica_assignment": "assignments"},
    "CreateTopicsRequest.CreatableTopicConfig": {"config_key": "name", "config_value": "value"},
    "CreateTopicsResponse": {"topic_error_codes": "topics", "topic_errors": "topics"},
    "CreateTopicsResponse.CreatableTopicResult": {"topic": "name"},
    "DeleteAclsRequest.DeleteAclsFilter": {
        "resource_type": "resource_type_filter",
        "resource_name": "resource_name_filter",
        "principal": "principal_filter",
        "host": "host_filter",
        "resource_pattern_type_filter": "pattern_type_filter",
    },
    "DeleteAclsResponse": {"filter_responses": "filter_results"},
    "DeleteAclsResponse.DeleteAclsMatchingAcl": {"resource_pattern_type": "pattern_type"},
    "DeleteTopicsRequest": {"topics": "topic_names", "timeout": "timeout_ms"},
    "DeleteTopicsResponse": {"topic_error_codes": "responses"},
    "DeleteTopicsResponse.DeletableTopicResult": {"topic": "name"},
    "DescribeAclsRequest": {
        "resource_type": "resource_type_filter",
        "resource_name": "resource_name_filter",
        "principal": "principal_filter",
        "host": "host_filter",
        "resource_pattern_type_filter": "pattern_type_filter",
    },
    "DescribeAclsResponse.DescribeAclsResource": {"resource_pattern_type": "pattern_type"},
    "DescribeClientQuotasResponse.ValueData": {"name": "key"},
    "DescribeConfigsRequest.DescribeConfigsResource": {"config_names": "configuration_keys"},
    "DescribeConfigsResponse": {"resources": "results"},
    "DescribeConfigsResponse.DescribeConfigsResourceResult": {
        "config_names": "name",
        "config_value": "value",
        "config_synonyms": "synonyms",
    },
    "DescribeConfigsResponse.DescribeConfigsResult": {"config_entries": "configs"},
    "DescribeConfigsResponse.DescribeConfigsSynonym": {
        "config_name": "name",
        "config_value": "value",
        "config_source": "source",
    },
    "DescribeGroupsResponse.DescribedGroup": {"group": "group_id", "state": "group_state", "protocol": "protocol_data"},
    "DescribeLogDirsResponse": {"log_dirs": "results"},
    "ElectLeadersRequest": {"timeout": "timeout_ms"},
    "ElectLeadersRequest.TopicPartitions": {"partition_ids": "partitions"},
    "ElectLeadersResponse": {"replication_election_results": "replica_election_results"},
    "FetchRequest": {"max_wait_time": "max_wait_ms"},
    "FetchRequest.FetchPartition": {"offset": "fetch_offset", "max_bytes": "partition_max_bytes"},
    "FetchResponse": {"topics": "responses"},
    "FetchResponse.FetchableTopicResponse": {"topics": "topic"},
    "FetchResponse.PartitionData": {
        "partition": "partition_index",
        "highwater_offset": "high_watermark",
        "message_set": "records",
    },
    "FindCoordinatorRequest": {"consumer_group": "key", "coordinator_key": "key", "coordinator_type": "key_type"},
    "FindCoordinatorResponse": {"coordinator_id": "node_id"},
    "HeartbeatRequest": {"group": "group_id"},
    "JoinGroupRequest": {
        "group": "group_id",
        "session_timeout": "session_timeout_ms",
        "group_protocols": "protocols",
        "rebalance_timeout": "rebalance_timeout_ms",
    },
    "JoinGroupRequest.JoinGroupRequestProtocol": {"protocol_name": "name", "protocol_metadata": "metadata"},
    "JoinGroupResponse": {"group_protocol": "protocol_name", "leader_id": "leader"},
    "JoinGroupResponse.JoinGroupResponseMember": {"member_metadata": "metadata"},
    "LeaveGroupRequest": {"group": "group_id"},
    "ListGroupsResponse.ListedGroup": {"group": "group_id"},
    "ListOffsetsRequest.ListOffsetsPartition": {"partition": "partition_index", "max_offsets": "max_num_offsets"},
    "ListOffsetsRequest.ListOffsetsTopic": {"topic": "name"},
    "ListOffsetsResponse.ListOffsetsPartitionResponse": {
        "partition": "partition_index",
        "offsets": "old_style_offsets",
    },
    "ListOffsetsResponse.ListOffsetsTopicResponse": {"topic": "name"},
    "ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics": {"partition_index": "partition_indexes"},
    "MetadataResponse": {"authorized_operations": "cluster_authorized_operations"},
    "MetadataResponse.MetadataResponsePartition": {
        "partition": "partition_index",
        "leader": "leader_id",
        "replicas": "replica_nodes",
        "isr": "isr_nodes",
    },
    "MetadataResponse.MetadataResponseTopic": {"topic": "name", "authorized_operations": "topic_authorized_operations"},
    "OffsetCommitRequest": {
        "consumer_group": "group_id",
        "generation_id": "generation_id_or_member_epoch",
        "consumer_group_generation_id": "generation_id_or_member_epoch",
        "consumer_id": "member_id",
        "retention_time": "retention_time_ms",
    },
    "OffsetCommitRequest.OffsetCommitRequestPartition": {
        "partition": "partition_index",
        "offset": "committed_offset",
        "metadata": "committed_metadata",
        "timestamp": "commit_timestamp",
        "leader_epoch": "committed_leader_epoch",
    },
    "OffsetCommitRequest.OffsetCommitRequestTopic": {"topic": "name"},
    "OffsetCommitResponse.OffsetCommitResponsePartition": {"partition": "partition_index"},
    "OffsetCommitResponse.OffsetCommitResponseTopic": {"topic": "name"},
    "OffsetFetchRequest": {"consumer_group": "group_id"},
    "OffsetFetchRequest.OffsetFetchRequestTopic": {"topic": "name", "partitions": "partition_indexes"},
    "OffsetFetchResponse.OffsetFetchResponsePartition": {
        "partition": "partition_index",
        "offset": "committed_offset",
        "leader_epoch": "committed_leader_epoch",
    },
    "OffsetFetchResponse.OffsetFetchResponseTopic": {"topic": "name"},
    "ProduceRequest": {"required_acks": "acks", "timeout": "timeout_ms", "topics": "topic_data"},
    "ProduceRequest.PartitionProduceData": {"partition": "index", "messages": "records"},
    "ProduceRequest.TopicProduceData": {"topic": "name", "partitions": "partition_data"},
    "ProduceResponse": {"topics": "responses"},
    "ProduceResponse.PartitionProduceResponse": {
        "partition": "index",
        "offset": "base_offset",
        "timestamp": "log_append_time_ms",
    },
    "ProduceResponse.TopicProduceResponse": {"topic": "name", "partitions": "partition_responses"},
    "RequestHeader": {"api_key": "request_api_key", "api_version": "request_api_version"},
    "SaslAuthenticateRequest": {"sasl_auth_bytes": "auth_bytes"},
    "SaslAuthenticateResponse": {"sasl_auth_bytes": "auth_bytes"},
    "SaslHandshakeResponse": {"enabled_mechanisms": "mechanisms"},
    "SyncGroupRequest": {"group": "group_id", "group_assignment": "assignments"},
    "SyncGroupRequest.SyncGroupRequestAssignment": {"member_metadata": "assignment"},
    "SyncGroupResponse": {"member_assignment": "assignment"},
    "TxnOffsetCommitRequest.TxnOffsetCommitRequestPartition": {
        "partition": "partition_index",
        "offset": "committed_offset",
        "metadata": "committed_metadata",
        "leader_epoch": "committed_leader_epoch",
    },
    "TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic": {"topic": "name"},
    "TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition": {"partition": "partition_index"},
    "TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic": {"topic": "name"},
}

#: Arrays that once held plain values and hold structs now -> the field of the struct that is the plain value.
SCALAR_ARRAYS: Final[Mapping[str, Mapping[str, str]]] = {"MetadataRequest": {"topics": "name"}}

#: Module -> the APIs whose requests and responses it had, each also in the form ``FetchRequest_v4``.
HISTORIC_APIS: Final[Mapping[str, tuple[str, ...]]] = {
    "kafka.protocol.add_offsets_to_txn": ("AddOffsetsToTxn",),
    "kafka.protocol.add_partitions_to_txn": ("AddPartitionsToTxn",),
    "kafka.protocol.admin": (
        "DescribeGroups",
        "ListGroups",
        "SaslHandshake",
        "ApiVersions",
        "CreateTopics",
        "DeleteTopics",
        "DeleteRecords",
        "DescribeAcls",
        "CreateAcls",
        "DeleteAcls",
        "DescribeConfigs",
        "AlterConfigs",
        "DescribeLogDirs",
        "SaslAuthenticate",
        "CreatePartitions",
        "DeleteGroups",
        "ElectLeaders",
        "AlterPartitionReassignments",
        "ListPartitionReassignments",
        "DescribeClientQuotas",
    ),
    "kafka.protocol.api_versions": ("ApiVersions",),
    "kafka.protocol.commit": ("OffsetCommit", "OffsetFetch", "FindCoordinator"),
    "kafka.protocol.end_txn": ("EndTxn",),
    "kafka.protocol.fetch": ("Fetch",),
    "kafka.protocol.find_coordinator": ("FindCoordinator",),
    "kafka.protocol.group": ("JoinGroup", "Heartbeat", "LeaveGroup", "SyncGroup"),
    "kafka.protocol.init_producer_id": ("InitProducerId",),
    "kafka.protocol.list_offsets": ("ListOffsets",),
    "kafka.protocol.metadata": ("Metadata",),
    "kafka.protocol.offset": ("ListOffsets",),
    "kafka.protocol.offset_for_leader_epoch": ("OffsetForLeaderEpoch",),
    "kafka.protocol.produce": ("Produce",),
    "kafka.protocol.sasl_authenticate": ("SaslAuthenticate",),
    "kafka.protocol.sasl_handshake": ("SaslHandshake",),
    "kafka.protocol.txn_offset_commit": ("TxnOffsetCommit",),
}

#: Module -> old name of a message -> its name. An old name with a version, ``OffsetRequest_v1``, follows from it.
CLASS_ALIASES: Final[Mapping[str, Mapping[str, str]]] = {
    "kafka.protocol.api_versions": {"BaseApiVersionsResponse": "ApiVersionsResponse"},
    "kafka.protocol.admin": {
        "ApiVersionRequest": "ApiVersionsRequest",
        "ApiVersionResponse": "ApiVersionsResponse",
        "SaslHandShakeRequest": "SaslHandshakeRequest",
        "SaslHandShakeResponse": "SaslHandshakeResponse",
    },
    "kafka.protocol.commit": {
        "GroupCoordinatorRequest": "FindCoordinatorRequest",
        "GroupCoordinatorResponse": "FindCoordinatorResponse",
    },
    "kafka.protocol.offset": {"OffsetRequest": "ListOffsetsRequest", "OffsetResponse": "ListOffsetsResponse"},
}

_VALUES: Final = "kafka.legacy.protocol_values"
_LEGACY: Final = "kafka.protocol.legacy"

#: Module -> name that is not a message -> the module that has it.
MOVED_NAMES: Final[Mapping[str, Mapping[str, str]]] = {
    "kafka.protocol": {
        "ALL_CODECS": _LEGACY,
        "API_KEYS": _VALUES,
        "ATTRIBUTE_CODEC_MASK": _LEGACY,
        "CODEC_GZIP": _LEGACY,
        "CODEC_NONE": _LEGACY,
        "CODEC_SNAPPY": _LEGACY,
        "KafkaProtocol": _LEGACY,
        "create_gzip_message": _LEGACY,
        "create_message": _LEGACY,
        "create_message_set": _LEGACY,
        "create_snappy_message": _LEGACY,
    },
    "kafka.protocol.admin": {"ElectionType": "kafka.admin.replicas"},
    "kafka.protocol.api": {
        "RequestHeader": _VALUES,
        "RequestHeaderV2": _VALUES,
        "ResponseHeader": _VALUES,
        "ResponseHeaderV2": _VALUES,
    },
    "kafka.protocol.fetch": {"AbortedTransaction": _VALUES},
    "kafka.protocol.group": {
        "DEFAULT_GENERATION_ID": _VALUES,
        "GroupMember": _VALUES,
        "MemberAssignment": _VALUES,
        "ProtocolMetadata": _VALUES,
        "UNKNOWN_MEMBER_ID": _VALUES,
    },
    "kafka.protocol.offset": {"OffsetResetStrategy": _VALUES, "UNKNOWN_OFFSET": _VALUES},
}

#: Constants that requests had as class attributes. A pair is the value of version 0 and that of the later versions.
CLASS_CONSTANTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "JoinGroupRequest": {"UNKNOWN_MEMBER_ID": ""},
    "ListOffsetsRequest": {"DEFAULTS": {"replica_id": -1}},
    "MetadataRequest": {"ALL_TOPICS": ([], None), "NO_TOPICS": (None, [])},
    "OffsetCommitRequest": {"DEFAULT_GENERATION_ID": -1, "DEFAULT_RETENTION_TIME": -1},
}
