"""What every producer object has, whatever it is called for: its options, its parts, its end.

Runs on the threads of the application. `kafka.producer.transactional` and `kafka.producer.kafka` build on this.
"""

from __future__ import annotations

import atexit
import logging
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from types import TracebackType
from typing import TYPE_CHECKING, Any, Final, NoReturn

from kafka._text import counted
from kafka.config import Config, defaults
from kafka.errors import ClientClosedError, IllegalStateError, KafkaError, KafkaTimeoutError
from kafka.partitioner import DefaultPartitioner, bind_partitioner
from kafka.producer.arguments import (
    checked_config,
    checked_release,
    checked_timeout,
    options_of,
)
from kafka.serializer import bind_serializer

if TYPE_CHECKING:
    from typing_extensions import Self

    from kafka.interceptors import Interceptors
    from kafka.net.environment import Environment

__all__ = ["ProducerFace"]

log = logging.getLogger(__name__)

# How long the records that are left over may take when the program ends without closing its producer, in seconds.
_EXIT_GRACE: Final = 5.0
_FOREVER: Final = 10.0**9


class ProducerFace:
    """See the head of this file."""

    DEFAULT_CONFIG: Final[dict[str, Any]] = defaults("producer")

    def __init__(self, *options: Mapping[str, Any], environment: Environment | None = None, **configs: Any) -> None:
        self._closed = True  # until there is something to close
        config = checked_config(options_of(options, configs))
        self.config: Config = config
        # What may refuse the configuration comes before what has to be closed.
        self._serialize_key = bind_serializer(config["key_serializer"], "key_serializer")
        self._serialize_value = bind_serializer(config["value_serializer"], "value_serializer")
        self._bind_partitioner(config)
        # Bytes go straight in, unless something has to see or change them. Records without a key are the accumulator's
        # to place.
        self._hashes = self._default and not self._ignore_keys
        self._plain: bool = self._serialize_value is None and self._serialize_key is None and self._default
        self._interceptors: Interceptors | None = None
        if config["interceptors"]:
            from kafka.interceptors import Interceptors

            self._interceptors = Interceptors(config["interceptors"], config)
            self._plain = False
        # Imported with the first producer: it is most of what importing KafkaProducer would take.
        from kafka.producer.core import ProducerCore, ProducerDriver

        self._core = core = ProducerCore(config, environment)
        self._driver = ProducerDriver(core, f"kafka-producer-{config['client_id']}")
        core.driver = weakref.ref(self._driver)
        core.keeper = weakref.ref(self)
        self._accumulator = core.accumulator
        self._lock = core.accumulator.lock
        self._sticky = core.accumulator.sticky
        self._topics = core.accumulator.topics
        self._time = core.client.environment.clock.time
        self._max_block = config.seconds("max_block_ms")
        self._metrics: Any = None
        if config["metrics_enabled"]:
            from kafka._core.metrics import make_metrics
            from kafka.producer.metrics import ProducerMetrics

            self._metrics = make_metrics(config, core.client)
            core.metrics = ProducerMetrics(self._metrics, config["metric_group_prefix"], core.accumulator)
        if config["on_delivery"] is not None:
            from kafka.producer.delivery import reporter

            core.on_settled = reporter(config["on_delivery"])
        self._closed = False
        _OPEN.add(self)
        # Registered after the driver's own clean-up, so it runs before it: while the network thread still does.
        self._at_exit = partial(_close_at_exit, weakref.ref(self))
        atexit.register(self._at_exit)
        try:
            self._begin(config)
        except BaseException:
            self.close(timeout=0)
            raise

    def _bind_partitioner(self, config: Config) -> None:
        partitioner = config["partitioner"]
        self._default = type(partitioner) is DefaultPartitioner and partitioner.partitions is None
        self._ignore_keys = bool(config["partitioner_ignore_keys"] and self._default)
        self._choose = bind_partitioner(partitioner)
        self._partitioner = partitioner
        self._on_new_batch: Callable[..., object] | None = getattr(partitioner, "on_new_batch", None)

    def _begin(self, config: Config) -> None:
        core = self._core
        if config["api_version"] is None:
            timeout = core.client.settings.discovery_timeout
            self._driver.run(core.bootstrap(), core.now() + timeout + 1, "connecting to the cluster")
            return
        from kafka.net.versions import BrokerVersions

        core.client.versions = BrokerVersions.of_release(config["api_version"])
        core.check_features()
        core.client.versions = None
        self._driver.start()
        core.call_soon(core.client.metadata.start)

    # Looking…

    @classmethod
    def max_usable_produce_magic(cls, api_version: tuple[int, ...]) -> int:
        """Return the newest format of records that brokers of a release take.

        >>> from kafka import KafkaProducer
        >>> [KafkaProducer.max_usable_produce_magic(release) for release in ((0, 9), (0, 10, 2), (4, 1))]
        [0, 1, 2]
        """
        api_version = checked_release(api_version)
        return 2 if api_version >= (0, 11) else 1 if api_version >= (0, 10) else 0

    def bootstrap_connected(self) -> bool:
        """Whether there is a connection to any broker."""
        return any(link.ready for link in self._core.client.links())

    def metrics(self, raw: bool = False) -> Any:
        """Return the metrics: names and values by group, or with `raw` the metrics themselves; None if they are off."""
        if self._metrics is None:
            return None
        found: Mapping[Any, Any] = self._metrics.metrics if raw else self._metrics.snapshot()
        return dict(found)

    def health(self) -> dict[str, Any]:
        """Return what works and what does not, and why: for people, probes and dashboards; `json.dumps` takes it.

        In the form of all clients (``docs/operations.rst``). ``partitions`` has those with records under way: how many
        records, the age of the oldest in seconds, and the problem that keeps it from being written;
        ``buffer_available`` is in bytes, ``buffer_waited_for`` whether a call waits for room in the buffer; with a
        `transactional_id`, ``transaction`` has its state, its error, and what it waits for.

        >>> from kafka import KafkaProducer
        >>> from kafka.broker import Broker
        >>> with Broker() as broker, KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        ...     health = producer.health()
        >>> health["ok"], health["problems"], health["partitions"]
        (True, [], {})
        """
        core, driver = self._core, self._driver
        if core.loop.closed or self._on_loop():
            return core.health_now()
        return driver.run(core.health(), None, "health()")

    # Ending…

    def purge(self, *, in_flight: bool = False) -> int:
        """Give up what is not sent yet, and with `in_flight` what is not answered too; return how many records.

        Their futures fail with `Cancelled`, or with an error that says that the outcome is unknown.

        >>> from kafka import KafkaProducer
        >>> from kafka.broker import Broker
        >>> with Broker(topics=["events"]) as broker:
        ...     with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=60_000) as producer:
        ...         _ = producer.send("events", b"not meant")
        ...         producer.purge()
        1
        """
        self._check_open()
        return self._driver.run(self._core.purge(in_flight), None, "purge()")

    def close(self, timeout: float | None = None, null_logger: bool = False) -> None:  # noqa: ARG002 - a name of 3.x
        """Send what is left, for `timeout` seconds at most, then fail what still is, and free everything. Idempotent.

        A transaction that is open is aborted, one that is being committed is waited for, `max_block_ms` at most.
        Never raises for records: their futures tell. Called from a callback it does not wait.
        """
        timeout = checked_timeout(timeout, "close()")
        if self._closed:
            return
        if not self._on_loop():
            self._core.accumulator.check_outside("close()")
        self._closed = True
        _OPEN.discard(self)
        atexit.unregister(self._at_exit)
        core = self._core
        try:
            if not core.loop.closed and not self._on_loop():
                self._drain(_FOREVER if timeout is None else timeout)
        finally:
            self._stop()

    def _drain(self, timeout: float) -> None:
        core = self._core
        if timeout <= 0 or not (core.accumulator.unsettled() or core.transactions):
            return
        if core.transactions is not None:
            # Without its coordinator a transaction never ends; the batches do, by delivery_timeout_ms.
            timeout = min(timeout, self._max_block)
        try:
            self._driver.run(core.finish(), self._deadline(timeout), "close()")
        except ClientClosedError:
            pass
        except KafkaError as error:
            if core.transactions is not None:
                log.warning("The producer is closed without having ended its transaction: %s", error)

    def _stop(self) -> None:
        core, driver = self._core, self._driver

        async def end() -> int:
            return core.shut_down()

        if core.loop.forked:
            return
        if core.loop.closed or self._on_loop():
            given_up = core.shut_down()
        else:
            try:
                given_up = driver.run(end(), core.now() + 1.0, "close()")
            except (ClientClosedError, KafkaTimeoutError):
                given_up = core.shut_down()
        driver.close()
        if given_up:
            log.warning(
                "The producer was closed with %s not acknowledged: %s", counted(given_up), core.given_up_because
            )
        if self._interceptors is not None:
            self._interceptors.close()
        for bound in (self._serialize_key, self._serialize_value):
            if bound is not None and bound.close is not None:
                bound.close()
        closer = getattr(self._partitioner, "close", None)
        if callable(closer):
            closer()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            self.close(timeout=0)

    def _check_open(self) -> None:
        self._core.loop.check_usable()
        if self._closed:
            raise ClientClosedError("This producer is closed.")

    def _deadline(self, timeout: float | None) -> float | None:
        return None if timeout is None else self._core.now() + min(timeout, _FOREVER)

    @contextmanager
    def _measured(self, call: str) -> Iterator[None]:
        """Let the metrics know how long the block has held up the application."""
        core = self._core
        began = core.now()
        try:
            yield
        finally:
            if core.metrics is not None:
                core.metrics.waited(call, core.now() - began)

    def _on_loop(self) -> bool:
        return self._driver.on_network_thread or self._core.loop.in_pass

    def _refuse_on_loop(self, what: str) -> None:
        if self._on_loop():
            raise IllegalStateError(f"{what} would block, so it cannot be called from a callback on the network thread")

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled: make one in each process that needs one")

    def __repr__(self) -> str:
        state = "closed" if self._closed else "open"
        return f"<{type(self).__name__} client_id={self.config['client_id']!r} {state}>"


_OPEN: Final[weakref.WeakSet[ProducerFace]] = weakref.WeakSet()


def _close_at_exit(find: Callable[[], ProducerFace | None]) -> None:
    producer = find()
    if producer is not None:
        producer.close(timeout=_EXIT_GRACE)


def _after_fork_in_child() -> None:
    """The child gets a clear error from each call, also where another thread of the parent held the lock."""
    for producer in tuple(_OPEN):
        accumulator = producer._accumulator  # noqa: SLF001 - the same module
        accumulator.renew_lock()
        producer._lock = accumulator.lock  # noqa: SLF001
        accumulator.sticky.clear()
        producer._topics.clear()  # noqa: SLF001
    _OPEN.clear()


def _register_fork() -> None:
    import os

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_after_fork_in_child)


_register_fork()
