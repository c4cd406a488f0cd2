"""Which version of a message both sides have: the choice that goes before every request.

>>> from kafka.protocol.fetch import FetchRequest
>>> broker = ApiVersions({1: (4, 17), 3: (0, 12)})
>>> broker.highest(FetchRequest)
17
>>> broker.choose(FetchRequest) is FetchRequest[17]
True
>>> ApiVersions.of_release((0, 9)).highest(FetchRequest)
1
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final, TypeVar
from weakref import WeakValueDictionary

from kafka.errors import UnsupportedVersionError, for_code
from kafka.protocol.broker_release import KNOWN_RELEASES, Release, apis_of, infer_release
from kafka.protocol.registry import APIS, ApiKey

if TYPE_CHECKING:
    from kafka.protocol.admin import ApiVersionsResponse
    from kafka.protocol.api import Request, Response

RequestT = TypeVar("RequestT", bound="Request[Response]")

__all__ = ["ApiVersions"]

#: A request class, or the key of an API.
ApiLike = Any

# KIP-219: since Fetch 8 (2.0) brokers answer at once and expect the client to wait for the throttle time.
_CLIENT_THROTTLES_SINCE = 8

# What connections share, by a hash of the ranges: the brokers of a cluster offer the same, and each client has a
# connection or three to each of them.
_IN_USE: Final[WeakValueDictionary[int, ApiVersions]] = WeakValueDictionary()


class ApiVersions(Mapping[int, tuple[int, int]]):
    """The API versions of one broker: API key -> oldest and newest version. Immutable by convention."""

    __slots__ = ("__weakref__", "_newest", "_newest_of", "_release", "features", "ranges")

    def __init__(
        self,
        offered: Mapping[int, tuple[int, int]],
        release: Release | None = None,
        features: Mapping[str, tuple[int, int]] | None = None,
    ) -> None:
        self.ranges: Mapping[int, tuple[int, int]] = dict(offered)
        self.features = features or {}
        """Finalized features (KIP-584): name -> lowest and highest level."""
        self._release = release
        self._newest: dict[int, int] = {}  # API key -> newest version of both sides
        # The same by class, where requests of the class are not bound to a version: to look for that makes an error.
        self._newest_of: dict[type, int] = {}

    @classmethod
    def of_release(cls, release: Iterable[int]) -> ApiVersions:
        """Return the versions of a release, for brokers that cannot be asked and for pinned versions."""
        given = tuple(release)
        return cls(apis_of(given), given)

    @classmethod
    def from_response(cls, response: ApiVersionsResponse) -> ApiVersions:
        """Read an ApiVersionsResponse of any version; raise the error that it has."""
        if response.error_code:
            raise for_code(response.error_code)("the ApiVersions request failed")
        features = {
            feature.name: (feature.min_version_level, feature.max_version_level)
            for feature in response.finalized_features or ()
        }
        ranges = {api.api_key: (api.min_version, api.max_version) for api in response.api_keys}
        key = hash(frozenset(ranges.items()))
        found = _IN_USE.get(key)
        if found is None or type(found) is not cls or found.ranges != ranges or found.features != features:
            found = _IN_USE[key] = cls(ranges, features=features)
        return found

    @property
    def release(self) -> Release:
        """The release with these versions, such as ``(2, 8)``: for people, and for rough choices."""
        if self._release is None:
            self._release = infer_release(self.ranges)
        return self._release

    @property
    def expects_client_throttling(self) -> bool:
        """Whether the client must wait for the throttle time itself (KIP-219, since 2.0)."""
        return self.ranges.get(ApiKey.Fetch, (0, 0))[1] >= _CLIENT_THROTTLES_SINCE

    def reaches(self, api_key: int, version: int = 0) -> bool:
        """Whether the broker has a version of an API or a newer one."""
        return self.ranges.get(api_key, (0, -1))[1] >= version

    def supports(self, api: ApiLike, version: int | None = None) -> bool:
        """Whether broker and client both have an API, or one version of it."""
        common = self._common(_api(api))
        if common is None:
            return False
        return version is None or common[0] <= version <= common[1]

    def version_for(self, request: Request[Response] | type[Request[Response]]) -> int:
        """Return the version to send `request` in: its own if it is bound to one, else the newest of both sides."""
        kind = type(request)
        if (newest := self._newest_of.get(kind)) is not None:
            return newest
        bound = getattr(kind, "API_VERSION", None)  # of an instance, it would compose an error to be dropped
        if bound is None:
            newest = self._newest.get(request.API_KEY)
            if newest is None:
                newest = self._newest[request.API_KEY] = self.highest(request.API_KEY)
            if not isinstance(request, type):  # else the kind is that of all messages
                self._newest_of[kind] = newest
            return newest
        low, high = self.ranges.get(request.API_KEY, (0, -1))
        if not low <= bound <= high:
            raise self._lacking(
                APIS[request.API_KEY], f"the request is bound to {bound}; an unbound one gets a version"
            )
        return int(bound)

    def highest(self, api: ApiLike, at_most: int | None = None) -> int:
        """Return the newest stable version that both sides have; the error names the release that has one."""
        known = _api(api)
        common = self._common(known)
        if common is not None:
            version = common[1] if at_most is None else min(common[1], at_most)
            if version >= common[0]:
                return version
        newest = known.max_version if at_most is None else min(at_most, known.max_version)
        raise self._lacking(known, f"wanted is {known.min_version}-{newest}")

    def choose(self, request: type[RequestT], at_most: int | None = None) -> type[RequestT]:
        """Return the request class bound to the version to use."""
        return request[self.highest(request, at_most)]

    def _common(self, api: ApiKey) -> tuple[int, int] | None:
        offered = self.ranges.get(api.key)
        if offered is None:
            return None
        low, high = max(offered[0], api.min_version), min(offered[1], api.max_version)
        return (low, high) if low <= high else None

    def _lacking(self, api: ApiKey, wanted: str) -> UnsupportedVersionError:
        release = ".".join(map(str, self.release))
        offered = self.ranges.get(api.key)
        if offered is None:
            since = next((known for known in KNOWN_RELEASES if api.key in apis_of(known)), None)
            hint = f"it came with Kafka {'.'.join(map(str, since))}" if since else "no known release has it"
            return UnsupportedVersionError(f"the broker (about Kafka {release}) has no {api.name}; {hint}")
        return UnsupportedVersionError(
            f"the broker (about Kafka {release}) has {api.name} in versions {offered[0]}-{offered[1]}, "
            f"none of which can be used: {wanted}"
        )

    def __getitem__(self, key: int) -> tuple[int, int]:
        return self.ranges[key]

    def __iter__(self) -> Iterator[int]:
        return iter(self.ranges)

    def __len__(self) -> int:
        return len(self.ranges)

    def __repr__(self) -> str:
        return f"<ApiVersions of about Kafka {'.'.join(map(str, self.release))}: {len(self)} APIs>"


def _api(api: ApiLike) -> ApiKey:
    key = api if isinstance(api, int) else api.API_KEY
    try:
        return APIS[key]
    except KeyError:
        raise UnsupportedVersionError(f"there is no API with key {key}") from None
