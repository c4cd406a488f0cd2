"""The clients of the Simple* era against brokers of each generation."""

from __future__ import annotations

import pytest

from kafka.broker import Broker
from test.simple_era import PROGRAMS, Program

RELEASES = ["0.8.2", "0.9", "0.10", "0.11", "2.8", "4.3"]


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_programs_of_the_simple_era_run_on_every_release(program: Program, release: str) -> None:
    with Broker(nodes=2, topics={"events": 2}, as_version=release) as broker:
        program(broker.bootstrap_servers, "events")
