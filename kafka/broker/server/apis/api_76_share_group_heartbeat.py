"""ShareGroupHeartbeat (76), version 1: join, stay in and leave a share group (KIP-932)."""

from __future__ import annotations

from typing import Final

from kafka.broker.groups.epoch_group import JOIN, LEAVE
from kafka.broker.groups.service import coordinator, message_of, refusal
from kafka.broker.groups.share_group import ShareAsk
from kafka.broker.server.api import BrokerResponseError, Call, Code, Operation, Resource
from kafka.protocol.share import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

_FEATURE: Final = "share.version"


def handle(call: Call[ShareGroupHeartbeatResponse], request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
    """Serve a member."""
    if not call.cluster.features.serves(_FEATURE):
        return call.response(error_code=Code.UNSUPPORTED_VERSION)
    problem = _problem(request)
    if problem is not None:
        return call.response(error_code=Code.INVALID_REQUEST, error_message=problem or None)
    refused = refusal(call, request.group_id) or _refused_topics(call, request)
    if refused:
        return call.response(error_code=refused)
    groups = coordinator(call)
    try:
        if request.member_epoch == LEAVE:
            groups.share_leave(request.group_id, request.member_id)
            return call.response(member_id=request.member_id, member_epoch=LEAVE)
        member, has_assignment = groups.share_heartbeat(request.group_id, _ask(call, request))
    except BrokerResponseError as error:
        return call.response(error_code=error.code, error_message=message_of(error))
    reply = call.response(
        member_id=member.member_id,
        member_epoch=member.epoch,
        heartbeat_interval_ms=int(groups.settings_of(request.group_id).share_heartbeat_interval * 1000),
    )
    if has_assignment:
        parts = [(topic_id, sorted(indexes)) for topic_id, indexes in member.assigned.items()]
        reply.assignment = call.response.Assignment(parts)
    return reply


def _problem(request: ShareGroupHeartbeatRequest) -> str | None:
    """Return what is wrong with a request; Kafka does not say so of a missing member id."""
    joins = request.member_epoch == JOIN
    problems = (
        (not request.member_id.strip(), ""),
        (not request.group_id.strip(), "GroupId can't be empty."),
        (request.rack_id is not None and not request.rack_id.strip(), "RackId can't be empty."),
        (joins and not request.subscribed_topic_names, "SubscribedTopicNames must be set in first request."),
        (request.member_epoch < LEAVE, "MemberEpoch is invalid."),
    )
    return next((message for is_wrong, message in problems if is_wrong), None)


def _refused_topics(call: Call[ShareGroupHeartbeatResponse], request: ShareGroupHeartbeatRequest) -> int:
    for name in request.subscribed_topic_names or ():
        if not call.allows(Operation.DESCRIBE, Resource.TOPIC, name):
            return Code.TOPIC_AUTHORIZATION_FAILED
    return Code.NONE


def _ask(call: Call[ShareGroupHeartbeatResponse], request: ShareGroupHeartbeatRequest) -> ShareAsk:
    names = request.subscribed_topic_names
    return ShareAsk(
        request.member_id,
        request.member_epoch,
        request.rack_id,
        None if names is None else tuple(dict.fromkeys(names)),
        call.client_id,
        f"/{call.host}",
    )
