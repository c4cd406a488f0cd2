"""The facts that Java's Admin tells about a cluster, and the same facts from `KafkaAdminClient`, in the words of Java.

`java_facts` runs Java's Admin. `our_facts` makes the calls of our client that correspond, and writes the results with
the names that Java's methods have. Both return JSON values that can be compared as a whole: a fact that only one side
tells is a difference.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from uuid import UUID

from kafka import KafkaAdminClient
from kafka.admin import (
    ACLFilter,
    ConfigResource,
    ConfigSourceType,
    GroupState,
    GroupType,
    MemberAssignment,
    ResourcePatternFilter,
    TaskAssignment,
)
from kafka.errors import KafkaError
from kafka.structs import TopicPartition, TopicPartitionReplica
from test.real import jvm

SOURCE = Path(__file__).parent.parent / "java" / "AdminFacts.java"
Call = dict[str, Any]
# Errors whose exceptions have other names in Java than in the protocol.
_JAVA_NAMES = {"DelegationTokenRequestNotAllowed": "UnsupportedByAuthentication"}


def java_facts(version: str, config: Mapping[str, str], calls: Iterable[Call]) -> list[Any]:
    """Return what Java's Admin answers to each call."""
    given = json.dumps(
        {"config": {"default.api.timeout.ms": "60000", "request.timeout.ms": "30000", **config}, "calls": list(calls)}
    )
    ended = jvm.run(version, str(SOURCE), text=given)
    assert ended.returncode == 0, ended.stderr[-4000:]
    return [normal(one) for one in json.loads(ended.stdout)]


def our_facts(admin: KafkaAdminClient, calls: Iterable[Call]) -> list[Any]:
    """Return what our client answers to each call."""
    return [normal(_answer(admin, call)) for call in calls]


def normal(value: Any) -> Any:
    """Return a value with its lists of objects in an order that does not depend on the client."""
    if isinstance(value, dict):
        return {key: normal(one) for key, one in sorted(value.items())}
    if isinstance(value, list):
        found = [normal(one) for one in value]
        return sorted(found, key=json.dumps) if found and isinstance(found[0], dict) else found
    return value


def _answer(admin: KafkaAdminClient, call: Call) -> Any:
    try:
        return _CALLS[call["call"]](admin, call)
    except KafkaError as error:
        return _error(error)


def _error(error: KafkaError) -> dict[str, str]:
    name = type(error).__name__.removesuffix("Error")
    return {"error": _JAVA_NAMES.get(name, name) + "Exception"}


def _or_error(error: KafkaError | None, facts: Callable[[], Any]) -> Any:
    return facts() if error is None else _error(error)


def _known(number: int) -> int | None:
    """Return a number for which -1 means that there is none."""
    return None if number == -1 else number


def _id(given: UUID) -> str:
    return base64.urlsafe_b64encode(given.bytes).decode().rstrip("=")


def _name(partition: TopicPartition | tuple[str, int]) -> str:
    return f"{partition[0]}-{partition[1]}"


def _names(partitions: Iterable[TopicPartition | tuple[str, int]]) -> list[str]:
    return sorted(_name(one) for one in partitions)


def _sorted(names: list[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)


# The cluster and its topics


def _cluster(admin: KafkaAdminClient, _: Call) -> Any:
    found = admin.describe_cluster(include_authorized_operations=True, include_fenced_brokers=True)
    return {
        "clusterId": found.cluster_id,
        "controller": found.controller_id,
        "authorizedOperations": _sorted(found.authorized_operations),
        "nodes": [
            {"id": one.broker_id, "host": one.host, "port": one.port, "rack": one.rack, "isFenced": one.is_fenced}
            for one in found.brokers
        ],
    }


def _listings(admin: KafkaAdminClient, _: Call) -> Any:
    found = admin.describe_topics()
    assert sorted(one.name for one in found) == sorted(admin.list_topics())
    return [{"name": one.name, "topicId": _id(one.topic_id), "isInternal": one.is_internal} for one in found]


def _topics(admin: KafkaAdminClient, call: Call) -> Any:
    found = {}
    pages = admin.describe_topic_partitions(call["names"])
    assert pages.next_cursor is None
    for topic, plain in zip(pages.topics, admin.describe_topics(sorted(call["names"])), strict=True):
        found[topic.name] = _or_error(topic.error, lambda topic=topic: _topic(topic))
        ids = [(one.partition_index, one.leader_id, one.replica_nodes, one.isr_nodes) for one in plain.partitions]
        assert ids == [
            (one.partition_index, one.leader_id, one.replica_nodes, one.isr_nodes) for one in topic.partitions
        ]
        assert (plain.topic_id, plain.error_code) == (topic.topic_id, topic.error_code)
        assert plain.ok is False or plain.authorized_operations == topic.authorized_operations
    return found


def _topic(topic: Any) -> Any:
    return {
        "name": topic.name,
        "topicId": _id(topic.topic_id),
        "isInternal": topic.is_internal,
        "authorizedOperations": _sorted(topic.authorized_operations),
        "partitions": [
            {
                "partition": one.partition_index,
                "leader": _known(one.leader_id),
                "replicas": one.replica_nodes,
                "isr": one.isr_nodes,
                "elr": one.eligible_leader_replicas or [],
                "lastKnownElr": one.last_known_elr or [],
            }
            for one in topic.partitions
        ],
    }


def _features(admin: KafkaAdminClient, _: Call) -> Any:
    found = admin.describe_features()
    return {
        "finalizedFeatures": {
            name: {"minVersionLevel": one.min_version, "maxVersionLevel": one.max_version}
            for name, one in found.finalized_features.items()
        },
        "finalizedFeaturesEpoch": _known(found.finalized_features_epoch),
        "supportedFeatures": {
            name: {"minVersion": one.min_version, "maxVersion": one.max_version}
            for name, one in found.supported_features.items()
        },
    }


def _quorum(admin: KafkaAdminClient, _: Call) -> Any:
    found = admin.describe_metadata_quorum()

    def replicas(given: Iterable[Any]) -> Any:
        return [
            {
                "replicaId": one.replica_id,
                "replicaDirectoryId": _id(one.replica_directory_id),
                "logEndOffset": one.log_end_offset,
                "lastFetchTimestamp": _known(one.last_fetch_timestamp),
                "lastCaughtUpTimestamp": _known(one.last_caught_up_timestamp),
            }
            for one in given
        ]

    return {
        "leaderId": found.leader_id,
        "leaderEpoch": found.leader_epoch,
        "highWatermark": found.high_watermark,
        "voters": replicas(found.voters),
        "observers": replicas(found.observers),
        "nodes": {
            str(node.node_id): {
                "nodeId": node.node_id,
                "endpoints": [{"listener": one.name, "host": one.host, "port": one.port} for one in node.listeners],
            }
            for node in found.nodes
        },
    }


# Configuration, access control, quotas, users, tokens


def _configs(admin: KafkaAdminClient, call: Call) -> Any:
    found = admin.describe_configs(
        [ConfigResource(kind, name) for kind, name in call["resources"]],
        include_synonyms=True,
        config_filter="all",
        include_documentation=True,
        raise_errors=False,
    )
    return {
        f"{one.resource_type.name} {one.resource_name}": _or_error(
            one.error, lambda one=one: {"entries": [_setting(*setting) for setting in one.configs.items()]}
        )
        for one in found.resources
    }


def _setting(name: str, entry: Any) -> Any:
    return {
        "name": name,
        "value": entry.value,
        "source": entry.config_source.name,
        "isSensitive": entry.is_sensitive,
        "isReadOnly": entry.read_only,
        "synonyms": [
            {"name": one.name, "value": one.value, "source": ConfigSourceType(one.config_source).name}
            for one in entry.synonyms
        ],
        "type": entry.config_type.name,
        "documentation": entry.documentation,
    }


def _config_resources(admin: KafkaAdminClient, _: Call) -> Any:
    found = admin.list_config_resources()
    return [{"type": kind.upper(), "name": name} for kind, names in found.items() for name in names]


def _acls(admin: KafkaAdminClient, _: Call) -> Any:
    found, _error_class = admin.describe_acls(
        ACLFilter(None, None, "any", "any", ResourcePatternFilter("any", None, "any"))
    )
    return [
        {
            "pattern": {
                "resourceType": acl.resource_pattern.resource_type.name,
                "name": acl.resource_pattern.resource_name,
                "patternType": acl.resource_pattern.pattern_type.name,
            },
            "entry": {
                "principal": acl.principal,
                "host": acl.host,
                "operation": acl.operation.name,
                "permissionType": acl.permission_type.name,
            },
        }
        for acl in found
    ]


def _quotas(admin: KafkaAdminClient, _: Call) -> Any:
    return {
        ",".join(f"{kind}={'<default>' if name is None else name}" for kind, name in sorted(one.entity.items())): {
            **one.quotas
        }
        for one in admin.describe_client_quotas()
    }


def _users(admin: KafkaAdminClient, call: Call) -> Any:
    found = admin.describe_user_scram_credentials(call.get("names") or None)
    return {
        user: _or_error(
            one.error,
            lambda user=user, one=one: {
                "name": user,
                "credentialInfos": [
                    {"mechanism": info.mechanism.name, "iterations": info.iterations} for info in one.credential_infos
                ],
            },
        )
        for user, one in found.items()
    }


def _tokens(admin: KafkaAdminClient, _: Call) -> Any:
    return [
        {
            "hmac": base64.b64encode(one.hmac).decode(),
            "tokenInfo": {
                "owner": one.owner,
                "tokenRequester": one.requester,
                "renewers": one.renewers,
                "issueTimestamp": one.issue_timestamp,
                "expiryTimestamp": one.expiry_timestamp,
                "maxTimestamp": one.max_timestamp,
                "tokenId": one.token_id,
            },
        }
        for one in admin.describe_delegation_token()
    ]


# Groups


def _groups(admin: KafkaAdminClient, _: Call) -> Any:
    return [
        {
            "groupId": one.group_id,
            "type": GroupType.build_from(one.group_type).name,
            "protocol": one.protocol_type,
            "groupState": GroupState.build_from(one.group_state).name,
            "isSimpleConsumerGroup": one.group_type.lower() == "classic" and not one.protocol_type,
        }
        for one in admin.list_groups()
    ]


def _described(group: Any, **more: Any) -> Any:
    return {
        "groupId": group.group_id,
        "coordinator": group.coordinator_id,
        "authorizedOperations": _sorted(group.authorized_operations),
        **more,
    }


def _assignment(given: MemberAssignment | bytes) -> Any:
    pairs = () if isinstance(given, bytes) else given.assignment
    return {"topicPartitions": _names((topic, number) for topic, numbers in pairs for number in numbers)}


def _members(group: Any) -> Any:
    return [
        {
            "consumerId": one.member_id,
            "groupInstanceId": one.group_instance_id,
            "rackId": one.rack_id,
            "clientId": one.client_id,
            "host": one.client_host,
            "assignment": _assignment(one.member_assignment),
            "targetAssignment": None if one.target_assignment is None else _assignment(one.target_assignment),
            "memberEpoch": _known(one.member_epoch),
            # Java leaves that out of classic groups, where every member is one.
            "upgraded": None if group.group_type == "classic" or one.is_classic is None else not one.is_classic,
        }
        for one in group.members
    ]


def _consumer_groups(admin: KafkaAdminClient, call: Call) -> Any:
    def facts(group: Any) -> Any:
        return _described(
            group,
            isSimpleConsumerGroup=group.is_simple_consumer_group,
            members=_members(group),
            partitionAssignor=group.protocol_data,
            type=GroupType.build_from(group.group_type).name,
            groupState=GroupState.build_from(group.group_state).name,
            groupEpoch=_known(group.group_epoch),
            targetAssignmentEpoch=_known(group.assignment_epoch),
        )

    found = admin.describe_groups(call["names"], include_authorized_operations=True)
    return {name: _or_error(group.error, lambda group=group: facts(group)) for name, group in found.items()}


def _classic_groups(admin: KafkaAdminClient, call: Call) -> Any:
    def facts(group: Any) -> Any:
        return _described(
            group,
            protocol=group.protocol_type,
            protocolData=group.protocol_data,
            isSimpleConsumerGroup=group.is_simple_consumer_group,
            members=_members(group),
            state=GroupState.build_from(group.group_state).name,
        )

    found = admin.describe_classic_groups(call["names"], include_authorized_operations=True)
    return {name: _or_error(group.error, lambda group=group: facts(group)) for name, group in found.items()}


def _share_groups(admin: KafkaAdminClient, call: Call) -> Any:
    def facts(group: Any) -> Any:
        return _described(
            group,
            groupState=GroupState.build_from(group.group_state).name,
            groupEpoch=group.group_epoch,
            targetAssignmentEpoch=group.assignment_epoch,
            members=[
                {
                    "consumerId": one.member_id,
                    "rackId": one.rack_id,
                    "clientId": one.client_id,
                    "host": one.client_host,
                    "memberEpoch": one.member_epoch,
                    "assignment": {"topicPartitions": _names(one.assigned_partitions)},
                }
                for one in group.members
            ],
        )

    found = admin.describe_share_groups(call["names"], include_authorized_operations=True)
    return {name: _or_error(group.error, lambda group=group: facts(group)) for name, group in found.items()}


def _streams_groups(admin: KafkaAdminClient, call: Call) -> Any:
    def facts(group: Any) -> Any:
        return _described(
            group,
            groupState=GroupState.build_from(group.group_state).name,
            groupEpoch=group.group_epoch,
            targetAssignmentEpoch=group.assignment_epoch,
            topologyEpoch=group.topology_epoch,
            subtopologies=[
                {
                    "subtopologyId": one.subtopology_id,
                    "sourceTopics": one.source_topics,
                    "repartitionSinkTopics": one.repartition_sink_topics,
                    "stateChangelogTopics": _internal_topics(one.state_changelog_topics),
                    "repartitionSourceTopics": _internal_topics(one.repartition_source_topics),
                }
                for one in group.subtopologies
            ],
            members=[
                {
                    "memberId": one.member_id,
                    "memberEpoch": one.member_epoch,
                    "instanceId": one.group_instance_id,
                    "rackId": one.rack_id,
                    "clientId": one.client_id,
                    "clientHost": one.client_host,
                    "topologyEpoch": one.topology_epoch,
                    "processId": one.process_id,
                    "userEndpoint": None
                    if one.user_endpoint is None
                    else dict(zip(("host", "port"), one.user_endpoint, strict=True)),
                    "clientTags": one.client_tags,
                    "taskOffsets": _task_offsets(one.task_offsets),
                    "taskEndOffsets": _task_offsets(one.task_end_offsets),
                    "assignment": _tasks(one.assignment),
                    "targetAssignment": _tasks(one.target_assignment),
                    "isClassic": one.is_classic,
                }
                for one in group.members
            ],
        )

    found = admin.describe_streams_groups(call["names"], include_authorized_operations=True)
    return {name: _or_error(group.error, lambda group=group: facts(group)) for name, group in found.items()}


def _internal_topics(topics: Mapping[str, Any]) -> Any:
    return {
        name: {
            "partitions": one.partitions,
            "replicationFactor": one.replication_factor,
            "topicConfigs": one.topic_configs,
        }
        for name, one in topics.items()
    }


def _task_offsets(offsets: Iterable[Any]) -> Any:
    return [{"subtopologyId": one.subtopology_id, "partition": one.partition, "offset": one.offset} for one in offsets]


def _tasks(given: TaskAssignment) -> Any:
    return {
        f"{kind}Tasks": [{"subtopologyId": part, "partitions": numbers} for part, numbers in given[kind].items()]
        for kind in ("active", "standby", "warmup")
    }


def _committed(offsets: Mapping[TopicPartition, Any]) -> Any:
    return {
        _name(partition): {
            "offset": one.offset,
            "metadata": one.metadata,
            "leaderEpoch": None if one.leader_epoch is None else _known(one.leader_epoch),
        }
        for partition, one in offsets.items()
    }


def _group_offsets(admin: KafkaAdminClient, call: Call) -> Any:
    found = admin.list_group_offsets(call["names"], raise_errors=False)
    return {**{name: _committed(one) for name, one in found.items()}, **_errors(found.failed)}


def _streams_offsets(admin: KafkaAdminClient, call: Call) -> Any:
    return {name: _committed(one) for name, one in admin.list_streams_group_offsets(call["names"]).items()}


def _errors(failed: Mapping[str, KafkaError]) -> Any:
    return {name: _error(error) for name, error in failed.items()}


def _share_offsets(admin: KafkaAdminClient, call: Call) -> Any:
    found: Mapping[str, Any] = admin.list_share_group_offsets(call["names"], raise_errors=False)
    return {
        name: _error(offsets)
        if isinstance(offsets, KafkaError)
        else {
            _name(partition): None  # the group has not read from it
            if one.start_offset < 0
            else {
                "startOffset": one.start_offset,
                "leaderEpoch": _known(one.leader_epoch),
                "lag": _known(one.lag),
            }
            for partition, one in offsets.items()
        }
        for name, offsets in found.items()
    }


# Partitions, replicas, transactions


def _partitions(call: Call) -> list[TopicPartition]:
    return [TopicPartition(topic, number) for topic, number in call["partitions"]]


def _offsets(admin: KafkaAdminClient, call: Call) -> Any:
    found: Mapping[TopicPartition, Any] = admin.list_partition_offsets(
        dict.fromkeys(_partitions(call), call["spec"]), raise_errors=False
    )
    return {
        _name(partition): _error(one)
        if isinstance(one, KafkaError)
        else {"offset": one.offset, "timestamp": one.timestamp, "leaderEpoch": _known(one.leader_epoch)}
        for partition, one in found.items()
    }


def _producers(admin: KafkaAdminClient, call: Call) -> Any:
    found: Mapping[TopicPartition, Any] = admin.describe_producers(_partitions(call), raise_errors=False)
    return {
        _name(partition): _error(state)
        if isinstance(state, KafkaError)
        else {
            "activeProducers": [
                {
                    "producerId": one.producer_id,
                    "producerEpoch": one.producer_epoch,
                    "lastSequence": one.last_sequence,
                    "lastTimestamp": one.last_timestamp,
                    "currentTransactionStartOffset": _known(one.current_transaction_start_offset),
                    "coordinatorEpoch": _known(one.coordinator_epoch),
                }
                for one in state.active_producers
            ]
        }
        for partition, state in found.items()
    }


def _transaction_listings(admin: KafkaAdminClient, _: Call) -> Any:
    return {
        str(broker): [
            {"transactionalId": one.transactional_id, "producerId": one.producer_id, "state": one.state.name}
            for one in listed
        ]
        for broker, listed in admin.list_transactions().items()
    }


def _transactions(admin: KafkaAdminClient, call: Call) -> Any:
    found: Mapping[str, Any] = admin.describe_transactions(call["names"], raise_errors=False)
    return {
        name: _error(one)
        if isinstance(one, KafkaError)
        else {
            "coordinatorId": one.coordinator_id,
            "state": one.state.name,
            "producerId": one.producer_id,
            "producerEpoch": one.producer_epoch,
            "transactionTimeoutMs": one.transaction_timeout_ms,
            "transactionStartTimeMs": _known(one.transaction_start_time_ms),
            "topicPartitions": _names(one.topic_partitions),
        }
        for name, one in found.items()
    }


def _log_dirs(admin: KafkaAdminClient, call: Call) -> Any:
    return {
        str(broker.broker): {
            one.log_dir: {
                "error": None if one.error is None else _error(one.error)["error"],
                "totalBytes": _known(one.total_bytes),
                "usableBytes": _known(one.usable_bytes),
                "isCordoned": one.is_cordoned,
                "replicaInfos": {
                    _name((topic.name, part.partition_index)): {
                        "size": part.partition_size,
                        "offsetLag": part.offset_lag,
                        "isFuture": part.is_future_key,
                    }
                    for topic in one.topics
                    for part in topic.partitions
                },
            }
            for one in broker.log_dirs
        }
        for broker in admin.describe_log_dirs(brokers=call["brokers"])
    }


def _replica_log_dirs(admin: KafkaAdminClient, call: Call) -> Any:
    found: Mapping[TopicPartitionReplica, Any] = admin.describe_replica_log_dirs(
        [TopicPartitionReplica(*one) for one in call["replicas"]], raise_errors=False
    )
    return {
        f"{replica.topic}-{replica.partition}-{replica.broker_id}": _error(one)
        if isinstance(one, KafkaError)
        else {
            "getCurrentReplicaLogDir": one.current_log_dir,
            "getCurrentReplicaOffsetLag": one.current_offset_lag,
            "getFutureReplicaLogDir": one.future_log_dir,
            "getFutureReplicaOffsetLag": one.future_offset_lag,
        }
        for replica, one in found.items()
    }


def _reassignments(admin: KafkaAdminClient, _: Call) -> Any:
    return {
        _name(partition): {
            "replicas": one.replicas,
            "addingReplicas": one.adding_replicas,
            "removingReplicas": one.removing_replicas,
        }
        for partition, one in admin.list_partition_reassignments().items()
    }


_CALLS: dict[str, Callable[[KafkaAdminClient, Call], Any]] = {
    "describeCluster": _cluster,
    "listTopics": _listings,
    "describeTopics": _topics,
    "describeFeatures": _features,
    "describeMetadataQuorum": _quorum,
    "describeConfigs": _configs,
    "listConfigResources": _config_resources,
    "listClientMetricsResources": lambda admin, _: [{"name": name} for name in admin.list_client_metrics_resources()],
    "describeAcls": _acls,
    "describeClientQuotas": _quotas,
    "describeUserScramCredentials": _users,
    "describeDelegationToken": _tokens,
    "listGroups": _groups,
    "describeConsumerGroups": _consumer_groups,
    "describeClassicGroups": _classic_groups,
    "describeShareGroups": _share_groups,
    "describeStreamsGroups": _streams_groups,
    "listConsumerGroupOffsets": _group_offsets,
    "listStreamsGroupOffsets": _streams_offsets,
    "listShareGroupOffsets": _share_offsets,
    "listOffsets": _offsets,
    "describeProducers": _producers,
    "listTransactions": _transaction_listings,
    "describeTransactions": _transactions,
    "describeLogDirs": _log_dirs,
    "describeReplicaLogDirs": _replica_log_dirs,
    "listPartitionReassignments": _reassignments,
}
