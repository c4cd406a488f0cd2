"""The interface of a SASL mechanism: bytes in, bytes out, no socket.

The connection sends the result of `auth_bytes()`, passes the response to `receive()`, and repeats that until
`is_done()`. It also does the framing (SaslHandshake, SaslAuthenticate, or bare tokens for old brokers). A mechanism
object serves one authentication of one connection.

Mechanisms that may be slow (token endpoints, a KDC, hashing a password thousands of times) set `blocks`; their methods
then run on a worker thread.
"""

from __future__ import annotations

import ipaddress
from abc import ABC, abstractmethod
from collections.abc import Generator
from typing import Any, ClassVar, Final

from kafka.errors import IllegalStateError, KafkaConfigurationError, KafkaConnectionError, SaslAuthenticationFailedError

__all__ = ["ExchangeMechanism", "SaslMechanism", "is_loopback", "secret_text"]

# Exceptions of code that parses a malformed message.
_NONSENSE: Final = (ValueError, LookupError, TypeError, AttributeError, ArithmeticError)


def secret_text(given: object, option: str) -> str:
    """Return a password that was given as text, as bytes in UTF-8, or as a callable that returns one of these.

    A callable is asked at each authentication, so that passwords may change. Errors do not show what it gave.

    >>> secret_text(lambda: b"from the vault", "sasl_plain_password")
    'from the vault'
    """
    if callable(given):
        try:
            given = given()
        except Exception as error:
            raise KafkaConnectionError(f"the callable {option} raised {type(error).__name__}") from error
    if isinstance(given, (bytes, bytearray)):
        try:
            given = given.decode()
        except UnicodeDecodeError:
            raise KafkaConfigurationError(f"{option} is not UTF-8") from None
    if not isinstance(given, str):
        raise KafkaConfigurationError(
            f"{option} must be a str or a callable that returns one, not a {type(given).__name__}"
        )
    return given


def is_loopback(host: str) -> bool:
    """Whether what is sent to a host stays on this machine.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("b1.example")
    (True, True, False)
    """
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.rstrip(".").lower() == "localhost"


class SaslMechanism(ABC):
    """The interface; derive from it and `register_sasl_mechanism` to add one of your own.

    The constructor is given the connection's options as keywords (`host`, `sasl_plain_username`
    and so on) and must accept options that it does not know.
    """

    blocks: ClassVar[bool] = False
    """Whether `auth_bytes` and `receive` may take long."""

    @abstractmethod
    def __init__(self, **config: Any) -> None: ...

    @abstractmethod
    def auth_bytes(self) -> bytes:
        """Return what is to be sent next."""

    @abstractmethod
    def receive(self, auth_bytes: bytes) -> None:
        """Take the broker's reply; raise a KafkaError if it is not acceptable."""

    @abstractmethod
    def is_done(self) -> bool:
        """Whether nothing more is to be exchanged."""

    @abstractmethod
    def is_authenticated(self) -> bool:
        """Whether both sides are satisfied."""

    def auth_details(self) -> str:
        """Return what the log may say about who was authenticated; never a secret."""
        return f"via {type(self).__name__}"

    def alternative(self) -> SaslMechanism | None:
        """Return another attempt worth making after a refusal, with other bytes for the same secret."""
        return None


class ExchangeMechanism(SaslMechanism):
    """A mechanism written as one generator: it yields what to send and is given what comes back.

    Its place in the code is its state. Whatever it raises, other than a KafkaError, is a broken
    or hostile peer's doing and becomes a SaslAuthenticationFailedError.
    """

    name: ClassVar[str] = "SASL"

    def __init__(self, **_config: Any) -> None:
        self._steps: Generator[bytes, bytes, None] | None = None
        self._next: bytes | None = None
        self._done = False
        self._ok = False

    @abstractmethod
    def exchange(self) -> Generator[bytes, bytes, None]:
        """Yield each message; returning means that the peer has proved what it had to."""

    def auth_bytes(self) -> bytes:
        """Return what the generator yielded last."""
        if self._steps is None:
            self._steps = self.exchange()
            self._advance(None)
        if self._next is None:
            raise IllegalStateError(f"{self.name} has nothing to send: the exchange is over")
        return self._next

    def receive(self, auth_bytes: bytes) -> None:
        """Hand the reply to the generator."""
        if self._steps is None or self._done:
            raise IllegalStateError(f"{self.name} did not expect a message now")
        self._advance(bytes(auth_bytes))

    def is_done(self) -> bool:
        """Whether the generator has ended."""
        return self._done

    def is_authenticated(self) -> bool:
        """Whether the generator has ended by returning."""
        return self._ok

    def _advance(self, reply: bytes | None) -> None:
        assert self._steps is not None
        try:
            self._next = next(self._steps) if reply is None else self._steps.send(reply)
        except StopIteration:
            self._next, self._done, self._ok = None, True, True
        except BaseException as error:
            self._next, self._done = None, True
            if isinstance(error, _NONSENSE) and reply is not None:
                raise SaslAuthenticationFailedError(
                    f"{self.name}: the broker's message makes no sense ({type(error).__name__})"
                ) from error
            raise
