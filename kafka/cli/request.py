"""``purekafka request``: any request of the protocol, from a shell.

    purekafka request -b localhost:9092 Metadata
    purekafka request -b localhost:9092 Metadata --version 1 '{"topics": [{"name": "events"}]}'
    purekafka request -b localhost:9092 -X security.protocol=SSL -X ssl.cafile=ca.pem DescribeCluster

It goes to whom it is for, and the reply is printed as JSON. The exit code is 0 if there was a reply, whatever
error codes are in it; what they mean is said beside it, on standard error.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kafka.cli.words import WrongWord, pair, positive
from kafka.client_async import KafkaClient
from kafka.config import parse
from kafka.errors import for_code
from kafka.protocol.negotiation import ApiVersions
from kafka.protocol.registry import api_named
from kafka.version import __version__

if TYPE_CHECKING:
    import argparse

#: What is sent where a field is not said and the protocol's own default asks for nothing, or is refused.
_UNSAID: dict[str, dict[str, Any]] = {
    "ApiVersionsRequest": {"client_software_name": "purekafka", "client_software_version": __version__},
    "DescribeLogDirsRequest": {"topics": None},
    "MetadataRequest": {"topics": None},
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the words of this command."""
    parser.add_argument("-b", "--bootstrap-servers", required=True, metavar="HOST:PORT", help="brokers to begin with")
    parser.add_argument(
        "-X", action="append", default=[], dest="options", metavar="NAME=VALUE", help="a client's option"
    )
    parser.add_argument("--node", type=int, help="the broker to ask; otherwise whom the request is for")
    parser.add_argument("--version", type=int, help="of the message; otherwise the newest that both sides have")
    parser.add_argument("--timeout", type=positive, default=30.0, help="in seconds (default %(default)s)")
    parser.add_argument("api", metavar="API", help="for example Metadata; purekafka protocol list shows all")
    parser.add_argument("json", nargs="?", default="{}", metavar="JSON", help="its fields; - reads standard input")


def run(arguments: argparse.Namespace) -> int:
    """Send the request, print the reply."""
    cls = api_named(arguments.api).request
    fields = _fields(arguments.json)
    options = parse("client", dict(pair(option, "-X") for option in arguments.options))
    # What keeps it from its goal is in the error at the end; a log of the way there would say it twice.
    logging.getLogger("kafka").addHandler(logging.NullHandler())
    with KafkaClient(bootstrap_servers=arguments.bootstrap_servers, **options) as client:
        version = _newest(client, cls) if arguments.version is None else arguments.version
        request = _complete(cls[version], fields)
        response = client.ask(request, arguments.node, arguments.timeout * 1000)
    if response is None:
        print("sent; to this request, with these fields, brokers do not reply", file=sys.stderr)
        return 0
    reply = response.to_json()
    print(json.dumps(reply, indent=2))
    for where, code in _errors(reply):
        print(f"{where}: {code} is {for_code(code).__name__}", file=sys.stderr)
    return 0


def _fields(text: str) -> Any:
    try:
        return json.loads(sys.stdin.read() if text == "-" else text)
    except ValueError as error:
        raise WrongWord(f"the fields are no JSON: {error}") from None


def _complete(cls: Any, fields: Any) -> Any:
    """Return the request, with what asks for everything where its user has not said anything."""
    request = cls.from_json(fields)
    said = {} if not isinstance(fields, dict) else fields
    for name, value in _UNSAID.get(cls._unbound.__name__, {}).items():
        field = cls._fields[name]
        if name in said or field.json_name in said or cls._version not in field.versions:
            continue
        if value is not None or cls._version in field.nullable:
            setattr(request, name, value)
    return request


def _errors(reply: Any, where: str = "") -> Iterator[tuple[str, int]]:
    """Yield the error codes in a reply, with the way to them.

    >>> list(_errors({"topics": [{"errorCode": 0}, {"errorCode": 3}], "errorCode": 0}))
    [('topics[1].errorCode', 3)]
    """
    if isinstance(reply, dict):
        for name, value in reply.items():
            path = f"{where}.{name}" if where else name
            if name == "errorCode":
                if value:
                    yield path, value
            else:
                yield from _errors(value, path)
    elif isinstance(reply, list):
        for number, value in enumerate(reply):
            yield from _errors(value, f"{where}[{number}]")


def _newest(client: KafkaClient, cls: Any) -> int:
    offered = client.get_api_versions()
    versions = ApiVersions.of_release(client.api_version or ()) if offered is None else ApiVersions(offered)
    return versions.highest(cls)
