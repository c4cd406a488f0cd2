"""The 2.2 name of what is in ``commit``."""

from __future__ import annotations

from kafka.protocol._historic import historic_names
from kafka.protocol.commit import FindCoordinatorRequest, FindCoordinatorResponse

__all__ = ["FindCoordinatorRequest", "FindCoordinatorResponse"]

__getattr__ = historic_names(__name__)
