"""A streaming query that may lose records: its program shows what was skipped."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from kafka.admin import KafkaAdminClient
from kafka.broker import Broker
from test.spark_runs.sessions import finish

ROOT = Path(__file__).parents[3]
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PROGRAM = """
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


def test_the_documented_sentence_is_printed_by_a_program(stream: Any, broker: Broker, tmp_path: Path) -> None:
    """It continues from the checkpoint of a query that has read 100 records."""
    checkpoint = str(tmp_path / "checkpoint")
    broker.append_many("events", [b"x"] * 100, partition=0)
    first = stream(failOnDataLoss="false").writeStream.format("noop").option("checkpointLocation", checkpoint)
    assert sum(progress["numInputRows"] for progress in finish(first).recentProgress) == 100
    broker.append_many("events", [b"x"] * 300, partition=0)
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.delete_records({("events", 0): 390})
    command = [sys.executable, "-c", PROGRAM, broker.bootstrap_servers, checkpoint]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, env=environment, check=True)
    assert "rows 10" in done.stdout
    assert "failOnDataLoss is false: skipped 290 offsets of events-0, continuing at 390" in done.stderr
