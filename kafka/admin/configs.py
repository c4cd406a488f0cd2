"""Configuration of resources: describe it, change single settings, replace all, take settings back to defaults."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from kafka.admin.config_resource import (
    AlterConfigOp,
    AlterConfigsResult,
    AlteredResource,
    ConfigEntry,
    ConfigFilterType,
    ConfigResource,
    ConfigResourceType,
    ConfigSourceType,
    ConfigType,
    DescribeConfigsResult,
    DescribedResource,
    kind_name,
)
from kafka.admin.core import AdminCore
from kafka.admin.resources import config_text
from kafka.admin.results import Result, Results, raise_failed
from kafka.errors import InvalidConfigurationError, for_code
from kafka.protocol.configs import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)

__all__ = ["Configs"]

_INCREMENTAL: Final = 44
_LIST_RESOURCES: Final = 74
_FROM_SOURCES: Final = 1
_DOCUMENTED_SINCE: Final = 3
_PAIR: Final = 2

# Values that were set for the resource itself, or for all of its kind, while the cluster runs.
_OWN: Final = {
    ConfigResourceType.TOPIC: ConfigSourceType.DYNAMIC_TOPIC_CONFIG,
    ConfigResourceType.BROKER: ConfigSourceType.DYNAMIC_BROKER_CONFIG,
    ConfigResourceType.BROKER_LOGGER: ConfigSourceType.DYNAMIC_BROKER_LOGGER_CONFIG,
    ConfigResourceType.CLIENT_METRICS: ConfigSourceType.DYNAMIC_CLIENT_METRICS_CONFIG,
    ConfigResourceType.GROUP: ConfigSourceType.DYNAMIC_GROUP_CONFIG,
}
_NOT_DYNAMIC: Final = {
    ConfigSourceType.UNKNOWN,
    ConfigSourceType.STATIC_BROKER_CONFIG,
    ConfigSourceType.DEFAULT_CONFIG,
}


class Configs:
    """The calls about configuration, as coroutines."""

    _REQUESTS: ClassVar = {True: IncrementalAlterConfigsRequest, False: AlterConfigsRequest}

    def __init__(self, core: AdminCore) -> None:
        self._core = core

    async def describe(
        self,
        resources: list[ConfigResource],
        deadline: float,
        *,
        config_filter: ConfigFilterType | None,
        synonyms: bool = False,
        documentation: bool = False,
        raise_errors: bool = True,
    ) -> DescribeConfigsResult:
        """Describe the settings of resources."""
        version = await self._core.version_of(DescribeConfigsRequest(), deadline)
        if documentation and version < _DOCUMENTED_SINCE:
            raise self._core.unsupported("include_documentation", "2.6")
        entry = DescribeConfigsRequest.DescribeConfigsResource

        def request(some: list[ConfigResource]) -> Any:
            wanted = [
                entry(
                    resource_type=int(resource.resource_type),
                    resource_name=resource.name,
                    configuration_keys=None if resource.configs is None else list(resource.configs),
                )
                for resource in some
            ]
            return DescribeConfigsRequest(
                resources=wanted,
                include_synonyms=synonyms and version >= _FROM_SOURCES,
                include_documentation=documentation,
            )

        replies = await self._ask(resources, request, deadline, "describe_configs()")
        chosen = ConfigFilterType.MODIFIED if config_filter is None else config_filter
        described = Results(
            DescribedResource(
                error_code=found.error_code,
                error_message=found.error_message,
                resource_type=ConfigResourceType(found.resource_type),
                resource_name=found.resource_name,
                configs={
                    setting.name: described
                    for setting in found.configs
                    if _passes(described := _entry(setting, found.resource_type, version), chosen)
                },
            )
            for reply in replies
            for found in reply.results
        )
        result = DescribeConfigsResult(described, replies, filtered=config_filter is not None)
        if raise_errors:
            raise_failed(described, result)
        return result

    async def alter(
        self,
        resources: list[ConfigResource],
        deadline: float,
        *,
        validate_only: bool,
        raise_on_unknown: bool,
        incremental: bool | None,
        raise_errors: bool,
    ) -> AlterConfigsResult:
        """Change the given settings of resources and leave the others."""
        versions = await self._core.versions(deadline)
        if incremental and not versions.supports(_INCREMENTAL):
            raise self._core.unsupported("incremental=True", "2.3")
        if incremental is None:
            incremental = versions.supports(_INCREMENTAL)
        changes = {resource.key: _changes(resource) for resource in resources}
        if raise_on_unknown:
            await self._check_names([resource for resource in resources if resource.node_id is not None], deadline)
        if not incremental:
            changes = await self._merged(resources, changes, deadline)
        return await self._change(resources, changes, deadline, validate_only, raise_errors, incremental=incremental)

    async def replace(
        self, resources: list[ConfigResource], deadline: float, *, validate_only: bool, raise_errors: bool
    ) -> AlterConfigsResult:
        """Give resources these settings and no others."""
        changes = {resource.key: _changes(resource) for resource in resources}
        return await self._change(resources, changes, deadline, validate_only, raise_errors, incremental=False)

    async def reset(
        self,
        resources: list[ConfigResource],
        deadline: float,
        *,
        validate_only: bool,
        raise_on_unknown: bool,
        incremental: bool | None,
        raise_errors: bool,
    ) -> AlterConfigsResult:
        """Take settings of resources back to what they are by default, all that were set for None."""
        found = await self._own([resource for resource in resources if resource.configs is None], deadline)
        given = [
            ConfigResource(
                resource.resource_type,
                resource.name,
                dict.fromkeys(
                    found[resource.key] if resource.configs is None else resource.configs, (AlterConfigOp.DELETE, None)
                ),
            )
            for resource in resources
        ]
        return await self.alter(
            given,
            deadline,
            validate_only=validate_only,
            raise_on_unknown=raise_on_unknown,
            incremental=incremental,
            raise_errors=raise_errors,
        )

    async def resources(self, types: list[ConfigResourceType] | None, deadline: float) -> dict[str, list[str]]:
        """Return the names of resources that have a configuration, by kind."""
        versions = await self._core.versions(deadline)
        if not versions.supports(_LIST_RESOURCES, 1):
            raise self._core.unsupported("list_config_resources()", "4.1")
        request = ListConfigResourcesRequest(resource_types=[int(one) for one in types or ()])
        response = await self._core.ask(request, deadline, "list_config_resources()")
        if response.error_code:
            raise for_code(response.error_code)("the resources cannot be listed")
        found: dict[str, list[str]] = {}
        for resource in response.config_resources:
            found.setdefault(kind_name(ConfigResourceType(resource.resource_type)), []).append(resource.resource_name)
        return found

    async def _ask(self, resources: list[ConfigResource], request: Any, deadline: float, what: str) -> list[Any]:
        """Ask each broker about its own settings, and any broker about the rest, at the same time."""
        by_node: dict[int | None, list[ConfigResource]] = {}
        for resource in resources:
            by_node.setdefault(resource.node_id, []).append(resource)
        return await self._core.gather(
            [self._core.ask(request(some), deadline, what, node_id=node) for node, some in by_node.items()]
        )

    async def _change(
        self,
        resources: list[ConfigResource],
        changes: Mapping[Any, Mapping[str, tuple[AlterConfigOp, str | None]]],
        deadline: float,
        validate_only: bool,
        raise_errors: bool,
        *,
        incremental: bool,
    ) -> AlterConfigsResult:
        kind: Any = self._REQUESTS[incremental]

        def setting(name: str, operation: AlterConfigOp, value: str | None) -> Any:
            more = {"config_operation": int(operation)} if incremental else {}
            return kind.AlterableConfig(name=name, value=value, **more)

        def request(some: list[ConfigResource]) -> Any:
            return kind(
                resources=[
                    kind.AlterConfigsResource(
                        resource_type=int(resource.resource_type),
                        resource_name=resource.name,
                        configs=[setting(name, *change) for name, change in changes[resource.key].items()],
                    )
                    for resource in some
                ],
                validate_only=validate_only,
            )

        replies = await self._ask(resources, request, deadline, "alter_configs()")
        items = Results(
            AlteredResource(
                error_code=found.error_code,
                error_message=found.error_message,
                resource_type=ConfigResourceType(found.resource_type),
                resource_name=found.resource_name,
            )
            for reply in replies
            for found in reply.responses
        )
        result = AlterConfigsResult(items)
        if raise_errors:
            raise_failed(items, result)
        return result

    async def _check_names(self, brokers: list[ConfigResource], deadline: float) -> None:
        """Raise for settings that a broker does not have: it would store them without a word."""
        if not brokers:
            return
        plain = [ConfigResource(resource.resource_type, resource.name) for resource in brokers]
        found = await self.describe(plain, deadline, config_filter=ConfigFilterType.ALL)
        known = {(item.resource_type, item.resource_name): item.configs for item in found.resources}
        for resource in brokers:
            for name in resource.configs or ():
                if name not in known[resource.key]:
                    raise InvalidConfigurationError(
                        f"broker {resource.name} has no setting {name!r}; raise_on_unknown=False sets it all the same"
                    )

    async def _own(self, resources: list[ConfigResource], deadline: float) -> dict[Any, dict[str, ConfigEntry]]:
        """Return the settings that were set for the resources themselves."""
        if not resources:
            return {}
        plain = [ConfigResource(resource.resource_type, resource.name) for resource in resources]
        found = await self.describe(plain, deadline, config_filter=ConfigFilterType.DYNAMIC)
        own = {}
        for item in found.resources:
            source = _OWN[item.resource_type]
            if item.resource_type is ConfigResourceType.BROKER and not item.resource_name:
                source = ConfigSourceType.DYNAMIC_DEFAULT_BROKER_CONFIG
            own[item.resource_type, item.resource_name] = {
                name: entry for name, entry in item.configs.items() if entry.config_source is source
            }
        return own

    async def _merged(
        self, resources: list[ConfigResource], changes: Mapping[Any, Any], deadline: float
    ) -> dict[Any, dict[str, tuple[AlterConfigOp, str | None]]]:
        """Return all settings as they will be; what another client changes meanwhile is lost."""
        merged = {}
        for key, own in (await self._own(resources, deadline)).items():
            values = {name: entry.value for name, entry in own.items()}
            for name, (operation, value) in changes[key].items():
                if operation is AlterConfigOp.SET:
                    values[name] = value
                elif operation is AlterConfigOp.DELETE:
                    values.pop(name, None)
                else:
                    values[name] = _list_change(values.get(name), operation, value)
            hidden = [name for name, value in values.items() if value is None]
            if hidden:
                raise InvalidConfigurationError(
                    f"{kind_name(key[0])} {key[1]!r} has settings whose values brokers hide, and which would be lost: "
                    f"{', '.join(hidden)}; give their values too"
                )
            merged[key] = {name: (AlterConfigOp.SET, value) for name, value in values.items()}
        return merged


def _list_change(value: str | None, operation: AlterConfigOp, change: str | None) -> str:
    parts = [part for part in (value or "").split(",") if part]
    changed = [part for part in (change or "").split(",") if part]
    if operation is AlterConfigOp.APPEND:
        return ",".join([*parts, *(part for part in changed if part not in parts)])
    return ",".join(part for part in parts if part not in changed)


def _changes(resource: ConfigResource) -> dict[str, tuple[AlterConfigOp, str | None]]:
    if not isinstance(resource.configs, Mapping):
        raise TypeError(f"the configs of {resource.resource_type.name} {resource.name!r} must be a dict")
    found = {}
    for name, value in resource.configs.items():
        operation = AlterConfigOp.DELETE if value is None else AlterConfigOp.SET
        if isinstance(value, tuple) and len(value) == _PAIR:
            operation, value = AlterConfigOp.build_from(value[0]), value[1]  # noqa: PLW2901
        found[name] = operation, config_text(value)
    return found


def _entry(setting: Any, resource_type: int, version: int) -> ConfigEntry:
    source = setting.config_source
    if version < _FROM_SOURCES:  # which only says whether it is the default
        own = _OWN[ConfigResourceType(resource_type)]
        source = ConfigSourceType.DEFAULT_CONFIG if setting.is_default else own
    known = ConfigSourceType(source) if source in iter(ConfigSourceType) else ConfigSourceType.UNKNOWN
    return ConfigEntry(
        value=setting.value,
        config_source=known,
        config_type=ConfigType(setting.config_type) if setting.config_type in iter(ConfigType) else ConfigType.UNKNOWN,
        read_only=setting.read_only,
        is_sensitive=setting.is_sensitive,
        synonyms=[Result(name=one.name, value=one.value, config_source=one.source) for one in setting.synonyms],
        documentation=setting.documentation,
    )


def _passes(entry: ConfigEntry, wanted: ConfigFilterType) -> bool:
    source = entry.config_source
    if wanted is ConfigFilterType.ALL:
        return True
    if wanted is ConfigFilterType.DYNAMIC:
        return source not in _NOT_DYNAMIC
    if wanted is ConfigFilterType.DEFAULT:
        return source is ConfigSourceType.DEFAULT_CONFIG
    if wanted is ConfigFilterType.STATIC:
        return source is ConfigSourceType.STATIC_BROKER_CONFIG
    return source is not ConfigSourceType.DEFAULT_CONFIG
