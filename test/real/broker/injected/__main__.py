"""Write the table of injected errors: ``python -m test.real.broker.injected docs/injected_errors.csv``.

With names of APIs behind the file it asks about these alone.
"""

from __future__ import annotations

import csv
import sys
from contextlib import ExitStack
from pathlib import Path

from .compare import HEADINGS, Sides, line, reactions
from .rows import ROWS


def main() -> int:
    """Ask all three clients about each row, on both brokers; a difference is printed, and the exit code is 1."""
    target, *apis = sys.argv[1:]
    differing = 0
    lines = []
    with ExitStack() as stack:
        sides = Sides(stack)
        for row in ROWS:
            if apis and row.api not in apis:
                continue
            theirs, ours = reactions(sides.kafka, row), reactions(sides.embedded, row)
            lines.append(line(row, theirs))
            same = theirs == ours
            differing += not same
            print("same  " if same else "DIFFER", row, theirs, "" if same else ours, flush=True)
    with Path(target).open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([HEADINGS, *lines])
    print(f"{len(lines)} rows, {differing} differ")
    return int(bool(differing))


if __name__ == "__main__":
    sys.exit(main())
