"""Spark sessions for tests: one at a time, and one Java machine, which takes memory."""

from __future__ import annotations

import fcntl
import gc
import hashlib
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

__all__ = ["QUICK_JAVA", "finish", "quick_home", "spark_session"]

#: Compile simply and collect in one thread: half the processor time of a start.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
_CONFIGS = {
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": QUICK_JAVA,
    "spark.sql.streaming.pollingDelay": "50ms",
    "spark.log.level": "ERROR",
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


@contextmanager
def quick_home() -> Iterator[None]:
    """Have Spark's processes start in a third of the time.

    Each imports pyspark from an archive that has no compiled modules, which takes a second of processor time; one of
    them is given ten seconds, so on a busy machine queries fail. Here the archive is a link to what is installed.
    """
    if "SPARK_HOME" in os.environ:
        yield
        return
    os.environ["SPARK_HOME"] = str(_linked_home())
    try:
        yield
    finally:
        del os.environ["SPARK_HOME"]


def _linked_home() -> Path:
    import pyspark

    from test.real.kafka_jars import cache_dir

    installed = Path(pyspark.__file__).parent
    name = hashlib.sha256(f"{installed} {pyspark.__version__}".encode()).hexdigest()[:8]
    home = cache_dir() / f"spark-home-{name}"
    cache_dir().mkdir(parents=True, exist_ok=True)
    with home.with_suffix(".lock").open("w", encoding="utf-8") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (home / "python" / "lib" / "pyspark.zip").exists():
            (home / "python" / "lib").mkdir(parents=True, exist_ok=True)
            _link(installed, home, but="python")
            _link(installed / "python", home / "python", but="lib")
            _link(installed / "python" / "lib", home / "python" / "lib", but="pyspark.zip")
            (home / "python" / "lib" / "pyspark.zip").symlink_to(installed.parent)  # last: then it is whole
    return home


def _link(source: Path, target: Path, but: str) -> None:
    for path in source.iterdir():
        link = target / path.name
        if path.name != but and not link.is_symlink():
            link.symlink_to(path)


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
