"""All APIs of Kafka: key, name, versions and where the messages are, without importing any of them."""

from __future__ import annotations

from enum import IntEnum
from importlib import import_module
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka.errors import IllegalArgumentError, UnsupportedVersionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kafka.protocol.api import Request, Response


class Api(NamedTuple):
    """One API key."""

    key: int
    #: The messages' name, without Request and Response.
    name: str
    #: The module of ``kafka.protocol`` that defines them.
    module: str
    #: The versions that may be chosen; a message may have more, which are unstable.
    min_version: int
    max_version: int
    #: The first version with tag buffers and compact lengths, None where there is none.
    flexible_from: int | None
    #: On which listeners it is served: of brokers, controllers, or brokers of the ZooKeeper era.
    listeners: str

    @property
    def request(self) -> type[Request[Response]]:
        """The request class."""
        found: type[Request[Response]] = getattr(import_module(f"kafka.protocol.{self.module}"), f"{self.name}Request")
        return found

    @property
    def response(self) -> type[Response]:
        """The response class."""
        found: type[Response] = getattr(import_module(f"kafka.protocol.{self.module}"), f"{self.name}Response")
        return found


# begin of the generated table
_TABLE: Final = (
    Api(0, "Produce", "produce", 0, 13, 9, "broker"),
    Api(1, "Fetch", "fetch", 0, 18, 12, "broker controller"),
    Api(2, "ListOffsets", "offset", 0, 11, 6, "broker"),
    Api(3, "Metadata", "metadata", 0, 13, 9, "broker"),
    Api(4, "LeaderAndIsr", "replication", 0, 7, 4, "zkBroker"),
    Api(5, "StopReplica", "replication", 0, 4, 2, "zkBroker"),
    Api(6, "UpdateMetadata", "replication", 0, 8, 6, "zkBroker"),
    Api(7, "ControlledShutdown", "replication", 0, 3, 3, "controller zkBroker"),
    Api(8, "OffsetCommit", "commit", 0, 10, 8, "broker"),
    Api(9, "OffsetFetch", "commit", 0, 10, 6, "broker"),
    Api(10, "FindCoordinator", "commit", 0, 6, 3, "broker"),
    Api(11, "JoinGroup", "group", 0, 9, 6, "broker"),
    Api(12, "Heartbeat", "group", 0, 4, 4, "broker"),
    Api(13, "LeaveGroup", "group", 0, 5, 4, "broker"),
    Api(14, "SyncGroup", "group", 0, 5, 4, "broker"),
    Api(15, "DescribeGroups", "admin", 0, 6, 5, "broker"),
    Api(16, "ListGroups", "admin", 0, 5, 3, "broker"),
    Api(17, "SaslHandshake", "sasl", 0, 1, None, "broker controller"),
    Api(18, "ApiVersions", "admin", 0, 4, 3, "broker controller"),
    Api(19, "CreateTopics", "admin", 0, 7, 5, "broker controller"),
    Api(20, "DeleteTopics", "admin", 0, 6, 4, "broker controller"),
    Api(21, "DeleteRecords", "admin", 0, 2, 2, "broker"),
    Api(22, "InitProducerId", "transaction", 0, 5, 2, "broker"),
    Api(23, "OffsetForLeaderEpoch", "offset", 0, 4, 4, "broker"),
    Api(24, "AddPartitionsToTxn", "transaction", 0, 5, 3, "broker"),
    Api(25, "AddOffsetsToTxn", "transaction", 0, 4, 3, "broker"),
    Api(26, "EndTxn", "transaction", 0, 5, 3, "broker"),
    Api(27, "WriteTxnMarkers", "transaction", 0, 2, 1, "broker"),
    Api(28, "TxnOffsetCommit", "transaction", 0, 5, 3, "broker"),
    Api(29, "DescribeAcls", "acl", 0, 3, 2, "broker controller"),
    Api(30, "CreateAcls", "acl", 0, 3, 2, "broker controller"),
    Api(31, "DeleteAcls", "acl", 0, 3, 2, "broker controller"),
    Api(32, "DescribeConfigs", "configs", 0, 4, 4, "broker controller"),
    Api(33, "AlterConfigs", "configs", 0, 2, 2, "broker controller"),
    Api(34, "AlterReplicaLogDirs", "admin", 0, 2, 2, "broker"),
    Api(35, "DescribeLogDirs", "admin", 0, 5, 2, "broker"),
    Api(36, "SaslAuthenticate", "sasl", 0, 2, 2, "broker controller"),
    Api(37, "CreatePartitions", "admin", 0, 3, 2, "broker controller"),
    Api(38, "CreateDelegationToken", "sasl", 0, 3, 2, "broker controller"),
    Api(39, "RenewDelegationToken", "sasl", 0, 2, 2, "broker controller"),
    Api(40, "ExpireDelegationToken", "sasl", 0, 2, 2, "broker controller"),
    Api(41, "DescribeDelegationToken", "sasl", 0, 3, 2, "broker controller"),
    Api(42, "DeleteGroups", "admin", 0, 2, 2, "broker"),
    Api(43, "ElectLeaders", "admin", 0, 2, 2, "broker controller"),
    Api(44, "IncrementalAlterConfigs", "configs", 0, 1, 1, "broker controller"),
    Api(45, "AlterPartitionReassignments", "admin", 0, 1, 0, "broker controller"),
    Api(46, "ListPartitionReassignments", "admin", 0, 0, 0, "broker controller"),
    Api(47, "OffsetDelete", "commit", 0, 0, None, "broker"),
    Api(48, "DescribeClientQuotas", "users", 0, 1, 1, "broker"),
    Api(49, "AlterClientQuotas", "users", 0, 1, 1, "broker controller"),
    Api(50, "DescribeUserScramCredentials", "users", 0, 0, 0, "broker controller"),
    Api(51, "AlterUserScramCredentials", "users", 0, 0, 0, "broker controller"),
    Api(52, "Vote", "quorum", 0, 2, 0, "controller"),
    Api(53, "BeginQuorumEpoch", "quorum", 0, 1, 1, "controller"),
    Api(54, "EndQuorumEpoch", "quorum", 0, 1, 1, "controller"),
    Api(55, "DescribeQuorum", "quorum", 0, 2, 0, "broker controller"),
    Api(56, "AlterPartition", "replication", 0, 3, 0, "controller"),
    Api(57, "UpdateFeatures", "admin", 0, 2, 0, "broker controller"),
    Api(58, "Envelope", "controller", 0, 0, 0, "controller"),
    Api(59, "FetchSnapshot", "quorum", 0, 1, 0, "controller"),
    Api(60, "DescribeCluster", "metadata", 0, 2, 0, "broker controller"),
    Api(61, "DescribeProducers", "transaction", 0, 0, 0, "broker"),
    Api(62, "BrokerRegistration", "controller", 0, 4, 0, "controller"),
    Api(63, "BrokerHeartbeat", "controller", 0, 2, 0, "controller"),
    Api(64, "UnregisterBroker", "admin", 0, 0, 0, "broker controller"),
    Api(65, "DescribeTransactions", "transaction", 0, 0, 0, "broker"),
    Api(66, "ListTransactions", "transaction", 0, 2, 0, "broker"),
    Api(67, "AllocateProducerIds", "controller", 0, 0, 0, "controller"),
    Api(68, "ConsumerGroupHeartbeat", "group", 0, 1, 0, "broker"),
    Api(69, "ConsumerGroupDescribe", "group", 0, 1, 0, "broker"),
    Api(70, "ControllerRegistration", "controller", 0, 0, 0, "controller"),
    Api(71, "GetTelemetrySubscriptions", "telemetry", 0, 0, 0, "broker"),
    Api(72, "PushTelemetry", "telemetry", 0, 0, 0, "broker"),
    Api(73, "AssignReplicasToDirs", "replication", 0, 0, 0, "controller"),
    Api(74, "ListConfigResources", "configs", 0, 1, 0, "broker"),
    Api(75, "DescribeTopicPartitions", "metadata", 0, 0, 0, "broker"),
    Api(76, "ShareGroupHeartbeat", "share", 1, 1, 0, "broker"),
    Api(77, "ShareGroupDescribe", "share", 1, 1, 0, "broker"),
    Api(78, "ShareFetch", "share", 1, 2, 0, "broker"),
    Api(79, "ShareAcknowledge", "share", 1, 2, 0, "broker"),
    Api(80, "AddRaftVoter", "quorum", 0, 1, 0, "broker controller"),
    Api(81, "RemoveRaftVoter", "quorum", 0, 0, 0, "broker controller"),
    Api(82, "UpdateRaftVoter", "quorum", 0, 0, 0, "controller"),
    Api(83, "InitializeShareGroupState", "share_state", 0, 0, 0, "broker"),
    Api(84, "ReadShareGroupState", "share_state", 0, 0, 0, "broker"),
    Api(85, "WriteShareGroupState", "share_state", 0, 1, 0, "broker"),
    Api(86, "DeleteShareGroupState", "share_state", 0, 0, 0, "broker"),
    Api(87, "ReadShareGroupStateSummary", "share_state", 0, 1, 0, "broker"),
    Api(88, "StreamsGroupHeartbeat", "streams", 0, 0, 0, "broker"),
    Api(89, "StreamsGroupDescribe", "streams", 0, 0, 0, "broker"),
    Api(90, "DescribeShareGroupOffsets", "share", 0, 1, 0, "broker"),
    Api(91, "AlterShareGroupOffsets", "share", 0, 0, 0, "broker"),
    Api(92, "DeleteShareGroupOffsets", "share", 0, 0, 0, "broker"),
)


class ApiKey(IntEnum):
    """The API keys by the names of their messages: ``ApiKey.Fetch == 1``."""

    Produce = 0
    Fetch = 1
    ListOffsets = 2
    Metadata = 3
    LeaderAndIsr = 4
    StopReplica = 5
    UpdateMetadata = 6
    ControlledShutdown = 7
    OffsetCommit = 8
    OffsetFetch = 9
    FindCoordinator = 10
    JoinGroup = 11
    Heartbeat = 12
    LeaveGroup = 13
    SyncGroup = 14
    DescribeGroups = 15
    ListGroups = 16
    SaslHandshake = 17
    ApiVersions = 18
    CreateTopics = 19
    DeleteTopics = 20
    DeleteRecords = 21
    InitProducerId = 22
    OffsetForLeaderEpoch = 23
    AddPartitionsToTxn = 24
    AddOffsetsToTxn = 25
    EndTxn = 26
    WriteTxnMarkers = 27
    TxnOffsetCommit = 28
    DescribeAcls = 29
    CreateAcls = 30
    DeleteAcls = 31
    DescribeConfigs = 32
    AlterConfigs = 33
    AlterReplicaLogDirs = 34
    DescribeLogDirs = 35
    SaslAuthenticate = 36
    CreatePartitions = 37
    CreateDelegationToken = 38
    RenewDelegationToken = 39
    ExpireDelegationToken = 40
    DescribeDelegationToken = 41
    DeleteGroups = 42
    ElectLeaders = 43
    IncrementalAlterConfigs = 44
    AlterPartitionReassignments = 45
    ListPartitionReassignments = 46
    OffsetDelete = 47
    DescribeClientQuotas = 48
    AlterClientQuotas = 49
    DescribeUserScramCredentials = 50
    AlterUserScramCredentials = 51
    Vote = 52
    BeginQuorumEpoch = 53
    EndQuorumEpoch = 54
    DescribeQuorum = 55
    AlterPartition = 56
    UpdateFeatures = 57
    Envelope = 58
    FetchSnapshot = 59
    DescribeCluster = 60
    DescribeProducers = 61
    BrokerRegistration = 62
    BrokerHeartbeat = 63
    UnregisterBroker = 64
    DescribeTransactions = 65
    ListTransactions = 66
    AllocateProducerIds = 67
    ConsumerGroupHeartbeat = 68
    ConsumerGroupDescribe = 69
    ControllerRegistration = 70
    GetTelemetrySubscriptions = 71
    PushTelemetry = 72
    AssignReplicasToDirs = 73
    ListConfigResources = 74
    DescribeTopicPartitions = 75
    ShareGroupHeartbeat = 76
    ShareGroupDescribe = 77
    ShareFetch = 78
    ShareAcknowledge = 79
    AddRaftVoter = 80
    RemoveRaftVoter = 81
    UpdateRaftVoter = 82
    InitializeShareGroupState = 83
    ReadShareGroupState = 84
    WriteShareGroupState = 85
    DeleteShareGroupState = 86
    ReadShareGroupStateSummary = 87
    StreamsGroupHeartbeat = 88
    StreamsGroupDescribe = 89
    DescribeShareGroupOffsets = 90
    AlterShareGroupOffsets = 91
    DeleteShareGroupOffsets = 92


# end of the generated table

#: Every API by its key.
APIS: Final[Mapping[int, Api]] = {api.key: api for api in _TABLE}
_BY_NAME: Final[Mapping[str, Api]] = {api.name.lower(): api for api in _TABLE}


def api_named(name: str) -> Api:
    """Find an API by its name or that of one of its messages, in any case.

    >>> api_named('fetch').key, api_named('MetadataRequest').key
    (1, 3)
    >>> api_named('Metadatta')
    Traceback (most recent call last):
    kafka.errors.IllegalArgumentError: Kafka has no API named 'Metadatta': did you mean Metadata?
    """
    found = _BY_NAME.get(name.lower().removesuffix("request").removesuffix("response"))
    if found is None:
        from difflib import get_close_matches

        spellings = {spelling + kind: api for spelling, api in _BY_NAME.items() for kind in ("", "request", "response")}
        near = get_close_matches(name.lower(), spellings, n=1)
        hint = f": did you mean {spellings[near[0]].name}?" if near else ""
        raise IllegalArgumentError(f"Kafka has no API named {name!r}{hint}")
    return found


def request_class(api_key: int) -> type[Request[Response]]:
    """Return the request class of an API key."""
    if api_key not in APIS:
        raise UnsupportedVersionError(f"there is no API with key {api_key}")
    return APIS[api_key].request
