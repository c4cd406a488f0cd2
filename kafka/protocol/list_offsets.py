"""The 2.2 name of what is in ``offset``."""

from __future__ import annotations

from kafka.legacy.protocol_values import UNKNOWN_OFFSET, OffsetResetStrategy
from kafka.protocol._historic import historic_names
from kafka.protocol.offset import ListOffsetsRequest, ListOffsetsResponse

__all__ = ["ListOffsetsRequest", "ListOffsetsResponse", "OffsetResetStrategy", "UNKNOWN_OFFSET"]

__getattr__ = historic_names(__name__)
