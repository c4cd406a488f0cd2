"""IncrementalAlterConfigs (44), versions 0-1: change single options (KIP-339).

* v0: set, delete, append to and subtract from lists. v1: flexible.
"""

from __future__ import annotations

from kafka.broker.configs.resources import Change, alter_all
from kafka.broker.server.api import Call
from kafka.protocol.configs import IncrementalAlterConfigsRequest, IncrementalAlterConfigsResponse


def handle(
    call: Call[IncrementalAlterConfigsResponse], request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Change the configurations."""
    return alter_all(
        call, request, lambda config: Change(config.name, config.config_operation, config.value), replace=False
    )
