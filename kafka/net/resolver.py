"""Names to addresses, in the order in which to try them.

Lookups run on worker threads; simultaneous lookups of one name are one lookup. A result is reused for a few seconds, or
until `forget` reports that none of its addresses accepted a connection. Addresses that accepted a connection without a
working broker come last.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable
from itertools import chain, zip_longest
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka._runtime.workers import ThreadWorkers, Workers
from kafka._text import host_port
from kafka.errors import KafkaConnectionError

if TYPE_CHECKING:
    from kafka._runtime.loop import Loop
    from kafka.future import Future

__all__ = ["Address", "Lookup", "NoListenerError", "Resolver", "interleave"]

# How long a result is reused, in seconds. Names whose addresses change (brokers in containers) are looked up again
# after a failure anyway.
_FRESH: Final = 10.0
# How many failed addresses of a name are remembered.
_REMEMBERED: Final = 64
# Errors for a name that does not exist; other errors may be temporary.
_NO_SUCH_NAME: Final = {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}

Lookup = Callable[..., list[tuple[Any, ...]]]


class NoListenerError(KafkaConnectionError):
    """Every address of the host refuses connections, or the name does not exist: the host is neither slow nor far."""


class Address(NamedTuple):
    """An address to connect to: the family of the socket, and the argument of `connect`."""

    family: int
    sockaddr: tuple[Any, ...]

    def __str__(self) -> str:
        host, port = self.sockaddr[:2]
        return host_port(str(host), port)


class Resolver:
    """Resolves for one loop. `lookup` has the signature of `socket.getaddrinfo`."""

    def __init__(
        self,
        loop: Loop,
        workers: Workers | None = None,
        lookup: Lookup = socket.getaddrinfo,
        reverse: Callable[[tuple[Any, ...], int], tuple[str, str]] = socket.getnameinfo,
    ) -> None:
        self._loop = loop
        self._workers = workers or ThreadWorkers(name="kafka-dns")
        self._lookup = lookup
        self._reverse = reverse
        self._known: dict[tuple[str, int, int], tuple[float, list[Address]]] = {}
        self._asked: dict[tuple[str, int, int], Future[list[tuple[Any, ...]]]] = {}
        self._failed: dict[tuple[str, int], dict[Address, int]] = {}
        self._failures = 0

    async def resolve(self, host: str, port: int, family: int = socket.AF_UNSPEC) -> list[Address]:
        """Return all addresses of `host` in the order in which to try them. KafkaConnectionError if it has none.

        That is the order of RFC 8305, with addresses that have `failed` behind the others, the latest failure last.
        """
        key = (host, port, family)
        known = self._known.get(key)
        if known is not None and self._loop.time() - known[0] < _FRESH:
            return self._in_order(host, port, known[1])
        asked = self._asked.get(key)
        if asked is None:
            asked = self._asked[key] = self._workers.submit(
                self._lookup, host, port, family, socket.SOCK_STREAM, socket.IPPROTO_TCP
            )
        try:
            found = await asked
        except (OSError, UnicodeError) as error:  # UnicodeError: a label that IDNA cannot encode
            kind = KafkaConnectionError if getattr(error, "errno", None) not in _NO_SUCH_NAME else NoListenerError
            reason = getattr(error, "strerror", None) or error
            raise kind(f"cannot resolve {host}: {reason}", host=host, port=port) from error
        finally:
            if asked.is_done:
                self._asked.pop(key, None)
        addresses = interleave(Address(entry[0], tuple(entry[4])) for entry in found)
        if not addresses:
            raise KafkaConnectionError(f"{host} has no address", host=host, port=port)
        self._known[key] = (self._loop.time(), addresses)
        return self._in_order(host, port, addresses)

    def _in_order(self, host: str, port: int, addresses: list[Address]) -> list[Address]:
        failed = self._failed.get((host, port))
        return sorted(addresses, key=lambda address: failed.get(address, 0)) if failed else addresses

    def failed(self, host: str, port: int, address: Address) -> None:
        """Try the other addresses of `host` first from now on: a connection to this one was accepted, without success.

        It may belong to a load balancer with no broker behind it, or to another program.
        """
        self._failures += 1
        failed = self._failed.setdefault((host, port), {})
        failed.pop(address, None)
        failed[address] = self._failures
        if len(failed) > _REMEMBERED:  # names in containers get new addresses all the time
            del failed[next(iter(failed))]

    def forget(self, host: str) -> None:
        """Look `host` up again the next time, because none of its addresses accepted a connection."""
        for key in [key for key in self._known if key[0] == host]:
            del self._known[key]

    async def canonical_names(self, host: str, port: int) -> list[str]:
        """Return the names of the addresses of `host` (KIP-235); an address without a name stands for itself.

        For one bootstrap name with many addresses, where certificates or Kerberos principals have the hosts' names.
        """
        names = []
        for address in await self.resolve(host, port):
            try:
                name, _ = await self._workers.submit(self._reverse, address.sockaddr, socket.NI_NAMEREQD)
            except OSError:
                name = str(address.sockaddr[0])
            names.append(name)
        return list(dict.fromkeys(names))


def interleave(addresses: Iterable[Address]) -> list[Address]:
    """Alternate between families, beginning with the system's first choice (RFC 8305, section 4).

    >>> six, four = socket.AF_INET6, socket.AF_INET
    >>> [address.sockaddr for address in interleave(Address(*a) for a in [(six, (1,)), (six, (2,)), (four, (3,))])]
    [(1,), (3,), (2,)]
    """
    families: dict[int, list[Address]] = {}
    for address in dict.fromkeys(addresses):
        families.setdefault(address.family, []).append(address)
    return [address for address in chain.from_iterable(zip_longest(*families.values())) if address is not None]
