"""The demo's step on Spark: the ready pipeline over all events that are there, and its result as a table."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka.errors import KafkaConfigurationError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["Result", "count_by_window", "reason_not_to", "table"]


_SCHEMA: Final = "number bigint, user string, amount double, at timestamp"
_CONFIGS: Final = {
    "spark.driver.memory": "1g",
    # A job of seconds is over before Java's better compiler pays, and starting takes half the processor time without.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.session.timeZone": "UTC",
    "spark.log.level": "ERROR",
}


class Result(NamedTuple):
    """The result of the job."""

    parquet: Path
    rows: list[dict[str, Any]]

    @property
    def events(self) -> int:
        """How many events the windows have together."""
        return sum(row["events"] for row in self.rows)


def reason_not_to() -> str | None:
    """Return what is missing for this step, and how to get it; None if nothing is."""
    from importlib.util import find_spec

    from kafka.spark.session import ensure_java

    missing = [name for name in ("pyspark", "pyarrow", "numpy") if find_spec(name) is None]
    if missing:
        return f"{' and '.join(missing)} missing: pip install 'purekafka[spark]'"
    try:
        ensure_java()
    except KafkaConfigurationError as error:
        return str(error)
    return None


def count_by_window(servers: str, topic: str, directory: Path) -> Result:
    """Run the pipeline over what the topic has, with all of its state in ``directory``."""
    from kafka.spark.jobs.pipeline import AVAILABLE_NOW, Pipeline
    from kafka.spark.jobs.runner import watch

    parquet = directory / "by-window"
    pipeline = Pipeline(
        servers=servers,
        source=topic,
        schema=_SCHEMA,
        checkpoint=str(directory / "checkpoint"),
        event_time="at",
        window="1 minute",
        sums=("amount",),
        parquet=str(parquet),
        complete=True,
        trigger=AVAILABLE_NOW,
    )
    with _session() as spark:
        watch(pipeline.start(spark))
    import pyarrow.parquet as pq

    rows = pq.read_table(parquet).to_pylist()
    return Result(parquet, sorted(rows, key=lambda row: row["window_start"]))


@contextmanager
def _session() -> Iterator[SparkSession]:
    from kafka.spark.session import end_session, local_session

    watched = {"spark.ui.showConsoleProgress": "true"} if sys.stderr.isatty() else {}
    spark = local_session("purekafka demo", configs={**_CONFIGS, **watched})
    try:
        yield spark
    finally:
        end_session(spark)


def table(rows: list[dict[str, Any]]) -> str:
    """Return windows as lines for people.

    >>> from datetime import datetime
    >>> print(table([{"window_start": datetime(2026, 1, 1), "events": 20000, "sum_amount": 1.5}]))
    window            events         amount
    00:00             20,000           1.50
    """
    lines = [f"{'window':<10} {'events':>13} {'amount':>14}"]
    lines += [f"{row['window_start']:%H:%M}      {row['events']:>13,} {row['sum_amount']:>14,.2f}" for row in rows]
    return "\n".join(lines)
