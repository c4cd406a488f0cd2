"""AlterConfigs (33), versions 0-2: put a configuration in the place of all that was set for a resource.

* v0, v1: names and values; v1: clients expect throttling after the reply. v2: flexible.
"""

from __future__ import annotations

from kafka.broker.configs.resources import SET, Change, alter_all
from kafka.broker.server.api import Call
from kafka.protocol.configs import AlterConfigsRequest, AlterConfigsResponse


def handle(call: Call[AlterConfigsResponse], request: AlterConfigsRequest) -> AlterConfigsResponse:
    """Replace the configurations."""
    return alter_all(call, request, lambda config: Change(config.name, SET, config.value), replace=True)
