"""DescribeConfigs (32), versions 0-4: the configuration of topics, brokers, loggers, groups and client metrics.

* v0: values, and whether they are defaults. v1: where they come from, and synonyms (KIP-226).
* v2: clients expect throttling after the reply. v3: types and documentation (KIP-569). v4: flexible.
"""

from __future__ import annotations

from typing import Final

from kafka.broker.configs import Source
from kafka.broker.configs.definitions import TOPIC_OPTIONS
from kafka.broker.configs.resource_kinds import GROUP, TOPIC, Described
from kafka.broker.configs.resources import describe
from kafka.broker.server.api import CLUSTER_NAME, BrokerResponseError, Call, Code, Operation, Resource
from kafka.protocol.configs import DescribeConfigsRequest, DescribeConfigsResponse

#: Topic options whose default does not come from a broker's option: that is null, or missing.
_NO_DEFAULT_SYNONYM: Final = frozenset(
    name
    for name, option in TOPIC_OPTIONS.items()
    if option.broker_name in {None, "log.roll.ms", "log.roll.jitter.ms", "log.retention.ms", "log.flush.interval.ms"}
)


def handle(call: Call[DescribeConfigsResponse], request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """Describe each resource."""
    return call.response(results=[_describe(call, request, resource) for resource in request.resources])


def _describe(
    call: Call[DescribeConfigsResponse],
    request: DescribeConfigsRequest,
    resource: DescribeConfigsRequest.DescribeConfigsResource,
) -> DescribeConfigsResponse.DescribeConfigsResult:
    kind, name = resource.resource_type, resource.resource_name
    result = call.response.DescribeConfigsResult(resource_type=kind, resource_name=name, error_message="")
    if kind == TOPIC:
        allowed = call.allows(Operation.DESCRIBE_CONFIGS, Resource.TOPIC, name)
        refusal = Code.TOPIC_AUTHORIZATION_FAILED
    elif kind == GROUP:
        allowed = call.allows(Operation.DESCRIBE_CONFIGS, Resource.GROUP, name)
        refusal = Code.GROUP_AUTHORIZATION_FAILED
    else:
        allowed = call.allows(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER, CLUSTER_NAME)
        refusal = Code.CLUSTER_AUTHORIZATION_FAILED
    if not allowed:
        result.error_code = refusal
        return result
    try:
        rows = describe(call, kind, name, resource.configuration_keys)
    except BrokerResponseError as error:
        result.error_code = error.code
        result.error_message = str(error.args[0]) if error.args else None
        return result
    result.configs = [_row(call, request, row) for row in rows]
    return result


def _row(
    call: Call[DescribeConfigsResponse], request: DescribeConfigsRequest, row: Described
) -> DescribeConfigsResponse.DescribeConfigsResourceResult:
    value = row.values[0]
    # Of loggers Kafka's documentation is empty, whether it is asked for or not.
    has_doc = request.include_documentation or row.values[0].source == Source.DYNAMIC_BROKER_LOGGER
    found = call.response.DescribeConfigsResourceResult(
        name=row.option.name,
        value=None if row.is_sensitive else value.value,
        read_only=row.is_read_only,
        config_source=int(value.source),
        is_sensitive=row.is_sensitive,
        config_type=int(row.option.kind),
        documentation=row.option.doc if has_doc else None,
    )
    if call.version == 0:
        found.is_default = value.source == Source.DEFAULT
    if request.include_synonyms:
        found.synonyms = [
            call.response.DescribeConfigsSynonym(one.name, None if row.is_sensitive else one.value, int(one.source))
            for one in row.values
            if one.name
            and one.value is not None
            and not (one.source == Source.DEFAULT and row.option.name in _NO_DEFAULT_SYNONYM)
        ]
    return found
