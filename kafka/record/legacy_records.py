"""A historic module path; see `kafka.legacy.legacy_records`."""

from __future__ import annotations

from kafka.legacy.legacy_records import *  # noqa: F403
from kafka.legacy.legacy_records import __all__ as _legacy_names
from kafka.record.batch_builder import FULL
from kafka.record.message_v0_v1 import OVERHEADS

__all__ = ["FULL", "OVERHEADS", *_legacy_names]  # noqa: PLE0604 - the names of the other module
