"""A ready pipeline: events as JSON in a topic, counted and summed by window and columns, to a topic and to Parquet.

Values that do not fit the schema are never dropped in silence: they are counted in every progress report and in the
result's column ``malformed``, or go to a separate topic, or into a column of the result. Needs pyspark.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql import functions as sql

from kafka.errors import KafkaConfigurationError
from kafka.spark.jobs.runner import start_patiently
from kafka.spark.listeners import without_java_stack
from kafka.spark.options import lower_keys, parse_flag

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

__all__ = ["AVAILABLE_NOW", "Pipeline", "parse_trigger"]


log = logging.getLogger(__name__)

AVAILABLE_NOW: Final = "available-now"
_MALFORMED: Final = "_malformed"
_CORRUPT: Final = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": _MALFORMED}
# Stands behind a value to see that the value ends there.
_END: Final = "purekafka-end-of-value"
# Columns of the result besides the keys.
_RESULT: Final = ("window_start", "window_end", "events", "malformed", "date")


def parse_trigger(text: str) -> dict[str, Any]:
    """Return the arguments of Spark's trigger().

    >>> parse_trigger("available-now"), parse_trigger("10 seconds")
    ({'availableNow': True}, {'processingTime': '10 seconds'})
    """
    return {"availableNow": True} if text == AVAILABLE_NOW else {"processingTime": text}


@dataclass(frozen=True)
class Pipeline:
    """What to read, how to count it, and where the result goes."""

    servers: str
    source: str
    schema: str
    """The columns of an event, as DDL: ``user string, amount double, at timestamp``."""
    checkpoint: str
    event_time: str | None = None
    """The column with an event's time; without it the record's timestamp."""
    window: str = "1 minute"
    watermark: str = "2 minutes"
    group_by: tuple[str, ...] = ()
    sums: tuple[str, ...] = ()
    sink: str | None = None
    parquet: str | None = None
    dead_letter: str | None = None
    """The topic for what cannot be read."""
    dead_letter_column: str | None = None
    """The column of the result for what cannot be read, with its origin: all of a window in one array."""
    complete: bool = False
    """Write the whole result again with every batch, open windows too, instead of each window once, when it is over."""
    trigger: str = "10 seconds"
    kafka: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Further options, such as kafka.security.protocol; secrets are among them."""
    source_options: Mapping[str, str] = field(default_factory=dict, repr=False)
    sink_options: Mapping[str, str] = field(default_factory=dict, repr=False)

    def check(self) -> None:
        """Raise KafkaConfigurationError for what does not go together. Needs no session."""
        if self.sink is None and self.parquet is None:
            raise KafkaConfigurationError(
                "A pipeline needs somewhere to write: a topic, a directory for Parquet, or both"
            )
        if self.dead_letter is not None and self.dead_letter_column is not None:
            raise KafkaConfigurationError(
                "What cannot be read goes to a topic or into a column of the result, not to both: "
                f"{self.dead_letter!r} and {self.dead_letter_column!r} are given"
            )
        read = {name.strip() for name in self.source.split(",")}
        for what, topic in (("result", self.sink), ("dead letters", self.dead_letter)):
            if topic in read:
                raise KafkaConfigurationError(f"The pipeline would read its own {what}: it reads and writes {topic!r}")
        if self.dead_letter is not None and self.dead_letter == self.sink:
            raise KafkaConfigurationError(f"Results and dead letters cannot both go to {self.sink!r}")
        if self.complete and parse_flag(lower_keys(self.sink_options), "exactlyOnce", default=False):
            raise KafkaConfigurationError("The whole result with every batch cannot be written exactly once")
        self._check_names()

    def _check_names(self) -> None:
        names = [*_RESULT, *self.group_by, *(f"sum_{name}" for name in self.sums)]
        if self.dead_letter_column is not None:
            names.append(self.dead_letter_column)
        twice = sorted({name for name in names if names.count(name) > 1})
        if twice:
            raise KafkaConfigurationError(f"The result would have two columns of the name {twice[0]!r}")

    def start(self, spark: SparkSession) -> list[StreamingQuery]:
        """Start the queries and return them."""
        self.check()
        events = self._events(spark)
        queries = []
        if self.complete:
            queries.append(self._start_complete(self._counted(events)))
        else:
            if self.sink is not None:
                queries.append(self._start_topic("topic", self._counted(events), self.sink))
            if self.parquet is not None:
                queries.append(self._start_parquet(self._counted(events)))
        if self.dead_letter is not None:
            queries.append(self._start_dead_letters(events))
        return queries

    # Reading…

    def _events(self, spark: SparkSession) -> DataFrame:
        reader = spark.readStream.format("purekafka").options(**self.kafka).options(**self.source_options)
        reader = reader.option("kafka.bootstrap.servers", self.servers).option("subscribe", self.source)
        if "startingoffsets" not in {name.lower() for name in self.source_options}:
            reader = reader.option("startingOffsets", "earliest")
        return self.parsed(reader.load())

    def parsed(self, rows: DataFrame) -> DataFrame:
        """Return records with the columns ``event``, ``_malformed`` (whether it cannot be read) and ``_time``."""
        text = sql.col("value").cast("string")
        rows = rows.withColumn("event", sql.from_json(text, f"{self.schema}, {_MALFORMED} string", _CORRUPT))
        self._check_columns(rows.schema["event"].dataType)
        # Spark reads the first of several values and does not look at what comes after it.
        followed = sql.get_json_object(sql.concat(sql.lit("["), text, sql.lit(f',"{_END}"]')), "$[1]")
        broken = sql.col("event").isNull() | sql.col(f"event.{_MALFORMED}").isNotNull() | ~followed.eqNullSafe(_END)
        rows = rows.withColumn(_MALFORMED, broken)
        when = sql.col("timestamp")
        if self.event_time is not None:
            when = sql.coalesce(sql.when(~broken, sql.col(f"event.{self.event_time}")), when)
        return rows.withColumn("_time", when)

    def _check_columns(self, event: Any) -> None:
        types = {field.name.lower(): field.dataType.simpleString() for field in event.fields[:-1]}
        for name in (*self.group_by, *self.sums, *filter(None, [self.event_time])):
            if name.lower() not in types:
                raise KafkaConfigurationError(f"{name!r} is not in the schema, which has {', '.join(types)}")
        if self.event_time is not None and types[self.event_time.lower()] != "timestamp":
            raise KafkaConfigurationError(
                f"The event time {self.event_time!r} is {types[self.event_time.lower()]} in the schema, not timestamp"
            )

    def _counted(self, events: DataFrame) -> DataFrame:
        rows = events.observe(
            "events",
            sql.count(sql.lit(1)).alias("rows"),
            sql.coalesce(sql.sum(sql.col(_MALFORMED).cast("long")), sql.lit(0)).alias("malformed"),
        )
        if self.dead_letter is not None:
            rows = rows.where(~sql.col(_MALFORMED))
        letter = sql.struct("topic", "partition", "offset", sql.col("value").cast("string").alias("value"))
        # What could be read of a malformed event counts nowhere.
        event = sql.when(~sql.col(_MALFORMED), sql.col("event"))
        keys = [event[name].alias(name) for name in self.group_by]
        totals = [sql.sum(event[name]).alias(f"sum_{name}") for name in self.sums]
        broken = sql.sum(sql.col(_MALFORMED).cast("long"))
        grouped = rows.withWatermark("_time", self.watermark).groupBy(sql.window("_time", self.window), *keys)
        found = [(sql.count(sql.lit(1)) - broken).alias("events"), broken.alias("malformed"), *totals]
        if self.dead_letter_column is not None:
            found.append(sql.collect_list(sql.when(sql.col(_MALFORMED), letter)).alias(self.dead_letter_column))
        counted = grouped.agg(*found)
        return counted.select(
            sql.col("window.start").alias("window_start"),
            sql.col("window.end").alias("window_end"),
            *self.group_by,
            "events",
            "malformed",
            *(f"sum_{name}" for name in self.sums),
            *filter(None, [self.dead_letter_column]),
        )

    # Writing…

    def _start_topic(self, name: str, result: DataFrame, topic: str) -> StreamingQuery:
        writer = self._rows_for_topic(result).writeStream.format("purekafka").options(**self._sink_options(topic))
        return self._start(writer.outputMode("append"), name)

    def _start_parquet(self, result: DataFrame) -> StreamingQuery:
        dated = result.withColumn("date", sql.to_date("window_start"))
        writer = dated.writeStream.format("parquet").option("path", self.parquet).partitionBy("date")
        return self._start(writer.outputMode("append"), "parquet")

    def _start_complete(self, result: DataFrame) -> StreamingQuery:
        @without_java_stack
        def write(frame: DataFrame, _batch_id: int) -> None:
            frame = frame.persist()
            try:
                if self.parquet is not None:
                    frame.coalesce(1).write.mode("overwrite").parquet(self.parquet)
                if self.sink is not None:
                    rows = self._rows_for_topic(frame)
                    rows.write.format("purekafka").options(**self._sink_options(self.sink)).mode("append").save()
            finally:
                frame.unpersist()

        return self._start(result.writeStream.foreachBatch(write).outputMode("complete"), "result")

    def _start_dead_letters(self, events: DataFrame) -> StreamingQuery:
        assert self.dead_letter is not None

        def header(name: str) -> Column:
            return sql.struct(sql.lit(name).alias("key"), sql.col(name).cast("string").cast("binary").alias("value"))

        origin = sql.array(header("topic"), header("partition"), header("offset"))
        rows = events.where(_MALFORMED).select("key", "value", origin.alias("headers"))
        writer = rows.writeStream.format("purekafka").options(**self._sink_options(self.dead_letter))
        return self._start(writer.outputMode("append"), "dead-letters")

    def _rows_for_topic(self, result: DataFrame) -> DataFrame:
        key = sql.to_json(sql.struct("window_start", *self.group_by)) if self.group_by else None
        value = sql.to_json(sql.struct("*")).alias("value")
        return result.select(value) if key is None else result.select(key.alias("key"), value)

    def _sink_options(self, topic: str) -> dict[str, str]:
        return {**self.kafka, **self.sink_options, "kafka.bootstrap.servers": self.servers, "topic": topic}

    def _start(self, writer: DataStreamWriter, name: str) -> StreamingQuery:
        writer = writer.option("checkpointLocation", f"{self.checkpoint.rstrip('/')}/{name}").queryName(name)
        return start_patiently(writer.trigger(**parse_trigger(self.trigger)).start)
