"""``purekafka broker``: the embedded broker as a process of its own."""

from __future__ import annotations

import logging
import signal
import threading
from typing import TYPE_CHECKING

from kafka.broker import Broker
from kafka.cli.words import VALUES, WrongWord, expand, pair, pairs

if TYPE_CHECKING:
    import argparse
    import ssl

_TLS_PARTS = ("cert", "key", "ca", "password")
_WITHOUT_PASSWORD = ("OAUTHBEARER",)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the arguments of this command."""
    parser.epilog = VALUES
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen on (%(default)s)")
    parser.add_argument(
        "--port",
        type=int,
        default=9092,
        help="the port of the first node; further nodes take the next ones; 0: any free port (%(default)s)",
    )
    parser.add_argument("--nodes", type=int, default=1, help="how many nodes (%(default)s)")
    parser.add_argument(
        "--topic", action="append", default=[], metavar="NAME[:PARTITIONS]", help="create a topic; may be repeated"
    )
    parser.add_argument(
        "--data", metavar="DIR", help="keep topics, records and offsets in this directory, not in memory"
    )
    parser.add_argument("--fsync", action="store_true", help="have each append on the disk before it is acknowledged")
    parser.add_argument("--as-version", metavar="RELEASE", help="offer what this release of Kafka does, such as 2.8")
    parser.add_argument(
        "--config", action="append", default=[], metavar="NAME=VALUE", help="a broker option of Kafka; may be repeated"
    )
    parser.add_argument(
        "--tls",
        metavar="cert=FILE,key=FILE[,ca=FILE][,password=PASSWORD]",
        help="serve TLS with this certificate, whose key may need a password; with ca, clients must show a certificate",
    )
    parser.add_argument(
        "--sasl",
        action="append",
        default=[],
        metavar="MECHANISM:USER:PASSWORD",
        help="let only this user in (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512; OAUTHBEARER alone); may be repeated",
    )
    parser.add_argument("--verbose", action="store_true", help="log what happens on connections")


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGINT or SIGTERM."""
    logging.basicConfig(
        level=logging.DEBUG if arguments.verbose else logging.WARNING, format="%(asctime)s %(name)s %(message)s"
    )
    logging.getLogger("asyncio").setLevel(logging.WARNING)
    stop = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stop.set())
    broker = _make(arguments).start()
    try:
        print(f"listening on {broker.bootstrap_servers}", flush=True)
        stop.wait()
    finally:
        broker.close()
    return 0


def _make(arguments: argparse.Namespace) -> Broker:
    if arguments.fsync and not arguments.data:
        raise WrongWord("--fsync needs --data DIR: what is kept in memory is on no disk")
    return Broker(
        nodes=arguments.nodes,
        topics=dict(_topic(word) for word in arguments.topic),
        host=arguments.host,
        port=arguments.port,
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
    if not partitions.isdigit():
        raise WrongWord(f"--topic {word}: {partitions!r} is no number of partitions")
    return name, int(partitions)


def _user(word: str) -> tuple[str, str, str]:
    mechanism, _, rest = word.partition(":")
    user, colon, password = rest.partition(":")
    if mechanism.upper() not in _WITHOUT_PASSWORD and not (user and colon):
        raise WrongWord(f"--sasl {mechanism}: write it as {mechanism}:USER:PASSWORD")
    return mechanism.upper(), user, expand(password, f"--sasl {mechanism}:{user}")


def _tls(word: str) -> ssl.SSLContext:
    import ssl

    parts = dict(pair(part, "--tls") for part in word.split(","))
    unknown = sorted(set(parts) - set(_TLS_PARTS))
    if unknown or "cert" not in parts:
        raise WrongWord(
            f"--tls takes {', '.join(_TLS_PARTS)} and needs cert" + (f", not {unknown[0]}" if unknown else "")
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    for name in ("cert", "key", "ca"):
        _check_readable(parts.get(name), name)
    try:
        context.load_cert_chain(parts["cert"], parts.get("key"), parts.get("password", ""))
    except OSError as error:  # ssl.SSLError is one
        key = parts.get("key", parts["cert"])
        raise WrongWord(
            f"--tls: {parts['cert']} is no certificate in PEM form, or {key} is not its key, or the password is wrong "
            f"({error.strerror or error})"
        ) from error
    if "ca" in parts:
        try:
            context.load_verify_locations(parts["ca"])
        except OSError as error:
            raise WrongWord(f"--tls: {parts['ca']} has no certificates in PEM form") from error
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def _check_readable(path: str | None, name: str) -> None:
    if path is None:
        return
    try:
        with open(path, "rb"):
            pass
    except OSError as error:
        raise WrongWord(f"--tls: {name} {path}: {error.strerror}") from error
