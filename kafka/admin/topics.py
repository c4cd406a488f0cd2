"""Topics: list, describe, create, delete, add partitions, and wait until brokers serve them."""

from __future__ import annotations

from typing import Any, ClassVar, Final
from uuid import UUID

from kafka.admin.core import AdminCore
from kafka.admin.resources import NewPartitions, NewTopic, config_text, operations
from kafka.admin.results import ItemResult, Result, Results, raise_failed
from kafka.errors import (
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    NotControllerError,
    ThrottlingQuotaExceededError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
)
from kafka.protocol.metadata import MetadataRequest

__all__ = [
    "CreatePartitionsResult",
    "CreateTopicsResult",
    "CreatedTopic",
    "DeleteTopicsResult",
    "DeletedTopic",
    "PartitionDescription",
    "ResizedTopic",
    "TopicDescription",
    "Topics",
]

_NO_ID: Final = UUID(int=0)
_LONGEST_WAIT: Final = 2**31 - 1
_UNKNOWN_TOPIC: Final = 3
# How often brokers are asked whether they serve a topic yet, in seconds.
_LOOK_AGAIN: Final = 0.05
_DEFAULTS_SINCE: Final = 4
_NO_CREATION_SINCE: Final = 4
_IDS_SINCE: Final = 12
_DELETION_BY_ID_SINCE: Final = 6
# A topic with one of these is tried again; what other codes say is final.
_AGAIN: Final = (NotControllerError, ThrottlingQuotaExceededError)


class PartitionDescription(ItemResult):
    """A partition: its leader and replicas."""

    __slots__ = ()
    _aliases: ClassVar = {
        "partition": "partition_index",
        "leader": "leader_id",
        "replicas": "replica_nodes",
        "isr": "isr_nodes",
    }
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: list[int]
    isr_nodes: list[int]
    offline_replicas: list[int]

    def item(self) -> str:
        """Return what the outcome is about, for error messages."""
        return f"partition {self.partition_index}"


class TopicDescription(ItemResult):
    """A topic and its partitions."""

    __slots__ = ()
    _aliases: ClassVar = {"topic": "name"}
    name: str | None
    topic_id: UUID
    is_internal: bool
    partitions: list[PartitionDescription]
    authorized_operations: list[str] | None

    def item(self) -> str:
        """Return what the outcome is about, for error messages."""
        return f"topic {str(self.name or self.topic_id)!r}"


class CreatedTopic(ItemResult):
    """A topic that was created, or why it was not; -1 and None for what the broker does not tell (before 2.4)."""

    __slots__ = ()
    _aliases: ClassVar = {"topic": "name"}
    name: str
    topic_id: UUID
    num_partitions: int
    replication_factor: int
    configs: list[Result] | None

    def item(self) -> str:
        """Return what the outcome is about, for error messages."""
        return f"topic {self.name!r}"


class CreateTopicsResult(Result):
    """The outcome of `create_topics()` for each topic."""

    __slots__ = ()
    topics: Results[CreatedTopic]

    @property
    def topic_errors(self) -> list[tuple[str, int, str | None]]:
        """Name, error code and message of each topic, as kafka-python 2 has them."""
        return [(topic.name, topic.error_code, topic.error_message) for topic in self.topics]


class DeletedTopic(ItemResult):
    """A topic that was deleted, or why it was not."""

    __slots__ = ()
    _aliases: ClassVar = {"topic": "name"}
    name: str | None
    topic_id: UUID

    def item(self) -> str:
        """Return what the outcome is about, for error messages."""
        return f"topic {str(self.name or self.topic_id)!r}"


class DeleteTopicsResult(Result):
    """The outcome of `delete_topics()` for each topic."""

    __slots__ = ()
    topics: Results[DeletedTopic]

    @property
    def topic_error_codes(self) -> list[tuple[str | None, int]]:
        """Name and error code of each topic, as kafka-python 2 has them."""
        return [(topic.name, topic.error_code) for topic in self.topics]


class ResizedTopic(ItemResult):
    """A topic whose number of partitions was raised, or why it was not."""

    __slots__ = ()
    _aliases: ClassVar = {"topic": "name"}
    name: str

    def item(self) -> str:
        """Return what the outcome is about, for error messages."""
        return f"topic {self.name!r}"


class CreatePartitionsResult(Result):
    """The outcome of `create_partitions()` for each topic."""

    __slots__ = ()
    results: Results[ResizedTopic]

    @property
    def topic_errors(self) -> list[tuple[str, int, str | None]]:
        """Name, error code and message of each topic, as kafka-python 2 has them."""
        return [(topic.name, topic.error_code, topic.error_message) for topic in self.results]


class Topics:
    """The calls about topics, as coroutines."""

    def __init__(self, core: AdminCore) -> None:
        self._core = core

    # Looking…

    async def names(self, deadline: float) -> list[str]:
        """Return the names of all topics."""
        return [str(topic.name) for topic in await self._ask(None, deadline)]

    async def describe(self, topics: list[str | UUID] | None, deadline: float) -> Results[TopicDescription]:
        """Describe topics, all of them for None."""
        if topics is not None and not topics:
            return Results()
        found = [_description(topic) for topic in await self._ask(topics, deadline, operations=True)]
        if topics is None:
            return Results(found)
        known: dict[str | UUID, TopicDescription] = {}
        for topic in found:
            known[topic.topic_id] = topic
            if topic.name is not None:
                known[topic.name] = topic
        return Results(known.get(topic) or _unknown(topic) for topic in topics)

    async def _ask(
        self, topics: list[str | UUID] | None, deadline: float, *, node_id: int | None = None, operations: bool = False
    ) -> list[Any]:
        version = await self._core.version_of(MetadataRequest(), deadline)
        ids = [topic for topic in topics or () if isinstance(topic, UUID)]
        if ids and version < _IDS_SINCE:
            raise self._core.unsupported("describing a topic by its id", "3.1")
        # A broker before 0.11 creates the topics that it is asked for: there the answer is chosen from all topics.
        if version < _NO_CREATION_SINCE:
            topics = None
        entry = MetadataRequest.MetadataRequestTopic
        request = MetadataRequest(
            topics=([] if version == 0 else None)
            if topics is None
            else [
                entry(name=None, topic_id=topic) if isinstance(topic, UUID) else entry(name=topic) for topic in topics
            ],
            allow_auto_topic_creation=version < _NO_CREATION_SINCE,
            include_topic_authorized_operations=operations and version >= 8,
        )
        return list((await self._core.ask(request, deadline, "describing topics", node_id=node_id)).topics)

    # Changing…

    async def create(
        self, topics: list[NewTopic], timeout: float, *, validate_only: bool, raise_errors: bool, wait: bool
    ) -> CreateTopicsResult:
        """Create topics."""
        if not topics:
            return CreateTopicsResult(topics=Results())
        deadline = self._core.loop.time() + timeout
        version = await self._core.version_of(CreateTopicsRequest(), deadline)
        by_name = {topic.name: topic for topic in topics}
        if version < _DEFAULTS_SINCE and any(
            not topic.replica_assignments and -1 in {topic.num_partitions, topic.replication_factor} for topic in topics
        ):
            raise self._core.unsupported("creating a topic with the cluster's default number of partitions", "2.4")
        if validate_only and version < 1:
            raise self._core.unsupported("validate_only", "0.10.2")

        def request(names: list[str]) -> Any:
            return CreateTopicsRequest(
                topics=[_creatable(by_name[name]) for name in names],
                timeout_ms=self._left(deadline),
                validate_only=validate_only,
            )

        found = await self._change(
            list(by_name),
            request,
            lambda response: {topic.name: _created(topic) for topic in response.topics},
            deadline,
            "create_topics()",
        )
        results = CreateTopicsResult(topics=Results(found[name] for name in by_name if name in found))
        if raise_errors:
            raise_failed(results.topics, results)
        if wait and not validate_only:
            await self.wait_for([topic.name for topic in results.topics if topic.ok], deadline)
        return results

    async def delete(self, topics: list[str | UUID], timeout: float, *, raise_errors: bool) -> DeleteTopicsResult:
        """Delete topics."""
        if not topics:
            return DeleteTopicsResult(topics=Results())
        deadline = self._core.loop.time() + timeout
        version = await self._core.version_of(DeleteTopicsRequest(), deadline)
        if version < _DELETION_BY_ID_SINCE and any(isinstance(topic, UUID) for topic in topics):
            raise self._core.unsupported("deleting a topic by its id", "2.8")
        entry = DeleteTopicsRequest.DeleteTopicState

        def request(some: list[str | UUID]) -> Any:
            if version < _DELETION_BY_ID_SINCE:
                return DeleteTopicsRequest(topic_names=some, timeout_ms=self._left(deadline))
            states = [
                entry(name=None, topic_id=topic) if isinstance(topic, UUID) else entry(name=topic) for topic in some
            ]
            return DeleteTopicsRequest(topics=states, timeout_ms=self._left(deadline))

        def read(response: Any) -> dict[str | UUID, DeletedTopic]:
            results: dict[str | UUID, DeletedTopic] = {}
            for topic in response.responses:
                outcome = DeletedTopic(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    error_code=topic.error_code,
                    error_message=topic.error_message,
                )
                results[topic.name if topic.name in topics else topic.topic_id] = outcome
            return results

        found = await self._change(topics, request, read, deadline, "delete_topics()")
        results = DeleteTopicsResult(topics=Results(found[topic] for topic in topics if topic in found))
        if raise_errors:
            raise_failed(results.topics, results)
        return results

    async def add_partitions(
        self, topics: dict[str, NewPartitions], timeout: float, *, validate_only: bool, raise_errors: bool
    ) -> CreatePartitionsResult:
        """Raise the number of partitions of topics."""
        if not topics:
            return CreatePartitionsResult(results=Results())
        deadline = self._core.loop.time() + timeout
        entry, assignment = (
            CreatePartitionsRequest.CreatePartitionsTopic,
            CreatePartitionsRequest.CreatePartitionsAssignment,
        )

        def request(names: list[str]) -> Any:
            return CreatePartitionsRequest(
                topics=[
                    entry(
                        name=name,
                        count=topics[name].total_count,
                        assignments=None
                        if (places := topics[name].new_assignments) is None
                        else [assignment(broker_ids=brokers) for brokers in places],
                    )
                    for name in names
                ],
                timeout_ms=self._left(deadline),
                validate_only=validate_only,
            )

        def read(response: Any) -> dict[str, ResizedTopic]:
            return {
                topic.name: ResizedTopic(
                    name=topic.name, error_code=topic.error_code, error_message=topic.error_message
                )
                for topic in response.results
            }

        found = await self._change(list(topics), request, read, deadline, "create_partitions()")
        results = CreatePartitionsResult(results=Results(found[name] for name in topics if name in found))
        if raise_errors:
            raise_failed(results.results, results)
        return results

    async def _change(self, items: list[Any], request: Any, read: Any, deadline: float, what: str) -> dict[Any, Any]:
        """Ask the controller about items until it has decided on each, or the time is up."""
        found: dict[Any, Any] = {}
        client = self._core.client
        await self._core.versions(deadline)
        async for attempt in client.attempts(deadline, what):
            with attempt:
                left = [item for item in items if item not in found or isinstance(found[item].error, _AGAIN)]
                found.update(read(await client.request(request(left), deadline=attempt.deadline)))
                for item in left:
                    error = found[item].error if item in found else None
                    if isinstance(error, _AGAIN) and attempt.may_retry(error):
                        raise error
        return found

    def _left(self, deadline: float) -> int:
        """Return the milliseconds that a broker may wait for other brokers."""
        return max(0, min(_LONGEST_WAIT, int((deadline - self._core.loop.time()) * 1000)))

    # Waiting…

    async def wait_for(self, names: list[str], deadline: float) -> None:
        """Wait until every broker knows a leader for each partition of the topics."""
        missing = list(names)
        reason: KafkaError | None = None
        while missing:
            nodes = await self._core.brokers(deadline)
            try:
                found = await self._core.gather([self._not_ready(names, node, deadline) for node in nodes])
                missing = sorted(set().union(*found)) if found else missing
            except KafkaError as error:
                if not error.retriable and not isinstance(error, KafkaTimeoutError):
                    raise
                reason = error
            if missing and self._core.loop.time() + _LOOK_AGAIN >= deadline:
                raise KafkaTimeoutError(
                    f"not every broker serves these topics in time: {', '.join(missing)}"
                    + (f": {reason}" * bool(reason))
                )
            if missing:
                await self._core.loop.sleep(_LOOK_AGAIN)

    async def _not_ready(self, names: list[str], node_id: int, deadline: float) -> set[str]:
        ready = set()
        for topic in await self._ask(list(names), deadline, node_id=node_id):
            error = for_code(topic.error_code)
            if topic.error_code and not issubclass(error, (UnknownTopicOrPartitionError, LeaderNotAvailableError)):
                raise error(f"topic {topic.name!r}")
            if not topic.error_code and topic.partitions and all(entry.leader_id >= 0 for entry in topic.partitions):
                ready.add(topic.name)
        return set(names) - ready


def _creatable(topic: NewTopic) -> Any:
    place, setting = CreateTopicsRequest.CreatableReplicaAssignment, CreateTopicsRequest.CreatableTopicConfig
    return CreateTopicsRequest.CreatableTopic(
        name=topic.name,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        assignments=[
            place(partition_index=index, broker_ids=list(brokers))
            for index, brokers in topic.replica_assignments.items()
        ],
        configs=[setting(name=name, value=config_text(value)) for name, value in topic.topic_configs.items()],
    )


def _created(topic: Any) -> CreatedTopic:
    configs = topic.configs
    return CreatedTopic(
        name=topic.name,
        topic_id=topic.topic_id,
        error_code=topic.error_code,
        error_message=topic.error_message,
        num_partitions=topic.num_partitions,
        replication_factor=topic.replication_factor,
        configs=None
        if configs is None
        else [
            Result(
                name=entry.name,
                value=entry.value,
                read_only=entry.read_only,
                config_source=entry.config_source,
                is_sensitive=entry.is_sensitive,
            )
            for entry in configs
        ],
    )


def _description(topic: Any) -> TopicDescription:
    return TopicDescription(
        error_code=topic.error_code,
        error_message=None,
        name=topic.name,
        topic_id=topic.topic_id,
        is_internal=topic.is_internal,
        partitions=[
            PartitionDescription(
                error_code=entry.error_code,
                error_message=None,
                partition_index=entry.partition_index,
                leader_id=entry.leader_id,
                leader_epoch=entry.leader_epoch,
                replica_nodes=list(entry.replica_nodes),
                isr_nodes=list(entry.isr_nodes),
                offline_replicas=list(entry.offline_replicas),
            )
            for entry in topic.partitions
        ],
        authorized_operations=operations(topic.topic_authorized_operations),
    )


def _unknown(topic: str | UUID) -> TopicDescription:
    is_id = isinstance(topic, UUID)
    return TopicDescription(
        error_code=_UNKNOWN_TOPIC,
        error_message=None,
        name=None if is_id else topic,
        topic_id=topic if is_id else _NO_ID,
        is_internal=False,
        partitions=[],
        authorized_operations=None,
    )
