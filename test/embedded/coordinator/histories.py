"""Many histories of the random models, some at once in one process: most of a history is waiting.

``python -m test.embedded.coordinator.histories 2000-2399`` lives through these seeds of both models, for each kind of
group. Each history is a line of what is printed; one that fails is followed by what happened in it and by what was
logged meanwhile, by others too if there are several ``--at-once``. Any is lived through again by naming its seed,
``--model`` and ``--kind``. ``--until 18:30`` begins no more after that time of the day.
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import traceback
from collections import Counter, deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import product
from threading import Lock
from typing import Any

from . import test_consumers_model, test_model
from .test_model import KINDS

MODELS: dict[str, Callable[[int, str], Any]] = {"members": test_model.World, "consumers": test_consumers_model.World}
KEPT_LINES = 3000


class Tail(logging.Handler):
    """The last lines of the log."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(logging.Formatter("%(asctime)s %(threadName)s %(name)s %(message)s"))
        self.lines: deque[str] = deque(maxlen=KEPT_LINES)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(self.format(record))


def one(model: str, kind: str, seed: int, tail: Tail) -> str:
    """Live through one history, print how it went, and return that word."""
    begun = time.monotonic()
    world = MODELS[model](seed, kind)
    try:
        world.run()
    except BaseException:
        story = [f"FAILED {model} {kind} {seed} {time.monotonic() - begun:.1f}s", traceback.format_exc()]
        print("\n".join([*story, *world.history, "-- log", *list(tail.lines), "-- end"]), flush=True)
        return "failed"
    print(f"ok {model} {kind} {seed} {time.monotonic() - begun:.1f}s", flush=True)
    return "passed"


def numbers(text: str) -> range:
    low, _, high = text.partition("-")
    return range(int(low), int(high or low) + 1)


def wanted(options: argparse.Namespace) -> Iterator[tuple[str, str, int]]:
    """Which to live through; no more once it is late."""
    models = [options.model] if options.model else list(MODELS)
    kinds = [options.kind] if options.kind else list(KINDS)
    seeds = [seed for part in options.seeds for seed in part]
    for seed, model, kind in product(seeds, models, kinds):
        if options.until and time.strftime("%H:%M") >= options.until:
            return
        yield model, kind, seed


def main() -> int:
    parser = argparse.ArgumentParser(description="live through random histories of groups")
    parser.add_argument("seeds", nargs="+", type=numbers, help="like 7 or 2000-2399")
    parser.add_argument("--model", choices=list(MODELS))
    parser.add_argument("--kind", choices=list(KINDS))
    parser.add_argument("--at-once", type=int, default=3)
    parser.add_argument("--until", help="a time of the day like 18:30")
    options = parser.parse_args()
    tail = Tail()
    logging.getLogger().addHandler(tail)
    logging.getLogger("kafka").setLevel(logging.DEBUG if options.at_once == 1 else logging.INFO)
    results: Counter[str] = Counter()
    begun = time.monotonic()
    left, lock = wanted(options), Lock()

    def work(_: int) -> None:
        while True:
            with lock:
                if (history := next(left, None)) is None:
                    return
            results[one(*history, tail)] += 1

    with ThreadPoolExecutor(options.at_once) as pool:
        list(pool.map(work, range(options.at_once)))
    print(f"{dict(results)} in {time.monotonic() - begun:.0f} s")
    return 1 if results["failed"] else 0


if __name__ == "__main__":
    sys.exit(main())
