"""Programs on Spark that fail, one after the other in one session, each as a user would write it.

    python -m test.embedded.spark.failing_programs CASES

CASES is a JSON list of objects with ``kind`` (batch, stream, write), ``options`` and ``name``. What a program prints
stands between two lines that this one prints; an exception is printed as the interpreter does at its end. A program
that Spark gives no Python process within its ten seconds, on a busy machine, is run again, from its first line.
"""

from __future__ import annotations

import json
import sys
import traceback
from typing import Any

from test.embedded.spark.programs import ATTEMPTS, TOO_BUSY

BEGIN = "===== program "
END = "===== end"


def main() -> None:
    """Run all programs."""
    from pyspark.sql import SparkSession

    import kafka.spark

    def run(case: dict[str, Any]) -> str:
        print(f"{BEGIN}{case['name']}", flush=True)
        shown = ""
        try:
            spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").getOrCreate()
            kafka.spark.register(spark)
            PROGRAMS[case["kind"]](spark, dict(case["options"]))
        except Exception:
            shown = traceback.format_exc()
        print(shown, end="", file=sys.stderr, flush=True)
        print(END, flush=True)
        return shown

    for case in json.loads(sys.argv[1]):
        for _ in range(ATTEMPTS):
            if TOO_BUSY not in run(case):
                break


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


PROGRAMS = {"batch": batch, "stream": stream, "write": write}

if __name__ == "__main__":
    main()
