"""A program writes to Apache Kafka and reads it, as a batch and as a stream in transactions; the long tests are soak.

It is a whole program in a packed environment, so that Java starts once for the round trip and for what a user's program
finds by itself.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from kafka import KafkaProducer
from test.real.kafka_process import KafkaCluster
from test.spark_runs.quick_start import QUICK_JAVA

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'purekafka[spark]'")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

ROOT = Path(__file__).parents[3]
COUNT = 1000
PROGRAM = """
import json, sys
from pathlib import Path
from pyspark.sql import SparkSession
import kafka.spark

servers, found, source, target, checkpoint, count, root, java = sys.argv[1:]
builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
builder = builder.config("spark.driver.extraJavaOptions", java).config("spark.sql.shuffle.partitions", "2")
spark = builder.getOrCreate()
at = {"kafka.bootstrap.servers": servers}
frame = spark.read.format("purekafka").options(**at, subscribe=found)
print("found:", frame.load().count())
kafka.spark.register(spark)
print("registered:", frame.load().count())

sys.path.insert(0, root)
from test.spark_runs.sessions import finish

headers = "array(named_struct('key', 'n', 'value', cast(cast(id as string) as binary))) headers"
rows = spark.range(int(count)).selectExpr("cast(id as string) value", "cast(id % 7 as string) key", headers)
rows.write.format("purekafka").options(**at, topic=source).mode("append").save()
stream = spark.readStream.format("purekafka").options(**at, subscribe=source, startingOffsets="earliest").load()
writer = stream.select("key", "value").writeStream.format("purekafka").options(**at, topic=target)
writer = writer.option("exactlyOnce", "true").option("checkpointLocation", checkpoint)
finish(writer)
for path in (Path(checkpoint) / "commits").iterdir():
    path.unlink()  # as if the driver had died before it noted that the batch is done
finish(writer)
back = spark.read.format("purekafka").options(**at, subscribe=source, includeHeaders="true").load()
print(json.dumps(sorted((int(row.value), int(row.key), int(row.headers[0].value)) for row in back.collect())))
at["kafka.isolation.level"] = "read_committed"
copied = spark.read.format("purekafka").options(**at, subscribe=target).load()
print(json.dumps(sorted(int(row.value) for row in copied.select("value").collect())))
spark.stop()
"""


def test_a_program_finds_the_package_of_its_interpreter_writes_reads_and_copies_once(
    kafka: KafkaCluster, tmp_path: Path
) -> None:
    """With PYSPARK_PYTHON as after --archives: relative, which leads to the interpreter in the driver's directory.

    The format is there before register(), and register() replaces nothing, of which Spark would warn.
    """
    mark = uuid.uuid4().hex[:8]
    found, source, target = (kafka.create_topic(f"{name}-{mark}", partitions=2) for name in ("found", "events", "out"))
    with KafkaProducer(bootstrap_servers=kafka.bootstrap_servers) as producer:
        for number in range(10):
            producer.send(found, b"%d" % number, partition=number % 2)
    packed = tmp_path / "environment" / "bin"
    packed.mkdir(parents=True)
    (packed / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n', encoding="utf-8")
    (packed / "python").chmod(0o755)
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYSPARK_")}
    environment.update(PYSPARK_PYTHON="./environment/bin/python", SPARK_LOCAL_IP="127.0.0.1")
    given = (
        kafka.bootstrap_servers,
        found,
        source,
        target,
        str(tmp_path / "checkpoint"),
        str(COUNT),
        str(ROOT),
        QUICK_JAVA,
    )
    words = [sys.executable, "-c", PROGRAM, *given]
    done = subprocess.run(
        words, capture_output=True, text=True, timeout=800, check=False, env=environment, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr[-3000:]
    first, second, back, copied = done.stdout.splitlines()
    assert (first, second) == ("found: 10", "registered: 10")
    assert "replaced a" not in done.stderr
    assert json.loads(back) == [[number, number % 7, number] for number in range(COUNT)]
    assert json.loads(copied) == list(range(COUNT))
