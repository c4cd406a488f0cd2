"""The tasks that people do at a shell, on the embedded broker; test/real does them on Apache Kafka."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafka.cli.sandbox import start

from .transcript import STEPS, perform


def test_c20_the_thirty_tasks_on_a_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len({step.task for step in STEPS}) >= 30
    broker = start()
    try:
        monkeypatch.setenv("KAFKA_BOOTSTRAP_SERVERS", broker.bootstrap_servers)
        perform(broker.bootstrap_servers, tmp_path)
    finally:
        broker.close()
