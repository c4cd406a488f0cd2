"""Pushes the metrics of a client that its brokers ask for (KIP-714).

Runs on the client's loop, and begins when a broker is connected that serves it: brokers do if a plugin takes metrics.
Until then nothing is sent and nothing waits. A push goes over a connection that is there.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeAlias
from uuid import UUID

from kafka.codec import CODEC_NAMES, CODEC_NONE, compressor, has_codec
from kafka.errors import (
    ClientClosedError,
    Code,
    IllegalStateError,
    KafkaError,
    UnsupportedVersionError,
    for_code,
)
from kafka.future import Future
from kafka.metrics.stats import Total
from kafka.protocol.otlp import CUMULATIVE, DELTA, Point, encode_metrics
from kafka.protocol.telemetry import GetTelemetrySubscriptionsRequest, PushTelemetryRequest
from kafka.version import __version__

if TYPE_CHECKING:
    from kafka._runtime.loop import Loop
    from kafka._runtime.tasks import Task
    from kafka.config import Config
    from kafka.metrics import Metrics
    from kafka.metrics.metric import KafkaMetric, MetricName
    from kafka.net.connection import Connection
    from kafka.net.environment import Environment
    from kafka.net.settings import ConnectionSettings
    from kafka.protocol.telemetry import GetTelemetrySubscriptionsResponse

__all__ = ["Telemetry", "client_instance_id", "unsupported"]

log = logging.getLogger("kafka.client")

_CODECS: Final = frozenset(CODEC_NAMES) - {CODEC_NONE}
_NO_ID: Final = UUID(int=0)
_PREFIX: Final = "org.apache.kafka."
# The pause after a request that failed before an interval is known, in seconds.
_RETRY: Final = 30.0
_DEFAULT_INTERVAL: Final = 300.0
_LAST_PUSH: Final = 1.0  # seconds that close() waits for the last push
# A first push comes after a random part of the interval, so that clients that start together do not push together.
_SPREAD: Final = (0.5, 1.5)
_ASK_AGAIN: Final = frozenset({Code.UNKNOWN_SUBSCRIPTION_ID, Code.UNSUPPORTED_COMPRESSION_TYPE})
#: In place of a code: the request failed on its way.
_NOT_ANSWERED: Final = -(1 << 15)
_NEXT_TIME: Final = frozenset({Code.TELEMETRY_TOO_LARGE, Code.THROTTLING_QUOTA_EXCEEDED, _NOT_ANSWERED})

# The name of a metric and its labels.
_Key: TypeAlias = tuple[str, str]


class _Next(Enum):
    """What follows a request."""

    PUSH = "push after the interval"
    ASK = "ask for the subscription"
    STOP = "push nothing more"


class Subscription(NamedTuple):
    """The subscription that a broker has sent."""

    number: int
    interval: float
    prefixes: tuple[str, ...]
    codec: int
    max_bytes: int
    is_delta: bool


class Listened(Protocol):
    """The metadata of the cluster."""

    def add_listener(self, listener: Callable[..., Any]) -> object:
        """Have a function called after each update."""


class PushingClient(Protocol):
    """The client core, which imports this module."""

    loop: Loop
    settings: ConnectionSettings
    environment: Environment

    @property
    def cluster(self) -> Listened:
        """The metadata of the cluster."""

    def links(self) -> Iterator[Connection]:
        """Go through the connections."""

    async def some_link(self, deadline: float) -> Connection:
        """Wait for a connection to any broker, and return it."""


class Telemetry:
    """The client metrics of one client."""

    def __init__(self, client: PushingClient, metrics: Metrics, config: Config) -> None:
        self.member_id: Callable[[], str] | None = None
        """Returns the id of the group's member."""
        self.subscription: Subscription | None = None
        self.response: GetTelemetrySubscriptionsResponse | None = None
        """Where the subscription comes from."""
        self._client = client
        self._loop = client.loop
        self._metrics = metrics
        self._own: dict[MetricName, KafkaMetric] = {}
        self._resource = {
            name: str(config[name])
            for name in ("client_rack", "group_id", "group_instance_id", "transactional_id")
            if config.get(name)
        }
        self._instance_id: Future[UUID] = Future()
        self._task: Task[object] | None = None
        self._stopped = False
        self._began_ns = self._now_ns()
        # Time and sums of the last push that a broker took.
        self._pushed_ns = self._began_ns
        self._sums: dict[_Key, float] = {}
        self._names: dict[KafkaMetric, tuple[_Key, dict[str, str], bool]] = {}
        client.cluster.add_listener(lambda _cluster: self._look())
        client.loop.on_close(self._closed)

    # The application's calls…

    def add(self, metric: KafkaMetric) -> None:
        """Push a metric of the application too; it replaces one of the same name."""
        self._own[metric.metric_name] = metric

    def remove(self, metric: KafkaMetric) -> None:
        """Push a metric of the application no more."""
        self._own.pop(metric.metric_name, None)

    async def instance_id(self, deadline: float) -> UUID:
        """Return the id that brokers know this client by, as soon as one has given it."""
        if not self._instance_id.is_done:
            if self._task is None:
                await self._client.some_link(deadline)
                self._look()
            if self._task is None:
                raise unsupported()
            with self._loop.timeout_at(deadline, "waiting for the client instance id"):
                await self._instance_id
        found = self._instance_id.value
        assert found is not None
        return found

    # Asking…

    def _look(self) -> None:
        """Begin once a broker is connected that takes metrics."""
        if self._task is None and not self._stopped and self._link() is not None:
            self._task = self._loop.spawn_logged(self._run(), "client metrics")

    def _link(self) -> Connection | None:
        """Return a connection to a broker that takes metrics, the one with the least to do."""
        ready = [
            link
            for link in self._client.links()
            if link.ready and link.versions is not None and link.versions.reaches(PushTelemetryRequest.API_KEY)
        ]
        return min(ready, key=lambda link: link.in_flight_requests, default=None)

    async def _connection(self, deadline: float) -> Connection:
        return self._link() or await self._client.some_link(deadline)

    async def _run(self) -> None:
        while not self._stopped:
            subscription = await self._ask()
            if subscription is not None and subscription.prefixes:
                # Which waits for half of an interval at least, so that no broker makes this a busy loop.
                await self._push_each(subscription)
            elif not self._stopped:
                await self._loop.sleep(_RETRY if self.subscription is None else self.subscription.interval)

    async def _ask(self) -> Subscription | None:
        deadline = self._loop.time() + self._client.settings.request_timeout
        known = self._instance_id.value if self._instance_id.is_done else _NO_ID
        try:
            link = await self._connection(deadline)
            response = await link.submit(GetTelemetrySubscriptionsRequest(client_instance_id=known), deadline=deadline)
        except UnsupportedVersionError as error:
            self._stop(error)
            return None
        except KafkaError as error:
            log.debug("The subscription of client metrics is not known: %s", error)
            return None
        if response.error_code:
            if response.error_code not in _NEXT_TIME:
                self._stop(for_code(response.error_code)("a broker refused to say which client metrics it wants"))
            return None
        self.response = response
        self._instance_id.try_success(response.client_instance_id)
        found = _subscription(response)
        if self.subscription is None or self.subscription.is_delta != found.is_delta:
            self._sums.clear()
            self._pushed_ns = self._began_ns
        self.subscription = found
        return found

    def _stop(self, error: KafkaError) -> None:
        self._stopped = True
        self._instance_id.try_failure(error)
        log.warning("No client metrics are pushed from now on: %s", error)

    # Pushing…

    async def _push_each(self, subscription: Subscription) -> None:
        """Push until the subscription changes."""
        low, high = _SPREAD
        await self._loop.sleep(subscription.interval * self._loop.rng.uniform(low, high))
        while not self._stopped:
            next_step = await self._push(subscription, self._loop.time() + self._client.settings.request_timeout)
            if next_step is not _Next.PUSH:
                return
            await self._loop.sleep(subscription.interval)

    async def _push(self, subscription: Subscription, deadline: float, *, terminating: bool = False) -> _Next:
        now_ns = self._now_ns()
        data, sums = self._payload(subscription, now_ns)
        request = PushTelemetryRequest(
            client_instance_id=self._instance_id.value,
            subscription_id=subscription.number,
            terminating=terminating,
            compression_type=subscription.codec if data else CODEC_NONE,
            metrics=data,
        )
        before = self._sums, self._pushed_ns
        # Before the answer: of a push that is cancelled while it is under way the broker may have had the sums.
        self._sums, self._pushed_ns = sums, now_ns
        code = 0
        try:
            link = await self._connection(deadline)
            code = (await link.submit(request, deadline=deadline)).error_code
        except UnsupportedVersionError as error:
            self._stop(error)
            return _Next.STOP
        except KafkaError as error:
            log.debug("Client metrics were not pushed: %s", error)
            code = _NOT_ANSWERED
        if code:
            self._sums, self._pushed_ns = before
        if not code or code in _NEXT_TIME:
            return _Next.PUSH
        if code in _ASK_AGAIN:
            return _Next.ASK
        self._stop(for_code(code)("a broker refused client metrics"))
        return _Next.STOP

    def _payload(self, subscription: Subscription, now_ns: int) -> tuple[bytes, dict[_Key, float]]:
        """Return the metrics that a broker wants, compressed, and their sums; without the metrics of nodes if large."""
        points, sums = self._points(subscription, now_ns / 1e6)
        resource = dict(self._resource)
        if self.member_id is not None and (member_id := self.member_id()):
            resource["group_member_id"] = member_id
        data = b""
        for some in (points, [point for point in points if not point.labels]):
            data = encode_metrics(
                some,
                now_ns,
                temporality=DELTA if subscription.is_delta else CUMULATIVE,
                resource=resource,
                scope=("purekafka", __version__),
            )
            if data and subscription.codec != CODEC_NONE:
                data = bytes(compressor(subscription.codec)(data))
            if len(data) <= subscription.max_bytes:
                return data, sums
        log.debug("Client metrics take %d bytes, and the broker takes %d", len(data), subscription.max_bytes)
        return b"", self._sums

    def _points(self, subscription: Subscription, now_ms: float) -> tuple[list[Point], dict[_Key, float]]:
        points: list[Point] = []
        sums: dict[_Key, float] = {}
        for metric, (key, labels, is_sum) in self._named().items():
            name = key[0]
            if not name.startswith(subscription.prefixes):
                continue
            try:
                value = metric.value(now_ms)
            except Exception:  # the application's own, or a gauge whose state another thread has just changed
                log.debug("The metric %s cannot be read now", name, exc_info=True)
                continue
            if not math.isfinite(value):  # nothing was recorded yet
                continue
            start = 0
            if is_sum:
                sums[key] = value
                start = self._began_ns
                if subscription.is_delta:
                    value -= self._sums.get(key, 0.0)
                    start = self._pushed_ns
            points.append(Point(name, value, labels, start, is_sum))
        return points, sums

    def _named(self) -> dict[KafkaMetric, tuple[_Key, dict[str, str], bool]]:
        """Return the metrics with their names, which are kept from one push to the next."""
        before = self._names
        found = (*self._metrics.metrics.values(), *tuple(self._own.values()))
        self._names = {metric: before.get(metric) or _java_name(metric) for metric in found}
        return self._names

    def _now_ns(self) -> int:
        return int(self._client.environment.clock.time() * 1e9)

    # Closing…

    async def finish(self, deadline: float) -> None:
        """Push for the last time if a broker wants metrics, within a second and by the deadline. Raises nothing."""
        task, subscription, self._task = self._task, self.subscription, None
        ended, self._stopped = self._stopped, True
        if task is not None:
            task.cancel()
        if ended or subscription is None or not subscription.prefixes or self._link() is None:
            return
        deadline = min(deadline, self._loop.time() + _LAST_PUSH)
        if deadline > self._loop.time():
            await self._push(subscription, deadline, terminating=True)

    def _closed(self) -> None:
        self._stopped = True
        self._instance_id.try_failure(ClientClosedError("The client was closed."))


def _java_name(metric: KafkaMetric) -> tuple[_Key, dict[str, str], bool]:
    """Return the name and the labels of a metric in Java's clients, and whether it is a sum."""
    of = metric.metric_name
    group, _, part = of.group.partition(".")
    group = group.removesuffix("-metrics")
    labels = {key.replace("-", "_").lower(): str(value) for key, value in of.tags.items() if key != "client-id"}
    if part:  # consumer-node-metrics.node-1
        labels[f"{group.rpartition('-')[2]}_id"] = part
    name = f"{_PREFIX}{group}.{of.name}".replace("-", ".").lower()
    return (name, str(labels)), labels, isinstance(metric.measurable, Total)


def _subscription(response: GetTelemetrySubscriptionsResponse) -> Subscription:
    wanted = response.requested_metrics
    everything = any(prefix in {"", "*"} for prefix in wanted)
    usable = [number for number in response.accepted_compression_types if number in _CODECS and has_codec(number)]
    interval = response.push_interval_ms / 1000
    return Subscription(
        response.subscription_id,
        interval if interval > 0 else _DEFAULT_INTERVAL,
        ("",) if everything else tuple(wanted),
        usable[0] if usable else CODEC_NONE,
        response.telemetry_max_bytes if response.telemetry_max_bytes > 0 else 1 << 30,
        response.delta_temporality,
    )


async def client_instance_id(telemetry: Telemetry | None, deadline: float) -> UUID:
    """Return the id that brokers know a client by."""
    if telemetry is None:
        raise IllegalStateError(
            "client_instance_id() needs enable_metrics_push=True and metrics_enabled=True: brokers give an id to "
            "clients that push metrics"
        )
    return await telemetry.instance_id(deadline)


def unsupported(what: str = "client_instance_id()") -> UnsupportedVersionError:
    """Return the error of a client whose brokers take no metrics."""
    return UnsupportedVersionError(
        f"{what} needs Kafka 3.7, and brokers with a plugin in metric.reporters that takes client metrics (KIP-714)"
    )
