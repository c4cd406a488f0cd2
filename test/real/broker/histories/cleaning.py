"""Histories of logs that are compacted and deleted: what remains readable when the cleaners have nothing more to do.

A segment ends where a record is much newer than the first one of the segment, so both brokers have the same segments
without waiting. Times are hours away from each limit. Tombstones are kept for a day: how often a broker has compacted a
segment in the meantime decides about the others, and is up to chance. So is which segments Kafka has merged, and that
decides what retention takes of a log with both policies: such a log keeps everything here.
"""

from __future__ import annotations

import random
import time
from typing import Any

from kafka.protocol.admin import CreateTopicsRequest, DeleteRecordsRequest
from kafka.protocol.configs import DescribeConfigsRequest, IncrementalAlterConfigsRequest
from kafka.protocol.offset import ListOffsetsRequest
from kafka.record.batch import decode_batch
from kafka.record.batch_builder import BatchBuilder
from kafka.record.header import scan

from .lockstep import Kind, Step
from .records import fetched, produced

HOUR = 3_600_000
DAY = 24 * HOUR
TOPIC, SET = 2, 0
KEYS = ("a", "b", "c", "d")
OPTIONS = {
    "cleanup.policy": (),
    "retention.ms": ("-1", str(DAY), str(6 * HOUR)),
    "retention.bytes": ("-1", "-1", "1000", "300", "0"),
    "min.compaction.lag.ms": ("0", "0", str(6 * HOUR)),
}
#: The answers have been the same for this long, in seconds: many rounds of both cleaners.
QUIET = 0.6


class Cleaning(Kind):
    """One topic, whose configuration changes."""

    length = 24

    def __init__(self, side: Any) -> None:
        super().__init__(side)
        self._now = int(time.time() * 1000)

    def prepare(self) -> None:
        """Without `configure` as the first step the topic keeps everything."""
        fixed = {"segment.ms": "60000", "segment.jitter.ms": "0"}
        fixed |= {"delete.retention.ms": str(10 * DAY), "min.cleanable.dirty.ratio": "0.01", "retention.ms": "-1"}
        wanted: list[Any] = [(self.side.name("cleaned"), 1, 1, [], list(fixed.items()))]
        self.side.ask(CreateTopicsRequest[7](wanted, 30_000))
        self.side.make_topics(cleaned=1)

    @staticmethod
    def steps(rng: random.Random, length: int) -> list[Step]:
        """Make a history; `hours` is how long ago the records were made, and only becomes less."""
        has_both = rng.random() < 0.2
        names = [name for name in OPTIONS if not (has_both and name.startswith("retention"))]
        policies = ("compact", "compact,delete") if has_both else ("compact", "delete")

        def configured(wanted: list[str]) -> Step:
            options = {name: rng.choice(policies if name == "cleanup.policy" else OPTIONS[name]) for name in wanted}
            return Step("configure", {"options": options})

        steps = [configured(["cleanup.policy", *rng.sample(names[1:], min(2, len(names) - 1))])]
        hours = 72.3
        while len(steps) < length - 1:
            what = rng.choice(["write"] * 8 + ["settle"] * 2 + ["configure", "trim"])
            if what == "write":
                if rng.random() < 0.5:
                    hours = max(0.3, hours - rng.choice([0.5, 4.0, 20.0]))
                records = [
                    (rng.choice(KEYS), rng.choice([None, "x", "y" * rng.choice([1, 50]), "z"]))
                    for _ in range(rng.randint(1, 4))
                ]
                steps.append(Step("write", {"hours": hours, "records": records}))
            elif what == "configure":
                # What the cleaners have done by now is up to chance if they have more to do.
                steps.append(Step("settle", eventually=True))
                steps.append(configured(rng.sample(names, 1)))
            elif what == "trim":
                steps.append(Step("trim", {"behind": rng.choice([0, 1, 3, 8])}))
            else:
                steps.append(Step("settle", eventually=True))
        return [*steps, Step("settle", eventually=True)]

    def configure(self, options: dict[str, str]) -> Any:
        changes = [(name, SET, value) for name, value in options.items()]
        asked: list[Any] = [(TOPIC, self.side.name("cleaned"), changes)]
        reply = self.side.ask(IncrementalAlterConfigsRequest[1](asked, False))
        codes = [one.error_code for one in reply.responses]
        # The controller answers before the broker has it, and the broker shows it right before its log has it.
        deadline = time.monotonic() + 30
        while not any(codes) and time.monotonic() < deadline and not options.items() <= self._options().items():
            time.sleep(0.02)
        time.sleep(0.1)
        return codes

    def _options(self) -> dict[str, str | None]:
        request = DescribeConfigsRequest[4]([(TOPIC, self.side.name("cleaned"), list(OPTIONS))], False, False)
        return {entry.name: entry.value for entry in self.side.ask(request).results[0].configs}

    def write(self, hours: float, records: list[tuple[str, str | None]]) -> Any:
        builder = BatchBuilder(limit=100_000)
        for number, (key, value) in enumerate(records):
            at = self._now - int(hours * HOUR) + number
            builder.append(at, key.encode(), None if value is None else value.encode())
        reply = self.side.ask(produced(9, self.side.name("cleaned"), 0, bytes(builder.seal().data)))
        part = reply.responses[0].partition_responses[0]
        return part.error_code, part.base_offset

    def trim(self, behind: int) -> Any:
        """Delete all records but the last ones; where the log then begins is looked at when it has settled."""
        _, end = self._ends()
        asked: list[Any] = [(self.side.name("cleaned"), [(0, max(0, end - behind))])]
        reply = self.side.ask(DeleteRecordsRequest[2](asked, 30_000))
        # An offset that retention has passed already is out of range, and when it passes is up to chance.
        return [part.error_code in {0, 1} for one in reply.topics for part in one.partitions]

    def settle(self) -> Any:
        """Wait until nothing changes any more; return where the log begins and ends, and what can be read."""
        found, since = self._readable(), time.monotonic()
        while time.monotonic() - since < QUIET:
            time.sleep(0.05)  # a broker has no event to wait for from outside
            now = self._readable()
            if now != found:
                found, since = now, time.monotonic()
        return found

    def again(self, step: Step) -> Any:
        """One look is enough: the other side may still have had something to do."""
        return self._readable()

    def _ends(self) -> tuple[int, int]:
        found = []
        for place in (-2, -1):
            asked: list[Any] = [(self.side.name("cleaned"), [(0, -1, place)])]
            reply = self.side.ask(ListOffsetsRequest[5](replica_id=-1, isolation_level=0, topics=asked))
            found.append(reply.topics[0].partitions[0].offset)
        return found[0], found[1]

    def _readable(self) -> Any:
        start, end = self._ends()
        rows: list[Any] = []
        at = start
        while True:  # Kafka reads from one segment at a time
            part = fetched(self.side, self.side.name("cleaned"), 0, at)
            if part.error_code:  # the start has moved
                return part.error_code
            data = bytes(part.records or b"")
            for header in scan(data):
                at = header.last_offset + 1
                rows += [
                    (record.offset, record.key, record.value, self._now - record.timestamp)
                    for record in decode_batch(data, header)
                    if record.offset >= start
                ]
            if not data:
                return start, end, rows
