"""OAUTHBEARER (RFC 7628, KIP-255): a token instead of a password.

The token comes from a provider: an object of the application with `token()` and optionally `extensions()`, or
`OidcTokenProvider` for the client credentials grant of OpenID Connect (KIP-768; RFC 6749, section 4.4). The latter runs
on worker threads, because it waits for the token endpoint. It keeps a token until most of its life
(`sasl_login_refresh_window_factor`) has passed; if it cannot get a new one then, it uses the old one while that is
valid.
Secrets appear in no repr, log or error.
"""

from __future__ import annotations

import json
import logging
import re
from abc import ABC, abstractmethod
from base64 import b64encode, urlsafe_b64decode
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, ClassVar, Final, Protocol
from urllib.parse import quote_plus, urlencode, urlsplit

from kafka._runtime.clock import SYSTEM_CLOCK, Clock
from kafka._runtime.workers import SharedCall
from kafka._text import is_http, without_passwords
from kafka.errors import (
    AuthenticationError,
    KafkaConfigurationError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailedError,
)
from kafka.sasl.abc import ExchangeMechanism, is_loopback, secret_text
from kafka.sasl.http import HttpAnswer, http_request

if TYPE_CHECKING:
    import ssl

__all__ = [
    "AIOTokenProvider",
    "AbstractTokenProvider",
    "OidcTokenProvider",
    "SaslMechanismOAuth",
    "TokenProvider",
    "provider_from_config",
]

# RFC 7628, section 3.1: the characters of a key, a value and a token (RFC 6750).
_KEY: Final = re.compile(r"[A-Za-z]+")
_VALUE: Final = re.compile(r"[\x21-\x7e \t\r\n]+")
_TOKEN: Final = re.compile(r"[A-Za-z0-9\-._~+/]+=*")
_SEPARATOR: Final = "\x01"


class TokenProvider(Protocol):
    """The interface of a provider. `extensions()` is optional."""

    def token(self) -> str:
        """Return a token that is valid now."""
        ...


class AIOTokenProvider(Protocol):
    """The interface of a provider for asyncio's clients whose tokens are awaited."""

    async def token(self) -> str:
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
            from kafka.sasl.oauth import provider_from_config

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
            raise SaslAuthenticationFailedError("The OAuth token provider returned an invalid bearer token")
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


log = logging.getLogger(__name__)

# The part of a token's life after which a new one is fetched, as in Kafka's own client.
_REFRESH_AFTER: Final = 0.8
# A token this close to its end, in seconds, is not sent any more: clocks differ.
_LAST_USE: Final = 10.0
# For endpoints that do not say how long the token lives, and whose token does not either.
_DEFAULT_LIFE: Final = 300.0

# Options of a client that are the provider's own under the same name.
_PASSED_ON: Final = (
    "scope",
    "audience",
    "extensions",
    "cafile",
    "header_urlencode",
    "sub_claim_name",
    "scope_claim_name",
)

Fetch = Callable[..., HttpAnswer]


@dataclass(frozen=True, slots=True, repr=False)
class _Token:
    text: str
    refresh_at: float
    expires_at: float


class OidcTokenProvider:
    """Fetches and renews tokens with a client's id and secret.

    ::

        provider = OidcTokenProvider("https://login.example/token", "my-app", "s3cret", scope="kafka")
        KafkaProducer(sasl_mechanism="OAUTHBEARER", sasl_oauth_token_provider=provider, ...)
    """

    def __init__(
        self,
        token_endpoint_url: str,
        client_id: str,
        client_secret: str | bytes | Callable[[], str | bytes],
        *,
        scope: str | None = None,
        audience: str | None = None,
        extensions: Mapping[str, str] | None = None,
        cafile: str | None = None,
        timeout: float = 10.0,
        header_urlencode: bool = False,
        refresh_after: float = _REFRESH_AFTER,
        sub_claim_name: str = "sub",
        scope_claim_name: str = "scope",
        clock: Clock = SYSTEM_CLOCK,
        fetch: Fetch = http_request,
    ) -> None:
        self._url = token_endpoint_url
        self._shown = without_passwords(token_endpoint_url)
        if not is_http(token_endpoint_url):
            raise KafkaConfigurationError(f"The token endpoint must be an http(s) URL, not {self._shown!r}")
        parts = urlsplit(token_endpoint_url)
        if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
            log.warning(
                "The client secret for OAuth goes to %s in clear text: use an https URL for the token endpoint",
                self._shown,
            )
        self._client_id = client_id
        self._client_secret = client_secret
        self._form = {"grant_type": "client_credentials"}
        if scope:
            self._form["scope"] = scope
        if audience:
            self._form["audience"] = audience
        self._extensions = dict(extensions or {})
        self._cafile = cafile
        self._timeout = timeout
        self._refresh_after = refresh_after
        self._claim_names = (sub_claim_name, scope_claim_name)
        self._encode: Callable[[str], str] = quote_plus if header_urlencode else str
        self._clock = clock
        self._fetch = fetch
        self._renewal: SharedCall[_Token] = SharedCall()  # one at a time, however many connections ask
        self._token: _Token | None = None

    def token(self) -> str:
        """Return a valid token, from the endpoint if need be."""
        now = self._clock.time()
        token = self._token
        if token is not None and now < token.refresh_at:
            return token.text
        serves = token is not None and now < token.expires_at - _LAST_USE
        if token is not None and serves and self._renewal.under_way:
            return token.text
        try:
            return self._renewal.run(self._renew).text
        except KafkaError as error:
            if token is None or not serves:
                raise
            log.warning("Could not renew the OAuth token, the present one stays in use: %s", error)
            return token.text

    def _renew(self) -> _Token:
        token = self._token
        now = self._clock.time()
        if token is None or now >= token.refresh_at:  # another thread may have renewed it a moment ago
            token = self._token = self._ask(now)
        return token

    def extensions(self) -> dict[str, str]:
        """Return what goes to the broker beside the token."""
        return dict(self._extensions)

    def _ask(self, now: float) -> _Token:
        secret = secret_text(self._client_secret, "sasl_oauthbearer_client_secret")
        credentials = f"{self._encode(self._client_id)}:{self._encode(secret)}"
        answer = self._fetch(
            "POST",
            self._url,
            body=urlencode(self._form).encode(),
            headers={
                "Authorization": "Basic " + b64encode(credentials.encode()).decode(),
                "Content-Type": "application/x-www-form-urlencoded",
                "Accept": "application/json",
            },
            timeout=self._timeout,
            ssl_context=self._ssl_context(),
        )
        return self._read(answer, now)

    def _ssl_context(self) -> ssl.SSLContext | None:
        if self._cafile is None:
            return None
        import ssl

        try:
            return ssl.create_default_context(cafile=self._cafile)
        except OSError as error:
            raise KafkaConfigurationError(f"sasl_oauthbearer_cafile {self._cafile}: {error}") from error

    def _read(self, answer: HttpAnswer, now: float) -> _Token:
        try:
            fields = json.loads(answer.body)
        except ValueError:
            fields = None
        if not isinstance(fields, dict):
            fields = {}
        if answer.status != 200:
            why = " ".join(str(fields[key]) for key in ("error", "error_description") if key in fields)
            text = f"The token endpoint {self._shown} answered {answer.status} {why or answer.reason}"
            if 400 <= answer.status < 500 and not answer.is_temporary:
                raise AuthenticationError(f"{text}: check the client id, the secret and the scope")
            raise KafkaConnectionError(text)
        token = fields.get("access_token")
        if not isinstance(token, str) or not token:
            raise AuthenticationError(f"The token endpoint {self._shown} answered without an access_token")
        life = _lifetime(fields.get("expires_in"), token, now)
        return _Token(token, now + life * self._refresh_after, now + life)

    def principal(self) -> str:
        """Return whom the present token names, and for what, as far as it can be read; for the log."""
        claims = _claims(self._token.text) if self._token is not None else {}
        shown = [f"{name} {claims[name]}" for name in self._claim_names if name in claims]
        return ", ".join(shown) or f"client {self._client_id}"

    def __repr__(self) -> str:
        return f"<OidcTokenProvider {self._shown} client_id={self._client_id!r}>"


def _lifetime(expires_in: object, token: str, now: float) -> float:
    """Return how long the token lives: as the endpoint says, else as the token itself says."""
    try:
        if isinstance(expires_in, (int, float, str)) and float(expires_in) > 0:
            return float(expires_in)
        return max(0.0, float(_claims(token)["exp"]) - now)
    except (ValueError, KeyError, TypeError):
        return _DEFAULT_LIFE


def _claims(token: str) -> dict[str, Any]:
    """Return what a JWT says, unverified, which is the broker's part; nothing of tokens of other kinds."""
    try:
        payload = token.split(".")[1]
        claims = json.loads(urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
    except (ValueError, IndexError):
        return {}
    return claims if isinstance(claims, dict) else {}


def provider_from_config(config: Mapping[str, Any]) -> OidcTokenProvider:
    """Make a provider from the `sasl_oauthbearer_*` options of a client."""
    prefix = "sasl_oauthbearer_"
    options = {key.removeprefix(prefix): value for key, value in config.items() if key.startswith(prefix)}
    url, client_id, secret = (options.get(key) for key in ("token_endpoint_url", "client_id", "client_secret"))
    if not (url and client_id and secret is not None):
        raise KafkaConfigurationError(
            "SASL OAUTHBEARER needs sasl_oauth_token_provider, or sasl_oauthbearer_token_endpoint_url with "
            "sasl_oauthbearer_client_id and sasl_oauthbearer_client_secret"
        )
    more = {key: options[key] for key in _PASSED_ON if options.get(key) is not None}
    if options.get("connect_timeout_ms") is not None:
        more["timeout"] = options["connect_timeout_ms"] / 1000
    if config.get("sasl_login_refresh_window_factor") is not None:
        more["refresh_after"] = config["sasl_login_refresh_window_factor"]
    # Passwords may be bytearrays, callables may be unhashable.
    known = id(secret) if callable(secret) else secret if isinstance(secret, str) else bytes(secret)
    key = (url, client_id, known, repr(sorted(more.items(), key=str)))
    with _shared_lock:
        if key not in _shared:
            _shared[key] = OidcTokenProvider(url, client_id, secret, **more)
        return _shared[key]


# A mechanism object lives for one authentication; its token is worth keeping for the next. One
# provider per set of credentials, of which a process has a handful.
_shared: Final[dict[tuple[object, ...], OidcTokenProvider]] = {}
_shared_lock: Final = Lock()
