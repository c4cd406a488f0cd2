"""OAUTHBEARER (RFC 7628, KIP-255): a token in place of a password.

Where the token comes from is the provider's business: an object of the application with `token()`
and, if it likes, `extensions()`; or `kafka.net.sasl.oidc.OidcTokenProvider`.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping
from typing import Any, ClassVar, Final, Protocol

from kafka.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from kafka.net.sasl.abc import ExchangeMechanism

__all__ = ["AbstractTokenProvider", "SaslMechanismOAuth", "TokenProvider"]

# RFC 7628, section 3.1: what a key, a value and a token (RFC 6750) may consist of.
_KEY: Final = re.compile(r"[A-Za-z]+")
_VALUE: Final = re.compile(r"[\x21-\x7e \t\r\n]+")
_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_SEPARATOR: Final = "\x01"


class TokenProvider(Protocol):
    """What is needed of a provider. `extensions()` is optional."""

    def token(self) -> str:
        """Return a token that is valid now."""
        ...


class AbstractTokenProvider(ABC):
    """A base for token providers of the application.

    `token()` is called on a worker thread whenever a connection authenticates or renews its
    session; keeping a token until shortly before it expires is up to the provider.

    >>> class FromFile(AbstractTokenProvider):
    ...     def token(self):
    ...         return open("/run/secrets/token").read().strip()
    """

    def __init__(self, **config: Any) -> None:  # noqa: B027 - nothing to do, and subclasses may call it
        """Take what the application likes to pass."""

    @abstractmethod
    def token(self) -> str:
        """Return a token that is valid now."""

    def extensions(self) -> dict[str, str]:
        """Return what goes to the broker beside the token (KIP-342)."""
        return {}


class SaslMechanismOAuth(ExchangeMechanism):
    """A bearer token from `sasl_oauth_token_provider`."""

    name: ClassVar[str] = "OAUTHBEARER"
    blocks: ClassVar[bool] = True  # the provider may ask a server

    def __init__(self, *, sasl_oauth_token_provider: TokenProvider | None = None, **config: Any) -> None:
        super().__init__()
        provider = sasl_oauth_token_provider
        if provider is None:
            from kafka.net.sasl.oidc import provider_from_config

            provider = provider_from_config(config)
        if not callable(getattr(provider, "token", None)):
            raise KafkaConfigurationError(f"sasl_oauth_token_provider has no method token(): {type(provider).__name__}")
        self._provider = provider

    def exchange(self) -> Generator[bytes, bytes, None]:
        """One message; an answer that is not empty is a refusal, which RFC 7628 wants acknowledged."""
        refusal = yield self._first_message()
        if refusal:
            yield _SEPARATOR.encode()
            # A broker that refuses answers with an error, which the connection raises before this.
            raise SaslAuthenticationFailedError(
                f"SASL OAUTHBEARER refused: {refusal[:1000].decode('utf-8', 'replace')}"
            )

    def _first_message(self) -> bytes:
        token = self._provider.token()
        if not isinstance(token, str) or not _TOKEN.fullmatch(token):
            raise SaslAuthenticationFailedError("The OAuth token provider returned something that is no bearer token")
        parts = ["n,,", f"auth=Bearer {token}", *self._extensions(), "", ""]
        return _SEPARATOR.join(parts).encode("ascii")

    def _extensions(self) -> list[str]:
        ask = getattr(self._provider, "extensions", None)
        extensions: Mapping[str, str] = (ask() or {}) if callable(ask) else {}
        for key, value in extensions.items():
            if key == "auth" or not _KEY.fullmatch(key) or not _VALUE.fullmatch(value):
                raise KafkaConfigurationError(
                    f"The OAuth extension {key!r} cannot be sent: names are letters and not 'auth', values are ASCII"
                )
        return [f"{key}={value}" for key, value in extensions.items()]

    def auth_details(self) -> str:
        """Name the principal where the provider knows it, else the provider."""
        principal = getattr(self._provider, "principal", None)
        whose = f"as {principal()}" if callable(principal) else f"with a token of {type(self._provider).__name__}"
        return f"{whose} via SASL OAUTHBEARER"
