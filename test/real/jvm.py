"""How the tests run Java: common flags, our own sources compiled once, and a class archive for quick starts."""

from __future__ import annotations

import atexit
import functools
import hashlib
import os
import subprocess
import zipfile
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
    """A command line with the jars of a release, and its archive if there is one.

    Among the arguments a source of ours stands for its compiled main class: ``str(CONFIG / "Tools.java")``.
    """
    flags = [f"-Djava.io.tmpdir={temporary()}"]
    path, words = kafka_jars.classpath(version), list(args)
    archive = _archive(version, path)
    if _can_archive() and archive.exists() and archive.stat().st_size:
        flags.append(f"-XX:SharedArchiveFile={archive}")
    for at, word in enumerate(args):
        if word.endswith(".java"):
            path, words[at] = os.pathsep.join((path, str(compiled(Path(word), path)))), Path(word).stem
    return [kafka_jars.java(), *FLAGS, *flags, "-cp", path, *words]


def compiled(source: Path, classpath: str) -> Path:
    """The jar of a source of ours in the cache: to compile it at each start takes over a second of a processor."""
    what = hashlib.sha256(f"{_java_and(classpath)} ".encode() + source.read_bytes()).hexdigest()[:8]
    jar = kafka_jars.cache_dir() / f"java-{source.stem}-{what}.jar"
    if not jar.exists():
        jar.parent.mkdir(parents=True, exist_ok=True)
        with kafka_jars.locked(jar.with_suffix(".lock")):
            if not jar.exists():
                _compile(source, classpath, jar)
    return jar


def _compile(source: Path, classpath: str, jar: Path) -> None:
    compiler = Path(kafka_jars.java()).resolve().with_name("javac")
    if not compiler.exists():
        raise kafka_jars.KafkaUnavailable(
            "real Kafka tests need javac: install a JDK 17 (Debian: openjdk-17-jdk-headless)"
        )
    scratch, partial = Scratch(), jar.with_suffix(".partial")
    argv = [str(compiler), "-nowarn", "-d", str(scratch.path), "-cp", classpath, str(source)]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
    with zipfile.ZipFile(partial, "w") as out:
        for one in scratch.path.rglob("*.class"):
            out.write(one, one.relative_to(scratch.path))
    partial.rename(jar)
    scratch.close()


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


def class_archive(version: str, train: Callable[[str], None]) -> None:
    """Make the archive of a release's parsed classes (JEP 350), which takes a second off each start.

    It is made once for each JVM and class path, by ``train``, which runs a broker with the flag that it is given and
    stops it in order. A class path that only begins like that one may use it too.
    """
    if not _can_archive():
        return
    archive = _archive(version, kafka_jars.classpath(version))
    archive.parent.mkdir(parents=True, exist_ok=True)
    with kafka_jars.locked(archive.with_suffix(".lock")):
        if not archive.exists():
            partial = archive.with_suffix(".partial")
            train(f"-XX:ArchiveClassesAtExit={partial}")
            if partial.exists():
                partial.rename(archive)
            else:
                archive.touch()  # tried in vain; an empty one is not used


def _can_archive() -> bool:
    return not os.environ.get("PUREKAFKA_TEST_NO_ARCHIVE")


def _archive(version: str, classpath: str) -> Path:
    # The number is that of what the training does.
    return (
        kafka_jars.cache_dir()
        / f"classes-2-{version}-{hashlib.sha256(_java_and(classpath).encode()).hexdigest()[:8]}.jsa"
    )


def _java_and(classpath: str) -> str:
    java = Path(kafka_jars.java()).resolve()
    return f"{java} {java.stat().st_mtime_ns} {classpath}"
