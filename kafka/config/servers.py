"""Addresses of bootstrap servers, in all common notations."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable, Sequence
from typing import Any, Final, NamedTuple

from kafka._text import host_port

DEFAULT_PORT: Final = 9092


class ServerAddress(NamedTuple):
    """A host and its port.

    >>> str(ServerAddress("::1", 9092))
    '[::1]:9092'
    """

    host: str
    port: int = DEFAULT_PORT

    def __str__(self) -> str:
        return host_port(self.host, self.port)


def parse_servers(given: object) -> tuple[ServerAddress, ...]:
    """The addresses in their order, without repetitions.

    >>> parse_servers("b1,b2:9093")
    (ServerAddress(host='b1', port=9092), ServerAddress(host='b2', port=9093))
    >>> parse_servers(["[::1]:9094", ("b3", 9095), "SASL_SSL://b4:9096"])[-1]
    ServerAddress(host='b4', port=9096)
    """
    if isinstance(given, str):
        items: Sequence[object] = given.split(",")
    elif isinstance(given, (list, tuple, set, frozenset)):
        items = [given] if _is_pair(given) else [part for item in given for part in _split(item)]
    else:
        raise ValueError(given)
    addresses = [_parse(item) for item in items if item != ""]
    return tuple(dict.fromkeys(addresses))


def _split(item: object) -> Sequence[object]:
    return item.split(",") if isinstance(item, str) else [item]


def _is_pair(item: object) -> bool:
    return isinstance(item, (tuple, list)) and len(item) == 2 and isinstance(item[0], str) and type(item[1]) is int


def _parse(item: Any) -> ServerAddress:
    if _is_pair(item):
        host, port = item
        return ServerAddress(host, _port(port))
    if not isinstance(item, str):
        raise ValueError(item)
    # A client does not need the listener's name in front, as in advertised.listeners.
    text = item.strip().rpartition("://")[2]
    if text.startswith("["):
        host, bracket, rest = text[1:].partition("]")
        if not bracket or (rest and not rest.startswith(":")):
            raise ValueError(item)
        port_text = rest[1:]
    elif text.count(":") > 1:  # a bare IPv6 address
        host, port_text = text, ""
    else:
        host, _, port_text = text.partition(":")
    if not host or any(mark in host for mark in " /@"):
        raise ValueError(item)
    return ServerAddress(host, _port(port_text) if port_text else DEFAULT_PORT)


def _port(given: int | str) -> int:
    port = int(given)
    if not 0 < port < 65536:
        raise ValueError(given)
    return port


def get_ip_port_afi(host_and_port_str: str) -> tuple[str, int, int]:
    """Split `host[:port]`; AF_INET or AF_INET6 for an address, AF_UNSPEC for a name.

    >>> get_ip_port_afi("[::1]:9094") == ("::1", 9094, socket.AF_INET6)
    True
    >>> get_ip_port_afi("broker") == ("broker", 9092, socket.AF_UNSPEC)
    True
    """
    host, port = parse_servers(host_and_port_str)[0]
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            socket.inet_pton(family, host)
        except (OSError, ValueError):
            continue
        return host, port, family
    return host, port, socket.AF_UNSPEC


def collect_hosts(hosts: str | Iterable[str], randomize: bool = True) -> list[tuple[str, int, int]]:
    """Split the addresses of servers, in random order unless `randomize` is false.

    >>> [host for host, _, _ in collect_hosts("b1:9092, b2", randomize=False)]
    ['b1', 'b2']
    """
    given = hosts if isinstance(hosts, str) else list(hosts)
    found = [get_ip_port_afi(str(address)) for address in parse_servers(given)]
    if randomize:
        random.shuffle(found)
    return found
