"""GSSAPI (RFC 4752): Kerberos, through the `gssapi` package (`pip install purekafka[gssapi]`)."""

from __future__ import annotations

from collections.abc import Generator
from typing import Any, ClassVar, Final

from kafka.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from kafka.sasl.abc import ExchangeMechanism

__all__ = ["SaslMechanismGSSAPI"]

# RFC 4752, section 3.3: the first octet names the protections on offer. Kafka knows none but
# authentication; confidentiality is TLS' business.
_NO_PROTECTION: Final = 0x01


class SaslMechanismGSSAPI(ExchangeMechanism):
    """A Kerberos ticket for `sasl_kerberos_service_name` at the broker's host.

    `sasl_kerberos_name` names the broker: a principal in full (``kafka/b1.example@EXAMPLE.COM``), a service at a host
    (``kafka@b1.example``), or a `gssapi.Name`; `sasl_kerberos_domain_name` gives the host to use in place of the one
    connected to.
    """

    name: ClassVar[str] = "GSSAPI"
    blocks: ClassVar[bool] = True  # may ask the KDC for a ticket

    def __init__(
        self,
        *,
        host: str | None = None,
        sasl_kerberos_service_name: str = "kafka",
        sasl_kerberos_domain_name: str | None = None,
        sasl_kerberos_name: Any = None,
        **_config: Any,
    ) -> None:
        super().__init__()
        try:
            import gssapi
        except ImportError as error:
            raise KafkaConfigurationError(
                "SASL GSSAPI needs the gssapi package: pip install 'purekafka[gssapi]'"
            ) from error
        self._gssapi = gssapi
        if sasl_kerberos_name is not None:
            self._target = sasl_kerberos_name
        else:
            domain = sasl_kerberos_domain_name or host
            if not domain:
                raise KafkaConfigurationError("SASL GSSAPI needs the broker's host or sasl_kerberos_domain_name")
            self._target = f"{sasl_kerberos_service_name}@{domain}"

    def exchange(self) -> Generator[bytes, bytes, None]:
        """Establish the context, then agree on no protection layer."""
        gssapi = self._gssapi
        try:
            name = self._target
            if isinstance(name, str):
                # A slash would become a part of the service's name.
                kind = gssapi.NameType.kerberos_principal if "/" in name else gssapi.NameType.hostbased_service
                name = gssapi.Name(name, name_type=kind)
            name = name.canonicalize(gssapi.MechType.kerberos)
            context = gssapi.SecurityContext(name=name, usage="initiate")
            offer: bytes | None = None
            while True:
                # An empty token means "continue": the last step often has nothing to send. The response
                # to the step that completed the context is the broker's offer of protections.
                offer = yield context.step(offer) or b""
                if context.complete:
                    break
            yield context.wrap(self._choose(context.unwrap(offer).message), False).message
        except gssapi.exceptions.GSSError as error:
            raise SaslAuthenticationFailedError(
                f"SASL GSSAPI for {self._target} failed: {error}. Is there a valid ticket (klist)?"
            ) from error

    @staticmethod
    def _choose(offer: bytes) -> bytes:
        if len(offer) < 4:
            raise SaslAuthenticationFailedError("SASL GSSAPI: the broker's offer is too short")
        if not offer[0] & _NO_PROTECTION:
            raise SaslAuthenticationFailedError(
                "SASL GSSAPI: the broker insists on a protection layer, which Kafka does not have"
            )
        # Layer, then the largest wrapped message that we take: with no layer that is zero.
        return bytes([_NO_PROTECTION]) + b"\0\0\0"

    def auth_details(self) -> str:
        """Name the service."""
        return f"to {self._target} via SASL GSSAPI"
