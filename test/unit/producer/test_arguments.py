"""Mistakes in the arguments of public calls are told in words, whatever the argument is."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import pytest

from kafka import JsonSerializer, KafkaProducer
from kafka.errors import IllegalArgumentError, KafkaError
from kafka.protocol.commit import FindCoordinatorResponse
from test.unit.producer.memory_cluster import Cluster, Producer

THING = object()
JUNK: list[Any] = [
    None, 3, -1, 2.5, float("nan"), float("inf"), True, 2**70, 2**2000, "", "x", "\udcff", b"x", [], ["x"], [[]], {},
    {"x": 1}, {"\udcff": b""}, (), (1,), (1, 2), (1, 2, 3, 4, 5, 6), [()], [(1,)], [("\udcff", b"x")],
    [(b"k", b"v", 3)], {("t", 0): "x"}, {("t", 0): (1, 2, 3, 4)}, {("t", "0"): 1}, {("\udcff", 0): 1},
    {("t", -1): 1}, {("t", 0): ("1",)},
    THING, print,
]  # fmt: skip

CALLS: dict[str, Callable[[Producer, Any], object]] = {
    "send(topic)": lambda p, junk: p.send(junk, b"v"),
    "send(topic), keyed": lambda p, junk: p.send(junk, b"v", b"k"),
    "send(value)": lambda p, junk: p.send("events", junk),
    "send(key)": lambda p, junk: p.send("events", b"v", junk),
    "send(headers)": lambda p, junk: p.send("events", b"v", headers=junk),
    "send(partition)": lambda p, junk: p.send("events", b"v", partition=junk),
    "send(timestamp_ms)": lambda p, junk: p.send("events", b"v", timestamp_ms=junk),
    "send_many(topic)": lambda p, junk: p.send_many(junk, [b"v"]),
    "send_many(records)": lambda p, junk: p.send_many("events", junk),
    "partitions_for(topic)": lambda p, junk: p.partitions_for(junk),
    "partitions_for(timeout)": lambda p, junk: p.partitions_for("events", junk),
    "flush(timeout)": lambda p, junk: p.flush(junk),
    "get(timeout)": lambda p, junk: p.send("events", b"v").get(junk),
    "get(timeout) of many": lambda p, junk: p.send_many("events", [b"v"]).get(junk),
    "add_callback(f)": lambda p, junk: p.send("events", b"v").add_callback(junk),
    "add_errback(f)": lambda p, junk: p.send("events", b"v").add_errback(junk),
    "add_both(f)": lambda p, junk: p.send("events", b"v").add_both(junk),
    "close(timeout)": lambda p, junk: p.close(junk),
    "metrics(raw)": lambda p, junk: p.metrics(junk),
    "max_usable_produce_magic(api_version)": lambda p, junk: p.max_usable_produce_magic(junk),
}
TRANSACTIONAL: dict[str, Callable[[Producer, Any], object]] = {
    "init_transactions(timeout)": lambda p, junk: p.init_transactions(junk),
    "commit_transaction(timeout)": lambda p, junk: p.commit_transaction(junk),
    "abort_transaction(timeout)": lambda p, junk: p.abort_transaction(junk),
    "offsets": lambda p, junk: p.send_offsets_to_transaction(junk, "group", timeout=0),
    "group": lambda p, junk: p.send_offsets_to_transaction({}, junk, timeout=0),
    "timeout": lambda p, junk: p.send_offsets_to_transaction({}, "group", timeout=junk),
}


def told_in_words(error: BaseException) -> bool:
    """Whether an error was raised by a statement of ours, not by Python within an operation."""
    traceback = error.__traceback__
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    assert traceback is not None
    code = traceback.tb_frame.f_code
    line = linecache.getline(code.co_filename, traceback.tb_lineno)
    return "/kafka/" in code.co_filename and line.lstrip().startswith("raise ")


def check(call: Callable[[Producer, Any], object], producer: Producer, junk: Any) -> None:
    try:
        call(producer, junk)
    except KafkaError:
        pass
    except Exception as error:
        assert isinstance(error, (TypeError, ValueError)), repr(error)
        assert told_in_words(error), repr(error)


@pytest.mark.parametrize("name", CALLS)
def test_junk_in_a_call_is_refused_in_words(make_producer, name):
    producer = make_producer(Cluster({"events": 2}), max_block_ms=10)
    producer.partitions_for("events", timeout=10)
    for junk in JUNK:
        check(CALLS[name], producer, junk)
    if not producer._calls.closed:
        assert producer.send("events", b"v", partition=0).get(10).partition == 0


def no_right(request: Any, _session: Any) -> Any:
    """Answer at once, so that no call waits."""
    entry: Any = FindCoordinatorResponse.Coordinator
    fields = {"node_id": -1, "host": "", "port": -1, "error_code": 53, "error_message": None}
    return {"coordinators": [entry(key=key, **fields) for key in request.coordinator_keys]}


@pytest.mark.parametrize("name", TRANSACTIONAL)
def test_junk_in_a_transactional_call_is_refused_in_words(make_producer, name):
    cluster = Cluster({"t": 1})
    cluster.brokers[0].on("FindCoordinator", no_right)
    producer = make_producer(cluster, transactional_id="id", enable_idempotence=True, max_block_ms=10)
    for junk in JUNK:
        check(TRANSACTIONAL[name], producer, junk)


MISTAKES: dict[str, tuple[Callable[[Producer], object], str]] = {
    "one string": (lambda p: p.send_many("events", "abc"), r"send_many\(\) takes an iterable of records.*not str"),
    "a short tuple": (lambda p: p.send_many("events", [(b"v",)]), "not a tuple of 1"),
    "a partition": (lambda p: p.send("events", b"v", partition="0"), "partition must be the number of a partition"),
    "a timeout": (lambda p: p.flush(""), r"the timeout of flush\(\) must be a number of seconds, not ''"),
    "NaN": (lambda p: p.close(float("nan")), r"the timeout of close\(\) must be a number of seconds, not NaN"),
    "a release": (lambda p: p.max_usable_produce_magic(0), r"a release is a tuple of numbers, as in \(0, 11\), not 0"),
    "no headers": (lambda p: p.send("events", b"v", headers=3), "headers must be pairs of name and bytes"),
    "a time": (lambda p: p.send("events", b"v", timestamp_ms=2**63), r"from 0 to 2\*\*63 - 1"),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_say_what_is_expected(make_producer, name):
    mistake, complaint = MISTAKES[name]
    producer = make_producer(Cluster({"events": 2}))
    with pytest.raises((TypeError, IllegalArgumentError), match=complaint):
        mistake(producer)
    assert producer.send("events", b"v").get(10)


@pytest.mark.parametrize("what", ["key", "value"])
@pytest.mark.parametrize("data", [{"a": 1}, ["a"], 7, 2.5, True, "text"], ids=repr)
def test_the_serializer_that_is_proposed_works(make_producer, what, data):
    producer = make_producer(Cluster({"events": 1}))
    with pytest.raises(TypeError, match=f"{what} must be bytes, not {type(data).__name__}") as refused:
        producer.send("events", **{what: data})
    option = str(refused.value).partition("KafkaProducer(")[2].rpartition(")")[0]
    name, _, serializer = option.partition("=")
    assert serializer == ("str.encode" if isinstance(data, str) else "kafka.JsonSerializer()")
    made = str.encode if serializer == "str.encode" else JsonSerializer()
    producer = make_producer(Cluster({"events": 1}), **{name: made})
    assert producer.send("events", **{what: data}).get(10).offset == 0


def test_no_serializer_of_ours_is_proposed_for_other_things(make_producer):
    producer = make_producer(Cluster({"events": 1}))
    with pytest.raises(TypeError, match="value must be bytes, not object; set value_serializer to a function that"):
        producer.send("events", THING)


def test_the_records_release_needs_no_producer():
    assert [KafkaProducer.max_usable_produce_magic(release) for release in ((0, 9), (0, 10, 2), (4, 1))] == [0, 1, 2]
