"""Random transactions whose calls are cut short: by cancelling, by Ctrl-C, by a timeout. Each ends as a call has said.

Each seed is one history on one face. A call that was cut leaves open what became of its transaction; the calls after it
are random too, so that the other end is tried as well as the same one. Whatever returns then must be the truth.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

import pytest

from kafka import KafkaProducer
from kafka._runtime.application import complete
from kafka.aio import AIOKafkaProducer, IllegalOperation
from kafka.broker import Broker
from kafka.errors import IllegalStateError, KafkaTimeoutError
from test.embedded.aio.conftest import LOOPS, run_on

PARTITIONS = 2
TRANSACTIONS = 25
ENDS = ("commit", "abort")
DELAYED = ("AddPartitionsToTxn", "Produce", "EndTxn", "EndTxn", "EndTxn")
PASSING = [14, 16, 51]
OPTIONS = {
    "transactional_id": "random",
    "retry_backoff_ms": 5,
    "retry_backoff_max_ms": 50,
    "request_timeout_ms": 20_000,
}


_PRODUCER: Final = "kafka/producer/kafka.py"


class CutShort(Exception):
    """A call was interrupted, or its time was up."""


class AsyncioCalls:
    """The calls of a producer of asyncio, which are cancelled after a few turns of the event loop."""

    def __init__(self, rng: random.Random, producer: AIOKafkaProducer) -> None:
        self.rng = rng
        self.producer = producer

    async def whole(self, name: str, *args: Any, **more: Any) -> Any:
        return await getattr(self.producer, name)(*args, **more)

    async def cut(self, name: str, *args: Any, **more: Any) -> Any:
        call = asyncio.ensure_future(self.whole(name, *args, **more))
        for _ in range(self.rng.choice([0, 1, 2, 3, 4, 6, 10, 20, 40])):
            await asyncio.sleep(0)
        call.cancel()
        try:
            return await call
        except asyncio.CancelledError:
            raise CutShort from None

    async def send(self, *args: Any, **more: Any) -> None:
        await self.cut("send", *args, **more)  # a send that is cancelled has not added the record


class BlockingCalls:
    """The calls of a producer that blocks: a signal interrupts them, or their time is short."""

    def __init__(self, rng: random.Random, producer: KafkaProducer) -> None:
        self.rng = rng
        self.producer = producer

    async def whole(self, name: str, *args: Any, **more: Any) -> Any:
        return getattr(self.producer, name)(*args, **more)

    async def cut(self, name: str, *args: Any, **more: Any) -> Any:
        if name.startswith(ENDS) and self.rng.random() < 0.5:
            try:
                return getattr(self.producer, name)(*args, timeout=self.rng.choice([0, 0.001, 0.01]), **more)
            except KafkaTimeoutError:
                raise CutShort from None
        with interrupted_in(self.rng.choice([0.0001, 0.0003, 0.001, 0.003, 0.01])):
            return getattr(self.producer, name)(*args, **more)

    async def send(self, *args: Any, **more: Any) -> None:
        self.producer.send(*args, **more)


@contextmanager
def interrupted_in(seconds: float) -> Iterator[None]:
    """Interrupt the block as Ctrl-C does, if it takes longer."""

    def handle(_number: int, frame: FrameType | None) -> None:
        while frame is not None and not frame.f_code.co_filename.endswith(_PRODUCER):
            frame = frame.f_back
        if frame is not None:  # within the call: not before it, nor after it
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, handle)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    except KeyboardInterrupt:
        raise CutShort from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


class History:
    """One run: what was sent in each transaction, and the ends that it may have had."""

    def __init__(self, rng: random.Random, broker: Broker, calls: AsyncioCalls | BlockingCalls) -> None:
        self.rng = rng
        self.broker = broker
        self.calls = calls
        self.sent: list[list[tuple[int, bytes]]] = []
        self.ends: list[set[str]] = []
        self.log: list[str] = []

    async def call(self, name: str, *, may_be_cut: bool = True) -> str:
        """Call the producer; whether it returned, was refused, or was cut short."""
        call = self.calls.cut if may_be_cut and self.rng.random() < 0.7 else self.calls.whole
        try:
            await call(f"{name}_transaction")
            outcome = "returned"
        except CutShort:
            outcome = "cut"
        except (IllegalStateError, IllegalOperation):
            outcome = "refused"
        self.log.append(f"{name} {outcome}")
        return outcome

    @property
    def state(self) -> str:
        return str(self.calls.producer.health()["transaction"]["state"])

    async def run(self) -> None:
        for number in range(TRANSACTIONS):
            self.order_faults()
            await self.begin()
            await self.fill(number)
            await self.end()
        self.broker.clear_faults()

    def order_faults(self) -> None:
        for _ in range(self.rng.choice([0, 1, 1, 2])):
            if self.rng.random() < 0.7:
                self.broker.delay(self.rng.choice(DELAYED), self.rng.choice([0.001, 0.01, 0.05]), times=1)
            else:
                self.broker.fail("EndTxn", [self.rng.choice(PASSING)], times=1)

    async def begin(self) -> None:
        """Open a transaction: a call that was cut may be repeated, whatever became of it."""
        while (outcome := await self.call("begin")) != "returned":
            if outcome == "refused":  # the signal came when the call had returned
                assert isinstance(self.calls, BlockingCalls), self.log
                assert self.log[-2:] == ["begin cut", "begin refused"]
                assert self.state == "in a transaction"
                break
        self.sent.append([])
        self.ends.append(set())

    async def fill(self, number: int) -> None:
        for index in range(self.rng.randint(1, 6)):
            where, value = self.rng.randrange(PARTITIONS), b"%d-%d" % (number, index)
            try:
                await self.calls.send("events", value, partition=where)
                self.sent[-1].append((where, value))
            except CutShort:  # it is not in the transaction
                continue

    async def end(self) -> None:
        """Commit or abort, by random calls until one has said how it ended."""
        possible = self.ends[-1]
        patience = self.rng.randint(0, 6)
        while True:
            patience -= 1
            end = self.rng.choice(ENDS)
            if patience < 0:  # the calls that may be under way, until one has its outcome
                end = self.rng.choice(sorted(possible) or ENDS)
            outcome = await self.call(end, may_be_cut=patience >= 0)
            if outcome == "returned":
                possible.clear()
                possible.add(end)
                return
            if outcome == "cut":
                if self.state not in {"in a transaction", "ready"}:  # it is known which one is under way
                    possible.clear()
                    possible.add("commit" if self.state == "committing" else "abort")
                else:
                    possible.add(end)
            elif self.state == "ready":
                assert possible, f"a transaction has ended that no call was to end: {self.log}"
                return

    def check(self) -> None:
        for partition in range(PARTITIONS):
            found = [record.value for record in self.broker.records("events", partition, committed=True)]
            expected = []
            for sent, ends in zip(self.sent, self.ends, strict=True):
                values = [value for where, value in sent if where == partition]
                if ends == {"commit"} or (len(ends) > 1 and values and self.is_there(sent)):
                    expected += values
            assert found == expected, (partition, self.log)

    def is_there(self, sent: list[tuple[int, bytes]]) -> bool:
        there = {
            value in {record.value for record in self.broker.records("events", where, committed=True)}
            for where, value in sent
        }
        assert len(there) == 1, f"a transaction is torn: {self.log}"
        return there.pop()


@contextmanager
def broker_for(seed: int) -> Iterator[Broker]:
    with Broker(topics={"events": PARTITIONS}, seed=seed) as broker:
        if seed % 2:
            for api, newest in (("EndTxn", 4), ("Produce", 11), ("TxnOffsetCommit", 4)):
                broker.advertise(api, 0, newest)
        yield broker


def run_asyncio(seed: int) -> History:
    with broker_for(seed) as broker:

        async def main() -> History:
            rng = random.Random(seed)
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, **OPTIONS) as producer:
                history = History(rng, broker, AsyncioCalls(rng, producer))
                await history.run()
            return history

        history: History = run_on(LOOPS["selector"], main())
        history.check()
    return history


def run_blocking(seed: int) -> History:
    with broker_for(seed) as broker:
        rng = random.Random(seed)
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, **OPTIONS) as producer:
            producer.init_transactions()
            history = History(rng, broker, BlockingCalls(rng, producer))
            work: Coroutine[Any, Any, None] = history.run()
            complete(work)
        history.check()
    return history


# What a signal interrupts may be a call that has made a coroutine and not run it yet.
pytestmark = pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
RUNS = pytest.mark.parametrize("run_seed", [run_asyncio, run_blocking])


@RUNS
@pytest.mark.timeout(120)
@pytest.mark.parametrize("seed", range(4))
def test_a_transaction_whose_calls_are_cut_short_ends_as_a_call_has_said(run_seed, seed):
    history = run_seed(seed)
    outcomes = {each.split()[1] for each in history.log}
    assert {"returned", "cut"} <= outcomes


@RUNS
@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_interrupted_transactions_in_number(run_seed):
    for seed in range(100, 300):
        run_seed(seed)
