"""DescribeClientQuotas (48), versions 0-1: the quotas that match (KIP-546).

* v0: components to match exactly (0), by default (1) or whatever the name (2). v1: flexible.
"""

from __future__ import annotations

from kafka.broker.cluster import quotas
from kafka.broker.server.api import CLUSTER_NAME, BrokerResponseError, Call, Code, Operation, Resource
from kafka.protocol.users import DescribeClientQuotasRequest, DescribeClientQuotasResponse


def handle(
    call: Call[DescribeClientQuotasResponse], request: DescribeClientQuotasRequest
) -> DescribeClientQuotasResponse:
    """Find them."""
    if not call.allows(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER, CLUSTER_NAME):
        return call.response(error_code=Code.CLUSTER_AUTHORIZATION_FAILED, error_message=None, entries=None)
    components = [(one.entity_type, one.match_type, one.match) for one in request.components]
    try:
        found = quotas.matching(call.cluster, components, strict=request.strict)
    except BrokerResponseError as error:
        return call.response(error_code=error.code, error_message=str(error.args[0]), entries=None)
    return call.response(error_message="", entries=[(list(entity), sorted(values.items())) for entity, values in found])
