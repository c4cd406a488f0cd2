"""UpdateFeatures (57), versions 0-2: raise or lower the levels of features (KIP-584).

* v0: upgrades and downgrades. v1: safe and unsafe downgrades; validate only. v2: one result for all of them.
"""

from __future__ import annotations

from typing import Final

from kafka.broker.cluster.features import UPGRADE
from kafka.broker.server.api import CLUSTER_NAME, BrokerResponseError, Call, Code, Operation, Resource
from kafka.protocol.admin import UpdateFeaturesRequest, UpdateFeaturesResponse

_FAILED: Final = "The update failed for all features since the following feature had an error: "


def handle(call: Call[UpdateFeaturesResponse], request: UpdateFeaturesRequest) -> UpdateFeaturesResponse:
    """Change the levels, all of them or none."""
    if not call.allows(Operation.ALTER, Resource.CLUSTER, CLUSTER_NAME):
        return call.response(error_code=Code.CLUSTER_AUTHORIZATION_FAILED, error_message=None)
    # Kafka reads every update of v0 as an upgrade, whatever its allow_downgrade says.
    updates = [
        (one.feature, one.max_version_level, one.upgrade_type if call.version else UPGRADE)
        for one in request.feature_updates
    ]
    try:
        call.cluster.features.update(
            updates,
            controller=call.cluster.controller_id,
            validate_only=bool(call.version) and request.validate_only,
        )
    except BrokerResponseError as error:
        return call.response(error_code=error.code, error_message=f"{_FAILED}{error.args[0]}")
    reply = call.response(error_message=None)
    if call.version <= 1:
        reply.results = [
            call.response.UpdatableFeatureResult(name, 0, "NONE")
            for name in dict.fromkeys(name for name, _, _ in updates)
        ]
    return reply
