"""A broker for command lines, and a home directory without contexts."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kafka.broker import Broker

from .shell import Outcome, run

Shell = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The directory of the contexts, which is empty."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("KAFKA_BOOTSTRAP_SERVERS", raising=False)
    # Who presses Tab does not wait for a machine that runs tests.
    monkeypatch.setattr("kafka.cli.completion._PATIENCE_MS", 10_000)
    return tmp_path


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"topics": {"events": 3, "orders": 1}}


@pytest.fixture
def shell(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Run command lines against `broker`."""
    monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
    return run
