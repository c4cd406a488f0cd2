"""What the C library's allocator is told before replies come in. No I/O.

Each reply of a fetch takes some megabytes and lets them go again, many times a second. glibc gives what lies free at
the heap's end back to the system when that is more than 128 KiB, or twice the largest block that was mapped and let go
so far, and then has the kernel map and clear each page anew. With replies of 1 MiB, as a single partition's are, that
happened with every one: 0.45 page faults per record of 1 KB, a third of all CPU time (November 2026). Since the limit
follows the largest block that was let go (mallopt(3), M_MMAP_THRESHOLD), one is let go of in advance.
"""

from __future__ import annotations

from contextlib import suppress
from functools import cache
from typing import Final

__all__ = ["keep_freed_memory"]

#: With half as much pages were mapped anew (0.07 a record) for replies of six partitions, twice as much saved no more.
_BLOCK: Final = 8 << 20


@cache
def keep_freed_memory() -> None:
    """Let the process keep some 16 MiB that were freed, rather than give them back and ask for them again.

    The block is not written to, so it takes no memory. Where MALLOC_TRIM_THRESHOLD_ or MALLOC_MMAP_THRESHOLD_ is set in
    the environment, that holds and this does nothing; nor does it with other C libraries than glibc.
    """
    with suppress(MemoryError):
        bytes(_BLOCK)
