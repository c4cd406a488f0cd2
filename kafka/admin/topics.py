"""Topics: list, describe, create, delete, add partitions, and wait until brokers serve them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping
from contextlib import suppress
from typing import Any, Final
from uuid import UUID

from kafka.admin.calls import Calls, call
from kafka.admin.resources import (
    NewPartitions,
    NewTopic,
    as_new_partitions,
    as_new_topics,
    as_topics,
    config_text,
    operations,
)
from kafka.admin.results import Result, Results, raise_failed
from kafka.admin.topic_outcomes import (
    CreatedTopic,
    CreatePartitionsResult,
    CreateTopicsResult,
    DeletedTopic,
    DeleteTopicsResult,
    PartitionDescription,
    ResizedTopic,
    TopicDescription,
    TopicPartitionsPage,
)
from kafka.errors import (
    Code,
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    RetriableError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafka.protocol.admin import (
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
)
from kafka.protocol.metadata import DescribeTopicPartitionsRequest, DescribeTopicPartitionsResponse, MetadataResponse

_NO_ID: Final = UUID(int=0)
# How often brokers are asked whether they serve a topic yet, in seconds.
_LOOK_AGAIN: Final = 0.05
# Seconds for which a broker is asked at first before the metadata, from which it may be gone, are requested again.
_FIRST_PATIENCE: Final = 2.0
_DEFAULTS_SINCE: Final = 4
_DELETION_BY_ID_SINCE: Final = 6


class Topics(Calls):
    """The calls about topics."""

    # Describing…

    @call
    async def list_topics(self, timeout_ms: float | None = None) -> list[str]:
        """Return the names of all topics.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         admin.list_topics()
        ['events']
        """
        deadline = self._core.deadline(timeout_ms)
        return [str(topic.name) for topic in await self._core.topic_metadata(None, deadline, "list_topics()")]

    @call
    async def describe_topics(
        self, topics: Iterable[str | UUID] | None = None, timeout_ms: float | None = None
    ) -> Results[TopicDescription]:
        """Describe topics by name or id, or all of them; an unknown topic has an ``error_code`` and raises nothing.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> with Broker(topics={"events": 2}) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         topic, unknown = admin.describe_topics(["events", "evnets"])
        >>> topic.name, [partition["leader_id"] for partition in topic["partitions"]]
        ('events', [1, 1])
        >>> unknown.ok, unknown.error.message
        (False, 'UNKNOWN_TOPIC_OR_PARTITION')
        """
        deadline = self._core.deadline(timeout_ms)
        wanted = None if topics is None else as_topics(topics)
        if wanted is not None and not wanted:
            return Results()
        answer = await self._core.topic_metadata(wanted, deadline, "describe_topics()", operations=True)
        found = await self._core.loop.in_slices(_descriptions(answer))
        if wanted is None:
            return Results(found)
        known: dict[str | UUID, TopicDescription] = {}
        for topic in found:
            known[topic.topic_id] = topic
            if topic.name is not None:
                known[topic.name] = topic
        return Results(known.get(topic) or _unknown(topic) for topic in wanted)

    # Changing…

    @call
    async def describe_topic_partitions(
        self,
        topics: Iterable[str],
        response_partition_limit: int = 2000,
        cursor: Any = None,
        timeout_ms: float | None = None,
    ) -> TopicPartitionsPage:
        """Describe the partitions of topics page by page, with their eligible leader replicas (Kafka 3.8).

        `cursor` is the ``next_cursor`` of the page before; it is None on the last page.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> with Broker(topics={"events": 3}) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         page = admin.describe_topic_partitions(["events"], 2)
        ...         rest = admin.describe_topic_partitions(["events"], 2, page.next_cursor)
        >>> page.next_cursor, rest.next_cursor
        (Result(topic_name='events', partition_index=2), None)
        """
        deadline = self._core.deadline(timeout_ms)
        names = [str(topic) for topic in as_topics(topics)]
        kind = DescribeTopicPartitionsRequest
        await self._core.require(deadline, kind.API_KEY, 0, "describe_topic_partitions()", "3.8")
        request = kind(
            topics=[kind.TopicRequest(name=topic) for topic in sorted(names)],
            response_partition_limit=response_partition_limit,
            cursor=None
            if cursor is None
            else kind.Cursor(topic_name=cursor["topic_name"], partition_index=cursor["partition_index"]),
        )
        response = await self._core.ask(request, deadline, "describe_topic_partitions()")
        following = response.next_cursor
        return TopicPartitionsPage(
            topics=Results(_description(topic, eligible=True) for topic in response.topics),
            next_cursor=None
            if following is None
            else Result(topic_name=following.topic_name, partition_index=following.partition_index),
        )

    @call
    async def create_topics(
        self,
        new_topics: Iterable[NewTopic | str] | Mapping[str, object],
        timeout_ms: float | None = None,
        validate_only: bool = False,
        raise_errors: bool = True,
        wait_for_metadata: bool = False,
    ) -> CreateTopicsResult:
        """Create topics, or with `validate_only` check whether they could be.

        `new_topics` has `NewTopic` objects or names, or is a dict from name to a dict that may have ``num_partitions``,
        ``replication_factor``, ``assignments`` and ``configs``. With `wait_for_metadata` the call returns when every
        broker knows a leader for each partition, so that the topics can be written to at once.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> with Broker() as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...     created = admin.create_topics({"events": {"num_partitions": 3}}, wait_for_metadata=True)
        >>> created.topics[0].num_partitions, created.topic_errors
        (3, [('events', 0, None)])
        """
        deadline = self._core.deadline(timeout_ms)
        topics = as_new_topics(new_topics)
        if not topics:
            return CreateTopicsResult(topics=Results())
        await self._core.require(deadline, CreateTopicsRequest.API_KEY, 0, "create_topics()", "0.10.1")
        version = await self._core.version_of(CreateTopicsRequest(), deadline)
        by_name = {topic.name: topic for topic in topics}
        if version < _DEFAULTS_SINCE and any(
            not topic.replica_assignments and -1 in {topic.num_partitions, topic.replication_factor} for topic in topics
        ):
            raise self._core.unsupported("creating a topic with the cluster's default number of partitions", "2.4")
        if validate_only and version < 1:
            raise self._core.unsupported("validate_only", "0.10.2")

        def request(names: list[str]) -> CreateTopicsRequest:
            return CreateTopicsRequest(
                topics=[_creatable(by_name[name]) for name in names],
                timeout_ms=self._core.left(deadline),
                validate_only=validate_only,
            )

        found = await self._core.ask_controller(
            list(by_name),
            request,
            lambda response: {topic.name: _created(topic) for topic in response.topics},
            deadline,
            "create_topics()",
        )
        results = CreateTopicsResult(topics=Results(found[name] for name in by_name if name in found))
        if raise_errors:
            raise_failed(results.topics, results)
        if wait_for_metadata and not validate_only:
            await self.wait_for_topics([topic.name for topic in results.topics if topic.ok], timeout_ms=deadline)
        return results

    @call
    async def delete_topics(
        self,
        topics: Iterable[str | UUID],
        timeout_ms: float | None = None,
        raise_errors: bool = True,
        *,
        wait: bool = False,
    ) -> DeleteTopicsResult:
        """Delete topics by name or id; with `wait` the call returns when no broker knows topics of these names.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         admin.delete_topics(["events"]).topic_error_codes
        [('events', 0)]
        """
        deadline = self._core.deadline(timeout_ms)
        wanted = as_topics(topics)
        if not wanted:
            return DeleteTopicsResult(topics=Results())
        await self._core.require(deadline, DeleteTopicsRequest.API_KEY, 0, "delete_topics()", "0.10.1")
        version = await self._core.version_of(DeleteTopicsRequest(), deadline)
        if version < _DELETION_BY_ID_SINCE and any(isinstance(topic, UUID) for topic in wanted):
            raise self._core.unsupported("deleting a topic by its id", "2.8")
        entry = DeleteTopicsRequest.DeleteTopicState

        def request(some: list[str | UUID]) -> DeleteTopicsRequest:
            if version < _DELETION_BY_ID_SINCE:
                return DeleteTopicsRequest(topic_names=some, timeout_ms=self._core.left(deadline))
            states = [
                entry(name=None, topic_id=topic) if isinstance(topic, UUID) else entry(name=topic) for topic in some
            ]
            return DeleteTopicsRequest(topics=states, timeout_ms=self._core.left(deadline))

        def read(response: DeleteTopicsResponse) -> dict[str | UUID, DeletedTopic]:
            results: dict[str | UUID, DeletedTopic] = {}
            for topic in response.responses:
                key = topic.name if topic.name is not None and topic.name in wanted else topic.topic_id
                results[key] = DeletedTopic.of_entry(topic)
            return results

        found = await self._core.ask_controller(wanted, request, read, deadline, "delete_topics()")
        results = DeleteTopicsResult(topics=Results(found[topic] for topic in wanted if topic in found))
        if raise_errors:
            raise_failed(results.topics, results)
        if wait:
            await self._wait_for_absence(deadline, [topic.name for topic in results.topics if topic.ok and topic.name])
        return results

    @call
    async def create_partitions(
        self,
        topic_partitions: Mapping[str, NewPartitions | int | Mapping[str, object]],
        timeout_ms: float | None = None,
        validate_only: bool = False,
        raise_errors: bool = True,
    ) -> CreatePartitionsResult:
        """Raise the number of partitions of topics to a total, or with `validate_only` check whether that is possible.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...         result = admin.create_partitions({"events": 4})
        ...         len(admin.describe_topics(["events"])[0].partitions)
        4
        """
        deadline = self._core.deadline(timeout_ms)
        topics = as_new_partitions(topic_partitions)
        if not topics:
            return CreatePartitionsResult(results=Results())
        await self._core.require(deadline, CreatePartitionsRequest.API_KEY, 0, "create_partitions()", "1.0")
        entry, assignment = (
            CreatePartitionsRequest.CreatePartitionsTopic,
            CreatePartitionsRequest.CreatePartitionsAssignment,
        )

        def request(names: list[str]) -> CreatePartitionsRequest:
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
                timeout_ms=self._core.left(deadline),
                validate_only=validate_only,
            )

        def read(response: CreatePartitionsResponse) -> dict[str, ResizedTopic]:
            return {topic.name: ResizedTopic.of_entry(topic) for topic in response.results}

        found = await self._core.ask_controller(list(topics), request, read, deadline, "create_partitions()")
        results = CreatePartitionsResult(results=Results(found[name] for name in topics if name in found))
        if raise_errors:
            raise_failed(results.results, results)
        return results

    # Waiting…

    @call
    async def wait_for_topics(self, topics: Iterable[str], timeout_ms: float = 10_000) -> None:
        """Wait until every broker knows a leader for each partition of the topics.

        `KafkaTimeoutError` names the topics that are not ready in time.
        """
        deadline = self._core.deadline(timeout_ms)
        names = [str(topic) for topic in as_topics(topics)]
        await self._ask_until(self._not_ready, names, deadline, "not every broker serves these topics in time")

    async def _wait_for_absence(self, deadline: float, names: list[str]) -> None:
        await self._ask_until(self._known, names, deadline, "brokers still know these topics after delete_topics()")

    async def _ask_until(
        self,
        ask: Callable[[list[str], int, float], Awaitable[set[str]]],
        names: list[str],
        deadline: float,
        complaint: str,
    ) -> None:
        """Ask every broker about topics until no broker returns any.

        A broker that is down does not get all of the time: it leaves the metadata, which are requested again.
        """
        core, left, patience = self._core, names, _FIRST_PATIENCE
        failed: dict[int, KafkaError] = {}

        async def answer(node_id: int, limit: float) -> set[str]:
            try:
                return await ask(left, node_id, limit)
            except KafkaError as error:
                if not error.retriable and not isinstance(error, KafkaTimeoutError):
                    raise
                failed[node_id] = error
                return set()

        while left:
            failed.clear()
            try:
                nodes = await core.brokers(deadline)
            except RetriableError as error:
                raise KafkaTimeoutError(f"{complaint}: {', '.join(left)}: {error}") from error
            limit = core.sooner(deadline, patience)
            answers = await core.gather([answer(node, limit) for node in nodes])
            if failed:
                patience *= 2
                with suppress(KafkaError):
                    await core.client.refresh(core.sooner(deadline, patience))
            else:
                left = sorted(set().union(*answers))
            if left and core.loop.time() + _LOOK_AGAIN >= deadline:
                reason = f": broker {min(failed)}: {failed[min(failed)]}" if failed else ""
                raise KafkaTimeoutError(f"{complaint}: {', '.join(left)}{reason}")
            if left:
                await core.loop.sleep(_LOOK_AGAIN)

    async def _known(self, names: list[str], node_id: int, deadline: float) -> set[str]:
        topics = await self._core.topic_metadata(names, deadline, "delete_topics()", node_id=node_id)
        return set(names) - {topic.name for topic in topics if topic.error_code == Code.UNKNOWN_TOPIC_OR_PARTITION}

    async def _not_ready(self, names: list[str], node_id: int, deadline: float) -> set[str]:
        ready = set()
        for topic in await self._core.topic_metadata(names, deadline, "wait_for_topics()", node_id=node_id):
            error = for_code(topic.error_code)
            if topic.error_code and not issubclass(error, (UnknownTopicOrPartitionError, LeaderNotAvailableError)):
                raise error(f"topic {topic.name!r}")
            if not topic.error_code and topic.partitions and all(entry.leader_id >= 0 for entry in topic.partitions):
                ready.add(topic.name)
        return set(names) - ready


def _creatable(topic: NewTopic) -> CreateTopicsRequest.CreatableTopic:
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


def _created(topic: CreateTopicsResponse.CreatableTopicResult) -> CreatedTopic:
    configs = topic.configs
    return CreatedTopic.of_entry(
        topic,
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


def _description(
    topic: MetadataResponse.MetadataResponseTopic
    | DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic,
    *,
    eligible: bool = False,
) -> TopicDescription:
    return TopicDescription.of_entry(
        topic,
        error_message=None,
        partitions=[
            PartitionDescription.of_entry(entry, error_message=None, **_eligible(entry) if eligible else {})
            for entry in topic.partitions
        ],
        authorized_operations=operations(topic.topic_authorized_operations),
    )


def _descriptions(
    topics: Iterable[MetadataResponse.MetadataResponseTopic],
) -> Generator[None, None, list[TopicDescription]]:
    found = []
    for topic in topics:
        found.append(_description(topic))
        yield
    return found


def _eligible(entry: object) -> dict[str, list[int] | None]:
    """Return the replicas that may be elected although they are not in sync (KIP-966); None where that is off."""
    names = ("eligible_leader_replicas", "last_known_elr")
    return {name: None if (found := getattr(entry, name)) is None else list(found) for name in names}


def _unknown(topic: str | UUID) -> TopicDescription:
    is_id = isinstance(topic, UUID)
    return TopicDescription(
        error_code=Code.UNKNOWN_TOPIC_OR_PARTITION,
        error_message=None,
        name=None if is_id else topic,
        topic_id=topic if is_id else _NO_ID,
        is_internal=False,
        partitions=[],
        authorized_operations=None,
    )
