"""``purekafka broker``: the embedded broker as a process of its own."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from typing import TYPE_CHECKING

from kafka.broker import Broker
from kafka.errors import KafkaError

if TYPE_CHECKING:
    import argparse
    import ssl

_TLS_PARTS = ("cert", "key", "ca", "password")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What the broker can be told."""
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (%(default)s)")
    parser.add_argument(
        "--port", type=int, default=9092, help="of the first node, the others follow; 0: any (%(default)s)"
    )
    parser.add_argument("--nodes", type=int, default=1, help="how many nodes (%(default)s)")
    parser.add_argument(
        "--topic", action="append", default=[], metavar="NAME[:PARTITIONS]", help="create a topic; may be repeated"
    )
    parser.add_argument("--data", metavar="DIR", help="keep records in a directory instead of in memory")
    parser.add_argument("--fsync", action="store_true", help="have each append on the disk before it is acknowledged")
    parser.add_argument("--as-version", metavar="RELEASE", help="offer what this release of Kafka does, such as 2.8")
    parser.add_argument(
        "--config", action="append", default=[], metavar="NAME=VALUE", help="a broker option of Kafka; may be repeated"
    )
    parser.add_argument(
        "--tls",
        metavar="cert=FILE,key=FILE[,ca=FILE][,password=WORD]",
        help="serve TLS with this certificate; with ca, ask clients for theirs",
    )
    parser.add_argument(
        "--sasl",
        action="append",
        default=[],
        metavar="MECHANISM:USER:PASSWORD",
        help="ask for SASL (PLAIN, SCRAM-SHA-256, SCRAM-SHA-512, OAUTHBEARER); may be repeated",
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
    try:
        broker = _make(arguments).start()
    except (KafkaError, _WrongWord) as error:
        print(f"purekafka broker: {error}", file=sys.stderr)
        return 1
    try:
        print(f"listening on {broker.bootstrap_servers}", flush=True)
        stop.wait()
    finally:
        broker.close()
    return 0


class _WrongWord(Exception):  # noqa: N818 - a word on the command line that means nothing
    """Something on the command line cannot be understood."""


def _make(arguments: argparse.Namespace) -> Broker:
    return Broker(
        nodes=arguments.nodes,
        topics=dict(_topic(word) for word in arguments.topic),
        host=arguments.host,
        port=arguments.port,
        data_dir=arguments.data,
        fsync=arguments.fsync,
        configs=dict(_pair(word, "--config") for word in arguments.config),
        as_version=arguments.as_version,
        ssl_context=_tls(arguments.tls) if arguments.tls else None,
        sasl=[_user(word) for word in arguments.sasl],
    )


def _topic(word: str) -> tuple[str, int]:
    name, colon, partitions = word.rpartition(":")
    if not colon:
        return word, 1
    if not partitions.isdigit():
        raise _WrongWord(f"--topic {word}: {partitions!r} is no number of partitions")
    return name, int(partitions)


def _pair(word: str, option: str) -> tuple[str, str]:
    name, equals, value = word.partition("=")
    if not equals:
        raise _WrongWord(f"{option} {word}: say it as NAME=VALUE")
    return name, value


def _user(word: str) -> tuple[str, str, str]:
    mechanism, _, rest = word.partition(":")
    user, _, password = rest.partition(":")
    return mechanism.upper(), user, password


def _tls(word: str) -> ssl.SSLContext:
    import ssl

    parts = dict(_pair(part, "--tls") for part in word.split(","))
    unknown = sorted(set(parts) - set(_TLS_PARTS))
    if unknown or "cert" not in parts:
        raise _WrongWord(
            f"--tls takes {', '.join(_TLS_PARTS)} and needs cert" + (f", not {unknown[0]}" if unknown else "")
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(parts["cert"], parts.get("key"), parts.get("password"))
        if "ca" in parts:
            context.load_verify_locations(parts["ca"])
            context.verify_mode = ssl.CERT_REQUIRED
    except OSError as error:  # ssl.SSLError is one
        raise _WrongWord(f"--tls {word}: {error.strerror or error}") from error
    return context
