"""Configuration of resources: describe it, change single settings, replace all, take settings back to defaults."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Final, TypeVar

from kafka.admin.calls import Calls, call
from kafka.admin.config_resource import (
    SOURCES_SINCE,
    AlterConfigOp,
    AlterConfigsResult,
    AlteredResource,
    Changes,
    ConfigEntry,
    ConfigFilterType,
    ConfigResource,
    ConfigResourceType,
    DescribeConfigsResult,
    DescribedResource,
    as_config_resources,
    changed_values,
    changes_of,
    kind_name,
    own_source,
)
from kafka.admin.core import Places
from kafka.admin.results import ItemResult, Results, raise_failed
from kafka.errors import InvalidConfigurationError, KafkaError, NotControllerError, ThrottlingQuotaExceededError
from kafka.protocol.api import Request, Response
from kafka.protocol.configs import (
    AlterConfigsRequest,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from kafka.protocol.registry import ApiKey

_DOCUMENTED_SINCE: Final = 3
#: Settings of brokers that they list only where they are set (KIP-73, KIP-113).
_LISTED_ONCE_SET: Final = frozenset(
    {
        "follower.replication.throttled.rate",
        "leader.replication.throttled.rate",
        "replica.alter.log.dirs.io.max.bytes.per.second",
    }
)

_LISTENER: Final = re.compile(r"listener\.name\.[^.]+\.")

ResourceKey = tuple[ConfigResourceType, str]
ResponseT = TypeVar("ResponseT", bound="Response")
I = TypeVar("I", bound=ItemResult)  # noqa: E741

_ALTER: Final = {True: IncrementalAlterConfigsRequest, False: AlterConfigsRequest}


class Configs(Calls):
    """The calls about configuration."""

    @call
    async def describe_configs(
        self,
        config_resources: Iterable[ConfigResource],
        include_synonyms: bool = False,
        config_filter: ConfigFilterType | str | None = None,
        timeout_ms: float | None = None,
        *,
        include_documentation: bool = False,
        raise_errors: bool = True,
    ) -> DescribeConfigsResult:
        """Describe the settings of resources that differ from the default, or that `config_filter` selects.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.admin import ConfigResource
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         found = admin.describe_configs([ConfigResource("TOPIC", "events")], config_filter="all")
        >>> found["topic"]["events"]["cleanup.policy"].value
        'delete'
        """
        deadline = self._core.deadline(timeout_ms)
        resources = as_config_resources(config_resources)
        await self._core.require(deadline, DescribeConfigsRequest.API_KEY, 0, "describe_configs()", "0.11")
        version = await self._core.version_of(DescribeConfigsRequest(), deadline)
        if include_documentation and version < _DOCUMENTED_SINCE:
            raise self._core.unsupported("include_documentation", "2.6")
        entry = DescribeConfigsRequest.DescribeConfigsResource

        def request(some: list[ConfigResource]) -> DescribeConfigsRequest:
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
                include_synonyms=include_synonyms and version >= SOURCES_SINCE,
                include_documentation=include_documentation,
            )

        chosen = ConfigFilterType.build_from("modified" if config_filter is None else config_filter)
        replies: list[DescribeConfigsResponse] = []

        def read(response: DescribeConfigsResponse) -> dict[ResourceKey, DescribedResource]:
            replies.append(response)
            return {
                (ConfigResourceType(found.resource_type), found.resource_name): DescribedResource.of_entry(
                    found,
                    resource_type=ConfigResourceType(found.resource_type),
                    configs={
                        setting.name: described
                        for setting in found.configs
                        if chosen.selects(described := ConfigEntry.of(setting, found.resource_type, version))
                    },
                )
                for found in response.results
            }

        described = await self._ask_owners(resources, request, read, deadline, "describe_configs()", DescribedResource)
        result = DescribeConfigsResult(described, replies, filtered=config_filter is not None)
        if raise_errors:
            raise_failed(described, result)
        return result

    @call
    async def alter_configs(
        self,
        config_resources: Iterable[ConfigResource],
        validate_only: bool = False,
        raise_on_unknown: bool = True,
        incremental: bool | None = None,
        timeout_ms: float | None = None,
        *,
        raise_errors: bool = True,
    ) -> AlterConfigsResult:
        """Change the settings of resources that are named, and leave their other settings as they are.

        A value may be a pair of an `AlterConfigOp` and a value; None takes a setting back to its default. Before Kafka
        2.3, or with ``incremental=False``, the present settings are read, merged and written as a whole, which can lose
        what another client changes meanwhile. Settings that a broker does not know raise, unless `raise_on_unknown` is
        false, or the client is connected to controllers, which do not know the settings of brokers.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.admin import ConfigResource
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         admin.alter_configs([ConfigResource("TOPIC", "events", {"retention.ms": 60_000})])
        {'topic': {'events': 'OK'}}
        """
        deadline = self._core.deadline(timeout_ms)
        resources = as_config_resources(config_resources)
        await self._core.require(deadline, AlterConfigsRequest.API_KEY, 0, "alter_configs()", "0.11")
        versions = await self._core.versions(deadline)
        if incremental and not versions.reaches(ApiKey.IncrementalAlterConfigs):
            raise self._core.unsupported("incremental=True", "2.3")
        if incremental is None:
            incremental = versions.reaches(ApiKey.IncrementalAlterConfigs)
        changes = {resource.key: changes_of(resource) for resource in resources}
        if raise_on_unknown and not self._core.client.of_controllers:
            await self._check_config_names([one for one in resources if one.node_id is not None], deadline)
        if not incremental:
            changes = await self._merged_configs(resources, changes, deadline)
        return await self._change_configs(
            resources, changes, deadline, validate_only, raise_errors, incremental=incremental
        )

    async def incremental_alter_configs(
        self,
        config_resources: Iterable[ConfigResource],
        validate_only: bool = False,
        timeout_ms: float | None = None,
        *,
        raise_errors: bool = True,
    ) -> AlterConfigsResult:
        """Change settings: `alter_configs` by the name that it has in Java, never by reading and writing all (2.3)."""
        return await self.alter_configs(
            config_resources,
            validate_only,
            raise_on_unknown=False,
            incremental=True,
            timeout_ms=timeout_ms,
            raise_errors=raise_errors,
        )

    @call
    async def replace_configs(
        self,
        config_resources: Iterable[ConfigResource],
        validate_only: bool = False,
        timeout_ms: float | None = None,
        *,
        raise_errors: bool = True,
    ) -> AlterConfigsResult:
        """Give resources the settings that are named, and take all others back to their defaults."""
        deadline = self._core.deadline(timeout_ms)
        resources = as_config_resources(config_resources)
        await self._core.require(deadline, AlterConfigsRequest.API_KEY, 0, "replace_configs()", "0.11")
        changes = {resource.key: changes_of(resource) for resource in resources}
        return await self._change_configs(resources, changes, deadline, validate_only, raise_errors, incremental=False)

    @call
    async def reset_configs(
        self,
        config_resources: Iterable[ConfigResource],
        validate_only: bool = False,
        raise_on_unknown: bool = True,
        incremental: bool | None = None,
        timeout_ms: float | None = None,
        *,
        raise_errors: bool = True,
    ) -> AlterConfigsResult:
        """Reset the settings of resources that `configs` names, or all that were set, to their defaults."""
        deadline = self._core.deadline(timeout_ms)
        resources = as_config_resources(config_resources)
        found = await self._own_configs([resource for resource in resources if resource.configs is None], deadline)
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
        return await self.alter_configs(
            given, validate_only, raise_on_unknown, incremental, timeout_ms=deadline, raise_errors=raise_errors
        )

    @call
    async def list_config_resources(
        self, resource_types: Iterable[ConfigResourceType | str] | None = None, timeout_ms: float | None = None
    ) -> dict[str, list[str]]:
        """Return the names of resources that have a configuration, by kind (Kafka 4.1)."""
        deadline = self._core.deadline(timeout_ms)
        wanted = None if resource_types is None else [ConfigResourceType.build_from(one) for one in resource_types]
        versions = await self._core.versions(deadline)
        if not versions.reaches(ApiKey.ListConfigResources, 1):
            raise self._core.unsupported("list_config_resources()", "4.1")
        request = ListConfigResourcesRequest(resource_types=[int(one) for one in wanted or ()])
        response = await self._core.ask(request, deadline, "list_config_resources()", checked=True)
        found: dict[str, list[str]] = {}
        for resource in response.config_resources:
            found.setdefault(kind_name(ConfigResourceType(resource.resource_type)), []).append(resource.resource_name)
        return found

    # On the client's loop…

    async def _ask_owners(
        self,
        resources: list[ConfigResource],
        request: Callable[[list[ConfigResource]], Request[ResponseT]],
        read: Callable[[ResponseT], Mapping[ResourceKey, I]],
        deadline: float,
        what: str,
        kind: type[I],
        *,
        changes: bool = False,
    ) -> Results[I]:
        """Ask each broker about its own settings, and any broker about the rest, at the same time.

        A client of controllers asks the active one to change settings of brokers too.
        """
        by_controller = changes and self._core.client.of_controllers
        by_key = {resource.key: resource for resource in resources}

        async def locate(left: list[ResourceKey], _: float) -> Places[ResourceKey]:
            places: dict[int | None, list[ResourceKey]] = {}
            for key in left:
                places.setdefault(None if by_controller else by_key[key].node_id, []).append(key)
            return places, {}

        def passing(answer: object) -> bool:
            moved = isinstance(getattr(answer, "error", None), (NotControllerError, ThrottlingQuotaExceededError))
            return moved or (isinstance(answer, KafkaError) and answer.retriable)

        found = await self._core.decide(
            list(by_key),
            locate,
            lambda keys: request([by_key[key] for key in keys]),
            read,
            deadline,
            what,
            passing=passing,
        )
        return Results(
            kind.failure(answer, resource_type=key[0], resource_name=key[1], configs={})
            if isinstance(answer, KafkaError)
            else answer
            for key, answer in found.items()
        )

    async def _change_configs(
        self,
        resources: list[ConfigResource],
        changes: dict[tuple[ConfigResourceType, str], dict[str, tuple[AlterConfigOp, str | None]]],
        deadline: float,
        validate_only: bool,
        raise_errors: bool,
        *,
        incremental: bool,
    ) -> AlterConfigsResult:
        kind = _ALTER[incremental]

        def setting(name: str, operation: AlterConfigOp, value: str | None) -> object:
            more = {"config_operation": int(operation)} if incremental else {}
            return kind.AlterableConfig(name=name, value=value, **more)

        def request(some: list[ConfigResource]) -> Request[Response]:
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

        def read(response: Response) -> dict[ResourceKey, AlteredResource]:
            return {
                (ConfigResourceType(found.resource_type), found.resource_name): AlteredResource.of_entry(
                    found, resource_type=ConfigResourceType(found.resource_type)
                )
                for found in response.responses
            }

        items = await self._ask_owners(
            resources, request, read, deadline, "alter_configs()", AlteredResource, changes=True
        )
        result = AlterConfigsResult(items)
        if raise_errors:
            raise_failed(items, result)
        return result

    async def _check_config_names(self, brokers: list[ConfigResource], deadline: float) -> None:
        """Raise for settings that a broker does not have: it would store them without a word."""
        if not brokers:
            return
        plain = [ConfigResource(resource.resource_type, resource.name) for resource in brokers]
        found = await self.describe_configs(plain, config_filter="all", timeout_ms=deadline)
        known = {(item.resource_type, item.resource_name): item.configs for item in found.resources}
        for resource in brokers:
            has = known[resource.key]
            for name in resource.configs or ():
                listener, setting = _split_listener(name)
                # A setting of one mechanism has the mechanism's name between the listener's and its own.
                if not has.keys().isdisjoint({name, setting, setting.partition(".")[2]}) or name in _LISTED_ONCE_SET:
                    continue
                from difflib import get_close_matches

                near = get_close_matches(setting, has, n=1)
                hint = f": did you mean {listener + near[0]!r}?" if near else ""
                raise InvalidConfigurationError(f"broker {resource.name} has no setting {name!r}{hint}")

    async def _own_configs(
        self, resources: list[ConfigResource], deadline: float
    ) -> dict[ResourceKey, dict[str, ConfigEntry]]:
        """Return the settings that were set for the resources themselves."""
        if not resources:
            return {}
        plain = [ConfigResource(resource.resource_type, resource.name) for resource in resources]
        found = await self.describe_configs(plain, config_filter="dynamic", timeout_ms=deadline)
        own = {}
        for item in found.resources:
            source = own_source(item.resource_type, item.resource_name)
            own[item.resource_type, item.resource_name] = {
                name: entry for name, entry in item.configs.items() if entry.config_source is source
            }
        return own

    async def _merged_configs(
        self,
        resources: list[ConfigResource],
        changes: dict[tuple[ConfigResourceType, str], dict[str, tuple[AlterConfigOp, str | None]]],
        deadline: float,
    ) -> dict[ResourceKey, Changes]:
        """Return all settings as they will be; what another client changes meanwhile is lost."""
        merged = {}
        for key, own in (await self._own_configs(resources, deadline)).items():
            values = changed_values({name: entry.value for name, entry in own.items()}, changes[key])
            hidden = [name for name, value in values.items() if value is None]
            if hidden:
                raise InvalidConfigurationError(
                    f"{kind_name(key[0])} {key[1]!r} has settings whose values brokers hide, and which would be lost: "
                    f"{', '.join(hidden)}; give their values too"
                )
            merged[key] = {name: (AlterConfigOp.SET, value) for name, value in values.items()}
        return merged


def _split_listener(name: str) -> tuple[str, str]:
    """Return the prefix of one listener, which brokers list only where it is set, and the setting itself.

    >>> _split_listener("listener.name.internal.ssl.keystore.location")
    ('listener.name.internal.', 'ssl.keystore.location')
    >>> _split_listener("log.retention.ms")
    ('', 'log.retention.ms')
    """
    found = _LISTENER.match(name)
    return (found[0], name[found.end() :]) if found else ("", name)
