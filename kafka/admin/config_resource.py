"""Resources that have a configuration, their settings, and the outcomes of describing and changing settings."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Final

from kafka.acl import Named
from kafka.admin.resources import config_text
from kafka.admin.results import ItemResult, Outcome, Result, Results
from kafka.errors import IllegalArgumentError

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka.protocol.configs import DescribeConfigsResponse

__all__ = [
    "SOURCES_SINCE",
    "AlterConfigOp",
    "AlterConfigsResult",
    "AlteredResource",
    "Changes",
    "ConfigEntry",
    "ConfigFilterType",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSourceType",
    "ConfigType",
    "DescribeConfigsResult",
    "DescribedResource",
    "as_config_resources",
    "changed_values",
    "changes_of",
    "kind_name",
    "own_source",
]

# The first version of DescribeConfigs that tells where a value comes from.
SOURCES_SINCE: Final = 1
_PAIR: Final = 2
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


# Where values come from that were set for the resource itself, while the cluster runs.
_OWN: Final = {
    ConfigResourceType.TOPIC: ConfigSourceType.DYNAMIC_TOPIC_CONFIG,
    ConfigResourceType.BROKER: ConfigSourceType.DYNAMIC_BROKER_CONFIG,
    ConfigResourceType.BROKER_LOGGER: ConfigSourceType.DYNAMIC_BROKER_LOGGER_CONFIG,
    ConfigResourceType.CLIENT_METRICS: ConfigSourceType.DYNAMIC_CLIENT_METRICS_CONFIG,
    ConfigResourceType.GROUP: ConfigSourceType.DYNAMIC_GROUP_CONFIG,
}
_NOT_DYNAMIC: Final = {ConfigSourceType.UNKNOWN, ConfigSourceType.STATIC_BROKER_CONFIG, ConfigSourceType.DEFAULT_CONFIG}


def own_source(resource_type: ConfigResourceType, name: str) -> ConfigSourceType:
    """Return where the values come from that were set for a resource itself.

    >>> own_source(ConfigResourceType.BROKER, "").name, own_source(ConfigResourceType.TOPIC, "events").name
    ('DYNAMIC_DEFAULT_BROKER_CONFIG', 'DYNAMIC_TOPIC_CONFIG')
    """
    if resource_type is ConfigResourceType.BROKER and not name:
        return ConfigSourceType.DYNAMIC_DEFAULT_BROKER_CONFIG
    return _OWN[resource_type]


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

    def selects(self, entry: ConfigEntry) -> bool:
        """Whether a setting is one of those."""
        source = entry.config_source
        if self is ConfigFilterType.ALL:
            return True
        if self is ConfigFilterType.DYNAMIC:
            return source not in _NOT_DYNAMIC
        if self is ConfigFilterType.DEFAULT:
            return source is ConfigSourceType.DEFAULT_CONFIG
        if self is ConfigFilterType.STATIC:
            return source is ConfigSourceType.STATIC_BROKER_CONFIG
        return source is not ConfigSourceType.DEFAULT_CONFIG


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
        configs: Mapping[str, object] | Iterable[str] | None = None,
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
        shown: object = self.configs
        if isinstance(shown, Mapping):
            shown = {
                name: "<hidden>" if any(part in name for part in _SECRET) else value for name, value in shown.items()
            }
        return f"ConfigResource({self.resource_type.name}, {self.name!r}, {shown!r})"


def as_config_resources(resources: ConfigResource | Iterable[object]) -> list[ConfigResource]:
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


def _resource(given: object) -> ConfigResource:
    if isinstance(given, tuple):
        return ConfigResource(*given)
    raise TypeError(f"config_resources must be ConfigResource objects or tuples of type and name, not {given!r}")


Changes = dict[str, tuple[AlterConfigOp, "str | None"]]


def changes_of(resource: ConfigResource) -> Changes:
    """Return what is to become of each setting of a resource.

    >>> changes_of(ConfigResource("topic", "t", {"retention.ms": 5, "cleanup.policy": ("append", "compact")}))
    {'retention.ms': (<AlterConfigOp.SET: 0>, '5'), 'cleanup.policy': (<AlterConfigOp.APPEND: 2>, 'compact')}
    """
    if not isinstance(resource.configs, Mapping):
        raise TypeError(f"the configs of {resource.resource_type.name} {resource.name!r} must be a dict")
    found: Changes = {}
    for name, value in resource.configs.items():
        operation = AlterConfigOp.DELETE if value is None else AlterConfigOp.SET
        if isinstance(value, tuple) and len(value) == _PAIR:
            operation, value = AlterConfigOp.build_from(value[0]), value[1]  # noqa: PLW2901
        found[name] = operation, config_text(value)
    return found


def changed_values(values: Mapping[str, str | None], changes: Changes) -> dict[str, str | None]:
    """Return settings as they will be after changes.

    >>> changed_values({"a": "1", "b": "x,y"}, {"a": (AlterConfigOp.DELETE, None), "b": (AlterConfigOp.SUBTRACT, "x")})
    {'b': 'y'}
    """
    found = dict(values)
    for name, (operation, value) in changes.items():
        if operation is AlterConfigOp.SET:
            found[name] = value
        elif operation is AlterConfigOp.DELETE:
            found.pop(name, None)
        else:
            parts = _parts(found.get(name))
            change = _parts(value)
            if operation is AlterConfigOp.APPEND:
                parts += [part for part in change if part not in parts]
            else:
                parts = [part for part in parts if part not in change]
            found[name] = ",".join(parts)
    return found


def _parts(value: str | None) -> list[str]:
    return [part for part in (value or "").split(",") if part]


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

    @classmethod
    def of(
        cls, setting: DescribeConfigsResponse.DescribeConfigsResourceResult, resource_type: int, version: int
    ) -> Self:
        """Make it from a setting in a response of a version."""
        source = setting.config_source
        if version < SOURCES_SINCE:  # which only says whether it is the default
            own = _OWN[ConfigResourceType(resource_type)]
            source = ConfigSourceType.DEFAULT_CONFIG if setting.is_default else own
        return cls(
            value=setting.value,
            config_source=ConfigSourceType.known(source),
            config_type=ConfigType.known(setting.config_type),
            read_only=setting.read_only,
            is_sensitive=setting.is_sensitive,
            synonyms=[Result(name=one.name, value=one.value, config_source=one.source) for one in setting.synonyms],
            documentation=setting.documentation,
        )


class _Resource(ItemResult):
    """The outcome for a resource."""

    __slots__ = ()
    resource_type: ConfigResourceType
    resource_name: str

    def item(self) -> str:
        """Return what the outcome is about, for error messages."""
        return f"{kind_name(self.resource_type)} {self.resource_name!r}"


class DescribedResource(_Resource):
    """The configuration of a resource, or why it is not known."""

    __slots__ = ()
    configs: dict[str, ConfigEntry]


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
        self.replies: list[DescribeConfigsResponse] = replies
        self._filtered = filtered

    def __getitem__(self, key: str | int) -> Any:
        return self.replies[key] if isinstance(key, int) else super().__getitem__(key)

    def __iter__(self) -> Iterator[Any]:
        return super().__iter__() if self._filtered else iter(self.replies)


class AlteredResource(_Resource):
    """Whether the configuration of a resource was changed."""

    __slots__ = ()


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
