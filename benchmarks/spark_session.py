"""What the Spark benchmark does in its session: one way to run each case, for either format.

A side is a format's name; everything else is the same for both.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import spark
from process_tree import adopt_orphans, tree_cpu_s

_FORMATS = {"purekafka": "purekafka", spark.PEER: "kafka"}
_WARM_UPS = 2
# How often Spark may fail to start the process of a streaming query: it gives one ten seconds, which is a constant.
_STARTS = 50
_TOO_SLOW = "Python worker failed to connect back"
_CHECKSUM = "xxhash64(key, value, topic, partition, offset, timestamp)"


def connector_jars() -> tuple[Path, ...]:
    """The connector's jars, had as the tests have them."""
    sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "test"))
    try:
        from real import spark_jars
    finally:
        sys.path.pop(0)
    return (*spark_jars.connector_jars(), spark_jars.avro_jar())


class Session:
    """A Spark session with both sources, and one method per case: it returns what has to be equal, and figures."""

    def __init__(self, bootstrap: str) -> None:
        from kafka.schema_registry import Schema, SchemaRegistry, SchemaRegistryServer
        from kafka.spark.session import local_session

        # As with an installed package, Spark's processes find the modules compiled.
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        self._compiled = tempfile.TemporaryDirectory(prefix="bench-spark-")
        os.environ["PYTHONPYCACHEPREFIX"] = self._compiled.name
        here = str(Path(__file__).parent)
        os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, (here, os.environ.get("PYTHONPATH"))))
        self._jars = connector_jars()
        configs = {
            "spark.python.daemon.module": "python_daemon",
            "spark.driver.memory": "2g",
            "spark.log.level": "ERROR",
            "spark.jars": ",".join(map(str, self._jars)),
            "spark.sql.streaming.numRecentProgressUpdates": "200",
            "spark.sql.shuffle.partitions": "2",
        }
        self.spark = local_session("benchmark", master="local[2]", configs=configs)
        self._bootstrap = bootstrap
        self._frames: dict[bool, Any] = {}
        self._registry = SchemaRegistryServer()
        self._registry.__enter__()
        SchemaRegistry(self._registry.url).register(f"{spark.AVRO}-value", Schema(spark.AVRO_SCHEMA))

    def facts(self) -> dict[str, str]:
        """What ran, for the report."""
        java = self.spark._jvm.java.lang.System
        return {
            "session": f"Spark {self.spark.version}, local[2], 2 GiB, Java {java.getProperty('java.version')}",
            "connector": ", ".join(path.stem for path in self._jars),
        }

    def close(self) -> None:
        self.spark.stop()
        self._registry.__exit__(None, None, None)
        self._compiled.cleanup()

    # Reading…

    def batch_count(self, side: str) -> tuple[str, dict[str, float]]:
        rows = self._read(side, spark.PLAIN).selectExpr("count(*)", "sum(length(value))").collect()
        return str(tuple(rows[0])), {}

    def batch_columns(self, side: str) -> tuple[str, dict[str, float]]:
        rows = self._read(side, spark.KEYED).selectExpr("count(*)", f"bit_xor({_CHECKSUM})").collect()
        return str(tuple(rows[0])), {}

    def batch_avro(self, side: str) -> tuple[str, dict[str, float]]:
        return self._avro(side, by_option=True)

    def batch_avro_function(self, side: str) -> tuple[str, dict[str, float]]:
        return self._avro(side, by_option=False)

    def _avro(self, side: str, *, by_option: bool) -> tuple[str, dict[str, float]]:
        if side != "purekafka":
            from pyspark.sql.avro.functions import from_avro
            from pyspark.sql.functions import expr

            frame = self._read(side, spark.AVRO)
            frame = frame.select(from_avro(expr("substring(value, 6)"), spark.AVRO_SCHEMA).alias("value"))
        elif by_option:
            frame = self._read(side, spark.AVRO, schemaRegistry=self._registry.url)
        else:
            from kafka.spark import from_registry

            subject = f"{spark.AVRO}-value"
            decoded = from_registry("value", self._registry.url, subject=subject)
            frame = self._read(side, spark.AVRO).select(decoded.alias("value"))
        return str(tuple(frame.selectExpr("count(*)", "bit_xor(xxhash64(value))").collect()[0])), {}

    def batch_noop(self, side: str) -> tuple[str, dict[str, float]]:
        self._read(side, spark.KEYED).write.format("noop").mode("overwrite").save()
        return "", {}

    def _read(self, side: str, topic: str, **options: str) -> Any:
        reader = self.spark.read.format(_FORMATS[side]).option("kafka.bootstrap.servers", self._bootstrap)
        return reader.options(**options).option("subscribe", topic).load()

    def stream_available_now(self, side: str) -> tuple[str, dict[str, float]]:
        return self._available_now(side, None)

    def stream_add_batch(self, side: str) -> tuple[str, dict[str, float]]:
        return self._available_now(side, spark.PER_BATCH)

    def _available_now(self, side: str, most: int | None) -> tuple[str, dict[str, float]]:
        with self._query(side, spark.KEYED, most, availableNow=True) as query:
            query.awaitTermination()
            progress = [each for each in query.recentProgress if each["numInputRows"]]
        rows = sum(each["numInputRows"] for each in progress)
        spent = sum(each["durationMs"]["addBatch"] for each in progress)
        return f"{rows} in {len(progress)}", {"add_batch_ms": float(spent)}

    def stream_long(self, side: str) -> tuple[str, dict[str, float]]:
        """Figures are of the batches behind the first one, from the moment that each end is seen."""
        marks, rows, batches = [], 0, 0
        with self._query(side, spark.LONG, spark.PER_LONG_BATCH, processingTime="0 seconds") as query:
            while rows < spark.LONG_RECORDS:
                if not query.isActive:
                    raise RuntimeError(f"{side}: the query ended after {batches} batches: {query.exception()}")
                progress = [each for each in query.recentProgress if each["numInputRows"]]
                if len(progress) > batches:
                    batches, rows = len(progress), sum(each["numInputRows"] for each in progress)
                    marks.append((rows, tree_cpu_s(), time.perf_counter()))
                time.sleep(0.05)
        (first, cpu, wall), (last, cpu_end, wall_end) = marks[0], marks[-1]
        figures = {"records": last - first, "cpu_s": cpu_end - cpu, "wall_s": wall_end - wall}
        return f"{rows} in {batches}", figures

    def small_trigger(self, side: str) -> tuple[str, dict[str, float]]:
        wanted = spark.SMALL_WARM_UP + spark.SMALL_TRIGGERS
        with self._query(side, spark.SMALL, spark.SMALL_ROWS, processingTime="0 seconds") as query:
            while True:
                progress = [each for each in query.recentProgress if each["numInputRows"]]
                if len(progress) >= wanted:
                    break
                if not query.isActive:
                    raise RuntimeError(f"{side}: the query ended after {len(progress)} triggers: {query.exception()}")
                time.sleep(0.5)
        took = sorted(each["durationMs"]["triggerExecution"] for each in progress[spark.SMALL_WARM_UP : wanted])
        sizes = {each["numInputRows"] for each in progress[:wanted]}
        return str(sizes), {"p50_ms": float(took[len(took) // 2]), "p90_ms": float(took[int(len(took) * 0.9)])}

    def _query(self, side: str, topic: str, most: int | None, **trigger: Any) -> Any:
        reader = self.spark.readStream.format(_FORMATS[side]).option("kafka.bootstrap.servers", self._bootstrap)
        limit = {} if most is None else {"maxOffsetsPerTrigger": str(most)}
        rows = reader.options(subscribe=topic, startingOffsets="earliest", **limit).load()
        return _Running(rows.writeStream.format("noop").trigger(**trigger))

    # Writing…

    def sink(self, side: str) -> tuple[str, dict[str, float]]:
        return self._write(side, keyed=False)

    def sink_key(self, side: str) -> tuple[str, dict[str, float]]:
        return self._write(side, keyed=True)

    def _write(self, side: str, *, keyed: bool) -> tuple[str, dict[str, float]]:
        rows = self._rows(keyed)
        writer = rows.write.format(_FORMATS[side]).mode("append")
        writer.options(
            **{
                "kafka.bootstrap.servers": self._bootstrap,
                "topic": spark.OUT,
                "kafka.batch.size": str(256 << 10),
                "kafka.linger.ms": "20",
            }
        ).save()
        return "", {}

    def _rows(self, keyed: bool) -> Any:
        """The rows to write, made once and kept in Spark's memory."""
        if keyed not in self._frames:
            key = "cast(format_string('key%05d', id % 50000) as binary) as key"
            value = "cast(rpad(concat('{\"n\":', id, ',\"text\":\"alpha bravo'), 100, '.') as binary) as value"
            numbers = self.spark.range(0, spark.SINK_RECORDS, 1, spark.PARTITIONS)
            frame = numbers.selectExpr(key, value) if keyed else numbers.selectExpr(value)
            self._frames[keyed] = frame.cache()
            self._frames[keyed].count()
        return self._frames[keyed]

    def written(self) -> int:
        """How many records the sinks' topic has had so far."""
        from kafka import KafkaConsumer, TopicPartition

        with KafkaConsumer(bootstrap_servers=self._bootstrap) as consumer:
            ends = consumer.end_offsets([TopicPartition(spark.OUT, at) for at in range(spark.PARTITIONS)])
        return sum(ends.values())


class _Running:
    """A streaming query with a checkpoint of its own, both gone afterwards."""

    def __init__(self, writer: Any) -> None:
        self._writer = writer
        self._place = tempfile.TemporaryDirectory(prefix="bench-spark-", ignore_cleanup_errors=True)

    def __enter__(self) -> Any:
        self._query = self._writer.option("checkpointLocation", self._place.name).start()
        return self._query

    def __exit__(self, *_: object) -> None:
        self._query.stop()
        self._place.cleanup()


def runs(args: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Run the cases that are asked for, each side in turn; yield a line for each run that counts."""
    adopt_orphans()  # Spark's Python workers may outlive the daemon that started them
    session = Session(args.bootstrap)
    try:
        yield {"settings": session.facts()}
        for case in spark.WORKLOAD.cases:
            if not fnmatchcase(case.name, args.only):
                continue
            run = getattr(session, case.name.replace("-", "_"))
            for number in range(-_WARM_UPS, args.rounds):
                for side in _FORMATS:
                    line = _timed(session, case.name, side, run)
                    yield line if number >= 0 else {"warm-up": case.name}
    finally:
        session.close()


def _timed(
    session: Session, case: str, side: str, run: Callable[[str], tuple[str, dict[str, float]]]
) -> dict[str, Any]:
    sinks = case.startswith("sink")
    for start in range(_STARTS):
        before = session.written() if sinks else 0
        cpu, wall = tree_cpu_s(), time.perf_counter()
        try:
            digest, figures = run(side)
        except Exception as error:  # of whatever class Spark makes of it
            if _TOO_SLOW not in str(error) or start == _STARTS - 1:
                raise
        else:
            break
    wall, cpu = time.perf_counter() - wall, tree_cpu_s() - cpu
    records = spark.RECORDS
    if sinks:
        records = spark.SINK_RECORDS
        digest = f"{session.written() - before} written"
    elif case == "small-trigger":
        records = spark.SMALL_ROWS * (spark.SMALL_TRIGGERS + spark.SMALL_WARM_UP)
    line = {"case": case, "impl": side, "count": 1, "records": records, "bytes": records * 100}
    return {**line, "cpu_s": cpu, "wall_s": wall, "digest": digest, **figures}
