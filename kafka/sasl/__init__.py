"""SASL: how a client proves who it is. Mechanisms by name; each is loaded when it is first asked for.

>>> type(sasl_mechanism("PLAIN", sasl_plain_username="ann", sasl_plain_password="pw")).__name__
'SaslMechanismPlain'
"""

from __future__ import annotations

from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from kafka._lazy import lazy_names
from kafka.config import accept_mechanism
from kafka.errors import KafkaConfigurationError

if TYPE_CHECKING:
    from kafka.sasl.abc import SaslMechanism

__all__ = [
    "MECHANISMS",
    "SASL_MECHANISMS",
    "SaslMechanism",
    "get_sasl_mechanism",
    "register_sasl_mechanism",
    "sasl_mechanism",
]

# A class, or where it is: module and name.
SASL_MECHANISMS: Final[dict[str, type[SaslMechanism] | tuple[str, str]]] = {
    "PLAIN": ("kafka.sasl.plain", "SaslMechanismPlain"),
    "SCRAM-SHA-256": ("kafka.sasl.scram", "ScramSha256"),
    "SCRAM-SHA-512": ("kafka.sasl.scram", "ScramSha512"),
    "GSSAPI": ("kafka.sasl.gssapi", "SaslMechanismGSSAPI"),
    "OAUTHBEARER": ("kafka.sasl.oauth", "SaslMechanismOAuth"),
    "AWS_MSK_IAM": ("kafka.sasl.msk", "SaslMechanismAwsMskIam"),
}
MECHANISMS: Final = SASL_MECHANISMS
_registering: Final = Lock()

_MODULES = {
    "abc": "SaslMechanism",
    "gssapi": "SaslMechanismGSSAPI",
    "msk": "SaslMechanismAwsMskIam",
    "oauth": "SaslMechanismOAuth",
    "plain": "SaslMechanismPlain",
    "scram": "SaslMechanismScram",
}
if not TYPE_CHECKING:  # checkers report a name that is not here
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)


def register_sasl_mechanism(name: str, klass: type[SaslMechanism], overwrite: bool = False) -> None:
    """Add a mechanism of your own, for `sasl_mechanism=name`.

    It is called with the connection's options as keywords; see `SaslMechanism`.
    """
    from kafka.sasl.abc import SaslMechanism

    if not (isinstance(klass, type) and issubclass(klass, SaslMechanism)):
        raise TypeError(f"A SASL mechanism derives from kafka.sasl.SaslMechanism, which {klass!r} does not")
    with _registering:
        if name in SASL_MECHANISMS and not overwrite:
            raise ValueError(f"The SASL mechanism {name} exists already; overwrite=True replaces it")
        SASL_MECHANISMS[name] = klass
    accept_mechanism(name)


def get_sasl_mechanism(name: str) -> type[SaslMechanism]:
    """Return the class of a mechanism; KafkaConfigurationError for an unknown name."""
    found = SASL_MECHANISMS.get(name)
    if found is None:
        raise KafkaConfigurationError(
            f"Unknown sasl_mechanism {name!r}; known are {', '.join(sorted(SASL_MECHANISMS))}"
        )
    if isinstance(found, tuple):
        module, attribute = found
        found = getattr(import_module(module), attribute)
        assert isinstance(found, type)
        SASL_MECHANISMS[name] = found
    return found


def sasl_mechanism(name: str, **config: Any) -> SaslMechanism:
    """Return a mechanism ready for one authentication."""
    return get_sasl_mechanism(name)(**config)
