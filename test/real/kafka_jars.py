"""Find Apache Kafka's jars: in ``KAFKA_HOME``, else fetched once with Maven into a cache that runs share.

Each release has a directory of its own in the cache. It is filled under another name and renamed when
complete, by one process at a time, so that neither two runs at once nor a killed one leave half of it.
Raises :class:`KafkaUnavailable`, whose text says what to install, where there is nothing to run.
"""

from __future__ import annotations

import fcntl
import functools
import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .releases import Release

HERE = Path(__file__).parent
POM = HERE / "java" / "pom.xml"
COPY_GOAL = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
FETCH_TIMEOUT = 600.0


class KafkaUnavailable(Exception):
    """There is no Kafka, or no Java to run it; the message is one line that says what to install."""


def cache_dir() -> Path:
    """``PUREKAFKA_TEST_CACHE``, else ``purekafka-test`` in the user's cache directory."""
    explicit = os.environ.get("PUREKAFKA_TEST_CACHE")
    if explicit:
        return Path(explicit)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "purekafka-test"


def java() -> str:
    """The ``java`` to run: of ``JAVA_HOME`` if set, else from the path."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("java", path=f"{home}/bin") if home else shutil.which("java")
    if found is None:
        raise KafkaUnavailable("real Kafka tests need Java: install a JDK 17 (Debian: openjdk-17-jdk-headless)")
    return found


@functools.cache
def jars(version: str) -> tuple[Path, ...]:
    """All jars of a release, ready for a class path."""
    java()
    release = Release(version)
    return _from_home(release) or _from_cache(release)


def classpath(version: str) -> str:
    """The class path of a release."""
    return os.pathsep.join(str(jar) for jar in jars(version))


def jar(version: str, artifact: str) -> Path:
    """One jar of a release by its artifact name, for example ``kafka-clients``."""
    for path in jars(version):
        if re.fullmatch(re.escape(artifact) + r"-\d[\w.]*\.jar", path.name):
            return path
    raise KafkaUnavailable(f"Apache Kafka {version} as found here has no jar {artifact}")


def _from_home(release: Release) -> tuple[Path, ...]:
    """The jars of an unpacked distribution, where ``KAFKA_HOME`` is one of this very release."""
    home = os.environ.get("KAFKA_HOME")
    if not home:
        return ()
    libs = Path(home) / "libs"
    if not any(libs.glob(f"kafka_*-{release}.jar")):
        return ()
    return tuple(sorted(libs.glob("*.jar")))


def _from_cache(release: Release) -> tuple[Path, ...]:
    # The pom's hash is in the name: when what we ask for changes, it is fetched anew.
    recipe = hashlib.sha256(POM.read_bytes() + repr(release.maven_profiles).encode()).hexdigest()[:8]
    complete = cache_dir() / f"kafka-{release}-{recipe}"
    if not complete.is_dir():
        cache_dir().mkdir(parents=True, exist_ok=True)
        with locked(cache_dir() / f"kafka-{release}.lock"):
            if not complete.is_dir():
                _fetch(release, complete)
    return tuple(sorted(complete.glob("*.jar")))


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock between processes; the kernel drops it with the process."""
    with path.open("w", encoding="utf-8") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def _fetch(release: Release, complete: Path) -> None:
    """Let Maven copy the release's jars next to their final place, then move them there in one step."""
    mvn = shutil.which("mvn")
    if mvn is None:
        raise KafkaUnavailable(
            f"real Kafka tests need Apache Kafka {release}: install Maven (Debian: maven) or set KAFKA_HOME"
        )
    partial = complete.with_name(f".{complete.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # left by a run that was killed; we hold the lock
    command = [
        *(mvn, "-B", "-q", "-ntp", "-Dstyle.color=never", "-f", str(POM), COPY_GOAL),
        f"-P{','.join(release.maven_profiles)}",
        f"-Dkafka.version={release}",
        f"-Dscala.version={release.scala}",
        f"-DoutputDirectory={partial}",
    ]
    result = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_TIMEOUT, check=False)
    if result.returncode != 0 or not any(partial.glob(f"kafka_*-{release}.jar")):
        lines = [line for line in result.stdout.splitlines() if "ERROR" in line] or ["no jar came"]
        shutil.rmtree(partial, ignore_errors=True)
        raise KafkaUnavailable(f"real Kafka tests need Apache Kafka {release}, but mvn could not fetch it: {lines[0]}")
    partial.rename(complete)
