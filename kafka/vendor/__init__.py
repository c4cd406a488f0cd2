"""The historic place of modules that stood in for parts of newer Pythons: ``six``, ``selectors34``, ``socketpair``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names

if not TYPE_CHECKING:  # checkers report a name that is not here
    __getattr__, __dir__ = lazy_names(__name__, {})
