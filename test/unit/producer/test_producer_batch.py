"""Batches and the futures of their records, without a loop or a broker."""

from __future__ import annotations

import copy
import pickle
import sys
import threading
from collections.abc import Sequence
from types import SimpleNamespace

import pytest

from kafka.errors import TopicAuthorizationFailedError
from kafka.producer.future import FutureRecordMetadata, SentRecords
from kafka.producer.producer_batch import Delivered, Divided, ProducerBatch
from kafka.record.batch_builder import BatchBuilder
from kafka.structs import TopicPartition


def make_batch(count=3):
    partition = SimpleNamespace(tp=TopicPartition("t", 1))
    batch = ProducerBatch(partition, BatchBuilder(10_000), 0.0, 100)
    return batch, [FutureRecordMetadata(batch, batch.append(7, None, b"v"), 7, -1, 1) for _ in range(count)]


def test_offsets_count_from_the_batchs_first():
    batch, futures = make_batch()
    assert not any(future.is_done or future.done() for future in futures)
    assert futures[0].value is futures[0].exception is None
    batch.settle(Delivered(40, -1))
    assert [future.get(0).offset for future in futures] == [40, 41, 42]
    assert batch.is_done


def test_the_brokers_timestamp_goes_before_the_records_own():
    batch, (future,) = make_batch(1)
    batch.settle(Delivered(0, 99))
    assert future.value.timestamp == 99


def test_an_unknown_offset_is_unknown_for_every_record():
    batch, futures = make_batch()
    batch.settle(Delivered(-1, -1))
    assert {future.get(0).offset for future in futures} == {-1}


def test_an_error_is_everybodys():
    batch, futures = make_batch()
    error = TopicAuthorizationFailedError("no")
    batch.settle(error)
    for future in futures:
        assert future.failed()
        assert future.exception is error
        assert not future.retriable()
        with pytest.raises(TopicAuthorizationFailedError):
            future.get(0)


def test_a_batch_is_settled_once():
    batch, _ = make_batch()
    batch.settle(Delivered(0, -1))
    with pytest.raises(AssertionError, match="settled twice"):
        batch.settle(Delivered(1, -1))


def test_futures_find_their_record_in_the_parts_of_a_divided_batch():
    whole, futures = make_batch(5)
    (left, _), (right, _) = make_batch(2), make_batch(3)
    seen = []
    for number, future in enumerate(futures):
        future.add_callback(lambda metadata, number=number: seen.append((number, metadata.offset)))
        future.add_errback(lambda error, number=number: seen.append((number, error)))
    whole.settle(Divided((left, right)))
    assert not futures[0].is_done
    assert not whole.is_done
    left.settle(Delivered(10, -1))
    assert futures[1].get(0).offset == 11
    assert seen == [(0, 10), (1, 11)]
    error = TopicAuthorizationFailedError("no")
    right.settle(error)
    assert whole.is_done
    assert seen[2:] == [(2, error), (3, error), (4, error)]
    late = []
    futures[0].add_both(late.append)
    assert late[0].offset == 10


def test_futures_are_equal_if_they_are_of_one_record():
    _, futures = make_batch(2)
    assert futures[0] == copy.copy(futures[0])
    assert len({*futures, *futures}) == 2
    assert futures[0] != (futures[0]._batch, 0)
    assert "t-1 #0 pending" in repr(futures[0])


def test_a_future_is_not_a_tuple():
    _, (future,) = make_batch(1)
    assert "%s" % future == f"{future}" == repr(future)  # noqa: UP031 - as programs that log do
    assert not isinstance(future, Sequence)
    with pytest.raises(TypeError, match="no len"):
        len(future)
    with pytest.raises(TypeError, match="not iterable"):
        iter(future)


def test_a_copy_of_a_future_is_the_future_and_it_cannot_be_pickled():
    batch, (future,) = make_batch(1)
    for way in (copy.copy, copy.deepcopy):
        assert way(future) is future
    assert copy.deepcopy({"sent": [future]})["sent"][0] is future
    with pytest.raises(TypeError, match=r"cannot be pickled; the metadata that its get\(\) returns can"):
        pickle.dumps(future)
    batch.settle(Delivered(3, -1))
    assert pickle.loads(pickle.dumps(future.get(0))) == future.get(0)


def test_sent_records_are_a_sequence():
    first, _ = make_batch(3)
    second, _ = make_batch(2)
    sent = SentRecords(lambda at: (7, -1, at))
    sent.add(first, 1, 2)
    sent.add(second, 0, 1)
    sent.add(second, 1, 1)
    assert len(sent) == 4
    assert len(sent._spans) == 2
    places = [(first, 1, 0), (first, 2, 1), (second, 0, 2), (second, 1, 3)]
    assert [(future._batch, future._index, future._value_size) for future in sent] == places
    assert [(sent[at]._batch, sent[at]._index, sent[at]._value_size) for at in range(4)] == places
    for outside in (4, -5):
        with pytest.raises(IndexError, match=f"there is no record {outside} among 4"):
            sent[outside]
    assert sent[-1] == sent[3]
    assert sent[1:3] == [sent[1], sent[2]]
    assert repr(sent) == "<SentRecords 0 of 4 done>"


def test_a_callback_may_add_another():
    batch, (future,) = make_batch(1)
    seen = []
    future.add_callback(lambda metadata: future.add_callback(lambda again: seen.append(again.offset)))
    batch.settle(Delivered(3, -1))
    assert seen == [3]


def test_an_interrupted_callback_costs_the_others_nothing():
    batch, (future,) = make_batch(1)
    seen = []

    def interrupted(_metadata):
        raise KeyboardInterrupt

    future.add_callback(interrupted)
    future.add_callback(seen.append)
    with pytest.raises(KeyboardInterrupt):
        batch.settle(Delivered(3, -1))
    future.add_callback(seen.append)
    assert [metadata.offset for metadata in seen] == [3, 3]


def test_each_callback_runs_once_while_threads_add_and_one_settles():
    for _ in range(20):
        batch, futures = make_batch(50)
        ran = []
        begin = threading.Barrier(4)

        def add(number, futures=futures, ran=ran, begin=begin):
            begin.wait(10)
            for future in futures:
                future.add_callback(lambda metadata, number=number: ran.append((number, metadata.offset)))

        threads = [threading.Thread(target=add, args=(number,)) for number in range(3)]
        for thread in threads:
            thread.start()
        begin.wait(10)
        batch.settle(Delivered(0, -1))
        for thread in threads:
            thread.join(60)
        assert sorted(ran) == [(number, offset) for number in range(3) for offset in range(50)]


def test_sent_records_of_many_batches_are_found_without_a_search_of_all():
    sent = SentRecords(lambda at: (7, -1, 1))
    batches = [make_batch(1)[0] for _ in range(3)]
    for at in range(100_000):
        sent.add(batches[at % 3], at // 3, 1)  # no two of them follow one another
    assert len(sent._spans) == 100_000
    steps = [0]

    def count(_frame, _event, _arg):
        steps[0] += 1
        return count

    before = sys.gettrace()
    sys.settrace(count)
    try:
        last = sent[-1]
        found = sum(future._index for future in sent)
    finally:
        sys.settrace(before)
    assert (last._batch, last._index) == (batches[0], 33_333)
    assert found == sum(at // 3 for at in range(100_000))
    assert steps[0] < 100_000 * 25, "lines per record"


def test_the_batches_of_many_records_are_each_listed_once():
    first, _ = make_batch(3)
    second, _ = make_batch(2)
    sent = SentRecords(lambda at: (7, -1, at))
    sent.add(first, 0, 1)
    sent.add(second, 0, 2)
    sent.add(first, 1, 2)
    assert sent.batches() == [first, second]
