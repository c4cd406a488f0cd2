"""Count a topic; what goes wrong ends the program with one line instead of a traceback.

python spark_one_line_errors.py localhost:9092 events
"""

import sys

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import kafka.spark

servers, source = sys.argv[1:]
# Java's log prints an error several times, with its stacks, before Python has it.
spark = SparkSession.builder.appName("count").config("spark.log.level", "OFF").getOrCreate()
kafka.spark.register(spark)

events = spark.read.format("purekafka").option("kafka.bootstrap.servers", servers).option("subscribe", source)
try:
    print(events.load().count())
except PySparkException as error:
    sys.exit(f"{source}: {kafka.spark.cause_of(error)}")
