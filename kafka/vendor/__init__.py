"""The historic place of modules that stood in for parts of newer Pythons: ``six``, ``selectors34``, ``socketpair``."""

from __future__ import annotations

from kafka._lazy import lazy_names

__getattr__, __dir__ = lazy_names(__name__, {})
