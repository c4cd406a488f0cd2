"""Addresses as the programs of old took them apart: `host`, `port`, and the family of the address."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable

from kafka.config import parse_servers

__all__ = ["collect_hosts", "get_ip_port_afi"]


def get_ip_port_afi(host_and_port_str: str) -> tuple[str, int, int]:
    """Take `host[:port]` apart; AF_INET or AF_INET6 for an address, AF_UNSPEC for a name.

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
    """Take servers apart, in any order unless `randomize` is false.

    >>> [host for host, _, _ in collect_hosts("b1:9092, b2", randomize=False)]
    ['b1', 'b2']
    """
    given = hosts if isinstance(hosts, str) else list(hosts)
    found = [get_ip_port_afi(str(address)) for address in parse_servers(given)]
    if randomize:
        random.shuffle(found)
    return found
