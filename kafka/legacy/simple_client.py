"""`SimpleClient`, the blocking client of the releases up to 1.4: each call sends payloads and returns the responses.

It keeps its own tables of leaders and sends through a `KafkaClient`, which connects and finds out what the brokers
have. A call takes `timeout` seconds at most. One lock serves threads that share a client, as the consumers' timers do.
"""

from __future__ import annotations

import logging
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka.client_async import KafkaClient
from kafka.cluster import collect_hosts
from kafka.errors import (
    BrokerResponseError,
    Code,
    FailedPayloadsError,
    GroupCoordinatorNotAvailableError,
    KafkaConnectionError,
    KafkaError,
    KafkaTimeoutError,
    KafkaUnavailableError,
    LeaderNotAvailableError,
    NoBrokersAvailable,
    ReplicaNotAvailableError,
    UnknownTopicOrPartitionError,
    for_code,
)
from kafka.future import Future
from kafka.legacy import payload_requests, warn_deprecated
from kafka.legacy.payload_requests import HistoricConnection, check_error, failed_payload, name_of, with_names
from kafka.legacy.payloads import ConsumerMetadataResponse
from kafka.legacy.protocol_payloads import KafkaProtocol
from kafka.protocol.commit import FindCoordinatorRequest, OffsetCommitRequest
from kafka.protocol.fetch import FetchRequest
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.offset import ListOffsetsRequest
from kafka.protocol.produce import ProduceRequest
from kafka.structs import BrokerMetadata, TopicPartition

if TYPE_CHECKING:
    from typing import Protocol

    from typing_extensions import Self

    from kafka.legacy.payloads import OfPartition
    from kafka.protocol.api import Request, Response
    from kafka.protocol.metadata import MetadataResponse

    class _Result(OfPartition, Protocol):
        @property
        def error(self) -> int: ...


__all__ = ["SimpleClient"]

log = logging.getLogger("kafka.client")

P = TypeVar("P", bound="OfPartition")
R = TypeVar("R", bound="_Result")
ResponseT = TypeVar("ResponseT", bound="Response")

Callback = Callable[[Any], Any] | None
TopicName = str | bytes

_NO_LEADER: Final = -1
_LAST_WITH_ZOOKEEPER: Final = (0, 8, 2)  # later releases keep positions in Kafka alone, unless they are asked twice
_COORDINATOR_ERRORS: Final = frozenset(
    {Code.COORDINATOR_LOAD_IN_PROGRESS, Code.COORDINATOR_NOT_AVAILABLE, Code.NOT_COORDINATOR}
)
_PAUSE: Final = 0.1  # between attempts, in seconds


class SimpleClient:
    """A blocking client that sends payloads to the brokers that lead their partitions.

    >>> from kafka.broker import Broker
    >>> from kafka.protocol import create_message
    >>> from kafka.structs import ProduceRequestPayload
    >>> with Broker(topics={"events": 1}) as broker:
    ...     with SimpleClient(broker.bootstrap_servers) as client:
    ...         payload = ProduceRequestPayload("events", 0, [create_message("some message")])
    ...         client.send_produce_request([payload])
    [ProduceResponsePayload(topic='events', partition=0, error=0, offset=0)]

    ``hosts`` and ``timeout`` (seconds, for each call) are as they were. Further keyword arguments are options of
    `KafkaClient`, such as those for TLS and SASL. New programs use `KafkaProducer`, `KafkaConsumer` and `KafkaClient`.
    """

    CLIENT_ID = b"kafka-python"
    DEFAULT_SOCKET_TIMEOUT_SECONDS = 120

    def __init__(
        self,
        hosts: str | Iterable[str],
        client_id: str | bytes = CLIENT_ID,
        timeout: float = DEFAULT_SOCKET_TIMEOUT_SECONDS,
        correlation_id: int = 0,
        **configs: Any,
    ) -> None:
        warn_deprecated("SimpleClient", "KafkaProducer, KafkaConsumer or KafkaClient")
        self._set_up(hosts, client_id, timeout, correlation_id, configs)
        self.load_metadata_for_topics()

    def _set_up(
        self,
        hosts: str | Iterable[str],
        client_id: str | bytes,
        timeout: float,
        correlation_id: int,
        configs: dict[str, Any],
    ) -> None:
        self.client_id = client_id
        self.timeout = timeout
        self.hosts = collect_hosts(hosts)
        self.correlation_id = correlation_id
        self.brokers: dict[int, BrokerMetadata] = {}
        self.topics_to_brokers: dict[TopicPartition, BrokerMetadata | None] = {}
        self.topic_partitions: dict[str, dict[int, int]] = {}
        self._servers = hosts if isinstance(hosts, str) else list(hosts)
        self._configs = configs
        self._lock = RLock()
        self._client: KafkaClient | None = None

    # Connecting and closing

    @property
    def client(self) -> KafkaClient:
        """The client that sends; connects at its first use."""
        with self._lock:
            if self._client is None:
                name = self.client_id.decode() if isinstance(self.client_id, bytes) else self.client_id
                options = {"request_timeout_ms": int(self.timeout * 1000), **self._configs}
                try:
                    self._client = KafkaClient(bootstrap_servers=self._servers, client_id=name, **options)
                except NoBrokersAvailable as error:
                    raise KafkaUnavailableError(f"All servers failed to process request: {error}") from error
            return self._client

    def close(self) -> None:
        """Close the connections. The next call connects again."""
        with self._lock:
            client, self._client = self._client, None
            if client is not None:
                client.close()

    def reinit(self) -> None:
        """Close the connections and connect again."""
        self.close()
        if not self.client.bootstrap_connected():
            self.load_metadata_for_topics()

    def copy(self) -> Self:
        """Return a client of the same cluster with its own connections, which it opens when it is used."""
        cls = type(self)
        other = cls.__new__(cls)
        other.__setstate__(self.__getstate__())
        return other

    def __getstate__(self) -> dict[str, Any]:
        partitions = {topic: dict(leaders) for topic, leaders in self.topic_partitions.items()}
        return {
            "settings": (self._servers, self.client_id, self.timeout, self.correlation_id, self._configs),
            "tables": (dict(self.brokers), dict(self.topics_to_brokers), partitions),
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._set_up(*state["settings"])
        self.brokers, self.topics_to_brokers, self.topic_partitions = state["tables"]

    def __deepcopy__(self, memo: object) -> Self:
        return self.copy()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_client", None) is not None:
            self.close()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} client_id={self.client_id!r}>"

    # Metadata

    @property
    def topics(self) -> list[str]:
        """The names of the known topics."""
        return list(self.topic_partitions)

    def has_metadata_for_topic(self, topic: TopicName) -> bool:
        """Whether the topic is known and has partitions."""
        return bool(self.topic_partitions.get(name_of(topic)))

    def get_partition_ids_for_topic(self, topic: TopicName) -> list[int]:
        """Return the partitions of a topic in order; none if it is not known."""
        return sorted(self.topic_partitions.get(name_of(topic), ()))

    def ensure_topic_exists(self, topic: TopicName, timeout: float = 30) -> None:
        """Wait until the topic has partitions, which creates it on brokers with auto.create.topics.enable."""
        deadline = time.monotonic() + timeout
        while not self.has_metadata_for_topic(topic):
            self.load_metadata_for_topics(topic, ignore_leadernotavailable=True)
            if not self.has_metadata_for_topic(topic):
                if time.monotonic() >= deadline:
                    raise KafkaTimeoutError(f"The brokers do not have topic {name_of(topic)!r} after {timeout:g} s")
                time.sleep(_PAUSE)

    def reset_topic_metadata(self, *topics: TopicName) -> None:
        """Forget the partitions and leaders of topics."""
        for topic in map(name_of, topics):
            for partition in self.topic_partitions.pop(topic, ()):
                self.topics_to_brokers.pop(TopicPartition(topic, partition), None)

    def reset_all_metadata(self) -> None:
        """Forget the partitions and leaders of all topics."""
        self.topics_to_brokers.clear()
        self.topic_partitions.clear()

    def load_metadata_for_topics(self, *topics: TopicName, **kwargs: object) -> MetadataResponse:
        """Ask for the partitions and leaders of topics, or of all topics, and return the response.

        For topics that are named, UnknownTopicOrPartitionError and LeaderNotAvailableError are raised; the latter
        not with ``ignore_leadernotavailable=True``.
        """
        names = [name_of(topic) for topic in topics]
        response: MetadataResponse = self.send_metadata_request(names)
        self.brokers.update({b.node_id: BrokerMetadata(b.node_id, b.host, b.port) for b in response.brokers})
        if names:
            self.reset_topic_metadata(*names)
        else:
            self.reset_all_metadata()
        for topic in response.topics:
            self._take_topic(topic, bool(names), bool(kwargs.get("ignore_leadernotavailable", False)))
        return response

    def _take_topic(self, topic: Any, named: bool, ignore_missing_leader: bool) -> None:
        """Put a topic of a response into the tables."""
        if topic.error_code:
            error = for_code(topic.error_code)(f"topic {topic.name!r}")
            if named and not (ignore_missing_leader and isinstance(error, LeaderNotAvailableError)):
                if isinstance(error, UnknownTopicOrPartitionError) and ignore_missing_leader:
                    return  # it is being created
                raise error
            log.warning("Metadata of topic %s: %s", topic.name, error)
            return
        self.topic_partitions[topic.name] = partitions = {}
        for found in topic.partitions:
            partitions[found.partition_index] = found.leader_id
            known = TopicPartition(topic.name, found.partition_index)
            error_type = for_code(found.error_code)
            if issubclass(error_type, LeaderNotAvailableError) or found.leader_id == _NO_LEADER:
                log.error("No leader for %s partition %d", topic.name, found.partition_index)
                self.topics_to_brokers[known] = None
            else:
                if found.error_code and not issubclass(error_type, ReplicaNotAvailableError):
                    log.warning("Metadata of %s: %s", known, error_type.__name__)
                self.topics_to_brokers[known] = self.brokers.get(found.leader_id)

    def _leader(self, topic: str, partition: int) -> BrokerMetadata:
        """Return the leader of a partition; asks for its topic if it is not known."""
        known = TopicPartition(topic, partition)
        leader = self.topics_to_brokers.get(known)
        if leader is None:
            self.load_metadata_for_topics(topic)
            if partition not in self.topic_partitions.get(topic, ()):
                raise UnknownTopicOrPartitionError(f"{topic} has no partition {partition}")
            leader = self.topics_to_brokers.get(known)
        if leader is None:
            raise LeaderNotAvailableError(f"{topic} partition {partition} has no leader")
        return leader

    # Requests

    def send_metadata_request(
        self,
        payloads: Iterable[TopicName] = (),
        fail_on_error: bool = True,  # noqa: ARG002 - as it was
        callback: Callback = None,
    ) -> Any:
        """Ask any broker for topics, or for all of them, and return the response."""
        names = [name_of(topic) for topic in payloads]
        with self._asking():
            response = self.client.ask(MetadataRequest[0](names))
            self.client.cluster.update_metadata(response)
        return response if callback is None else callback(response)

    def send_consumer_metadata_request(
        self, payloads: str | bytes | Iterable[str | bytes] = (), fail_on_error: bool = True, callback: Callback = None
    ) -> list[Any]:
        """Ask any broker for the coordinator of a group, or of several."""
        groups = [payloads] if isinstance(payloads, (str, bytes)) else payloads
        answers = []
        for group in groups:
            with self._asking():
                found = self.client.ask(FindCoordinatorRequest[0](name_of(group)), self.client.least_loaded_node())
            answers.append(ConsumerMetadataResponse(found.error_code, found.node_id, found.host, found.port))
        return self._results(answers, fail_on_error, callback)

    def send_produce_request(
        self,
        payloads: Iterable[object] = (),
        acks: int = 1,
        timeout: int = 1000,
        fail_on_error: bool = True,
        callback: Callback = None,
    ) -> list[Any]:
        """Send `ProduceRequestPayload`; ``timeout`` (ms) is the broker's, for the replicas.

        Returns a `ProduceResponsePayload` for each, in their order; none with ``acks=0``. With ``fail_on_error`` the
        first error is raised; without it, a payload that could not be sent is returned as `FailedPayloadsError`.
        """
        if acks not in (1, 0, -1):
            raise ValueError(f"acks must be 1, 0 or -1, not {acks!r}")
        return self._send_to_leaders(
            payloads,
            ProduceRequest,
            lambda version, own: payload_requests.produce_request(version, own, acks, timeout),
            payload_requests.produce_responses if acks else None,
            fail_on_error,
            callback,
        )

    def send_fetch_request(
        self,
        payloads: Iterable[object] = (),
        fail_on_error: bool = True,
        callback: Callback = None,
        max_wait_time: int = 100,
        min_bytes: int = 4096,
    ) -> list[Any]:
        """Send `FetchRequestPayload`; return a `FetchResponsePayload` for each, in their order."""
        return self._send_to_leaders(
            payloads,
            FetchRequest,
            lambda version, own: payload_requests.fetch_request(version, own, max_wait_time, min_bytes),
            payload_requests.fetch_responses,
            fail_on_error,
            callback,
        )

    def send_offset_request(
        self, payloads: Iterable[object] = (), fail_on_error: bool = True, callback: Callback = None
    ) -> list[Any]:
        """Send `OffsetRequestPayload`; return an `OffsetResponsePayload` for each.

        Kafka 4 has one offset for each partition, whatever ``max_offsets`` asks for.
        """
        make, read = payload_requests.offset_request, payload_requests.offset_responses
        return self._send_to_leaders(payloads, ListOffsetsRequest, make, read, fail_on_error, callback, oldest=True)

    def send_list_offset_request(
        self, payloads: Iterable[object] = (), fail_on_error: bool = True, callback: Callback = None
    ) -> list[Any]:
        """Send `ListOffsetRequestPayload`; return a `ListOffsetResponsePayload` for each. Needs Kafka 0.10.1."""
        return self._send_to_leaders(
            payloads,
            ListOffsetsRequest,
            lambda _version, own: KafkaProtocol.encode_list_offset_request(own),
            KafkaProtocol.decode_list_offset_response,
            fail_on_error,
            callback,
        )

    def send_offset_commit_request(
        self, group: str | bytes, payloads: Iterable[object] = (), fail_on_error: bool = True, callback: Callback = None
    ) -> list[Any]:
        """Commit `OffsetCommitRequestPayload`: to ZooKeeper on brokers of 0.8, to Kafka on later ones."""
        wanted = with_names(payloads)
        version = 0 if self._has_zookeeper() else self._version(OffsetCommitRequest)
        request = payload_requests.commit_request(version, name_of(group), wanted)
        read = KafkaProtocol.decode_offset_commit_response
        return self._ask_coordinator(request, wanted, read, fail_on_error, callback)

    def send_offset_fetch_request(
        self, group: str | bytes, payloads: Iterable[object] = (), fail_on_error: bool = True, callback: Callback = None
    ) -> list[Any]:
        """Read committed positions: from ZooKeeper on brokers of 0.8, from Kafka on later ones."""
        return self._fetch_offsets(not self._has_zookeeper(), group, payloads, fail_on_error, callback)

    def send_offset_fetch_request_kafka(
        self, group: str | bytes, payloads: Iterable[object] = (), fail_on_error: bool = True, callback: Callback = None
    ) -> list[Any]:
        """Read committed positions from Kafka."""
        return self._fetch_offsets(True, group, payloads, fail_on_error, callback)

    def _fetch_offsets(
        self, from_kafka: bool, group: str | bytes, payloads: Iterable[object], fail_on_error: bool, callback: Callback
    ) -> list[Any]:
        wanted = with_names(payloads)
        request = KafkaProtocol.encode_offset_fetch_request(name_of(group), wanted, from_kafka)
        read = KafkaProtocol.decode_offset_fetch_response
        return self._ask_coordinator(request, wanted, read, fail_on_error, callback)

    # Sending

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """Hold the lock; an unreachable cluster is a `KafkaUnavailableError`."""
        with self._lock:
            try:
                yield
            except (NoBrokersAvailable, KafkaTimeoutError) as error:
                raise KafkaUnavailableError(f"All servers failed to process request: {error}") from error

    def _version(self, request: type[Request[Response]] | None, oldest: bool = False) -> int:
        """Return the version of a request to use; 0 for one that a subclass encodes itself."""
        if request is None:
            return 0
        low, high = (self.client.get_api_versions() or {}).get(request.API_KEY, (0, 0))
        return low if oldest else min(high, payload_requests.NEWEST[request])

    def _has_zookeeper(self) -> bool:
        release = self.client.api_version
        return release is not None and release[:3] <= _LAST_WITH_ZOOKEEPER

    def _send_to_leaders(
        self,
        payloads: Iterable[object],
        api: type[Request[Response]] | None,
        make: Callable[[int, list[Any]], Request[ResponseT]],
        read: Callable[[ResponseT], list[R]] | None,
        fail_on_error: bool = False,
        callback: Callback = None,
        oldest: bool = False,
    ) -> list[Any]:
        """Send each payload to its partition's leader, to all leaders at once, and return the responses in order."""
        wanted = with_names(payloads)
        results: dict[tuple[str, int], R | FailedPayloadsError] = {}
        with self._lock:
            by_leader = self._by_leader(wanted, results)
            sent: list[tuple[Future[ResponseT], list[OfPartition]]] = []
            for node_id, own in by_leader.items():
                request = make(self._version(api, oldest), own)
                sent.append((self._submit(node_id, request), own))
            deadline = time.monotonic() + self.timeout
            for future, own in sent:
                self._wait(future, deadline)
                self._take(future, own, read, results)
        if read is None:
            failed = [one for one in results.values() if isinstance(one, FailedPayloadsError)]
            return self._results(failed, fail_on_error, callback)
        in_order = [results[payload.topic, payload.partition] for payload in wanted]
        return self._results(in_order, fail_on_error, callback)

    def _by_leader(
        self, wanted: list[P], results: dict[tuple[str, int], R | FailedPayloadsError]
    ) -> dict[int, list[P]]:
        by_leader: dict[int, list[P]] = defaultdict(list)
        for payload in wanted:
            try:
                leader = self._leader(payload.topic, payload.partition)
            except (KafkaUnavailableError, BrokerResponseError) as error:  # noqa: PERF203 - of one partition
                results[payload.topic, payload.partition] = failed_payload(payload, error)
            else:
                by_leader[int(leader.nodeId)].append(payload)
        return by_leader

    def _submit(self, node_id: int, request: Request[ResponseT]) -> Future[ResponseT]:
        try:
            return self.client.submit(node_id, request, timeout=self.timeout)
        except KafkaError as error:  # the broker has left
            return Future[ResponseT]().failure(error)

    def _wait(self, future: Future[ResponseT], deadline: float) -> None:
        while not future.is_done:
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                return
            self.client.poll(timeout_ms=remaining * 1000, future=future)

    def _take(
        self,
        future: Future[ResponseT],
        own: Iterable[OfPartition],
        read: Callable[[ResponseT], list[R]] | None,
        results: dict[tuple[str, int], R | FailedPayloadsError],
    ) -> None:
        """Put what a broker answered, or why it did not, into the results."""
        if future.succeeded():
            for response in read(future.result()) if read is not None else ():
                results[response.topic, response.partition] = response
                error = for_code(response.error)
                if error.invalid_metadata:
                    self.reset_topic_metadata(response.topic)
            missing: Exception = KafkaError("the response lacks the partition")
        else:
            missing = (
                future.exception
                if isinstance(future.exception, Exception)
                else KafkaTimeoutError(f"no response within {self.timeout:g} s")
            )
            self.reset_all_metadata()
        if read is not None or not future.succeeded():
            for payload in own:
                results.setdefault((payload.topic, payload.partition), failed_payload(payload, missing))

    def _ask_coordinator(
        self,
        request: Request[ResponseT],
        wanted: list[OfPartition],
        read: Callable[[ResponseT], list[R]],
        fail_on_error: bool,
        callback: Callback,
    ) -> list[Any]:
        """Send a request to the group's coordinator, and again while that moves or loads."""
        deadline = time.monotonic() + self.timeout
        group = request.group_id
        while True:
            with self._asking():
                node_id = self.client.least_loaded_node() if request.API_VERSION == 0 else None
                responses = read(self.client.ask(request, node_id))
                moved = any(response.error in _COORDINATOR_ERRORS for response in responses)
                if not moved or time.monotonic() >= deadline:
                    break
                self.client.cluster.forget_coordinator(0, group)
            time.sleep(_PAUSE)
        found = {(response.topic, response.partition): response for response in responses}
        in_order = [found[payload.topic, payload.partition] for payload in wanted]
        return self._results(in_order, fail_on_error, callback)

    @staticmethod
    def _results(responses: Sequence[object], fail_on_error: bool, callback: Callback) -> list[Any]:
        if fail_on_error:
            for response in responses:
                check_error(response)
        return [
            response if callback is None or isinstance(response, FailedPayloadsError) else callback(response)
            for response in responses
        ]

    # Private methods of 1.x, which subclasses in operators' tools call

    _raise_on_response_error = staticmethod(check_error)
    _get_leader_for_partition = _leader

    def _get_coordinator_for_group(self, group: str) -> BrokerMetadata:
        """Return the coordinator of a group; an error if the brokers do not have one yet."""
        response = self.send_consumer_metadata_request(group, fail_on_error=False)
        found = response[0] if isinstance(response, list) else response  # a subclass may return one
        if found.error:
            raise for_code(found.error)(f"group {group}")
        if found.nodeId < 0:
            raise GroupCoordinatorNotAvailableError(f"group {group}")
        return BrokerMetadata(found.nodeId, found.host, found.port)

    def _get_conn(self, host: str, port: int, afi: int = 0) -> HistoricConnection:  # noqa: ARG002 - as it was
        """Return a connection to a broker by its address."""
        for broker in (*self.brokers.values(), *self.client.cluster.brokers()):
            if (broker.host, broker.port) == (host, port):
                return HistoricConnection(self, int(broker.nodeId))
        raise KafkaConnectionError(f"no broker has the address {host}:{port}")

    def _send_broker_unaware_request(
        self, payloads: Iterable[object], encoder_fn: Callable[..., Any], decoder_fn: Callable[[Any], object]
    ) -> Any:
        """Send one request to any broker and decode the response."""
        with self._asking():
            return decoder_fn(self.client.ask(encoder_fn(payloads=payloads), self.client.least_loaded_node()))

    def _send_broker_aware_request(
        self, payloads: Iterable[object], encoder_fn: Callable[..., Any], decoder_fn: Callable[[Any], list[Any]] | None
    ) -> list[Any]:
        """Send payloads to the leaders of their partitions, in requests that the caller encodes."""
        return self._send_to_leaders(payloads, None, lambda _version, own: encoder_fn(payloads=own), decoder_fn)

    def _send_consumer_aware_request(
        self, group: str, payloads: Iterable[Any], encoder_fn: Callable[..., Any], decoder_fn: Callable[[Any], Any]
    ) -> list[Any]:
        """Send payloads to the coordinator of a group, in a request that the caller encodes."""
        coordinator = self._get_coordinator_for_group(group)
        wanted = list(payloads)
        with self._asking():
            responses = decoder_fn(self.client.ask(encoder_fn(group, wanted), int(coordinator.nodeId)))
        found = {(response.topic, response.partition): response for response in responses}
        missing = [payload for payload in wanted if (payload.topic, payload.partition) not in found]
        if missing:
            raise KafkaError(f"the response lacks {missing}")
        return [found[payload.topic, payload.partition] for payload in wanted]
