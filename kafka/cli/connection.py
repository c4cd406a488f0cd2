"""How a command gets its clients: options from flags, the environment, a context and a file, or a sandbox.

The command line overrides the environment: ``-b`` and ``-X``, then ``--context``, then ``--config``, then the variables
``PUREKAFKA_BOOTSTRAP_SERVERS``, ``PUREKAFKA_SASL_PASSWORD`` and so on, then the current context. The context of
``--context`` is complete: variables do not add to it. Beside ``--config`` the current context does not apply.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from contextlib import ExitStack
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka._text import printable, without_passwords
from kafka.cli.arguments import UsageError, expand, pair

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Callable, Mapping
    from types import TracebackType

    from typing_extensions import Self

    from kafka.admin import KafkaAdminClient
    from kafka.broker import Broker
    from kafka.client_async import KafkaClient
    from kafka.config import ForeignOption, Option
    from kafka.consumer import KafkaConsumer
    from kafka.producer import KafkaProducer
    from kafka.schema_registry import SchemaRegistry

__all__ = [
    "DEFAULT_SERVERS",
    "HASTE",
    "Connection",
    "Contexts",
    "Watchdog",
    "option_named",
    "read_options",
    "settings",
]

_PREFIX: Final = "PUREKAFKA_"
#: Variables that choose where options come from, and are not options themselves.
_NOT_OPTIONS: Final = {"PUREKAFKA_CONTEXT", "PUREKAFKA_CONFIG", "PUREKAFKA_TRACEBACK", "PUREKAFKA_SECONDS"}
DEFAULT_SERVERS: Final = "localhost:9092"
_BOOTSTRAP_MS: Final = 10_000
_REQUEST_MS: Final = 30_000
_API_MS: Final = 60_000
#: How long a command that only shows something waits for a broker.
_READ_MS: Final = 5_000
_REGISTRY_S: Final = 10.0
#: Seconds that a client has after Ctrl-C for what it has begun.
HASTE: Final = 1.0
#: Options that exclude each other: the one that is given last names the cluster.
_OTHER_ADDRESS: Final = {
    "bootstrap_servers": "bootstrap_controllers",
    "bootstrap_controllers": "bootstrap_servers",
}


def option_named(name: str) -> Option | ForeignOption | None:
    """Return the option with a name of ours, of Java's clients or of librdkafka; None for one without an effect here.

    >>> option_named("sasl.mechanisms").name
    'sasl_mechanism'
    >>> option_named("sasl.pasword")
    Traceback (most recent call last):
    kafka.cli.arguments.UsageError: option 'sasl.pasword' does not exist: did you mean sasl.password?
    """
    from kafka.config import find_option, nearest_name

    try:
        return find_option(name)
    except KeyError:
        near = nearest_name(name)
        hint = f": did you mean {near}?" if near else ""
        raise UsageError(f"option {name!r} does not exist{hint}") from None


# Files…


class OptionsFile(NamedTuple):
    """The options in a file."""

    options: dict[str, str]
    ours: bool
    """Whether the file is TOML, where @ refers to other places; for Java and librdkafka it is a character."""


def read_options(path: str) -> OptionsFile:
    """Return the options in a file: TOML or librdkafka's if its name says so, else properties as Java reads them."""
    from kafka.config import parse_conf, parse_properties

    try:
        data = Path(path).expanduser().read_bytes()
    except OSError as error:
        hint = (
            f"; settings of a topic are given as --set {path}, options of clients as -X {path}" if "=" in path else ""
        )
        raise UsageError(f"--config: cannot read {path}: {error.strerror}{hint}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")  # as Java reads it
    if path.endswith(".toml"):
        found = parse_toml(text, path)
        options = {name: value for name, value in found.items() if not isinstance(value, dict)}
        return OptionsFile({name: _text(value) for name, value in options.items()}, ours=True)
    return OptionsFile(parse_conf(text) if path.endswith(".conf") else parse_properties(text), ours=False)


def parse_toml(text: str, path: str) -> dict[str, Any]:
    """Read TOML as far as options need it: tables of strings, numbers, true and false.

    >>> parse_toml('current = "a"\\n[contexts.a]\\nclient_id = "me" # who', "config.toml")
    {'current': 'a', 'contexts': {'a': {'client_id': 'me'}}}
    """
    import re

    found: dict[str, Any] = {}
    table = found
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if heading := re.fullmatch(r"\[([^\[\]]+)\]\s*(#.*)?", line):
            table = found
            for part in _toml_keys(heading.group(1)):
                table = table.setdefault(part, {})
            continue
        setting = re.fullmatch(
            r"""("[^"]+"|[\w.-]+)\s*=\s*("(?:[^"\\]|\\.)*"|'[^']*'|true|false|-?[\d_]+(?:\.\d+)?)\s*(#.*)?""", line
        )
        if setting is None:
            raise UsageError(f"{path}, line {number}: write NAME = VALUE, where VALUE is text in quotes or a number")
        table[setting.group(1).strip('"')] = _toml_value(setting.group(2))
    return found


def _toml_keys(text: str) -> list[str]:
    import re

    return [part.strip('"') for part in re.findall(r'"[^"]*"|[^.\s]+', text)]


def _toml_value(text: str) -> Any:
    import json

    if text.startswith("'"):
        return text[1:-1]
    return json.loads(text if text.startswith('"') else text.replace("_", ""))


def _text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Contexts:
    """The file with the contexts: names of clusters, with their options; only its owner may read it."""

    def __init__(self, path: Path | None = None) -> None:
        if path is None:
            home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
            path = Path(home).expanduser() / "purekafka" / "config.toml"
        self.path = path
        try:
            found = parse_toml(path.read_text(encoding="utf-8"), str(path))
        except FileNotFoundError:
            found = {}
        except OSError as error:
            raise UsageError(f"cannot read {path}: {error.strerror}") from None
        self.current: str | None = found.get("current")
        self.contexts: dict[str, dict[str, str]] = {
            name: {option: _text(value) for option, value in options.items()}
            for name, options in found.get("contexts", {}).items()
        }

    def get(self, name: str) -> dict[str, str]:
        """Return the options of a context."""
        if name not in self.contexts:
            from kafka.cli.grammar import nearest

            raise UsageError(f"context {name!r} does not exist in {self.path}{nearest(name, self.contexts)}")
        return self.contexts[name]

    def save(self) -> None:
        """Write the file, complete or not at all."""
        import json

        lines = [] if self.current is None else [f"current = {json.dumps(self.current)}", ""]
        for name, options in sorted(self.contexts.items()):
            lines.append(f"[contexts.{json.dumps(name)}]")
            lines += [f"{option} = {json.dumps(value)}" for option, value in sorted(options.items())]
            lines.append("")
        write_private(self.path, "\n".join(lines))


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, complete or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


# The options of a command…


def settings(arguments: Namespace) -> dict[str, str]:
    """Return the options of a command's clients as texts, by the names of the table of options."""
    merged: dict[str, str] = {}
    file, named = arguments.config_file, arguments.context
    if named is None:
        # A cluster that the command line names must not get the address or the password of another one.
        if file is None:
            _merge_chosen(merged)
        _merge_variables(merged)
    if file is not None:
        _merge_file(merged, file, f"--config {file}")
    if named is not None:
        _merge(merged, Contexts().get(named), f"context {named}")
    _merge(merged, dict(pair_of_option(word) for word in arguments.options), "-X", expanded=True)
    if arguments.bootstrap_servers:
        _merge(merged, {"bootstrap_servers": arguments.bootstrap_servers}, "-b", expanded=True)
    return merged


def _merge_chosen(merged: dict[str, str]) -> None:
    """Merge the file and the context that variables name, or the current context if they name no file."""
    file, named = os.environ.get("PUREKAFKA_CONFIG"), os.environ.get("PUREKAFKA_CONTEXT")
    if file:
        _merge_file(merged, file, f"PUREKAFKA_CONFIG {file}")
    if named or not file:
        contexts = Contexts()
        chosen = named or contexts.current
        if chosen:
            _merge(merged, contexts.get(chosen), f"context {chosen}")


def _merge_variables(merged: dict[str, str]) -> None:
    if "KAFKA_BOOTSTRAP_SERVERS" in os.environ:  # which `purekafka broker -- COMMAND` sets
        _merge(merged, {"bootstrap_servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"]}, "environment", expanded=True)
    variables = {name for name in os.environ if name.startswith(_PREFIX)} - _NOT_OPTIONS
    _merge(merged, {name.removeprefix(_PREFIX).lower(): os.environ[name] for name in variables}, "environment")


def pair_of_option(word: str) -> tuple[str, str]:
    """Split the argument of -X; ``@prompt`` as its value asks for it on the terminal."""
    name, equals, value = word.partition("=")
    return (name, _prompted(name)) if equals and value == "@prompt" else pair(word, "-X")


def _prompted(name: str) -> str:
    from getpass import getpass

    if not sys.stdin.isatty():
        raise UsageError(f"-X {name}=@prompt: standard input is not a terminal")
    return getpass(f"{name}: ")


def _merge_file(merged: dict[str, str], path: str, where: str) -> None:
    file = read_options(path)
    if file.ours:
        _merge(merged, file.options, where)
        return
    known: dict[str, str] = {}
    for name, value in file.options.items():
        try:
            option_named(name)
        except UsageError as error:  # noqa: PERF203 - programs keep other options in the file too
            print(f"{where}: {error}; it is ignored", file=sys.stderr)
        else:
            known[name] = value
    _merge(merged, known, where, expanded=True)


def _merge(merged: dict[str, str], found: Mapping[str, str], where: str, *, expanded: bool = False) -> None:
    """Let options override the ones before; a value that refers to another place is looked up unless `expanded`."""
    from kafka.config import translate
    from kafka.errors import KafkaConfigurationError

    texts: dict[str, str] = {}
    for name, value in found.items():
        try:
            option = option_named(name)
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from None
        if option is None:
            continue
        if expanded:
            texts[name] = value
        else:
            texts[name] = _prompted(name) if value == "@prompt" else expand(value, f"{where}: {name}")
    try:
        options = translate(texts)
    except KafkaConfigurationError as error:
        raise UsageError(f"{where}: {error}") from None
    for name in options:
        merged.pop(_OTHER_ADDRESS.get(name, ""), None)
    merged |= options


class Connection:
    """The clients of one command; the end of its block closes them and the sandbox."""

    def __init__(self, arguments: Namespace) -> None:
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
            for word in arguments.options:
                _merge(self.options, dict([pair_of_option(word)]), "-X", expanded=True)
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
        limits = {"bootstrap_timeout_ms": _BOOTSTRAP_MS}
        if self._reads and kind == "admin" and not {"request_timeout_ms", "default_api_timeout_ms"} & set(configs):
            limits |= {"request_timeout_ms": _READ_MS, "default_api_timeout_ms": _READ_MS}
        if self._deadline is not None:
            left_ms = (self._deadline - time.monotonic()) * 750
            limits = {"request_timeout_ms": _REQUEST_MS} | limits
            limits = ({"default_api_timeout_ms": _API_MS} if kind in {"admin", "consumer"} else {}) | limits
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
