"""The 2.2 name of what is in ``transaction``."""

from __future__ import annotations

from kafka.protocol._historic import historic_names
from kafka.protocol.transaction import TxnOffsetCommitRequest, TxnOffsetCommitResponse

__all__ = ["TxnOffsetCommitRequest", "TxnOffsetCommitResponse"]

__getattr__ = historic_names(__name__)
