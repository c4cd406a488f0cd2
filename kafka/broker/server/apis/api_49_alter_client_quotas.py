"""AlterClientQuotas (49), versions 0-1: set or remove quotas (KIP-546). They are kept, not enforced.

* v0: entities and operations; validate only. v1: flexible.
"""

from __future__ import annotations

from kafka.broker.cluster import quotas
from kafka.broker.server.api import CLUSTER_NAME, BrokerResponseError, Call, Code, Operation, Resource
from kafka.protocol.users import AlterClientQuotasRequest, AlterClientQuotasResponse


def handle(call: Call[AlterClientQuotasResponse], request: AlterClientQuotasRequest) -> AlterClientQuotasResponse:
    """Change them."""
    allowed = call.allows(Operation.ALTER_CONFIGS, Resource.CLUSTER, CLUSTER_NAME)
    entries = []
    for entry in request.entries:
        # Of a type that is named twice the last one counts, as in Kafka; so types alone are sorted by.
        entity = {one.entity_type: one.entity_name for one in entry.entity}
        code, message = 0, None
        if not allowed:
            code = Code.CLUSTER_AUTHORIZATION_FAILED
        else:
            ops = [(op.key, None if op.remove else op.value) for op in entry.ops]
            try:
                quotas.alter(call.cluster, tuple(sorted(entity.items())), ops, validate_only=request.validate_only)
            except BrokerResponseError as error:
                code, message = error.code, str(error.args[0])
        entries.append((code, message, list(entity.items())))
    return call.response(entries=entries)


def refuse(
    call: Call[AlterClientQuotasResponse], request: AlterClientQuotasRequest, code: int
) -> AlterClientQuotasResponse | None:
    """Give each entity the error."""
    entries = [(code, None, [(one.entity_type, one.entity_name) for one in entry.entity]) for entry in request.entries]
    return call.response(entries=entries) if entries else None
