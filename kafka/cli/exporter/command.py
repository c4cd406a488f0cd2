"""``purekafka exporter``: lag, offsets, groups, topics and brokers for Prometheus, collected in the background."""

from __future__ import annotations

import re
import ssl
import sys
import threading
import time
import zlib
from argparse import Namespace
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Final

from kafka._text import without_passwords
from kafka.cli.arguments import UsageError, count, expand, reason, writable_directory
from kafka.cli.connection import DEFAULT_SERVERS, Connection
from kafka.cli.exporter.dashboards import write
from kafka.cli.exporter.facts import Choice, collect
from kafka.cli.exporter.lag_history import LagHistory
from kafka.cli.exporter.series import LEVELS, Series, exposition
from kafka.cli.exporter.server import GZIP, Page, Server
from kafka.cli.grammar import CONNECTION, Verb, arg
from kafka.cli.output import complain
from kafka.errors import KafkaError

#: After how many intervals without a successful collection the series of a cluster are no longer served.
_STALE: Final = 3


class _Cluster:
    """A cluster that is looked at: its clients, and what the last collections found."""

    def __init__(self, arguments: Namespace, context: str | None) -> None:
        self.arguments = arguments
        self.connection = Connection(Namespace(**{**vars(arguments), "context": context}))
        options = self.connection.options
        address = options.get("bootstrap_controllers") or options.get("bootstrap_servers", DEFAULT_SERVERS)
        self.name: str = context or arguments.cluster or without_passwords(str(address))
        self.error: str | None = "nothing was collected yet"
        self._history = LagHistory()
        self._found: Series | None = None
        self._dropped = self._failed_groups = self._errors = 0
        self._found_at = 0.0
        self._succeeded_at = 0.0
        self._took = 0.0
        self.closing = False
        self._said: list[str] = []

    @property
    def expires(self) -> float:
        """When its series are stale, on the monotonic clock."""
        return self._found_at + _STALE * float(self.arguments.interval)

    @property
    def problems(self) -> list[str]:
        """What keeps its series from being true: an empty list if nothing does."""
        if self.error is not None:
            return [f"{self.name}: {self.error}"]
        if time.monotonic() > self.expires:
            return [f"{self.name}: the last collection began {time.monotonic() - self._found_at:.0f} s ago"]
        return []

    def collect(self, choice: Choice) -> None:
        """Look at the cluster once; problems are printed when they appear."""
        began, arguments = time.monotonic(), self.arguments
        wrong: list[str] = []
        try:
            facts = collect(self.connection.admin(), choice, self._history, began)
        except Exception as error:  # a fault of this program, too: it must not end the exporter
            self.error = reason(error) if isinstance(error, KafkaError) else f"{type(error).__name__}: {error}"
            wrong = [self.error]
        else:
            wrong = facts.errors
            found = Series(self.name)
            self._dropped = found.add_facts(facts, arguments.by, arguments.max_series, states=arguments.state)
            self._failed_groups, self._errors = facts.failed_groups, len(facts.errors)
            self._found, self._found_at, self._succeeded_at, self.error = found, began, time.time(), None
        self._took = time.monotonic() - began
        if not self.closing:
            for line in wrong:
                if line not in self._said:
                    with suppress(OSError):  # standard error is closed
                        complain(arguments, f"{self.name}: {line}")
            self._said = wrong

    def series(self) -> list[Series]:
        """Return the series of its last collection, unless they are stale, and the exporter's own."""
        own, found = Series(self.name), self._found if time.monotonic() <= self.expires else None
        if found is not None:
            own.add("kafka_exporter_errors", "", self._errors)
            own.add("kafka_exporter_failed_groups", "", self._failed_groups)
        own.add("kafka_exporter_up", "", int(self.error is None and found is not None))
        own.add("kafka_exporter_collect_seconds", "", round(self._took, 3))
        if self._succeeded_at:
            own.add("kafka_exporter_last_success_timestamp_seconds", "", round(self._succeeded_at, 3))
        own.add("kafka_exporter_series_dropped", "", 0 if found is None else self._dropped)
        own.add("kafka_exporter_series", "", own.count + 1 + (0 if found is None else found.count))
        return [own] if found is None else [found, own]


class Exporter:
    """Collects from clusters in threads, and keeps the page that is served."""

    def __init__(self, arguments: Namespace, stack: ExitStack) -> None:
        self._interval: float = arguments.interval
        self._choice = _choice(arguments)
        self.clusters = [_Cluster(arguments, name) for name in arguments.contexts or [None]]
        if len({one.name for one in self.clusters}) < len(self.clusters):
            raise UsageError("--context: a cluster is named twice")
        for one in self.clusters:
            stack.enter_context(one.connection)
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._page = Page(b"", 0, [])
        self._expires = 0.0

    def collect(self) -> Iterator[bytes]:
        """Look at each cluster once, and return the text of Prometheus in pieces."""
        for one in self.clusters:
            one.collect(self._choice)
        return self._text()

    def _text(self) -> Iterator[bytes]:
        return exposition([series for one in self.clusters for series in one.series()])

    def run(self) -> None:
        """Collect until `stop` is called."""
        threads = [threading.Thread(target=self._repeat, args=(one,), daemon=True) for one in self.clusters]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def stop(self) -> None:
        """End the collections that wait, and let the others end without a word."""
        self._stop.set()
        for one in self.clusters:
            one.closing = True

    def _repeat(self, cluster: _Cluster) -> None:
        while not self._stop.is_set():
            began = time.monotonic()
            cluster.collect(self._choice)
            self._renew()
            self._stop.wait(max(0.0, began + self._interval - time.monotonic()))

    def page(self) -> Page:
        """Return what is served now; it is made here only when a cluster has become stale."""
        if time.monotonic() > self._expires:
            self._renew()
        return self._page

    def _renew(self) -> None:
        with self._lock:
            compressor, parts, size = zlib.compressobj(1, wbits=GZIP), [], 0
            for piece in self._text():
                size += len(piece)
                parts.append(compressor.compress(piece))
            parts.append(compressor.flush())
            now = time.monotonic()
            self._page = Page(b"".join(parts), size, [line for one in self.clusters for line in one.problems])
            self._expires = min((one.expires for one in self.clusters if one.expires > now), default=float("inf"))


def _choice(arguments: Namespace) -> Choice:
    folds = []
    for word in arguments.fold:
        pattern, equals, name = word.rpartition("=")
        if not equals or not name:
            raise UsageError(f"--fold takes REGEX=NAME, not {word!r}")
        folds.append((_regex(pattern, "--fold"), name))
    return Choice(
        _regex(arguments.group, "--group"),
        _regex(arguments.no_group, "--no-group"),
        _regex(arguments.topic, "--topic"),
        tuple(folds),
    )


def _regex(text: str | None, option: str) -> Any:
    try:
        return None if text is None else re.compile(text)
    except re.error as error:
        raise UsageError(f"{option}: {text!r} is not a regular expression: {error}") from None


def _seconds(word: str) -> float:
    number = float(word)
    if not 0.1 <= number < float("inf"):
        raise UsageError(f"--interval: {word} is not a time of at least 0.1 seconds")
    return number


@Verb(
    "exporter",
    arg("--listen HOST:PORT", "where to serve /metrics and /health; :PORT for all addresses (:9308)", default=":9308"),
    arg("--interval SECONDS", "the time between collections (30)", _seconds, default=30.0),
    arg(f"--by {'|'.join(LEVELS)}", "the finest parts of groups and topics that have series (topic)", default="topic"),
    arg("--group REGEX", "only groups whose name has a match"),
    arg("--no-group REGEX", "no groups whose name has a match"),
    arg("--topic REGEX", "only topics whose name has a match; Kafka's own topics only with it"),
    arg("--fold REGEX=NAME...", "show all groups with such a name as one; may be repeated"),
    arg("--state", "have a series with the state of each group too"),
    arg("--max-series N", "serve no more series of a cluster; partitions go first (200000)", count, default=200_000),
    arg("--cluster NAME", "the label of the cluster (its context, or the addresses of -b)"),
    arg(
        "--context NAME...",
        "use the options of a context; repeated: of several clusters",
        complete="context",
        dest="contexts",
    ),
    arg("--auth USER:PASSWORD", "ask for this password on /metrics; @env:NAME and @FILE keep it secret"),
    arg("--tls-cert FILE", "serve TLS with this certificate (PEM)", complete="file"),
    arg("--tls-key FILE", "the key of the certificate, if it is in another file", complete="file"),
    arg("--once", "collect once, print the metrics, and end"),
    arg(
        "--dashboards DIR",
        "write dashboards for Grafana and alert rules for Prometheus, and end",
        Path,
        complete="file",
    ),
    *(one for one in CONNECTION if "--context" not in one.names),
    examples=[
        "--once --sandbox",
        "--once --by partition --fold 'console-.*=console' --sandbox",
        "--dashboards dashboards",
    ],
    connects=False,
    reads=True,
    epilog="Committed offsets are asked for first and ends last, so a lag is never negative. A partition whose end is "
    "not known has no lag, and neither has its sum. The series of a cluster that cannot be reached vanish after "
    f"{_STALE} intervals; kafka_exporter_up is 0 at once.",
)
def _run(arguments: Namespace) -> int:
    if arguments.dashboards is not None:
        for path in write(writable_directory(arguments.dashboards, "--dashboards")):
            print(path)
        return 0
    with ExitStack() as stack:
        exporter = Exporter(arguments, stack)
        if arguments.once:
            for piece in exporter.collect():
                sys.stdout.write(piece.decode())
            return 1 if any(one.problems for one in exporter.clusters) else 0
        host, port = _address(arguments.listen)
        try:
            server = Server(host, port, exporter.page, auth=_auth(arguments), tls=_tls(arguments))
        except OSError as error:
            raise UsageError(f"--listen {arguments.listen}: {error.strerror or error}") from None
        stack.callback(server.server_close)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        stack.callback(server.shutdown)
        stack.callback(exporter.stop)
        where = f"{'http' if arguments.tls_cert is None else 'https'}://{host or 'localhost'}:{server.server_port}"
        print(f"Serving {where}/metrics and {where}/health", file=sys.stderr, flush=True)
        exporter.run()
        return 0


def _address(word: str) -> tuple[str, int]:
    host, colon, port = word.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--listen takes HOST:PORT or :PORT, not {word!r}")
    return host.strip("[]"), int(port)


def _auth(arguments: Namespace) -> str | None:
    if arguments.auth is None:
        return None
    found = expand(arguments.auth, "--auth")
    if ":" not in found:
        raise UsageError("--auth takes USER:PASSWORD, @env:NAME or @FILE")
    return found


def _tls(arguments: Namespace) -> ssl.SSLContext | None:
    if arguments.tls_cert is None:
        if arguments.tls_key is not None:
            raise UsageError("--tls-key needs --tls-cert too")
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(arguments.tls_cert, arguments.tls_key)
    except (OSError, ssl.SSLError) as error:
        raise UsageError(f"--tls-cert {arguments.tls_cert}: {error}") from None
    return context


COMMAND = _run
