"""What a client of Spark Connect can do, as a program of its own: ``connect_smoke.py SERVERS TOPIC TARGET HOME``.

Run as `smoke` is, with an environment that has ``pyspark[connect]``. The session is one of Spark Connect on this
machine: a server in Java runs the source, with the interpreter that PYSPARK_PYTHON names.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from smoke import COUNT, attempt

SCHEMA = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "note", "type": ["null", "string"], "default": None}],
    }
)


class Connect:
    """The things that are tried."""

    def __init__(self, servers: str, topic: str, target: str, home: str, registry: str) -> None:
        from pyspark.sql import SparkSession

        import kafka.spark

        self.servers, self.topic, self.target, self.home, self.registry = servers, topic, target, home, registry
        self.spark: Any = SparkSession.builder.remote("local[2]").getOrCreate()
        kafka.spark.register(self.spark, shim=True)

    def session(self) -> str:
        kind = type(self.spark).__module__
        assert "connect" in kind, kind
        return kind

    def batch(self) -> list[Any]:
        rows = self.spark.range(COUNT).selectExpr("cast(id as string) value", "cast(id % 10 as string) key")
        self._to(rows.write.format("purekafka"), self.topic).mode("append").save()
        frame = self._from(self.spark.read.format("purekafka"), self.topic).load()
        found = frame.selectExpr("count(*) n", "sum(cast(cast(value as string) as long)) s").collect()[0]
        assert (found.n, found.s) == (COUNT, sum(range(COUNT))), found
        return [found.n, frame.schema.simpleString()]

    def stream_with_the_shim(self) -> int:
        rows = self._from(self.spark.readStream.format("kafka"), self.topic).option("startingOffsets", "earliest")
        writer = self._to(rows.load().select("key", "value").writeStream.format("kafka"), self.target)
        query = writer.option("checkpointLocation", f"{self.home}/copy").trigger(availableNow=True).start()
        query.awaitTermination()
        read = sum(each.numInputRows for each in query.recentProgress)
        copied = self._from(self.spark.read.format("kafka"), self.target).load().count()
        assert (read, copied) == (COUNT, COUNT), (read, copied)
        return read

    def registry_of_types(self) -> str:
        """to_registry, from_registry and the option of the source give the same rows."""
        from kafka.schema_registry import Schema, SchemaRegistry
        from kafka.spark import from_registry, to_registry

        topic = self.target + "-avro"
        SchemaRegistry(self.registry).register(f"{topic}-value", Schema(SCHEMA))
        orders = self.spark.range(50).selectExpr(
            "struct(id, if(id % 2 = 0, null, cast(id as string)) as note) as value"
        )
        encoded = orders.select(to_registry("value", self.registry, subject=f"{topic}-value").alias("value"))
        self._to(encoded.write.format("purekafka"), topic).mode("append").save()
        plain = self._from(self.spark.read.format("purekafka"), topic)
        by_function = plain.load().select(
            from_registry("value", self.registry, subject=f"{topic}-value").alias("value")
        )
        typed = self._from(self.spark.read.format("purekafka"), topic).option("schemaRegistry", self.registry).load()
        found = [sorted(row[0] for row in frame.select("value.id").collect()) for frame in (by_function, typed)]
        assert found == [list(range(50))] * 2, found
        notes = typed.select("value.note").where("value.note is not null").count()
        assert notes == 25, notes
        return str(typed.schema["value"].dataType.simpleString())

    def an_error_has_its_sentence(self) -> str:
        frame = self._from(self.spark.read.format("purekafka"), self.topic + "-nope").load()
        try:
            frame.count()
        except Exception as error:
            assert "does not exist" in str(error), str(error)
            return type(error).__name__
        raise AssertionError("there is no such topic")

    def _from(self, reader: Any, topic: str) -> Any:
        return reader.option("kafka.bootstrap.servers", self.servers).option("subscribe", topic)

    def _to(self, writer: Any, topic: str) -> Any:
        return writer.option("kafka.bootstrap.servers", self.servers).option("topic", topic)


def main(*words: str) -> None:
    """Try everything."""
    from kafka.schema_registry import SchemaRegistryServer

    Path(words[-1]).mkdir(exist_ok=True)
    with SchemaRegistryServer() as registry:
        tried = Connect(*words, registry.url)
        for name in ("session", "batch", "stream_with_the_shim", "registry_of_types", "an_error_has_its_sentence"):
            attempt(name, getattr(tried, name))
        tried.spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:])
