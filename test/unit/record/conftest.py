from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import settings


@pytest.fixture(autouse=True, scope="package")
def _no_deadline() -> Iterator[None]:
    """Time is measured by benchmarks; a busy machine must not fail a property test."""
    before = settings.default
    settings.register_profile("records", deadline=None, max_examples=60)
    settings.load_profile("records")
    yield
    settings.register_profile("before", before)
    settings.load_profile("before")
