from __future__ import annotations

from collections.abc import Iterator

import pytest

from .registry_server import RegistryServer


@pytest.fixture
def server() -> Iterator[RegistryServer]:
    server = RegistryServer()
    yield server
    server.stop()
