"""`KafkaAdminClient`: checks arguments and waits in the caller's thread for the coroutines of the other modules."""

from __future__ import annotations

import itertools
from collections.abc import Coroutine, Iterable, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

from kafka._arguments import check_time
from kafka._runtime.network_thread import ThreadDriver
from kafka.admin.cluster import Cluster, ClusterDescription
from kafka.admin.config_resource import (
    AlterConfigsResult,
    ConfigFilterType,
    ConfigResource,
    ConfigResourceType,
    DescribeConfigsResult,
    Outcome,
    as_config_resources,
)
from kafka.admin.configs import Configs
from kafka.admin.core import AdminCore
from kafka.admin.group_description import GroupDescription, GroupDescriptions
from kafka.admin.groups import Groups, ListedGroups, as_groups, as_offsets, as_partitions
from kafka.admin.resources import NewPartitions, NewTopic, as_new_partitions, as_new_topics, as_topics
from kafka.admin.results import Results
from kafka.admin.topics import (
    CreatePartitionsResult,
    CreateTopicsResult,
    DeleteTopicsResult,
    TopicDescription,
    Topics,
)
from kafka.config import Config, defaults, resolve
from kafka.errors import ClientClosedError, KafkaError, NoError
from kafka.net.environment import Environment
from kafka.structs import GroupInformation, OffsetAndMetadata, TopicPartition

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["KafkaAdminClient"]

T = TypeVar("T")

_NUMBERS: Final = itertools.count(1)
# How long a call may clean up after its deadline, in seconds.
_GRACE: Final = 0.05


class KafkaAdminClient:
    """Looks at a cluster and changes it.

    ::

        admin = KafkaAdminClient(bootstrap_servers="localhost:9092")
        admin.create_topics([NewTopic("events", num_partitions=3)])
        admin.close()

    Keyword arguments are the options in ``KafkaAdminClient.DEFAULT_CONFIG``. The constructor connects, and raises
    `NoBrokersAvailable` if no broker answers by ``bootstrap_timeout_ms``; with 0 the first call connects. Safe for use
    from any number of threads. As a context manager it is closed at the end of the block.

    Each call ends by `timeout_ms` (``default_api_timeout_ms`` by default), which covers all attempts: a controller or a
    leader that moves meanwhile is looked up again. A call about several items raises the first error of an item;
    ``error.results`` has the outcome of each. With ``raise_errors=False`` it returns the outcomes, errors among them.
    """

    DEFAULT_CONFIG: Final[dict[str, Any]] = defaults("admin")

    def __init__(self, *, environment: Environment | None = None, **configs: Any) -> None:
        if configs.get("client_id") is None:
            configs = {**configs, "client_id": f"purekafka-admin-{next(_NUMBERS)}"}
        config = resolve("admin", configs)
        self.config: Config = config
        self._core = core = AdminCore(config, environment)
        self._client = core.client
        self._driver = ThreadDriver(core.loop, f"kafka-admin-{config['client_id']}")
        self._metrics: Any = None
        self._topics = Topics(core)
        self._cluster = Cluster(core)
        self._configs = Configs(core)
        self._groups = Groups(core)
        self._descriptions = GroupDescriptions(core, self._groups)
        try:
            if config["metrics_enabled"]:
                from kafka.net.registry import make_metrics

                self._metrics = make_metrics(config, core.client)
            limit = core.loop.time() + core.client.settings.discovery_timeout + 1
            self._driver.run(core.begin(), limit, "connecting to the cluster")
        except BaseException:
            self.close()
            raise

    def _run(self, coroutine: Coroutine[Any, Any, T], timeout: float, what: str) -> T:
        if self._core.loop.closed:
            coroutine.close()
            raise ClientClosedError("This admin client is closed.")
        return self._driver.run(coroutine, self._core.loop.time() + timeout + _GRACE, what)

    def _timeout(self, timeout_ms: float | None) -> float:
        if timeout_ms is not None:
            check_time("timeout_ms", timeout_ms)
        return self._core.timeout(timeout_ms)

    # Topics…

    def list_topics(self, timeout_ms: float | None = None) -> list[str]:
        """Return the names of all topics.

        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         admin.list_topics()
        ['events']
        """
        timeout = self._timeout(timeout_ms)
        return self._run(self._topics.names(self._core.loop.time() + timeout), timeout, "list_topics()")

    def describe_topics(
        self, topics: Iterable[str | UUID] | None = None, timeout_ms: float | None = None
    ) -> Results[TopicDescription]:
        """Describe topics by name or id, or all of them; an unknown topic has an ``error_code`` and raises nothing.

        >>> from kafka.broker import Broker
        >>> with Broker(topics={"events": 2}) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         topic, unknown = admin.describe_topics(["events", "evnets"])
        >>> topic.name, [partition["leader_id"] for partition in topic["partitions"]]
        ('events', [1, 1])
        >>> unknown.ok, unknown.error.message
        (False, 'UNKNOWN_TOPIC_OR_PARTITION')
        """
        wanted = None if topics is None else as_topics(topics)
        timeout = self._timeout(timeout_ms)
        return self._run(self._topics.describe(wanted, self._core.loop.time() + timeout), timeout, "describe_topics()")

    def create_topics(
        self,
        new_topics: Iterable[NewTopic | str] | Mapping[str, Any],
        timeout_ms: float | None = None,
        validate_only: bool = False,
        *,
        raise_errors: bool = True,
        wait_for_metadata: bool = False,
    ) -> CreateTopicsResult:
        """Create topics, or with `validate_only` check whether they could be.

        `new_topics` has `NewTopic` objects or names, or is a dict from name to a dict that may have ``num_partitions``,
        ``replication_factor``, ``assignments`` and ``configs``. With `wait_for_metadata` the call returns when every
        broker knows a leader for each partition, so that the topics can be written to at once.

        >>> from kafka.broker import Broker
        >>> with Broker() as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...     created = admin.create_topics({"events": {"num_partitions": 3}}, wait_for_metadata=True)
        >>> created.topics[0].num_partitions, created.topic_errors
        (3, [('events', 0, None)])
        """
        wanted = as_new_topics(new_topics)
        timeout = self._timeout(timeout_ms)
        call = self._topics.create(
            wanted, timeout, validate_only=validate_only, raise_errors=raise_errors, wait=wait_for_metadata
        )
        return self._run(call, timeout, "create_topics()")

    def delete_topics(
        self, topics: Iterable[str | UUID], timeout_ms: float | None = None, *, raise_errors: bool = True
    ) -> DeleteTopicsResult:
        """Delete topics by name or id.

        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         admin.delete_topics(["events"]).topic_error_codes
        [('events', 0)]
        """
        wanted = as_topics(topics)
        timeout = self._timeout(timeout_ms)
        return self._run(self._topics.delete(wanted, timeout, raise_errors=raise_errors), timeout, "delete_topics()")

    def create_partitions(
        self,
        topic_partitions: Mapping[str, NewPartitions | int | Mapping[str, Any]],
        timeout_ms: float | None = None,
        validate_only: bool = False,
        *,
        raise_errors: bool = True,
    ) -> CreatePartitionsResult:
        """Raise the number of partitions of topics to a total, or with `validate_only` check whether that is possible.

        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         result = admin.create_partitions({"events": 4})
        ...         len(admin.describe_topics(["events"])[0].partitions)
        4
        """
        wanted = as_new_partitions(topic_partitions)
        timeout = self._timeout(timeout_ms)
        call = self._topics.add_partitions(wanted, timeout, validate_only=validate_only, raise_errors=raise_errors)
        return self._run(call, timeout, "create_partitions()")

    def wait_for_topics(self, topics: Iterable[str], timeout_ms: float = 10_000) -> None:
        """Wait until every broker knows a leader for each partition of the topics.

        `KafkaTimeoutError` names the topics that are not ready in time.
        """
        names = [str(topic) for topic in as_topics(topics)]
        timeout = self._timeout(timeout_ms)
        self._run(self._topics.wait_for(names, self._core.loop.time() + timeout), timeout, "wait_for_topics()")

    # The cluster…

    def describe_cluster(
        self,
        timeout_ms: float | None = None,
        *,
        include_authorized_operations: bool = False,
        include_fenced_brokers: bool = False,
    ) -> ClusterDescription:
        """Describe the cluster: its id, its controller and its brokers.

        >>> from kafka.broker import Broker
        >>> with Broker(nodes=3) as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...     cluster = admin.describe_cluster()
        >>> [node.broker_id for node in cluster.brokers]
        [1, 2, 3]
        """
        timeout = self._timeout(timeout_ms)
        call = self._cluster.describe(
            self._core.loop.time() + timeout,
            include_operations=include_authorized_operations,
            include_fenced=include_fenced_brokers,
        )
        return self._run(call, timeout, "describe_cluster()")

    # Configuration…

    def describe_configs(
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

        >>> from kafka.admin import ConfigResource
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         found = admin.describe_configs([ConfigResource("TOPIC", "events")], config_filter="all")
        >>> found["topic"]["events"]["cleanup.policy"].value
        'delete'
        """
        wanted = as_config_resources(config_resources)
        chosen = None if config_filter is None else ConfigFilterType.build_from(config_filter)
        timeout = self._timeout(timeout_ms)
        call = self._configs.describe(
            wanted,
            self._core.loop.time() + timeout,
            config_filter=chosen,
            synonyms=include_synonyms,
            documentation=include_documentation,
            raise_errors=raise_errors,
        )
        return self._run(call, timeout, "describe_configs()")

    def alter_configs(
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
        false.

        >>> from kafka.admin import ConfigResource
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         admin.alter_configs([ConfigResource("TOPIC", "events", {"retention.ms": 60_000})])
        {'topic': {'events': 'OK'}}
        """
        wanted = as_config_resources(config_resources)
        timeout = self._timeout(timeout_ms)
        call = self._configs.alter(
            wanted,
            self._core.loop.time() + timeout,
            validate_only=validate_only,
            raise_on_unknown=raise_on_unknown,
            incremental=incremental,
            raise_errors=raise_errors,
        )
        return self._run(call, timeout, "alter_configs()")

    def replace_configs(
        self,
        config_resources: Iterable[ConfigResource],
        validate_only: bool = False,
        timeout_ms: float | None = None,
        *,
        raise_errors: bool = True,
    ) -> AlterConfigsResult:
        """Give resources the settings that are named, and take all others back to their defaults."""
        wanted = as_config_resources(config_resources)
        timeout = self._timeout(timeout_ms)
        call = self._configs.replace(
            wanted, self._core.loop.time() + timeout, validate_only=validate_only, raise_errors=raise_errors
        )
        return self._run(call, timeout, "replace_configs()")

    def reset_configs(
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
        wanted = as_config_resources(config_resources)
        timeout = self._timeout(timeout_ms)
        call = self._configs.reset(
            wanted,
            self._core.loop.time() + timeout,
            validate_only=validate_only,
            raise_on_unknown=raise_on_unknown,
            incremental=incremental,
            raise_errors=raise_errors,
        )
        return self._run(call, timeout, "reset_configs()")

    def list_config_resources(
        self, types: Iterable[ConfigResourceType | str] | None = None, timeout_ms: float | None = None
    ) -> dict[str, list[str]]:
        """Return the names of resources that have a configuration, by kind (Kafka 4.1)."""
        wanted = None if types is None else [ConfigResourceType.build_from(one) for one in types]
        timeout = self._timeout(timeout_ms)
        call = self._configs.resources(wanted, self._core.loop.time() + timeout)
        return self._run(call, timeout, "list_config_resources()")

    # Groups…

    def list_groups(
        self,
        broker_ids: Iterable[int] | None = None,
        states_filter: Iterable[str] = (),
        types_filter: Iterable[str] = (),
        timeout_ms: float | None = None,
        *,
        raise_errors: bool = True,
    ) -> ListedGroups:
        """List the groups of all brokers, or of some, in these states and of these types.

        A broker that does not answer raises its error; with ``raise_errors=False`` the groups of the others are
        returned, with the errors by broker in ``failed``.

        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         committed = admin.alter_group_offsets("readers", {("events", 0): 0})
        ...         [(group.group_id, group.group_state) for group in admin.list_groups()]
        [('readers', 'Empty')]
        """
        brokers = None if broker_ids is None else list(broker_ids)
        timeout = self._timeout(timeout_ms)
        call = self._groups.list_all(
            brokers,
            list(states_filter),
            list(types_filter),
            self._core.loop.time() + timeout,
            raise_errors=raise_errors,
        )
        return self._run(call, timeout, "list_groups()")

    def list_consumer_groups(
        self, broker_ids: Iterable[int] | None = None, timeout_ms: float | None = None
    ) -> list[tuple[str, str]]:
        """List the groups as pairs of name and protocol type, as kafka-python 2 does."""
        return [(group.group_id, group.protocol_type) for group in self.list_groups(broker_ids, timeout_ms=timeout_ms)]

    def describe_groups(
        self,
        group_ids: Iterable[str],
        group_coordinator_id: int | None = None,
        include_authorized_operations: bool = False,
        timeout_ms: float | None = None,
    ) -> dict[str, GroupDescription]:
        """Describe classic groups and consumer groups: their state and their members.

        What the coordinator refuses is in ``error`` of the group, and raises nothing.

        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         committed = admin.alter_group_offsets("readers", {("events", 0): 7})
        ...         group = admin.describe_groups(["readers"])["readers"]
        >>> group.group_state, group.members
        ('Empty', [])
        """
        groups = as_groups(group_ids)
        timeout = self._timeout(timeout_ms)
        call = self._descriptions.describe(
            groups,
            self._core.loop.time() + timeout,
            group_coordinator_id,
            include_operations=include_authorized_operations,
        )
        return self._run(call, timeout, "describe_groups()")

    def describe_consumer_groups(
        self,
        group_ids: Iterable[str],
        group_coordinator_id: int | None = None,
        include_authorized_operations: bool = False,
        timeout_ms: float | None = None,
    ) -> list[GroupInformation]:
        """Describe groups as kafka-python 2 does; an unknown group is ``Dead``, other errors are raised."""
        found = self.describe_groups(group_ids, group_coordinator_id, include_authorized_operations, timeout_ms)
        return [group.as_information() for group in found.values()]

    def delete_groups(
        self, group_ids: Iterable[str], group_coordinator_id: int | None = None, timeout_ms: float | None = None
    ) -> dict[str, Outcome]:
        """Delete groups without members; return ``OK`` or the text of the error for each.

        >>> from kafka.broker import Broker
        >>> with Broker() as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...     admin.delete_groups(["readers"])["readers"].error.message
        'GROUP_ID_NOT_FOUND'
        """
        groups = as_groups(group_ids)
        timeout = self._timeout(timeout_ms)
        call = self._groups.delete(groups, self._core.loop.time() + timeout, group_coordinator_id)
        return self._run(call, timeout, "delete_groups()")

    def delete_consumer_groups(
        self, group_ids: Iterable[str], group_coordinator_id: int | None = None, timeout_ms: float | None = None
    ) -> list[tuple[str, type[KafkaError]]]:
        """Delete groups without members; return pairs of name and error class, as kafka-python 2 does."""
        found = self.delete_groups(group_ids, group_coordinator_id, timeout_ms)
        return [(group, type(outcome.error) if outcome.error else NoError) for group, outcome in found.items()]

    def list_group_offsets(
        self,
        group_specs: str | Iterable[str] | Mapping[str, Iterable[TopicPartition] | None],
        timeout_ms: float | None = None,
    ) -> dict[str, dict[TopicPartition, OffsetAndMetadata]]:
        """Return the committed offsets of a group, of groups, or of some partitions of groups.

        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         committed = admin.alter_group_offsets("readers", {("events", 0): 7})
        ...         admin.list_group_offsets("readers")["readers"][("events", 0)].offset
        7
        """
        if isinstance(group_specs, str):
            group_specs = [group_specs]
        wanted: dict[str, list[TopicPartition] | None]
        if isinstance(group_specs, Mapping):
            as_groups(group_specs)
            wanted = {
                group: None if partitions is None else as_partitions(partitions)
                for group, partitions in group_specs.items()
            }
        else:
            wanted = dict.fromkeys(as_groups(group_specs))
        timeout = self._timeout(timeout_ms)
        return self._run(
            self._groups.offsets(wanted, self._core.loop.time() + timeout), timeout, "list_group_offsets()"
        )

    def list_consumer_group_offsets(
        self,
        group_id: str,
        group_coordinator_id: int | None = None,
        partitions: Iterable[TopicPartition] | None = None,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, OffsetAndMetadata]:
        """Return the committed offsets of one group, as kafka-python 2 does; -1 for a partition without one."""
        (group,) = as_groups([group_id])
        wanted = None if partitions is None else as_partitions(partitions)
        timeout = self._timeout(timeout_ms)
        call = self._groups.offsets({group: wanted}, self._core.loop.time() + timeout, group_coordinator_id)
        return self._run(call, timeout, "list_consumer_group_offsets()")[group]

    def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, OffsetAndMetadata | int] | Mapping[tuple[str, int], OffsetAndMetadata | int],
        group_coordinator_id: int | None = None,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, type[KafkaError]]:
        """Commit offsets for a group without members; return the error class of each partition."""
        (group,), wanted = as_groups([group_id]), as_offsets(offsets)
        timeout = self._timeout(timeout_ms)
        call = self._groups.alter_offsets(group, wanted, self._core.loop.time() + timeout, group_coordinator_id)
        return self._run(call, timeout, "alter_group_offsets()")

    def delete_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[TopicPartition],
        group_coordinator_id: int | None = None,
        timeout_ms: float | None = None,
    ) -> dict[TopicPartition, type[KafkaError]]:
        """Delete committed offsets of topics that no member is subscribed to; return each partition's error class."""
        (group,), wanted = as_groups([group_id]), as_partitions(partitions)
        timeout = self._timeout(timeout_ms)
        call = self._groups.delete_offsets(group, wanted, self._core.loop.time() + timeout, group_coordinator_id)
        return self._run(call, timeout, "delete_group_offsets()")

    # Looking at the client, and ending…

    def bootstrap_connected(self) -> bool:
        """Whether there is a connection to any broker."""
        return any(link.ready for link in self._client.links())

    def metrics(self, raw: bool = False) -> Any:
        """Return the metrics: names and values by group, or with `raw` the metrics themselves; None if they are off."""
        if self._metrics is None:
            return None
        return dict(self._metrics.metrics if raw else self._metrics.snapshot())

    def health(self) -> dict[str, Any]:
        """Return what works and what does not, and why: for people, probes and dashboards; `json.dumps` takes it."""
        return self._client.health()

    def close(self) -> None:
        """End the connections; a call that another thread waits for fails. Closing twice does nothing."""
        self._driver.close()
        if self._metrics is not None:
            self._metrics.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<KafkaAdminClient {self.config['client_id']} of {self._client.cluster}>"
