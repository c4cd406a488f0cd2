"""InitProducerId (22), versions 0-5: a producer id, and for transactional ids an epoch that fences older producers.

* v0: as KIP-98 says. v1: clients expect throttling after the reply. v2: flexible.
* v3: the producer sends its id and epoch, to continue after an error (KIP-360).
* v4: PRODUCER_FENCED, where it was INVALID_PRODUCER_EPOCH before (KIP-588).
* v5: transactions of version 2 (KIP-890); nothing changes here.
* v6, two-phase commit (KIP-939), is not stable in Kafka and not served.
"""

from __future__ import annotations

from typing import Final

from kafka.broker.server.api import CLUSTER_NAME, BrokerResponseError, Call, Code, Operation, Resource
from kafka.broker.transactions.coordinator import Granted
from kafka.broker.transactions.service import coordinator, refusal
from kafka.broker.transactions.transaction import NO_EPOCH, NO_PRODUCER
from kafka.errors import ProducerFencedError
from kafka.protocol.transaction import InitProducerIdRequest, InitProducerIdResponse

_FENCED_FROM: Final = 4


def handle(call: Call[InitProducerIdResponse], request: InitProducerIdRequest) -> InitProducerIdResponse:
    """Give out an id and an epoch."""
    transactional_id = request.transactional_id
    expected = Granted(request.producer_id, request.producer_epoch)
    refused = _refusal(call, transactional_id)
    if not refused and (expected.producer_id == NO_PRODUCER) != (expected.epoch == NO_EPOCH):
        refused = Code.INVALID_REQUEST
    if refused:
        return call.response(error_code=refused, producer_id=-1, producer_epoch=-1)
    try:
        granted = coordinator(call).init_producer(transactional_id, request.transaction_timeout_ms / 1000, expected)
    except ProducerFencedError as error:
        code = error.code if call.version >= _FENCED_FROM else Code.INVALID_PRODUCER_EPOCH
        return call.response(error_code=code, producer_id=-1, producer_epoch=-1)
    except BrokerResponseError as error:
        return call.response(error_code=error.code, producer_id=-1, producer_epoch=-1)
    return call.response(error_code=0, producer_id=granted.producer_id, producer_epoch=granted.epoch)


def _refusal(call: Call[InitProducerIdResponse], transactional_id: str | None) -> int:
    if transactional_id is not None:
        return refusal(call, transactional_id) if transactional_id else Code.NONE
    if call.allows(Operation.IDEMPOTENT_WRITE, Resource.CLUSTER, CLUSTER_NAME) or call.allows_any(
        Operation.WRITE, Resource.TOPIC
    ):
        return Code.NONE
    return Code.CLUSTER_AUTHORIZATION_FAILED
