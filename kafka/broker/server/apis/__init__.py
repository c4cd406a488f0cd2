"""The APIs of the broker: a file for each on the way of records, the small ones by what they are about.

``_FILES`` says which file serves an API; one that is not there is not served, nor advertised. Its function has the
API's name and opens with the versions and a line for each version's behaviour::

    def describe_acls(call: Call[DescribeAclsResponse], request: DescribeAclsRequest) -> DescribeAclsResponse: ...

It runs on the broker's event loop and must not block. It returns the reply; or an awaitable of it where the client has
to wait; or None where no reply is due. ``call.response`` is the reply's class in the request's version. If the whole
request fails it raises the error of :mod:`kafka.errors` that the reply is to have.

Some have a second function, ``refuse_describe_acls(call, request, code)``: the reply to a request that fails with this
error, where it needs more than the request (:mod:`kafka.broker.server.error_replies`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache, lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from kafka.protocol.registry import APIS, ApiKey

if TYPE_CHECKING:
    from kafka.broker.server.call import Call
    from kafka.protocol.api import Request, Response

__all__ = ["handler", "refusal", "served"]

Handler: TypeAlias = "Callable[[Call, Request[Response]], Any]"
Refusal: TypeAlias = "Callable[[Call, Request[Response], int], Response | None]"

#: The files, and the APIs that each serves.
_FILES: Final[dict[str, tuple[ApiKey, ...]]] = {
    "produce": (ApiKey.Produce,),
    "fetch": (ApiKey.Fetch,),
    "list_offsets": (ApiKey.ListOffsets, ApiKey.OffsetForLeaderEpoch),
    "metadata": (ApiKey.Metadata,),
    "committed_offsets": (ApiKey.OffsetCommit, ApiKey.OffsetFetch, ApiKey.OffsetDelete),
    "classic_groups": (ApiKey.JoinGroup, ApiKey.Heartbeat, ApiKey.LeaveGroup, ApiKey.SyncGroup, ApiKey.DescribeGroups),
    "groups": (ApiKey.FindCoordinator, ApiKey.ListGroups, ApiKey.DeleteGroups),
    "handshake": (ApiKey.SaslHandshake, ApiKey.ApiVersions, ApiKey.SaslAuthenticate),
    "topics": (
        ApiKey.CreateTopics,
        ApiKey.DeleteTopics,
        ApiKey.DeleteRecords,
        ApiKey.CreatePartitions,
        ApiKey.DescribeTopicPartitions,
    ),
    "transactions": (
        ApiKey.InitProducerId,
        ApiKey.AddPartitionsToTxn,
        ApiKey.AddOffsetsToTxn,
        ApiKey.EndTxn,
        ApiKey.TxnOffsetCommit,
    ),
    "hanging_transactions": (
        ApiKey.WriteTxnMarkers,
        ApiKey.DescribeProducers,
        ApiKey.DescribeTransactions,
        ApiKey.ListTransactions,
    ),
    "acls": (ApiKey.DescribeAcls, ApiKey.CreateAcls, ApiKey.DeleteAcls),
    "configs": (
        ApiKey.DescribeConfigs,
        ApiKey.AlterConfigs,
        ApiKey.IncrementalAlterConfigs,
        ApiKey.ListConfigResources,
    ),
    "replicas": (
        ApiKey.AlterReplicaLogDirs,
        ApiKey.DescribeLogDirs,
        ApiKey.ElectLeaders,
        ApiKey.AlterPartitionReassignments,
        ApiKey.ListPartitionReassignments,
    ),
    "delegation_tokens": (
        ApiKey.CreateDelegationToken,
        ApiKey.RenewDelegationToken,
        ApiKey.ExpireDelegationToken,
        ApiKey.DescribeDelegationToken,
    ),
    "users": (
        ApiKey.DescribeClientQuotas,
        ApiKey.AlterClientQuotas,
        ApiKey.DescribeUserScramCredentials,
        ApiKey.AlterUserScramCredentials,
    ),
    "cluster": (
        ApiKey.DescribeQuorum,
        ApiKey.UpdateFeatures,
        ApiKey.DescribeCluster,
        ApiKey.UnregisterBroker,
        ApiKey.AddRaftVoter,
        ApiKey.RemoveRaftVoter,
    ),
    "consumer_groups": (ApiKey.ConsumerGroupHeartbeat, ApiKey.ConsumerGroupDescribe),
    "telemetry": (ApiKey.GetTelemetrySubscriptions, ApiKey.PushTelemetry),
    "share_groups": (
        ApiKey.ShareGroupHeartbeat,
        ApiKey.ShareGroupDescribe,
        ApiKey.DescribeShareGroupOffsets,
        ApiKey.AlterShareGroupOffsets,
        ApiKey.DeleteShareGroupOffsets,
    ),
    "share_fetch": (ApiKey.ShareFetch, ApiKey.ShareAcknowledge),
    "streams_groups": (ApiKey.StreamsGroupHeartbeat, ApiKey.StreamsGroupDescribe),
}


@lru_cache(maxsize=1)
def served() -> dict[int, str]:
    """Return the module of each API key that the broker serves.

    >>> served()[18]
    'kafka.broker.server.apis.handshake'
    """
    return {key: f"{__name__}.{file}" for file, keys in _FILES.items() for key in keys}


@cache
def handler(api_key: int) -> Handler:
    """Return the handler of an API; its module is imported when the first such request comes."""
    handle: Handler = getattr(import_module(served()[api_key]), _function(api_key))
    return handle


@cache
def refusal(api_key: int) -> Refusal | None:
    """Return what makes an API's error replies, None if the request says all that is in them."""
    return getattr(import_module(served()[api_key]), f"refuse_{_function(api_key)}", None)


def _function(api_key: int) -> str:
    """Return the name of an API's function: ``describe_acls`` of DescribeAcls."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", APIS[api_key].name).lower()
