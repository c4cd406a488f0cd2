"""ApiVersions (18), versions 0-4: what this broker serves.

* v0: error code and ranges.
* v1: throttle time (always 0 here).
* v2: clients must expect throttling after the reply; nothing changes here.
* v3: flexible (KIP-511): the client says its name and version, checked as Kafka does; features are listed.
* v4: supported features may begin at 0 (KIP-1022).

A version that is not served gets v0 with UNSUPPORTED_VERSION and the range of this API alone, from which the client
chooses again (KIP-511).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from kafka.broker.server.api import Call, Code
from kafka.protocol.admin import ApiVersionsRequest, ApiVersionsResponse
from kafka.protocol.registry import ApiKey

if TYPE_CHECKING:
    from kafka.broker.server.versions import ApiTable

_NAME: Final = re.compile(r"[a-zA-Z0-9](?:[a-zA-Z0-9\-.]*[a-zA-Z0-9])?")
_FEATURES_FROM: Final = 3
#: Before this version a feature that can be at level 0 is not listed as supported.
_FROM_ZERO_FROM: Final = 4


def handle(call: Call[ApiVersionsResponse], request: ApiVersionsRequest) -> ApiVersionsResponse:
    """List the APIs."""
    if call.version >= 3:
        name, version = request.client_software_name, request.client_software_version
        if not (_NAME.fullmatch(name) and _NAME.fullmatch(version)):
            return call.response(error_code=Code.INVALID_REQUEST)
        call.connection.software_name = name
        call.connection.software_version = version
    features = call.cluster.features
    reply = call.response(api_keys=call.cluster.apis.items())
    if call.version >= _FEATURES_FROM and features.epoch >= 0:
        reply.supported_features = [
            call.response.SupportedFeatureKey(name, low, high)
            for name, low, high in features.supported()
            if low > 0 or call.version >= _FROM_ZERO_FROM
        ]
        reply.finalized_features_epoch = features.epoch
        reply.finalized_features = [
            call.response.FinalizedFeatureKey(name, level, level) for name, level in features.finalized()
        ]
    return reply


def refuse(call: Call[ApiVersionsResponse], _: ApiVersionsRequest, code: int) -> ApiVersionsResponse:
    """Say the error alone, or that the version is not served."""
    if code == Code.UNSUPPORTED_VERSION:
        return unsupported_version(call.cluster.apis)
    return call.response(error_code=code)


def unsupported_version(apis: ApiTable) -> ApiVersionsResponse:
    """Return what a client receives that asks in a version that is not served."""
    low, high = apis.get(ApiKey.ApiVersions) or (0, 0)
    return ApiVersionsResponse[0](error_code=Code.UNSUPPORTED_VERSION, api_keys=[(ApiKey.ApiVersions, low, high)])
