"""The topics of a consumer: what follows from metadata, and look-ups."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from kafka.testing import HANG_UP
from test.unit.consumer.scripted import T0, T1, Cluster, MakeConsumer, rest


def assigned_in_turn(consumer: Any, cluster: Cluster, partitions: int) -> None:
    cluster.topics["t"] = partitions
    rest(consumer, 2)
    consumer.poll(timeout_ms=100)


def test_without_a_group_all_partitions_are_assigned_and_the_listener_gets_the_new_ones(
    cluster: Cluster, make: MakeConsumer
) -> None:
    calls: list[tuple[str, list[Any]]] = []

    class Listener:
        def on_partitions_assigned(self, assigned: Any) -> None:
            calls.append(("assigned", sorted(assigned)))

        def on_partitions_revoked(self, revoked: Any) -> None:
            calls.append(("revoked", sorted(revoked)))

    cluster.topics["t"] = 1
    consumer = make(metadata_max_age_ms=1000)
    consumer.subscribe(["t"], listener=Listener())  # type: ignore[arg-type]
    consumer.poll(timeout_ms=500)
    assigned_in_turn(consumer, cluster, 2)
    assert consumer.assignment() == {T0, T1}
    assert calls == [("assigned", [T0]), ("assigned", [T1])]


def test_a_listener_that_raises_is_called_once_and_the_partitions_are_assigned(
    cluster: Cluster, make: MakeConsumer
) -> None:
    class Listener:
        def on_partitions_assigned(self, _assigned: Any) -> None:
            raise ValueError("mine")

        def on_partitions_revoked(self, _revoked: Any) -> None: ...

    consumer = make()
    consumer.subscribe(["t"], listener=Listener())  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="mine"):
        consumer.poll(timeout_ms=500)
    consumer.poll(timeout_ms=500)
    assert consumer.assignment() == {T0, T1}


def test_a_pattern_has_the_topics_that_come_later(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make(metadata_max_age_ms=1000)
    consumer.subscribe(pattern="t|u")
    consumer.poll(timeout_ms=500)
    assert consumer.subscription() == {"t"}
    cluster.topics["u"] = 1
    rest(consumer, 2)
    consumer.poll(timeout_ms=500)
    assert consumer.subscription() == {"t", "u"}


def test_look_ups_try_again_what_may_pass_and_leave_the_wanted_topics_alone(
    cluster: Cluster, make: MakeConsumer
) -> None:
    cluster.topics["u"] = 3
    consumer = make("t")
    consumer.poll(timeout_ms=500)
    wanted = consumer._core.client.cluster.wanted_topics  # type: ignore[union-attr]
    cluster.script["Metadata"] = deque([HANG_UP, HANG_UP])
    assert consumer.partitions_for_topic("u") == {0, 1, 2}
    assert not cluster.script["Metadata"]
    assert consumer.topics() == {"t", "u"}
    assert consumer._core.client.cluster.wanted_topics == wanted  # type: ignore[union-attr]
    assert not consumer._core.client.cluster.need_all_topic_metadata  # type: ignore[union-attr]
