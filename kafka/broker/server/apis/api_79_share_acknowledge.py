"""ShareAcknowledge (79), versions 1-2: what became of the records that a member of a share group has (KIP-932).

* v2: locks can be renewed (KIP-1222); the reply says how long locks are.
"""

from __future__ import annotations

from uuid import UUID

from kafka.broker.server.api import BrokerResponseError, Call, Code
from kafka.broker.sharing.requests import Acknowledging, lock_timeout_ms, refusal
from kafka.broker.sharing.share_sessions import CLOSE, OPEN, share_sessions
from kafka.protocol.share import ShareAcknowledgeRequest, ShareAcknowledgeResponse


def handle(call: Call[ShareAcknowledgeResponse], request: ShareAcknowledgeRequest) -> ShareAcknowledgeResponse:
    """Take acknowledgements; with epoch -1 the member's session ends, too."""
    refused = refusal(call, request.group_id, request.member_id)
    if refused:
        return call.response(error_code=refused)
    group_id, member_id = request.group_id or "", request.member_id or ""
    sessions = share_sessions(call.node)
    if request.share_session_epoch == OPEN:
        return call.response(error_code=Code.INVALID_SHARE_SESSION_EPOCH)
    try:
        sessions.resume(group_id, member_id, request.share_session_epoch, (), ())
    except BrokerResponseError as error:
        return call.response(error_code=error.code)
    acknowledging = Acknowledging(call, group_id, member_id, request.topics, may_renew=request.is_renew_ack)
    acknowledging.do()
    reply = call.response()
    by_topic: dict[UUID, ShareAcknowledgeResponse.ShareAcknowledgeTopicResponse] = {}
    for place, code in acknowledging.codes.items():
        topic = by_topic.get(place[0])
        if topic is None:
            topic = by_topic[place[0]] = call.response.ShareAcknowledgeTopicResponse(topic_id=place[0], partitions=[])
        topic.partitions.append(call.response.PartitionData(partition_index=place[1], error_code=code))
    reply.responses = list(by_topic.values())
    if request.share_session_epoch == CLOSE:
        sessions.close(group_id, member_id)
    if call.version >= 2:
        reply.acquisition_lock_timeout_ms = lock_timeout_ms(call, group_id)
    return reply
