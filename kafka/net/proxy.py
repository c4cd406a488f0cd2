"""Through a proxy: SOCKS5 (RFC 1928, 1929) and HTTP CONNECT (RFC 9110), as bytes in, bytes out.

`ProxyUrl.steps` is a generator that yields what to send (perhaps nothing) and is given what has
come in. Its end means that the connection now leads to the broker. It reads not a byte more than
the proxy's own answer, and refuses further bytes after it.
"""

from __future__ import annotations

import ipaddress
import struct
from base64 import b64encode
from collections.abc import Generator
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from kafka._text import host_port, printable
from kafka.errors import AuthenticationError, KafkaConfigurationError, KafkaConnectionError

__all__ = ["ProxySteps", "ProxyUrl"]

ProxySteps = Generator[bytes, bytes, None]

_DEFAULT_PORTS: Final = {"socks5": 1080, "socks5h": 1080, "http": 8080}

# RFC 1928, section 6
_SOCKS_REPLIES: Final = {
    1: "general failure",
    2: "not allowed by the proxy's rules",
    3: "network unreachable",
    4: "host unreachable",
    5: "connection refused",
    6: "TTL expired",
    7: "command not supported",
    8: "address type not supported",
}
_LARGEST_HEAD: Final = 16_384  # an HTTP answer's head; what common servers allow


class ProxyUrl(NamedTuple):
    """A proxy's kind, address and credentials.

    >>> ProxyUrl.parse("socks5h://ann:s3cret@proxy:1081")
    <ProxyUrl socks5h://ann:***@proxy:1081>
    """

    scheme: str
    host: str
    port: int
    username: str | None = None
    password: str | None = None

    @classmethod
    def parse(cls, url: str) -> ProxyUrl:
        """Parse a URL; KafkaConfigurationError if it is not one of a proxy. Credentials are percent-decoded."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError as error:
            raise KafkaConfigurationError(f"The proxy's URL has no proper port or host: {error}") from error
        if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
            raise KafkaConfigurationError(
                f"A proxy's URL is socks5://, socks5h:// or http:// and a host, not {parts.scheme}://{parts.hostname}"
            )
        return cls(
            parts.scheme,
            parts.hostname,
            port or _DEFAULT_PORTS[parts.scheme],
            None if parts.username is None else unquote(parts.username),
            None if parts.password is None else unquote(parts.password),
        )

    @property
    def resolves(self) -> bool:
        """Whether the proxy looks up the brokers' names."""
        return self.scheme != "socks5"

    def steps(self, host: str, port: int) -> ProxySteps:
        """Return the conversation that leads to `host` (an address if the proxy does not resolve)."""
        if self.scheme == "http":
            return _http_connect(host, port, self)
        return _socks5(host, port, self)

    def __repr__(self) -> str:
        who = "" if self.username is None else f"{self.username}:***@"
        return f"<ProxyUrl {self.scheme}://{who}{self.host}:{self.port}>"

    def __str__(self) -> str:
        return repr(self)


class _Reader:
    """The received bytes that no step has used yet."""

    def __init__(self, proxy: ProxyUrl) -> None:
        self.data = b""
        self._proxy = f"the proxy {proxy.host}:{proxy.port}"

    def exactly(self, size: int, send: bytes = b"") -> Generator[bytes, bytes, bytes]:
        """Send, then wait for `size` bytes and take them."""
        while len(self.data) < size:
            self.data += yield send
            send = b""
        taken, self.data = self.data[:size], self.data[size:]
        return taken

    def head(self, send: bytes) -> Generator[bytes, bytes, bytes]:
        """Send, then wait for an empty line and take all up to it."""
        while (end := self.data.find(b"\r\n\r\n")) < 0:
            if len(self.data) > _LARGEST_HEAD:
                raise KafkaConnectionError(
                    f"{self._proxy} answered with a header of more than {_LARGEST_HEAD} bytes: it is not an HTTP proxy"
                )
            self.data += yield send
            send = b""
        taken, self.data = self.data[:end], self.data[end + 4 :]
        return taken

    def nothing_left(self) -> None:
        if self.data:
            raise KafkaConnectionError(f"{self._proxy} sent {len(self.data)} bytes more than its answer")


def _socks5(host: str, port: int, proxy: ProxyUrl) -> ProxySteps:
    reader = _Reader(proxy)
    with_password = proxy.username is not None
    version, method = yield from reader.exactly(2, b"\x05\x02\x00\x02" if with_password else b"\x05\x01\x00")
    if version != 5:
        raise KafkaConnectionError(f"the proxy {proxy.host}:{proxy.port} does not answer as a SOCKS5 proxy does")
    if method == 2 and with_password:
        yield from _socks5_password(reader, proxy)
    elif method == 0xFF:
        need = "does not accept a user and a password" if with_password else "demands a user and a password"
        raise AuthenticationError(f"The SOCKS5 proxy {proxy.host}:{proxy.port} {need}")
    elif method != 0:
        raise KafkaConnectionError(
            f"the SOCKS5 proxy {proxy.host}:{proxy.port} chose authentication method {method}, which was not offered"
        )
    reply = yield from reader.exactly(4, b"\x05\x01\x00" + _socks5_address(host) + struct.pack(">H", port))
    if reply[0] != 5:
        raise KafkaConnectionError(f"the SOCKS5 proxy {proxy.host}:{proxy.port} sent a malformed reply")
    if reply[1]:
        reason = _SOCKS_REPLIES.get(reply[1], f"error {reply[1]}")
        raise KafkaConnectionError(f"the SOCKS5 proxy {proxy.host}:{proxy.port} cannot reach {host}:{port}: {reason}")
    # The proxy's own address follows, which is of no use to us.
    size = (yield from reader.exactly(1))[0] if reply[3] == 3 else {1: 4, 4: 16}.get(reply[3], -1)
    if size < 0:
        raise KafkaConnectionError(
            f"the SOCKS5 proxy {proxy.host}:{proxy.port} sent a reply with an unknown kind of address"
        )
    yield from reader.exactly(size + 2)
    reader.nothing_left()


def _socks5_password(reader: _Reader, proxy: ProxyUrl) -> Generator[bytes, bytes, None]:
    name, word = (proxy.username or "").encode(), (proxy.password or "").encode()
    if not (0 < len(name) < 256 and len(word) < 256):
        raise KafkaConfigurationError("SOCKS5 takes a user and a password of at most 255 bytes each")
    message = b"\x01" + bytes([len(name)]) + name + bytes([len(word)]) + word
    reply = yield from reader.exactly(2, message)
    if reply[1]:
        raise AuthenticationError(f"The SOCKS5 proxy {proxy.host}:{proxy.port} refused user {proxy.username!r}")


def _socks5_address(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = _ascii_name(host).encode()
        if not 0 < len(name) < 256:
            raise KafkaConfigurationError(f"The host name {host!r} is too long for SOCKS5") from None
        return b"\x03" + bytes([len(name)]) + name
    return (b"\x01" if address.version == 4 else b"\x04") + address.packed


def _ascii_name(host: str) -> str:
    """Return a host name as it is sent: brokers tell their names, and one with line breaks would add HTTP headers."""
    try:
        name = host if host.isascii() else host.encode("idna").decode()
    except UnicodeError:
        name = ""
    if not name or any(letter <= " " or letter == "\x7f" for letter in name):
        raise KafkaConnectionError(f"{printable(host)!r} is not a host name")
    return name


def _http_connect(host: str, port: int, proxy: ProxyUrl) -> ProxySteps:
    reader = _Reader(proxy)
    target = host_port(_ascii_name(host), port)
    lines = [f"CONNECT {target} HTTP/1.1", f"Host: {target}"]
    if proxy.username is not None:
        credentials = b64encode(f"{proxy.username}:{proxy.password or ''}".encode()).decode()
        lines.append(f"Proxy-Authorization: Basic {credentials}")
    head = yield from reader.head("\r\n".join((*lines, "", "")).encode())
    protocol, _, status = head.split(b"\r\n", 1)[0].decode("latin-1").partition(" ")
    if not protocol.startswith("HTTP/1."):
        raise KafkaConnectionError(f"the proxy {proxy.host}:{proxy.port} does not answer as an HTTP proxy does")
    if status[:3] in {"401", "407"}:  # the first is tinyproxy's word for a wrong password
        raise AuthenticationError(f"The HTTP proxy {proxy.host}:{proxy.port} wants other credentials: {status[:100]!r}")
    if status[:1] != "2":
        raise KafkaConnectionError(
            f"the HTTP proxy {proxy.host}:{proxy.port} does not connect to {target}: {status[:100]!r}"
        )
    reader.nothing_left()
