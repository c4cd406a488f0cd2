"""Which faces a test runs on."""

from __future__ import annotations

from .faces import face, pytest_generate_tests

__all__ = ["face", "pytest_generate_tests"]
