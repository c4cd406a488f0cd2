"""A program on Spark that fails, as a user would write it.

python failing_programs.py batch|stream|write OPTIONS

OPTIONS is a JSON object.
"""

from __future__ import annotations

import json
import sys
from typing import Any

from pyspark.sql import SparkSession

import kafka.spark


def batch(spark: Any, options: dict[str, str]) -> None:
    """Count a topic."""
    rows = spark.read.format("purekafka").options(**options).load()
    print("rows:", rows.count())


def stream(spark: Any, options: dict[str, str]) -> None:
    """Read what a topic has."""
    checkpoint = options.pop("checkpoint")
    rows = spark.readStream.format("purekafka").options(**options).load()
    writer = rows.writeStream.format("noop").option("checkpointLocation", checkpoint)
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    print("rows:", sum(each["numInputRows"] for each in query.recentProgress))


def write(spark: Any, options: dict[str, str]) -> None:
    """Write a row."""
    rows = spark.sql(options.pop("sql"))
    rows.write.format("purekafka").options(**options).mode("append").save()


if __name__ == "__main__":
    kind, given = sys.argv[1:]
    session = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
    kafka.spark.register(session)
    {"batch": batch, "stream": stream, "write": write}[kind](session, json.loads(given))
