"""Private methods of ``SimpleClient`` in kafka-python 1.x, which subclasses in operators' tools call."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from kafka.errors import GroupCoordinatorNotAvailableError, KafkaConnectionError, KafkaError, for_code
from kafka.future import Future
from kafka.structs import BrokerMetadata

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from kafka.client_async import KafkaClient
    from kafka.protocol.api import Request, Response

__all__ = ["HistoricConnection", "SimpleClientInternals"]

Encoder = Callable[..., Any]
Decoder = Callable[[Any], list[Any]] | None


class HistoricConnection:
    """A connection as 1.x had it: `recv` returns responses with their futures, which the caller completes."""

    def __init__(self, client: SimpleClientInternals, node_id: int) -> None:
        self._client = client
        self._node_id = node_id
        self._sent: list[tuple[Future[Any], Future[Any]]] = []

    def send(self, request: Request[Response], *_: object, **__: object) -> Future[Any]:
        """Send a request; the future is completed by who calls `recv`."""
        outcome: Future[Any] = Future()
        self._sent.append((self._client.client.submit(self._node_id, request, timeout=self._client.timeout), outcome))
        return outcome

    def recv(self) -> list[tuple[Any, Future[Any]]]:
        """Wait for the oldest response, and return what has arrived; an error completes its future."""
        if self._sent:
            self._client.client.poll(future=self._sent[0][0])
        arrived = [pair for pair in self._sent if pair[0].is_done]
        self._sent = [pair for pair in self._sent if not pair[0].is_done]
        for inner, outcome in arrived:
            if inner.exception is not None:
                outcome.failure(inner.exception)
        return [(inner.value, outcome) for inner, outcome in arrived if inner.succeeded()]


if TYPE_CHECKING:

    class _Client:
        """The names of `SimpleClient`."""

        brokers: Mapping[int, BrokerMetadata]
        timeout: float

        @property
        def client(self) -> KafkaClient: ...
        def send_consumer_metadata_request(self, payloads: str, fail_on_error: bool) -> list[Any]: ...
        def _any_node(self) -> int | str | None: ...
        def _asking(self) -> AbstractContextManager[None]: ...
        def _leader(self, topic: str, partition: int) -> BrokerMetadata: ...
        def _send_to_leaders(
            self,
            payloads: Iterable[object],
            api: type[Request[Response]] | None,
            make: Callable[[int, list[Any]], Any],
            read: Decoder,
        ) -> list[Any]: ...

else:
    _Client = object


class SimpleClientInternals(_Client):
    """What `SimpleClient` inherits."""

    @staticmethod
    def _raise_on_response_error(resp: object) -> None:
        from kafka.legacy.simple_client import check_error

        check_error(resp)

    def _get_leader_for_partition(self, topic: str, partition: int) -> BrokerMetadata:
        return self._leader(topic, partition)

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
        self, payloads: Iterable[object], encoder_fn: Encoder, decoder_fn: Callable[[Any], object]
    ) -> Any:
        """Send one request to any broker and decode the response."""
        with self._asking():
            return decoder_fn(self.client.ask(encoder_fn(payloads=payloads), self._any_node()))

    def _send_broker_aware_request(
        self, payloads: Iterable[object], encoder_fn: Encoder, decoder_fn: Decoder
    ) -> list[Any]:
        """Send payloads to the leaders of their partitions, in requests that the caller encodes."""
        return self._send_to_leaders(payloads, None, lambda _version, own: encoder_fn(payloads=own), decoder_fn)

    def _send_consumer_aware_request(
        self, group: str, payloads: Iterable[Any], encoder_fn: Encoder, decoder_fn: Callable[[Any], Any]
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
