"""What a group did, judged from what its members said of themselves and what the writer knows.

P5  every record that the writer was promised was read; within a stay offsets follow each other without a gap;
    values come in the order in which they were sent;
P6  a stay begins where a commit says: not before the last one that was confirmed, not behind what was read by then.
    So a record is read twice only where its first reader had not committed it yet;
P7  a partition that was asked back was given up before the next member had it.

A member that does not say what it was assigned (Java's console consumer) has its stays guessed from what it read.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from .members import Member, each_offset


@dataclass
class Stay:
    """One partition with one member, from when its listener was told to when it was told otherwise."""

    member: Member
    partition: int
    begin: float
    end: float = math.inf
    end_kind: str = "open"
    guessed: bool = False
    reads: list[tuple[float, int, int]] = field(default_factory=list)  # time, offset, value

    def __str__(self) -> str:
        return f"{self.member.name} at partition {self.partition} from {self.begin:.3f} to {self.end:.3f}"


@dataclass
class Verdict:
    """What was wrong, and some figures."""

    wrong: list[str] = field(default_factory=list)
    records: int = 0
    lost: int = 0
    doubled: int = 0
    reordered: int = 0
    stays: int = 0
    commits: int = 0
    refused: Counter[str] = field(default_factory=Counter)  # commits, by who and why
    longest_pause: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.records} records, {self.doubled} read again, {self.stays} stays, {self.commits} commits of which "
            f"{self.refused.total()} refused {dict(self.refused) or ''}, "
            f"longest pause of a partition {self.longest_pause:.1f} s"
        )


def judge(members: Sequence[Member], written: Mapping[int, Mapping[int, int]]) -> Verdict:
    """Judge a group. ``written`` is partition -> {offset: value} of what the writer was promised."""
    verdict = Verdict()
    stays: dict[int, list[Stay]] = defaultdict(list)
    commits: dict[int, list[tuple[float, int]]] = defaultdict(list)
    for member in members:
        _go_through(member, stays, commits, verdict)
    verdict.stays = sum(map(len, stays.values()))
    for number in sorted(written.keys() | stays.keys()):
        _judge_partition(number, stays[number], commits[number], written.get(number, {}), verdict)
    return verdict


def _go_through(
    member: Member,
    stays: dict[int, list[Stay]],
    commits: dict[int, list[tuple[float, int]]],
    verdict: Verdict,
) -> None:
    present: dict[int, Stay] = {}
    for event in member.events():
        if event.kind == "assigned":
            for number in event.numbers:
                present[number] = Stay(member, number, event.time)
                stays[number].append(present[number])
        elif event.kind in {"revoked", "lost"}:
            for number in event.numbers & present.keys():
                stay = present.pop(number)
                stay.end, stay.end_kind = event.time, event.kind
        elif event.kind == "read":
            number = event.what["p"]
            rows = list(zip(each_offset(event.what["o"]), each_offset(event.what["v"]), strict=True))
            stay = _stay_of(member, number, rows[0][0], event.time, present, stays, verdict)
            stay.reads += [(event.time, offset, value) for offset, value in rows]
        elif event.kind == "committed":
            verdict.commits += 1
            for name, offset in event.what["o"].items():
                commits[int(name)].append((event.time, offset))
        elif event.kind == "refused":
            verdict.commits += 1
            verdict.refused[f"{member.kind}: {event.what['why'][:80]}"] += 1


def _stay_of(
    member: Member,
    number: int,
    offset: int,
    now: float,
    present: dict[int, Stay],
    stays: dict[int, list[Stay]],
    verdict: Verdict,
) -> Stay:
    stay = present.get(number)
    silent = member.kind == "java"
    if stay is None and not silent:
        verdict.wrong.append(f"{member.name} read offset {offset} of partition {number}, which it did not own")
    if stay is None or (silent and stay.reads and stay.reads[-1][1] + 1 != offset):
        stay = present[number] = Stay(member, number, now, guessed=True)
        stays[number].append(stay)
    return stay


def _judge_partition(
    number: int,
    stays: list[Stay],
    commits: list[tuple[float, int]],
    written: Mapping[int, int],
    verdict: Verdict,
) -> None:
    wrong = verdict.wrong
    first_read: dict[int, float] = {}
    values: dict[int, int] = {}
    times = []
    total = 0
    for time, offset, value in sorted(read for stay in stays for read in stay.reads):
        first_read.setdefault(offset, time)
        if values.setdefault(offset, value) != value:
            wrong.append(f"offset {offset} of partition {number} was {values[offset]} and then {value}")
        times.append(time)
        total += 1
    verdict.records += len(values)
    verdict.doubled += total - len(values)
    verdict.longest_pause = max([verdict.longest_pause, *(after - before for before, after in pairwise(times))])
    missing = sorted(written.keys() - values.keys())
    verdict.lost += len(missing)
    if missing:
        wrong.append(f"partition {number}: {len(missing)} records were never read, the first {missing[:5]}")
    altered = [offset for offset in written.keys() & values.keys() if written[offset] != values[offset]]
    if altered:
        wrong.append(f"partition {number}: other values than were written at {sorted(altered)[:5]}")
    order = [values[offset] for offset in sorted(values)]
    reordered = sum(before >= after for before, after in pairwise(order))
    verdict.reordered += reordered
    if reordered:
        wrong.append(f"partition {number}: values are not in the order in which they were sent")
    for stay in stays:
        _judge_stay(stay, commits, first_read, wrong)
    _judge_owners(stays, wrong)


def _judge_stay(
    stay: Stay, commits: Iterable[tuple[float, int]], first_read: Mapping[int, float], wrong: list[str]
) -> None:
    if not stay.reads:
        return
    offsets = [offset for _, offset, _ in stay.reads]
    for before, after in pairwise(offsets):
        if after != before + 1:
            wrong.append(f"{stay}: {after} came after {before}")
    began, first = stay.reads[0][0], offsets[0]
    if stay.guessed:
        return  # when it began to read is not known well enough
    confirmed = max((offset for time, offset in commits if time < stay.begin), default=0)
    if first < confirmed:
        wrong.append(f"{stay}: it began at {first} although {confirmed} was committed before")
    if first > 0 and not first_read.get(first - 1, math.inf) <= began:
        wrong.append(f"{stay}: it began at {first}, and nobody had read what is before")


def _judge_owners(stays: Sequence[Stay], wrong: list[str]) -> None:
    ours = sorted((stay for stay in stays if stay.member.is_ours), key=lambda stay: stay.begin)
    for index, stay in enumerate(ours):
        if stay.end_kind != "revoked":
            continue
        wrong.extend(
            f"{after} began before the end of {stay}"
            for after in ours[index + 1 :]
            if after.member is not stay.member and after.begin < stay.end
        )


def check(members: Sequence[Member], written: Mapping[int, Mapping[int, int]]) -> Verdict:
    """Judge, and fail with all that was wrong."""
    verdict = judge(members, written)
    if verdict.wrong:
        logs: list[Any] = [f"{member.name}:\n{member.log(200)}" for member in members if member.is_ours]
        raise AssertionError("\n".join([*verdict.wrong[:20], str(verdict), *logs]))
    return verdict
