"""What all kinds of groups have in common: their coordinators, lists of them, deletion."""

from __future__ import annotations

import re
from typing import Final

from kafka.broker.cluster.coordinators import GROUP, SHARE, TRANSACTION
from kafka.broker.groups.service import GroupService, check_group, coordinator
from kafka.broker.server.api import CLUSTER_NAME, BrokerResponseError, Call, Code, Operation, Resource
from kafka.broker.server.node import Node
from kafka.protocol.admin import DeleteGroupsRequest, DeleteGroupsResponse, ListGroupsRequest, ListGroupsResponse
from kafka.protocol.commit import FindCoordinatorRequest, FindCoordinatorResponse

_BATCH_FROM: Final = 4
_SHARE_FROM: Final = 6
_NOWHERE: Final = (-1, "", -1)
_KINDS: Final = (GROUP, TRANSACTION, SHARE)
_SHARE_KEY: Final = re.compile(r"[^:]+:[A-Za-z0-9_-]{22}:\d+")
_UNKNOWN_KIND: Final = "The broker has no coordinator of that kind."


def find_coordinator(call: Call[FindCoordinatorResponse], request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    """FindCoordinator (10), versions 0-6: which node coordinates groups, transactions or share groups.

    * v0: groups only. v1: transactions too; throttle time; a message with the error.
    * v2: clients expect throttling after the reply. v3: flexible.
    * v4: several keys at once (KIP-699).
    * v5: transactions of version 2 (KIP-890); nothing changes here.
    * v6: share groups (KIP-932), by keys of the form ``group:topic-id:partition``.
    """
    kind = request.key_type if call.version >= 1 else GROUP
    if call.version >= _BATCH_FROM:
        return call.response(coordinators=[_coordinator(call, kind, key) for key in request.coordinator_keys])
    code, node = _find(call, kind, request.key)
    node_id, host, port = _NOWHERE if node is None else (node.node_id, node.host, node.port)
    message = "NONE" if not code else Code(code).name
    return call.response(error_code=code, error_message=message, node_id=node_id, host=host, port=port)


def _coordinator(call: Call[FindCoordinatorResponse], kind: int, key: str) -> FindCoordinatorResponse.Coordinator:
    code, node = _find(call, kind, key)
    node_id, host, port = _NOWHERE if node is None else (node.node_id, node.host, node.port)
    return call.response.Coordinator(
        key=key,
        node_id=node_id,
        host=host,
        port=port,
        error_code=code,
        error_message=_UNKNOWN_KIND if kind not in _KINDS else "",
    )


def _find(call: Call[FindCoordinatorResponse], kind: int, key: str) -> tuple[int, Node | None]:
    if kind == GROUP and not call.allows(Operation.DESCRIBE, Resource.GROUP, key):
        return Code.GROUP_AUTHORIZATION_FAILED, None
    if kind == TRANSACTION and not call.allows(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, key):
        return Code.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, None
    if kind == SHARE and call.version < _SHARE_FROM:
        return Code.INVALID_REQUEST, None
    if kind == SHARE and not call.allows(Operation.CLUSTER_ACTION, Resource.CLUSTER, CLUSTER_NAME):
        return Code.CLUSTER_AUTHORIZATION_FAILED, None
    if kind == SHARE and not _is_share_key(key):
        return Code.INVALID_REQUEST, None
    if kind not in _KINDS:
        return Code.INVALID_REQUEST, None
    node = call.cluster.coordinators.node_for(kind, key)
    return (Code.COORDINATOR_NOT_AVAILABLE if node is None else Code.NONE), node


def _is_share_key(key: str) -> bool:
    """Whether it is a group, a topic's id as Kafka writes it, and a partition's number."""
    return _SHARE_KEY.fullmatch(key) is not None


def list_groups(call: Call[ListGroupsResponse], request: ListGroupsRequest) -> ListGroupsResponse:
    """ListGroups (16), versions 0-5: the groups that this node coordinates.

    * v0: ids and protocol types. v1: throttle time. v2: clients expect throttling after the reply.
    * v3: flexible.
    * v4: states, and a filter by them (KIP-518).
    * v5: types, and a filter by them (KIP-848).
    """
    sees_all = call.allows(Operation.DESCRIBE, Resource.CLUSTER, CLUSTER_NAME)
    states = {state.lower() for state in request.states_filter}
    types = {kind.lower() for kind in request.types_filter}
    groups = [
        call.response.ListedGroup(group_id=group_id, protocol_type=protocol, group_state=state, group_type=kind)
        for group_id, protocol, state, kind in coordinator(call).listed()
        if call.cluster.coordinators.is_at(call.node, GROUP, group_id)
        and (not states or state.lower() in states)
        and (not types or kind.lower() in types)
        and (sees_all or call.allows(Operation.DESCRIBE, Resource.GROUP, group_id))
    ]
    return call.response(error_code=0, groups=groups)


def delete_groups(call: Call[DeleteGroupsResponse], request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    """DeleteGroups (42), versions 0-2: delete empty groups with their offsets.

    * v1: clients expect throttling after the reply.
    * v2: flexible.
    """
    # A name that comes twice is deleted once and answered once, as in Kafka.
    return call.response(results=[(name, _delete(call, name)) for name in dict.fromkeys(request.groups_names)])


def _delete(call: Call[DeleteGroupsResponse], group_id: str) -> int:
    try:
        check_group(call, group_id, Operation.DELETE)
        coordinator(call).delete(group_id)
        call.cluster.service(GroupService).share_group_deleted(group_id)
    except BrokerResponseError as error:
        return error.code
    return 0
