"""Whole programs of users, those of docs/spark.rst as they stand."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from kafka.admin import KafkaAdminClient
from kafka.broker import Broker
from test.embedded.spark.programs import ROOT, Programs

EXAMPLES = ROOT / "docs" / "examples"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

LOSING = """
import sys
import kafka.spark
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
kafka.spark.register(spark)
frame = spark.readStream.format("purekafka").option("kafka.bootstrap.servers", sys.argv[1])
frame = frame.options(subscribe="events", startingOffsets="earliest", failOnDataLoss="false").load()
query = frame.writeStream.format("noop").option("checkpointLocation", sys.argv[2]).start()
query.processAllAvailable()
print("rows", sum(progress.numInputRows for progress in query.recentProgress), flush=True)
query.stop()
"""


def test_dead_letters_and_three_outputs_from_one_read(one_process: Programs, broker: Broker, tmp_path: Path) -> None:
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed: pip install 'purekafka[spark]'")
    good = [json.dumps({"user": f"u{number}", "amount": number / 2}).encode() for number in range(8)]
    bad = [b"no json", b'{"user":"u","amount":"much"}']
    broker.append_many("events", good + bad, partition=1)
    broker.create_topic("dead", partitions=1)
    words = [broker.bootstrap_servers, "events", "out", "dead", str(tmp_path / "parquet"), str(tmp_path / "checkpoint")]
    code, shown = one_process.run(EXAMPLES / "spark_dead_letters.py", *words)
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


def test_a_program_that_is_asked_to_stop_ends_between_two_batches(
    one_process: Programs, broker: Broker, tmp_path: Path
) -> None:
    broker.append_many("events", [b"%d" % number for number in range(50)])
    checkpoint = tmp_path / "checkpoint"

    def heard(process: subprocess.Popen[str], line: str) -> None:
        if line.startswith("copy: batch 0, 50 rows"):
            process.send_signal(signal.SIGTERM)

    words = [broker.bootstrap_servers, "events", "out", str(checkpoint)]
    code, shown = one_process.run(EXAMPLES / "spark_clean_stop.py", *words, heard=heard)
    assert code == 0, shown
    assert "stopping after the batch in hand" in shown
    begun, done = ({path.name for path in (checkpoint / name).glob("[0-9]*")} for name in ("offsets", "commits"))
    assert begun == done  # none is repeated by the next start
    assert len(broker.records("out")) == 50


def test_an_error_in_one_line(one_process: Programs, broker: Broker) -> None:
    code, shown = one_process.run(EXAMPLES / "spark_one_line_errors.py", broker.bootstrap_servers, "evnets")
    assert code == 1
    lines = shown.splitlines()
    assert lines[-1].startswith("evnets: ")
    assert "Topic 'evnets' does not exist" in lines[-1]
    assert sum("does not exist" in line for line in lines) == 1
    assert len(lines) <= 12, shown  # what Java prints before there is a log


def test_lag_by_query_for_prometheus(one_process: Programs, broker: Broker, tmp_path: Path) -> None:
    broker.append_many("events", [b"1"] * 5, partition=1)
    metrics = tmp_path / "spark_counts.prom"
    began = int(time.time())
    words = [broker.bootstrap_servers, "events", str(tmp_path / "checkpoint"), str(tmp_path)]
    code, shown = one_process.run(EXAMPLES / "spark_lag.py", *words)
    assert code == 0, shown
    *shown_lags, alive = metrics.read_text(encoding="utf-8").splitlines()
    assert shown_lags == [
        'spark_kafka_lag{query="counts",topic="events",partition="0"} 0',
        'spark_kafka_lag{query="counts",topic="events",partition="1"} 0',
    ]
    assert alive.startswith('spark_kafka_alive{query="counts"} ')
    assert began <= int(alive.split()[-1]) <= time.time()


def test_a_program_shows_which_records_were_lost(one_process: Programs, broker: Broker, tmp_path: Path) -> None:
    """It continues from its checkpoint after 100 records."""
    program = tmp_path / "losing.py"
    program.write_text(LOSING, encoding="utf-8")
    words = [broker.bootstrap_servers, str(tmp_path / "checkpoint")]
    broker.append_many("events", [b"x"] * 100, partition=0)
    code, shown = one_process.run(program, *words)
    assert code == 0, shown
    assert "rows 100" in shown
    broker.append_many("events", [b"x"] * 300, partition=0)
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.delete_records({("events", 0): 390})
    code, shown = one_process.run(program, *words)
    assert code == 0, shown
    assert "rows 10" in shown
    assert "failOnDataLoss is false: skipped 290 offsets of events-0, continuing at 390" in shown
