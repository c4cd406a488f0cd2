"""The 2.2 name of what is in ``sasl``."""

from __future__ import annotations

from kafka.protocol._historic import historic_names
from kafka.protocol.sasl import SaslHandshakeRequest, SaslHandshakeResponse

__all__ = ["SaslHandshakeRequest", "SaslHandshakeResponse"]

__getattr__ = historic_names(__name__)
