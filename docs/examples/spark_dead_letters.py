"""Read JSON events once; write the good ones to a topic and as Parquet, and the others to a topic of dead letters.

python spark_dead_letters.py localhost:9092 events checked events-dead /tmp/events /tmp/checkpoint
"""

import sys

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import kafka.spark

servers, source, sink, dead_letters, parquet, checkpoint = sys.argv[1:]
SCHEMA = "user string, amount double"
CORRUPT = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": "_corrupt"}

spark = SparkSession.builder.appName("dead letters").getOrCreate()
kafka.spark.register(spark)

records = (
    spark.readStream.format("purekafka")
    .option("kafka.bootstrap.servers", servers)
    .option("subscribe", source)
    .option("startingOffsets", "earliest")
    .load()
)
text = F.col("value").cast("string")
events = records.withColumn("event", F.from_json(text, f"{SCHEMA}, _corrupt string", CORRUPT))
malformed = F.col("event").isNull() | F.col("event._corrupt").isNotNull()


def topic(name: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": servers, "topic": name}


def write(batch: DataFrame, batch_id: int) -> None:
    batch = batch.persist()  # three outputs, one read
    try:
        good = batch.where(~malformed)
        good.select("key", "value").write.format("purekafka").options(**topic(sink)).mode("append").save()
        good.select("event.user", "event.amount").write.mode("overwrite").parquet(f"{parquet}/batch={batch_id}")
        origin = F.array(
            *(
                F.struct(F.lit(name).alias("key"), F.col(name).cast("string").cast("binary").alias("value"))
                for name in ("topic", "partition", "offset")
            )
        )
        bad = batch.where(malformed).select("key", "value", origin.alias("headers"))
        bad.write.format("purekafka").options(**topic(dead_letters)).mode("append").save()
    finally:
        batch.unpersist()


query = (
    events.writeStream.foreachBatch(write)
    .option("checkpointLocation", checkpoint)
    .queryName("dead-letters")
    .trigger(availableNow=True)
    .start()
)
query.awaitTermination()
