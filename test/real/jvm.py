"""How the tests run Java: common flags, programs that run to their end, and a class archive for quick starts."""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

from test.scratch import Scratch

from . import kafka_jars

CONFIG = Path(__file__).parent / "java"
FLAGS = (
    "-XX:+UseSerialGC",  # starts fastest and takes least
    "-XX:-UsePerfData",  # no files in /tmp
    "-Djava.awt.headless=true",
    "-Dzookeeper.sasl.client=false",  # a JAAS file is for Kafka's listeners
    "-Dzookeeper.jmx.log4j.disable=true",  # ZooKeeper 3.4 asks for a part of log4j that reload4j lacks
    f"-Dlog4j.configuration=file:{CONFIG / 'log4j.properties'}",
    f"-Dlog4j2.configurationFile={CONFIG / 'log4j2.properties'}",
)
QUICK_START = ("-XX:TieredStopAtLevel=1",)  # compile simply: a start of 2.6 s instead of 3.6


def command(version: str, *args: str) -> list[str]:
    """A command line with the jars of a release."""
    libraries = f"-Djava.io.tmpdir={temporary()}"
    return [kafka_jars.java(), *FLAGS, libraries, "-cp", kafka_jars.classpath(version), *args]


@functools.cache
def temporary() -> Path:
    """Where Java programs put their native libraries, which those that are killed leave there."""
    scratch, owner = Scratch(), os.getpid()
    atexit.register(lambda: scratch.close() if os.getpid() == owner else None)  # and not in a fork
    return scratch.path


def run(
    version: str, main: str, *args: str, text: str | None = None, timeout: float = 200.0
) -> subprocess.CompletedProcess[str]:
    """Run a Java program with the jars of a release to its end; output is captured, nothing is checked."""
    argv = command(version, *QUICK_START, "-Xmx256m", main, *args)
    return subprocess.run(argv, input=text, capture_output=True, text=True, timeout=timeout, check=False)


def class_archive(version: str, train: Callable[[str], None]) -> str | None:
    """The flag that maps a broker's parsed classes, which takes a second off each start; ``train`` runs a broker."""
    return archive_flag(kafka_jars.cache_dir() / f"classes-{version}", kafka_jars.classpath(version), train)


def archive_flag(stem: Path, classpath: str, train: Callable[[str], None]) -> str | None:
    """The flag that maps an archive of parsed classes (JEP 350), or None where this JVM cannot do it.

    The archive is made once for each JVM and class path, by ``train``, which runs the program with the flag that it is
    given and stops it in order.
    """
    if os.environ.get("PUREKAFKA_TEST_NO_ARCHIVE"):
        return None
    java = Path(kafka_jars.java()).resolve()
    what = f"{java} {java.stat().st_mtime_ns} {classpath}"
    archive = stem.with_name(f"{stem.name}-{hashlib.sha256(what.encode()).hexdigest()[:8]}.jsa")
    archive.parent.mkdir(parents=True, exist_ok=True)
    with kafka_jars.locked(archive.with_suffix(".lock")):
        if not archive.exists():
            partial = archive.with_suffix(".partial")
            train(f"-XX:ArchiveClassesAtExit={partial}")
            if partial.exists():
                partial.rename(archive)
            else:
                archive.touch()  # tried in vain; an empty one is not used
    return f"-XX:SharedArchiveFile={archive}" if archive.stat().st_size else None
