"""Options of the share consumer."""

from __future__ import annotations

import time
from typing import Any

import pytest

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource
from kafka.broker import Broker
from kafka.broker.faults import NO_REPLY
from kafka.errors import IllegalStateError, KafkaTimeoutError, RequestTimedOutError

from .proofs import proves
from .subjects import PATIENCE, TOPIC, Subject, seen


def _queue(subject: Subject) -> Broker:
    """A broker with ten records in the topic, which a share group reads from the beginning."""
    broker = subject.broker()
    broker.append_many(TOPIC, [b"%d" % number for number in range(10)])
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        for group in ("shared", "mine"):
            admin.alter_configs([ConfigResource("GROUP", group, {"share.auto.offset.reset": "earliest"})])
    return broker


def _take(consumer: Any) -> list[Any]:
    """Return the records of the first poll() that has some."""
    deadline = time.monotonic() + PATIENCE
    while not (found := consumer.poll(2000)):
        assert time.monotonic() < deadline
    return [record for records in found.values() for record in records]


@proves("fetch_min_bytes", "fetch_max_wait_ms", "fetch_max_bytes", "share_acquire_mode", kinds="share")
def a_fetch_says_so(subject: Subject) -> None:
    field, value, wanted = {
        "fetch_min_bytes": ("min_bytes", 7, 7),
        "fetch_max_wait_ms": ("max_wait_ms", 123, 123),
        "fetch_max_bytes": ("max_bytes", 1234, 1234),
        "share_acquire_mode": ("share_acquire_mode", "record_limit", 1),
    }[subject.option]
    broker = _queue(subject)
    _take(subject.make(broker, **{subject.option: value}).thing)
    assert {getattr(fetch.request, field) for fetch in seen(broker, "ShareFetch")} == {wanted}


@proves("group_id", "client_rack", kinds="share")
def the_member_says_so(subject: Subject) -> None:
    field, value = {"group_id": ("group_id", "mine"), "client_rack": ("rack_id", "east")}[subject.option]
    broker = _queue(subject)
    _take(subject.make(broker, **{subject.option: value}).thing)
    assert getattr(seen(broker, "ShareGroupHeartbeat")[0].request, field) == value


@proves("max_poll_interval_ms", kinds="share")
def a_member_that_does_not_poll_leaves(subject: Subject) -> None:
    broker = _queue(subject)
    used = subject.make(broker, max_poll_interval_ms=100)
    _take(used.thing)
    deadline = time.monotonic() + PATIENCE
    while seen(broker, "ShareGroupHeartbeat")[-1].request.member_epoch != -1:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@proves("share_acknowledgement_mode", kinds="share")
def records_must_be_acknowledged_or_need_not(subject: Subject) -> None:
    broker = _queue(subject)
    explicit = subject.make(broker, share_acknowledgement_mode="explicit").thing
    _take(explicit)
    with pytest.raises(IllegalStateError):
        explicit.poll()
    explicit.close()
    implicit = subject.make(broker).thing
    assert len(_take(implicit)) == 10
    implicit.poll()


@proves("default_api_timeout_ms", kinds="share")
def a_commit_takes_so_long(subject: Subject) -> None:
    broker = _queue(subject)
    used = subject.make(broker, default_api_timeout_ms=300, request_timeout_ms=200)
    _take(used.thing)
    broker.intercept("ShareAcknowledge", lambda _: NO_REPLY)
    began = time.monotonic()
    (error,) = used.thing.commit().values()
    assert isinstance(error, (KafkaTimeoutError, RequestTimedOutError))
    assert time.monotonic() - began < 15  # 60 by default


@proves("api_version", kinds="share")
def a_stated_release_is_not_asked_for(subject: Subject) -> None:
    broker = _queue(subject)
    _take(subject.make(broker, api_version=(4, 2)).thing)
    assert {request.client_id.rpartition("-")[0] for request in seen(broker, "ApiVersions")} == {"purekafka-admin"}
