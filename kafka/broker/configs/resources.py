"""Describing and changing the configuration of resources: topics, brokers, groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka.broker.cluster.topics import name_problem
from kafka.broker.configs import Source, Value
from kafka.broker.configs.definitions import (
    BROKER_OPTIONS,
    GROUP_OPTIONS,
    SETTABLE_TOPIC_OPTIONS,
    TOPIC_OPTIONS,
    Kind,
    Option,
)
from kafka.broker.configs.values import check_value, parse_list
from kafka.broker.security.acls import CLUSTER_NAME, Operation, Resource
from kafka.errors import (
    BrokerResponseError,
    Code,
    InvalidConfigurationError,
    InvalidRequestError,
    InvalidTopicError,
    UnknownError,
    UnknownTopicOrPartitionError,
)

if TYPE_CHECKING:
    from kafka.broker.cluster.cluster import Cluster
    from kafka.broker.server.call import Call

__all__ = ["BROKER", "GROUP", "TOPIC", "Change", "Described", "alter", "alter_all", "describe"]

TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
GROUP: Final = 32

SET, DELETE, APPEND, SUBTRACT = range(4)
_OPTIONS: Final = {TOPIC: SETTABLE_TOPIC_OPTIONS, BROKER: BROKER_OPTIONS, GROUP: GROUP_OPTIONS}
#: What Kafka says where it does not say more.
_MALFORMED: Final = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details."
)
_KINDS: Final = {TOPIC: "topic", BROKER: "broker", GROUP: "group"}


class Described(NamedTuple):
    """An option of a resource with all its values, the one in force first."""

    option: Option
    values: list[Value]
    is_read_only: bool


class Change(NamedTuple):
    """One change: what to do with which option."""

    name: str
    operation: int
    value: str | None


def describe(cluster: Cluster, node_id: int, kind: int, name: str, keys: Iterable[str] | None) -> list[Described]:
    """Return the options of a resource, all of them or those named."""
    if kind == TOPIC:
        rows = _describe_topic(cluster, node_id, name)
    elif kind == BROKER:
        rows = _describe_broker(cluster, node_id, name)
    elif kind == GROUP:
        rows = _describe_group(cluster, name)
    else:
        raise InvalidRequestError(_MALFORMED)
    wanted = set(keys or ())
    return [row for row in rows if not wanted or row.option.name in wanted]


def _describe_topic(cluster: Cluster, node_id: int, name: str) -> list[Described]:
    problem = name_problem(name)
    if problem:
        raise InvalidTopicError(problem)
    topic = cluster.topic(name)
    if topic is None:
        raise UnknownTopicOrPartitionError("")
    return [
        Described(option, cluster.configs.topic_values(option, topic.configs, node_id), False)
        for option in TOPIC_OPTIONS.values()
    ]


def _describe_broker(cluster: Cluster, asked: int, name: str) -> list[Described]:
    if not name:
        own = cluster.configs.dynamic(None)
        return [
            Described(option, [Value(option.name, own[option.name], Source.DYNAMIC_DEFAULT_BROKER)], False)
            for option in BROKER_OPTIONS.values()
            if option.name in own
        ]
    node_id = _own_id(asked, name, " or empty string")
    return [
        Described(option, _of_node(cluster, option, node_id), not option.is_dynamic)
        for option in BROKER_OPTIONS.values()
    ]


def _of_node(cluster: Cluster, option: Option, node_id: int) -> list[Value]:
    node = cluster.nodes[node_id]
    address = f"{node.listener.options.protocol}://{node.host}:{node.port}"
    facts = {
        "node.id": str(node_id),
        "broker.id": str(node_id),
        "broker.rack": node.rack,
        "listeners": address,
        "advertised.listeners": address,
        "log.dirs": cluster.storage.directory_name,
    }
    values = cluster.configs.broker_values(option, node_id)
    fact = facts.get(option.name)
    return values if fact is None else [Value(option.name, fact, Source.STATIC_BROKER), values[-1]]


def _own_id(asked: int, name: str, alternative: str = "") -> int:
    """Return the node that ``name`` is; raise if it is not the one that is asked: each answers for itself alone."""
    try:
        node_id = int(name)
    except ValueError:
        raise InvalidRequestError(f"Broker id must be an integer, but it is: {name}") from None
    if node_id != asked:
        raise InvalidRequestError(f"Unexpected broker id, expected {asked}{alternative}, but received {name}")
    return node_id


def _describe_group(cluster: Cluster, name: str) -> list[Described]:
    if not name:
        raise InvalidRequestError("Default group resources are not allowed.")
    own = cluster.store.table("group_configs").get(name, {})
    rows = []
    for option in GROUP_OPTIONS.values():
        values = [Value(option.name, own[option.name], Source.GROUP)] if option.name in own else []
        values.append(Value(option.name, option.default, Source.DEFAULT))
        rows.append(Described(option, values, False))
    return rows


# Changing


def alter(
    cluster: Cluster,
    node_id: int,
    kind: int,
    name: str,
    changes: Iterable[Change],
    *,
    replace: bool,
    validate_only: bool,
) -> None:
    """Change the configuration of a resource, or with ``replace`` put this in the place of all that was set.

    ``node_id`` is the node that is asked.
    """
    options = _OPTIONS.get(kind)
    if options is None:
        raise InvalidRequestError(f"Unsupported resource type: {kind}")
    before = _own(cluster, node_id, kind, name)
    after = {} if replace else dict(before)
    seen: set[str] = set()
    for change in changes:
        if change.name in seen:
            raise InvalidRequestError("Error due to duplicate config keys")
        seen.add(change.name)
        _apply(options, kind, after, change)
    if not validate_only:
        _keep(cluster, kind, name, after)


def _own(cluster: Cluster, node_id: int, kind: int, name: str) -> dict[str, str]:
    """Return what is set for the resource itself."""
    if kind == TOPIC:
        problem = name_problem(name)
        if problem:
            raise InvalidTopicError(problem)
        topic = cluster.topic(name)
        if topic is None:
            raise UnknownTopicOrPartitionError(f"The topic '{name}' does not exist.")
        return dict(topic.configs)
    if kind == BROKER:
        return cluster.configs.dynamic(_own_id(node_id, name) if name else None)
    if not name:
        raise InvalidRequestError("Default group resources are not allowed.")
    return dict(cluster.store.table("group_configs").get(name, {}))


def _apply(options: Mapping[str, Option], kind: int, values: dict[str, str], change: Change) -> None:
    option = options.get(change.name)
    if option is None:
        if change.operation == DELETE and kind == TOPIC:
            return  # it is not set, as is wanted
        if kind == BROKER:  # brokers take what they do not know, for their plugins
            option = Option(change.name, Kind.STRING, None, "")
        else:
            raise InvalidConfigurationError(f"Unknown {_KINDS[kind]} config name: {change.name}")
    if kind == BROKER and not option.is_dynamic:
        raise InvalidRequestError(f"Cannot update these configs dynamically: [{change.name}]")
    if change.operation == DELETE:
        values.pop(change.name, None)
        return
    if change.value is None:
        raise InvalidRequestError(f"Null value not supported for : {change.name}")
    value = change.value
    if change.operation in {APPEND, SUBTRACT}:
        if option.kind is not Kind.LIST:
            verb = "APPEND" if change.operation == APPEND else "SUBTRACT"
            raise InvalidConfigurationError(f"Can't {verb} to key {change.name} because its type is not LIST.")
        value = _edit_list(values.get(change.name, option.default or ""), value, change.operation)
    elif change.operation != SET:
        raise UnknownError
    check_value(option, value)
    values[change.name] = value


def _edit_list(before: str, words: str, operation: int) -> str:
    have, edit = parse_list(before), parse_list(words)
    if operation == APPEND:
        return ",".join([*have, *(word for word in edit if word not in have)])
    return ",".join(word for word in have if word not in edit)


def _keep(cluster: Cluster, kind: int, name: str, values: dict[str, str]) -> None:
    if kind == TOPIC:
        topic = cluster.topics[name]
        topic.configs = values
        cluster.save_topic(topic)
        cluster.configs_changed(topic)
    elif kind == BROKER:
        cluster.configs.set_dynamic(int(name) if name else None, values)
        cluster.configs_changed()
    elif values:
        cluster.store.table("group_configs")[name] = values
    else:
        cluster.store.table("group_configs").pop(name, None)


def alter_all(call: Call, request: Any, change_of: Callable[[Any], Change], *, replace: bool) -> Any:
    """Serve AlterConfigs or IncrementalAlterConfigs; ``change_of`` reads one entry of it."""
    responses = []
    times = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    for resource in request.resources:
        kind, name = resource.resource_type, resource.resource_name
        code, message = _refusal(call, kind, name)
        if not code and times[kind, name] > 1:
            code, message = Code.INVALID_REQUEST, "Each resource must appear at most once."
        if not code:
            try:
                alter(
                    call.cluster,
                    call.node.node_id,
                    kind,
                    name,
                    [change_of(config) for config in resource.configs],
                    replace=replace,
                    validate_only=request.validate_only,
                )
            except BrokerResponseError as error:
                code, message = error.code, error.args[0] if error.args else None
        responses.append((code, message, kind, name))
    return call.response(responses=responses)


def _refusal(call: Call, kind: int, name: str) -> tuple[int, str | None]:
    if kind == TOPIC:
        if not call.allows(Operation.ALTER_CONFIGS, Resource.TOPIC, name):
            return Code.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed."
    elif not call.allows(Operation.ALTER_CONFIGS, Resource.CLUSTER, CLUSTER_NAME):
        return Code.CLUSTER_AUTHORIZATION_FAILED, "Cluster authorization failed."
    return 0, None
