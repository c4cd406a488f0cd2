"""`KafkaAdminClient`: the calls of the other modules, waited for in the caller's thread."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from kafka._core.status import ClientStatus
from kafka._runtime.network_thread import ThreadDriver, blocking, complete
from kafka.admin.acls import Acls
from kafka.admin.client_metrics import ClientMetrics
from kafka.admin.cluster import Cluster
from kafka.admin.configs import Configs
from kafka.admin.core import AdminCore
from kafka.admin.features import Features
from kafka.admin.group_description import GroupDescriptions
from kafka.admin.group_lag import GroupLags
from kafka.admin.group_offsets import GroupOffsets
from kafka.admin.groups import Groups
from kafka.admin.log_dirs import LogDirs
from kafka.admin.offsets import Offsets
from kafka.admin.quorum import Quorum
from kafka.admin.quotas import Quotas
from kafka.admin.records import Records
from kafka.admin.replicas import Replicas
from kafka.admin.requests import Requests
from kafka.admin.share_groups import ShareGroups
from kafka.admin.streams_groups import StreamsGroups
from kafka.admin.tokens import Tokens
from kafka.admin.topic_setup import TopicSetup
from kafka.admin.topics import Topics
from kafka.admin.transactions import Transactions
from kafka.admin.users import Users
from kafka.config import Config, defaults, given_options, name_client, resolve
from kafka.errors import IllegalStateError, KafkaError, KafkaTimeoutError, UnsupportedVersionError
from kafka.net.environment import Environment
from kafka.protocol.registry import APIS

if TYPE_CHECKING:
    from typing_extensions import Self, Unpack

    from kafka._core.client import Client
    from kafka._runtime.application import Application
    from kafka.future import Future
    from kafka.metrics import Metrics
    from kafka.options import AdminOptions
    from kafka.protocol.api import Request, Response

__all__ = ["AdminCalls", "AdminStatus", "KafkaAdminClient"]

T = TypeVar("T")
ResponseT = TypeVar("ResponseT", bound="Response")


class AdminCalls(
    TopicSetup,
    Cluster,
    GroupLags,
    ShareGroups,
    StreamsGroups,
    Acls,
    Quotas,
    Users,
    Tokens,
    Records,
    Replicas,
    LogDirs,
    Transactions,
    Features,
    Quorum,
    ClientMetrics,
    Requests,
):
    """Every call, as a coroutine that waits with an application."""

    def __init__(self, core: AdminCore, application: Application) -> None:
        self._core = core
        self._application = application


def _admin_config(configs: Mapping[str, object], declared: Mapping[str, object]) -> Config:
    """Return the configuration of an admin client, with a client_id."""
    given = {name: value for name, value in configs.items() if name != "client_id" or value is not None}
    config = resolve("admin", given, declared)
    name_client(config, "admin")
    return config


class AdminStatus(ClientStatus):
    """What both admin clients tell about themselves."""

    _metrics: Metrics | None = None

    def health(self) -> dict[str, Any]:
        """Return what works and what does not, and why: for people, probes and dashboards; `json.dumps` takes it.

        In the form of all clients (``docs/operations.rst``).
        """
        client = self._connections()
        return self._health_without_core() if client is None else client.health()

    def _health_without_core(self) -> dict[str, Any]:
        raise NotImplementedError

    def _measured(self) -> Metrics | None:
        return self._metrics


class KafkaAdminClient(AdminStatus):
    """Looks at a cluster and changes it.

    ::

        admin = KafkaAdminClient(bootstrap_servers="localhost:9092")
        admin.create_topics([NewTopic("events", num_partitions=3)])
        admin.close()

    Keyword arguments are the options in ``KafkaAdminClient.DEFAULT_CONFIG``. The constructor connects, and raises
    `NoBrokersAvailable` if no broker answers by ``bootstrap_timeout_ms``; with 0 it needs no broker. Safe for use
    from any number of threads. As a context manager it is closed at the end of the block.

    Each call ends by `timeout_ms` (``default_api_timeout_ms`` by default), which covers all attempts: a controller or a
    leader that moves meanwhile is looked up again. A call about several items raises the first error of an item;
    ``error.results`` has the outcome of each. With ``raise_errors=False`` it returns the outcomes, errors among them.
    Calls that describe topics, groups or users return the error of an item in its description, and
    `delete_consumer_groups` returns the pairs of kafka-python 2.
    """

    DEFAULT_CONFIG: ClassVar[dict[str, Any]] = defaults("admin")

    _complete = staticmethod(complete)

    def __init__(
        self,
        options: Mapping[str, object] | None = None,
        /,
        *,
        environment: Environment | None = None,
        **configs: Unpack[AdminOptions],
    ) -> None:
        config = _admin_config(given_options("KafkaAdminClient", options, configs), self.DEFAULT_CONFIG)
        self.config: Config = config
        self._core = core = AdminCore(config, environment)
        self._client = core.client
        self._driver = ThreadDriver(core.loop, f"kafka-admin-{config['client_id']}")
        self._calls = AdminCalls(core, self._driver)
        try:
            if config["metrics_enabled"]:
                from kafka._core.metrics import make_metrics

                self._metrics = make_metrics(config, core.client)
            complete(self._driver.run(core.begin(), None, "connecting to the cluster"))
        except BaseException:
            self.close()
            raise

    # Topics…

    ensure_topics = blocking(TopicSetup.ensure_topics)
    describe_topic_partitions = blocking(Topics.describe_topic_partitions)
    list_topics = blocking(Topics.list_topics)
    describe_topics = blocking(Topics.describe_topics)
    create_topics = blocking(Topics.create_topics)
    delete_topics = blocking(Topics.delete_topics)
    create_partitions = blocking(Topics.create_partitions)
    wait_for_topics = blocking(Topics.wait_for_topics)

    # The cluster…

    describe_cluster = blocking(Cluster.describe_cluster)

    # Configuration…

    incremental_alter_configs = blocking(Configs.incremental_alter_configs)
    describe_configs = blocking(Configs.describe_configs)
    alter_configs = blocking(Configs.alter_configs)
    replace_configs = blocking(Configs.replace_configs)
    reset_configs = blocking(Configs.reset_configs)
    list_config_resources = blocking(Configs.list_config_resources)

    # Groups…

    remove_members_from_consumer_group = blocking(GroupDescriptions.remove_members_from_consumer_group)
    group_lag = blocking(GroupLags.group_lag)
    describe_share_groups = blocking(ShareGroups.describe_share_groups)
    describe_streams_groups = blocking(StreamsGroups.describe_streams_groups)
    list_share_group_offsets = blocking(ShareGroups.list_share_group_offsets)
    alter_share_group_offsets = blocking(ShareGroups.alter_share_group_offsets)
    delete_share_group_offsets = blocking(ShareGroups.delete_share_group_offsets)
    delete_share_groups = blocking(ShareGroups.delete_share_groups)
    delete_streams_groups = blocking(StreamsGroups.delete_streams_groups)
    list_streams_group_offsets = blocking(StreamsGroups.list_streams_group_offsets)
    alter_streams_group_offsets = blocking(StreamsGroups.alter_streams_group_offsets)
    delete_streams_group_offsets = blocking(StreamsGroups.delete_streams_group_offsets)
    list_groups = blocking(Groups.list_groups)
    list_consumer_groups = blocking(Groups.list_consumer_groups)
    delete_groups = blocking(Groups.delete_groups)
    delete_consumer_groups = blocking(Groups.delete_consumer_groups)
    remove_group_members = blocking(GroupDescriptions.remove_group_members)
    describe_groups = blocking(GroupDescriptions.describe_groups)
    describe_consumer_groups = blocking(GroupDescriptions.describe_consumer_groups)
    describe_classic_groups = blocking(GroupDescriptions.describe_classic_groups)

    # Committed offsets…

    alter_consumer_group_offsets = blocking(GroupOffsets.alter_consumer_group_offsets)
    delete_consumer_group_offsets = blocking(GroupOffsets.delete_consumer_group_offsets)
    list_group_offsets = blocking(GroupOffsets.list_group_offsets)
    list_consumer_group_offsets = blocking(GroupOffsets.list_consumer_group_offsets)
    alter_group_offsets = blocking(GroupOffsets.alter_group_offsets)
    delete_group_offsets = blocking(GroupOffsets.delete_group_offsets)
    reset_group_offsets = blocking(GroupOffsets.reset_group_offsets)

    # Offsets of partitions…

    list_partition_offsets = blocking(Offsets.list_partition_offsets)
    list_offsets = blocking(Offsets.list_offsets)
    offsets_for_leader_epochs = blocking(Offsets.offsets_for_leader_epochs)

    # Access control…

    describe_acls = blocking(Acls.describe_acls)
    create_acls = blocking(Acls.create_acls)
    delete_acls = blocking(Acls.delete_acls)

    # Quotas, users and tokens…

    create_delegation_token = blocking(Tokens.create_delegation_token)
    renew_delegation_token = blocking(Tokens.renew_delegation_token)
    expire_delegation_token = blocking(Tokens.expire_delegation_token)
    describe_delegation_token = blocking(Tokens.describe_delegation_token)
    describe_user_scram_credentials = blocking(Users.describe_user_scram_credentials)
    alter_user_scram_credentials = blocking(Users.alter_user_scram_credentials)
    describe_client_quotas = blocking(Quotas.describe_client_quotas)
    alter_client_quotas = blocking(Quotas.alter_client_quotas)

    # Records…

    delete_records = blocking(Records.delete_records)

    # Replicas and log directories…

    describe_log_dirs = blocking(LogDirs.describe_log_dirs)
    describe_replica_log_dirs = blocking(LogDirs.describe_replica_log_dirs)
    alter_replica_log_dirs = blocking(LogDirs.alter_replica_log_dirs)
    elect_leaders = blocking(Replicas.elect_leaders)
    perform_leader_election = blocking(Replicas.perform_leader_election)
    alter_partition_reassignments = blocking(Replicas.alter_partition_reassignments)
    list_partition_reassignments = blocking(Replicas.list_partition_reassignments)

    # Transactions…

    list_transactions = blocking(Transactions.list_transactions)
    describe_transactions = blocking(Transactions.describe_transactions)
    describe_producers = blocking(Transactions.describe_producers)
    abort_transaction = blocking(Transactions.abort_transaction)
    fence_producers = blocking(Transactions.fence_producers)
    force_terminate_transaction = blocking(Transactions.force_terminate_transaction)
    find_hanging_transactions = blocking(Transactions.find_hanging_transactions)

    # Features, the quorum and client metrics…

    list_client_metrics_resources = blocking(ClientMetrics.list_client_metrics_resources)
    client_instance_id = blocking(ClientMetrics.client_instance_id)
    telemetry_subscription = blocking(ClientMetrics.telemetry_subscription)
    push_telemetry = blocking(ClientMetrics.push_telemetry)
    describe_metadata_quorum = blocking(Quorum.describe_metadata_quorum)
    add_raft_voter = blocking(Quorum.add_raft_voter)
    remove_raft_voter = blocking(Quorum.remove_raft_voter)
    unregister_broker = blocking(Quorum.unregister_broker)
    describe_features = blocking(Features.describe_features)
    update_features = blocking(Features.update_features)
    api_versions = blocking(Features.api_versions)
    get_broker_version_data = blocking(Features.get_broker_version_data)

    # Requests as they are…

    send_request = blocking(Requests.send_request)
    send_requests = blocking(Requests.send_requests)
    broadcast_request = blocking(Requests.broadcast_request)
    find_coordinator = blocking(Requests.find_coordinator)
    find_coordinators = blocking(Requests.find_coordinators)

    # What harnesses for kafka-python 2 call…

    def _send_request_to_node(
        self, node_id: int, request: Request[ResponseT], _wakeup: bool = True
    ) -> Future[ResponseT]:
        async def submit() -> Future[ResponseT]:
            return self._client.submit(node_id, request)

        return complete(self._driver.run(submit()))

    def _wait_for_futures(self, futures: Iterable[Future[T]]) -> None:
        deadline = self._core.deadline(None)
        for future in futures:
            if not complete(self._driver.wait(future, deadline)):
                raise KafkaTimeoutError("no response came in time")
            future.result()

    def _matching_api_version(
        self, operation: type[Request[Response]] | list[type[Request[Response]]] | tuple[type[Request[Response]], ...]
    ) -> int:
        """Return the newest version of an API, given by its request class, that both sides have."""
        kind = operation[0] if isinstance(operation, (list, tuple)) else operation

        async def version() -> int:
            found = await self._core.versions(self._core.deadline(None))
            low, high = found.ranges.get(kind.API_KEY, (0, -1))
            newest = min(high, APIS[kind.API_KEY].max_version)
            if newest < low:
                raise UnsupportedVersionError(f"the broker has no version of {kind.__name__} that this client has")
            return newest

        return complete(self._driver.run(version()))

    # Looking at the client, and ending…

    def _connections(self) -> Client:
        return self._client

    def close(self) -> None:
        """End the connections; a call that another thread waits for fails. Closing twice does nothing."""
        client = self._client
        if client.telemetry is not None and client.telemetry.subscription is not None and not client.closed:
            deadline = client.loop.time() + 1.0
            with suppress(KafkaError, IllegalStateError):
                complete(self._driver.run(client.end(deadline), deadline, "close()"))
        complete(self._driver.close())
        if self._metrics is not None:
            self._metrics.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()
