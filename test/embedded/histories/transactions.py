"""Histories of transactional producers: calls are cancelled, interrupted or too short, brokers fail, others take over.

A call that was cut short leaves open what became of its transaction; the calls after it are random too, so that the
other end is tried as well as the same one. Whatever returns then must be the truth. Checked:

P2  per partition the order of sends, and no record twice;
P12 a commit that returned is fully visible, one that raised is aborted, or the error says that this is unknown;
    a transaction is visible as a whole, with its offsets, or not at all;
P13 calls end within their limits, and nothing is left: thread, task, socket.
"""

from __future__ import annotations

import random
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from kafka import KafkaProducer
from kafka.aio import AIOKafkaProducer
from kafka.broker import Broker
from kafka.errors import (
    AbortableTransactionError,
    FatalError,
    IllegalOperation,
    IllegalStateError,
    KafkaError,
    KafkaTimeoutError,
)
from kafka.structs import TopicPartition

from . import faults
from .history import CutShort, Kind, Step

NODES = 3
TOPICS = {"a": 2, "b": 2}
ALL = [(topic, number) for topic, count in TOPICS.items() for number in range(count)]
GROUP = "movers"
OFFSETS = TopicPartition("a", 0)
PASSING = (14, 15, 16, 51)
#: After these the transaction, or the producer, is done for.
DOOMING = (29, 45, 47, 49, 59, 120)
CODES = {
    "AddPartitionsToTxn": (*PASSING, *PASSING, *DOOMING),
    "Produce": (*faults.PRODUCE, *faults.PRODUCE, 87, *DOOMING),
    "AddOffsetsToTxn": (*PASSING, *PASSING, *DOOMING),
    "TxnOffsetCommit": (14, 15, 16, 3, *DOOMING),
    "EndTxn": PASSING,
    "InitProducerId": PASSING,
}
ENDS = ("commit", "abort")


@dataclass
class Transaction:
    """What was sent in it, and how it may have ended."""

    sent: list[tuple[str, int, bytes]] = field(default_factory=list)
    offset: int | None = None
    ends: set[str] = field(default_factory=set)


class Transactions(faults.Faults, Kind):
    """One transactional id, used by one producer after the other."""

    length = 25

    def __init__(self, seed: int, face: str) -> None:
        super().__init__(seed, face)
        rng = self.rng
        self.options: dict[str, Any] = {
            "transactional_id": "history",
            "request_timeout_ms": rng.choice([300, 2000]),
            "delivery_timeout_ms": rng.choice([500, 20_000]),
            "linger_ms": 0,
            "batch_size": rng.choice([60, 200, 16384]),
            "max_block_ms": 30_000,
            "retry_backoff_ms": 5,
            "retry_backoff_max_ms": 50,
            "reconnect_backoff_ms": 5,
            "reconnect_backoff_max_ms": 20,
            "transaction_timeout_ms": rng.choice([2000, 60_000]),
        }
        if self.options["request_timeout_ms"] > self.options["delivery_timeout_ms"]:
            self.options["delivery_timeout_ms"] = 20_000
        self.old = rng.random() < 0.5
        self.broker = Broker(nodes=NODES, seed=seed)
        self.producer: Any = None
        self.may_be_fatal = self.may_time_out = self.options["transaction_timeout_ms"] < 10_000
        """Whether something has happened, or is about to, that may end the producer."""
        self.transactions: list[Transaction] = []

    def settings(self) -> str:
        return f"{'before KIP-890' if self.old else 'KIP-890'}: {self.options}"

    @classmethod
    def steps(cls, rng: random.Random, length: int) -> list[Step]:
        found: list[Step] = []
        while len(found) < length:
            if rng.random() < 0.45:
                found.append(rng.choice(faults.steps(rng, CODES, NODES)))
                continue
            if rng.random() < 0.05:
                found.append(Step(rng.choice(["take_over", "restart_program"])))
                continue
            cuts = [round(rng.random(), 3) for _ in range(rng.choice([0, 0, 1, 3, 6]))]
            arguments = {
                "sends": [rng.randrange(len(ALL)) for _ in range(rng.choice([0, 1, 3, 12]))],
                "offsets": rng.random() < 0.4,
                "ends": [rng.choice(ENDS) for _ in range(len(cuts) + 1)],
                "cuts": cuts,
                "cut_sends": rng.random() < 0.3,
            }
            found.append(Step(rng.choice(["transact", "transact", "transact", "within"]), arguments))
        return found

    async def begin(self) -> None:
        self.broker.start()
        if self.old:
            for api, newest in (("EndTxn", 4), ("Produce", 11), ("TxnOffsetCommit", 4)):
                self.broker.advertise(api, 0, newest)
        for topic, count in TOPICS.items():
            self.broker.create_topic(topic, count)
        await self.start()

    async def make(self) -> Any:
        options = {"bootstrap_servers": self.broker.bootstrap_servers, **self.options}
        if self.face == "threads":
            made: Any = KafkaProducer(**options)
            try:
                made.init_transactions()
            except BaseException:
                made.close(timeout=0)
                raise
        else:
            made = AIOKafkaProducer(**options)
            await made.start()
        return made

    async def start(self) -> None:
        """Make a producer, as a program that is started again and again does."""
        for attempt in range(5):
            try:
                self.producer = await self.make()
            except KafkaError as error:  # noqa: PERF203
                self.note(f"the producer does not start: {error!r}"[:300])
                assert attempt < 4
                self.broker.clear_faults()
            else:
                return

    async def start_over(self) -> None:
        await self.call(self.producer.close, timeout=0, limit=1)
        await self.start()

    async def state(self) -> str:
        health = await self.call(self.producer.health)
        return str(health["transaction"]["state"])

    # Steps

    async def fail(self, api: str, code: int, times: int) -> None:
        """Answer with an error; some end the producer."""
        await super().fail(api, code, times)
        self.may_be_fatal = self.may_be_fatal or code in DOOMING

    async def restart_program(self) -> None:
        """Go on with another producer."""
        await self.start_over()

    async def take_over(self) -> None:
        """Have another producer take over the transactional id: it fences the one that is in use."""
        self.broker.clear_faults()
        other = await self.make()
        self.may_be_fatal = True
        await self.call(other.close)

    async def transact(
        self, sends: list[int], offsets: bool, ends: list[str], cuts: list[float], cut_sends: bool
    ) -> None:
        """Live through one transaction, by calls of begin, send, commit and abort."""
        transaction = Transaction()
        self.transactions.append(transaction)
        cut = iter(cuts)
        try:
            await self.begin_transaction(next(cut, None))
            await self.fill(transaction, sends, offsets, next(cut, None) if cut_sends else None)
            await self.end(transaction, ends, list(cut))
        except (AbortableTransactionError, KafkaTimeoutError) as error:
            self.note(f"{error!r}"[:300])
            await self.abort(transaction)
        except FatalError as error:
            await self.fatal(transaction, error)

    async def within(
        self, sends: list[int], offsets: bool, ends: list[str], cuts: list[float], cut_sends: bool
    ) -> None:
        """Live through one transaction, by a ``with`` block."""
        transaction = Transaction()
        self.transactions.append(transaction)
        try:
            if self.face == "threads":
                with self.producer.transaction():
                    await self.fill_and_raise(transaction, sends, offsets, ends[0])
            else:
                async with self.producer.transaction():
                    await self.fill_and_raise(transaction, sends, offsets, ends[0])
            transaction.ends = {"commit"}
        except ZeroDivisionError:
            transaction.ends = {"abort"}
            await self.ended(transaction)
        except AbortableTransactionError as error:
            self.note(f"{error!r}"[:300])
            transaction.ends = {"abort"}
            await self.ended(transaction)
        except KafkaTimeoutError as error:  # the outcome is for the next call to find
            self.note(f"{error!r}"[:300])
            transaction.ends = {"commit", "abort"}
            await self.start_over()
        except FatalError as error:
            await self.fatal(transaction, error)

    async def fill_and_raise(self, transaction: Transaction, sends: list[int], offsets: bool, end: str) -> None:
        await self.fill(transaction, sends, offsets, None)
        if end == "abort":
            raise ZeroDivisionError

    async def ended(self, transaction: Transaction) -> None:
        """A block that raised has tried to abort: if it could not, the transaction is aborted now."""
        if await self.state() == "in a transaction":
            await self.abort(transaction)
        elif await self.state() != "ready":
            await self.start_over()

    async def fatal(self, transaction: Transaction, error: FatalError) -> None:
        self.check_fatal(error)
        transaction.ends = {"commit", "abort"} if error.outcome_unknown else {"abort"}
        self.broker.clear_faults()
        await self.start_over()
        self.may_be_fatal = self.may_time_out

    def check_fatal(self, error: FatalError) -> None:
        self.note(f"{error!r}"[:300])
        assert self.may_be_fatal, f"nothing has fenced the producer: {error!r}"

    # What the application calls

    async def begin_transaction(self, cut: float | None) -> None:
        while True:
            try:
                if cut is None:
                    await self.call(self.producer.begin_transaction)
                else:
                    await self.cut(cut, lambda: self.call(self.producer.begin_transaction))
            except CutShort:
                cut = None
                if self.face == "threads" and await self.state() == "in a transaction":
                    return  # the signal came when it was done
                continue
            return

    async def fill(self, transaction: Transaction, sends: list[int], offsets: bool, cut: float | None) -> None:
        number = len(self.transactions)
        for index, where in enumerate(sends):
            topic, partition = ALL[where]
            value = b"%d-%d" % (number, index)
            record = (topic, partition, value)

            async def send(record: tuple[str, int, bytes] = record) -> None:
                await self.call(self.producer.send, record[0], record[2], partition=record[1])

            if cut is not None and index % 2 and self.face == "asyncio":
                with suppress(CutShort):  # then it is not in the transaction
                    await self.cut(cut, send)
                    transaction.sent.append(record)
                continue
            transaction.sent.append(record)
            await send()
            if index == 5:
                with suppress(KafkaTimeoutError):
                    await self.call(self.producer.flush, timeout=5, limit=5)
        if offsets:
            transaction.offset = number
            await self.call(self.producer.send_offsets_to_transaction, {OFFSETS: number}, GROUP)

    async def end(self, transaction: Transaction, ends: list[str], cuts: list[float]) -> None:
        """Commit or abort, by calls until one has said how it ended."""
        possible = transaction.ends
        tries = iter(cuts)
        for number in range(50):
            end = ends[min(number, len(ends) - 1)]
            cut = next(tries, None)
            if cut is None and possible:  # what may be under way, until it has its outcome
                end = sorted(possible)[number % len(possible)]
            outcome = await self.try_to(end, cut)
            if outcome == "returned":
                transaction.ends = {end}
                return
            state = await self.state()
            if outcome == "cut":
                if state in {"in a transaction", "ready"}:
                    possible.add(end)
                else:  # it is known which one is under way
                    transaction.ends = possible = {"commit" if state == "committing" else "abort"}
            elif state == "ready":
                assert possible, "a transaction has ended that no call was to end"
                return
        raise AssertionError(f"the transaction does not end: {possible}, {await self.call(self.producer.health)}")

    async def try_to(self, end: str, cut: float | None) -> str:
        function = getattr(self.producer, f"{end}_transaction")
        try:
            if cut is None:
                await self.call(function)
            elif cut < 0.25:
                await self.call(function, timeout=cut / 10, limit=1)
            else:
                await self.cut((cut - 0.25) * 4 / 3, lambda: self.call(function))
        except CutShort:
            outcome = "cut"
        except KafkaTimeoutError:
            outcome = "cut"
        except (IllegalStateError, IllegalOperation):
            outcome = "refused"
        else:
            outcome = "returned"
        self.note(f"{end} {outcome}")
        return outcome

    async def abort(self, transaction: Transaction) -> None:
        """Abort, as often as it takes."""
        transaction.ends = {"abort"}
        for _ in range(20):
            try:
                await self.call(self.producer.abort_transaction, timeout=5, limit=5)
            except KafkaTimeoutError:
                continue
            except (IllegalStateError, IllegalOperation):
                assert await self.state() == "ready"
            except FatalError as error:
                self.check_fatal(error)
                await self.start_over()
            return
        raise AssertionError("a transaction cannot be aborted")

    # The end

    async def finish(self) -> None:
        self.broker.clear_faults()
        # A process that gets no processor for half a second would let the last records expire, which shows nothing.
        self.options["delivery_timeout_ms"] = 20_000
        await self.start_over()
        await self.transact([0, 1, 2, 3], True, ["commit"], [], False)
        assert self.transactions[-1].ends == {"commit"}, "nothing fails any more, and a commit does not come through"
        await self.call(self.producer.close)
        for where in ALL:
            self.check_partition(where)
        offset = None
        for transaction in self.transactions:
            if transaction.offset is not None and self.is_visible(transaction, transaction.ends):
                offset = transaction.offset
        if all(len(transaction.ends) == 1 for transaction in self.transactions):
            stored = self.broker.committed(GROUP, *OFFSETS)
            assert stored == offset, f"offset {stored} is committed, and not {offset}"

    def check_partition(self, where: tuple[str, int]) -> None:
        found = [record.value for record in self.broker.records(*where, committed=True)]
        expected = []
        for transaction in self.transactions:
            if self.is_visible(transaction, transaction.ends):
                expected += [value for topic, number, value in transaction.sent if (topic, number) == where]
        assert found == expected, f"{where}: {found} is visible, and not {expected}"

    def is_visible(self, transaction: Transaction, ends: set[str]) -> bool:
        assert ends, "a transaction without an end"
        if len(ends) == 1 or not transaction.sent:
            return ends == {"commit"}
        there = {
            value in {record.value for record in self.broker.records(topic, number, committed=True)}
            for topic, number, value in transaction.sent
        }
        assert len(there) == 1, f"a transaction is torn: {transaction}"
        return there.pop()

    async def free(self) -> None:
        if self.producer is not None:
            with suppress(Exception):
                await self.call(self.producer.close, timeout=0)
        self.broker.close()
