"""Times as Spark writes them: ``500ms``, ``10s``, ``15m``."""

from __future__ import annotations

import re
from typing import Final

from kafka.spark.errors import KafkaSparkOptionError

__all__ = ["parse_duration"]

_SECONDS: Final = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}


def parse_duration(option: str, text: str) -> float:
    """Return the seconds of a time; a bare number is of milliseconds.

    >>> parse_duration("maxTriggerDelay", "15m"), parse_duration("maxTriggerDelay", "500")
    (900.0, 0.5)
    """
    match = re.fullmatch(r"(-?\d+)([a-z]*)", text.strip().lower())
    if match is None or (match[2] or "ms") not in _SECONDS:
        raise KafkaSparkOptionError(
            f"{option}: Time must be specified as seconds (s), milliseconds (ms), microseconds (us), minutes (m or "
            f"min), hour (h), or day (d). E.g. 50s, 100ms, or 250us. Failed to parse time string: {text}"
        )
    return int(match[1]) * _SECONDS[match[2] or "ms"]
