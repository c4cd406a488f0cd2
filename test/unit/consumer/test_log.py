"""What the log says about a group: why poll() returns nothing, and what to do."""

from __future__ import annotations

import logging
from collections import deque

import pytest

from kafka.errors import RebalanceInProgressError, RequestTimedOutError
from kafka.testing import SILENCE
from test.unit.consumer.scripted import Cluster, MakeConsumer, read, rest

WAITS = "the group rebalances; until that has ended poll() returns no records"


def test_a_poll_that_waits_for_the_other_members_does_not_look_like_an_empty_topic(
    cluster: Cluster, make: MakeConsumer, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.fill(10)
    cluster.script["JoinGroup"] = deque([SILENCE])
    caplog.set_level(logging.INFO, "kafka.coordinator")
    consumer = make("t", group_id="g")
    assert consumer.poll(timeout_ms=5000) == {}
    assert caplog.text.count(f"Group g: {WAITS}") == 1


def test_it_is_logged_once_for_each_rebalance(
    cluster: Cluster, make: MakeConsumer, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.fill(10)
    cluster.script["JoinGroup"] = deque([RequestTimedOutError.errno] * 5)
    caplog.set_level(logging.INFO, "kafka.coordinator")
    consumer = make("t", group_id="g")
    assert len(read(consumer, 10)) == 10
    assert caplog.text.count(WAITS) == 1
    cluster.script["Heartbeat"] = deque([RebalanceInProgressError.errno])
    consumer.poll(timeout_ms=10_000)
    assert len(cluster.asked("JoinGroup")) == 7
    assert caplog.text.count(WAITS) == 2


def test_a_member_that_does_not_poll_gets_an_error_that_names_the_options(
    cluster: Cluster, make: MakeConsumer, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.fill(10)
    consumer = make("t", group_id="g")
    read(consumer, 10)
    rest(consumer, 400)
    assert "poll() was not called for 300 s" in caplog.text
    assert "fewer records from each poll() (max_poll_records), or raise max_poll_interval_ms" in caplog.text


def test_a_busy_application_does_not_find_a_call_for_each_answer_about_metadata(
    cluster: Cluster, make: MakeConsumer
) -> None:
    cluster.assigns = []
    consumer = make(group_id="g", metadata_max_age_ms=100)
    consumer.subscribe(pattern="t.*")
    consumer.poll(timeout_ms=5000)
    cluster.topics["t2"] = 1
    rest(consumer, 60)
    assert len(cluster.asked("Metadata")) > 100
    assert consumer._core is not None
    group = consumer._core.group
    assert group is not None
    assert len(group.membership.rendezvous.waiting) == 1
