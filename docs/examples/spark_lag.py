"""Write how far each query is behind, and when it was last alive, for Prometheus's node exporter.

Each query has a file in the directory. A query is stuck if time() - spark_kafka_alive exceeds the time of its batches.

python spark_lag.py localhost:9092 events /tmp/checkpoint /var/lib/node_exporter
"""

import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

import kafka.spark
from kafka import TopicPartition

servers, source, checkpoint, metrics = sys.argv[1:]
spark = SparkSession.builder.appName("lag").getOrCreate()
kafka.spark.register(spark)


lags: dict[str, dict[TopicPartition, int]] = {}


def export(query: str) -> None:
    lines = [
        f'spark_kafka_lag{{query="{query}",topic="{tp.topic}",partition="{tp.partition}"}} {behind}\n'
        for tp, behind in sorted(lags.get(query, {}).items())
    ]
    lines.append(f'spark_kafka_alive{{query="{query}"}} {time.time():.0f}\n')
    file = Path(metrics) / f"spark_{query}.prom"
    whole = file.with_suffix(".new")
    whole.write_text("".join(lines), encoding="utf-8")
    whole.replace(file)  # a reader sees the old file or the new one


spark.streams.addListener(kafka.spark.LagListener(lags.__setitem__, alive=export))
query = (
    spark.readStream.format("purekafka")
    .option("kafka.bootstrap.servers", servers)
    .option("subscribe", source)
    .option("startingOffsets", "earliest")
    .load()
    .writeStream.format("noop")
    .option("checkpointLocation", checkpoint)
    .queryName("counts")  # names the query in the UI, in metrics and here
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
spark.stop()  # ends when the listeners have heard everything
