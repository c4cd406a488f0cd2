"""Mistakes in the calls of a consumer: the error names the argument, its value, and what it must be."""

from __future__ import annotations

import inspect
import itertools
import linecache
import re
import traceback
from typing import Any

import pytest

from kafka.consumer import KafkaConsumer
from kafka.consumer.arguments import hint_for_attribute
from kafka.errors import IllegalArgumentError, IllegalStateError, KafkaError
from kafka.structs import OffsetAndMetadata, SubscriptionPattern, TopicPartition
from test.unit.consumer.scripted import T0, Cluster, MakeConsumer, read

NAN, INFINITY = float("nan"), float("inf")


STRANGE: list[Any] = [
    None, True, 0, -1, 1.5, NAN, INFINITY, -INFINITY, 1e300, 1 << 31, 1 << 63, 1 << 2000, "", "x", "\ud800", "t" * 300,
    b"t", [], [0], [None], [[]], ["t"], [b"t"], (), ("t", 0), {}, {"t": 0}, {0: 0}, set(), object(),
    re.compile(b"t"), SubscriptionPattern(5),  # type: ignore[arg-type]
    T0, [T0], {T0}, {T0: 0}, {T0: -1}, {T0: "0"}, {T0: None}, {T0: 1 << 63}, {T0: OffsetAndMetadata(1 << 63)},
    TopicPartition("t", "0"), TopicPartition("t", None), TopicPartition("t", []), TopicPartition([], 0),  # type: ignore[arg-type]
    TopicPartition("t", 1 << 31), TopicPartition("t", True), TopicPartition("", 0), [TopicPartition("t", -1)],
    OffsetAndMetadata(-1), OffsetAndMetadata("1"), OffsetAndMetadata(1, 5), OffsetAndMetadata(1, "", "e"),  # type: ignore[arg-type]
    OffsetAndMetadata(1, "x" * 40_000), OffsetAndMetadata(1, "\ud800"), {T0: OffsetAndMetadata(1, b"x")},  # type: ignore[arg-type]
    {T0: OffsetAndMetadata(1, "", 1 << 40)},
]  # fmt: skip
# What an argument must be, where there must be one.
FITTING: dict[str, Any] = {
    "partition": T0, "partitions": [T0], "offset": 0, "timestamp_ms": 0, "timestamps": {T0: 0}, "topic": "t"
}  # fmt: skip
METHODS = [
    name
    for name, method in inspect.getmembers(KafkaConsumer, inspect.isfunction)
    if not name.startswith("_") and len(inspect.signature(method).parameters) > 1
]


def raised_by_us(error: BaseException) -> bool:
    """Whether an error comes from a `raise` of ours, not from an operation on something of a wrong type."""
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return "raise" in linecache.getline(frame.filename, frame.lineno or 0)


@pytest.mark.filterwarnings("ignore:poll")  # a timeout that looks like seconds
@pytest.mark.parametrize("name", METHODS)
def test_strange_arguments_end_in_an_error_that_says_what_is_wrong(
    cluster: Cluster, make: MakeConsumer, name: str
) -> None:
    cluster.fill(1)
    consumer = make(group_id="g", default_api_timeout_ms=2000, request_timeout_ms=1500)
    parameters = [*inspect.signature(getattr(KafkaConsumer, name)).parameters.values()][1:]
    for parameter, strange in itertools.product(parameters, STRANGE):
        consumer.unsubscribe()
        consumer.assign([T0])
        consumer.seek(T0, 0)  # there is a record, so no poll() waits for ever
        try:
            if parameter.kind is parameter.VAR_POSITIONAL:
                getattr(consumer, name)(*([0] if name == "seek_to_timestamp" else []), strange)
            else:
                needed = {
                    other.name
                    for other in parameters
                    if other.default is other.empty and other.kind != other.VAR_POSITIONAL
                }
                arguments = {other: value for other, value in FITTING.items() if other in needed}
                getattr(consumer, name)(**{**arguments, parameter.name: strange})
        except Exception as error:
            assert isinstance(error, (KafkaError, TypeError)), (parameter.name, strange)
            assert raised_by_us(error), (parameter.name, error)
            assert len(str(error)) < 1000
        if consumer.health()["closed"]:
            consumer = make(group_id="g")
    consumer.unsubscribe()
    consumer.assign([T0])
    consumer.seek(T0, 0)
    assert read(consumer, 1)  # it works as before


MESSAGES: list[tuple[Any, type[Exception], str]] = [
    (lambda c: c.assign(0), TypeError, "partitions must be a list of TopicPartitions, not 0"),
    (lambda c: c.assign("t"), TypeError, "partitions must be a list of TopicPartitions, not 't'"),
    (lambda c: c.assign([("t", 0)]), TypeError, "each of partitions must be a TopicPartition, not ('t', 0)"),
    (lambda c: c.assign([TopicPartition(b"t", 0)]), TypeError, "a topic's name must be a str, not b't'"),
    (lambda c: c.assign([TopicPartition("", 0)]), IllegalArgumentError, "'' is not a legal name of a topic"),
    (lambda c: c.pause([T0]), TypeError, "[TopicPartition(topic='t', partition=0)]: pass them one by one"),
    (lambda c: c.commit([T0]), TypeError, "offsets must be a mapping of TopicPartitions to OffsetAndMetadata, not [T"),
    (lambda c: c.commit({T0: "3"}), TypeError, "each value of offsets must be an OffsetAndMetadata, not '3'"),
    (lambda c: c.poll(NAN), IllegalArgumentError, "timeout_ms must not be negative: nan"),
    (lambda c: c.topics(""), TypeError, "timeout_ms must be a number of milliseconds, not ''"),
    (lambda c: c.poll(-1), IllegalArgumentError, "timeout_ms must not be negative: -1"),
    (lambda c: c.poll(0, "9"), TypeError, "max_records must be a whole number, not '9'"),
    (lambda c: c.position(["t", 0]), TypeError, "partition must be a TopicPartition, not ['t', 0]"),
    (lambda c: c.highwater([]), TypeError, "partition must be a TopicPartition, not []"),
    (lambda c: c.committed(5), TypeError, "partition must be a list of TopicPartitions, not 5"),
    (lambda c: c.seek(T0, "5"), TypeError, "offset must be a whole number, not '5'"),
    (lambda c: c.seek(T0, "5"), AssertionError, "offset must be a whole number, not '5'"),
    (lambda c: c.seek(T0, -5), IllegalArgumentError, f"offset must be from 0 to {(1 << 63) - 1}, not -5"),
    (lambda c: c.commit_async({}, 5), TypeError, "callback must be a function of offsets and the outcome, not 5"),
    (lambda c: c.enforce_rebalance(5), TypeError, "reason must be a str, not 5"),
    (lambda c: c.subscribe(0), TypeError, "topics must be a list of names, not 0"),
    (lambda c: c.subscribe(pattern="("), IllegalArgumentError, "pattern must be a regular expression, '(' is not: "),
    (lambda c: c.subscribe(pattern=""), IllegalArgumentError, "pattern must not be empty, since each topic matches"),
    (lambda c: c.subscribe(pattern=re.compile("")), IllegalArgumentError, "pattern must not be empty"),
    (lambda c: c.offsets_for_times({T0: "1"}), TypeError, "each value of timestamps must be a whole number of milli"),
]


@pytest.mark.parametrize("at", range(len(MESSAGES)))
def test_messages_name_the_argument_its_value_and_what_it_must_be(
    cluster: Cluster, make: MakeConsumer, at: int
) -> None:
    call, kind, message = MESSAGES[at]
    consumer = make(group_id="g")
    with pytest.raises(kind) as caught:
        call(consumer)
    assert message in str(caught.value)


class Whole:
    """A whole number that is not an int, as numpy's are."""

    def __init__(self, value: int) -> None:
        self.value = value

    def __index__(self) -> int:
        return self.value


def test_whole_numbers_of_other_types_are_taken_as_int(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(3)
    consumer = make(group_id="g")
    consumer.assign([TopicPartition("t", Whole(0))])  # type: ignore[arg-type]
    assert consumer.assignment() == {T0}
    consumer.seek(T0, Whole(2))  # type: ignore[arg-type]
    assert consumer.position(T0, timeout_ms=Whole(1000)) == 2  # type: ignore[arg-type]
    assert len(consumer.poll(Whole(1000), Whole(1))[T0]) == 1  # type: ignore[arg-type]
    for offset in (Whole(1), OffsetAndMetadata(Whole(1), "", Whole(0))):  # type: ignore[arg-type]
        consumer.commit({T0: offset})  # type: ignore[dict-item]
        assert consumer.committed(T0) == 1
    assert {type(number) for partition in consumer.assignment() for number in partition[1:]} == {int}


@pytest.mark.parametrize("given", [["t"], ("t", "u")])
def test_topics_and_options_in_one_argument_are_distinguished(cluster: Cluster, make: MakeConsumer, given: Any) -> None:
    with pytest.raises(TypeError, match=r"options by name.*bootstrap_servers='localhost:9092'"):
        make(given)


def test_names_from_other_clients_lead_to_those_here(cluster: Cluster, make: MakeConsumer) -> None:
    consumer = make()
    for name, hint in (
        ("consumer_group_metadata", r"use group_metadata\(\)$"),
        ("getmany", r"use poll\("),
        ("listTopics", r"use topics\(\) and partitions_for_topic\(\)$"),
        ("seekToBeginning", "did you mean 'seek_to_beginning'"),
        ("comit", "did you mean 'commit'"),
    ):
        with pytest.raises(AttributeError, match=f"'KafkaConsumer' object has no attribute '{name}': {hint}"):
            getattr(consumer, name)
    with pytest.raises(AttributeError, match=r"no attribute 'zzz'$"):
        getattr(consumer, "zzz")  # noqa: B009
    assert not hasattr(consumer, "_private")
    with pytest.raises(IllegalStateError):
        consumer.commit()  # the hints are in nobody's way


def test_every_hint_names_what_there_is() -> None:
    from kafka.consumer.arguments import _ELSEWHERE

    for name in _ELSEWHERE:
        assert not hasattr(KafkaConsumer, name)
        for method in re.findall(r"(\w+)\(", hint_for_attribute(name, [])):
            assert method == "next" or hasattr(KafkaConsumer, method)
