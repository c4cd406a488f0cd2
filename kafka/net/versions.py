"""What a broker speaks: its API versions, the best one for a request, and the release they point to.

Brokers since 0.10 say so themselves. For older ones, and from what a broker says to a release's
number, there are two small tables, both taken from the protocol's history.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from kafka.errors import UnsupportedVersionError
from kafka.protocol.registry import APIS

__all__ = ["BrokerVersions", "release_of"]

Ranges = Mapping[int, tuple[int, int]]

_OLDEST: Final[dict[int, tuple[int, int]]] = {0: (0, 0), 1: (0, 0), 2: (0, 0), 3: (0, 0)}
# What brokers have that cannot be asked (KIP-35 came with 0.10): produce 0, fetch 1, list offsets 2,
# metadata 3, offset commit 8, offset fetch 9, coordinator 10, groups 11-16.
_ANCIENT: Final[dict[tuple[int, ...], dict[int, tuple[int, int]]]] = {
    (0, 8, 0): _OLDEST,
    (0, 8, 1): {**_OLDEST, 8: (0, 0), 9: (0, 0)},
    (0, 8, 2): {**_OLDEST, 8: (0, 1), 9: (0, 1), 10: (0, 0)},
    (0, 9): {
        **_OLDEST,
        0: (0, 1),
        1: (0, 1),
        8: (0, 2),
        9: (0, 1),
        10: (0, 0),
        11: (0, 0),
        12: (0, 0),
        13: (0, 0),
        14: (0, 0),
        15: (0, 0),
        16: (0, 0),
    },
}

# (release, API key, version): the first release whose brokers have that version. Newest first; the
# first that matches counts. A cluster in the middle of an upgrade answers broker by broker.
_MARKS: Final = (
    ((4, 2), 78, 2),  # ShareFetch
    ((4, 1), 0, 13),  # Produce with topic ids
    ((4, 0), 68, 1),  # ConsumerGroupHeartbeat
    ((3, 9), 1, 17),  # Fetch
    ((3, 8), 0, 11),  # Produce
    ((3, 7), 1, 16),
    ((3, 6), 8, 9),  # OffsetCommit
    ((3, 5), 1, 15),
    ((3, 4), 1, 14),
    ((3, 3), 29, 3),  # DescribeAcls
    ((3, 2), 11, 9),  # JoinGroup
    ((3, 1), 1, 13),
    ((3, 0), 2, 7),  # ListOffsets
    ((2, 8), 0, 9),
    ((2, 7), 1, 12),
    ((2, 6), 16, 4),  # ListGroups
    ((2, 5), 11, 7),
    ((2, 4), 0, 8),
    ((2, 3), 1, 11),
    ((2, 2), 2, 5),
    ((2, 1), 1, 10),
    ((2, 0), 1, 8),
    ((1, 1), 1, 7),
    ((1, 0), 3, 5),  # Metadata
    ((0, 11), 3, 4),
    ((0, 10, 2), 9, 2),  # OffsetFetch
    ((0, 10, 1), 3, 2),
)


def release_of(ranges: Ranges) -> tuple[int, ...]:
    """Return the release that API versions point to, as far as they differ from release to release.

    >>> release_of({1: (0, 11), 3: (0, 8)})
    (2, 3)
    """
    for release, key, version in _MARKS:
        if ranges.get(key, (0, -1))[1] >= version:
            return release
    return (0, 10, 0)


@dataclass(frozen=True)
class BrokerVersions:
    """What one broker speaks."""

    ranges: Ranges
    release: tuple[int, ...]
    features: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Finalized features (KIP-584): name to the lowest and highest level."""
    _best: dict[int, int] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def from_response(cls, response: Any) -> BrokerVersions:
        """Take an ApiVersionsResponse."""
        ranges = {entry.api_key: (entry.min_version, entry.max_version) for entry in response.api_keys}
        features = {
            entry.name: (entry.min_version_level, entry.max_version_level) for entry in response.finalized_features
        }
        return cls(ranges, release_of(ranges), features)

    @classmethod
    def ancient(cls, release: tuple[int, ...]) -> BrokerVersions:
        """Return what a release before 0.10 speaks.

        >>> BrokerVersions.ancient((0, 9, 0, 1)).release
        (0, 9)
        """
        for known in sorted(_ANCIENT, reverse=True):
            if release >= known:
                return cls(_ANCIENT[known], known)
        return cls(_OLDEST, (0, 8, 0))

    @property
    def throttles_itself(self) -> bool:
        """Whether the broker leaves it to the client to wait out a throttle time (KIP-219, since 2.0)."""
        return self.ranges.get(1, (0, 0))[1] >= 8

    def supports(self, api_key: int, version: int = 0) -> bool:
        """Whether the broker has `version` of an API, or a later one."""
        return self.ranges.get(api_key, (0, -1))[1] >= version

    def version_for(self, request: Any) -> int:
        """Return the version to send `request` in: its own if it is bound to one, else the newest of both sides."""
        bound = getattr(request, "API_VERSION", None)
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
