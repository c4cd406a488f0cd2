"""A signal handler, or a finalizer, that uses the producer in the midst of its own `send()`."""

from __future__ import annotations

import pytest

from kafka.errors import IllegalStateError
from kafka.record.batch_builder import BatchBuilder

from .conftest import WAIT


@pytest.fixture
def inside(monkeypatch):
    """Calls what is put into it while the next record is added to a batch, with the lock held."""
    wanted = []
    append = BatchBuilder.append

    def interrupted(self, *record):
        if wanted:
            wanted.pop()()
        return append(self, *record)

    monkeypatch.setattr(BatchBuilder, "append", interrupted)
    return wanted


@pytest.mark.timeout(60)
@pytest.mark.parametrize("opened", [True, False])
@pytest.mark.parametrize("key", [None, b"key"])
def test_a_finalizer_that_sends_within_send_is_served(make, broker, topic, inside, opened, key):
    producer = make(linger_ms=10_000)
    producer.partitions_for(topic)
    sent = [producer.send(topic, b"0", key)] if opened else []
    inside.append(lambda: sent.append(producer.send(topic, b"freed", key)))
    sent += [producer.send(topic, b"1", key), producer.send(topic, b"2", key)]
    producer.flush(WAIT)
    rows = {record.offset: record.value for record in broker.records(topic)}
    assert sorted(rows.values()) == sorted([b"0"] * opened + [b"1", b"2", b"freed"])
    assert rows[sent[-1].get(0).offset] == b"2"
    freed = sent[-3] if opened else sent[0]
    assert rows[freed.get(0).offset] == b"freed"
    assert freed.get(0).offset < sent[-1].get(0).offset
    assert producer.health()["buffer_available"] == producer.config["buffer_memory"]


@pytest.mark.timeout(60)
def test_a_finalizer_that_sends_in_the_midst_of_the_network_threads_work_is_served(make, broker, topic, monkeypatch):
    producer = make()
    producer.send(topic, b"0").get(WAIT)
    accumulator = producer._accumulator
    sent = []
    give = accumulator.memory.release.__func__

    def interrupted(self, holder, left=0):
        if not sent:
            assert accumulator.inside()
            sent.append(producer.send(topic, b"freed"))
        return give(self, holder, left)

    monkeypatch.setattr(type(accumulator.memory), "release", interrupted)
    producer.send(topic, b"1").get(WAIT)
    assert sent[0].get(WAIT).offset == 2
    assert [record.value for record in broker.records(topic)] == [b"0", b"1", b"freed"]


@pytest.mark.timeout(60)
def test_what_waits_is_refused_within_send_rather_than_waiting_for_ever(make, broker, topic, inside):
    producer = make(linger_ms=10_000)
    before = producer.send(topic, b"0")
    refused = []

    def handler():
        for call in (producer.flush, producer.close, producer.purge, producer.health, before.get):
            with pytest.raises(IllegalStateError, match=r"was called by a signal handler or a finalizer") as raised:
                call()
            refused.append(str(raised.value).split()[0])
        with pytest.raises(IllegalStateError, match="finding topic 'another'"):
            producer.send("another", b"x")

    inside.append(handler)
    after = producer.send(topic, b"1")
    assert refused == ["flush()", "close()", "purge()", "health()", "get()"]
    producer.flush(WAIT)
    assert [before.get(0).offset, after.get(0).offset] == [0, 1]
