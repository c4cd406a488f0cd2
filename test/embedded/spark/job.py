"""A streaming query as a program of its own, to be killed: copies ``events`` to ``out``, until nothing is left.

python -m test.embedded.spark.job SERVERS CHECKPOINT MASTER
"""

from __future__ import annotations

import os
import sys

from kafka.spark.session import local_session


def main(servers: str, checkpoint: str, master: str) -> None:
    paths = os.pathsep.join(path for path in sys.path if path)
    configs = {
        "spark.driver.memory": "1g",
        "spark.executor.memory": "512m",
        "spark.log.level": "ERROR",
        "spark.executorEnv.PYTHONPATH": paths,
    }
    spark = local_session("job", master=master, configs=configs)
    rows = (
        spark.readStream.format("purekafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "events")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", "2000")
        .option("rowsPerTask", "0")
        .load()
    )
    query = (
        rows.select("key", "value")
        .writeStream.format("purekafka")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", "out")
        .option("exactlyOnce", "true")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
