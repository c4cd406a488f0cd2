"""The whole programs of docs/spark.rst, run as they stand.

They are programs of an environment that is not activated: python3 on the path, which Spark's processes would run by
themselves, is another one.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kafka.broker import Broker
from test.embedded.spark.failing_programs import ATTEMPTS, TOO_BUSY

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]


@pytest.fixture(autouse=True)
def wrong_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = tmp_path / "path" / "python3"
    wrong.parent.mkdir()
    wrong.write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
    wrong.chmod(0o755)
    monkeypatch.setenv("PATH", str(wrong.parent), prepend=os.pathsep)


def start(name: str, *words: str, **how: Any) -> subprocess.Popen[str]:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK_")}
    environment["PYTHONUNBUFFERED"] = "1"
    return subprocess.Popen(
        [sys.executable, str(EXAMPLES / name), *words],
        stdout=subprocess.PIPE,
        stderr=how.pop("stderr", subprocess.STDOUT),
        text=True,
        env=environment,
        cwd=EXAMPLES.parents[1],
        **how,
    )


def run(name: str, *words: str) -> tuple[int, str]:
    """Run a program; again where the machine was too busy to start Spark's process in ten seconds."""
    for _ in range(ATTEMPTS):
        with start(name, *words) as process:
            shown = process.communicate(timeout=500)[0]
        if TOO_BUSY not in shown:
            break
    return process.returncode, shown


def test_dead_letters_and_three_outputs_from_one_read(broker: Broker, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install 'purekafka[spark]'")
    good = [json.dumps({"user": f"u{number}", "amount": number / 2}).encode() for number in range(8)]
    bad = [b"no json", b'{"user":"u","amount":"much"}']
    broker.append_many("events", good + bad, partition=1)
    broker.create_topic("dead", partitions=1)
    words = [broker.bootstrap_servers, "events", "out", "dead", str(tmp_path / "parquet"), str(tmp_path / "checkpoint")]
    code, shown = run("spark_dead_letters.py", *words)
    assert code == 0, shown
    assert sorted(record.value or b"" for record in broker.records("out")) == sorted(good)
    letters = {record.value: dict(record.headers) for record in broker.records("dead")}
    assert letters == {
        value: {"topic": b"events", "partition": b"1", "offset": b"%d" % (8 + number)}
        for number, value in enumerate(bad)
    }
    rows = [row for path in (tmp_path / "parquet").glob("batch=*") for row in pq.read_table(path).to_pylist()]
    assert sorted(row["amount"] for row in rows) == [number / 2 for number in range(8)]
    fetched = sum(seen.name == "Fetch" for seen in broker.requests)
    assert fetched <= 4, "the topic was read more than once"


def test_a_program_that_is_asked_to_stop_ends_between_two_batches(broker: Broker, tmp_path: Path) -> None:
    broker.append_many("events", [b"%d" % number for number in range(50)])
    checkpoint = tmp_path / "checkpoint"
    for _ in range(ATTEMPTS):
        with start("spark_clean_stop.py", broker.bootstrap_servers, "events", "out", str(checkpoint)) as process:
            assert process.stdout is not None
            shown = []
            for line in process.stdout:
                shown.append(line)
                if line.startswith("copy: batch 0, 50 rows"):
                    process.send_signal(signal.SIGTERM)
        if not any(TOO_BUSY in line for line in shown):
            break
    assert process.returncode == 0, "".join(shown)
    assert any("stopping after the batch in hand" in line for line in shown), "".join(shown)
    begun, done = ({path.name for path in (checkpoint / name).glob("[0-9]*")} for name in ("offsets", "commits"))
    assert begun == done  # none is repeated by the next start
    assert len(broker.records("out")) == 50


def test_an_error_in_one_line(broker: Broker) -> None:
    code, shown = run("spark_one_line_errors.py", broker.bootstrap_servers, "evnets")
    assert code == 1
    lines = shown.splitlines()
    assert lines[-1].startswith("evnets: ")
    assert "Topic 'evnets' does not exist" in lines[-1]
    assert sum("does not exist" in line for line in lines) == 1
    assert len(lines) <= 12, shown  # what Java prints before there is a log


def test_lag_by_query_for_prometheus(broker: Broker, tmp_path: Path) -> None:
    broker.append_many("events", [b"1"] * 5, partition=1)
    metrics = tmp_path / "spark_counts.prom"
    began = int(time.time())
    words = [broker.bootstrap_servers, "events", str(tmp_path / "checkpoint"), str(tmp_path)]
    code, shown = run("spark_lag.py", *words)
    assert code == 0, shown
    *shown_lags, alive = metrics.read_text(encoding="utf-8").splitlines()
    assert shown_lags == [
        'spark_kafka_lag{query="counts",topic="events",partition="0"} 0',
        'spark_kafka_lag{query="counts",topic="events",partition="1"} 0',
    ]
    assert alive.startswith('spark_kafka_alive{query="counts"} ')
    assert began <= int(alive.split()[-1]) <= time.time()
