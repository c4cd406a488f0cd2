"""Random histories of clients on both faces: a few of each kind in every run, as many as there is time for by request.

``make soak`` lives through them for PUREKAFKA_SECONDS (an hour by default), from PUREKAFKA_SEED on.
``python -m test.embedded.histories KIND SEEDS`` lives through chosen ones.
"""

from __future__ import annotations

import os
import random
import time

import pytest

from .history import FACES, live, shortened
from .kinds import KINDS

#: How many histories of a kind take some seconds.
FEW = {"consumers": 11, "producers": 6, "transactions": 5}


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("face", FACES)
@pytest.mark.parametrize("name", list(KINDS))
def test_promises_hold_in_some_histories(name: str, face: str) -> None:
    for seed in range(FEW[name]):
        outcome = live(KINDS[name], seed, face)
        assert not outcome.problem, str(shortened(outcome))


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_promises_hold_for_as_long_as_there_is_time(capsys: pytest.CaptureFixture[str]) -> None:
    ends = time.monotonic() + float(os.environ.get("PUREKAFKA_SECONDS", "3600"))
    first = int(os.environ.get("PUREKAFKA_SEED", random.randrange(1 << 30)))
    failures, histories, operations = [], 0, 0
    for seed in range(first, 1 << 40):
        for name, face in ((name, face) for name in KINDS for face in FACES):
            if time.monotonic() > ends:
                break
            outcome = live(KINDS[name], seed, face)
            histories += 1
            operations += outcome.operations
            if outcome.problem:
                failures.append(str(shortened(outcome)))
                with capsys.disabled():
                    print(failures[-1], flush=True)
        else:
            continue
        break
    with capsys.disabled():
        print(
            f"from PUREKAFKA_SEED={first}: {histories} histories, {operations} operations, {len(failures)} violations"
        )
    assert not failures, "\n\n".join(failures)
