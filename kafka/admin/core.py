"""What all calls of an administrator share: the client core, deadlines, and questions to one broker or to many at once.

Coroutines here run on the client's loop and know nothing of threads. They differ in the broker that a request is for:
`ask` takes any broker, `ask_each` some brokers by their ids, `ask_controller` the controller, `ask_coordinators` the
coordinators of groups or transactions, `ask_leaders` the leaders of partitions. Several brokers are asked at the same
time, and an item that a broker refuses, or whose broker does not answer, costs its own answer only: the result has a
`KafkaError` in its place. Leaders, coordinators and controllers that move are looked up again until the deadline.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar
from uuid import UUID

from kafka._core.attempts import is_retriable
from kafka._core.client import NodeId, make_client
from kafka._runtime.tasks import TaskGroup
from kafka.admin.results import error_of
from kafka.cluster import GROUP, TRANSACTION
from kafka.errors import (
    CoordinatorNotAvailableError,
    KafkaError,
    KafkaTimeoutError,
    LeaderNotAvailableError,
    NotControllerError,
    RequestTimedOutError,
    RetriableError,
    ThrottlingQuotaExceededError,
    UnknownBrokerIdError,
    UnknownError,
    UnknownTopicOrPartitionError,
    UnsupportedEndpointTypeError,
    UnsupportedVersionError,
    for_code,
)
from kafka.protocol.commit import FindCoordinatorRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.registry import APIS
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka._core.attempts import Attempts
    from kafka.cluster import ClusterMetadata
    from kafka.config import Config
    from kafka.net.environment import Environment
    from kafka.protocol.api import Request, Response
    from kafka.protocol.metadata import MetadataResponse
    from kafka.protocol.negotiation import ApiVersions

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")
ResponseT = TypeVar("ResponseT", bound="Response")

log: Final = logging.getLogger(__name__)

_LONGEST_WAIT: Final = 2**31 - 1
# How often metadata may lack a partition before that is the answer: brokers learn about a new topic a little late.
_LOOKS_FOR_UNKNOWN: Final = 3
# The versions that the calls need.
_MANY_KEYS_SINCE: Final = 4
_NO_CREATION_SINCE: Final = 4
_IDS_SINCE: Final = 12
_TOPIC_OPERATIONS: Final = range(8, 14)
# How many groups one request names at most, so that its response stays of moderate size.
_GROUPS_PER_REQUEST: Final = 1000


# Items by the broker that is asked about them, and why it is not known for the others.
Places = tuple[dict["int | None", list[K]], dict[K, KafkaError]]


class Deadline(float):
    """When a call ends, in seconds of the loop's clock; with `once` nothing is tried again, and no broker waits."""

    once: bool

    def __new__(cls, time: float, *, once: bool = False) -> Self:
        """Make it from a time."""
        made = super().__new__(cls, time)
        made.once = once
        return made


def _never(_error: KafkaError) -> bool:
    return False


def _until_it_left(cluster: ClusterMetadata) -> Callable[[KafkaError], bool]:
    """Return what tries again, unless fresh metadata say that the broker is not in the cluster any more."""
    unknown = 0

    def may_retry(error: KafkaError) -> bool:
        nonlocal unknown
        # Without brokers the metadata are not fresh: the client has started again from the bootstrap servers.
        unknown += isinstance(error, UnknownBrokerIdError) and bool(cluster.topology.brokers)
        return unknown < 2 and is_retriable(error)

    return may_retry


def _once(deadline: float) -> bool:
    """Return whether each request of the call is sent once."""
    return getattr(deadline, "once", False)


class AdminCore:
    """The client of an administrator, and ways to ask brokers by a deadline."""

    def __init__(self, config: Config, environment: Environment | None = None) -> None:
        self.config = config
        self.client = make_client(config, environment)
        self.loop = self.client.loop
        self.client_instance_id: UUID | None = None
        """The id that brokers gave this client when they were asked for its telemetry subscription."""
        self._default_timeout = config.seconds("default_api_timeout_ms")

    # Time…

    def deadline(self, timeout_ms: float | None) -> Deadline:
        """Return when a call ends; with 0 every request is sent once, and takes request_timeout_ms at most."""
        if isinstance(timeout_ms, Deadline):
            return timeout_ms
        if timeout_ms == 0:
            return Deadline(self.loop.time() + self.client.settings.request_timeout, once=True)
        return Deadline(self.loop.time() + (self._default_timeout if timeout_ms is None else timeout_ms / 1000))

    def sooner(self, deadline: float, seconds: float) -> Deadline:
        """Return when a step of a call ends: that many seconds from now, or with the call."""
        return Deadline(min(deadline, self.loop.time() + seconds), once=_once(deadline))

    def left(self, deadline: float) -> int:
        """Return the milliseconds that a broker may wait for other brokers."""
        if _once(deadline):
            return 0
        return max(0, min(_LONGEST_WAIT, int((deadline - self.loop.time()) * 1000)))

    def attempts(self, deadline: float, what: str, may_retry: Callable[[KafkaError], bool] = is_retriable) -> Attempts:
        """Return the attempts of a call."""
        return self.client.attempts(deadline, what, _never if _once(deadline) else may_retry)

    # The cluster, and what brokers speak…

    async def begin(self) -> None:
        """Find the cluster; with bootstrap_timeout_ms=0 it may come later."""
        await self.client.begin()

    async def _found(self, deadline: float, *, brokers: bool = False) -> None:
        """Wait until the cluster is known, and its `brokers` if they are needed: a client forgets them in an outage."""
        cluster = self.client.cluster
        is_known = self.client.versions is not None and cluster.update_age() is not None
        if is_known and (cluster.topology.brokers or not brokers):
            return
        try:
            async for attempt in self.client.attempts(deadline, "looking for a broker"):
                with attempt:
                    await self.client.refresh(attempt.deadline)
        except RetriableError as error:  # which is the last one; each address has its own
            raise self.client.no_brokers_error("No broker answered in time") from error

    async def versions(self, deadline: float) -> ApiVersions:
        """Return what the brokers speak, after finding one if none was found yet."""
        await self._found(deadline)
        found = self.client.versions
        assert found is not None  # metadata came over a connection, which begins with the versions
        return found

    async def version_of(self, request: Request[Response], deadline: float) -> int:
        """Return the version in which a request will be sent."""
        versions = await self.versions(deadline)
        self._check_endpoint(request.API_KEY, type(request).__name__)
        return versions.version_for(request)

    async def require(self, deadline: float, api_key: int, version: int, what: str, release: str) -> None:
        """Raise `UnsupportedVersionError` where brokers do not serve a version of an API."""
        versions = await self.versions(deadline)
        self._check_endpoint(api_key, what)
        if not versions.reaches(api_key, version):
            raise self.unsupported(what, release)

    def _check_endpoint(self, api_key: int, what: str) -> None:
        """Raise for an API that only brokers serve if this client is connected to controllers."""
        if self.client.of_controllers and "controller" not in APIS[api_key].listeners.split():
            raise UnsupportedEndpointTypeError(
                f"{what} needs a broker, and this client is connected to controllers: connect one with "
                "bootstrap_servers instead of bootstrap_controllers"
            )

    def unsupported(self, what: str, release: str) -> UnsupportedVersionError:
        """Return the error about what needs a newer broker."""
        versions = self.client.versions
        known = "" if versions is None else f"; the broker is {'.'.join(map(str, versions.release))}"
        return UnsupportedVersionError(f"{what} needs Kafka {release}{known}")

    async def brokers(self, deadline: float) -> list[int]:
        """Return the ids of all brokers, which are one at least."""
        await self._found(deadline, brokers=True)
        return sorted(int(node_id) for node_id in self.client.cluster.topology.brokers)

    async def topic_metadata(
        self,
        topics: Sequence[str | UUID] | None,
        deadline: float,
        what: str,
        *,
        node_id: int | None = None,
        operations: bool = False,
    ) -> list[MetadataResponse.MetadataResponseTopic]:
        """Return what a broker knows of topics, of all topics for None; it creates none of them."""
        version = await self.version_of(MetadataRequest(), deadline)
        if version < _IDS_SINCE and any(isinstance(topic, UUID) for topic in topics or ()):
            raise self.unsupported("describing a topic by its id", "3.1")
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
            include_topic_authorized_operations=operations and version in _TOPIC_OPERATIONS,
        )
        response = await self.ask(request, deadline, what, node_id=node_id)
        cluster, whole = self.client.cluster, topics is None
        prepared = await self.loop.in_slices(cluster.prepare(response, whole=whole, partial=True))
        cluster.learn(response, whole=whole, prepared=prepared)
        return list(response.topics)

    # Any broker, some brokers, the controller…

    async def ask(
        self,
        request: Request[ResponseT],
        deadline: float,
        what: str,
        *,
        node_id: NodeId | None = None,
        checked: bool = False,
        may_retry: Callable[[KafkaError], bool] = is_retriable,
    ) -> ResponseT:
        """Send a request to the broker that it is for, and return the response; a lost connection is tried again.

        With `checked` the error code of the whole response is raised, and tried again if the error is retriable.
        """
        await self.versions(deadline)
        response: ResponseT | None = None
        async for attempt in self.attempts(deadline, what, may_retry):
            with attempt:
                response = await self.client.request(request, node_id=node_id, deadline=attempt.deadline)
                if checked and response.error_code:
                    kind = for_code(response.error_code)
                    raise kind(f"{what}: {getattr(response, 'error_message', None) or kind.description}")
        assert response is not None  # the attempts end with a response or an error
        return response

    async def gather(self, coroutines: Iterable[Coroutine[Any, Any, T]]) -> list[T]:
        """Run coroutines at the same time and return their results in order; the first error ends all."""
        async with TaskGroup(self.loop) as group:
            tasks = [group.spawn(coroutine) for coroutine in coroutines]
        return [task.result() for task in tasks]

    async def ask_each(
        self,
        node_ids: Iterable[int],
        make: Callable[[int], Request[ResponseT]],
        deadline: float,
        what: str,
        *,
        checked: bool = False,
    ) -> dict[int, ResponseT | KafkaError]:
        """Ask brokers at the same time; return the response of each, or its `KafkaError`.

        A broker that has left the cluster is not waited for.
        """

        async def ask(node_id: int) -> tuple[int, ResponseT | KafkaError]:
            request, may_retry = make(node_id), _until_it_left(self.client.cluster)
            try:
                return node_id, await self.ask(
                    request, deadline, what, node_id=node_id, checked=checked, may_retry=may_retry
                )
            except KafkaError as error:
                return node_id, error

        return dict(await self.gather([ask(node_id) for node_id in node_ids]))

    # Items, each of which one broker decides on…

    async def decide(
        self,
        items: Sequence[K],
        locate: Callable[[list[K], float], Awaitable[Places[K]]],
        request: Callable[[list[K]], Request[ResponseT]],
        read: Callable[[ResponseT], Mapping[K, V | KafkaError]],
        deadline: float,
        what: str,
        *,
        passing: Callable[[V | KafkaError], bool],
        batch: int = _LONGEST_WAIT,
    ) -> dict[K, V | KafkaError]:
        """Ask brokers about items until each item has its answer, or the time is up.

        `locate` returns which items each broker is asked about, and the errors of the others; `request` makes the
        request for at most `batch` of them, and `read` the answers of a response: a value, which may have an ``error``,
        or a `KafkaError`. An item whose answer is `passing` is asked about again.
        """
        found: dict[K, V | KafkaError] = {}
        await self.versions(deadline)

        def note(item: K, answer: V | KafkaError) -> None:
            # An attempt that the deadline cuts off says less than the answer before it.
            if item not in found or not isinstance(answer, KafkaTimeoutError):
                found[item] = answer

        async def ask(node_id: int | None, some: list[K], limit: float) -> None:
            answers: Mapping[K, V | KafkaError]
            try:
                answers = read(await self.client.request(request(some), node_id=node_id, deadline=limit))
            except KafkaError as error:
                answers = dict.fromkeys(some, error)
            for item in some:
                note(item, answers[item] if item in answers else UnknownError(f"{what}: no answer about {item!r}"))

        async for attempt in self.attempts(deadline, what):
            with attempt:
                left = [item for item in items if item not in found or passing(found[item])]
                places, errors = await locate(left, attempt.deadline)
                for item, error in errors.items():
                    note(item, error)
                await self.gather(
                    [
                        ask(node_id, some[start : start + batch], attempt.deadline)
                        for node_id, some in places.items()
                        for start in range(0, len(some), batch)
                    ]
                )
                any(attempt.again(_error_of(found[item])) for item in left if passing(found[item]))
        for item, answer in found.items():
            if isinstance(answer, RequestTimedOutError):
                found[item] = KafkaTimeoutError(f"{what} took too long: {answer}")
        return {item: found[item] for item in items}

    async def ask_controller(
        self,
        items: Sequence[K],
        request: Callable[[list[K]], Request[ResponseT]],
        read: Callable[[ResponseT], Mapping[K, V | KafkaError]],
        deadline: float,
        what: str,
    ) -> dict[K, V]:
        """Ask the controller about items; raise what keeps it from answering."""

        async def locate(left: list[K], _: float) -> Places[K]:
            return {None: left}, {}

        def passing(answer: V | KafkaError) -> bool:
            moved = isinstance(_error_of(answer), (NotControllerError, ThrottlingQuotaExceededError))
            return moved or _is_passing(answer)

        answers = await self.decide(items, locate, request, read, deadline, what, passing=passing)
        found: dict[K, V] = {}
        for item, answer in answers.items():
            if isinstance(answer, KafkaError):
                raise answer
            found[item] = answer
        return found

    # Coordinators…

    async def ask_coordinators(
        self,
        keys: Sequence[str],
        request: Callable[[list[str]], Request[ResponseT]],
        read: Callable[[ResponseT], Mapping[str, V | KafkaError]],
        deadline: float,
        what: str,
        *,
        node_id: int | None = None,
        key_type: int = GROUP,
        batch: int = _GROUPS_PER_REQUEST,
    ) -> dict[str, V | KafkaError]:
        """Ask the coordinators of groups or transactions; return for each what `read` makes of it, or its `KafkaError`.

        `request` gets at most `batch` keys of one coordinator.
        """
        cluster = self.client.cluster
        asked: set[str] = set()

        async def locate(left: list[str], limit: float) -> Places[str]:
            if node_id is not None:
                return {node_id: left}, {}
            for key in asked.intersection(left):  # which an error brought back
                cluster.forget_coordinator(key_type, key)
            asked.update(left)
            missing = [key for key in left if not self._is_known(key_type, key)]
            errors = await self._look_up(key_type, missing, limit, what)
            places: dict[int | None, list[str]] = {}
            for key in left:
                if key not in errors:
                    places.setdefault(cluster.get_coordinator(key_type, key), []).append(key)
            return places, errors

        return await self.decide(keys, locate, request, read, deadline, what, passing=_is_passing, batch=batch)

    async def ask_coordinator(
        self,
        key: str,
        request: Callable[[], Request[ResponseT]],
        code: Callable[[ResponseT], int],
        deadline: float,
        what: str,
        *,
        node_id: int | None = None,
        key_type: int = GROUP,
    ) -> ResponseT:
        """Ask the coordinator of one group or transaction; return its response, or raise the error of its `code`."""

        def read(response: ResponseT) -> dict[str, ResponseT | KafkaError]:
            kind = "transaction" if key_type == TRANSACTION else "group"
            return {key: error_of(code(response), f"{what}: {kind} {key!r}") or response}

        answers = await self.ask_coordinators(
            [key], lambda _: request(), read, deadline, what, node_id=node_id, key_type=key_type
        )
        answer = answers[key]
        if isinstance(answer, KafkaError):
            raise answer
        return answer

    def coordinator_of(self, key: str, key_type: int = GROUP) -> int:
        """Return the id of the broker that was found to coordinate a group or a transaction, -1 if there is none."""
        known = self.client.cluster.get_coordinator(key_type, key)
        return -1 if known is None else int(known)

    async def find_coordinators(
        self, keys: list[str], key_type: int, deadline: float, what: str
    ) -> dict[str, int | KafkaError]:
        """Look coordinators up; return the id of each, or a `KafkaError`."""
        await self.versions(deadline)
        found: dict[str, int | KafkaError] = {}
        async for attempt in self.attempts(deadline, what):
            with attempt:
                left = [key for key in keys if key not in found or _is_passing(found[key])]
                errors = await self._look_up(key_type, left, attempt.deadline, what)
                found.update({key: errors.get(key) or self.coordinator_of(key, key_type) for key in left})
                any(
                    attempt.again(error)
                    for key in left
                    if isinstance(error := found[key], KafkaError) and _is_passing(error)
                )
        return {key: found[key] for key in keys}

    def _is_known(self, key_type: int, key: str) -> bool:
        known = self.client.cluster.get_coordinator(key_type, key)
        return known is not None and known >= 0 and self.client.cluster.broker_metadata(int(known)) is not None

    async def _look_up(self, key_type: int, keys: list[str], deadline: float, what: str) -> dict[str, KafkaError]:
        """Find coordinators, and return the errors of the unknown ones; brokers since 3.0 take many keys."""
        if not keys:
            return {}
        many = await self.version_of(FindCoordinatorRequest(), deadline) >= _MANY_KEYS_SINCE
        errors: dict[str, KafkaError] = {}

        async def look_up(some: list[str]) -> None:
            request = (
                FindCoordinatorRequest(key_type=key_type, coordinator_keys=some)
                if many
                else FindCoordinatorRequest(key_type=key_type, key=some[0])
            )
            try:
                response = await self.client.request(request, deadline=deadline)
            except KafkaError as error:
                errors.update(dict.fromkeys(some, error))
                return
            entries = {entry.key: entry for entry in response.coordinators} if many else {some[0]: response}
            for key in some:
                entry = entries.get(key)
                if entry is None or self.client.cluster.add_coordinator(entry, key_type, key) is None:
                    kind = CoordinatorNotAvailableError if entry is None else for_code(entry.error_code)
                    message = getattr(entry, "error_message", None) or kind.description
                    errors[key] = kind(f"{what}: the coordinator of {key!r}: {message}")

        size = _GROUPS_PER_REQUEST if many else 1
        await self.gather([look_up(keys[start : start + size]) for start in range(0, len(keys), size)])
        return errors

    # Leaders…

    async def leaders(
        self, partitions: Iterable[TopicPartition], deadline: float, what: str
    ) -> dict[TopicPartition, int | KafkaError]:
        """Return the leader of each partition, or why there is none, from metadata that is fresh."""
        wanted = list(partitions)
        found: dict[TopicPartition, int | KafkaError] = {
            partition: UnknownTopicOrPartitionError(f"{what}: the cluster has no partition {_name(partition)}")
            for partition in wanted
        }
        by_topic: dict[str, list[TopicPartition]] = {}
        for partition in wanted:
            by_topic.setdefault(partition.topic, []).append(partition)
        for topic in await self.topic_metadata(list(by_topic), deadline, what):
            places = {entry.partition_index: entry for entry in topic.partitions}
            for partition in by_topic.get(topic.name or "", ()):
                entry = places.get(partition.partition)
                if topic.error_code:
                    kind = for_code(topic.error_code)
                    found[partition] = kind(f"{what}: {_name(partition)}: {kind.description}")
                elif entry is not None and entry.leader_id < 0:
                    found[partition] = LeaderNotAvailableError(f"{what}: {_name(partition)} has no leader now")
                elif entry is not None:
                    found[partition] = entry.leader_id
        return found

    async def ask_leaders(
        self,
        partitions: Sequence[TopicPartition],
        request: Callable[[list[TopicPartition]], Request[ResponseT]],
        read: Callable[[ResponseT], Mapping[TopicPartition, V | KafkaError]],
        deadline: float,
        what: str,
        *,
        node_id: int | None = None,
        waits: bool = True,
    ) -> dict[TopicPartition, V | KafkaError]:
        """Ask the leaders of partitions, or one broker; return for each what `read` makes of it, or a `KafkaError`.

        Without `waits` a partition that has no leader has its error after a few looks, not at the deadline.
        """
        looks, may_know = 0, not _once(deadline)

        async def locate(left: list[TopicPartition], limit: float) -> Places[TopicPartition]:
            nonlocal looks, may_know
            if node_id is not None:
                return {node_id: left}, {}
            leaders: dict[TopicPartition, int | KafkaError] = {}
            # What describes topics and then looks offsets up needs one look. A leader that has moved since refuses, and
            # is looked up then.
            for one in left if may_know else ():
                leader = self.client.cluster.leader_for_partition(one)
                if leader is not None and leader >= 0:
                    leaders[one] = leader
            may_know = False  # an error brought the others back
            if unknown := [one for one in left if one not in leaders]:
                looks += 1
                leaders.update(await self.leaders(unknown, limit, what))
            places: dict[int | None, list[TopicPartition]] = {}
            errors: dict[TopicPartition, KafkaError] = {}
            for partition, place in leaders.items():
                if isinstance(place, KafkaError):
                    errors[partition] = place
                else:
                    places.setdefault(place, []).append(partition)
            return places, errors

        def passing(answer: V | KafkaError) -> bool:
            limited = isinstance(answer, UnknownTopicOrPartitionError)
            limited = limited or (not waits and isinstance(answer, LeaderNotAvailableError))
            return _is_passing(answer) and (not limited or looks < _LOOKS_FOR_UNKNOWN)

        return await self.decide(partitions, locate, request, read, deadline, what, passing=passing)


def _is_passing(answer: object) -> bool:
    return isinstance(answer, KafkaError) and answer.retriable and not isinstance(answer, KafkaTimeoutError)


def _error_of(answer: object) -> KafkaError | None:
    found = answer if isinstance(answer, KafkaError) else getattr(answer, "error", None)
    return found if isinstance(found, KafkaError) else None


def _name(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"
