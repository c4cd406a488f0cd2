"""TLS on the broker's side: a context from files, and the principal that a client's certificate names."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kafka.errors import KafkaConfigurationError

if TYPE_CHECKING:
    import ssl

#: Short names of RFC 2253, which Java writes; others are left as ssl has them.
_SHORT: Final = {
    "commonName": "CN",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
_CLIENT_AUTH: Final = ("none", "requested", "required")


def server_context(
    certificate: str | Path,
    key: str | Path | None = None,
    *,
    password: str | None = None,
    ca: str | Path | None = None,
    client_auth: str = "none",
) -> ssl.SSLContext:
    """Return a context for ``Broker(ssl_context=...)``.

    ``certificate`` is a PEM file with the chain, ``key`` its private key (None: in the same file). ``client_auth`` is
    Kafka's ``ssl.client.auth``: whether clients show certificates, checked against those in ``ca``.

    >>> server_context("broker.pem", client_auth="always")
    Traceback (most recent call last):
    kafka.errors.KafkaConfigurationError: client_auth is one of none, requested, required, not 'always'
    """
    import ssl

    if client_auth not in _CLIENT_AUTH:
        raise KafkaConfigurationError(f"client_auth is one of {', '.join(_CLIENT_AUTH)}, not {client_auth!r}")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(certificate, key, password)
        if client_auth != "none":
            context.verify_mode = ssl.CERT_REQUIRED if client_auth == "required" else ssl.CERT_OPTIONAL
            context.load_verify_locations(ca)
    except (OSError, TypeError) as error:
        raise KafkaConfigurationError(f"cannot read {certificate}, {key or 'its key'} or {ca}: {error}") from error
    return context


def principal_of(certificate: dict[str, Any] | None) -> str | None:
    """Return who a certificate names, as Kafka does: its subject, the last part first.

    >>> principal_of({"subject": ((("countryName", "DE"),), (("commonName", "alice"),))})
    'User:CN=alice,C=DE'
    """
    if not certificate or not certificate.get("subject"):
        return None
    parts = [
        "+".join(f"{_SHORT.get(name, name)}={_escape(value)}" for name, value in pairs)
        for pairs in reversed(certificate["subject"])
    ]
    return "User:" + ",".join(parts)


def _escape(value: str) -> str:
    return "".join("\\" + letter if letter in ',+"\\<>;' else letter for letter in value)
