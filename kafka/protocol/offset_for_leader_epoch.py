"""The 2.2 name of what is in ``offset``."""

from __future__ import annotations

from kafka.protocol._historic import historic_names
from kafka.protocol.offset import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse

__all__ = ["OffsetForLeaderEpochRequest", "OffsetForLeaderEpochResponse"]

__getattr__ = historic_names(__name__)
