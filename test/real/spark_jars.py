"""The jars of Spark's own Kafka connector, fetched once with Maven into the cache of the tests.

Used by the tests that hold our source against it, and by the benchmarks. Maven cannot resolve them as a whole: not all
parts of the connector's releases are to be had everywhere, so each jar is named here and fetched alone.
"""

from __future__ import annotations

import functools
import shutil
import subprocess
from pathlib import Path
from typing import Final

from .kafka_jars import KafkaUnavailable, cache_dir, locked

__all__ = ["AVRO", "CONNECTOR", "JARS", "avro_jar", "connector_jars", "fetched"]

CONNECTOR: Final = "4.2.0"
"""The newest release of the connector that there is; Spark 4.2 and 4.3 run it."""
JARS: Final = (
    f"org.apache.spark:spark-sql-kafka-0-10_2.13:{CONNECTOR}",
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.1.0-preview1",
    "org.apache.kafka:kafka-clients:3.9.2",
    "org.apache.commons:commons-pool2:2.13.1",
)
AVRO: Final = f"org.apache.spark:spark-avro_2.13:{CONNECTOR}"
"""Spark's functions from_avro and to_avro, which do not know registries."""
_PLACE: Final = f"spark-sql-kafka-{CONNECTOR}"
_GOAL: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"
_TIMEOUT: Final = 600.0


@functools.cache
def connector_jars() -> tuple[Path, ...]:
    """Return the paths of the jars, for ``spark.jars``; KafkaUnavailable says in one line what is missing."""
    return fetched(JARS, _PLACE)


@functools.cache
def avro_jar() -> Path:
    """Return the path of the jar with from_avro, for ``spark.jars``."""
    return fetched((AVRO,), _PLACE)[0]


def fetched(artifacts: tuple[str, ...], directory: str) -> tuple[Path, ...]:
    """Return the paths of jars in a directory of the cache, fetched one by one where they are not there."""
    place = cache_dir() / directory
    paths = tuple(place / _file_name(artifact) for artifact in artifacts)
    if not all(path.exists() for path in paths):
        place.mkdir(parents=True, exist_ok=True)
        with locked(place.with_suffix(".lock")):
            for artifact, path in zip(artifacts, paths, strict=True):
                if not path.exists():
                    _fetch(artifact, path)
    return paths


def _file_name(artifact: str) -> str:
    _, name, version = artifact.split(":")
    return f"{name}-{version}.jar"


def _fetch(artifact: str, path: Path) -> None:
    """Let Maven copy a jar next to its final place, then move it there in one step."""
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaUnavailable(f"{artifact} is fetched with Maven: install maven")
    partial = path.parent / f".{path.stem}.partial"
    shutil.rmtree(partial, ignore_errors=True)  # left by a run that was killed; we hold the lock
    words = [maven, "-q", "-B", "-ntp", _GOAL, f"-Dartifact={artifact}", f"-DoutputDirectory={partial}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=_TIMEOUT, check=False)
    found = partial / path.name
    if done.returncode or not found.exists():
        shutil.rmtree(partial, ignore_errors=True)
        raise KafkaUnavailable(f"Maven does not find {artifact}")
    found.rename(path)
    partial.rmdir()
