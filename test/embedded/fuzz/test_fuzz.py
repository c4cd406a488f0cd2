"""P10: whatever bytes arrive, only a KafkaError comes out, in bounded time.

A quarter of a minute here, which keeps a processor busy, and an hour with ``make soak``.

``PUREKAFKA_SEED`` repeats a run; the seed and the number of inputs are printed.
"""

from __future__ import annotations

import os
import random
import time

import pytest

from .targets import TARGETS

SHORT, LONG = 3.0, 720.0  # seconds for each of the five targets


def _fuzz(name: str, seconds: float) -> None:
    seed = int(os.environ.get("PUREKAFKA_SEED") or random.SystemRandom().randrange(2**32))
    print(f"fuzz {name}: seed {seed}")
    count = TARGETS[name](random.Random(f"{name}/{seed}"), time.monotonic() + seconds)
    print(f"fuzz {name}: {count} inputs in {seconds:g} s")
    assert count > 0


@pytest.mark.slow
@pytest.mark.parametrize("name", TARGETS)
def test_hostile_bytes_do_no_harm(name: str) -> None:
    _fuzz(name, SHORT)


@pytest.mark.soak
@pytest.mark.timeout(LONG + 300)
@pytest.mark.parametrize("name", TARGETS)
def test_hostile_bytes_do_no_harm_for_an_hour(name: str) -> None:
    _fuzz(name, LONG)
