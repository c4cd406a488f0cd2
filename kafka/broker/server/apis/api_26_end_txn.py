"""EndTxn (26), versions 0-5: commit or abort.

* v1: clients expect throttling after the reply.
* v2: PRODUCER_FENCED, where it was INVALID_PRODUCER_EPOCH before. v3: flexible.
* v4: TRANSACTION_ABORTABLE is known.
* v5: each end counts up the epoch, and the reply tells the new one (KIP-890).
"""

from __future__ import annotations

from typing import Final

from kafka.broker.server.api import BrokerResponseError, Call, Code
from kafka.broker.transactions.coordinator import Granted
from kafka.broker.transactions.service import coordinator, refusal
from kafka.errors import ProducerFencedError
from kafka.protocol.transaction import EndTxnRequest, EndTxnResponse

_FENCED_FROM: Final = 2
_BUMPS_FROM: Final = 5


def handle(call: Call[EndTxnResponse], request: EndTxnRequest) -> EndTxnResponse:
    """End it."""
    refused = refusal(call, request.transactional_id)
    if refused:
        return call.response(error_code=refused)
    producer = Granted(request.producer_id, request.producer_epoch)
    try:
        granted = coordinator(call).end(
            request.transactional_id,
            producer,
            committed=request.committed,
            bumps_epoch=call.version >= _BUMPS_FROM,
        )
    except ProducerFencedError as error:
        return call.response(error_code=error.code if call.version >= _FENCED_FROM else Code.INVALID_PRODUCER_EPOCH)
    except BrokerResponseError as error:
        return call.response(error_code=error.code)
    return call.response(error_code=0, producer_id=granted.producer_id, producer_epoch=granted.epoch)
