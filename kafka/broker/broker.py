"""The broker as a user meets it: starting and stopping a cluster, and the commands that tests give to it.

Every method may be called from any thread; the work is done on the broker's thread (``cluster.thread``).
"""

from __future__ import annotations

import asyncio
import inspect
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from kafka._arguments import check_callable, check_time
from kafka.broker import batches
from kafka.broker.cluster.thread import ClusterThread, Snapshot
from kafka.broker.cluster.topics import move_leader
from kafka.broker.faults import ErrorLike, Interceptor, Order, SeenRequest, error_codes
from kafka.broker.options import ClusterOptions, check_options, check_topic, text_of
from kafka.broker.security.acls import Permission, bindings_of
from kafka.broker.server.node import ListenerOptions, Node, format_address
from kafka.broker.server.versions import ApiKeyLike, api_key_of
from kafka.broker.storage.cleaner import LogCleaner
from kafka.errors import IllegalArgumentError, KafkaTimeoutError
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    import ssl
    from uuid import UUID

    from typing_extensions import Self

    from kafka.broker.cluster.cluster import Cluster
    from kafka.broker.cluster.telemetry import PushedMetrics
    from kafka.broker.groups.service import GroupService
    from kafka.broker.security.service import Security
    from kafka.broker.sharing.share_partition import ShareRecord
    from kafka.record.consumer_record import ConsumerRecord

__all__ = ["Broker", "Snapshot"]

T = TypeVar("T")


class Broker:
    """A Kafka cluster in this process, on loopback: one node or several.

    >>> with Broker(nodes=3, topics={"events": 3}) as broker:
    ...     servers = broker.bootstrap_servers
    >>> len(servers.split(","))
    3

    Nodes are numbered from 1. Records are kept in memory, or with ``data_dir`` on disk, where the next broker finds
    them again. ``configs`` are broker options under Kafka's names. ``as_version`` has it advertise what that release of
    Kafka does. ``port`` is the first node's, the others follow; 0 means any free ones. ``advertise``, a host or
    ``host:port``, is the address that clients connect to where it differs from ``host`` and ``port``; for 0.0.0.0 and
    ``::`` it is the loopback address unless it is given. ``ssl_context`` (a server's) has
    it speak TLS; ``sasl``, triples of mechanism, user and password, has it ask clients who they are.
    """

    def __init__(
        self,
        nodes: int = 1,
        topics: Mapping[str, int] | Iterable[str] = (),
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        advertise: str | None = None,
        data_dir: str | Path | None = None,
        fsync: bool = False,
        configs: Mapping[str, object] | None = None,
        as_version: str | None = None,
        racks: Sequence[str] = (),
        ssl_context: ssl.SSLContext | None = None,
        sasl: Sequence[tuple[str, str, str]] = (),
        seed: int | None = None,
    ) -> None:
        options = ClusterOptions(
            nodes=nodes,
            topics=check_options(nodes, port, topics, sasl, as_version),
            listener=ListenerOptions(host, ssl_context, needs_sasl=bool(sasl), advertise=advertise),
            port=port,
            data_dir=None if data_dir is None else Path(data_dir),
            fsync=fsync,
            configs={name: text_of(value) for name, value in (configs or {}).items()},
            as_version=as_version,
            racks=list(racks),
            sasl=list(sasl),
            seed=seed,
        )
        self._node_count = nodes
        self._thread = ClusterThread(options)
        #: The broker's time, which a test may advance, stop and resume.
        self.clock = self._thread.clock

    if not TYPE_CHECKING:  # type checkers look at the options of __init__

        def __new__(cls, *_args: object, **options: Any) -> Self:
            """Refuse an unknown option, and name the nearest known one."""
            known = [name for name in inspect.signature(cls.__init__).parameters if name != "self"]
            for name in options:
                if name not in known:
                    near = get_close_matches(name, known, n=1)
                    hint = f"did you mean {near[0]!r}?" if near else f"it takes {', '.join(known)}"
                    raise TypeError(f"{cls.__name__}() has no option {name!r}; {hint}")
            return super().__new__(cls)

    # Starting and stopping

    def start(self) -> Self:
        """Start the nodes; return once all of them take connections."""
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop all nodes and free everything; does nothing if the broker is closed already."""
        self._thread.close()

    def __repr__(self) -> str:
        where = f"at {self.bootstrap_servers}" if self._thread.is_running else "not running"
        return f"<Broker nodes={self._node_count} {where}>"

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # Snapshots

    def snapshot(self) -> Snapshot:
        """Remember the state of the cluster for :meth:`restore`, as a fixture does that several tests share."""
        return self._thread.snapshot()

    def restore(self, snapshot: Snapshot) -> None:
        """Make the cluster what it was at a snapshot, at the same addresses; it is as if all nodes had restarted.

        Connections are closed. All nodes run, the clock goes by the system's time, orders of tests (``fail``,
        ``delay``, ``intercept``) are taken back, ``requests`` is empty. Topics, configuration, groups, committed
        offsets, transactions, users, rights and advertised versions come from the snapshot. Three things stay:
        records written to a topic that the snapshot has, leader epochs, and producer ids that were given out.
        """
        self._thread.restore(snapshot)

    @property
    def cluster(self) -> Cluster:
        """The state of the cluster, for what has no method here; use it in an interceptor or in ``run`` only."""
        return self._thread.cluster

    def run(self, call: Callable[[Cluster], T]) -> T:
        """Run ``call(cluster)`` on the broker's loop and return what it returns.

        >>> with Broker(topics=["events"]) as broker:
        ...     broker.run(lambda cluster: sorted(cluster.topics))
        ['events']
        """
        return self._thread.call(call, self.cluster)

    # Addresses

    @property
    def bootstrap_servers(self) -> str:
        """The addresses of all nodes, as clients take them: the advertised ones."""
        return ",".join(format_address(node.host, node.port) for node in self.cluster.nodes.values())

    @property
    def listeners(self) -> str:
        """The addresses that the nodes listen on."""
        listeners = [node.listener for node in self.cluster.nodes.values()]
        return ",".join(format_address(each.host, each.port) for each in listeners)

    @property
    def node_ids(self) -> list[int]:
        """The numbers of the nodes."""
        return sorted(self.cluster.nodes)

    def port(self, node: int = 1) -> int:
        """The port that a node listens on."""
        return self._node(node).listener.port

    def _node(self, node: int) -> Node:
        found = self.cluster.nodes.get(node)
        if found is None:
            known = sorted(self.cluster.nodes)
            raise IllegalArgumentError(f"node {node!r} does not exist: nodes are numbered from 1, these are {known}")
        return found

    # Faults

    def fail(
        self, api: ApiKeyLike, errors: ErrorLike | Iterable[ErrorLike] = (), times: int = 1, node: int | None = None
    ) -> Order:
        """Answer the next requests of an API with an error; nothing of what they ask for is done.

        An error is a code, Kafka's name of it, or a class or instance of :mod:`kafka.errors`. Several are given in
        turn, where None lets one request through; all of it ``times`` over.

        The reply has the shape in which Kafka sends that error: at each partition, topic or member where it is theirs,
        at the top where it is the whole reply's. It waits for a request that asks for something that can have it.

        >>> with Broker() as broker, broker.fail("Produce", "NOT_LEADER_OR_FOLLOWER", times=2):
        ...     pass
        """
        codes = deque(error_codes(errors) * times)
        if not codes:
            raise IllegalArgumentError(
                "fail() needs at least one error, such as 'NOT_LEADER_OR_FOLLOWER', at least one time"
            )
        return self._order(api, node, errors=codes, times=None)

    def _order(self, api: ApiKeyLike | None, node: int | None, **options: Any) -> Order:
        if node is not None:
            self._node(node)
        return self._thread.call(self.cluster.faults.add, api, node=node, **options)

    def intercept(
        self,
        api: ApiKeyLike | None,
        call: Interceptor,
        *,
        before: bool = False,
        times: int | None = None,
        node: int | None = None,
    ) -> Order:
        """Have ``call(exchange)`` see each request of an API (of any API with None) and its reply.

        What it returns takes the reply's place; None leaves the reply, ``faults.NO_REPLY`` and ``faults.CLOSE`` do what
        they say. With ``before`` it is asked before the request is served, and an answer means that it is not.
        It runs on the broker's loop: it must not block.
        """
        check_callable("the function of intercept()", call)
        return self._order(api, node, interceptor=call, before=before, times=times)

    def delay(
        self, api: ApiKeyLike | None, seconds: float, *, times: int | None = None, node: int | None = None
    ) -> Order:
        """Have requests of an API wait, on the broker's clock, before they are served."""
        check_time("the time of a delay", seconds, unit="seconds")
        return self._order(api, node, delay=seconds, times=times)

    def drop_connections(self, node: int | None = None, *, api: ApiKeyLike | None = None, times: int = 1) -> int:
        """Cut all connections, of one node or all, and return how many; with ``api``, the next to use it."""
        if api is not None:
            self._order(api, node, drops=True, times=times)
            return 0
        nodes = [self._node(node)] if node is not None else list(self.cluster.nodes.values())
        return self._thread.call(lambda: sum(found.listener.drop() for found in nodes))

    def clear_faults(self) -> None:
        """Take back all that ``fail``, ``intercept``, ``delay`` and ``drop_connections`` have ordered."""
        self._thread.call(self.cluster.faults.clear)

    def advertise(self, api: ApiKeyLike, low: int, high: int) -> None:
        """Serve an API in these versions only; with ``high`` below ``low`` not at all."""
        self._thread.call(self.cluster.apis.advertise, api, low, high)

    @property
    def requests(self) -> list[SeenRequest]:
        """The requests that have come, oldest first (the latest, up to 16 MiB of them)."""
        return self._thread.call(self.cluster.faults.seen)

    def asked(self, api: ApiKeyLike, client_id: str | None = None) -> list[Any]:
        """Return the requests of one API that have come, of one client or of all, oldest first.

        >>> from kafka import KafkaProducer
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, acks=1) as producer:
        ...         _ = producer.send("events", b"hello")
        ...     [request.acks for request in broker.asked("Produce")]
        [1]
        """
        key = api_key_of(api)
        return [seen.request for seen in self.requests if seen.api_key == key and client_id in (None, seen.client_id)]

    def forget_requests(self) -> None:
        """Empty :attr:`requests`."""
        self._thread.call(self.cluster.faults.forget)

    # Nodes and leaders

    def stop_node(self, node: int, *, crash: bool = False) -> None:
        """Take a node away: its connections close (with ``crash`` without a goodbye), others lead its partitions."""
        found = self._node(node)

        def stop() -> None:
            if found.is_running:
                found.stop(crash=crash)
                self.cluster.nodes_changed()

        self._thread.call(stop)

    def start_node(self, node: int) -> None:
        """Bring a node back, on the port it had."""
        found = self._node(node)

        def start() -> None:
            if not found.is_running:
                found.start()
                self.cluster.nodes_changed()

        self._thread.call(start)

    def leader(self, topic: str, partition: int = 0) -> int:
        """The node that leads a partition; -1 if none does."""
        return self._thread.call(lambda: self.cluster.existing_partition(topic, partition).leader)

    def move_leader(self, tp: TopicPartition | tuple[str, int], node: int) -> None:
        """Have a node lead a partition."""
        self._node(node)

        def move() -> None:
            partition = self.cluster.existing_partition(*tp)
            move_leader(partition, node)
            self.cluster.save_topic(partition.topic)

        self._thread.call(move)

    def shuffle_leaders(self) -> None:
        """Give every partition another leader, where there is another node to lead it."""
        self._thread.call(self.cluster.shuffle_leaders)

    def rehash_coordinators(self) -> None:
        """Move every group and transactional id to another coordinator, where there is another node."""
        self._thread.call(self.cluster.coordinators.rehash)

    # Groups

    def group_members(self, group: str) -> dict[str, str]:
        """The members of a group: the client's name by the member's id."""
        return self._thread.call(lambda: self._groups().client_ids(group))

    def wait_for_group(self, group: str, members: int | None = None, timeout: float = 10.0) -> dict[str, str]:
        """Wait until a group is stable, with that many members or any; return what :meth:`group_members` returns.

        Raises :class:`~kafka.errors.KafkaTimeoutError`, which has the group's state, after ``timeout`` seconds of real
        time. Members take part in a rebalance while they poll, so another thread must do that meanwhile.
        """
        return self._wait(lambda: self._groups().wait_until_stable(group, members, timeout), timeout)

    def expire_member(self, group: str, member: str | None = None) -> None:
        """End a member's session as if it had been silent for too long.

        ``member`` is the member's id or its client's name; with None it is the only one.
        """
        self._thread.call(lambda: self._groups().expire_member(group, member))

    def share_records(self, group: str, topic: str, partition: int = 0) -> dict[int, ShareRecord]:
        """The records that a share group has in delivery, by offset; finished ones before the first are left out.

        A record is ``available`` (again), ``acquired`` by a member, ``acknowledged`` or ``archived``: rejected, or
        released after its last delivery.

        >>> with Broker(topics=["jobs"]) as broker:
        ...     broker.share_records("workers", "jobs")
        {}
        """

        def look() -> dict[int, ShareRecord]:
            read = self.cluster.existing_partition(topic, partition)
            sessions = self._groups().share_sessions_at(read.leader)
            return {} if sessions is None else sessions.records(group, read)

        return self._thread.call(look)

    def client_metrics(self) -> dict[UUID, PushedMetrics]:
        """What each client has pushed last of its metrics (KIP-714), by its client instance id.

        Clients push if the broker has the configuration ``metric.reporters`` and a resource CLIENT_METRICS names
        metrics.

        >>> with Broker(configs={"metric.reporters": "com.example.Reporter"}) as broker:
        ...     broker.client_metrics()
        {}
        """
        from kafka.broker.cluster.telemetry import Telemetry

        return self._thread.call(lambda: self.cluster.service(Telemetry).pushed())

    def expire_share_locks(self, group: str, topic: str, partition: int = 0) -> None:
        """End the locks of all records that members of a share group have, as if the time were up."""

        def expire() -> None:
            read = self.cluster.existing_partition(topic, partition)
            sessions = self._groups().share_sessions_at(read.leader)
            found = None if sessions is None else sessions.partition(group, (read.topic.id, partition))
            if found is not None:
                found.expire_locks()

        self._thread.call(expire)

    # Users and their rights

    def add_user(self, user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> None:
        """Let a user log in, or change the password of one; the broker must have a user of that mechanism (``sasl``).

        >>> with Broker(sasl=[("SCRAM-SHA-256", "admin", "secret")]) as broker:
        ...     broker.add_user("alice", "wonderland")
        """

        def add() -> None:
            security = self._security()
            if mechanism not in security.mechanisms:
                offered = ", ".join(security.mechanisms) or "none"
                raise IllegalArgumentError(
                    f"clients cannot use {mechanism} at this broker (mechanisms: {offered}): start it with a user of"
                    f" it, as sasl=[({mechanism!r}, 'admin', 'secret')]"
                )
            security.add_user(mechanism, user, password)

        self._thread.call(add)

    def allow(self, user: str, *operations: str, **resource: str) -> None:
        """Allow a user operations on a topic, a group or another resource, by ACLs as an administrator creates them.

        The resource is ``topic``, ``group``, ``transactional_id`` or ``cluster="kafka-cluster"``; a name that ends with
        ``*`` stands for all names that begin so. A user is a name, or a principal with its type; ``User:ANONYMOUS`` is
        a client that has not logged in. From the first call on, what no ACL allows is refused to all but the principals
        in the option ``super.users``.

        >>> with Broker(topics=["orders"], configs={"super.users": "User:admin"}) as broker:
        ...     broker.allow("alice", "read", "describe", topic="orders")
        ...     broker.allow("alice", "read", group="billing-*")
        """
        self._bind(user, operations, resource, Permission.ALLOW)

    def deny(self, user: str, *operations: str, **resource: str) -> None:
        """Deny a user operations, whatever else allows them; see :meth:`allow`."""
        self._bind(user, operations, resource, Permission.DENY)

    def _bind(self, user: str, operations: Sequence[str], resource: Mapping[str, str], permission: Permission) -> None:
        bindings = bindings_of(user, operations, resource, permission)

        def bind() -> None:
            access = self._security().control_access()
            for binding in bindings:
                access.create(binding)

        self._thread.call(bind)

    def _security(self) -> Security:
        from kafka.broker.security.service import Security

        return self.cluster.service(Security)

    def _groups(self) -> GroupService:
        # Imported here: a broker that no group uses starts without the group coordinator.
        from kafka.broker.groups.service import GroupService

        return self.cluster.service(GroupService)

    # Topics

    def create_topic(
        self, name: str, partitions: int = 1, replication_factor: int = 1, configs: Mapping[str, object] | None = None
    ) -> None:
        """Create a topic; one of this name is replaced, with its records."""
        check_topic(name, partitions)
        settings = {key: text_of(value) for key, value in (configs or {}).items()}
        self._thread.call(self.cluster.create_topic, name, partitions, replication_factor, settings)

    def delete_topic(self, name: str) -> None:
        """Delete a topic and its records."""
        self._thread.call(lambda: self.cluster.delete_topic(self.cluster.existing_topic(name)))

    # Records

    def append(
        self,
        topic: str,
        value: bytes | str | None = None,
        *,
        key: bytes | str | None = None,
        headers: Mapping[str, bytes | str | None] | Iterable[tuple[str, bytes | str | None]] = (),
        partition: int | None = 0,
        timestamp_ms: int | None = None,
        raw: bool = False,
    ) -> int:
        """Append one record to a partition; return its offset.

        The topic's configuration holds as for a producer: what it refuses (a record that is too large, or has no key in
        a compacted topic) is the producer's error here, and compression and LogAppendTime are applied. With ``raw`` the
        record is stored as it is, like what an older configuration has left. A topic that does not exist is created,
        unless ``auto.create.topics.enable`` is off.

        With ``partition=None`` the key's hash chooses the partition, as producers do, and a record without a key goes
        where the fewest records are.

        >>> with Broker(topics=["events"]) as broker:
        ...     broker.append("events", "a"), broker.append("events", "b", key="k", headers={"trace": "1"})
        (0, 1)
        """
        return self.append_many(topic, [(key, value, headers)], partition=partition, timestamp_ms=timestamp_ms, raw=raw)

    def append_many(
        self,
        topic: str,
        records: Iterable[object],
        *,
        partition: int | None = 0,
        timestamp_ms: int | None = None,
        raw: bool = False,
    ) -> int:
        """Append records, as one batch for each partition; return the first one's offset.

        A record is a value, or a tuple of key and value, or of key, value and headers. ``partition`` is that of all of
        them; with None each goes where its key leads, as in :meth:`append`, which says what ``raw`` does. More records
        than ``max.message.bytes`` allows make several batches; if one of these is refused, nothing is appended.
        """
        if isinstance(records, (str, bytes, bytearray, memoryview, Mapping)):
            raise TypeError(f"append_many() takes a list of records, not {type(records).__name__}; append() takes one")
        rows = [batches.fields_of(record) for record in records]
        if not rows:
            raise IllegalArgumentError("append_many() needs at least one record")

        return self._thread.call(
            batches.append, self.cluster, topic, rows, partition=partition, timestamp_ms=timestamp_ms, raw=raw
        )

    def records(self, topic: str, partition: int | None = None, *, committed: bool = False) -> list[ConsumerRecord]:
        """Return the records of a topic, or of one partition of it: what readers see, with ``committed`` what readers
        of committed transactions see.

        >>> with Broker(topics=["events"]) as broker:
        ...     offset = broker.append("events", b"hello")
        ...     [record.value for record in broker.records("events")]
        [b'hello']
        """

        def read() -> list[ConsumerRecord]:
            found = self.cluster.existing_topic(topic)
            wanted = found.partitions if partition is None else [self.cluster.existing_partition(topic, partition)]
            return [record for one in wanted for record in batches.decode(one, committed=committed)]

        return self._thread.call(read)

    def wait_for(
        self, topic: str, count: int = 1, timeout: float = 10.0, *, committed: bool = False
    ) -> list[ConsumerRecord]:
        """Wait until a topic has ``count`` records, and return all that it has then; it need not be there yet.

        Raises :class:`~kafka.errors.KafkaTimeoutError`, which says how many there are, after ``timeout`` seconds of
        real time. With ``committed`` records of open and aborted transactions do not count.

        >>> with Broker(topics=["events"]) as broker:
        ...     offset = broker.append("events", b"hello")
        ...     [record.value for record in broker.wait_for("events", 1)]
        [b'hello']
        """
        return self._wait(
            lambda: batches.wait_for_records(self.cluster, topic, count, timeout, committed=committed), timeout
        )

    def _wait(self, begin: Callable[[], Coroutine[Any, Any, T]], timeout: float) -> T:
        """Return what comes within that many seconds of real time."""

        async def wait() -> T:
            return await begin()

        stopped = asyncio._get_running_loop()  # noqa: SLF001 - get_running_loop() raises where none runs
        try:
            return self._thread.wait(wait(), timeout + 60)
        except KafkaTimeoutError as error:
            if stopped is None:
                raise
            why = "this thread's event loop stood still meanwhile, and its clients: use asyncio.to_thread()"
            raise KafkaTimeoutError(f"{error.args[0]}; {why}") from None

    def committed(self, group: str, topic: str, partition: int = 0) -> int | None:
        """The offset that a group has committed for a partition; None if it has committed none.

        >>> with Broker(topics=["events"]) as broker:
        ...     print(broker.committed("billing", "events"))
        None
        """
        return self._thread.call(lambda: self._groups().committed_offset(group, TopicPartition(topic, partition)))

    def offsets(self, topic: str, partition: int = 0) -> tuple[int, int, int]:
        """Return start, last stable offset and end of a partition."""
        log = self._thread.call(self.cluster.existing_partition, topic, partition).log
        return self._thread.call(lambda: (log.start_offset, log.stable_offset, log.end_offset))

    def apply_retention(self) -> None:
        """Remove now what is older or more than the topics' configuration allows."""
        self._thread.wait(self.cluster.service(LogCleaner).apply_retention())

    def compact(self) -> int:
        """Compact all compacted topics now, but for the segment at each end; return how many bytes that saved."""
        return self._thread.wait(self.cluster.service(LogCleaner).compact(always=True))

    def roll(self, topic: str) -> None:
        """Begin a new segment in each partition of a topic: earlier segments can be compacted or removed."""
        for one in self._thread.call(self.cluster.existing_topic, topic).partitions:
            self._thread.call(one.log.roll)
