"""The demo is the first thing that people run."""

from __future__ import annotations

import pytest

from kafka.cli import main


def test_the_demo_counts_every_event_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "--events", "5000", "--members", "3"]) == 0
    shown = capsys.readouterr().out
    assert "all 5,000 events arrived, each once, and the group committed them" in shown
    assert shown.count("member") == 3
