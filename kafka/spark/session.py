"""Making the source known to a Spark session, and a session where there is none."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from kafka.spark.jre import ensure_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["end_session", "ensure_java", "local_session", "register"]

log = logging.getLogger(__name__)

_OWN: Final = "purekafka"
_OFFICIAL: Final = "kafka"
_MODE: Final = "_purekafka_mode"
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

    On this machine Spark's workers get this process's interpreter, unless another one is chosen by ``PYSPARK_PYTHON``
    or ``spark.pyspark.python``: Spark would take the ``python3`` of the path, which need not have this package.

    >>> import kafka.spark
    >>> # kafka.spark.register(spark)
    """
    from kafka.spark.source import KafkaDataSource

    _share_interpreter(spark)
    try:
        spark.dataSource.register(KafkaDataSource)
    except Exception as error:
        # Spark 4.0 refuses what it has found by itself; later releases replace it.
        if "DATA_SOURCE_ALREADY_EXISTS" not in str(error):
            raise
    if shim:
        _install_shim()


def _share_interpreter(spark: SparkSession) -> None:
    """Have local workers run this interpreter where none was chosen."""
    try:
        context = spark.sparkContext
        chosen = "PYSPARK_PYTHON" in os.environ or context.getConf().contains("spark.pyspark.python")
        if not chosen and str(context.master).startswith("local"):
            context.pythonExec = sys.executable
    except Exception as error:  # Spark Connect has no context here: its server chooses
        log.debug("Spark's workers choose their interpreter: %s", error)


def _install_shim() -> None:
    for module, name in _READERS:
        _map_format(module, name, lambda chosen: chosen)
    for module, name in _WRITERS:
        _note_modes(module, name)
        _map_format(module, name, _append_by_default)


def _append_by_default(writer: Any) -> Any:
    """Spark's own connector appends unless told otherwise; a source in Python has to be told."""
    return writer if getattr(writer, _MODE, None) else writer.mode("append")


def _note_modes(module: str, name: str) -> None:
    """Have a writer remember the mode that was chosen for it, which Spark tells nobody."""

    def noting(original: Callable[..., Any]) -> Callable[..., Any]:
        def mode(self: Any, saveMode: str | None) -> Any:  # noqa: N803 - its name there
            setattr(self, _MODE, saveMode or getattr(self, _MODE, None))
            return original(self, saveMode)

        return mode

    _patch(module, name, "mode", noting)


def _map_format(module: str, name: str, after: Callable[[Any], Any]) -> None:
    def mapping(original: Callable[..., Any]) -> Callable[..., Any]:
        def format(self: Any, source: str) -> Any:  # noqa: A001 - its name there
            if str(source).lower() == _OFFICIAL:
                return after(original(self, _OWN))
            return original(self, source)

        return format

    _patch(module, name, "format", mapping)


def _patch(module: str, name: str, method: str, around: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Put a function around a method of a class, once, where there is that class."""
    try:
        cls = getattr(import_module(module), name)
    except ImportError:  # Spark Connect needs packages of its own
        return
    original = getattr(cls, method)
    if getattr(original, "is_shim", False):
        return
    changed = around(original)
    changed.is_shim = True  # type: ignore[attr-defined]
    changed.__doc__ = original.__doc__
    setattr(cls, method, changed)


def local_session(
    name: str, *, master: str | None = None, configs: Mapping[str, str] | None = None, quiet: bool = False
) -> SparkSession:
    """Return a session with the source registered: Spark's configuration where it has one, else on this machine.

    Workers get this process's interpreter, and what is on its path. With ``quiet`` a session on this machine has no log
    of Java's, which prints an error several times with its stacks before Python has it.
    """
    ensure_java()
    chosen, environment = _surroundings(master, configs or {}, os.environ)
    if quiet and chosen.get("spark.master", "").startswith("local"):
        chosen["spark.log.level"] = "OFF"
    for key, value in environment.items():
        os.environ.setdefault(key, value)
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.appName(name)
    for key, value in {**chosen, **(configs or {})}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    register(spark)
    return spark


def end_session(spark: SparkSession) -> None:
    """Stop a session, whether or not its Java half is still there."""
    from py4j.protocol import Py4JError  # type: ignore[import-untyped]

    with suppress(Py4JError, ConnectionError):
        spark.stop()


def _surroundings(
    master: str | None, configs: Mapping[str, str], environ: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Return Spark's settings and the environment variables that a session begins with, unless others are given."""
    threads = max(2, min(os.cpu_count() or 2, 8))
    master = master or configs.get("spark.master") or environ.get("MASTER")
    if master is None and "SPARK_HOME" not in environ:  # else it may stand in the configuration there
        master = f"local[{threads}]"
    chosen = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    environment = {"PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    if master is not None:
        chosen["spark.master"] = master
        if master == "local" or master.startswith("local["):
            # Checkpoints keep the number. On a cluster it is the cluster's business, not that of the driver's cores.
            chosen["spark.sql.shuffle.partitions"] = str(threads)
        if master.startswith("local"):
            # Executors on other machines could not connect back to it.
            environment["SPARK_LOCAL_IP"] = "127.0.0.1"
    return chosen, environment
