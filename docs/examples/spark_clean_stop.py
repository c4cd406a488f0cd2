"""Copy a topic until SIGTERM or Ctrl-C, and then stop between two batches, so that the next start repeats nothing.

python spark_clean_stop.py localhost:9092 events copy /tmp/checkpoint
"""

import sys
import tempfile
from pathlib import Path

from pyspark.sql import SparkSession

import kafka.spark

servers, source, sink, checkpoint = sys.argv[1:]
spark = SparkSession.builder.appName("copy").getOrCreate()
kafka.spark.register(spark)

with tempfile.TemporaryDirectory() as directory:
    hold = Path(directory, "hold")  # while this file exists, the source starts no batch
    query = (
        spark.readStream.format("purekafka")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", source)
        .option("startingOffsets", "earliest")
        .option("holdFile", str(hold))
        .load()
        .select("key", "value")
        .writeStream.format("purekafka")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", sink)
        .option("checkpointLocation", checkpoint)
        .queryName("copy")
        .trigger(processingTime="1 second")
        .start()
    )
    # Prints a line for each batch; on a signal it makes the file and stops the query when the batch has ended.
    kafka.spark.watch([query], hold=hold)
spark.stop()
