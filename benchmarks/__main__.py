"""``python -m benchmarks``: see benchmarks/harness.py."""

import sys

from benchmarks.harness import main

if __name__ == "__main__":
    sys.exit(main())
