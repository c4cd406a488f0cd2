"""How a command gets its clients: with the options of `kafka.cli.options`, or of a sandbox; and how signals end it."""

from __future__ import annotations

import signal
import threading
import time
from argparse import Namespace
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from kafka._text import printable, without_passwords
from kafka.cli.arguments import UsageError
from kafka.cli.options import merge_flags, settings

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

    from kafka.admin import KafkaAdminClient
    from kafka.broker import Broker
    from kafka.client_async import KafkaClient
    from kafka.consumer import KafkaConsumer
    from kafka.producer import KafkaProducer
    from kafka.schema_registry import SchemaRegistry
    from kafka.share import KafkaShareConsumer

DEFAULT_SERVERS: Final = "localhost:9092"
_BOOTSTRAP_MS: Final = 10_000
_REQUEST_MS: Final = 30_000
_API_MS: Final = 60_000
#: How long a command that only shows something waits for a broker.
_READ_MS: Final = 5_000
_REGISTRY_S: Final = 10.0
#: Seconds that a client has after Ctrl-C for what it has begun.
HASTE: Final = 1.0


class Connection:
    """The clients of one command; the end of its block closes them and the sandbox."""

    def __init__(self, arguments: Namespace) -> None:
        self.arguments = arguments
        self._stack = ExitStack()
        self._log(arguments.verbose)
        self._admin: KafkaAdminClient | None = None
        self._deadline: float | None = getattr(arguments, "deadline", None)
        self._reads: bool = getattr(arguments, "reads", False)
        self._registry: SchemaRegistry | None = None
        self._registry_url: str | None = getattr(arguments, "registry", None)
        self.sandbox: Broker | None = None
        if arguments.sandbox:
            if arguments.context or arguments.bootstrap_servers:
                raise UsageError("--sandbox and another cluster exclude each other: give one of them")
            from kafka.cli.sandbox import start

            self.sandbox = start()
            self._stack.callback(self.sandbox.close)
            self.options = {"bootstrap_servers": self.sandbox.bootstrap_servers}
            merge_flags(self.options, arguments)
        else:
            self.options = settings(arguments)

    def _log(self, verbose: int) -> None:
        import logging

        if verbose:
            level = logging.DEBUG if verbose > 1 else logging.INFO
            logging.basicConfig(level=level, format="%(asctime)s %(name)s %(message)s")
            return
        # The error at the end names the cause, and commands count the records that were lost: a handler that takes
        # nothing keeps the clients from saying both again.
        logger, nothing = logging.getLogger("kafka"), logging.Handler(logging.CRITICAL + 1)
        logger.addHandler(nothing)
        self._stack.callback(logger.removeHandler, nothing)

    def _configs(self, kind: str, given: Mapping[str, object]) -> dict[str, Any]:
        from kafka.config import BY_SPELLING, parse

        texts = {
            name: text for name, text in self.options.items() if name in BY_SPELLING and kind in BY_SPELLING[name].kinds
        }
        partitioner = texts.pop("partitioner", None)
        configs = parse(kind, texts)
        if partitioner is not None:
            from kafka.cli.librdkafka import partitioner as partitioner_named

            configs["partitioner"] = partitioner_named(partitioner)
        if "bootstrap_controllers" not in configs:
            configs.setdefault("bootstrap_servers", DEFAULT_SERVERS)
        if kind != "client":
            given = {"enable_metrics_push": False, **given}
        limits = {"bootstrap_timeout_ms": _READ_MS if self._reads else _BOOTSTRAP_MS}
        if self._reads and kind == "admin" and not {"request_timeout_ms", "default_api_timeout_ms"} & set(configs):
            limits |= {"request_timeout_ms": _READ_MS, "default_api_timeout_ms": _READ_MS}
        if self._deadline is not None:
            left_ms = (self._deadline - time.monotonic()) * 750
            limits = {"request_timeout_ms": _REQUEST_MS} | limits
            limits = ({"default_api_timeout_ms": _API_MS} if kind in {"admin", "consumer", "share"} else {}) | limits
            limits = {name: min(limit, max(1, round(left_ms))) for name, limit in limits.items()}
        return {**limits, **given, **configs}

    def admin(self) -> KafkaAdminClient:
        """Return the administrator of this command, made when it is first needed."""
        if self._admin is None:
            from kafka.admin import KafkaAdminClient

            self._admin = KafkaAdminClient(**self._configs("admin", {}))
            self._at_end(self._admin.close)
        return self._admin

    @cached_property
    def cluster_id(self) -> str:
        """The id of the cluster; of brokers before 0.10.1, which have none, the addresses that were given."""
        return self.admin().describe_cluster().cluster_id or self._addresses

    @property
    def _addresses(self) -> str:
        return self.options.get("bootstrap_controllers") or self.options.get("bootstrap_servers", DEFAULT_SERVERS)

    def cluster(self) -> str:
        """Return what names the cluster of this command: its id, and the addresses that were given for it."""
        addresses = without_passwords(self._addresses)
        return addresses if self.cluster_id == self._addresses else f"{printable(self.cluster_id)} at {addresses}"

    def registry(self, type_name: str) -> SchemaRegistry:
        """Return the client of the schema registry, which a type of keys or values needs."""
        if self._registry is None:
            from kafka.schema_registry import SchemaRegistry

            prefix = "schema_registry_"
            given: dict[str, Any] = {
                name.removeprefix(prefix): text for name, text in self.options.items() if name.startswith(prefix)
            }
            if self._registry_url is not None:
                given["url"] = self._registry_url
            if "url" not in given and self.sandbox is not None:
                from kafka.schema_registry import SchemaRegistryServer

                given["url"] = self._stack.enter_context(SchemaRegistryServer()).url
            if "url" not in given:
                raise UsageError(
                    f"the type {type_name} needs a schema registry: give --registry URL or -X schema.registry.url=URL"
                )
            if self._deadline is not None:
                given["timeout"] = min(_REGISTRY_S, max(0.1, self._deadline - time.monotonic()))
            self._registry = SchemaRegistry(given.pop("url"), **given)
        return self._registry

    def client(self) -> KafkaClient:
        """Return a client for requests of any API."""
        from kafka.client_async import KafkaClient

        client = KafkaClient(**self._configs("client", {}))
        self._at_end(client.close)
        return client

    def consumer(self, *topics: str, **configs: Any) -> KafkaConsumer:
        """Return a consumer; options that the user gave override `configs`."""
        from kafka.consumer import KafkaConsumer

        consumer = KafkaConsumer(*topics, **self._configs("consumer", configs))
        self._at_end(consumer.close, lambda: consumer.close(timeout_ms=1000 * HASTE))
        return consumer

    def reader(self, **configs: Any) -> KafkaConsumer:
        """Return a consumer without a group, which commits nothing and creates no topic."""
        alone: dict[str, Any] = {"group_id": None, "enable_auto_commit": False, "allow_auto_create_topics": False}
        return self.consumer(**{**alone, "auto_offset_reset": "earliest", **configs})

    def share_consumer(self, *topics: str, **configs: Any) -> KafkaShareConsumer[bytes | None, bytes | None]:
        """Return a member of a share group; options that the user gave override `configs`."""
        from kafka.share import KafkaShareConsumer

        consumer: KafkaShareConsumer[bytes | None, bytes | None]
        consumer = KafkaShareConsumer(*topics, **self._configs("share", configs))
        self._at_end(consumer.close, lambda: consumer.close(timeout_ms=1000 * HASTE))
        return consumer

    def producer(self, **configs: Any) -> KafkaProducer:
        """Return a producer; options that the user gave override `configs`."""
        from kafka.producer import KafkaProducer

        producer = KafkaProducer(**self._configs("producer", configs))
        self._at_end(producer.close, lambda: producer.close(timeout=HASTE))
        return producer

    def _at_end(self, close: Callable[[], object], interrupted: Callable[[], object] | None = None) -> None:
        """Close a client at the end of the block; after Ctrl-C without waiting for brokers that do not answer."""

        def closing(_kind: object, error: BaseException | None, _trace: object) -> None:
            (interrupted if interrupted is not None and isinstance(error, KeyboardInterrupt) else close)()

        self._stack.push(closing)

    def target(self) -> Connection:
        """Return the connection to the cluster of --to-context, or this one."""
        if not self.arguments.to_context:
            return self
        words = {"context": self.arguments.to_context, "bootstrap_servers": None, "options": [], "config_file": None}
        other = Connection(Namespace(**{**vars(self.arguments), **words, "sandbox": False}))
        return self._stack.enter_context(other)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)


class Watchdog:
    """Ends a command when its time is over, by the signal of Ctrl-C, which every blocking call obeys."""

    def __init__(self, seconds: float | None) -> None:
        self.barked = False
        self.terminated = False
        self._seconds = seconds
        self._began = time.monotonic()
        self._timer: threading.Timer | None = None
        self._previous: Any = None
        self._ignored = False

    def over(self) -> bool:
        """Whether the time is over, or nearly so: a client that waited for all of it may end a little earlier."""
        return self._seconds is not None and time.monotonic() - self._began > 0.85 * self._seconds

    def _bark(self) -> None:
        self.barked = True
        if hasattr(signal, "pthread_kill"):
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        else:
            import _thread

            _thread.interrupt_main()

    def _interrupt(self, *_: object) -> None:
        """Take the place of an ignored Ctrl-C, as shells start programs in the background, for our signal alone."""
        if self.barked:
            raise KeyboardInterrupt

    def _terminate(self, *_: object) -> None:
        self.terminated = True
        raise KeyboardInterrupt

    def __enter__(self) -> Self:
        main = threading.current_thread() is threading.main_thread()
        if main and signal.getsignal(signal.SIGTERM) is signal.SIG_DFL:
            self._previous = signal.signal(signal.SIGTERM, self._terminate)
        if main and self._seconds is not None:
            if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
                signal.signal(signal.SIGINT, self._interrupt)
                self._ignored = True
            self._timer = threading.Timer(self._seconds, self._bark)
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._previous is not None:
            signal.signal(signal.SIGTERM, self._previous)
        if self._ignored:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
