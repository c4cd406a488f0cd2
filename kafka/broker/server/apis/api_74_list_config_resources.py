"""ListConfigResources (74), versions 0-1: which resources have a configuration.

* v0: subscriptions to client metrics. v1: any kind (KIP-1142).
"""

from __future__ import annotations

from kafka.broker.configs.resource_kinds import GROUP_TABLE, METRICS_TABLE
from kafka.broker.configs.resources import BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP, TOPIC
from kafka.broker.server.api import CLUSTER_NAME, Call, Code, Operation, Resource
from kafka.protocol.configs import ListConfigResourcesRequest, ListConfigResourcesResponse

_ALL = (TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP)


def handle(call: Call[ListConfigResourcesResponse], request: ListConfigResourcesRequest) -> ListConfigResourcesResponse:
    """List them."""
    if not call.allows(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER, CLUSTER_NAME):
        return call.response(error_code=Code.CLUSTER_AUTHORIZATION_FAILED)
    cluster = call.cluster
    if call.version == 0:
        return call.response(config_resources=[(name,) for name in sorted(cluster.store.table(METRICS_TABLE))])
    kinds = request.resource_types or _ALL
    if any(kind not in _ALL for kind in kinds):
        return call.response(error_code=Code.UNSUPPORTED_VERSION)
    nodes = [str(node_id) for node_id in sorted(cluster.nodes)]
    names = {
        TOPIC: sorted(cluster.topics),
        BROKER: nodes,
        BROKER_LOGGER: nodes,
        CLIENT_METRICS: sorted(cluster.store.table(METRICS_TABLE)),
        GROUP: sorted(cluster.store.table(GROUP_TABLE)),
    }
    return call.response(config_resources=[(name, kind) for kind in kinds for name in names.get(kind, ())])
