"""The options of topics, brokers, groups and client metrics."""

from __future__ import annotations

from typing import Final

from kafka.broker.configs import Source
from kafka.broker.configs.definitions import TOPIC_OPTIONS
from kafka.broker.configs.resource_kinds import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    GROUP_TABLE,
    METRICS_TABLE,
    TOPIC,
    Change,
    Described,
)
from kafka.broker.configs.resources import BROKER_LOGGER, SET, alter_all, describe, refusal
from kafka.broker.server.api import BrokerResponseError, Call, Operation, Resource
from kafka.errors import UnsupportedVersionError
from kafka.protocol.configs import (
    AlterConfigsRequest,
    AlterConfigsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)

#: Topic options whose default does not come from a broker's option: that is null, or missing.
_NO_DEFAULT_SYNONYM: Final = frozenset(
    name
    for name, option in TOPIC_OPTIONS.items()
    if option.broker_name in {None, "log.roll.ms", "log.roll.jitter.ms", "log.retention.ms", "log.flush.interval.ms"}
)
_ALL = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)


def describe_configs(call: Call[DescribeConfigsResponse], request: DescribeConfigsRequest) -> DescribeConfigsResponse:
    """DescribeConfigs (32), versions 0-4: the configuration of topics, brokers, loggers, groups and client metrics.

    * v0: values, and whether they are defaults. v1: where they come from, and synonyms (KIP-226).
    * v2: clients expect throttling after the reply. v3: types and documentation (KIP-569). v4: flexible.
    """
    return call.response(results=[_describe(call, request, resource) for resource in request.resources])


def _describe(
    call: Call[DescribeConfigsResponse],
    request: DescribeConfigsRequest,
    resource: DescribeConfigsRequest.DescribeConfigsResource,
) -> DescribeConfigsResponse.DescribeConfigsResult:
    kind, name = resource.resource_type, resource.resource_name
    result = call.response.DescribeConfigsResult(resource_type=kind, resource_name=name, error_message="")
    result.error_code, _ = refusal(call, Operation.DESCRIBE_CONFIGS, kind, name)
    if result.error_code:
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


def alter_configs(call: Call[AlterConfigsResponse], request: AlterConfigsRequest) -> AlterConfigsResponse:
    """AlterConfigs (33), versions 0-2: put a configuration in the place of all that was set for a resource.

    * v0, v1: names and values; v1: clients expect throttling after the reply. v2: flexible.
    """
    return alter_all(call, request, lambda config: Change(config.name, SET, config.value), replace=True)


def incremental_alter_configs(
    call: Call[IncrementalAlterConfigsResponse], request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """IncrementalAlterConfigs (44), versions 0-1: change single options (KIP-339).

    * v0: set, delete, append to and subtract from lists. v1: flexible.
    """
    return alter_all(
        call, request, lambda config: Change(config.name, config.config_operation, config.value), replace=False
    )


def list_config_resources(
    call: Call[ListConfigResourcesResponse], request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """ListConfigResources (74), versions 0-1: which resources have a configuration.

    * v0: subscriptions to client metrics. v1: any kind (KIP-1142).
    """
    call.require(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER)
    cluster = call.cluster
    if call.version == 0:
        return call.response(config_resources=[(name,) for name in sorted(cluster.store.table(METRICS_TABLE))])
    kinds = request.resource_types or _ALL
    if any(kind not in _ALL for kind in kinds):
        raise UnsupportedVersionError
    nodes = [str(node_id) for node_id in sorted(cluster.nodes)]
    names = {
        TOPIC: sorted(cluster.topics),
        BROKER: nodes,
        BROKER_LOGGER: nodes,
        CLIENT_METRICS: sorted(cluster.store.table(METRICS_TABLE)),
        GROUP: sorted(cluster.store.table(GROUP_TABLE)),
    }
    return call.response(config_resources=[(name, kind) for kind in kinds for name in names.get(kind, ())])
