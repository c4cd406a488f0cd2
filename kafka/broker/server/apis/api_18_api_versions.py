"""ApiVersions (18), versions 0-4: what this broker serves.

* v0: error code and ranges.
* v1: throttle time (always 0 here).
* v2: clients must expect throttling after the reply; nothing changes here.
* v3: flexible (KIP-511): the client says its name and version, checked as Kafka does; features are listed.
* v4: supported features may begin at 0 (KIP-1022).

A version that is not served never gets here: the dispatcher answers it in v0 with UNSUPPORTED_VERSION.
"""

from __future__ import annotations

import re
from typing import Any, Final

from kafka.broker.server.api import Call
from kafka.protocol.admin import ApiVersionsRequest

_INVALID_REQUEST: Final = 42
_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
#: What a 4.3 cluster has finalized of what this broker serves: feature, lowest, highest, level in force.
_FEATURES: Final = (
    ("group.version", 0, 1, 1),
    ("metadata.version", 7, 30, 30),
    ("transaction.version", 0, 2, 2),
)
#: Earlier releases had other features, or none.
_FEATURES_FROM: Final = (4, 0)


def handle(call: Call, request: ApiVersionsRequest) -> Any:
    """List the APIs."""
    if call.version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not (_NAME.fullmatch(name) and _NAME.fullmatch(version)):
            return call.response(error_code=_INVALID_REQUEST)
        call.connection.software_name = name
        call.connection.software_version = version
    release = call.cluster.apis.release
    reply = call.response(api_keys=call.cluster.apis.items())
    if call.version >= 3 and (release is None or release >= _FEATURES_FROM):
        reply.supported_features = [
            (name, low, high) for name, low, high, _ in _FEATURES if low > 0 or call.version >= 4
        ]
        reply.finalized_features_epoch = 1
        reply.finalized_features = [(name, level, level) for name, _, _, level in _FEATURES]
    return reply
