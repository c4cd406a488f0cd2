"""Spark that starts in a third of the processor time, in tests and in the programs that they run."""

from __future__ import annotations

import functools
import hashlib
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from test.real import jvm, kafka_jars

__all__ = ["QUICK_JAVA", "quick_home"]

#: Compile simply and collect in one thread: half the processor time of a start.
QUICK_JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
#: What a program of the tests has Spark load.
_TRAINING = """
from pyspark.sql import SparkSession
spark = SparkSession.builder.master("local[2]").config("spark.ui.enabled", "false").getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 10).load()
rows.writeStream.format("memory").queryName("training").trigger(availableNow=True).start().awaitTermination()
assert spark.range(10).selectExpr("sum(id)").collect()
spark.stop()
"""


@contextmanager
def quick_home() -> Iterator[None]:
    """Have Spark and its Python processes start quickly, in this process and in those that it starts.

    Each Python process imports pyspark from an archive that has no compiled modules, which takes a second of processor
    time; one of them is given ten seconds, so on a busy machine queries fail. Here the archive is a link to what is
    installed. Java maps the classes that it would parse, which takes six seconds of processor time and not twelve.
    Without pyspark nothing is changed.
    """
    if "SPARK_HOME" in os.environ or find_spec("pyspark") is None:
        yield
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SPARK_HOME", str(_linked_home()))
        temporary = f"-Djava.io.tmpdir={tempfile.gettempdir()}"  # Java does not heed TMPDIR
        with suppress(kafka_jars.KafkaUnavailable):  # there is no Java
            archive = _class_archive(os.environ["SPARK_HOME"])
            patch.setenv("SPARK_SUBMIT_OPTS", f"{temporary} {QUICK_JAVA} {archive}")
        yield


@functools.cache
def _class_archive(home: str) -> str:
    """Java's flags for an archive of Spark's classes, which is made once for each checkout."""

    def train(flag: str) -> None:
        words = [sys.executable, "-c", _TRAINING]
        environment = {**os.environ, "SPARK_SUBMIT_OPTS": f"{QUICK_JAVA} -Xlog:disable {flag}"}
        # It ends when the output does: Java writes the archive after Python has ended. The limit is for a program that
        # hangs: writing the archive takes half a minute of a processor, and five where the machine has ten such jobs.
        subprocess.run(words, env=environment, capture_output=True, timeout=900, check=False)

    # 170 MB that are of no use to another checkout: in the cache that `make clean` removes.
    flag = jvm.archive_flag(Path(__file__).parents[2] / ".pytest_cache" / "spark-classes", home, train)
    return f"{flag} -Xlog:disable" if flag else ""


def _linked_home() -> Path:
    import pyspark

    installed = Path(pyspark.__file__).parent
    digest = hashlib.sha256(f"{installed} {pyspark.__version__}".encode()).hexdigest()[:8]
    home = kafka_jars.cache_dir() / f"spark-home-{digest}"
    kafka_jars.cache_dir().mkdir(parents=True, exist_ok=True)
    with kafka_jars.locked(home.with_suffix(".lock")):
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
