"""PLAIN (RFC 4616): name and password in one message, so only to be used under TLS."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar

from kafka.errors import KafkaConfigurationError
from kafka.sasl.abc import ExchangeMechanism, secret_text

__all__ = ["SaslMechanismPlain"]


class SaslMechanismPlain(ExchangeMechanism):
    """Name and password.

    >>> SaslMechanismPlain(sasl_plain_username="ann", sasl_plain_password="secret").auth_bytes()
    b'\\x00ann\\x00secret'
    """

    name: ClassVar[str] = "PLAIN"

    def __init__(
        self, *, sasl_plain_username: str | None = None, sasl_plain_password: object = None, **_config: Any
    ) -> None:
        super().__init__()
        if sasl_plain_username is None or sasl_plain_password is None:
            raise KafkaConfigurationError("SASL PLAIN needs sasl_plain_username and sasl_plain_password")
        password = secret_text(sasl_plain_password, "sasl_plain_password")
        if "\0" in sasl_plain_username or "\0" in password:
            raise KafkaConfigurationError("SASL PLAIN cannot carry a NUL character in the name or the password")
        self._username = sasl_plain_username
        self._password = password

    def exchange(self) -> Generator[bytes, bytes, None]:
        """One message; the broker's reply to it is empty."""
        yield b"\0".join((b"", self._username.encode(), self._password.encode()))

    def auth_details(self) -> str:
        """Name the user."""
        return f"as {self._username} via SASL PLAIN"
