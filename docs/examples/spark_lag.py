"""Write how far each query is behind to a file that Prometheus's node exporter reads (its textfile collector).

python spark_lag.py localhost:9092 events /tmp/checkpoint /var/lib/node_exporter/spark.prom
"""

import sys
from pathlib import Path

from pyspark.sql import SparkSession

import kafka.spark
from kafka import TopicPartition

servers, source, checkpoint, metrics = sys.argv[1:]
spark = SparkSession.builder.appName("lag").getOrCreate()
kafka.spark.register(spark)


def export(query: str, lag: dict[TopicPartition, int]) -> None:
    lines = [
        f'spark_kafka_lag{{query="{query}",topic="{tp.topic}",partition="{tp.partition}"}} {behind}\n'
        for tp, behind in sorted(lag.items())
    ]
    whole = Path(metrics).with_suffix(".new")
    whole.write_text("".join(lines), encoding="utf-8")
    whole.replace(metrics)  # a reader sees the old file or the new one


spark.streams.addListener(kafka.spark.LagListener(export))
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
