"""Options of all clients about TLS and SASL."""

from __future__ import annotations

from typing import Any, Final

from kafka.config.checks import Choice, Custom, Flag, Number, OneOf, Text
from kafka.config.option import LINKS, Option

MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "GSSAPI", "OAUTHBEARER", "AWS_MSK_IAM")


def _is_path(value: object) -> bool:
    return value is None or isinstance(value, str) or hasattr(value, "__fspath__")


def _is_password(value: object) -> bool:
    return value is None or isinstance(value, (str, bytes, bytearray)) or callable(value)


def _is_context(value: object) -> bool:
    return value is None or hasattr(value, "wrap_bio")


def _is_mapping(value: Any) -> bool:
    return value is None or (hasattr(value, "keys") and all(isinstance(key, str) for key in value))


def _is_token_provider(value: object) -> bool:
    return value is None or callable(getattr(value, "token", None))


class _Extensions(Custom):
    """A dict of texts, which as text is ``name=value,name=value``."""

    def parse(self, text: str) -> object:
        pairs = [part.partition("=") for part in text.split(",") if part.strip()]
        if not all(equals for _, equals, _ in pairs):
            raise ValueError(text)
        return {name.strip(): value.strip() for name, _, value in pairs}


_accepted: set[str] = set()


def accept_mechanism(name: str) -> None:
    """Let ``sasl_mechanism`` take a further name; kafka.sasl calls it for mechanisms that users register."""
    _accepted.add(name)


def _is_registered(value: object) -> bool:
    return value in _accepted


_HIDDEN: Final = "str | bytes | bytearray | Callable[[], str | bytes] | None"
_PATH: Final = Custom(
    "a path or None", "str | PathLike[str] | None", _is_path, lambda value: None if value is None else str(value)
)

TLS_OPTIONS: Final = (
    Option(
        "security_protocol",
        LINKS,
        "PLAINTEXT",
        Choice(("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")),
        "The protocol to the brokers: with or without TLS, and with or without SASL. Must match the listener.",
    ),
    Option(
        "ssl_context",
        LINKS,
        None,
        Custom("an ssl.SSLContext or None", "SSLContext | None", _is_context),
        "An application's context with all TLS settings: it excludes all other ssl_* options.",
    ),
    Option(
        "ssl_check_hostname",
        LINKS,
        True,
        Flag(),
        "Whether the broker's certificate must name the host of the connection. With ssl_context, the context decides.",
    ),
    Option(
        "ssl_cafile",
        LINKS,
        None,
        _PATH,
        "A file with the authorities to trust: PEM, or a JKS or PKCS12 store of Java. None trusts the system's "
        "authorities. PKCS12 needs the package cryptography.",
        aliases=("ssl_ca_location", "ssl_truststore_location"),
    ),
    Option(
        "ssl_truststore_password",
        LINKS,
        None,
        Text(),
        "The password of ssl_cafile, if that is a JKS or PKCS12 store.",
        secret=True,
    ),
    Option(
        "ssl_certfile",
        LINKS,
        None,
        _PATH,
        "A file with the client's certificate and its chain, for brokers that request one: PEM, or a JKS or PKCS12 "
        "store of Java, which has the private key too.",
        aliases=("ssl_certificate_location", "ssl_keystore_location"),
    ),
    Option(
        "ssl_keystore_password",
        LINKS,
        None,
        Text(),
        "The password of ssl_certfile, if that is a JKS or PKCS12 store.",
        secret=True,
    ),
    Option(
        "ssl_keyfile",
        LINKS,
        None,
        _PATH,
        "A PEM file with the client's private key, if it is not in ssl_certfile.",
        aliases=("ssl_key_location",),
    ),
    Option(
        "ssl_password",
        LINKS,
        None,
        Custom("a str, bytes, a callable or None", _HIDDEN, _is_password),
        "The password of the private key, or a callable that returns it.",
        aliases=("ssl_key_password",),
        secret=True,
    ),
    Option(
        "ssl_truststore_certificates",
        LINKS,
        None,
        Text(),
        "The authorities to trust as PEM text, instead of ssl_cafile.",
        aliases=("ssl_ca_pem",),
    ),
    Option(
        "ssl_keystore_certificate_chain",
        LINKS,
        None,
        Text(),
        "The client's certificate and its chain as PEM text, instead of ssl_certfile.",
        aliases=("ssl_certificate_pem",),
    ),
    Option(
        "ssl_keystore_key",
        LINKS,
        None,
        Text(),
        "The client's private key as PEM text, instead of ssl_keyfile.",
        aliases=("ssl_key_pem",),
        secret=True,
    ),
    Option(
        "ssl_crlfile",
        LINKS,
        None,
        _PATH,
        "A PEM file with revoked certificates; the broker's own certificate is checked against it.",
        aliases=("ssl_crl_location",),
    ),
    Option(
        "ssl_ciphers",
        LINKS,
        None,
        Text(),
        "The ciphers to offer for TLS 1.2, in OpenSSL's list format. The ciphers of TLS 1.3 are always offered.",
        aliases=("ssl_cipher_suites",),
    ),
)

SASL_OPTIONS: Final = (
    Option(
        "sasl_mechanism",
        LINKS,
        None,
        OneOf(Choice(MECHANISMS, optional=True), Custom("the name of one that was registered", "str", _is_registered)),
        "How to authenticate, with a security_protocol of SASL_PLAINTEXT or SASL_SSL.",
    ),
    Option("sasl_plain_username", LINKS, None, Text(), "The user for PLAIN and SCRAM.", aliases=("sasl_username",)),
    Option(
        "sasl_plain_password",
        LINKS,
        None,
        Custom("a str, bytes, a callable or None", _HIDDEN, _is_password),
        "The password for PLAIN and SCRAM, or a callable that returns it, called at each authentication.",
        aliases=("sasl_password",),
        secret=True,
    ),
    Option(
        "sasl_scram_delegation_token",
        LINKS,
        False,
        Flag(),
        "Whether user and password are the id and the HMAC of a delegation token.",
        since="1.1",
    ),
    Option(
        "sasl_kerberos_name",
        LINKS,
        None,
        Custom("a str, a gssapi.Name or None", "object", lambda _value: True),
        "The broker's whole name for GSSAPI, instead of the service and domain name.",
    ),
    Option(
        "sasl_kerberos_service_name",
        LINKS,
        "kafka",
        Text(optional=False, empty=False),
        "The service's part of the broker's name for GSSAPI.",
    ),
    Option(
        "sasl_kerberos_domain_name",
        LINKS,
        None,
        Text(),
        "The host's part of the broker's name for GSSAPI. None is the host of the connection.",
    ),
    Option(
        "sasl_oauth_token_provider",
        LINKS,
        None,
        Custom("an object with a method token(), or None", "TokenProvider | None", _is_token_provider),
        "Gives the tokens for OAUTHBEARER; may also have extensions().",
        since="2.0",
    ),
    Option(
        "sasl_oauthbearer_token_endpoint_url",
        LINKS,
        None,
        Text(),
        "The URL that issues tokens for OAUTHBEARER for the client's credentials (OIDC), without a token provider.",
        since="2.0",
    ),
    Option(
        "sasl_oauthbearer_client_id",
        LINKS,
        None,
        Text(),
        "The client id for token requests.",
        aliases=("sasl_oauthbearer_client_credentials_client_id",),
    ),
    Option(
        "sasl_oauthbearer_client_secret",
        LINKS,
        None,
        Custom("a str, bytes, a callable or None", _HIDDEN, _is_password),
        "The client secret for token requests, or a callable that returns it.",
        aliases=("sasl_oauthbearer_client_credentials_client_secret",),
        secret=True,
    ),
    Option("sasl_oauthbearer_scope", LINKS, None, Text(), "The scope to request."),
    Option("sasl_oauthbearer_audience", LINKS, None, Text(), "The audience to request, for issuers that need one."),
    Option(
        "sasl_oauthbearer_extensions",
        LINKS,
        None,
        _Extensions("a dict of str or None, in a file name=value,name=value", "Mapping[str, str] | None", _is_mapping),
        "SASL extensions to send with each token.",
    ),
    Option(
        "sasl_oauthbearer_header_urlencode",
        LINKS,
        False,
        Flag(),
        "Whether to URL-encode id and secret in the Authorization header: RFC 6749 requires it, some issuers fail.",
    ),
    Option(
        "sasl_oauthbearer_connect_timeout_ms",
        LINKS,
        10000,
        Number(least=1),
        "How long one request for a token may take.",
        aliases=("sasl_login_connect_timeout_ms",),
    ),
    Option(
        "sasl_oauthbearer_cafile",
        LINKS,
        None,
        _PATH,
        "A PEM file with the authorities to trust at the token endpoint. None trusts the system's authorities.",
    ),
    Option(
        "sasl_oauthbearer_sub_claim_name",
        LINKS,
        "sub",
        Text(optional=False, empty=False),
        "The claim of a token that names the principal.",
    ),
    Option(
        "sasl_oauthbearer_scope_claim_name",
        LINKS,
        "scope",
        Text(optional=False, empty=False),
        "The claim of a token that holds its scope.",
    ),
    Option(
        "sasl_login_refresh_window_factor",
        LINKS,
        0.8,
        Number(least=0.5, most=1.0, finite=True),
        "Fetch a new token when this share of the old one's life has passed.",
    ),
    Option(
        "sasl_aws_region",
        LINKS,
        None,
        Text(),
        "The region for AWS_MSK_IAM. None takes it from the broker's name, else from AWS_REGION or AWS_DEFAULT_REGION.",
    ),
    Option(
        "sasl_aws_access_key_id",
        LINKS,
        None,
        Text(),
        "The access key for AWS_MSK_IAM. None searches the same places as AWS' own tools: environment, web identity, "
        "shared files, container and instance.",
    ),
    Option("sasl_aws_secret_access_key", LINKS, None, Text(), "The secret key that belongs to it.", secret=True),
    Option("sasl_aws_session_token", LINKS, None, Text(), "The session token of temporary credentials.", secret=True),
)
