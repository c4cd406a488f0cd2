"""The historic place of `kafka.net.sasl.gssapi`; the same objects."""

from __future__ import annotations

from kafka.net.sasl.gssapi import SaslMechanismGSSAPI

__all__ = ["SaslMechanismGSSAPI"]
