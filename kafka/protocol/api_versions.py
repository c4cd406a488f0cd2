"""The 2.2 name of what is in ``admin``."""

from __future__ import annotations

from kafka.protocol._historic import historic_names
from kafka.protocol.admin import ApiVersionsRequest, ApiVersionsResponse

__all__ = ["ApiVersionsRequest", "ApiVersionsResponse"]

__getattr__ = historic_names(__name__)
