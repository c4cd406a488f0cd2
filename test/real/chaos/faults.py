"""Faults of nodes and of their network, one after the other, and the count of what came of them.

A fault lasts for some seconds. The system has recovered when a record that was sent after the fault had begun has
arrived in each partition; how long that took, from the fault's beginning, is its recovery time. The next fault comes
when the system has recovered and all replicas are in sync again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from random import Random
from statistics import median
from typing import Any

from test.real import wire
from test.real.chaos.conftest import Site

PATIENCE = 120.0
TICK = 0.05


@dataclass
class Tally:
    """What a scenario counted: one row of the table in docs/reliability.rst."""

    scenario: str
    records: int = 0
    lost: int = 0
    repeated: int = 0
    reordered: int = 0
    wrong: list[str] = field(default_factory=list)
    """What else was not as promised."""
    recoveries: list[tuple[str, float]] = field(default_factory=list)
    notes: dict[str, object] = field(default_factory=dict)

    def compare(self, found: list[int], expected: list[int]) -> None:
        """Count what is lost, repeated and reordered in a partition that should hold just `expected`."""
        times = Counter(found)
        self.records += len(expected)
        self.lost += sum(number not in times for number in expected)
        self.repeated += len(found) - len(times)
        self.reordered += sum(before > after for before, after in pairwise(dict.fromkeys(found)))
        strange = len(times.keys() - set(expected))
        if strange:
            self.wrong.append(f"{strange} records that nobody sent")

    def __str__(self) -> str:
        kinds = Counter(kind for kind, _ in self.recoveries)
        times = [seconds for _, seconds in self.recoveries] or [0.0]
        faults = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
        notes = "; ".join(f"{name}: {value}" for name, value in self.notes.items())
        return (
            f"| {self.scenario} | {self.records} | {len(self.recoveries)} ({faults}) | {self.lost} | {self.repeated} | "
            f"{self.reordered} | median {median(times):.1f}, longest {max(times):.1f} | {notes} |"
        )

    def check(self) -> None:
        """Print the row; fail unless all promises were kept."""
        print(f"\n| scenario | records | faults | lost | repeated | reordered | recovery in s | notes |\n{self}")
        assert (self.lost, self.repeated, self.reordered, self.wrong) == (0, 0, 0, []), self


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong and ends."""

    name: str
    begin: Callable[[], object]
    end: Callable[[], object]
    least: float
    most: float


def node_faults(site: Site, node: int, rng: Random) -> list[Fault]:
    """What can happen to a node and to the way to it."""
    cluster, proxy = site.cluster, site.proxies[node]

    def slow_down() -> None:
        proxy.delay_up = proxy.delay_down = rng.uniform(0.2, 1.5)

    return [
        Fault("kill -9", partial(cluster.kill, node), partial(cluster.start, node), 0.5, 4),
        Fault("SIGSTOP", partial(cluster.pause, node), partial(cluster.resume, node), 3, 12),
        Fault("network silent", proxy.hold, proxy.heal, 3, 12),
        Fault("network refusing", proxy.refuse, proxy.heal, 3, 12),
        Fault("network slow", slow_down, proxy.heal, 3, 12),
        Fault("connections cut", proxy.cut, proxy.heal, 0.1, 0.2),
    ]


class Chaos:
    """Runs faults until the time is up. `mark` says what was sent so far, `reached` whether more than that arrived."""

    def __init__(
        self,
        site: Site,
        topics: Mapping[str, int],
        rng: Random,
        tally: Tally,
        mark: Callable[[], Any],
        reached: Callable[[Any], bool],
        *,
        tick: Callable[[], object] = lambda: None,
    ) -> None:
        self.site = site
        self.rng = rng
        self.tally = tally
        self.more: Callable[[], list[Fault]] = list
        """Returns faults of the application's processes, to choose from as well."""
        self._topics = topics
        self._mark = mark
        self._reached = reached
        self._tick = tick

    def run(self, seconds: float) -> None:
        """Break something again and again."""
        end = time.monotonic() + seconds
        mark = self._mark()
        self._until(lambda: self._reached(mark), "a record in each partition before any fault")
        while time.monotonic() < end:
            faults = node_faults(self.site, self._victim(), self.rng)
            own = self.more()
            self._suffer(self.rng.choice(own if own and self.rng.random() < 0.5 else faults))
            self._until(self._in_sync, "all replicas in sync")

    def _victim(self) -> int:
        """Mostly a node that leads a partition; the others may be coordinators."""
        cluster = self.site.cluster
        if self.rng.random() < 0.3:
            return self.rng.choice(cluster.nodes)
        topic, partitions = self.rng.choice(list(self._topics.items()))
        return cluster.leader(topic, self.rng.randrange(partitions))

    def _suffer(self, fault: Fault) -> None:
        mark = self._mark()
        began = time.monotonic()
        heals_at = began + self.rng.uniform(fault.least, fault.most)
        fault.begin()
        recovered: list[float] = []

        def look() -> bool:
            if not recovered and self._reached(mark):
                recovered.append(time.monotonic() - began)
            return bool(recovered)

        while time.monotonic() < heals_at:
            self._tick()
            look()
            time.sleep(TICK)
        with ThreadPoolExecutor(1) as pool:  # a node takes seconds to start, and nobody has to wait for it
            ended = pool.submit(fault.end)
            self._until(lambda: look() and ended.done(), f"recovery from {fault.name}")
            ended.result()
        self.tally.recoveries.append((fault.name, recovered[0]))
        print(f"{fault.name} for {heals_at - began:.1f} s: recovered after {recovered[0]:.1f} s", flush=True)

    def _until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not condition():
            self._tick()
            assert time.monotonic() < deadline, f"not within {PATIENCE:.0f} s: {what}; so far: {self.tally}"
            time.sleep(TICK)

    def _in_sync(self) -> bool:
        nodes = self.site.cluster.nodes
        with suppress(OSError):
            for topic, partitions in self._topics.items():
                known = wire.metadata(self.site.cluster.address(nodes[0]), topic).in_sync.get(topic, [])
                if len(known) != partitions or set(known) != {len(nodes)}:
                    return False
            return True
        return False
