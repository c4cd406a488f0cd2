"""``purekafka request``: any request of the protocol, from a shell.

    purekafka request -b localhost:9092 Metadata
    purekafka request -b localhost:9092 Metadata --version 1 '{"topics": [{"name": "events"}]}'
    purekafka request -b localhost:9092 -X security.protocol=SSL -X ssl.cafile=ca.pem DescribeCluster

It goes to whom it is for, and the reply is printed as JSON. The exit code is 0 if there was a reply, whatever
error codes are in it.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from kafka.client_async import KafkaClient
from kafka.config import parse
from kafka.errors import KafkaConfigurationError, KafkaProtocolError
from kafka.protocol.negotiation import ApiVersions
from kafka.protocol.registry import api_named

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Describe the words of this command."""
    parser.add_argument("-b", "--bootstrap-servers", required=True, metavar="HOST:PORT", help="brokers to begin with")
    parser.add_argument(
        "-X", action="append", default=[], dest="options", metavar="NAME=VALUE", help="a client's option"
    )
    parser.add_argument("--node", type=int, help="the broker to ask; otherwise whom the request is for")
    parser.add_argument("--version", type=int, help="of the message; otherwise the newest that both sides have")
    parser.add_argument("--timeout", type=float, default=30.0, help="in seconds (default %(default)s)")
    parser.add_argument("api", metavar="API", help="for example Metadata; purekafka protocol list shows all")
    parser.add_argument("json", nargs="?", default="{}", metavar="JSON", help="its fields; - reads standard input")


def run(arguments: argparse.Namespace) -> int:
    """Send the request, print the reply."""
    cls = api_named(arguments.api).request
    fields = _fields(arguments.json)
    options = parse("client", dict(_pair(option) for option in arguments.options))
    with KafkaClient(bootstrap_servers=arguments.bootstrap_servers, **options) as client:
        version = _newest(client, cls) if arguments.version is None else arguments.version
        response = client.ask(cls[version].from_json(fields), arguments.node, arguments.timeout * 1000)
    print(json.dumps(response.to_json(), indent=2))
    return 0


def _fields(text: str) -> Any:
    try:
        return json.loads(sys.stdin.read() if text == "-" else text)
    except ValueError as error:
        raise KafkaProtocolError(f"the fields are no JSON: {error}") from None


def _newest(client: KafkaClient, cls: Any) -> int:
    offered = client.get_api_versions()
    versions = ApiVersions.of_release(client.api_version or ()) if offered is None else ApiVersions(offered)
    return versions.highest(cls)


def _pair(option: str) -> tuple[str, str]:
    name, equals, value = option.partition("=")
    if not equals:
        raise KafkaConfigurationError(f"-X takes name=value, not {option!r}")
    return name, value
