"""The features of the cluster and their levels, as ApiVersions lists them and UpdateFeatures changes them (KIP-584).

The levels in force are a table of the store. They decide whether groups of the consumer, share and streams protocols
are served, and whether voters can change; the other features can be raised and lowered without effect.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from kafka.broker.cluster.store import Store
from kafka.errors import InvalidUpdateVersionError

ELIGIBLE_LEADERS: Final = "eligible.leader.replicas.version"
METADATA: Final = "metadata.version"
KRAFT: Final = "kraft.version"

#: Kinds of updates, as UpdateFeatures numbers them.
UPGRADE, DOWNGRADE, UNSAFE_DOWNGRADE = 1, 2, 3


class _Feature(NamedTuple):
    """The levels of a feature that a release supports, and the level at which it starts a new cluster."""

    low: int
    high: int
    level: int


#: The features that releases added or changed; earlier ones than 4.0 are served without features.
_SINCE: Final[dict[tuple[int, ...], dict[str, _Feature]]] = {
    (4, 0): {
        ELIGIBLE_LEADERS: _Feature(0, 1, 0),
        "group.version": _Feature(0, 1, 1),
        KRAFT: _Feature(0, 1, 0),
        METADATA: _Feature(7, 25, 25),
        "transaction.version": _Feature(0, 2, 2),
    },
    (4, 1): {
        ELIGIBLE_LEADERS: _Feature(0, 1, 1),
        METADATA: _Feature(7, 27, 27),
        "share.version": _Feature(0, 1, 0),
        "streams.version": _Feature(0, 1, 0),
    },
    (4, 2): {METADATA: _Feature(7, 29, 29), "share.version": _Feature(0, 1, 1), "streams.version": _Feature(0, 1, 1)},
    (4, 3): {METADATA: _Feature(7, 30, 30)},
}
#: Levels of metadata.version that changed the metadata's format: Kafka refuses a downgrade across one of them.
_FORMAT_CHANGES: Final = frozenset({8, 11, 13, 14, 15, 17, 23, 30})


class Features:
    """The features of one cluster.

    >>> from kafka.broker.cluster.store import Store
    >>> features = Features(Store(), (4, 3))
    >>> features.level("share.version")
    1
    >>> features.update([("share.version", 0, DOWNGRADE)], controller=1)
    >>> features.level("share.version"), features.epoch
    (0, 2)
    """

    def __init__(self, store: Store, release: tuple[int, ...] | None) -> None:
        found: dict[str, _Feature] = {}
        for since, features in _SINCE.items():
            if release is None or since <= release:
                found.update(features)
        self._features = dict(sorted(found.items()))
        self._levels = store.table("features")

    @property
    def epoch(self) -> int:
        """Counts the updates; -1 for a release without features."""
        return 1 + int(self._levels.get("", 0)) if self._features else -1

    def supported(self) -> list[tuple[str, int, int]]:
        """Return name, lowest and highest level of each feature."""
        return [(name, feature.low, feature.high) for name, feature in self._features.items()]

    def finalized(self) -> list[tuple[str, int]]:
        """Return name and level of each feature that is not at level 0."""
        return [(name, level) for name in self._features if (level := self.level(name))]

    def level(self, name: str) -> int:
        """Return the level of a feature; 0 if the release does not have it."""
        feature = self._features.get(name)
        return 0 if feature is None else int(self._levels.get(name, feature.level))

    def serves(self, name: str) -> bool:
        """Whether a group protocol is enabled; a release before features enables all that it has."""
        return not self._features or self.level(name) > 0

    def update(self, updates: Iterable[tuple[str, int, int]], *, controller: int, validate_only: bool = False) -> None:
        """Set the levels, all of them or, if one is refused, none: name, level, and the kind of the update."""
        levels: dict[str, int] = {}
        for name, level, kind in updates:
            self._check(name, level, kind, controller)
            levels[name] = level
        if validate_only:
            return
        changed = {name: level for name, level in levels.items() if level != self.level(name)}
        for name, level in changed.items():
            self._levels[name] = level
        if changed:
            self._levels[""] = self.epoch

    def _check(self, name: str, level: int, kind: int, controller: int) -> None:
        refuse = f"Invalid update version {level} for feature {name}."
        if kind not in (UPGRADE, DOWNGRADE, UNSAFE_DOWNGRADE):
            raise InvalidUpdateVersionError(f"{refuse} The controller does not support the given upgrade type.")
        if level < 0:
            raise InvalidUpdateVersionError(f"{refuse} A feature version cannot be less than 0.")
        feature = self._features.get(name)
        if feature is None:
            raise InvalidUpdateVersionError(f"{refuse} Local controller {controller} does not support this feature.")
        if not feature.low <= level <= feature.high:
            raise InvalidUpdateVersionError(
                f"{refuse} Local controller {controller} only supports versions {feature.low}-{feature.high}"
            )
        now = self.level(name)
        if level < now and kind == UPGRADE:
            raise InvalidUpdateVersionError(
                f"{refuse} Can't downgrade the version of this feature without setting the upgrade type to either"
                " safe or unsafe downgrade."
            )
        if level > now and kind != UPGRADE:
            raise InvalidUpdateVersionError(f"{refuse} Can't downgrade to a newer version.")
        if level < now and name == KRAFT:
            raise InvalidUpdateVersionError(f"{refuse} Can't downgrade the version of this feature.")
        if level < now and name == METADATA and _FORMAT_CHANGES & set(range(level + 1, now + 1)):
            reason = (
                "Unsafe metadata downgrade is not supported in this version."
                if kind == UNSAFE_DOWNGRADE
                else "Refusing to perform the requested downgrade because it might delete metadata information."
            )
            raise InvalidUpdateVersionError(f"Unsupported {METADATA} downgrade from {now} to {level}. {reason}")
