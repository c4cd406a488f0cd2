"""Seeking without naming partitions: it moves all that are assigned, and says so where none are yet."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kafka.consumer import KafkaConsumer
from kafka.errors import IllegalStateError
from test.unit.consumer.scripted import T0, T1, Cluster, MakeConsumer, read

SEEKS: dict[str, Callable[[KafkaConsumer], object]] = {
    "seek_to_beginning": KafkaConsumer.seek_to_beginning,
    "seek_to_end": KafkaConsumer.seek_to_end,
    "seek_to_timestamp": lambda consumer: consumer.seek_to_timestamp(0),
}


@pytest.mark.parametrize("name", SEEKS)
@pytest.mark.parametrize("group", ["g", None])
def test_before_anything_is_assigned_it_is_refused(
    cluster: Cluster, make: MakeConsumer, name: str, group: str | None
) -> None:
    consumer = make("t", group_id=group)
    with pytest.raises(IllegalStateError, match=rf"{name}\(\) has no partitions.*partitions within poll\(\)"):
        SEEKS[name](consumer)
    consumer.poll(timeout_ms=1000)
    SEEKS[name](consumer)
    consumer.unsubscribe()
    with pytest.raises(IllegalStateError, match=r"call subscribe\(\) or assign\(\) first"):
        SEEKS[name](consumer)
    consumer.assign([T0])
    SEEKS[name](consumer)


def test_a_member_that_got_no_partitions_has_nothing_to_move(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.assigns = []
    consumer = make("t", group_id="g")
    consumer.poll(timeout_ms=1000)
    assert consumer.assignment() == set()
    for seek in SEEKS.values():
        seek(consumer)


def test_going_back_to_what_is_committed_needs_nothing_assigned(cluster: Cluster, make: MakeConsumer) -> None:
    """As after a transaction that was aborted, whatever it was that failed: partitions start there anyway."""
    cluster.fill(10)
    cluster.committed = {T0: 7, T1: 0}
    consumer = make("t", group_id="g")
    consumer.seek_to_committed()
    assert [record.offset for record in read(consumer, 3)] == [7, 8, 9]


def test_a_listener_seeks_before_anything_is_read(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(10)
    cluster.committed = {T0: 7, T1: 0}

    class FromTheBeginning:
        def on_partitions_revoked(self, revoked: Any) -> None:
            pass

        def on_partitions_assigned(self, assigned: Any) -> None:
            consumer.seek_to_beginning()

    consumer = make(group_id="g")
    consumer.subscribe(["t"], listener=FromTheBeginning())
    assert len(read(consumer, 10)) == 10
