"""What was taken from the buffers and did not come to the application, as Ctrl-C was pressed meanwhile, is not lost."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.consumer import KafkaConsumer
from kafka.consumer.collector import Collector
from kafka.errors import WakeupError
from kafka.interceptors import ConsumerInterceptor

from .conftest import MakeConsumer
from .reading import fill, read, tp

READERS: dict[str, Callable[[KafkaConsumer], list[Any]]] = {
    "poll": lambda consumer: [row for rows in consumer.poll(timeout_ms=10_000).values() for row in rows],
    "iteration": lambda consumer: [next(iter(consumer))],
}


def read_on(consumer: KafkaConsumer, name: str, found: list[Any]) -> None:
    while True:
        found += READERS[name](consumer)


class CtrlC:
    """A deserializer that somebody presses Ctrl-C in, at a certain value."""

    def __init__(self, at: int) -> None:
        self.left = at

    def __call__(self, value: bytes) -> bytes:
        self.left -= 1
        if self.left == 0:
            signal.raise_signal(signal.SIGINT)
        return value


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("at", [1, 15, 25])
def test_ctrl_c_in_a_deserializer_loses_nothing(
    broker: Broker, make_consumer: MakeConsumer, name: str, at: int
) -> None:
    fill(broker, 20, 0)
    fill(broker, 20, 1)
    consumer = make_consumer(group_id="readers", value_deserializer=CtrlC(at), enable_auto_commit=True)
    consumer.assign([tp(0), tp(1)])
    consumer.seek_to_beginning()
    found: list[Any] = []
    with pytest.raises(KeyboardInterrupt):
        read_on(consumer, name, found)
    consumer.commit()
    committed = sum(consumer.committed(tp(number)) or 0 for number in (0, 1))
    assert committed == len(found)
    found += read(consumer, 40 - len(found))
    for number in (0, 1):
        assert [record.offset for record in found if record.partition == number] == list(range(20))


@pytest.mark.parametrize("update_offsets", [True, False])
def test_ctrl_c_in_an_interceptor_loses_nothing(
    broker: Broker, make_consumer: MakeConsumer, update_offsets: bool
) -> None:
    class Interrupted(ConsumerInterceptor):
        at = 1

        def on_consume(self, records: Any) -> Any:
            self.at -= 1
            if self.at == 0:
                raise KeyboardInterrupt
            return records

    fill(broker, 20)
    consumer = make_consumer(interceptors=[Interrupted()])
    consumer.assign([tp()])
    consumer.seek(tp(), 0)
    with pytest.raises(KeyboardInterrupt):
        consumer.poll(timeout_ms=10_000, update_offsets=update_offsets)
    assert consumer.position(tp()) == 0
    assert [record.offset for record in read(consumer, 20)] == list(range(20))


def test_ctrl_c_while_columns_are_taken_loses_nothing(
    broker: Broker, make_consumer: MakeConsumer, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(broker, 20)
    consumer = make_consumer()
    consumer.assign([tp()])
    consumer.seek(tp(), 0)
    enter = Collector.enter

    def interrupted(self: Collector, state: Any) -> None:
        if state.cursor.position:
            monkeypatch.setattr(Collector, "enter", enter)
            raise KeyboardInterrupt
        enter(self, state)

    monkeypatch.setattr(Collector, "enter", interrupted)
    with pytest.raises(KeyboardInterrupt):
        consumer.poll_batches(timeout_ms=10_000)
    assert consumer.position(tp()) == 0
    (columns,) = consumer.poll_batches(timeout_ms=10_000).values()
    assert list(columns.offsets)[:1] == [0]


def test_errors_of_the_application_s_own_code_change_no_positions(broker: Broker, make_consumer: MakeConsumer) -> None:
    """What was returned before stays returned."""
    fill(broker, 20)
    consumer = make_consumer()
    consumer.assign([tp()])
    consumer.seek(tp(), 0)
    assert len(read(consumer, 20)) == 20

    def broken(_deadline: float) -> None:
        raise RuntimeError("no")

    engine = consumer._engine
    assert engine is not None
    engine.serve = broken  # type: ignore[method-assign]
    with pytest.raises(RuntimeError):
        consumer.poll(timeout_ms=1000)
    assert consumer.position(tp()) == 20


def test_a_wakeup_that_comes_while_records_are_taken_interrupts_the_iteration(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    fill(broker, 20)
    consumer = make_consumer()
    consumer.assign([tp()])
    consumer.seek(tp(), 0)
    engine = consumer._engine
    assert engine is not None
    take = engine.collector.take_hand

    def take_hand(limit: int) -> Any:
        hand = take(limit)
        if hand is not None:
            consumer.wakeup()  # from another thread, at this moment
        return hand

    engine.collector.take_hand = take_hand  # type: ignore[method-assign]
    with pytest.raises(WakeupError):
        next(iter(consumer))
    engine.collector.take_hand = take  # type: ignore[method-assign]
    assert [record.offset for record in read(consumer, 20)] == list(range(20))
