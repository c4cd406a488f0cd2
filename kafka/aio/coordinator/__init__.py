"""Where programs for aiokafka import assignors from."""

from __future__ import annotations

from kafka._lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, {})
