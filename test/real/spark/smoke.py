"""What each supported release of Spark can do, as a program of its own: ``python smoke.py SERVERS TOPIC TARGET HOME``.

Run with the interpreter of an environment that has that release, with the project on its path as an installed package.
Prints a line of JSON for each thing that was tried: its name, whether it went well, how long it took, and the words of
an error. Nothing of the test library is imported here.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

COUNT = 2000


class Smoke:
    """The things that are tried."""

    def __init__(self, servers: str, topic: str, target: str, home: str) -> None:
        from kafka.spark.session import local_session

        self.servers, self.topic, self.target, self.home = servers, topic, target, Path(home)
        self.spark = local_session("smoke", configs={"spark.driver.memory": "1g", "spark.log.level": "ERROR"})

    def found_without_registration(self) -> str:
        """In a session of its own, in which nobody has registered anything."""
        from pyspark.sql import SparkSession

        self.spark.stop()
        builder = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false")
        self.spark = builder.config("spark.driver.memory", "1g").config("spark.log.level", "ERROR").getOrCreate()
        reader = self.spark.read.format("purekafka").option("kafka.bootstrap.servers", self.servers)
        return reader.option("subscribe", self.topic).load().schema.simpleString()

    def batch_write(self) -> int:
        rows = self.spark.range(COUNT).selectExpr("cast(id as string) value", "cast(id % 10 as string) key")
        self._to(rows.write.format("purekafka"), self.topic).mode("append").save()
        return COUNT

    def batch_read(self) -> list[int]:
        rows = self._from(self.spark.read.format("purekafka")).option("includeHeaders", "true").load()
        found = sorted(int(row.value) for row in rows.select("value").collect())
        assert found == list(range(COUNT)), f"{len(found)} rows"
        return [len(found), rows.rdd.getNumPartitions()]

    def chosen_columns(self) -> list[str]:
        rows = self._from(self.spark.read.format("purekafka").schema("offset bigint, value binary")).load()
        assert rows.count() == COUNT
        return list(rows.columns)

    def wrong_options_in_load(self) -> str:
        try:
            self.spark.read.format("purekafka").option("subscribe", "x").load()
        except Exception as error:
            assert "must be specified for configuring Kafka consumer" in str(error), str(error)
            return type(error).__name__
        raise AssertionError("nothing was wrong")

    def streaming_copy(self) -> list[Any]:
        """Read and write a stream, twice with one checkpoint; the second run copies what came in between."""
        first = self._copy("copy", self.target, "false")
        rows = self.spark.range(COUNT, COUNT + 100).selectExpr("cast(id as string) value")
        self._to(rows.write.format("purekafka"), self.topic).mode("append").save()
        second = self._copy("copy", self.target, "false")
        assert self._values(self.target) == list(range(COUNT + 100))
        return [first, second]

    def streaming_copy_exactly_once(self) -> int:
        batches = self._copy("once", self.target + "-once", "true")
        for path in (self.home / "once" / "commits").iterdir():
            path.unlink()  # as if the driver had died before it noted that the last batch is done
        self._copy("once", self.target + "-once", "true")
        found = self._values(self.target + "-once")
        assert found == list(range(COUNT + 100)), f"{len(found)} rows"
        return batches

    def limits_of_batches(self) -> int:
        """Before Spark 4.2 there are none, and a warning says so."""
        return self._copy("limited", self.target + "-limited", "false", maxOffsetsPerTrigger="500")

    def skipped_data(self) -> list[int]:
        """A query that may lose records continues behind what was deleted; the test looks for the sentence."""
        from kafka import KafkaAdminClient, KafkaProducer

        topic, found = self.target + "-lossy", []
        with (
            KafkaProducer(bootstrap_servers=self.servers) as producer,
            KafkaAdminClient(bootstrap_servers=self.servers) as admin,
        ):
            for count, first_left in ((100, None), (300, 390)):
                for number in range(count):
                    producer.send(topic, b"%d" % number, partition=0)
                producer.flush()
                if first_left is not None:
                    admin.delete_records({(topic, 0): first_left})
                rows = self.spark.readStream.format("purekafka").option("kafka.bootstrap.servers", self.servers)
                rows = rows.options(subscribe=topic, startingOffsets="earliest", failOnDataLoss="false").load()
                query = self._run(rows.writeStream.format("noop"), "lossy", processingTime="0 seconds")
                found.append(sum(progress["numInputRows"] for progress in query.recentProgress))
        return found

    def _copy(self, name: str, target: str, once: str, **options: str) -> int:
        rows = self._from(self.spark.readStream.format("purekafka")).options(**options)
        writer = rows.option("startingOffsets", "earliest").load().select("key", "value").writeStream
        self._run(self._to(writer.format("purekafka"), target).option("exactlyOnce", once), name, availableNow=True)
        return len(list((self.home / name / "commits").glob("[0-9]*")))

    def _run(self, writer: Any, name: str, **trigger: Any) -> Any:
        """Run a query until it has processed what there is; return it, ended."""
        writer = writer.option("checkpointLocation", str(self.home / name)).trigger(**trigger)
        for attempt in range(5):
            query = writer.start()
            try:
                if "availableNow" in trigger:
                    query.awaitTermination()
                else:
                    query.processAllAvailable()
                    query.stop()
            except Exception as error:  # on a busy machine Spark gives its own processes too little time
                if "Python worker failed to connect back" not in str(error) or attempt == 4:
                    raise
            else:
                break
        return query

    def _from(self, reader: Any) -> Any:
        return reader.option("kafka.bootstrap.servers", self.servers).option("subscribe", self.topic)

    def _to(self, writer: Any, topic: str) -> Any:
        return writer.option("kafka.bootstrap.servers", self.servers).option("topic", topic)

    def _values(self, topic: str) -> list[int]:
        reader = self.spark.read.format("purekafka").option("kafka.bootstrap.servers", self.servers)
        rows = reader.option("subscribe", topic).option("kafka.isolation.level", "read_committed").load()
        return sorted(int(row.value) for row in rows.select("value").collect())


def attempt(name: str, what: Callable[[], Any]) -> None:
    """Try something and say what came of it."""
    began = time.monotonic()
    said: dict[str, Any] = {"what": name}
    try:
        said |= {"ok": True, "result": what()}
    except Exception as error:
        said |= {"ok": False, "error": f"{type(error).__name__}: {error}"[:1500]}
    print(json.dumps({**said, "seconds": round(time.monotonic() - began, 1)}), flush=True)


def main(*words: str) -> None:
    """Try everything."""
    import pyspark

    import kafka

    logging.basicConfig(level=logging.WARNING)
    smoke = Smoke(*words)
    attempt("versions", lambda: [pyspark.__version__, kafka.__file__])
    for name in (
        "found_without_registration",
        "batch_write",
        "batch_read",
        "chosen_columns",
        "wrong_options_in_load",
        "streaming_copy",
        "streaming_copy_exactly_once",
        "limits_of_batches",
        "skipped_data",
    ):
        attempt(name, getattr(smoke, name))
    smoke.spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
