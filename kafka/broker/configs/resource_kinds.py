"""The kinds of resources that have a configuration: topics, brokers, groups, and subscriptions to client metrics.

Each kind knows its options, reads and keeps the values that are set for one resource, and refuses values in Kafka's
words. The loggers of a broker, which are a kind too, are in ``loggers``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka.broker.cluster.quorum import CONTROLLER_LISTENER
from kafka.broker.cluster.topics import name_problem
from kafka.broker.configs import MIN_ISR, Source, Value, broker_option
from kafka.broker.configs.definitions import (
    BROKER_OPTIONS,
    CLIENT_METRICS_OPTIONS,
    GROUP_OPTIONS,
    REPLICATION_QUOTAS,
    SETTABLE_TOPIC_OPTIONS,
    TOPIC_OPTIONS,
)
from kafka.broker.configs.option import Kind, Option, check_value, parse_list
from kafka.errors import InvalidConfigurationError, InvalidRequestError, InvalidTopicError, UnknownTopicOrPartitionError

if TYPE_CHECKING:
    from kafka.broker.cluster.cluster import Cluster

#: The tables of the store with the values of groups and of subscriptions.
GROUP_TABLE: Final = "group_configs"
METRICS_TABLE: Final = "client_metrics"

#: Options of TLS that Kafka changes at run time for single listeners only.
_OF_LISTENERS: Final = re.compile(r"ssl\.(keystore\..+|truststore\..+|key\.password)")
#: Options of Kafka's authorizer, which its brokers do not know and do not describe.
_OF_AUTHORIZER: Final = frozenset({"allow.everyone.if.no.acl.found", "super.users"})
#: Options that each broker has for itself.
_OF_ONE_BROKER: Final = frozenset({"listeners", "listener.security.protocol.map"})


class Described(NamedTuple):
    """An option of a resource with all its values, the one in force first."""

    option: Option
    values: list[Value]
    is_read_only: bool = False
    is_sensitive: bool = False


class Change(NamedTuple):
    """One change: what to do with which option."""

    name: str
    operation: int
    value: str | None


class ResourceKind:
    """One kind of resources in a cluster; ``node_id`` is the node that is asked."""

    #: The type of an option decides whether words can be appended to it; Kafka's controller knows some types only.
    appends = True

    def __init__(self, cluster: Cluster, node_id: int) -> None:
        self.cluster = cluster
        self.node_id = node_id

    def describe(self, name: str) -> list[Described]:
        """Return the options of a resource."""
        raise NotImplementedError

    def own(self, name: str) -> dict[str, str]:
        """Return the values that are set for the resource itself."""
        raise NotImplementedError

    def option(self, name: str) -> Option:
        """Return an option, or raise the error for one that the kind does not have."""
        raise NotImplementedError

    def check_change(self, name: str, option: Option, *, deletes: bool) -> None:
        """Raise if this option of the resource cannot be changed."""

    def check(self, values: Mapping[str, str]) -> None:
        """Raise if these values cannot be set together."""
        for key, value in values.items():
            check_value(self.option(key), value)

    def check_exists(self, name: str) -> None:
        """Raise if there is no such resource, once its changes are known to be valid."""

    def keep(self, name: str, values: dict[str, str]) -> None:
        """Replace the values that are set."""
        raise NotImplementedError


class _Topics(ResourceKind):
    def describe(self, name: str) -> list[Described]:
        _check_name(name)
        topic = self.cluster.topic(name)
        if topic is None:
            raise UnknownTopicOrPartitionError("")
        return [
            Described(option, self.cluster.configs.topic_values(option, topic.configs, self.node_id))
            for option in TOPIC_OPTIONS.values()
        ]

    def own(self, name: str) -> dict[str, str]:
        _check_name(name)
        topic = self.cluster.topic(name)
        return {} if topic is None else dict(topic.configs)

    def check_exists(self, name: str) -> None:
        if self.cluster.topic(name) is None:
            raise UnknownTopicOrPartitionError(f"The topic '{name}' does not exist.")

    def option(self, name: str) -> Option:
        return _known(SETTABLE_TOPIC_OPTIONS, "topic", name)

    def check(self, values: Mapping[str, str]) -> None:
        super().check(values)
        self.cluster.configs.check_lags(values)

    def keep(self, name: str, values: dict[str, str]) -> None:
        topic = self.cluster.topics[name]
        topic.configs = values
        self.cluster.save_topic(topic)
        self.cluster.configs_changed(topic)


class _Brokers(ResourceKind):
    def describe(self, name: str) -> list[Described]:
        configs = self.cluster.configs
        if not name:
            shared = configs.dynamic(None).items()
            return [self._row(broker_option(key), [Value(key, value, _SHARED)]) for key, value in shared]
        _check_node(self.node_id, name, " or empty string")
        options = {key: option for key, option in BROKER_OPTIONS.items() if key not in _OF_AUTHORIZER}
        for key in (*configs.dynamic(self.node_id), *configs.dynamic(None)):
            options.setdefault(key, broker_option(key))
        facts = _facts(self.cluster, self.node_id)
        return [self._row(option, self._values(facts, option)) for option in options.values()]

    def _row(self, option: Option, values: list[Value]) -> Described:
        # Kafka says of options that it does not find in its own table that they cannot be changed.
        is_listed = option.name in BROKER_OPTIONS or option.name in REPLICATION_QUOTAS
        found = _row(option, values)
        return found if is_listed else found._replace(is_read_only=True)

    def _values(self, facts: Mapping[str, str | None], option: Option) -> list[Value]:
        values = self.cluster.configs.broker_values(option, self.node_id)
        fact = facts.get(option.name)
        return values if fact is None else [Value(option.name, fact, Source.STATIC_BROKER), values[-1]]

    def own(self, name: str) -> dict[str, str]:
        if name:
            _check_node(self.node_id, name)
        return self.cluster.configs.dynamic(self.node_id if name else None)

    def option(self, name: str) -> Option:
        return broker_option(name)

    def check_change(self, name: str, option: Option, *, deletes: bool) -> None:
        key = option.name
        if not option.is_dynamic:
            raise InvalidRequestError(f"Cannot update these configs dynamically: [{key}]")
        if not name and key in _OF_ONE_BROKER and not deletes:
            raise InvalidRequestError(
                f"Cannot update these configs at default cluster level, broker id must be specified: [{key}]"
            )
        if _OF_LISTENERS.fullmatch(key) and not deletes:
            raise InvalidRequestError(
                "These security configs can be dynamically updated only per-listener using the listener prefix:"
                f" [{key}]"
            )
        if key == MIN_ISR and self.cluster.configs.has_eligible_leaders():
            if name:
                raise InvalidConfigurationError(f"Broker-level {MIN_ISR} cannot be altered while ELR is enabled.")
            if deletes:
                raise InvalidConfigurationError(f"Cluster-level {MIN_ISR} cannot be removed while ELR is enabled.")

    def check(self, values: Mapping[str, str]) -> None:
        try:
            super().check(values)
        except InvalidConfigurationError as error:
            raise InvalidRequestError(*error.args) from None

    def keep(self, name: str, values: dict[str, str]) -> None:
        self.cluster.configs.set_dynamic(self.node_id if name else None, values)
        self.cluster.configs_changed()


class _Groups(ResourceKind):
    appends = False

    def describe(self, name: str) -> list[Described]:
        if not name:
            raise InvalidRequestError("Group name must not be empty")
        own = self.cluster.store.table(GROUP_TABLE).get(name, {})
        return [
            _row(option, [*_set(own, option.name, Source.GROUP), self._default(option)])
            for option in GROUP_OPTIONS.values()
        ]

    def _default(self, option: Option) -> Value:
        of_brokers = option.broker_name
        if of_brokers is None:
            return Value(option.name, option.default, Source.DEFAULT)
        return Value(of_brokers, self.cluster.configs.broker_value(of_brokers), Source.DEFAULT)

    def own(self, name: str) -> dict[str, str]:
        if not name:
            raise InvalidRequestError("Default group resources are not allowed.")
        return dict(self.cluster.store.table(GROUP_TABLE).get(name, {}))

    def option(self, name: str) -> Option:
        return _known(GROUP_OPTIONS, "group", name)

    def check(self, values: Mapping[str, str]) -> None:
        super().check(values)
        limits = self.cluster.configs.broker_int
        for key, value in values.items():
            option = GROUP_OPTIONS[key]
            if option.least is not None and int(value) < limits(option.least):
                raise InvalidConfigurationError(f"{key} must be greater than or equal to {option.least}")
            if option.most is not None and int(value) > limits(option.most):
                raise InvalidConfigurationError(f"{key} must be less than or equal to {option.most}")

    def keep(self, name: str, values: dict[str, str]) -> None:
        _store(self.cluster, GROUP_TABLE, name, values)
        self.cluster.group_configs_changed(name)


class _ClientMetrics(ResourceKind):
    appends = False
    _INTERVALS: Final = range(100, 3_600_001)
    _MATCHES: Final = frozenset(
        {
            "client_id",
            "client_instance_id",
            "client_software_name",
            "client_software_version",
            "client_source_address",
            "client_source_port",
        }
    )

    def describe(self, name: str) -> list[Described]:
        if not name:
            raise InvalidRequestError("Client metrics subscription name must not be empty")
        own = self.cluster.store.table(METRICS_TABLE).get(name, {})
        rows = []
        for option in CLIENT_METRICS_OPTIONS.values():
            # Kafka lists no synonym of a default here, which is how a value without a name is described.
            default = Value("", option.default, Source.DEFAULT)
            rows.append(_row(option, _set(own, option.name, Source.CLIENT_METRICS) or [default]))
        return rows

    def own(self, name: str) -> dict[str, str]:
        if not name:
            raise InvalidRequestError("Subscription name can't be empty")
        return dict(self.cluster.store.table(METRICS_TABLE).get(name, {}))

    def option(self, name: str) -> Option:
        found = CLIENT_METRICS_OPTIONS.get(name)
        if found is None:
            raise InvalidRequestError(f"Unknown client metrics configuration: {name}")
        return found

    def check(self, values: Mapping[str, str]) -> None:
        super().check(values)
        interval = values.get("interval.ms")
        if interval is not None and int(interval) not in self._INTERVALS:
            least, most = self._INTERVALS[0], self._INTERVALS[-1]
            raise InvalidRequestError(
                f"Invalid value {interval} for interval.ms, interval must be between {least} and {most} (1 hour)"
            )
        for word in parse_list(values.get("match", "")):
            name, equals, pattern = word.partition("=")
            if not equals or name.strip() not in self._MATCHES or not _is_pattern(pattern.strip()):
                raise InvalidConfigurationError(f"Illegal client matching pattern: {word}")

    def keep(self, name: str, values: dict[str, str]) -> None:
        _store(self.cluster, METRICS_TABLE, name, values)


_SHARED: Final = Source.DYNAMIC_DEFAULT_BROKER
TOPIC, BROKER, CLIENT_METRICS, GROUP = 2, 4, 16, 32
_KINDS: Final[dict[int, type[ResourceKind]]] = {
    TOPIC: _Topics,
    BROKER: _Brokers,
    CLIENT_METRICS: _ClientMetrics,
    GROUP: _Groups,
}


def kind_of(number: int, cluster: Cluster, node_id: int) -> ResourceKind | None:
    """Return the kind of resources with Kafka's number for it."""
    found = _KINDS.get(number)
    return None if found is None else found(cluster, node_id)


def _row(option: Option, values: list[Value]) -> Described:
    # Kafka hides the value of an option that it does not know.
    is_sensitive = option.kind in (Kind.PASSWORD, Kind.UNKNOWN)
    return Described(option, values, not option.is_dynamic, is_sensitive)


def _set(own: Mapping[str, str], name: str, source: Source) -> list[Value]:
    return [Value(name, own[name], source)] if name in own else []


def _known(options: Mapping[str, Option], noun: str, name: str) -> Option:
    found = options.get(name)
    if found is None:
        raise InvalidConfigurationError(f"Unknown {noun} config name: {name}")
    return found


def _check_name(name: str) -> None:
    problem = name_problem(name)
    if problem:
        raise InvalidTopicError(problem)


def _check_node(asked: int, name: str, alternative: str = "") -> None:
    """Raise if ``name`` is not the node that is asked: each answers for itself alone."""
    try:
        node_id = int(name)
    except ValueError:
        raise InvalidRequestError(f"Broker id must be an integer, but it is: {name}") from None
    if node_id != asked:
        raise InvalidRequestError(f"Unexpected broker id, expected {asked}{alternative}, but received {name}")


def _facts(cluster: Cluster, node_id: int) -> dict[str, str | None]:
    """Return the options that follow from how the broker was started."""
    node = cluster.nodes[node_id]
    protocol = node.listener.options.protocol
    address = f"{protocol}://{node.host}:{node.port}"
    voters = (cluster.nodes[number] for number in sorted(cluster.nodes))
    return {
        "advertised.listeners": address,
        "broker.id": str(node_id),
        "broker.rack": node.rack,
        "controller.listener.names": CONTROLLER_LISTENER,
        "controller.quorum.voters": ",".join(f"{voter.node_id}@{voter.host}:{voter.port}" for voter in voters),
        "inter.broker.listener.name": protocol,
        "listeners": address,
        "log.dirs": cluster.storage.directory_name,
        "node.id": str(node_id),
        "process.roles": "broker,controller",
    }


def _store(cluster: Cluster, table: str, name: str, values: dict[str, str]) -> None:
    if values:
        cluster.store.table(table)[name] = values
    else:
        cluster.store.table(table).pop(name, None)


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except re.error:
        return False
    return True
