"""A query that is stopped while its function for foreachBatch writes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

import kafka.otel
from kafka.broker import Broker
from kafka.broker.faults import NO_REPLY
from kafka.protocol.produce import ProduceRequest
from kafka.spark import KafkaSparkOptionError, cause_of, foreach_batch_writer
from test.spark_runs.sessions import finish

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300), pytest.mark.filterwarnings("ignore::ResourceWarning")]


@contextmanager
def errors_of_java(spark: Any) -> Iterator[Any]:
    """Take what Java prints as errors, among it the exceptions that end a thread."""
    java = spark._jvm.java
    before = java.lang.System.err
    taken = java.io.ByteArrayOutputStream()
    java.lang.System.setErr(java.io.PrintStream(taken, True))
    try:
        yield taken
    finally:
        java.lang.System.setErr(before)


def test_a_stop_while_a_batch_is_written_is_not_an_error(
    spark: Any, stream: Any, broker: Broker, tmp_path: Path
) -> None:
    broker.append("events", b"value")
    write = foreach_batch_writer(**{"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "out"})
    writer = stream().writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path))
    with broker.intercept("Produce", lambda _exchange: NO_REPLY, before=True), errors_of_java(spark) as errors:
        query = writer.start()
        try:
            deadline = time.monotonic() + 120
            while not any(seen.api_key == ProduceRequest.API_KEY for seen in broker.requests):
                assert time.monotonic() < deadline, f"no batch was written: {query.exception()}"
                time.sleep(0.05)
        finally:
            query.stop()
        assert query.exception() is None
        printed = errors.toString()
    assert "StackOverflowError" not in printed
    assert "stream execution thread" not in printed


def test_each_batch_has_a_span_on_the_driver(spark: Any, stream: Any, broker: Broker, tmp_path: Path) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    broker.append("events", b"value")
    write = foreach_batch_writer(**{"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "out"})
    kafka.otel.instrument(provider)
    try:
        writer = stream().writeStream.foreachBatch(write).option("checkpointLocation", str(tmp_path))
        finish(writer)
        with pytest.raises(Exception, match="value"):
            write(spark.range(1).selectExpr("id other"), 7)
    finally:
        kafka.otel.uninstrument()
    done, failed = [span for span in exporter.get_finished_spans() if span.name == "send out"]
    assert (done.kind, done.status.status_code) == (SpanKind.CLIENT, StatusCode.UNSET)
    assert (done.attributes or {})["messaging.destination.name"] == "out"
    assert failed.status.status_code is StatusCode.ERROR


def test_update_mode_names_the_function_that_has_it(stream: Any, broker: Broker, tmp_path: Path) -> None:
    counts = stream().groupBy("partition").count().selectExpr("cast(count as string) value")
    writer = counts.writeStream.format("purekafka").outputMode("update").option("topic", "out")
    writer = writer.option("kafka.bootstrap.servers", broker.bootstrap_servers)
    with pytest.raises(KafkaSparkOptionError, match=r"foreachBatch\(kafka.spark.foreach_batch_writer"):
        writer.option("checkpointLocation", str(tmp_path)).start()


def test_a_batch_that_is_repeated_is_written_once(stream: Any, broker: Broker, tmp_path: Path) -> None:
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "out", "exactlyOnce": "true"}
    broker.append_many("events", [b"%d" % number for number in range(50)])
    failing = [True]

    def run(function: Any) -> None:
        counts = stream().groupBy("partition").count().selectExpr("cast(count as string) value")
        writer = counts.writeStream.outputMode("update").foreachBatch(function)
        finish(writer.option("checkpointLocation", str(tmp_path)))

    def written_then_dead(frame: Any, batch: int) -> None:
        foreach_batch_writer(**options)(frame, batch)
        if failing:
            raise RuntimeError("the driver dies before Spark knows of the batch")

    def values() -> list[bytes | None]:
        return sorted((record.value or b"") for record in broker.records("out", committed=True))

    with pytest.raises(Exception, match="the driver dies"):
        run(written_then_dead)
    assert values() == [b"50"]
    failing.clear()
    run(written_then_dead)
    assert values() == [b"50"], "the rows of the first run are not written again"
    broker.append_many("events", [b"x"] * 7)
    run(foreach_batch_writer(**options))
    assert values() == [b"50", b"57"]


def test_two_writers_of_a_batch_do_not_take_each_others_rows_for_written(
    stream: Any, broker: Broker, tmp_path: Path
) -> None:
    options = {"kafka.bootstrap.servers": broker.bootstrap_servers, "topic": "out", "exactlyOnce": "true"}
    broker.append("events", b"a")

    def twice(frame: Any, batch: int) -> None:
        for more in second:
            foreach_batch_writer(**options, **more)(frame.select("value"), batch)

    second: list[dict[str, str]] = [{}, {}]
    writer = stream().writeStream.foreachBatch(twice).option("checkpointLocation", str(tmp_path))
    with pytest.raises(Exception, match="another transactionalIdPrefix") as failed:
        finish(writer)
    assert "Batch 0 was written to out already" in (cause_of(failed.value) or str(failed.value))
    second[1:] = [{"transactionalIdPrefix": "other"}]
    finish(writer)
    assert [record.value for record in broker.records("out", committed=True)] == [b"a", b"a"]
