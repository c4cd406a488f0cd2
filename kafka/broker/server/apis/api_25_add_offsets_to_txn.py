"""AddOffsetsToTxn (25), versions 0-4: a transaction will commit offsets of a group.

* v1: clients expect throttling after the reply.
* v2: PRODUCER_FENCED, where it was INVALID_PRODUCER_EPOCH before. v3: flexible.
* v4: TRANSACTION_ABORTABLE is known (KIP-890). Clients of transactions of version 2 do without this API.
"""

from __future__ import annotations

from typing import Final

from kafka.broker.server.api import BrokerResponseError, Call, Code, Operation, Resource
from kafka.broker.transactions.coordinator import Granted
from kafka.broker.transactions.service import coordinator, offsets_partition, refusal
from kafka.errors import ProducerFencedError
from kafka.protocol.transaction import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse

_FENCED_FROM: Final = 2


def handle(call: Call[AddOffsetsToTxnResponse], request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    """Add the group."""
    refused = refusal(call, request.transactional_id)
    if not refused and not call.allows(Operation.READ, Resource.GROUP, request.group_id):
        refused = Code.GROUP_AUTHORIZATION_FAILED
    if refused:
        return call.response(error_code=refused)
    producer = Granted(request.producer_id, request.producer_epoch)
    try:
        coordinator(call).add(
            request.transactional_id, producer, [offsets_partition(call, request.group_id)], [request.group_id]
        )
    except ProducerFencedError as error:
        return call.response(error_code=error.code if call.version >= _FENCED_FROM else Code.INVALID_PRODUCER_EPOCH)
    except BrokerResponseError as error:
        return call.response(error_code=error.code)
    return call.response(error_code=0)
