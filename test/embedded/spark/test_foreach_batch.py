"""A query that is stopped while its function for foreachBatch writes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.broker.faults import NO_REPLY
from kafka.protocol.produce import ProduceRequest
from kafka.spark import foreach_batch_writer

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
