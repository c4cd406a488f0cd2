"""Addresses of bootstrap servers, in all common notations."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from kafka._text import host_port

__all__ = ["DEFAULT_PORT", "ServerAddress", "parse_servers"]

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


def parse_servers(given: Any) -> tuple[ServerAddress, ...]:
    """The addresses in their order, without repetitions.

    >>> parse_servers("b1,b2:9093")
    (ServerAddress(host='b1', port=9092), ServerAddress(host='b2', port=9093))
    >>> parse_servers(["[::1]:9094", ("b3", 9095), "SASL_SSL://b4:9096"])[-1]
    ServerAddress(host='b4', port=9096)
    """
    if isinstance(given, str):
        items: list[Any] = given.split(",")
    elif isinstance(given, (list, tuple, set, frozenset)):
        items = [given] if _is_pair(given) else [part for item in given for part in _split(item)]
    else:
        raise ValueError(given)
    addresses = [_parse(item) for item in items if item != ""]
    return tuple(dict.fromkeys(addresses))


def _split(item: Any) -> list[Any]:
    return item.split(",") if isinstance(item, str) else [item]


def _is_pair(item: Any) -> bool:
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
