"""DescribeConfigs (32), versions 0-4: the configuration of topics, brokers and groups.

* v0: values, and whether they are defaults. v1: where they come from, and synonyms (KIP-226).
* v2: clients expect throttling after the reply. v3: types and documentation (KIP-569). v4: flexible.
"""

from __future__ import annotations

from typing import Any, Final

from kafka.broker.configs import Source
from kafka.broker.configs.definitions import TOPIC_OPTIONS, Kind
from kafka.broker.configs.resources import TOPIC, Described, describe
from kafka.broker.server.api import CLUSTER_NAME, BrokerResponseError, Call, Code, Operation, Resource
from kafka.protocol.configs import DescribeConfigsRequest

#: Topic options whose default does not come from a broker's option: that is null, or missing.
_NO_DEFAULT_SYNONYM: Final = frozenset(
    name
    for name, option in TOPIC_OPTIONS.items()
    if option.broker_name in {None, "log.roll.ms", "log.roll.jitter.ms", "log.retention.ms", "log.flush.interval.ms"}
)


def handle(call: Call, request: DescribeConfigsRequest) -> Any:
    """Describe each resource."""
    return call.response(results=[_describe(call, request, resource) for resource in request.resources])


def _describe(call: Call, request: DescribeConfigsRequest, resource: Any) -> Any:
    kind, name = resource.resource_type, resource.resource_name
    result = call.response.DescribeConfigsResult(resource_type=kind, resource_name=name, error_message="")
    if kind == TOPIC:
        allowed = call.allows(Operation.DESCRIBE_CONFIGS, Resource.TOPIC, name)
        refusal = Code.TOPIC_AUTHORIZATION_FAILED
    else:
        allowed = call.allows(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER, CLUSTER_NAME)
        refusal = Code.CLUSTER_AUTHORIZATION_FAILED
    if not allowed:
        result.error_code = refusal
        return result
    try:
        rows = describe(call.cluster, call.node.node_id, kind, name, resource.configuration_keys)
    except BrokerResponseError as error:
        result.error_code = error.code
        result.error_message = str(error.args[0]) if error.args else None
        return result
    result.configs = [_row(call, request, row) for row in rows]
    return result


def _row(call: Call, request: DescribeConfigsRequest, row: Described) -> Any:
    value = row.values[0]
    is_sensitive = row.option.kind is Kind.PASSWORD
    found = call.response.DescribeConfigsResourceResult(
        name=row.option.name,
        value=None if is_sensitive else value.value,
        read_only=row.is_read_only,
        config_source=int(value.source),
        is_sensitive=is_sensitive,
        config_type=int(row.option.kind),
        documentation=row.option.doc if request.include_documentation else None,
    )
    if call.version == 0:
        found.is_default = value.source == Source.DEFAULT
    if request.include_synonyms:
        found.synonyms = [
            (one.name, one.value, int(one.source))
            for one in row.values
            if one.value is not None and not (one.source == Source.DEFAULT and row.option.name in _NO_DEFAULT_SYNONYM)
        ]
    return found
