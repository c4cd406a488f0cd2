"""``purekafka broker``: the embedded broker as a separate process."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final, TextIO

from kafka.broker import Broker
from kafka.cli.arguments import SECRETS, UsageError, expand, pair, pairs
from kafka.cli.files import whole_file
from kafka.cli.grammar import Verb, arg

if TYPE_CHECKING:
    import ssl

#: What shells return for a command that cannot be run.
_NOT_FOUND: Final = 127
_LAST_PORT: Final = 65535
_TLS_PARTS = ("cert", "key", "ca", "password")
_WITHOUT_PASSWORD = ("OAUTHBEARER",)


@Verb(
    "broker",
    arg("--host HOST", "the address to listen on (%(default)s)", default="127.0.0.1"),
    arg(
        "--port PORT",
        "the port of the first node; further nodes take the next ones; 0: any free port (%(default)s)",
        int,
        default=9092,
    ),
    arg(
        "--advertise HOST[:PORT]",
        "the address that clients connect to, where it is not that of --host and --port: the name of a "
        "container, a port that is forwarded (for 0.0.0.0 and :: the loopback address)",
    ),
    arg("--ready-file FILE", "write the addresses to this file once clients can connect; removed at the end"),
    arg("--port-file FILE", "the same for the port that the first node listens on"),
    arg("--nodes NODES", "how many nodes (%(default)s)", int, default=1),
    arg("--topic NAME[:PARTITIONS]...", "create a topic; may be repeated"),
    arg(
        "--registry PORT",
        "run a schema registry as well, on this port, with its schemas in memory; 0: any free port",
        int,
    ),
    arg("--data DIR", "keep topics, records and offsets in this directory, not in memory"),
    arg("--fsync", "have each append on the disk before it is acknowledged"),
    arg("--as-version RELEASE", "offer what this release of Kafka does, such as 2.8"),
    arg("--config NAME=VALUE...", "a broker option of Kafka; may be repeated"),
    arg(
        "--tls cert=FILE,key=FILE[,ca=FILE][,password=PASSWORD]",
        "serve TLS with this certificate, whose key may need a password; with ca, clients must show a certificate too",
    ),
    arg(
        "--sasl MECHANISM:USER:PASSWORD...",
        "let only this user in (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512; OAUTHBEARER alone); may be repeated",
    ),
    arg("--verbose", "log what happens on connections"),
    examples=[
        "--topic events:3",
        "--topic orders --registry 8081",
        "purekafka broker --port 0 -- purekafka topics list",
    ],
    connects=False,
    runs_command=True,
    epilog="With a COMMAND, run it with the address in KAFKA_BOOTSTRAP_SERVERS, and that of a schema registry in "
    "PUREKAFKA_SCHEMA_REGISTRY_URL, stop the broker when it has ended, and return its exit code. " + SECRETS,
)
def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM, or until the command that was given has ended."""
    logging.basicConfig(
        level=logging.DEBUG if arguments.verbose else logging.WARNING, format="%(asctime)s %(name)s %(message)s"
    )
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    command: list[str] = arguments.command
    stop = threading.Event()
    if not command:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
    with ExitStack() as stack:
        broker = stack.enter_context(_make(arguments))
        addresses = {"KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers}
        registry = None
        if arguments.registry is not None:
            from kafka.schema_registry import SchemaRegistryServer

            registry = stack.enter_context(SchemaRegistryServer(host=arguments.host, port=arguments.registry)).url
            addresses["PUREKAFKA_SCHEMA_REGISTRY_URL"] = registry
        files = {arguments.ready_file: broker.bootstrap_servers, arguments.port_file: str(broker.port())}
        for name, text in files.items():
            if name is not None:
                with whole_file(name) as file:
                    file.write(f"{text}\n".encode())
                stack.callback(Path(name).unlink, missing_ok=True)
        out = sys.stderr if command else sys.stdout
        _say_where(broker, arguments, out)
        if registry is not None:
            print(f"schema registry on {registry}", file=out, flush=True)
        if command:
            return _run_command(command, addresses)
        stop.wait()
    return 0


def _say_where(broker: Broker, arguments: argparse.Namespace, out: TextIO) -> None:
    there = broker.bootstrap_servers
    advertised = "" if there == broker.listeners else f", advertised as {there}"
    print(f"listening on {broker.listeners}{advertised}", file=out, flush=True)
    if advertised and arguments.advertise is None:
        print("clients on other machines or in other containers need --advertise HOST", file=sys.stderr, flush=True)


def _run_command(command: list[str], addresses: dict[str, str]) -> int:
    """Run a command to its end and return its exit code, as a shell does: 127 if there is none, 128 + a signal."""
    try:
        child = subprocess.Popen(command, env={**os.environ, **addresses})  # noqa: S603 - the user's
    except OSError as error:
        print(f"purekafka broker: cannot run {command[0]}: {error.strerror or error}", file=sys.stderr)
        return _NOT_FOUND

    def forward(number: int, _frame: object) -> None:
        # A terminal sends Ctrl-C to the command as well.
        if number != signal.SIGINT or not sys.stdin.isatty():
            child.send_signal(number)

    with child:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, forward)
        code = child.wait()
    return code if code >= 0 else 128 - code


def _make(arguments: argparse.Namespace) -> Broker:
    if arguments.registry is not None and not 0 <= arguments.registry <= _LAST_PORT:
        raise UsageError(f"--registry {arguments.registry}: ports go from 1 to {_LAST_PORT}, or 0 for any")
    if arguments.fsync and not arguments.data:
        raise UsageError("--fsync needs --data DIR: data in memory are on no disk")
    return Broker(
        nodes=arguments.nodes,
        topics=dict(_topic(word) for word in arguments.topic),
        host=arguments.host,
        port=arguments.port,
        advertise=arguments.advertise,
        data_dir=arguments.data,
        fsync=arguments.fsync,
        configs=pairs(arguments.config, "--config"),
        as_version=arguments.as_version,
        ssl_context=_tls(arguments.tls) if arguments.tls else None,
        sasl=[_user(word) for word in arguments.sasl],
    )


def _topic(word: str) -> tuple[str, int]:
    name, colon, partitions = word.rpartition(":")
    if not colon:
        return word, 1
    if not partitions.isdecimal():
        raise UsageError(f"--topic {word}: {partitions!r} is not a number of partitions")
    return name, int(partitions)


def _user(word: str) -> tuple[str, str, str]:
    mechanism, _, rest = word.partition(":")
    user, colon, password = rest.partition(":")
    if mechanism.upper() not in _WITHOUT_PASSWORD and not (user and colon):
        raise UsageError(f"--sasl {mechanism}: write it as {mechanism}:USER:PASSWORD")
    return mechanism.upper(), user, expand(password, f"--sasl {mechanism}:{user}")


def _tls(word: str) -> ssl.SSLContext:
    import ssl

    parts = dict(pair(part, "--tls") for part in word.split(","))
    unknown = sorted(set(parts) - set(_TLS_PARTS))
    if unknown or "cert" not in parts:
        raise UsageError(
            f"--tls takes {', '.join(_TLS_PARTS)} and needs cert" + (f", not {unknown[0]}" if unknown else "")
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for name in ("cert", "key", "ca"):
        _check_readable(parts.get(name), name)
    try:
        context.load_cert_chain(parts["cert"], parts.get("key"), parts.get("password", ""))
    except OSError as error:  # ssl.SSLError is one
        key = parts.get("key", parts["cert"])
        raise UsageError(
            f"--tls: {parts['cert']} is not a certificate in PEM form, or {key} is not its key, or the password "
            f"is wrong ({error.strerror or error})"
        ) from error
    if "ca" in parts:
        try:
            context.load_verify_locations(parts["ca"])
        except OSError as error:
            raise UsageError(f"--tls: {parts['ca']} has no certificates in PEM form") from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _check_readable(path: str | None, name: str) -> None:
    if path is None:
        return
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise UsageError(f"--tls: {name} {path}: {error.strerror}") from error


COMMAND = run
