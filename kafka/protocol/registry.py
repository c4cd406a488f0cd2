"""All APIs of Kafka: key, name, versions and where the messages are, without importing any of them."""

from __future__ import annotations

from enum import IntEnum
from importlib import import_module
from typing import TYPE_CHECKING, Final

from kafka.errors import IllegalArgumentError, UnsupportedVersionError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from typing_extensions import Self

    from kafka.protocol.api import Request, Response


class ApiKey(IntEnum):
    """The APIs by the names of their messages, which are numbers: ``ApiKey.Fetch == 1``."""

    module: str
    """The module of ``kafka.protocol`` that defines the messages."""
    min_version: int
    max_version: int
    """The versions that may be chosen; a message may have more, which are unstable."""
    flexible_from: int | None
    """The first version with tag buffers and compact lengths, None where there is none."""
    listeners: str
    """On which listeners it is served: of brokers, controllers, or brokers of the ZooKeeper era."""

    def __new__(
        cls,
        key: int,
        module: str = "",
        min_version: int = 0,
        max_version: int = 0,
        flexible_from: int | None = None,
        listeners: str = "",
    ) -> Self:
        """Make the API of a row of the table. (For ``ApiKey(1)`` Python looks the row up.)"""
        made = int.__new__(cls, key)
        made._value_ = key
        made.module, made.min_version, made.max_version = module, min_version, max_version
        made.flexible_from, made.listeners = flexible_from, listeners
        return made

    @property
    def key(self) -> int:
        """The number."""
        return int(self)

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
    Produce = 0, "produce", 0, 13, 9, "broker"
    Fetch = 1, "fetch", 0, 18, 12, "broker controller"
    ListOffsets = 2, "offset", 0, 11, 6, "broker"
    Metadata = 3, "metadata", 0, 13, 9, "broker"
    LeaderAndIsr = 4, "replication", 0, 7, 4, "zkBroker"
    StopReplica = 5, "replication", 0, 4, 2, "zkBroker"
    UpdateMetadata = 6, "replication", 0, 8, 6, "zkBroker"
    ControlledShutdown = 7, "replication", 0, 3, 3, "controller zkBroker"
    OffsetCommit = 8, "commit", 0, 10, 8, "broker"
    OffsetFetch = 9, "commit", 0, 10, 6, "broker"
    FindCoordinator = 10, "commit", 0, 6, 3, "broker"
    JoinGroup = 11, "group", 0, 9, 6, "broker"
    Heartbeat = 12, "group", 0, 4, 4, "broker"
    LeaveGroup = 13, "group", 0, 5, 4, "broker"
    SyncGroup = 14, "group", 0, 5, 4, "broker"
    DescribeGroups = 15, "admin", 0, 6, 5, "broker"
    ListGroups = 16, "admin", 0, 5, 3, "broker"
    SaslHandshake = 17, "sasl", 0, 1, None, "broker controller"
    ApiVersions = 18, "admin", 0, 4, 3, "broker controller"
    CreateTopics = 19, "admin", 0, 7, 5, "broker controller"
    DeleteTopics = 20, "admin", 0, 6, 4, "broker controller"
    DeleteRecords = 21, "admin", 0, 2, 2, "broker"
    InitProducerId = 22, "transaction", 0, 5, 2, "broker"
    OffsetForLeaderEpoch = 23, "offset", 0, 4, 4, "broker"
    AddPartitionsToTxn = 24, "transaction", 0, 5, 3, "broker"
    AddOffsetsToTxn = 25, "transaction", 0, 4, 3, "broker"
    EndTxn = 26, "transaction", 0, 5, 3, "broker"
    WriteTxnMarkers = 27, "transaction", 0, 2, 1, "broker"
    TxnOffsetCommit = 28, "transaction", 0, 5, 3, "broker"
    DescribeAcls = 29, "acl", 0, 3, 2, "broker controller"
    CreateAcls = 30, "acl", 0, 3, 2, "broker controller"
    DeleteAcls = 31, "acl", 0, 3, 2, "broker controller"
    DescribeConfigs = 32, "configs", 0, 4, 4, "broker controller"
    AlterConfigs = 33, "configs", 0, 2, 2, "broker controller"
    AlterReplicaLogDirs = 34, "admin", 0, 2, 2, "broker"
    DescribeLogDirs = 35, "admin", 0, 5, 2, "broker"
    SaslAuthenticate = 36, "sasl", 0, 2, 2, "broker controller"
    CreatePartitions = 37, "admin", 0, 3, 2, "broker controller"
    CreateDelegationToken = 38, "sasl", 0, 3, 2, "broker controller"
    RenewDelegationToken = 39, "sasl", 0, 2, 2, "broker controller"
    ExpireDelegationToken = 40, "sasl", 0, 2, 2, "broker controller"
    DescribeDelegationToken = 41, "sasl", 0, 3, 2, "broker controller"
    DeleteGroups = 42, "admin", 0, 2, 2, "broker"
    ElectLeaders = 43, "admin", 0, 2, 2, "broker controller"
    IncrementalAlterConfigs = 44, "configs", 0, 1, 1, "broker controller"
    AlterPartitionReassignments = 45, "admin", 0, 1, 0, "broker controller"
    ListPartitionReassignments = 46, "admin", 0, 0, 0, "broker controller"
    OffsetDelete = 47, "commit", 0, 0, None, "broker"
    DescribeClientQuotas = 48, "users", 0, 1, 1, "broker"
    AlterClientQuotas = 49, "users", 0, 1, 1, "broker controller"
    DescribeUserScramCredentials = 50, "users", 0, 0, 0, "broker controller"
    AlterUserScramCredentials = 51, "users", 0, 0, 0, "broker controller"
    Vote = 52, "quorum", 0, 2, 0, "controller"
    BeginQuorumEpoch = 53, "quorum", 0, 1, 1, "controller"
    EndQuorumEpoch = 54, "quorum", 0, 1, 1, "controller"
    DescribeQuorum = 55, "quorum", 0, 2, 0, "broker controller"
    AlterPartition = 56, "replication", 0, 3, 0, "controller"
    UpdateFeatures = 57, "admin", 0, 2, 0, "broker controller"
    Envelope = 58, "controller", 0, 0, 0, "controller"
    FetchSnapshot = 59, "quorum", 0, 1, 0, "controller"
    DescribeCluster = 60, "metadata", 0, 2, 0, "broker controller"
    DescribeProducers = 61, "transaction", 0, 0, 0, "broker"
    BrokerRegistration = 62, "controller", 0, 4, 0, "controller"
    BrokerHeartbeat = 63, "controller", 0, 2, 0, "controller"
    UnregisterBroker = 64, "admin", 0, 0, 0, "broker controller"
    DescribeTransactions = 65, "transaction", 0, 0, 0, "broker"
    ListTransactions = 66, "transaction", 0, 2, 0, "broker"
    AllocateProducerIds = 67, "controller", 0, 0, 0, "controller"
    ConsumerGroupHeartbeat = 68, "group", 0, 1, 0, "broker"
    ConsumerGroupDescribe = 69, "group", 0, 1, 0, "broker"
    ControllerRegistration = 70, "controller", 0, 0, 0, "controller"
    GetTelemetrySubscriptions = 71, "telemetry", 0, 0, 0, "broker"
    PushTelemetry = 72, "telemetry", 0, 0, 0, "broker"
    AssignReplicasToDirs = 73, "replication", 0, 0, 0, "controller"
    ListConfigResources = 74, "configs", 0, 1, 0, "broker"
    DescribeTopicPartitions = 75, "metadata", 0, 0, 0, "broker"
    ShareGroupHeartbeat = 76, "share", 1, 1, 0, "broker"
    ShareGroupDescribe = 77, "share", 1, 1, 0, "broker"
    ShareFetch = 78, "share", 1, 2, 0, "broker"
    ShareAcknowledge = 79, "share", 1, 2, 0, "broker"
    AddRaftVoter = 80, "quorum", 0, 1, 0, "broker controller"
    RemoveRaftVoter = 81, "quorum", 0, 0, 0, "broker controller"
    UpdateRaftVoter = 82, "quorum", 0, 0, 0, "controller"
    InitializeShareGroupState = 83, "share_state", 0, 0, 0, "broker"
    ReadShareGroupState = 84, "share_state", 0, 0, 0, "broker"
    WriteShareGroupState = 85, "share_state", 0, 1, 0, "broker"
    DeleteShareGroupState = 86, "share_state", 0, 0, 0, "broker"
    ReadShareGroupStateSummary = 87, "share_state", 0, 1, 0, "broker"
    StreamsGroupHeartbeat = 88, "streams", 0, 0, 0, "broker"
    StreamsGroupDescribe = 89, "streams", 0, 0, 0, "broker"
    DescribeShareGroupOffsets = 90, "share", 0, 1, 0, "broker"
    AlterShareGroupOffsets = 91, "share", 0, 0, 0, "broker"
    DeleteShareGroupOffsets = 92, "share", 0, 0, 0, "broker"
    # end of the generated table


Api = ApiKey  # the description of an API, which is its key too
#: Every API by its key.
APIS: Final[Mapping[int, ApiKey]] = {int(api): api for api in ApiKey}
_BY_NAME: Final[Mapping[str, ApiKey]] = {api.name.lower(): api for api in ApiKey}


def api_named(name: str) -> ApiKey:
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
