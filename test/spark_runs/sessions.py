"""Spark sessions for tests: one at a time, and one Java machine, which takes memory."""

from __future__ import annotations

import gc
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from .quick_start import QUICK_JAVA, quick_home

__all__ = ["finish", "spark_session"]

_CONFIGS = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.sql.streaming.pollingDelay": "50ms",
    "spark.log.level": "ERROR",
    # For a few rows: to compile code for each query, and to plan it again while it runs, takes longer than to run it.
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
    "spark.sql.adaptive.enabled": "false",
}


@contextmanager
def spark_session(
    name: str, *, jars: Sequence[Path] = (), configs: Mapping[str, str] | None = None, master: str = "local[2]"
) -> Iterator[Any]:
    """Give a session with the source registered; skips the test where there is no pyspark or no Java."""
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'purekafka[spark]'")
    from kafka.errors import KafkaConfigurationError
    from kafka.spark.session import ensure_java, local_session

    try:
        ensure_java()
    except KafkaConfigurationError as error:
        pytest.skip(str(error))
    chosen = {**_CONFIGS, **(configs or {})}
    if jars:
        chosen["spark.jars"] = ",".join(map(str, jars))
        _end_java()  # what runs already was started without them
    with warnings.catch_warnings(), quick_home():
        warnings.simplefilter("ignore")  # not ours: py4j and pyspark leave sockets to the collector
        session = local_session(name, master=master, configs=chosen)
        try:
            yield session
        finally:
            session.stop()
            if jars:
                _end_java()
            gc.collect()


def _end_java() -> None:
    """End the Java machine, which pyspark keeps for the next session of the process."""
    from pyspark import SparkContext

    gateway = SparkContext._gateway
    if gateway is None:
        return
    SparkContext._gateway = SparkContext._jvm = None
    gateway.shutdown()
    gateway.proc.stdin.close()  # it ends with it
    gateway.proc.wait(60)


def finish(writer: Any, **trigger: Any) -> Any:
    """Run a query over what is available, or as ``trigger`` says until it fails.

    Again where the machine was too busy to start Spark's process in ten seconds.
    """
    for attempt in range(10):
        query = writer.trigger(**(trigger or {"availableNow": True})).start()
        try:
            query.awaitTermination()
        except Exception as error:
            if "Python worker failed to connect back" not in str(error) or attempt == 9:
                raise
        else:
            return query
    raise AssertionError("the last attempt returns or raises")
