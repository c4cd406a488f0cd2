"""DescribeTransactions (65), version 0: state, producer and partitions of transactions (KIP-664)."""

from __future__ import annotations

from itertools import groupby

from kafka.broker.server.api import BrokerResponseError, Call, Operation, Resource
from kafka.broker.transactions.service import coordinator, refusal
from kafka.protocol.transaction import DescribeTransactionsRequest, DescribeTransactionsResponse


def handle(
    call: Call[DescribeTransactionsResponse], request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    """Describe each."""
    return call.response(
        transaction_states=[_describe(call, each) for each in dict.fromkeys(request.transactional_ids)]
    )


def _describe(
    call: Call[DescribeTransactionsResponse], transactional_id: str
) -> DescribeTransactionsResponse.TransactionState:
    described = call.response.TransactionState(transactional_id=transactional_id)
    described.error_code = refusal(call, transactional_id, Operation.DESCRIBE) if transactional_id else 0
    if described.error_code:
        return described
    try:
        record = coordinator(call).describe(transactional_id)
    except BrokerResponseError as error:
        described.error_code = error.code
        return described
    described.transaction_state = record.state.value
    described.transaction_timeout_ms = round(record.timeout * 1000)
    described.transaction_start_time_ms = record.start_ms  # of the last transaction, also once it has ended
    described.producer_id = record.producer_id
    described.producer_epoch = record.epoch
    visible = [
        each for each in sorted(record.partitions) if call.allows(Operation.DESCRIBE, Resource.TOPIC, each.topic)
    ]
    described.topics = [
        call.response.TopicData(topic, [each.partition for each in parts])
        for topic, parts in groupby(visible, lambda each: each.topic)
    ]
    return described
