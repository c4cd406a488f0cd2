"""Programs in the style of each generation of kafka-python, each a process of its own."""

from __future__ import annotations

import sys
from contextlib import closing
from pathlib import Path
from typing import Any, Final

import pytest

import test.programs
from kafka import KafkaAdminClient, KafkaClient, KafkaConsumer, KafkaProducer
from kafka.broker import Broker
from test import quick_start

ROOT: Final = Path(__file__).parents[3]
PROGRAMS: Final = sorted(path.stem for path in Path(test.programs.__file__).parent.glob("kafka_python_*.py"))


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_of_an_older_generation_runs(program: str) -> None:
    with Broker() as broker:
        run(program, broker.bootstrap_servers, "old")


@pytest.mark.parametrize("kind", [KafkaProducer, KafkaConsumer, KafkaAdminClient, KafkaClient])
def test_the_release_of_the_brokers_is_in_the_configuration(kind: Any) -> None:
    """Programs ask ``client.config["api_version"] >= (0, 11)``."""
    with Broker(as_version="2.8") as broker:
        with closing(kind(bootstrap_servers=broker.bootstrap_servers)) as client:
            assert client.config["api_version"] == (2, 8)
            assert "api_version" not in client.config.given
        with closing(kind(bootstrap_servers=broker.bootstrap_servers, api_version=(2, 4))) as client:
            assert client.config["api_version"] == (2, 4)


def run(program: str, servers: str, prefix: str) -> None:
    """Run a program; it fails the test with what it wrote."""
    done = quick_start.run(
        [sys.executable, "-m", f"test.programs.{program}", servers, prefix], cwd=ROOT, text=True, timeout=110
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout == "done\n", done.stdout + done.stderr
