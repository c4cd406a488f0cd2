"""The keys and values of control records.

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from kafka.protocol.fields import field
from kafka.protocol.struct import Struct
from kafka.protocol.types import Int16, Int32


class ControlRecordTypeSchema(Struct, versions="0", flexible="none"):
    """The key of a control record."""

    type: int = field(Int16, "0+")


class EndTxnMarker(Struct, versions="0", flexible="none"):
    """The value of the control record that ends a transaction."""

    coordinator_epoch: int = field(Int32, "0+")
