"""Making the source known to a Spark session, and a session where there is none."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from kafka.spark.jre import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["ensure_java", "local_session", "register"]

_OWN: Final = "purekafka"
_OFFICIAL: Final = "kafka"
# Where format() is, in the classic API and in Spark Connect.
_READERS: Final = (
    ("pyspark.sql.readwriter", "DataFrameReader"),
    ("pyspark.sql.streaming.readwriter", "DataStreamReader"),
    ("pyspark.sql.streaming.readwriter", "DataStreamWriter"),
    ("pyspark.sql.connect.readwriter", "DataFrameReader"),
    ("pyspark.sql.connect.streaming.readwriter", "DataStreamReader"),
    ("pyspark.sql.connect.streaming.readwriter", "DataStreamWriter"),
)
_WRITERS: Final = (
    ("pyspark.sql.readwriter", "DataFrameWriter"),
    ("pyspark.sql.connect.readwriter", "DataFrameWriter"),
)


def register(spark: SparkSession, *, shim: bool = False) -> None:
    """Make the format ``purekafka`` known to a session.

    An installed package is found without this. With ``shim`` programs that say ``format("kafka")`` get it too, in this
    process and without a change to them; Spark itself does not let that name be taken.

    >>> import kafka.spark
    >>> # kafka.spark.register(spark)
    """
    from kafka.spark.source import KafkaDataSource

    try:
        spark.dataSource.register(KafkaDataSource)
    except Exception as error:
        # Spark 4.0 refuses what it has found by itself; later releases replace it.
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
    if shim:
        _install_shim()


def _install_shim() -> None:
    for module, name in _READERS:
        _map_format(module, name, lambda chosen: chosen)
    for module, name in _WRITERS:
        # Spark's own connector appends unless told otherwise; a source in Python has to be told.
        _map_format(module, name, lambda chosen: chosen.mode("append"))


def _map_format(module: str, name: str, after: Callable[[Any], Any]) -> None:
    try:
        cls = getattr(import_module(module), name)
    except ImportError:  # Spark Connect needs packages of its own
        return
    original = cls.format
    if getattr(original, "is_shim", False):
        return

    def format(self: Any, source: str) -> Any:  # noqa: A001 - its name there
        if str(source).lower() == _OFFICIAL:
            return after(original(self, _OWN))
        return original(self, source)

    format.is_shim = True  # type: ignore[attr-defined]
    format.__doc__ = original.__doc__
    cls.format = format


def local_session(name: str, *, master: str | None = None, configs: Mapping[str, str] | None = None) -> SparkSession:
    """Return a session with the source registered: Spark's configuration where it has one, else two local threads.

    Workers get this process's interpreter, and what is on its path.
    """
    ensure_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    from pyspark.sql import SparkSession

    local = master is None and "MASTER" not in os.environ and "SPARK_HOME" not in os.environ
    cores = min(os.cpu_count() or 2, 8)
    builder = SparkSession.builder.appName(name)
    if master is not None or local:
        builder = builder.master(master or f"local[{max(2, cores)}]")
        builder = builder.config("spark.sql.shuffle.partitions", str(max(2, cores)))
    builder = builder.config("spark.ui.enabled", "false").config("spark.ui.showConsoleProgress", "false")
    for key, value in (configs or {}).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark
