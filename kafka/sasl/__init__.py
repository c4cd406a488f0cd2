"""The historic place of `kafka.net.sasl`; the same objects."""

from __future__ import annotations

from kafka.net.sasl import SASL_MECHANISMS, SaslMechanism, get_sasl_mechanism, register_sasl_mechanism

__all__ = ["MECHANISMS", "SASL_MECHANISMS", "SaslMechanism", "get_sasl_mechanism", "register_sasl_mechanism"]

MECHANISMS = SASL_MECHANISMS
