"""Each public call of a client stands once, whichever face it is called through, and has a plain signature on both."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, KafkaShareConsumer
from kafka.admin.client import AdminCalls
from kafka.aio import AIOKafkaAdminClient, AIOKafkaConsumer, AIOKafkaProducer, AIOKafkaShareConsumer
from kafka.consumer.calls import ConsumerCalls
from kafka.producer.common_calls import CommonCalls
from kafka.share.calls import ShareConsumerCalls

# The two faces of each client, and the class of the calls that wait.
CLIENTS: dict[str, tuple[type, type, type]] = {
    "producer": (KafkaProducer, AIOKafkaProducer, CommonCalls),
    "consumer": (KafkaConsumer, AIOKafkaConsumer, ConsumerCalls),
    "share": (KafkaShareConsumer, AIOKafkaShareConsumer, ShareConsumerCalls),
    "admin": (KafkaAdminClient, AIOKafkaAdminClient, AdminCalls),
}

#: What each face writes for itself, and why.
OF_EACH_FACE: dict[str, dict[str, str]] = {
    "producer": {
        "close": "life: it waits in the thread, or is another name of stop()",
        "init_transactions": "life: start() of the asyncio producer has done it",
        "send": "the hot path: it is a call less per record, and waits in its own way",
        "send_many": "the hot path: the synchronous one also sees send() replaced by a subclass or a tracer",
        "transaction": "a context manager for `with`, and one for `async with`",
    },
    "consumer": {
        "close": "life: it waits in the thread, or is another name of stop()",
        "commit_async": "it returns the future of its face: ours, or asyncio's",
        "partitions_for_topic": "form: aiokafka's is no coroutine, so it returns what is known and does not wait",
        "poll": "iteration: tracers replace the synchronous one, or the `_poll_once` that it calls",
        "seek_to_beginning": "form: aiokafka's waits for the positions, and returns whether they are known",
        "seek_to_committed": "form: aiokafka's waits for the offsets, and returns them",
        "seek_to_end": "form: as seek_to_beginning",
        "subscription": "form: without a subscription kafka-python returns None, aiokafka an empty set",
    },
    "share": {"close": "life: it waits in the thread, or is another name of stop()"},
    "admin": {"close": "life: it waits in the thread, or is another name of stop()"},
}


def bodies(face: type, calls: type) -> dict[str, set[Any]]:
    """Return the code of each public method that a face, its bases or its calls define; `blocking()` adds none."""
    found: dict[str, set[Any]] = {}
    for kind in {*face.__mro__, *calls.__mro__}:
        for name, method in vars(kind).items():
            function = getattr(method, "__func__", method)
            if name.startswith("_") or not inspect.isfunction(function):
                continue
            found.setdefault(name, set()).add(inspect.unwrap(function).__code__)
    return found


@pytest.mark.parametrize("client", CLIENTS)
def test_a_public_call_has_one_body_unless_its_face_is_what_it_is_about(client: str) -> None:
    synchronous, asynchronous, calls = CLIENTS[client]
    written: dict[str, set[Any]] = {}
    for face in (synchronous, asynchronous):
        for name, codes in bodies(face, calls).items():
            written.setdefault(name, set()).update(codes)
    twice = {name for name, codes in written.items() if len(codes) > 1 and name in dir(synchronous)}
    assert sorted(twice) == sorted(OF_EACH_FACE[client])


def common(client: str) -> list[str]:
    synchronous, asynchronous, _ = CLIENTS[client]
    return [
        name
        for name in dir(synchronous)
        if not name.startswith("_")
        and inspect.isfunction(inspect.getattr_static(synchronous, name))
        and inspect.isfunction(inspect.getattr_static(asynchronous, name, None))
        and name not in OF_EACH_FACE[client]
    ]


@pytest.mark.parametrize("client", CLIENTS)
def test_both_faces_have_the_same_parameters_types_and_docstrings(client: str) -> None:
    synchronous, asynchronous, _ = CLIENTS[client]
    names = common(client)
    assert len(names) > 8
    for name in names:
        one, other = getattr(synchronous, name), getattr(asynchronous, name)
        assert inspect.signature(one) == inspect.signature(other), name
        assert inspect.getdoc(one) == inspect.getdoc(other), name
        assert inspect.getdoc(one), name
        assert one.__annotations__ == other.__annotations__, name
        assert one.__name__ == other.__name__, name
        assert one.__name__ in names, "a second name is an alias of a public call"


@pytest.mark.parametrize("client", CLIENTS)
def test_a_call_of_the_synchronous_face_returns_and_one_of_asyncio_is_awaited_or_neither_waits(client: str) -> None:
    synchronous, asynchronous, calls = CLIENTS[client]
    waiting = set()
    for name in common(client):
        assert not inspect.iscoroutinefunction(getattr(synchronous, name)), name
        awaited = inspect.iscoroutinefunction(getattr(asynchronous, name))
        assert awaited == inspect.iscoroutinefunction(inspect.unwrap(getattr(synchronous, name))), (
            f"{name} waits on one face alone"
        )
        if awaited:
            waiting.add(name)
    assert waiting & set(dir(calls))
