from __future__ import annotations

from collections.abc import Iterator

import pytest

from .registry_server import RegistryServer


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    with RegistryServer() as server:
        yield server
