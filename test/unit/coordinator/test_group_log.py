"""The lines about one group."""

from __future__ import annotations

import pytest

from kafka.coordinator.group_log import GroupLog


def test_a_line_of_a_group_is_of_the_place_that_logs_it(caplog: pytest.LogCaptureFixture) -> None:
    """Not of the adapter that writes the group's name into it."""
    with caplog.at_level("INFO", "kafka.coordinator"):
        GroupLog("kitchen").warning("%s leaves", "cook", extra={"kafka_error": "Boom"})
    (line,) = caplog.records
    assert (line.msg, line.getMessage()) == ("Group %s: %s leaves", "Group kitchen: cook leaves")
    assert (line.filename, line.__dict__["kafka_group"], line.__dict__["kafka_error"]) == (
        "test_group_log.py",
        "kitchen",
        "Boom",
    )
