"""Features of a cluster, and the versions of APIs that brokers serve."""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from kafka.acl import Named
from kafka.admin.calls import Calls, call
from kafka.admin.results import Outcome, Result, error_of, raise_first
from kafka.errors import IllegalArgumentError
from kafka.protocol.admin import ApiVersionsRequest, ApiVersionsResponse, UpdateFeaturesRequest, UpdateFeaturesResponse
from kafka.protocol.negotiation import ApiVersions

_TYPES_SINCE: Final = 1
_EACH_UNTIL: Final = 1


class UpdateFeatureType(Named, IntEnum):
    """How the level of a feature changes; an unsafe downgrade may lose data."""

    UNKNOWN = 0
    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    UNSAFE_DOWNGRADE = 3


class VersionRange(Result):
    """The lowest and the highest level of a feature."""

    __slots__ = ()
    min_version: int
    max_version: int


class FeaturesDescription(Result):
    """The features that the cluster uses, and the features that the broker supports; -1 for an unknown epoch."""

    __slots__ = ()
    finalized_features: dict[str, VersionRange]
    finalized_features_epoch: int
    supported_features: dict[str, VersionRange]


class Features(Calls):
    """The calls about features and versions."""

    @call
    async def describe_features(
        self, send_request_to_controller: bool = False, timeout_ms: float | None = None
    ) -> FeaturesDescription:
        """Return the features that the cluster uses, and the features that a broker or the controller supports (2.7).

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> with Broker() as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...     "metadata.version" in admin.describe_features().finalized_features
        True
        """
        deadline = self._core.deadline(timeout_ms)
        # Brokers that have features can change them; ApiVersions itself is older.
        await self._core.require(deadline, UpdateFeaturesRequest.API_KEY, 0, "describe_features()", "2.7")
        node_id = await self._core.client.controller(deadline) if send_request_to_controller else None
        response = await self._ask_versions(deadline, node_id, "describe_features()")
        return FeaturesDescription(
            finalized_features={
                one.name: VersionRange(min_version=one.min_version_level, max_version=one.max_version_level)
                for one in response.finalized_features
            },
            finalized_features_epoch=response.finalized_features_epoch,
            supported_features={one.name: VersionRange.of_entry(one) for one in response.supported_features},
        )

    @call
    async def update_features(
        self,
        updates: Mapping[str, int | tuple[UpdateFeatureType | str, int]],
        validate_only: bool = False,
        timeout_ms: float | None = 60_000,
        *,
        raise_errors: bool = True,
    ) -> dict[str, Outcome]:
        """Change the levels of features (Kafka 2.7).

        The first error of a feature is raised; with ``raise_errors=False`` the result has ``OK`` or the text of the
        error for each, which is a `str` with the exception in its ``error``.

        A value is the new level, 0 to stop using the feature, or a pair of an `UpdateFeatureType` and the level. Since
        Kafka 4.0 all are changed or none.
        """
        deadline = self._core.deadline(timeout_ms)
        wanted = {str(name): _update(name, update) for name, update in updates.items()}
        kind = UpdateFeaturesRequest
        await self._core.require(deadline, kind.API_KEY, 0, "update_features()", "2.7")
        version = await self._core.version_of(kind(), deadline)
        if validate_only and version < _TYPES_SINCE:
            raise self._core.unsupported("validate_only", "3.3")

        def entry(name: str) -> UpdateFeaturesRequest.FeatureUpdateKey:
            update_type, level = wanted[name]
            if version >= _TYPES_SINCE:
                more: dict[str, object] = {"upgrade_type": int(update_type)}
            else:
                more = {"allow_downgrade": update_type is not UpdateFeatureType.UPGRADE}
            return kind.FeatureUpdateKey(feature=name, max_version_level=level, **more)

        def request(names: list[str]) -> UpdateFeaturesRequest:
            more = {"validate_only": validate_only} if version >= _TYPES_SINCE else {}
            return kind(timeout_ms=self._core.left(deadline), feature_updates=[entry(name) for name in names], **more)

        def read(response: UpdateFeaturesResponse) -> dict[str, Outcome]:
            whole = error_of(response.error_code, "update_features()", response.error_message)
            found = dict.fromkeys(wanted, Outcome(whole))
            if version <= _EACH_UNTIL and whole is None:
                for one in response.results:
                    found[one.feature] = Outcome(
                        error_of(one.error_code, f"feature {one.feature!r}", one.error_message)
                    )
            return found

        found = await self._core.ask_controller(list(wanted), request, read, deadline, "update_features()")
        if raise_errors:
            raise_first((outcome.error for outcome in found.values()), found)
        return found

    async def api_versions(self, timeout_ms: float | None = None) -> dict[int, tuple[int, int]]:
        """Return the lowest and the highest version of each API, by its key, that a broker serves (Kafka 0.10)."""
        return dict((await self.get_broker_version_data(None, timeout_ms)).ranges)

    @call
    async def get_broker_version_data(
        self, broker_id: int | None = None, timeout_ms: float | None = None
    ) -> ApiVersions:
        """Return the versions of APIs that a broker serves, any one for None, and which release it may be."""
        deadline = self._core.deadline(timeout_ms)
        await self._core.require(deadline, ApiVersionsRequest.API_KEY, 0, "asking for versions", "0.10")
        return ApiVersions.from_response(await self._ask_versions(deadline, broker_id, "api_versions()"))

    async def _ask_versions(self, deadline: float, node_id: int | None, what: str) -> ApiVersionsResponse:
        name, version = self._core.client.settings.software
        request = ApiVersionsRequest(client_software_name=name, client_software_version=version)
        return await self._core.ask(request, deadline, what, node_id=node_id, checked=True)


def _update(name: str, given: int | tuple[UpdateFeatureType | str, int]) -> tuple[UpdateFeatureType, int]:
    update_type, level = given if isinstance(given, tuple) else (UpdateFeatureType.UPGRADE, given)
    if isinstance(level, bool) or not isinstance(level, int):
        raise TypeError(f"the level of feature {name!r} must be an int, not {level!r}")
    if level < 0:
        raise IllegalArgumentError(f"the level of feature {name!r} must not be negative, not {level}")
    return UpdateFeatureType.build_from(update_type), level
