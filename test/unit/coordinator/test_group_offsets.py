"""The committed offsets of a consumer in its group: commits of the application, automatic ones, and what they cover."""

from __future__ import annotations

from collections import deque
from typing import Any

import pytest

from kafka.errors import CommitFailedError
from kafka.protocol.commit import OffsetCommitRequest
from kafka.structs import OffsetAndMetadata
from kafka.testing import SILENCE
from test.unit.consumer.scripted import T0, T1, Cluster, MakeConsumer, read, rest
from test.unit.coordinator.test_consumer_group import Listener

REBALANCE, UNKNOWN_MEMBER = 27, 25
CAUSES = {REBALANCE: "the group rebalanced", UNKNOWN_MEMBER: "the coordinator removed this member from the group: "}


def test_an_automatic_commit_begins_in_poll_and_covers_what_was_returned(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(10)
    consumer = make("t", group_id="g", auto_commit_interval_ms=1000)
    assert len(read(consumer, 10)) == 10
    rest(consumer, 5)
    assert not cluster.committed
    consumer.poll(timeout_ms=100)
    assert cluster.committed == {T0: 10, T1: 0}


def test_a_failed_automatic_commit_is_repeated_with_the_newest_offsets(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(10)
    cluster.script["OffsetCommit"] = deque([14])
    consumer = make("t", group_id="g", auto_commit_interval_ms=1000)
    read(consumer, 10)
    rest(consumer, 2)
    for _ in range(4):
        consumer.poll(timeout_ms=500)
    assert cluster.committed == {T0: 10, T1: 0}


def test_consumed_offsets_are_committed_before_a_revocation(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(10)
    listener, committed = Listener(), []
    consumer = make(group_id="g", heartbeat_interval_ms=1000, auto_commit_interval_ms=3_600_000)
    consumer.subscribe(["t"], listener=listener)
    read(consumer, 10)
    revoked = listener.on_partitions_revoked
    listener.on_partitions_revoked = lambda partitions: (  # type: ignore[method-assign]
        committed.append(dict(cluster.committed)),
        revoked(partitions),
    )[1]
    cluster.script["Heartbeat"] = deque([27])
    rest(consumer, 1.5)
    for _ in range(3):
        consumer.poll(timeout_ms=500)
    assert committed == [{T0: 10, T1: 0}]
    assert listener.calls == [
        ("revoked", []),
        ("assigned", [T0, T1]),
        ("revoked", [T0, T1]),
        ("assigned", [T0, T1]),
    ]


@pytest.mark.parametrize("code", CAUSES)
@pytest.mark.parametrize("how", ["commit", "commit_async"])
def test_a_commit_fails_once_after_partitions_were_taken_away_before_their_offsets_were_stored(
    cluster: Cluster, make: MakeConsumer, code: int, how: str
) -> None:
    """The records before the position come again, here or to another member."""
    cluster.fill(10)
    consumer = make("t", group_id="g", heartbeat_interval_ms=1000, enable_auto_commit=False)
    read(consumer, 10)
    cluster.script["Heartbeat"] = deque([code])
    rest(consumer, 1.5)
    while len(cluster.asked("JoinGroup")) < 2:
        consumer.poll(timeout_ms=500, max_records=1)
    seen: list[Any] = []
    if how == "commit":
        with pytest.raises(CommitFailedError) as caught:
            consumer.commit()
        seen = [caught.value]
    else:
        consumer.commit_async(callback=lambda _offsets, outcome: seen.append(outcome))
        while not seen:
            consumer.poll(timeout_ms=500, max_records=1)
    assert isinstance(seen[0], CommitFailedError)
    assert f"cannot be committed: t-0 ({CAUSES[code]}" in str(seen[0])
    assert not cluster.committed
    consumer.commit()
    assert cluster.committed


@pytest.mark.parametrize(
    "how", ["nothing was returned", "the listener commits", "another member has committed further"]
)
def test_a_commit_does_not_fail_after_a_rebalance_by_which_no_record_comes_again(
    cluster: Cluster, make: MakeConsumer, how: str
) -> None:
    listener = Listener()
    consumer = make(group_id="g", heartbeat_interval_ms=1000, enable_auto_commit=False)
    if how == "the listener commits":
        listener.on_partitions_revoked = lambda _partitions: consumer.commit()  # type: ignore[method-assign]
    consumer.subscribe(["t"], listener=listener)
    if how == "nothing was returned":
        consumer.poll(timeout_ms=1000)
    else:
        cluster.fill(10)
        read(consumer, 10)
    if how == "another member has committed further":
        cluster.committed[T0] = 10
    cluster.script["Heartbeat"] = deque([REBALANCE])
    rest(consumer, 1.5)
    while len(cluster.asked("JoinGroup")) < 2:
        consumer.poll(timeout_ms=500)
    consumer.poll(timeout_ms=500)
    consumer.commit()


def test_a_commit_of_a_member_that_left_because_of_max_poll_interval_says_so(
    cluster: Cluster, make: MakeConsumer
) -> None:
    cluster.fill(10)
    consumer = make("t", group_id="g", max_poll_interval_ms=5000, session_timeout_ms=4000, heartbeat_interval_ms=1000)
    read(consumer, 10)
    rest(consumer, 20)
    with pytest.raises(CommitFailedError, match=r"poll\(\) was not called for 5 s \(max_poll_interval_ms\)"):
        consumer.commit()
    with pytest.raises(CommitFailedError, match=r"poll\(\) was not called for 5 s \(max_poll_interval_ms\)"):
        consumer.commit({T0: OffsetAndMetadata(3)})


def answer_commit(cluster: Cluster) -> None:
    """Answer the commit that the broker has kept."""
    for session in cluster.broker.sessions:
        for header, request in session.unanswered:
            if isinstance(request, OffsetCommitRequest):
                session.reply(header, request, cluster._offset_commit(request, 0))


def test_a_member_joins_again_when_the_commits_of_its_listener_are_answered(
    cluster: Cluster, make: MakeConsumer
) -> None:
    """The join has a connection of its own: the coordinator may read it first, and refuse the commit."""
    cluster.fill(10)
    listener, outcomes = Listener(), []
    consumer = make(group_id="g", heartbeat_interval_ms=3000, enable_auto_commit=False)
    consumer.subscribe(["t"], listener=listener)
    read(consumer, 10)
    listener.on_partitions_revoked = lambda _partitions: consumer.commit_async(  # type: ignore[method-assign]
        callback=lambda _offsets, outcome: outcomes.append(outcome)
    )
    cluster.script = {"Heartbeat": deque([REBALANCE]), "OffsetCommit": deque([SILENCE])}
    rest(consumer, 3.5)
    for _ in range(3):
        consumer.poll(timeout_ms=500)
    assert len(cluster.asked("OffsetCommit")) == 1
    assert len(cluster.asked("JoinGroup")) == 1
    answer_commit(cluster)
    for _ in range(3):
        consumer.poll(timeout_ms=500)
    assert not isinstance(outcomes[0], Exception)
    assert cluster.committed == {T0: 10, T1: 0}
    assert len(cluster.asked("JoinGroup")) == 2


def test_a_member_joins_again_though_a_commit_is_never_answered(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(10)
    consumer = make(
        "t", group_id="g", heartbeat_interval_ms=14_000, enable_auto_commit=False, max_poll_interval_ms=40_000
    )
    read(consumer, 10)
    cluster.script = {"Heartbeat": deque([REBALANCE]), "OffsetCommit": deque([SILENCE])}
    rest(consumer, 14.5)
    consumer.commit_async()
    began = cluster.now
    for _ in range(24):
        consumer.poll(timeout_ms=500)
    assert 10 <= cluster.times["JoinGroup"][1] - began < 12


def test_no_automatic_commit_is_due_beside_that_before_a_revocation(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(10)
    consumer = make("t", group_id="g", heartbeat_interval_ms=3000, auto_commit_interval_ms=3600)
    read(consumer, 10)
    cluster.script = {"Heartbeat": deque([REBALANCE]), "OffsetCommit": deque([SILENCE])}
    rest(consumer, 3.5)
    for _ in range(10):
        consumer.poll(timeout_ms=100)
    answer_commit(cluster)
    for _ in range(3):
        consumer.poll(timeout_ms=100)
    assert len(cluster.asked("JoinGroup")) == 2
    assert len(cluster.asked("OffsetCommit")) == 1
    assert cluster.committed == {T0: 10, T1: 0}


def test_closing_after_a_removal_does_not_try_to_commit_what_was_lost(
    cluster: Cluster, make: MakeConsumer, caplog: pytest.LogCaptureFixture
) -> None:
    cluster.fill(10)
    consumer = make("t", group_id="g", heartbeat_interval_ms=1000, auto_commit_interval_ms=3_600_000)
    read(consumer, 10)
    cluster.script["Heartbeat"] = deque([UNKNOWN_MEMBER])
    rest(consumer, 1.5)
    consumer.close()
    assert "the coordinator removed member m from the group" in caplog.text
    assert "could not be committed" not in caplog.text
    assert not cluster.asked("OffsetCommit")
