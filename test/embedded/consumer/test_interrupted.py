"""What was taken from the buffers and did not come to the application, as Ctrl-C was pressed meanwhile, is not lost."""

from __future__ import annotations

import _thread
import random
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from unittest.mock import Mock

import pytest

from kafka.broker import Broker
from kafka.consumer import KafkaConsumer
from kafka.consumer.fetch_collector import FetchCollector
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


@pytest.mark.parametrize("name", READERS)
def test_ctrl_c_before_anything_is_taken_repeats_nothing(
    broker: Broker, make_consumer: MakeConsumer, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    fill(broker, 20)
    consumer = make_consumer(max_poll_records=10)
    consumer.assign([tp()])
    consumer.seek(tp(), 0)
    found = READERS["poll"](consumer)
    core = consumer._core
    assert core is not None
    with monkeypatch.context() as patch:
        patch.setattr(core.collector, "begun", Mock(clear=Mock(side_effect=KeyboardInterrupt)))
        with pytest.raises(KeyboardInterrupt):
            READERS[name](consumer)
    assert consumer.position(tp()) == 10
    found += read(consumer, 10)
    assert [record.offset for record in found] == list(range(20))


class ManyCtrlC:
    """A thread that presses Ctrl-C again and again; it counts once each time that `armed` is set."""

    def __init__(self) -> None:
        self.count = 0
        self.armed = False
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._press)

    def _press(self) -> None:
        rng = random.Random(20)
        while not self._done.wait(rng.uniform(0, 1e-3)):
            _thread.interrupt_main()

    def _handle(self, _number: int, _frame: object) -> None:
        if self.armed:
            self.armed = False
            self.count += 1
            raise KeyboardInterrupt

    def start(self) -> None:
        self._handler = signal.signal(signal.SIGINT, self._handle)
        self._interval = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)  # so that the threads change within an iteration, not only in its waits
        self._thread.start()

    def stop(self) -> None:
        self.armed = False
        self._done.set()
        self._thread.join()
        sys.setswitchinterval(self._interval)
        signal.signal(signal.SIGINT, self._handler)


# A function of its own: Python 3.13 looks at signals in the jump to the next record, which is outside of a `try` there.
def iterate(consumer: KafkaConsumer, found: list[int], pressed: ManyCtrlC) -> None:
    for record in consumer:
        found.append(record.offset)  # first: Python looks at signals after this call again
        pressed.armed = len(found) < 5000
        if not pressed.armed:
            break


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python drops Ctrl-C in a finalizer
def test_ctrl_c_at_any_moment_of_an_iteration_loses_nothing_and_repeats_nothing(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    fill(broker, 5000, batch=500)
    consumer = make_consumer()
    consumer.assign([tp()])
    pressed = ManyCtrlC()
    pressed.start()
    try:
        while pressed.count < 30:
            consumer.seek(tp(), 0)
            found: list[int] = []
            while len(found) < 5000:
                with suppress(KeyboardInterrupt):
                    iterate(consumer, found, pressed)
                assert consumer.position(tp()) == len(found)
            assert found == list(range(5000))
    finally:
        pressed.stop()


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
    enter = FetchCollector.enter

    def interrupted(self: FetchCollector, state: Any) -> None:
        if state.cursor.position:
            monkeypatch.setattr(FetchCollector, "enter", enter)
            raise KeyboardInterrupt
        enter(self, state)

    monkeypatch.setattr(FetchCollector, "enter", interrupted)
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

    def broken() -> bool:
        raise RuntimeError("no")

    core = consumer._core
    assert core is not None
    core._is_held = broken  # type: ignore[method-assign]
    with pytest.raises(RuntimeError):
        consumer.poll(timeout_ms=30_000)
    del core._is_held
    assert consumer.position(tp()) == 20


def test_a_wakeup_that_comes_while_records_are_taken_interrupts_the_iteration(
    broker: Broker, make_consumer: MakeConsumer
) -> None:
    fill(broker, 20)
    consumer = make_consumer()
    consumer.assign([tp()])
    consumer.seek(tp(), 0)
    core = consumer._core
    assert core is not None
    take = core.collector.take_chunk

    def take_chunk(limit: int) -> Any:
        chunk = take(limit)
        if chunk is not None:
            consumer.wakeup()  # from another thread, at this moment
        return chunk

    core.collector.take_chunk = take_chunk  # type: ignore[method-assign]
    with pytest.raises(WakeupError):
        next(iter(consumer))
    core.collector.take_chunk = take  # type: ignore[method-assign]
    assert [record.offset for record in read(consumer, 20)] == list(range(20))
