"""What a broker speaks: its API versions, the best one for a request, and the release they point to.

Brokers since 0.10 say so themselves. For older ones, and for a release that the user states, the
protocol's own tables say it (`kafka.protocol.broker_release`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka.errors import UnsupportedVersionError
from kafka.protocol.broker_release import apis_of, infer_release
from kafka.protocol.registry import APIS

__all__ = ["BrokerVersions"]

Ranges = Mapping[int, tuple[int, int]]


class BrokerVersions:
    """What one broker speaks."""

    __slots__ = ("_best", "features", "ranges", "release")

    def __init__(
        self, ranges: Ranges, release: tuple[int, ...], features: Mapping[str, tuple[int, int]] | None = None
    ) -> None:
        self.ranges = ranges
        self.release = release
        self.features = features or {}
        """Finalized features (KIP-584): name to the lowest and highest level."""
        self._best: dict[int, int] = {}

    @classmethod
    def from_response(cls, response: Any) -> BrokerVersions:
        """Take an ApiVersionsResponse."""
        ranges = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
        features = {
            entry.name: (entry.min_version_level, entry.max_version_level) for entry in response.finalized_features
        }
        return cls(ranges, infer_release(ranges), features)

    @classmethod
    def of_release(cls, release: tuple[int, ...]) -> BrokerVersions:
        """Return what a release speaks, without asking a broker.

        >>> BrokerVersions.of_release((0, 9, 0, 1)).ranges[3]
        (0, 0)
        """
        return cls(apis_of(release), release)

    @property
    def expects_client_throttling(self) -> bool:
        """Whether the client must wait for the throttle time itself (KIP-219, since 2.0)."""
        return self.ranges.get(1, (0, 0))[1] >= 8

    def supports(self, api_key: int, version: int = 0) -> bool:
        """Whether the broker has `version` of an API, or a later one."""
        return self.ranges.get(api_key, (0, -1))[1] >= version

    def version_for(self, request: Any) -> int:
        """Return the version to send `request` in: its own if it is bound to one, else the newest of both sides."""
        bound = getattr(type(request), "API_VERSION", None)  # of an instance, it would compose an error to be dropped
        if bound is None:
            best = self._best.get(request.API_KEY)
            return self._negotiate(request.API_KEY) if best is None else best
        low, high = self.ranges.get(request.API_KEY, (0, -1))
        if not low <= bound <= high:
            raise UnsupportedVersionError(
                f"{type(request).__name__}[{bound}]: {self._says(request.API_KEY)}; leave the version to the client"
            )
        return int(bound)

    def _negotiate(self, api_key: int) -> int:
        low, high = self.ranges.get(api_key, (0, -1))
        ours = APIS[api_key]
        best = min(high, ours.max_version)
        if best < max(low, ours.min_version):
            raise UnsupportedVersionError(
                f"{ours.name}: {self._says(api_key)}, and this client versions {ours.min_version} to {ours.max_version}"
            )
        self._best[api_key] = best
        return best

    def _says(self, api_key: int) -> str:
        low, high = self.ranges.get(api_key, (0, -1))
        shown = ".".join(map(str, self.release))
        return f"the broker ({shown}) has " + (f"versions {low} to {high}" if high >= low else "no such API")

    def __repr__(self) -> str:
        return f"<BrokerVersions {'.'.join(map(str, self.release))}, {len(self.ranges)} APIs>"
