"""Resources that have a configuration, their settings, and the outcomes of describing and changing settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import Any

from kafka.acl import Named
from kafka.admin.results import ItemResult, Outcome, Result, Results
from kafka.errors import IllegalArgumentError

__all__ = [
    "AlterConfigOp",
    "AlterConfigsResult",
    "AlteredResource",
    "ConfigEntry",
    "ConfigFilterType",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSourceType",
    "ConfigType",
    "DescribeConfigsResult",
    "DescribedResource",
    "as_config_resources",
    "kind_name",
]

_OF_BROKERS = (4, 8)
_SECRET = ("password", "secret", "jaas", "keystore.key", "credential")


class ConfigResourceType(Named, IntEnum):
    """The type of a resource that has a configuration."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


class ConfigSourceType(Named, IntEnum):
    """Where the value of a setting comes from."""

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ConfigType(Named, IntEnum):
    """The type of a setting."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


class ConfigFilterType(Named, IntEnum):
    """Which settings are wanted."""

    ALL = 0
    DYNAMIC = 1
    MODIFIED = 2
    DEFAULT = 3
    STATIC = 4


class AlterConfigOp(Named, IntEnum):
    """What to do with the value of a setting; APPEND and SUBTRACT are for lists."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


class ConfigResource:
    """A resource, and the settings of it that are wanted (names) or to be changed (a dict).

    >>> ConfigResource("topic", "events", {"retention.ms": 1000})
    ConfigResource(TOPIC, 'events', {'retention.ms': 1000})
    """

    __slots__ = ("configs", "name", "resource_type")

    def __init__(
        self,
        resource_type: ConfigResourceType | str,
        name: str | int,
        configs: Mapping[str, Any] | Iterable[str] | None = None,
    ) -> None:
        if isinstance(resource_type, str):
            resource_type = ConfigResourceType[resource_type.upper().replace("-", "_")]
        self.resource_type = ConfigResourceType(resource_type)
        self.name = str(name)
        if isinstance(configs, str):
            raise TypeError(f"configs must be a dict or a list of names, not {configs!r}")
        self.configs = configs if configs is None or isinstance(configs, Mapping) else list(configs)

    @property
    def key(self) -> tuple[ConfigResourceType, str]:
        """The type and the name."""
        return self.resource_type, self.name

    @property
    def node_id(self) -> int | None:
        """The broker that must be asked, None for any."""
        return int(self.name) if self.resource_type in _OF_BROKERS and self.name else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ConfigResource) and (self.key, self.configs) == (other.key, other.configs)

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        shown: Any = self.configs
        if isinstance(shown, Mapping):
            shown = {
                name: "<hidden>" if any(part in name for part in _SECRET) else value for name, value in shown.items()
            }
        return f"ConfigResource({self.resource_type.name}, {self.name!r}, {shown!r})"


def as_config_resources(resources: Any) -> list[ConfigResource]:
    """Return resources, each once.

    >>> as_config_resources([("topic", "events")])
    [ConfigResource(TOPIC, 'events', None)]
    """
    if isinstance(resources, ConfigResource):
        resources = [resources]
    found = [resource if isinstance(resource, ConfigResource) else _resource(resource) for resource in resources]
    for resource in found:
        if resource.resource_type in _OF_BROKERS and resource.name and not resource.name.isdecimal():
            raise IllegalArgumentError(f"the name of a broker must be its id, not {resource.name!r}")
    if len({resource.key for resource in found}) < len(found):
        raise IllegalArgumentError(f"config_resources has a resource more than once: {found}")
    return found


def _resource(given: Any) -> ConfigResource:
    if isinstance(given, tuple):
        return ConfigResource(*given)
    raise TypeError(f"config_resources must be ConfigResource objects or tuples of type and name, not {given!r}")


class ConfigEntry(Result):
    """The value of a setting, and where it comes from; ``value`` is None for passwords."""

    __slots__ = ()
    value: str | None
    config_source: ConfigSourceType
    config_type: ConfigType
    read_only: bool
    is_sensitive: bool
    synonyms: list[Result]
    documentation: str | None


class DescribedResource(ItemResult):
    """The configuration of a resource, or why it is not known."""

    __slots__ = ()
    resource_type: ConfigResourceType
    resource_name: str
    configs: dict[str, ConfigEntry]

    def item(self) -> str:
        """Return what the outcome is about, for error messages."""
        return f"{kind_name(self.resource_type)} {self.resource_name!r}"


class DescribeConfigsResult(dict[str, dict[str, dict[str, ConfigEntry]]]):
    """Settings by kind, name and setting: ``result["topic"]["events"]["retention.ms"].value``.

    ``result[0].resources`` has the reply of a broker, as in kafka-python 2; iterating gives the replies unless a filter
    was given, and the kinds if one was.
    """

    __slots__ = ("_filtered", "replies", "resources")

    def __init__(self, resources: Results[DescribedResource], replies: list[Any], *, filtered: bool) -> None:
        super().__init__()
        for resource in resources:
            if resource.ok:
                self.setdefault(kind_name(resource.resource_type), {})[resource.resource_name] = resource.configs
        self.resources: Results[DescribedResource] = resources
        self.replies: list[Any] = replies
        self._filtered = filtered

    def __getitem__(self, key: Any) -> Any:
        return self.replies[key] if isinstance(key, int) else super().__getitem__(key)

    def __iter__(self) -> Iterator[Any]:
        return super().__iter__() if self._filtered else iter(self.replies)


class AlteredResource(ItemResult):
    """Whether the configuration of a resource was changed."""

    __slots__ = ()
    resource_type: ConfigResourceType
    resource_name: str

    def item(self) -> str:
        """Return what the outcome is about, for error messages."""
        return f"{kind_name(self.resource_type)} {self.resource_name!r}"


class AlterConfigsResult(dict[str, dict[str, Outcome]]):
    """``OK`` or the text of an error, by kind and name."""

    __slots__ = ("items_",)

    def __init__(self, items: Results[AlteredResource]) -> None:
        super().__init__()
        for item in items:
            self.setdefault(kind_name(item.resource_type), {})[item.resource_name] = Outcome(item.error)
        self.items_: Results[AlteredResource] = items

    @property
    def resources(self) -> list[tuple[int, str | None, int, str]]:
        """Error code, message, type and name of each resource, as kafka-python 2 has them."""
        return [
            (item.error_code, item.error_message, int(item.resource_type), item.resource_name) for item in self.items_
        ]


def kind_name(resource_type: ConfigResourceType) -> str:
    """Return the key of a kind of resource in results."""
    return resource_type.name.lower()
