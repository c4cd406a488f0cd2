"""Many histories of one kind, one line each: ``python -m test.real.broker.histories records 0-199``."""

from __future__ import annotations

import argparse
import random
import sys
import time
from contextlib import ExitStack

from .kinds import KINDS, both
from .lockstep import live, shortened


def main() -> int:
    parser = argparse.ArgumentParser(description="live through random histories on the embedded broker and on Kafka")
    parser.add_argument("kind", choices=list(KINDS))
    parser.add_argument("seeds", help="like 7 or 0-199")
    parser.add_argument("--length", type=int, help="steps of a history")
    parser.add_argument("--whole", action="store_true", help="do not make a history that differs shorter")
    options = parser.parse_args()
    low, _, high = options.seeds.partition("-")
    kind = KINDS[options.kind]
    steps = differing = 0
    begun = time.monotonic()
    with ExitStack() as stack:
        real, ours = both(stack, with_acls=kind is KINDS["rights"])
        for seed in range(int(low), int(high or low) + 1):
            rng = random.Random(f"{options.kind}/{seed}")
            outcome = live(kind, kind.steps(rng, options.length or kind.length), real, ours)
            steps += outcome.done
            if outcome.differences:
                differing += 1
                if not options.whole:
                    outcome = shortened(kind, outcome, real, ours)
                print(f"{options.kind} {seed} differs\n{outcome}", flush=True)
    print(f"{options.kind}: {steps} steps, {differing} histories differ, {time.monotonic() - begun:.0f} s")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
