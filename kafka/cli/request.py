"""``purekafka request``: any request of the protocol, from a shell.

The request goes to the broker that the API demands: the controller, a partition's leader, a coordinator, or any. The
reply is printed as JSON. The error codes in it are named on standard error, and the exit code then is 3.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from kafka.cli.arguments import SECRETS, UsageError, find_api, parse_json
from kafka.cli.connection import Connection
from kafka.cli.grammar import Verb, arg
from kafka.errors import KafkaError, for_code
from kafka.protocol.negotiation import ApiVersions
from kafka.version import __version__

if TYPE_CHECKING:
    from kafka.client_async import KafkaClient

#: How long a request may take that has no --timeout, connecting included.
_TIMEOUT_S = 30.0
_ERROR_IN_REPLY = 3
#: topicConfigErrorCode is not among them: with it a topic was created whose configuration may not be shown.
_ERROR_FIELDS = frozenset({"errorCode", "partitionErrorCode", "acknowledgeErrorCode"})
_MAX_INT32 = 2**31 - 1
#: The fields to send if the user sets none and the message's own default asks for nothing, or is refused.
_UNSET: dict[str, dict[str, object]] = {
    "ApiVersionsRequest": {"client_software_name": "purekafka", "client_software_version": __version__},
    "DescribeLogDirsRequest": {"topics": None},
    "MetadataRequest": {"topics": None},
}
#: From this version on a broker (2.4, KIP-464) puts its own default in place of -1; older ones want a number.
_BROKER_DEFAULTS_FROM = 4


@Verb(
    "request",
    arg("API", "for example Metadata; purekafka protocol list shows all", complete="api"),
    arg("[JSON]", "the fields of the request; - reads standard input", default="{}"),
    arg("--node ID", "the id of the broker to ask, instead of the one that the API demands", int),
    arg("--version N", "the version of the request; by default the newest that the broker supports", int),
    examples=["Metadata --sandbox", """CreateTopics '{"topics": [{"name": "a"}]}' --sandbox"""],
    epilog=SECRETS,
)
def run(arguments: argparse.Namespace, connection: Connection) -> int:
    """Send the request, print the reply."""
    cls = find_api(arguments.api).request
    timeout = arguments.timeout or _TIMEOUT_S
    deadline = time.monotonic() + timeout
    if arguments.version is not None:
        cls = _of_version(cls, arguments.version)
    fields = parse_json(arguments.json)
    client = connection.client()
    if arguments.version is None:
        cls = cls[_newest(client, cls)]
    request = _complete(cls, fields, round(timeout * 1000))
    response = client.ask(request, arguments.node, max(0.0, deadline - time.monotonic()) * 1000)
    if response is None:
        print("sent; brokers do not reply to a request with these fields", file=sys.stderr)
        return 0
    reply = response.to_json()
    print(json.dumps(reply, indent=2))
    errors = list(_errors(reply))
    for where, code in errors:
        print(f"{where}: {code} is {for_code(code).__name__}", file=sys.stderr)
    return _ERROR_IN_REPLY if errors else 0


def _of_version(cls: Any, version: int) -> Any:
    try:
        return cls[version]
    except KafkaError as error:
        raise UsageError(f"--version {version}: {error.args[0]}") from None


def _complete(cls: Any, fields: Any, timeout_ms: int) -> Any:
    """Build the request; fields that the user did not set get what Kafka's own tools would send.

    Kafka's message definitions have 0 where they name no default: a topic without replicas, and a deletion that may
    take no time.
    """
    try:
        request = cls.from_json(fields)
        request.encode()  # finds the values that the JSON form lets through
    except KafkaError as error:
        raise UsageError(error.args[0]) from None
    _fill(request, fields, _UNSET.get(cls._unbound.__name__, {}))
    if "timeout_ms" in cls._fields:
        _fill(request, fields, {"timeout_ms": min(timeout_ms, _MAX_INT32)})
    if cls._unbound.__name__ == "CreateTopicsRequest" and cls._version >= _BROKER_DEFAULTS_FROM:
        for topic, given in zip(request.topics, fields.get("topics", ()), strict=True):
            # A topic with an assignment of replicas must have -1 for both, too.
            _fill(topic, given, {"num_partitions": -1, "replication_factor": -1})
    return request


def _fill(struct: Any, given: dict[str, object], values: dict[str, object]) -> None:
    """Set the fields that the user's JSON does not have and that this version of the message has."""
    cls = type(struct)
    for name, value in values.items():
        field = cls._fields[name]
        if name in given or field.json_name in given or cls._version not in field.versions:
            continue
        if value is not None or cls._version in field.nullable:
            setattr(struct, name, value)


def _errors(reply: object, where: str = "") -> Iterator[tuple[str, int]]:
    """Yield the error codes in a reply, with the way to them.

    >>> list(_errors({"topics": [{"errorCode": 0}, {"errorCode": 3}], "errorCode": 0}))
    [('topics[1].errorCode', 3)]
    """
    if isinstance(reply, dict):
        for name, value in reply.items():
            path = f"{where}.{name}" if where else name
            if name in _ERROR_FIELDS:
                if value:
                    yield path, value
            else:
                yield from _errors(value, path)
    elif isinstance(reply, list):
        for number, value in enumerate(reply):
            yield from _errors(value, f"{where}[{number}]")


def _newest(client: KafkaClient, cls: object) -> int:
    offered = client.get_api_versions()
    versions = ApiVersions.of_release(client.api_version or ()) if offered is None else ApiVersions(offered)
    return versions.highest(cls)


COMMAND = run
