"""A streaming query as a program of its own, to be killed: copies ``events`` to ``out``, until nothing is left.

``python -m test.spark_runs.job PLAN``, where the plan is the JSON of a `test.spark_runs.killing.Plan`.
"""

from __future__ import annotations

import json
import os
import sys
from typing import Any

from kafka.spark.session import local_session
from test.spark_runs.quick_start import QUICK_JAVA, quick_home
from test.spark_runs.stalling import StallingSource

_CONFIGS = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.executor.memory": "512m",
    "spark.executor.extraJavaOptions": QUICK_JAVA,
    "spark.sql.shuffle.partitions": "2",
    "spark.log.level": "ERROR",
    "spark.task.maxFailures": "8",
    # Small enough for a task to be stopped with some of its rows written.
    "spark.sql.execution.arrow.maxRecordsPerBatch": "200",
}


def main(plan: dict[str, Any]) -> None:
    paths = os.pathsep.join(path for path in sys.path if path)
    configs = {**_CONFIGS, "spark.executorEnv.PYTHONPATH": paths}
    with quick_home():
        spark = local_session("job", master=plan["master"], configs=configs)
    spark.dataSource.register(StallingSource)
    shared = {
        "kafka.bootstrap.servers": plan["servers"],
        "stalls": ",".join(plan["stalls"]),
        "stallsIn": plan["stalls_in"],
    }
    rows = (
        spark.readStream.format("stalling")
        .options(**shared, subscribe=plan["source"], startingOffsets=plan["start"])
        .options(maxOffsetsPerTrigger=str(plan["batch"]), rowsPerTask="0")
        .load()
    )
    query = (
        rows.select("key", "value")
        .writeStream.format("stalling")
        .options(**shared, topic=plan["target"], exactlyOnce=str(plan["exactly_once"]).lower())
        .option("checkpointLocation", plan["checkpoint"])
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(json.loads(sys.argv[1]))
