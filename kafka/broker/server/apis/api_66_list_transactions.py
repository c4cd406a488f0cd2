"""ListTransactions (66), versions 0-2: the transactional ids that this node coordinates (KIP-664).

* v0: filters by state and producer id. v1: by how long a transaction has been open (KIP-994).
* v2: by a pattern of ids (KIP-1152).
"""

from __future__ import annotations

from kafka.broker.cluster.coordinators import TRANSACTION
from kafka.broker.groups.pattern import Pattern, compile_re2
from kafka.broker.server.api import Call, Operation, Resource
from kafka.broker.transactions.service import coordinator
from kafka.broker.transactions.transaction import State, TransactionRecord
from kafka.errors import InvalidRegularExpressionError
from kafka.protocol.transaction import ListTransactionsRequest, ListTransactionsResponse


def handle(call: Call[ListTransactionsResponse], request: ListTransactionsRequest) -> ListTransactionsResponse:
    """List the transactions that match the filters."""
    names = {state.value for state in State}
    unknown = [name for name in request.state_filters if name not in names]
    try:
        pattern = compile_re2(request.transactional_id_pattern) if request.transactional_id_pattern else None
    except InvalidRegularExpressionError as error:
        return call.response(error_code=error.code, unknown_state_filters=unknown)
    found = [
        (record.transactional_id, record.producer_id, record.state.value)
        for record in coordinator(call)
        if _is_wanted(call, request, record, pattern)
        and call.cluster.coordinators.is_at(call.node, TRANSACTION, record.transactional_id)
        and call.allows(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID, record.transactional_id)
    ]
    return call.response(error_code=0, unknown_state_filters=unknown, transaction_states=found)


def _is_wanted(
    call: Call[ListTransactionsResponse],
    request: ListTransactionsRequest,
    record: TransactionRecord,
    pattern: Pattern | None,
) -> bool:
    return (
        (not request.state_filters or record.state.value in request.state_filters)
        and (not request.producer_id_filters or record.producer_id in request.producer_id_filters)
        and (request.duration_filter < 0 or coordinator(call).running_for_ms(record) > request.duration_filter)
        and (pattern is None or pattern.fullmatch(record.transactional_id))
    )
