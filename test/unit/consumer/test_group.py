"""One thread at a time may use a consumer; a second one is told so at once."""

from __future__ import annotations

from collections.abc import Callable
from threading import Thread
from typing import Any

import pytest

from kafka.consumer import KafkaConsumer
from kafka.errors import IllegalStateError
from kafka.structs import OffsetAndMetadata
from test.unit.consumer.scripted import T0, Cluster, MakeConsumer, read

CALLS: dict[str, Callable[[KafkaConsumer], object]] = {
    "poll": KafkaConsumer.poll,
    "poll_batches": KafkaConsumer.poll_batches,
    "iteration": next,
    "position": lambda consumer: consumer.position(T0),
    "seek": lambda consumer: consumer.seek(T0, 3),
    "seek_to_beginning": KafkaConsumer.seek_to_beginning,
    "pause": lambda consumer: consumer.pause(T0),
    "commit": KafkaConsumer.commit,
    "commit_async": lambda consumer: consumer.commit_async({T0: OffsetAndMetadata(1)}),
    "committed": lambda consumer: consumer.committed(T0),
    "end_offsets": lambda consumer: consumer.end_offsets([T0]),
    "topics": KafkaConsumer.topics,
    "subscribe": lambda consumer: consumer.subscribe(["t"]),
    "unsubscribe": KafkaConsumer.unsubscribe,
    "close": KafkaConsumer.close,
}


def in_another_thread(call: Callable[[], object]) -> Any:
    outcome: list[Any] = []

    def run() -> None:
        try:
            outcome.append(call())
        except Exception as error:
            outcome.append(error)

    thread = Thread(target=run)
    thread.start()
    thread.join()
    return outcome[0]


class Meanwhile:
    """Calls something while the consumer is inside poll()."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.call = call
        self.outcome: Any = None

    def on_partitions_revoked(self, revoked: Any) -> None:
        pass

    def on_partitions_assigned(self, assigned: Any) -> None:
        self.outcome = self.call()


@pytest.mark.parametrize("name", CALLS)
def test_a_second_thread_gets_an_error_that_names_the_one_inside_a_call(
    cluster: Cluster, make: MakeConsumer, name: str
) -> None:
    cluster.fill(10)
    consumer = make(group_id="g")
    listener = Meanwhile(lambda: in_another_thread(lambda: CALLS[name](consumer)))
    consumer.subscribe(["t"], listener=listener)
    assert len(read(consumer, 10)) == 10
    assert isinstance(listener.outcome, IllegalStateError)
    assert "in use by thread 'MainThread'" in str(listener.outcome)
    assert "wakeup()" in str(listener.outcome)


def test_two_threads_in_one_iteration_get_an_error(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(10)
    consumer = make(group_id="g")
    listener = Meanwhile(lambda: in_another_thread(lambda: next(consumer)))
    consumer.subscribe(["t"], listener=listener)
    assert next(consumer).offset == 0
    assert isinstance(listener.outcome, IllegalStateError)
    assert next(consumer).offset == 1


@pytest.mark.parametrize("call", [KafkaConsumer.health, KafkaConsumer.metrics, KafkaConsumer.bootstrap_connected])
def test_any_thread_may_ask_how_it_is(cluster: Cluster, make: MakeConsumer, call: Any) -> None:
    consumer = make(group_id="g")
    listener = Meanwhile(lambda: in_another_thread(lambda: call(consumer)))
    consumer.subscribe(["t"], listener=listener)
    consumer.poll(timeout_ms=1000)
    assert listener.outcome
    assert not isinstance(listener.outcome, Exception)


def test_a_listener_may_call_and_threads_may_take_turns(cluster: Cluster, make: MakeConsumer) -> None:
    cluster.fill(10)
    consumer = make(group_id="g")
    listener = Meanwhile(lambda: (consumer.position(T0), consumer.commit(), consumer.seek(T0, 5)))
    consumer.subscribe(["t"], listener=listener)
    assert [record.offset for record in in_another_thread(lambda: read(consumer, 5))] == [5, 6, 7, 8, 9]
    consumer.seek(T0, 0)
    assert len(read(consumer, 10)) == 10
    assert in_another_thread(consumer.close) is None
