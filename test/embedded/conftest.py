"""Which faces a test runs on."""

from __future__ import annotations

import pytest

from .faces import AIOConsumer


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the tests of a module with ``FACES = "both"`` on both, unless they are marked `one_face`."""
    if getattr(metafunc.module, "FACES", "") == "both":
        one = metafunc.definition.get_closest_marker("one_face") is not None
        metafunc.parametrize("face", ["threads"] if one else ["threads", "asyncio"], indirect=True)


@pytest.fixture(autouse=True)
def face(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The face of the consumers that a test makes as `KafkaConsumer`, itself or by a fixture."""
    chosen: str = getattr(request, "param", "threads")
    if chosen == "asyncio":
        fixtures = request.config.pluginmanager.get_plugins()
        for module in (request.module, *fixtures):
            if str(getattr(module, "__name__", "")).startswith("test.embedded.") and hasattr(module, "KafkaConsumer"):
                monkeypatch.setattr(module, "KafkaConsumer", AIOConsumer)
    return chosen
