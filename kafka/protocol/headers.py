"""What goes before every request and response.

Written by tools/generate_protocol.py from Kafka's message specs; do not edit.
"""

from __future__ import annotations

from kafka.protocol.fields import field
from kafka.protocol.struct import Struct
from kafka.protocol.types import Int16, Int32, String


class RequestHeader(Struct, versions="0-2", flexible="2+"):
    """Goes before every request."""

    request_api_key: int = field(Int16, "0+")
    request_api_version: int = field(Int16, "0+")
    correlation_id: int = field(Int32, "0+")
    client_id: str | None = field(String, "1+", nullable="1+", ignorable=True, flexible=False)


class ResponseHeader(Struct, versions="0-1", flexible="1+"):
    """Goes before every response."""

    correlation_id: int = field(Int32, "0+")
