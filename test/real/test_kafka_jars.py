"""Fetching is atomic, happens once, and what is missing is said in one line. Maven is played by a script."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from . import kafka_jars
from .releases import Release

VERSION = "3.9.1"
# Takes its time between two jars, and tells in a file that it was called.
MVN = """#!/bin/sh
for word in "$@"; do case $word in -DoutputDirectory=*) out=${word#*=};; esac; done
echo call >> "$CALLS"
mkdir -p "$out"
echo one > "$out/kafka_2.13-3.9.1.jar"
while [ -e "$HOLD" ]; do sleep 0.02; done
echo two > "$out/kafka-clients-3.9.1.jar"
"""
FETCH = f"from real import kafka_jars; print(*[p.name for p in kafka_jars.jars({VERSION!r})])"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name, text in (("mvn", MVN), ("java", "#!/bin/sh\n")):
        (programs / name).write_text(text, encoding="utf-8")
        (programs / name).chmod(0o755)
    return tmp_path


def fetch(place: Path) -> subprocess.Popen[str]:
    env = {name: value for name, value in os.environ.items() if name not in {"KAFKA_HOME", "JAVA_HOME"}}
    env |= {
        "PATH": f"{place / 'bin'}{os.pathsep}{env['PATH']}",
        "PYTHONPATH": str(kafka_jars.HERE.parent),
        "PUREKAFKA_TEST_CACHE": str(place / "cache"),
        "CALLS": str(place / "calls"),
        "HOLD": str(place / "hold"),
    }
    return subprocess.Popen(
        [sys.executable, "-c", FETCH], env=env, stdout=subprocess.PIPE, text=True, start_new_session=True
    )


def calls(place: Path) -> int:
    path = place / "calls"
    return len(path.read_text(encoding="utf-8").splitlines()) if path.exists() else 0


def wait_for_calls(place: Path, count: int) -> None:
    deadline = time.monotonic() + 20.0
    while calls(place) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_two_runs_at_once_fetch_once(place: Path) -> None:
    runs = [fetch(place) for _ in range(2)]
    assert [run.communicate()[0].split() for run in runs] == [["kafka-clients-3.9.1.jar", "kafka_2.13-3.9.1.jar"]] * 2
    assert calls(place) == 1


def test_a_killed_run_leaves_nothing_that_looks_complete(place: Path) -> None:
    (place / "hold").touch()
    killed = fetch(place)
    wait_for_calls(place, 1)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.communicate()
    assert not list((place / "cache").glob("kafka-*/*.jar"))
    (place / "hold").unlink()
    assert "kafka-clients-3.9.1.jar" in fetch(place).communicate()[0]
    assert calls(place) == 2


def test_without_java_or_maven_one_line_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: Path
) -> None:
    for name in ("KAFKA_HOME", "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PUREKAFKA_TEST_CACHE", str(tmp_path / "empty"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(kafka_jars.KafkaUnavailable, match="install a JDK 17"):
        kafka_jars.jars.__wrapped__(VERSION)
    (place / "bin" / "mvn").unlink()
    monkeypatch.setenv("PATH", str(place / "bin"))
    with pytest.raises(kafka_jars.KafkaUnavailable, match="install Maven") as missing:
        kafka_jars.jars.__wrapped__(VERSION)
    assert "\n" not in str(missing.value)


def test_a_failed_fetch_repeats_mavens_first_complaint(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    (place / "bin" / "mvn").write_text("#!/bin/sh\necho '[ERROR] no route to repository'\nexit 1\n", encoding="utf-8")
    monkeypatch.delenv("KAFKA_HOME", raising=False)
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PUREKAFKA_TEST_CACHE", str(place / "cache"))
    monkeypatch.setenv("PATH", f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(kafka_jars.KafkaUnavailable, match="no route to repository"):
        kafka_jars.jars.__wrapped__(VERSION)


def test_a_distribution_in_kafka_home_is_used_for_its_own_release(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, place: Path
) -> None:
    (tmp_path / "libs").mkdir()
    (tmp_path / "libs" / f"kafka_2.13-{VERSION}.jar").touch()
    monkeypatch.setenv("KAFKA_HOME", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(place / "bin"))
    assert [path.name for path in kafka_jars.jars.__wrapped__(VERSION)] == [f"kafka_2.13-{VERSION}.jar"]
    assert kafka_jars._from_home(Release("4.3.1")) == ()
