"""Proofs for what is about groups: of consumers, of coordinators by hand, and of the timers of a member."""

from __future__ import annotations

import time
from typing import Any

from kafka._runtime.network_thread import complete
from kafka.broker import Broker
from kafka.coordinator.heartbeat import Heartbeat
from kafka.structs import TopicPartition
from kafka.testing import FakeClock

from .proofs import proves
from .subjects import TOPIC, Subject, seen

T0 = TopicPartition(TOPIC, 0)


def _member(subject: Subject, broker: Broker, **options: Any) -> Any:
    """A member of a group that has its assignment."""
    options = {"group_id": "g", **options}
    if subject.kind == "consumer":
        options.setdefault("topics", [TOPIC])
        used = subject.make(broker, auto_offset_reset="earliest", **options)
        used.until(used.thing.assignment)
        return used
    return subject.use(broker, **options)


def _joined(subject: Subject, **options: Any) -> Any:
    """What a member says when it joins."""
    broker = subject.broker()
    _member(subject, broker, **options)
    return seen(broker, "JoinGroup")[-1].request


def _modern(subject: Subject, **options: Any) -> Any:
    """What a member says first to brokers that assign partitions themselves."""
    broker = subject.broker()
    used = subject.make(broker, **{"group_id": "g", "group_protocol": "consumer", **options})
    if subject.kind == "consumer":
        used.thing.subscribe([TOPIC])
    else:
        used.thing.start()
    used.until(lambda: seen(broker, "ConsumerGroupHeartbeat"))
    return seen(broker, "ConsumerGroupHeartbeat")[0].request


_ALL = "consumer coordinator consumer_coordinator"
_COMMITTING = "consumer consumer_coordinator"


@proves("group_id", kinds=_ALL)
def that_group_is_joined(subject: Subject) -> None:
    assert _joined(subject, group_id="mine").group_id == "mine"


@proves("group_instance_id", kinds=_ALL)
def the_member_says_that_it_is_a_static_one(subject: Subject) -> None:
    assert _joined(subject, group_instance_id="first").group_instance_id == "first"


@proves("session_timeout_ms", kinds=_ALL)
def the_session_lasts_so_long(subject: Subject) -> None:
    assert _joined(subject, session_timeout_ms=12345).session_timeout_ms == 12345


@proves("max_poll_interval_ms", kinds=_ALL)
def the_coordinator_waits_so_long_for_a_member_that_is_busy(subject: Subject) -> None:
    assert _joined(subject, max_poll_interval_ms=54321).rebalance_timeout_ms == 54321


@proves("heartbeat_interval_ms", kinds=_ALL)
def heartbeats_come_so_often(subject: Subject) -> None:
    broker = subject.broker()
    used = _member(subject, broker, heartbeat_interval_ms=30)
    began = time.monotonic()
    used.until(lambda: len(seen(broker, "Heartbeat")) >= 8)
    assert time.monotonic() - began < 15  # 24 by default


@proves("client_rack", kinds="consumer_coordinator")
def the_group_is_told_where_the_member_is(subject: Subject) -> None:
    assert _modern(subject, client_rack="east").rack_id == "east"


@proves("group_protocol")
def brokers_assign_or_members_do(subject: Subject) -> None:
    assert _modern(subject).group_id == "g"
    broker = subject.broker()
    _member(subject, broker, group_protocol="classic")
    assert not seen(broker, "ConsumerGroupHeartbeat")


@proves("group_remote_assignor")
def the_broker_is_told_which_of_its_assignors(subject: Subject) -> None:
    assert _modern(subject, group_remote_assignor="range").server_assignor == "range"


@proves("partition_assignment_strategy")
def the_member_says_which_assignors_it_knows(subject: Subject) -> None:
    joined = _joined(subject, partition_assignment_strategy=["roundrobin"])
    assert [protocol.name for protocol in joined.protocols] == ["roundrobin"]


# Commits


def _consumed(subject: Subject, used: Any, broker: Broker, offset: int = 1) -> None:
    """Have one record returned to the application, which ends before this offset."""
    broker.append(TOPIC, b"v")
    if subject.kind == "consumer":
        while not used.thing.poll(timeout_ms=5000):
            pass
    else:
        used.subscription.seek(T0, offset)
        complete(used.thing.serve())


def _committed(broker: Broker) -> int:
    """Return the offset that was committed last."""
    commits = seen(broker, "OffsetCommit")
    return commits[-1].request.topics[0].partitions[0].committed_offset if commits else -1


@proves("enable_auto_commit")
def closing_commits_or_does_not(subject: Subject) -> None:
    for wanted in (True, False):
        broker = subject.broker()
        used = _member(subject, broker, enable_auto_commit=wanted)
        _consumed(subject, used, broker)
        used.thing.close()
        assert bool(seen(broker, "OffsetCommit")) is wanted


@proves("auto_commit_interval_ms")
def commits_come_so_often(subject: Subject) -> None:
    broker = subject.broker()
    used = _member(subject, broker, auto_commit_interval_ms=30)
    began = time.monotonic()
    for offset in range(1, 6):
        _consumed(subject, used, broker, offset)
        used.until(lambda offset=offset: _committed(broker) == offset)
    assert time.monotonic() - began < 15  # 25 by default


@proves("default_offset_commit_callback")
def it_is_told_of_commits(subject: Subject) -> None:
    told: list[Any] = []
    broker = subject.broker()
    used = _member(
        subject, broker, auto_commit_interval_ms=30, default_offset_commit_callback=lambda *what: told.append(what)
    )
    _consumed(subject, used, broker)
    # The position from which reading starts may be committed too.
    used.until(lambda: any(offsets[T0].offset == 1 for offsets, *_ in told))


@proves("exclude_internal_topics")
def a_pattern_matches_internal_topics_or_not(subject: Subject) -> None:
    for exclude in (True, False):
        broker = subject.broker(topics={TOPIC: 1, "__consumer_offsets": 1})
        used = (
            subject.make(broker, group_id="g", exclude_internal_topics=exclude, metadata_max_age_ms=50)
            if (subject.kind == "consumer")
            else subject.make(broker, group_id="g", exclude_internal_topics=exclude, pattern=".*")
        )
        if subject.kind == "consumer":
            used.thing.subscribe(pattern=".*")
            used.until(lambda used=used: used.thing.assignment())
            found = {partition.topic for partition in used.thing.assignment()}
        else:
            used.client.cluster.need_all_topic_metadata = True
            used.client.cluster.request_update()
            used.until(lambda used=used: used.subscription.subscribed_topics)
            found = set(used.subscription.subscribed_topics)
        assert TOPIC in found
        assert ("__consumer_offsets" in found) is not exclude


# The timers of a member


@proves("group_id", kinds="heartbeat")
def the_timers_are_of_that_group(subject: Subject) -> None:
    assert Heartbeat(group_id="mine").config["group_id"] == "mine"


@proves("heartbeat_interval_ms", kinds="heartbeat")
def a_heartbeat_is_due(subject: Subject) -> None:
    clock = FakeClock()
    heartbeat = Heartbeat(clock=clock, heartbeat_interval_ms=2000)
    clock.advance(1.9)
    assert not heartbeat.should_heartbeat()
    clock.advance(0.1)
    assert heartbeat.should_heartbeat()


@proves("session_timeout_ms", kinds="heartbeat")
def the_session_is_over(subject: Subject) -> None:
    clock = FakeClock()
    heartbeat = Heartbeat(clock=clock, session_timeout_ms=20000)
    clock.advance(19.9)
    assert not heartbeat.session_expired()
    clock.advance(0.1)
    assert heartbeat.session_expired()


@proves("max_poll_interval_ms", kinds="heartbeat")
def the_application_is_stuck(subject: Subject) -> None:
    clock = FakeClock()
    heartbeat = Heartbeat(clock=clock, max_poll_interval_ms=20000)
    clock.advance(19.9)
    assert not heartbeat.poll_timeout_expired()
    clock.advance(0.1)
    assert heartbeat.poll_timeout_expired()
