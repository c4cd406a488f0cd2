"""Many random histories, for an hour if it must be: ``python -m test.embedded.histories consumers 0-199``."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator

from .history import FACES, live, shortened
from .kinds import KINDS


def seeds(text: str) -> Iterator[int]:
    """Yield the seeds of a range; all from a number on if the range has no end."""
    low, dash, high = text.partition("-")
    number = int(low)
    while True:
        yield number
        number += 1
        if not dash or (high and number > int(high)):
            return


def main() -> int:
    parser = argparse.ArgumentParser(description="live through random histories of clients of both faces")
    parser.add_argument("kind", help="all, or some of: " + ", ".join(KINDS))
    parser.add_argument("seeds", help="like 7, 0-199, or 0- for all that there is time for")
    parser.add_argument("--face", choices=FACES, action="append")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin no more after that")
    parser.add_argument("--length", type=int, default=0, help="steps of a history")
    parser.add_argument("--steps", help="some steps of one history, as a failure prints them")
    parser.add_argument("--whole", action="store_true", help="do not make a history that fails shorter")
    parser.add_argument("--until-failure", action="store_true")
    options = parser.parse_args()
    names = list(KINDS) if options.kind == "all" else options.kind.split(",")
    chosen = None
    if options.steps:
        chosen = [] if options.steps == "none" else [int(number) for number in options.steps.split(",")]
    begun = time.monotonic()
    counts = {(name, face): [0, 0, 0] for name in names for face in options.face or FACES}
    for seed in seeds(options.seeds):
        for (name, face), count in counts.items():
            if time.monotonic() - begun > options.seconds:
                break
            outcome = live(KINDS[name], seed, face, chosen, options.length)
            count[0] += 1
            count[1] += outcome.operations
            if outcome.problem:
                count[2] += 1
                print(f"{time.strftime('%H:%M:%S')} {name} {seed} {face}: {outcome.problem}", flush=True)
                print(outcome if options.whole or chosen else shortened(outcome), end="\n\n", flush=True)
        if time.monotonic() - begun > options.seconds or (options.until_failure and any(c[2] for c in counts.values())):
            break
    for (name, face), (histories, operations, failed) in counts.items():
        print(f"{name}, {face}: {histories} histories, {operations} operations, {failed} violations")
    print(f"{time.monotonic() - begun:.0f} s")
    return 1 if any(count[2] for count in counts.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
