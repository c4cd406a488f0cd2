"""What AlterConfigs and IncrementalAlterConfigs have in common: rights, errors, the reply."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from kafka.broker.configs.resources import TOPIC, Change, alter
from kafka.broker.security.acls import CLUSTER_NAME, Operation, Resource
from kafka.errors import BrokerResponseError, Code

if TYPE_CHECKING:
    from kafka.broker.server.call import Call

__all__ = ["alter_all"]


def alter_all(call: Call, request: Any, change_of: Callable[[Any], Change], *, replace: bool) -> Any:
    """Serve either request; ``change_of`` reads one entry of it."""
    responses = []
    times = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    for resource in request.resources:
        kind, name = resource.resource_type, resource.resource_name
        code, message = _refusal(call, kind, name)
        if not code and times[kind, name] > 1:
            code, message = Code.INVALID_REQUEST, "Each resource must appear at most once."
        if not code:
            try:
                alter(
                    call.cluster,
                    call.node.node_id,
                    kind,
                    name,
                    [change_of(config) for config in resource.configs],
                    replace=replace,
                    validate_only=request.validate_only,
                )
            except BrokerResponseError as error:
                code, message = error.code, error.args[0] if error.args else None
        responses.append((code, message, kind, name))
    return call.response(responses=responses)


def _refusal(call: Call, kind: int, name: str) -> tuple[int, str | None]:
    if kind == TOPIC:
        if not call.allows(Operation.ALTER_CONFIGS, Resource.TOPIC, name):
            return Code.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."
    elif not call.allows(Operation.ALTER_CONFIGS, Resource.CLUSTER, CLUSTER_NAME):
        return Code.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."
    return 0, None
