"""Log directories of brokers: their replicas and sizes, and moves from one directory to another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

from kafka.admin.calls import Calls, call
from kafka.admin.partitions import as_partitions, by_topic
from kafka.admin.results import ItemResult, Result, error_of, raise_first, raise_refused
from kafka.errors import KafkaError, NoError
from kafka.protocol.admin import AlterReplicaLogDirsRequest, DescribeLogDirsRequest, DescribeLogDirsResponse
from kafka.structs import TopicPartition, TopicPartitionReplica


class LogDir(ItemResult):
    """A directory of a broker: its topics, and the bytes of its file system (-1 before Kafka 3.3)."""

    __slots__ = ()
    _item = "log directory {0.log_dir!r}"
    _aliases: ClassVar = {"path": "log_dir"}
    log_dir: str
    total_bytes: int
    usable_bytes: int
    is_cordoned: bool
    topics: list[Result]


class BrokerLogDirs(Result):
    """The directories of a broker."""

    __slots__ = ()
    broker: int
    log_dirs: list[LogDir]


class DescribedLogDirs(list[BrokerLogDirs]):
    """The directories of each broker that answered; `failed` has the errors of the others.

    `log_dirs` has the directories of all brokers, as entries of the response.
    """

    __slots__ = ("failed", "log_dirs")

    def __init__(self, responses: Mapping[int, DescribeLogDirsResponse | KafkaError]) -> None:
        answers = {broker: one for broker, one in responses.items() if not isinstance(one, KafkaError)}
        super().__init__(
            BrokerLogDirs(broker=broker, log_dirs=[_log_dir(entry) for entry in response.results])
            for broker, response in answers.items()
        )
        self.failed: dict[int, KafkaError] = {
            broker: one for broker, one in responses.items() if isinstance(one, KafkaError)
        }
        self.log_dirs: list[DescribeLogDirsResponse.DescribeLogDirsResult] = [
            entry for response in answers.values() for entry in response.results
        ]

    @property
    def ok(self) -> bool:
        """Whether every broker answered."""
        return not self.failed


class ReplicaLogDir(Result):
    """Where a replica is stored, None if it is not known, and where it moves to.

    The lags are the records that the present, or the future, copy is behind the end of the log.
    """

    __slots__ = ()
    current_log_dir: str | None
    current_offset_lag: int
    future_log_dir: str | None
    future_offset_lag: int


class LogDirs(Calls):
    """The calls about log directories."""

    @call
    async def describe_log_dirs(
        self,
        topic_partitions: Mapping[str, Iterable[int]] | Iterable[TopicPartition] | None = None,
        brokers: Iterable[int] | None = None,
        timeout_ms: float | None = None,
        *,
        raise_errors: bool = True,
    ) -> DescribedLogDirs:
        """Describe the log directories of all brokers, or of some, with all topics, or some partitions (Kafka 1.0).

        A broker that does not answer raises its error; with ``raise_errors=False`` the directories of the others are
        returned, with the errors by broker in ``failed``.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         found = admin.describe_log_dirs()
        >>> [(one.broker, [topic.name for topic in one.log_dirs[0].topics]) for one in found]
        [(1, ['events'])]
        """
        deadline = self._core.deadline(timeout_ms)
        wanted = None if topic_partitions is None else as_partitions(topic_partitions)
        nodes = None if brokers is None else list(brokers)
        nodes = await self._core.brokers(deadline) if nodes is None else nodes
        found = DescribedLogDirs(await self._log_dirs_of(deadline, dict.fromkeys(nodes, wanted)))
        if raise_errors:
            raise_first(found.failed.values(), found)
        return found

    async def _log_dirs_of(
        self, deadline: float, wanted: Mapping[int, list[TopicPartition] | None]
    ) -> dict[int, DescribeLogDirsResponse | KafkaError]:
        kind = DescribeLogDirsRequest
        await self._core.require(deadline, kind.API_KEY, 0, "describe_log_dirs()", "1.0")

        def request(node: int) -> DescribeLogDirsRequest:
            partitions = wanted[node]
            return kind(topics=None if partitions is None else by_topic(partitions, "topic", "partitions"))

        return await self._core.ask_each(wanted, request, deadline, "describe_log_dirs()", checked=True)

    @call
    async def describe_replica_log_dirs(
        self, replicas: Iterable[TopicPartitionReplica], timeout_ms: float | None = None, *, raise_errors: bool = True
    ) -> dict[TopicPartitionReplica, ReplicaLogDir]:
        """Return the log directory of each replica (Kafka 1.0).

        With ``raise_errors=False`` the replicas of a broker that does not answer have its error.
        """
        deadline = self._core.deadline(timeout_ms)
        wanted = [_replica(one) for one in replicas]
        responses = await self._log_dirs_of(deadline, _by_broker(wanted))
        found: dict[TopicPartitionReplica, Any] = {
            replica: ReplicaLogDir(
                current_log_dir=None, current_offset_lag=-1, future_log_dir=None, future_offset_lag=-1
            )
            for replica in wanted
        }
        for broker, response in responses.items():
            if isinstance(response, KafkaError):
                found.update((replica, response) for replica in wanted if replica.broker_id == broker)
                continue
            for entry in response.results:
                for topic in entry.topics:
                    for part in topic.partitions:
                        place = found.get(TopicPartitionReplica(topic.name, part.partition_index, broker))
                        if place is not None:
                            prefix = "future" if part.is_future_key else "current"
                            place[f"{prefix}_log_dir"] = entry.log_dir
                            place[f"{prefix}_offset_lag"] = part.offset_lag
        if raise_errors:
            raise_first(found.values(), found)
        return found

    @call
    async def alter_replica_log_dirs(
        self,
        assignments: Mapping[TopicPartitionReplica, str],
        timeout_ms: float | None = None,
        *,
        raise_errors: bool = True,
    ) -> dict[TopicPartitionReplica, type[KafkaError]]:
        """Move replicas to other log directories of their brokers (Kafka 1.1).

        The first error of a replica is raised; with ``raise_errors=False`` the class of each error is returned.
        """
        deadline = self._core.deadline(timeout_ms)
        wanted = {_replica(replica): path for replica, path in assignments.items()}
        kind = AlterReplicaLogDirsRequest
        await self._core.require(deadline, kind.API_KEY, 0, "alter_replica_log_dirs()", "1.1")
        by_broker = _by_broker(wanted)

        def request(node: int) -> AlterReplicaLogDirsRequest:
            paths: dict[str, list[TopicPartition]] = {}
            for topic, number in by_broker[node]:
                paths.setdefault(wanted[TopicPartitionReplica(topic, number, node)], []).append(
                    TopicPartition(topic, number)
                )
            return kind(
                dirs=[
                    kind.AlterReplicaLogDir(path=path, topics=by_topic(some, "name", "partitions"))
                    for path, some in paths.items()
                ]
            )

        responses = await self._core.ask_each(by_broker, request, deadline, "alter_replica_log_dirs()")
        found: dict[TopicPartitionReplica, type[KafkaError]] = {}
        for broker, response in responses.items():
            if isinstance(response, KafkaError):
                found.update((replica, type(response)) for replica in wanted if replica.broker_id == broker)
                continue
            for topic in response.results:
                for part in topic.partitions:
                    error = error_of(part.error_code, topic.topic_name)
                    replica = TopicPartitionReplica(topic.topic_name, part.partition_index, broker)
                    found[replica] = NoError if error is None else type(error)
        if raise_errors:
            raise_refused("alter_replica_log_dirs()", found.items(), found)
        return found


def _replica(given: object) -> TopicPartitionReplica:
    if not isinstance(given, tuple) or [type(part) for part in given] != [str, int, int]:
        raise TypeError(f"a replica must be a TopicPartitionReplica, not {given!r}")
    return TopicPartitionReplica(*given)


def _by_broker(replicas: Iterable[TopicPartitionReplica]) -> dict[int, list[TopicPartition]]:
    found: dict[int, list[TopicPartition]] = {}
    for replica in replicas:
        found.setdefault(replica.broker_id, []).append(TopicPartition(replica.topic, replica.partition))
    return found


def _log_dir(entry: DescribeLogDirsResponse.DescribeLogDirsResult) -> LogDir:
    return LogDir.of_entry(
        entry,
        error_message=None,
        topics=[
            Result(
                name=topic.name,
                partitions=[
                    Result(
                        partition_index=part.partition_index,
                        partition_size=part.partition_size,
                        offset_lag=part.offset_lag,
                        is_future_key=part.is_future_key,
                    )
                    for part in topic.partitions
                ],
            )
            for topic in entry.topics
        ],
    )
