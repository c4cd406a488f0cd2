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

from collections.abc import Iterable, Mapping
from typing import Any

from kafka.errors import UnsupportedVersionError, for_code
from kafka.protocol.broker_release import KNOWN_RELEASES, Release, apis_of, infer_release
from kafka.protocol.registry import APIS, Api

#: A request class, or the key of an API.
ApiLike = Any


class ApiVersions(Mapping[int, tuple[int, int]]):
    """What one broker offers: API key -> oldest and newest version. Cannot be changed."""

    __slots__ = ("_offered", "_release")

    def __init__(self, offered: Mapping[int, tuple[int, int]], release: Release | None = None) -> None:
        self._offered = dict(offered)
        self._release = release

    @classmethod
    def of_release(cls, release: Iterable[int]) -> ApiVersions:
        """Return what a broker of a release offers, for brokers that cannot be asked and for pinned versions."""
        given = tuple(release)
        return cls(apis_of(given), given)

    @classmethod
    def from_response(cls, response: Any) -> ApiVersions:
        """Read an ApiVersionsResponse of any version; an error in it is raised."""
        if response.error_code:
            raise for_code(response.error_code)("the broker does not tell which versions it has")
        return cls({api.api_key: (api.min_version, api.max_version) for api in response.api_keys})

    @property
    def release(self) -> Release:
        """The release that this offer amounts to, such as ``(2, 8)``: for people, and for rough choices."""
        if self._release is None:
            self._release = infer_release(self._offered)
        return self._release

    def supports(self, api: ApiLike, version: int | None = None) -> bool:
        """Whether the broker has an API at all, or in one version, that we have too."""
        known = _api(api)
        chosen = self._common(known)
        if chosen is None:
            return False
        return version is None or chosen[0] <= version <= chosen[1]

    def highest(self, api: ApiLike, at_most: int | None = None) -> int:
        """Return the newest stable version that both sides have; where there is none, say since when there is."""
        known = _api(api)
        common = self._common(known)
        if common is not None:
            version = common[1] if at_most is None else min(common[1], at_most)
            if version >= common[0]:
                return version
        raise self._lacking(known, at_most)

    def choose(self, request: Any, at_most: int | None = None) -> Any:
        """Return the request class bound to the version to use."""
        return request[self.highest(request, at_most)]

    def _common(self, api: Api) -> tuple[int, int] | None:
        offered = self._offered.get(api.key)
        if offered is None:
            return None
        low, high = max(offered[0], api.min_version), min(offered[1], api.max_version)
        return (low, high) if low <= high else None

    def _lacking(self, api: Api, at_most: int | None) -> UnsupportedVersionError:
        release = ".".join(map(str, self.release))
        offered = self._offered.get(api.key)
        if offered is None:
            since = next((known for known in KNOWN_RELEASES if api.key in apis_of(known)), None)
            hint = f"it came with Kafka {'.'.join(map(str, since))}" if since else "no release that we know offers it"
            return UnsupportedVersionError(f"the broker (about Kafka {release}) has no {api.name}; {hint}")
        wanted = f"{api.min_version}-{api.max_version if at_most is None else min(at_most, api.max_version)}"
        return UnsupportedVersionError(
            f"the broker (about Kafka {release}) has {api.name} in versions {offered[0]}-{offered[1]}, "
            f"none of which can be used: wanted is {wanted}"
        )

    def __getitem__(self, key: int) -> tuple[int, int]:
        return self._offered[key]

    def __iter__(self) -> Any:
        return iter(self._offered)

    def __len__(self) -> int:
        return len(self._offered)

    def __repr__(self) -> str:
        return f"<ApiVersions of about Kafka {'.'.join(map(str, self.release))}: {len(self)} APIs>"


def _api(api: ApiLike) -> Api:
    key = api if isinstance(api, int) else api.API_KEY
    try:
        return APIS[key]
    except KeyError:
        raise UnsupportedVersionError(f"there is no API with key {key}") from None
