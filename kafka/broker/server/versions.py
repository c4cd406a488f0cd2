"""The APIs and versions that are advertised: the served ones, narrowed to a release or by a test."""

from __future__ import annotations

from typing import Final

from kafka.broker.server.apis import served
from kafka.errors import IllegalArgumentError, KafkaConfigurationError, UnrecognizedBrokerVersion
from kafka.protocol.broker_release import KNOWN_RELEASES, apis_of, known_release
from kafka.protocol.registry import APIS, ApiKey, api_named

#: APIs that a broker offers only with a plugin that takes clients' metrics (KIP-714), and the first release with them.
TELEMETRY: Final = {ApiKey.GetTelemetrySubscriptions: (3, 7), ApiKey.PushTelemetry: (3, 7)}

ApiKeyLike = int | str | type


def api_key_of(api: ApiKeyLike) -> int:
    """Return the key of an API given as number, name, request or response class.

    >>> from kafka.protocol.fetch import FetchRequest
    >>> api_key_of(1), api_key_of("Fetch"), api_key_of(FetchRequest)
    (1, 1, 1)
    """
    if isinstance(api, str):
        return api_named(api).key
    key = api if isinstance(api, int) else getattr(api, "API_KEY", None)
    if not isinstance(key, int) or key not in APIS:
        raise IllegalArgumentError(f"{api!r} is not an API of Kafka")
    return key


class ApiTable:
    """The versions in force: ``table.get(key)`` is (lowest, highest) or None.

    >>> table = ApiTable()
    >>> table.advertise("Metadata", 0, 5)
    >>> table.get(3)
    (0, 5)
    """

    def __init__(self, as_version: str | None = None) -> None:
        self._offered: dict[int, tuple[int, int]] = {}
        #: The release that it passes for, None for none in particular.
        self.release = _release(as_version) if as_version else None
        offer = None if self.release is None else apis_of(self.release)
        for key in served():
            api = APIS[key]
            if "broker" not in api.listeners.split() or key in TELEMETRY:
                continue
            versions = (api.min_version, api.max_version)
            if offer is not None:
                if key not in offer:
                    continue
                low, high = offer[key]
                versions = (max(low, versions[0]), min(high, versions[1]))
            self._offered[key] = versions

    def get(self, api_key: int) -> tuple[int, int] | None:
        """Return the lowest and highest version of an API, or None if it is not served."""
        return self._offered.get(api_key)

    def items(self) -> list[tuple[int, int, int]]:
        """Return key, lowest and highest version of all of them."""
        return [(key, *versions) for key, versions in sorted(self._offered.items())]

    def offer_telemetry(self) -> None:
        """Offer the APIs for clients' metrics, if the release has them."""
        for key, since in TELEMETRY.items():
            if self.release is None or self.release >= since:
                self._offered[key] = (APIS[key].min_version, APIS[key].max_version)

    def copy(self) -> ApiTable:
        """Return a table that offers the same."""
        found = ApiTable()
        found._offered, found.release = dict(self._offered), self.release
        return found

    def advertise(self, api: ApiKeyLike, low: int, high: int) -> None:
        """Serve an API in these versions only; ``high < low`` means not at all."""
        key = api_key_of(api)
        if high < low:
            self._offered.pop(key, None)
            return
        if key not in served():
            raise IllegalArgumentError(f"the embedded broker does not have {APIS[key].name}")
        lowest, highest = APIS[key].min_version, APIS[key].max_version
        if low < lowest or high > highest:
            raise IllegalArgumentError(f"{APIS[key].name} has versions {lowest} to {highest}, not {low} to {high}")
        self._offered[key] = (low, high)


def _release(name: str) -> tuple[int, ...]:
    try:
        wanted = tuple(int(part) for part in name.split("."))
        found = known_release(wanted)
    except (ValueError, UnrecognizedBrokerVersion):
        raise KafkaConfigurationError(f"{name!r} is not a release of Kafka such as 2.8") from None
    if wanted[:2] > KNOWN_RELEASES[-1]:
        newest = ".".join(map(str, KNOWN_RELEASES[-1]))
        raise KafkaConfigurationError(f"the embedded broker does not know what Kafka {name} does, only up to {newest}")
    return found
