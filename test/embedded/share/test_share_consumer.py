"""Promises of the share consumers, on both faces: what is delivered, to whom, how often, and what answers come.

``test/real/share/test_promises.py`` runs those that it names against Apache Kafka, too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from kafka import AcknowledgeType, KafkaProducer, TopicPartition
from kafka._runtime.network_thread import complete
from kafka.broker import Broker
from kafka.errors import (
    ClientClosedError,
    IllegalStateError,
    InvalidRecordStateError,
    KafkaConfigurationError,
    KafkaConnectionError,
    RecordDeserializationError,
    ShareSessionNotFoundError,
    UnknownError,
    UnsupportedCodecError,
    UnsupportedVersionError,
    WakeupError,
)

from .conftest import GROUP, MakeMember, configure

FACES = "both"
JOBS = TopicPartition("jobs", 0)
ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType


def taken(member: Any, timeout_ms: float = 30_000) -> list[tuple[int, int]]:
    """Poll; return offset and delivery count of each record."""
    return [(row.offset, row.delivery_count) for rows in member.poll(timeout_ms).values() for row in rows]


def records(member: Any, timeout_ms: float = 30_000) -> list[Any]:
    return [row for rows in member.poll(timeout_ms).values() for row in rows]


def finish(member: Any, kind: AcknowledgeType = ACCEPT) -> list[tuple[int, int]]:
    """Poll, acknowledge all and commit."""
    found = records(member)
    for row in found:
        member.acknowledge(row, kind)
    assert set(member.commit().values()) == {None}
    return [(row.offset, row.delivery_count) for row in found]


def requests(broker: Broker, name: str) -> list[Any]:
    return [seen.request for seen in broker.requests if seen.name == name]


def wait_for_answers(member: Any) -> None:
    """The last fetch waits as long as the poll, by the broker's clock: both may end at the same moment."""
    eventually(
        lambda: not any(one["in_flight"] for name, one in member.health()["brokers"].items() if "/fetch" in name)
    )


def eventually(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "it did not come about"
        time.sleep(0.01)


# The implicit mode…


def test_the_next_poll_accepts_and_close_releases(broker: Broker, member: MakeMember) -> None:
    one = member(share_acknowledgement_mode="implicit")
    broker.append_many("jobs", ["a", "b"])
    assert taken(one) == [(0, 1), (1, 1)]
    broker.append("jobs", "c")
    assert taken(one) == [(2, 1)]
    one.close()
    assert taken(member()) == [(2, 2)], "nothing said that it was done"


def test_a_commit_accepts_and_names_its_partitions(broker: Broker, member: MakeMember) -> None:
    one = member("more", share_acknowledgement_mode="implicit")
    for number in (0, 1):
        broker.append("more", "x", partition=number)
    polled: set[TopicPartition] = set()
    while len(polled) < 2:
        found = one.poll(30_000)
        polled |= set(found)
        assert one.commit() == dict.fromkeys(found, None)
    broker.forget_requests()
    assert one.commit() == {}
    assert not requests(broker, "ShareAcknowledge")


def test_an_iteration_accepts_each_record_when_the_next_is_asked_for(broker: Broker, member: MakeMember) -> None:
    broker.append_many("jobs", ["a", "b", "c", "d"])
    one = member(share_acknowledgement_mode="implicit")
    for record in one:
        if record.offset == 2:
            break
    one.close()
    assert taken(member()) == [(2, 2), (3, 2)]


def test_a_new_loop_releases_the_record_that_the_last_one_was_left_with(broker: Broker, member: MakeMember) -> None:
    broker.append_many("jobs", ["a", "b"])
    one = member(share_acknowledgement_mode="implicit")
    for _ in one:
        break
    rows = iter(one)
    assert [(row.offset, row.delivery_count) for row in (next(rows), next(rows))] == [(1, 1), (0, 2)]
    assert one.commit() == {JOBS: None}
    assert broker.share_records(GROUP, "jobs") == {}


def test_the_implicit_mode_refuses_acknowledgements(broker: Broker, member: MakeMember) -> None:
    broker.append("jobs", "a")
    one = member(share_acknowledgement_mode="implicit")
    (record,) = records(one)
    for call in (
        lambda: one.acknowledge(record),
        lambda: one.acknowledge_offset(JOBS, 0),
        lambda: one.processing(record),
    ):
        with pytest.raises(IllegalStateError, match="explicit"):
            call()


# The explicit mode…


def test_a_poll_with_unacknowledged_records_is_refused_and_changes_nothing(broker: Broker, member: MakeMember) -> None:
    broker.append_many("jobs", ["a", "b"])
    one = member()
    first, second = records(one)
    one.acknowledge(first)
    with pytest.raises(IllegalStateError, match="1 records are not acknowledged, the first one at offset 1 of jobs-0"):
        one.poll(1000)
    assert one.health()["unacknowledged"] == 1
    one.acknowledge(second, REJECT)
    assert one.commit() == {JOBS: None}
    assert broker.share_records(GROUP, "jobs") == {}


def test_the_last_acknowledgement_counts_and_after_the_commit_there_is_none(broker: Broker, member: MakeMember) -> None:
    broker.append("jobs", "a")
    one = member()
    (record,) = records(one)
    one.acknowledge(record, REJECT)
    one.acknowledge(record, RELEASE)
    assert one.commit() == {JOBS: None}
    with pytest.raises(IllegalStateError, match="not waiting for an acknowledgement"):
        one.acknowledge(record)
    with pytest.raises(TypeError, match="AcknowledgeType"):
        one.acknowledge(record, None)
    assert finish(one) == [(0, 2)]


def test_a_record_is_released_five_times_and_then_archived(broker: Broker, member: MakeMember) -> None:
    broker.append("jobs", "poison")
    one = member()
    assert [finish(one, RELEASE) for _ in range(5)] == [[(0, count)] for count in range(1, 6)]
    assert taken(one, 300) == []
    assert broker.share_records(GROUP, "jobs") == {}


def test_a_rejected_record_never_returns(broker: Broker, member: MakeMember) -> None:
    broker.append("jobs", "bad")
    one = member()
    assert finish(one, REJECT) == [(0, 1)]
    broker.append("jobs", "good")
    assert finish(one) == [(1, 1)]


def test_acknowledgements_that_went_with_a_fetch_are_reported_to_the_callback(
    broker: Broker, member: MakeMember
) -> None:
    broker.append_many("jobs", ["a", "b"])
    one = member()
    heard: list[Any] = []
    one.set_acknowledgement_commit_callback(lambda offsets, error: heard.append((offsets, error)))
    for row in records(one):
        one.acknowledge(row)
    broker.append("jobs", "c")
    assert finish(one) == [(2, 1)]
    assert heard == [({JOBS: {0, 1}}, None), ({JOBS: {2}}, None)]


def test_a_copy_of_a_record_is_acknowledged_by_its_place(broker: Broker, member: MakeMember) -> None:
    broker.append_many("jobs", ["a", "b"])
    one = member()
    first, _ = records(one)
    one.acknowledge(first._replace(value=b"another"))
    one.acknowledge_offset(JOBS, 1, ACCEPT)
    assert one.commit() == {JOBS: None}
    assert first._replace(value=b"other").delivery_count == 1


@pytest.mark.short_locks
def test_after_the_lock_has_run_out_the_answer_says_so_and_others_have_the_record(
    broker: Broker, member: MakeMember
) -> None:
    broker.append("jobs", "slow")
    one, two = member(), member()
    (record,) = records(one)
    broker.expire_share_locks(GROUP, "jobs")
    assert taken(two) == [(0, 2)]
    one.acknowledge(record)
    (error,) = one.commit().values()
    assert isinstance(error, InvalidRecordStateError)
    two.acknowledge_offset(JOBS, 0)
    assert two.commit() == {JOBS: None}
    assert broker.share_records(GROUP, "jobs") == {}


def test_only_the_partition_whose_lock_has_run_out_has_an_error(broker: Broker, member: MakeMember) -> None:
    for number in (0, 1):
        broker.append("more", "x", partition=number)
    one = member("more")
    found: list[Any] = []
    while len(found) < 2:
        for row in records(one):
            one.acknowledge(row, RENEW)  # so that another poll may come
            found.append(row)
    assert taken(one, 700) == []
    wait_for_answers(one)  # a fetch that is under way would acquire the record again
    broker.expire_share_locks(GROUP, "more", 0)
    for row in found:
        one.acknowledge(row)
    results = one.commit()
    assert {place.partition: type(error) for place, error in results.items()} == {
        0: InvalidRecordStateError,
        1: type(None),
    }


def test_records_whose_locks_run_out_before_they_are_returned_are_named(
    broker: Broker, member: MakeMember, caplog: pytest.LogCaptureFixture
) -> None:
    for number in (0, 1):
        broker.append_many("more", ["a", "b"], partition=number)
    one = member("more", max_poll_records=1)
    found = records(one)
    late = 1 - found[0].partition
    arrivals = getattr(one, "client", one)._core.fetcher.arrivals
    eventually(lambda: len(arrivals) == 1)  # of the other broker
    arrivals[0].lock_deadline = 0.0
    broker.expire_share_locks(GROUP, "more", late)
    for row in found:
        one.acknowledge(row)
    assert [(row.partition, row.delivery_count) for row in records(one)] == [(late, 2), (late, 2)]
    (shown,) = [record.getMessage() for record in caplog.records if "locks ran out" in record.getMessage()]
    assert shown.startswith(f"Group {GROUP}: 2 records of more-{late} were not returned before")


def test_a_record_that_one_releases_reaches_another_that_waits(broker: Broker, member: MakeMember) -> None:
    broker.append("jobs", "a")
    one, two = member(), member()
    (record,) = records(one)
    got: list[Any] = []
    waiting = threading.Thread(target=lambda: got.extend(taken(two)))
    waiting.start()
    one.acknowledge(record, RELEASE)
    one.commit()
    waiting.join(30)
    assert got == [(0, 2)]


def test_record_limit_is_kept(broker: Broker, member: MakeMember) -> None:
    broker.append_many("jobs", [b"x"] * 20)
    one, two = member(max_poll_records=3, share_acquire_mode="record_limit"), member(max_poll_records=3)
    assert [offset for offset, _ in taken(one)] == [0, 1, 2]
    assert [offset for offset, _ in taken(two)] == list(range(3, 20)), "whole batches"


def test_record_limit_asks_one_broker_after_another(broker: Broker, member: MakeMember) -> None:
    broker.create_topic("wide", 8)
    for number in range(8):
        broker.append_many("wide", [b"x"] * 3, partition=number)
    one = member("wide", max_poll_records=4, share_acquire_mode="record_limit")
    count = 0
    while count < 24:
        found = finish(one)
        assert 0 < len(found) <= 4
        count += len(found)
        states = [state.state for number in range(8) for state in broker.share_records(GROUP, "wide", number).values()]
        assert "acquired" not in states, "no more is acquired than a poll returns"


# Renewals…


@pytest.mark.short_locks
def test_a_renewal_keeps_the_record_and_costs_no_other_acknowledgement(broker: Broker, member: MakeMember) -> None:
    broker.append_many("jobs", ["long", "short"])
    one, two = member(), member()
    long, short = records(one)
    for _ in range(3):
        broker.clock.advance(20)
        one.acknowledge(long, RENEW)
        if short is not None:
            one.acknowledge(short)
            short = None
        assert one.commit() == {JOBS: None}
    broker.append("jobs", "next")
    assert finish(one) == [(2, 1)], "a renewed record does not hold up a poll"
    assert taken(two, 300) == []
    one.acknowledge(long, RELEASE)
    assert one.commit() == {JOBS: None}
    assert finish(two) == [(0, 2)], "a renewal is no delivery"
    assert broker.share_records(GROUP, "jobs") == {}


def test_a_poll_sends_renewals_in_a_separate_request(broker: Broker, member: MakeMember) -> None:
    broker.append("jobs", "a")
    one = member()
    heard: list[Any] = []
    one.set_acknowledgement_commit_callback(lambda offsets, error: heard.append((offsets, error)))
    (record,) = records(one)
    one.acknowledge(record, RENEW)
    assert taken(one, 300) == []
    assert heard == [({JOBS: {0}}, None)]
    one.acknowledge(record)
    assert one.commit() == {JOBS: None}


@pytest.mark.short_locks
def test_a_renewal_that_comes_too_late_is_refused(broker: Broker, member: MakeMember) -> None:
    broker.append("jobs", "a")
    one = member()
    (record,) = records(one)
    broker.expire_share_locks(GROUP, "jobs")
    one.acknowledge(record, RENEW)
    assert isinstance(one.commit()[JOBS], InvalidRecordStateError)


# Records that cannot be returned…


def number(data: bytes) -> int:
    return int(data)


def test_a_record_that_a_deserializer_refuses_is_released_and_no_other_is_lost(
    broker: Broker, member: MakeMember
) -> None:
    broker.append_many("jobs", ["1", "x", "3"])
    one = member(value_deserializer=number, share_acknowledgement_mode="implicit")
    assert [row.value for row in records(one)] == [1]
    with pytest.raises(RecordDeserializationError) as caught:
        one.poll(30_000)
    assert (caught.value.topic_partition, caught.value.offset) == (JOBS, 1)
    assert [row.value for row in records(one)] == [3]
    one.commit()
    with pytest.raises(RecordDeserializationError):
        one.poll(30_000)
    one.acknowledge_offset(JOBS, 1, REJECT)
    assert one.commit() == {JOBS: None}
    assert broker.share_records(GROUP, "jobs") == {}


def test_a_damaged_batch_is_rejected_and_its_error_comes_once(broker: Broker, member: MakeMember) -> None:
    broker.append_many("jobs", ["a", "b"])
    broker.append("jobs", "c")

    def damage(exchange: Any) -> Any:
        reply = exchange.reply
        for topic in reply.responses:
            for data in topic.partitions:
                if data.records:
                    records = bytearray(data.records)
                    records[70] ^= 0xFF
                    data.records = bytes(records)
                    return reply
        return None

    from kafka.errors import CorruptRecordError

    with broker.intercept("ShareFetch", damage):
        one = member()
        with pytest.raises(CorruptRecordError, match="jobs"):
            one.poll(30_000)
    assert taken(one) == [(2, 1)]
    one.acknowledge_offset(JOBS, 2)
    one.commit()
    assert broker.share_records(GROUP, "jobs") == {}


def test_records_before_ones_that_cannot_be_read_here_are_returned(broker: Broker, member: MakeMember) -> None:
    broker.append("jobs", "a")
    beside = next(number for number in (0, 1) if broker.leader("more", number) == broker.leader("jobs", 0))
    broker.append("more", "unreadable", partition=beside)

    def change_codec(exchange: Any) -> Any:
        for topic in exchange.reply.responses:
            for data in topic.partitions:
                records = bytearray(data.records or b"")
                if b"unreadable" in records:
                    records[22] |= 7  # a codec that nobody knows
                    data.records = bytes(records)
        exchange.reply.responses.sort(key=lambda topic: len(topic.partitions[0].records or b""))
        return exchange.reply

    with broker.intercept("ShareFetch", change_codec):
        one = member("jobs", "more", share_acknowledgement_mode="implicit", check_crcs=False)
        assert [row.value for row in records(one)] == [b"a"]
        with pytest.raises(UnsupportedCodecError):
            one.poll(30_000)
    eventually(lambda: broker.share_records(GROUP, "jobs") == {})


def test_control_records_are_acknowledged_as_gaps(broker: Broker, member: MakeMember) -> None:
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="t") as producer:
        producer.init_transactions()
        for _ in range(2):
            producer.begin_transaction()
            producer.send("jobs", b"x")
            producer.commit_transaction()
    one = member()
    got: list[int] = []
    while len(got) < 2:
        got += [offset for offset, _ in finish(one)]
    assert got == [0, 2]
    broker.append("jobs", "last")
    assert finish(one) == [(4, 1)]
    eventually(lambda: broker.share_records(GROUP, "jobs") == {})


# Callbacks, wakeup, threads…


def test_the_callback_gets_each_outcome_and_may_not_call_the_consumer(broker: Broker, member: MakeMember) -> None:
    broker.append_many("jobs", ["a", "b"])
    one = member()
    heard: list[Any] = []
    inner: list[BaseException] = []

    def told(offsets: Any, error: Any) -> None:
        heard.append((offsets, error))
        try:
            (one.client if hasattr(one, "client") else one).commit_async()
        except IllegalStateError as refused:
            inner.append(refused)
        raise RuntimeError("it is logged")

    one.set_acknowledgement_commit_callback(told)
    for row in records(one):
        one.acknowledge(row)
    one.commit_async()
    eventually(lambda: broker.share_records(GROUP, "jobs") == {})
    assert taken(one, 100) == []
    assert heard == [({JOBS: {0, 1}}, None)]
    assert len(inner) == 1


def test_another_thread_acknowledges_while_the_callback_runs(broker: Broker, member: MakeMember) -> None:
    broker.append_many("jobs", ["a", "b"])
    one = member()
    client = getattr(one, "client", one)
    first, second = records(one)
    refused: list[BaseException] = []

    def acknowledge() -> None:
        try:
            client.acknowledge(second)
        except IllegalStateError as error:
            refused.append(error)

    def told(_offsets: Any, _error: Any) -> None:
        worker = threading.Thread(target=acknowledge)
        worker.start()
        worker.join()

    one.set_acknowledgement_commit_callback(told)
    one.acknowledge(first)
    assert one.commit() == {JOBS: None}
    assert refused == []
    one.set_acknowledgement_commit_callback(None)
    assert one.commit() == {JOBS: None}
    assert broker.share_records(GROUP, "jobs") == {}


def test_wakeup_ends_a_poll_and_loses_nothing(broker: Broker, member: MakeMember) -> None:
    one = member()
    timer = threading.Timer(0.3, one.wakeup)
    timer.start()
    with pytest.raises(WakeupError):
        one.poll(30_000)
    timer.join()
    broker.append("jobs", "a")
    (record,) = records(one)
    one.acknowledge(record)
    one.wakeup()
    assert one.commit() == {JOBS: None}, "it ends polls only"
    with pytest.raises(WakeupError):
        one.poll(1000)
    assert taken(one, 50) == []


@pytest.mark.one_face
def test_another_thread_may_acknowledge_and_nothing_else(broker: Broker, member: MakeMember) -> None:
    broker.append("jobs", "a")
    one = member()
    (record,) = records(one)
    outcome: list[Any] = []
    one.acknowledge(record, RENEW)
    polling = threading.Thread(target=lambda: outcome.append(taken(one, 2000)))
    polling.start()
    eventually(lambda: bool(one._busy_thread))
    one.acknowledge(record)
    with pytest.raises(IllegalStateError, match="one thread at a time"):
        one.commit()
    polling.join()
    assert outcome == [[]]
    assert one.commit() == {JOBS: None}


# The worker loop…


def test_a_block_accepts_releases_and_rejects(broker: Broker, member: MakeMember) -> None:
    broker.append_many("jobs", ["good", "bad", "good"])
    one = member()
    seen = []
    for record in one:
        with one.processing(record, max_deliveries=3):
            seen.append((record.offset, record.delivery_count))
            if record.value == b"bad":
                raise ValueError(record.value)
        if len(seen) == 5:
            break
    assert seen == [(0, 1), (1, 1), (2, 1), (1, 2), (1, 3)]
    one.close()
    assert broker.share_records(GROUP, "jobs") == {}


def test_a_block_that_is_interrupted_releases_and_one_that_acknowledged_is_left_alone(
    broker: Broker, member: MakeMember
) -> None:
    broker.append_many("jobs", ["a", "b"])
    one = member()
    first, second = records(one)
    with pytest.raises(KeyboardInterrupt), one.processing(first):
        raise KeyboardInterrupt
    with one.processing(second):
        one.acknowledge(second, REJECT)
    one.commit()
    assert finish(one) == [(0, 2)]
    assert broker.share_records(GROUP, "jobs") == {}


def test_an_iteration_sends_acknowledgements_while_it_has_records(
    broker: Broker, member: MakeMember, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kafka.share.core._SEND_EVERY", 0.0)
    broker.append_many("jobs", [b"x"] * 4)
    one = member()
    for record in one:
        one.acknowledge(record)
        if record.offset == 2:
            break
    eventually(lambda: sorted(broker.share_records(GROUP, "jobs")) == [2, 3])


def test_an_iteration_asks_for_acknowledgements_before_it_fetches(broker: Broker, member: MakeMember) -> None:
    broker.append_many("jobs", ["a", "b"])
    one = member()
    iterator = iter(one)
    assert [next(iterator).offset, next(iterator).offset] == [0, 1]
    with pytest.raises(IllegalStateError, match="2 records are not acknowledged"):
        next(iterator)


# Members that come and go…


def test_close_commits_and_releases_at_once(broker: Broker, member: MakeMember) -> None:
    broker.append_many("jobs", ["a", "b", "c"])
    one, two = member(), member()
    first, _, third = records(one)
    one.acknowledge(first)
    one.acknowledge(third, REJECT)
    one.close()
    assert finish(two) == [(1, 2)]
    assert broker.share_records(GROUP, "jobs") == {}
    one.close()
    with pytest.raises(ClientClosedError):
        one.poll()


def crash(member: Any) -> None:
    """End a member without a word to the cluster."""
    if hasattr(member, "crash"):
        member.crash()
        return
    core = member._core
    core.closed = True
    core.loop.call_soon(core.client.shut_down)
    complete(core.application.close(1.0))


def test_the_records_of_a_member_that_died_are_free_at_once(broker: Broker, member: MakeMember) -> None:
    broker.append("jobs", "a")
    one, two = member(), member()
    assert taken(one) == [(0, 1)]
    crash(one)
    assert taken(two) == [(0, 2)]


def test_a_member_that_the_coordinator_removed_joins_again_and_keeps_its_records(
    broker: Broker, member: MakeMember
) -> None:
    configure(broker, share_heartbeat_interval_ms="5000")
    broker.append("jobs", "a")
    one = member()
    (record,) = records(one)
    joins = len([request for request in requests(broker, "ShareGroupHeartbeat") if request.member_epoch == 0])
    broker.expire_member(GROUP)
    one.subscribe(["jobs", "more"])  # the next heartbeat is due at once
    one.acknowledge(record)
    broker.append("jobs", "b")
    assert finish(one) == [(1, 1)]
    eventually(
        lambda: (
            len([request for request in requests(broker, "ShareGroupHeartbeat") if request.member_epoch == 0]) > joins
        )
    )
    assert broker.share_records(GROUP, "jobs") == {}


def test_records_of_a_subscription_that_has_ended_can_be_acknowledged(broker: Broker, member: MakeMember) -> None:
    broker.append("jobs", "a")
    one = member()
    (record,) = records(one)
    one.unsubscribe()
    assert one.subscription() == set()
    with pytest.raises(IllegalStateError, match="1 records are not acknowledged"):
        one.poll()
    one.acknowledge(record)
    assert one.commit() == {JOBS: None}
    with pytest.raises(IllegalStateError, match=r"call subscribe\(\) first"):
        one.poll()
    one.subscribe(["more"])
    broker.append("more", "b", partition=1)
    assert finish(one) == [(0, 1)]


# Brokers and sessions…


def test_acknowledgements_for_an_old_leader_fail_and_the_new_one_delivers_again(
    broker: Broker, member: MakeMember
) -> None:
    broker.append("jobs", "a")
    one = member()
    (record,) = records(one)
    broker.move_leader(JOBS, 3 - broker.leader("jobs"))
    one.acknowledge(record)
    (error,) = one.commit().values()
    assert error is not None
    got = finish(one)
    assert [offset for offset, _ in got] == [0]
    assert broker.share_records(GROUP, "jobs") == {}


@pytest.mark.parametrize("why", ["its connection has ended", "its leader has moved"])
def test_a_record_that_others_may_have_before_it_was_returned_comes_again(
    broker: Broker, member: MakeMember, why: str
) -> None:
    for number in (0, 1):
        broker.append("more", "a", partition=number)
    one = member("more", max_poll_records=1, metadata_max_age_ms=100)
    (record,) = records(one)
    lost = 1 - record.partition
    fetcher = getattr(one, "client", one)._core.fetcher
    eventually(lambda: len(fetcher.arrivals) == 1)  # of the other broker
    node, (arrival,) = broker.leader("more", lost), fetcher.arrivals
    if why == "its connection has ended":
        broker.drop_connections(node)
    else:
        broker.move_leader(("more", lost), 3 - node)
    eventually(lambda: arrival.session.ended or fetcher.has_lost(arrival))
    one.acknowledge(record)
    # A new leader has no count.
    assert finish(one) == [(0, 2 if why == "its connection has ended" else 1)]
    assert broker.share_records(GROUP, "more", lost) == {}


def test_records_that_come_when_a_new_leader_refuses_acknowledgements_are_released(
    broker: Broker, member: MakeMember
) -> None:
    """A broker may hold the response until its leadership has gone and come back: others may have the records."""
    broker.append("jobs", "a")
    one = member()
    (record,) = records(one)
    broker.append("jobs", "b")

    def refuse(exchange: Any) -> Any:
        for topic in exchange.reply.responses:
            for data in topic.partitions:
                data.acknowledge_error_code = 6  # NOT_LEADER_OR_FOLLOWER
        return exchange.reply

    one.acknowledge(record)
    broker.intercept("ShareFetch", refuse, times=1)
    assert finish(one) == [(1, 2)]


@pytest.mark.parametrize("error", ["SHARE_SESSION_NOT_FOUND", "INVALID_SHARE_SESSION_EPOCH"])
def test_after_a_session_has_ended_acknowledgements_fail_and_fetches_open_another(
    broker: Broker, member: MakeMember, error: str
) -> None:
    broker.append("jobs", "a")
    one = member()
    (record,) = records(one)
    heard: list[Any] = []
    one.set_acknowledgement_commit_callback(lambda offsets, error: heard.append((offsets, error)))
    one.acknowledge(record)
    broker.fail("ShareFetch", error)
    broker.append("jobs", "b")
    assert finish(one) == [(1, 1)]
    assert heard[0][0] == {JOBS: {0}}
    assert heard[0][1].message == error
    assert [request.share_session_epoch for request in requests(broker, "ShareFetch")][:3] == [0, 1, 0]


def test_a_full_broker_is_asked_again(broker: Broker, member: MakeMember) -> None:
    broker.append("jobs", "a")
    broker.fail("ShareFetch", "SHARE_SESSION_LIMIT_REACHED", times=2)
    assert finish(member()) == [(0, 1)]


def test_a_session_with_an_unknown_error_is_opened_again_and_one_that_keeps_failing_raises(
    broker: Broker, member: MakeMember
) -> None:
    broker.append("jobs", "a")
    broker.fail("ShareFetch", "UNKNOWN_SERVER_ERROR", times=3)
    one = member()
    assert finish(one) == [(0, 1)]
    with broker.fail("ShareFetch", "UNKNOWN_SERVER_ERROR", times=50), pytest.raises(UnknownError):
        one.poll(30_000)
    broker.append("jobs", "b")
    assert finish(one) == [(1, 1)]


def test_a_lost_connection_fails_what_was_under_way_and_the_records_come_again(
    broker: Broker, member: MakeMember
) -> None:
    broker.append("jobs", "a")
    one = member()
    (record,) = records(one)
    one.acknowledge(record)
    broker.drop_connections(api="ShareAcknowledge")
    (error,) = one.commit().values()
    assert isinstance(error, (KafkaConnectionError, ShareSessionNotFoundError))
    assert finish(one) == [(0, 2)]


def test_an_acknowledgement_is_sent_again_after_an_error_that_passes(broker: Broker, member: MakeMember) -> None:
    broker.append("jobs", "a")
    one = member()
    (record,) = records(one)
    one.acknowledge(record)

    def once(exchange: Any) -> Any:
        for topic in exchange.reply.responses:
            for data in topic.partitions:
                data.error_code = 15  # COORDINATOR_NOT_AVAILABLE: of the state that the group keeps
        return exchange.reply

    broker.intercept("ShareAcknowledge", once, times=1)
    sent = len(requests(broker, "ShareAcknowledge"))
    one.commit()
    assert len(requests(broker, "ShareAcknowledge")) == sent + 2


def test_close_sends_acknowledgements_that_wait_to_be_sent_again(broker: Broker, member: MakeMember) -> None:
    broker.append("jobs", "a")
    one = member(retry_backoff_ms=20_000, retry_backoff_max_ms=20_000)
    heard: list[Any] = []
    one.set_acknowledgement_commit_callback(lambda offsets, _error: heard.append(offsets))
    (record,) = records(one)
    one.acknowledge(record)

    def refuse(exchange: Any) -> Any:
        exchange.reply.responses[0].partitions[0].error_code = 15  # COORDINATOR_NOT_AVAILABLE
        return exchange.reply

    broker.intercept("ShareAcknowledge", refuse, times=1)
    sent = len(requests(broker, "ShareAcknowledge"))
    one.commit_async()
    eventually(lambda: len(requests(broker, "ShareAcknowledge")) > sent)
    wait_for_answers(one)
    one.close()
    closing = requests(broker, "ShareAcknowledge")[-1]
    assert closing.share_session_epoch == -1
    assert [topic.partitions[0].acknowledgement_batches[0].first_offset for topic in closing.topics] == [0]
    assert heard == [{JOBS: {0}}]


def test_a_topic_that_is_created_again_is_read_from_its_new_beginning(broker: Broker, member: MakeMember) -> None:
    broker.append("jobs", "old")
    one = member(metadata_max_age_ms=200)
    (record,) = records(one)
    broker.delete_topic("jobs")
    one.acknowledge(record)
    (error,) = one.commit().values()
    assert error is not None
    broker.create_topic("jobs", 1)
    broker.append("jobs", "new")
    (record,) = records(one, 60_000)
    assert record.value == b"new"


def test_a_partition_that_cannot_be_read_raises_and_a_grant_ends_it(broker: Broker, member: MakeMember) -> None:
    from kafka.errors import GroupAuthorizationFailedError, TopicAuthorizationFailedError

    broker.append("jobs", "a")
    one = member()
    for refused in (TopicAuthorizationFailedError, GroupAuthorizationFailedError):
        with broker.fail("ShareFetch", refused), pytest.raises(refused):
            one.poll(30_000)
    assert finish(one) == [(0, 1)]


def test_the_errors_of_the_group_are_raised_by_poll(broker: Broker, member: MakeMember) -> None:
    from kafka.errors import GroupIdNotFoundError, GroupMaxSizeReachedError

    broker.append("jobs", "a")
    one = member()
    for refused in (GroupIdNotFoundError, GroupMaxSizeReachedError):
        with broker.fail("ShareGroupHeartbeat", refused), pytest.raises(refused):
            one.poll(30_000)
    assert finish(one) == [(0, 1)]


@pytest.mark.parametrize("version", ["2.8", "4.0"])
def test_older_brokers_are_refused_with_what_is_needed(version: str, member: MakeMember) -> None:
    with Broker(topics=["jobs"], as_version=version) as old:
        one = member(bootstrap_servers=old.bootstrap_servers)
        with pytest.raises(UnsupportedVersionError, match=r"Kafka 4\.2.*share\.version=1"):
            one.poll(30_000)
        one.close()


def test_kafka_4_1_serves_all_but_renewals_and_record_limits(broker: Broker, member: MakeMember) -> None:
    broker.append("jobs", "a")
    for api in ("ShareFetch", "ShareAcknowledge"):
        broker.advertise(api, 1, 1)
    limited = member(share_acquire_mode="record_limit")
    with pytest.raises(UnsupportedVersionError, match="record_limit"):
        limited.poll(30_000)
    one = member()
    (record,) = records(one)
    with pytest.raises(UnsupportedVersionError, match="RENEW"):
        one.acknowledge(record, RENEW)
    one.acknowledge(record)
    assert one.commit() == {JOBS: None}


def test_polls_that_do_not_wait_get_records_too(broker: Broker, member: MakeMember) -> None:
    one = member()
    broker.append("jobs", "a")
    found: list[Any] = []

    def look() -> bool:
        found.extend(taken(one, 0))
        return bool(found)

    eventually(look)
    assert found == [(0, 1)]


def test_nothing_is_acquired_while_no_call_waits(broker: Broker, member: MakeMember) -> None:
    one, two = member(), member()
    broker.append("jobs", "a")
    assert finish(one) == [(0, 1)]
    assert taken(one, 300) == []
    wait_for_answers(one)
    broker.append("jobs", "b")
    assert finish(two) == [(1, 1)], "the first one would have it"


def test_an_idle_member_asks_once_per_wait(broker: Broker, member: MakeMember) -> None:
    one = member(fetch_max_wait_ms=400)
    assert taken(one, 100) == []
    eventually(lambda: taken(one, 300) == [] and bool(requests(broker, "ShareFetch")))
    broker.forget_requests()
    assert taken(one, 1000) == []
    assert len(requests(broker, "ShareFetch")) < 8
    broker.forget_requests()
    time.sleep(0.5)
    assert not requests(broker, "ShareFetch"), "nothing is acquired while no poll waits"


def test_a_record_costs_one_fetch_one_acknowledgement_and_no_other_thread(broker: Broker, member: MakeMember) -> None:
    """What waits between send() and the confirmation is then the broker alone."""
    # In the 0.1 seconds before a heartbeat is due a thread that gives the loop back tells the driver each time: all of
    # the records below may be taken in that time.
    configure(broker, share_heartbeat_interval_ms="15000")
    one = member()
    broker.append("jobs", "first")
    assert finish(one) == [(0, 1)]
    loop = getattr(one, "client", one)._core.loop
    is_asyncio = hasattr(one, "client")
    notify, notified = loop.notify, []
    loop.notify = lambda: (notified.append(1), notify())
    broker.forget_requests()
    turns = loop.turns
    for number in range(1, 21):
        broker.append("jobs", "next")
        assert finish(one) == [(number, 1)]
    turns, loop.notify = loop.turns - turns, notify
    seen = [seen.name for seen in broker.requests if seen.name in {"ShareFetch", "ShareAcknowledge"}]
    assert seen == ["ShareFetch", "ShareAcknowledge"] * 20
    # Two for each request: it goes out, the answer comes (below threads it is one for the driver). Then there are
    # heartbeats. Asyncio is told once for each request, and a thread has nobody to tell.
    assert turns < 100
    assert len(notified) < (50 if is_asyncio else 10)


# Construction…


def test_a_share_consumer_refuses_invalid_calls(broker: Broker, member: MakeMember) -> None:
    for group_id in (None, ""):
        with pytest.raises(KafkaConfigurationError, match="needs a group_id"):
            member(group_id=group_id)
    with pytest.raises(KafkaConfigurationError, match=r"share\.auto\.offset\.reset"):
        member(auto_offset_reset="earliest")
    with pytest.raises(KafkaConfigurationError, match="enable_auto_commit"):
        member(enable_auto_commit=False)
    with pytest.raises(IllegalStateError, match=r"call subscribe\(\) first"):
        member_without_topics(broker, member)


def member_without_topics(broker: Broker, member: MakeMember) -> None:
    one = member()
    one.unsubscribe()
    one.poll()


def test_metrics_of_a_member(broker: Broker, member: MakeMember) -> None:
    broker.append("jobs", "a")
    one = member()
    assert one.acquisition_lock_timeout_ms() is None
    assert finish(one) == [(0, 1)]
    assert one.acquisition_lock_timeout_ms() == 30_000
    health = one.health()
    assert (health["ok"], health["partitions"]["jobs-0"]["problem"]) == (True, None)
    assert health["group"]["state"] == "in the group"
    metrics = one.metrics()["consumer-share-fetch-manager-metrics"]
    assert (metrics["records-consumed-total"], metrics["acknowledgements-send-total"]) == (1, 1)
    assert one.metrics()["consumer-share-coordinator-metrics"]["assigned-partitions"] == 1
    one.close()
    assert [request.member_epoch for request in requests(broker, "ShareGroupHeartbeat")].count(-1) == 1
