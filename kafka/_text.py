"""Text for log lines and errors: text from brokers, addresses, passwords in addresses, numbers of records."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["Secret", "SecretBytes", "counted", "host_port", "is_http", "printable", "without_passwords"]

# More than this is not a message for people.
_LONGEST: Final = 10_000
# A password in an address: from the colon behind the user's name to the last @.
_PASSWORD: Final = re.compile(r"((?:^|[\s,]|//)[^\s,/:@]*):(?!//).*@", re.DOTALL)


def printable(text: str) -> str:
    r"""Return a text with everything escaped that could forge a log line or command a terminal.

    >>> printable("no such user\n2026-01-01 CRITICAL \x1b[2J")
    'no such user\\n2026-01-01 CRITICAL \\x1b[2J'
    >>> printable("Grüße")
    'Grüße'
    """
    if len(text) > _LONGEST:
        text = f"{text[:_LONGEST]}… ({len(text)} characters)"
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else char.encode("unicode_escape", "surrogatepass").decode() for char in text
    )


def without_passwords(text: str) -> str:
    """Return a URL, an address or a list of these with the passwords masked, and the query of a URL.

    >>> without_passwords("https://me:pa/ss@login.example/token?secret=x")
    'https://me:***@login.example/token?***'
    >>> without_passwords("me:pw@b1:9092")
    'me:***@b1:9092'
    """
    masked = _PASSWORD.sub(r"\1:***@", text)
    before, question, _ = masked.partition("?")
    return f"{before}?***" if question else masked


class Secret(str):
    """A secret as the variables of frames have it: reports of errors with variables (Sentry, rich) show its repr.

    >>> Secret("hunter2")
    '***'
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


class SecretBytes(bytes):
    """The same for bytes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "b'***'"


def is_http(url: str) -> bool:
    """Whether a text is a URL that can be asked by HTTP.

    >>> is_http("https://[::1]:8081/a"), is_http("http://["), is_http("http://h:99999"), is_http("h:8081")
    (True, False, False, False)
    """
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(url)
        return parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a bracket that nothing closes, a port of letters
        return False


def counted(records: int) -> str:
    """Return a number of records in words.

    >>> counted(1), counted(1200)
    ('1 record', '1200 records')
    """
    return f"{records} record" if records == 1 else f"{records} records"


def host_port(host: str, port: int) -> str:
    """Return an address as users write it.

    >>> host_port("broker", 9092), host_port("::1", 9092)
    ('broker:9092', '[::1]:9092')
    """
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
