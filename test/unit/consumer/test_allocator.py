"""Memory of replies that went is there for those that come."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

from kafka.consumer.fetch_response import keep_freed_memory

ROUNDS = 50

# As fetching does: a reply of a megabyte, and its partition's part, which goes when the next reply is there already.
PROGRAM = f"""
import resource, sys
from kafka.consumer.fetch_response import keep_freed_memory

def replies(count):
    for _ in range(count):
        frame = bytearray(1 << 20)
        part = bytes(frame)

if sys.argv[1] == "keep":
    keep_freed_memory()
replies(5)
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
replies({ROUNDS})
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(how: str, **environ: str) -> int:
    inherited = {
        name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_TUNABLES"))
    }
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, how],
        env={**inherited, **environ},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return int(done.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries go their own way")
@pytest.mark.skipif(sys.maxsize < 1 << 32, reason="with 32 bits glibc follows blocks up to 512 KiB only")
def test_memory_that_replies_leave_is_not_given_back_before_the_next_one() -> None:
    # A reply has 256 pages, so without it there are some hundred a round.
    assert faults("keep") < 20 * ROUNDS


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other C libraries go their own way")
def test_the_environment_describes_the_allocator() -> None:
    assert faults("keep", MALLOC_TRIM_THRESHOLD_="131072") > 100 * ROUNDS


def test_a_system_without_memory_left_does_not_refuse_to_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing_left(_size: int) -> bytes:
        raise MemoryError

    monkeypatch.setattr("kafka.consumer.fetch_response.bytes", nothing_left, raising=False)
    keep_freed_memory.__wrapped__()
