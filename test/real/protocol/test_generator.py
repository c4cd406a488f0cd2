"""What is committed is what the generator writes from the jars."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from test.real import kafka_jars
from test.real.conftest import need_kafka

ROOT = Path(__file__).parents[3]


def test_the_committed_definitions_are_what_the_generator_writes() -> None:
    old, new = need_kafka("3.9.1"), need_kafka("4.3.1")
    newest = [
        kafka_jars.jar(new, artifact)
        for artifact in ("kafka-clients", "kafka-group-coordinator", "kafka-transaction-coordinator")
    ]
    command = [
        sys.executable,
        str(ROOT / "tools" / "generate_protocol.py"),
        "--check",
        str(kafka_jars.jar(old, "kafka-clients")),
        ",".join(map(str, newest)),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
