"""The 2.2 name of what is in ``sasl``."""

from __future__ import annotations

from kafka.protocol._historic import historic_names
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslAuthenticateResponse

__all__ = ["SaslAuthenticateRequest", "SaslAuthenticateResponse"]

__getattr__ = historic_names(__name__)
