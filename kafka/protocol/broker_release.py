"""The API versions of each release of Apache Kafka, and the release that a broker's API versions show.

Release tuples are what ``api_version`` has always been: ``(2, 8)``, ``(0, 10, 2)``. The first direction serves brokers
that cannot be asked (before 0.10.0) and users who pin a release; the second gives a name to what ApiVersions told.
The name is for people and for rough choices: a client chooses the version of a request by the API versions themselves.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from types import MappingProxyType
from typing import Final

from kafka.errors import UnrecognizedBrokerVersion
from kafka.protocol._releases import CHANGES
from kafka.protocol.registry import APIS, ApiKey

Release = tuple[int, ...]
#: API key -> the oldest and the newest version offered.
Offer = Mapping[int, tuple[int, int]]

#: All minor releases that we have facts of, oldest first.
KNOWN_RELEASES: Final[tuple[Release, ...]] = tuple(CHANGES)

# Every service that speaks Kafka's protocol has these, because no client can produce or consume without them, and
# raises their versions with care. Therefore they decide. The other APIs come and go: KRaft brokers lack LeaderAndIsr,
# Redpanda and Event Hubs lack delegation tokens or transactions or keep an old DescribeAcls next to a new Fetch. They
# only choose among releases that are the same in these APIs, as 2.5 and 2.6 are.
_DECISIVE: Final = frozenset(
    {
        ApiKey.Produce,
        ApiKey.Fetch,
        ApiKey.ListOffsets,
        ApiKey.Metadata,
        ApiKey.OffsetCommit,
        ApiKey.OffsetFetch,
        ApiKey.FindCoordinator,
        ApiKey.JoinGroup,
        ApiKey.Heartbeat,
        ApiKey.LeaveGroup,
        ApiKey.SyncGroup,
    }
)


def apis_of(release: Sequence[int]) -> Offer:
    """Return what a broker of a release offers to clients and other brokers.

    A patch number changes nothing. A release that is not known counts as the newest one before it.

    >>> apis_of((2, 8))[1]
    (0, 12)
    >>> apis_of((2, 8, 1)) == apis_of((2, 8)) and apis_of((99, 0)) == apis_of(KNOWN_RELEASES[-1])
    True
    """
    return _offers()[known_release(release)]


def known_release(release: Sequence[int]) -> Release:
    """Return the release we have facts of that stands for the given one.

    >>> known_release((0, 10)), known_release((2, 8, 1)), known_release((1,))
    ((0, 10, 0), (2, 8), (1, 0))
    """
    if not isinstance(release, (tuple, list)) or not release or not all(_is_number(part) for part in release):
        raise _unrecognized(release, "is no release tuple such as (2, 8) or (0, 10, 2)")
    padded = (*release, 0, 0)[: max(3, len(release))]
    found = [known for known in KNOWN_RELEASES if known <= padded]
    if not found:
        raise _unrecognized(release, "is older than anything this client can talk to")
    return found[-1]


def infer_release(offered: Offer) -> Release:
    """Return the newest release that a broker has shown to be, by the versions that it offers.

    The broker reaches a release if it offers the newest version of that release, or a newer one, of each API that it
    offers at all. Of several releases with these versions it is the oldest.

    >>> infer_release(apis_of((2, 8)))
    (2, 8)
    """
    candidates = _reached(offered, _DECISIVE, KNOWN_RELEASES)
    return _reached(offered, offered.keys() - _DECISIVE, candidates)[0]


def _reached(offered: Offer, keys: Iterable[int], releases: Sequence[Release]) -> list[Release]:
    """Return the newest release that is reached in these APIs, after all that are the same in them."""
    judged = [key for key in keys if key in offered]
    newest = [offered[key][1] for key in judged]
    demands = {release: [_offers()[release].get(key, _ABSENT)[1] for key in judged] for release in releases}
    best = releases[0]
    for release, demand in demands.items():
        if all(want <= have for want, have in zip(demand, newest, strict=True)):
            best = release
    return [release for release in releases if demands[release] == demands[best]]


_ABSENT: Final = (-1, -1)


@cache
def _offers() -> Mapping[Release, Offer]:
    """Expand the table of changes, once."""
    keys = {api.name: key for key, api in APIS.items()}
    offer: dict[int, tuple[int, int]] = {}
    found = {}
    for release, changes in CHANGES.items():
        for change in changes.split(", "):
            first, _, second = change.partition(" ")
            if first == "no":
                del offer[keys[second]]
            else:
                low, _, high = second.partition("-")
                offer[keys[first]] = (int(low), int(high or low))
        found[release] = MappingProxyType(dict(sorted(offer.items())))
    return MappingProxyType(found)


def _is_number(part: object) -> bool:
    return isinstance(part, int) and not isinstance(part, bool) and part >= 0


def _unrecognized(release: object, what: str) -> UnrecognizedBrokerVersion:
    known = ", ".join(".".join(map(str, each)) for each in KNOWN_RELEASES)
    return UnrecognizedBrokerVersion(f"{release!r} {what}; known are {known}")
