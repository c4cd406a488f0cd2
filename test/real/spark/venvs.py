"""Virtual environments with older releases of Spark, made once and kept in the cache that runs share.

The project itself is not in them: it is built anew for each run, and put on the path as an installed package is.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from typing import Final

import pytest

from test.real.kafka_jars import cache_dir, locked

__all__ = ["build_project", "environment", "python_with_spark"]

REPOSITORY: Final = Path(__file__).parents[3]
PIP_TIMEOUT: Final = 900.0
_MEDDLING: Final = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "SPARK_HOME", "PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON")
_BUILT_FROM: Final = ("setup.py", "pyproject.toml", "README.rst", "LICENSE", "kafka", "pyspark_purekafka")


def python_with_spark(release: str, extra: str = "") -> Path:
    """The interpreter of an environment with the newest Spark of a release such as ``4.1``; else skips."""
    wanted = [f"pyspark{extra}=={release}.*", "pyarrow>=15", "numpy>=1.24"]
    digest = hashlib.sha256(repr((wanted, sys.version)).encode()).hexdigest()[:8]
    home = cache_dir() / f"pyspark-{release}-{digest}"
    if not home.is_dir():
        cache_dir().mkdir(parents=True, exist_ok=True)
        with locked(cache_dir() / f"pyspark-{release}.lock"):
            if not home.is_dir():
                _make(home, wanted)
    return home / "bin" / "python"


def _make(home: Path, wanted: list[str]) -> None:
    partial = home.with_name(f".{home.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)  # left by a run that was killed; we hold the lock
    venv.create(partial, with_pip=True)
    try:
        _pip(partial / "bin" / "python", "install", *wanted)
    except subprocess.CalledProcessError as error:
        shutil.rmtree(partial, ignore_errors=True)
        lines = error.stderr.strip().splitlines() or ["pip failed"]
        pytest.skip(f"an environment with {wanted[0]} needs pip to make it: {lines[-1]}")
    # Scripts in bin/ name the directory that they were made in; the interpreter does not, and only it is used.
    partial.rename(home)


def build_project(scratch: Path) -> Path:
    """Build the project's wheel from a copy and unpack it; the directory to put on the path."""
    source = scratch / "source"
    source.mkdir()
    for name in _BUILT_FROM:
        path = REPOSITORY / name
        if path.is_dir():
            shutil.copytree(path, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        elif path.exists():
            shutil.copy(path, source / name)
    place = scratch / "installed"
    _pip(Path(sys.executable), "install", "--no-deps", "--target", str(place), str(source))
    return place


def _pip(python: Path, *words: str) -> None:
    command = [str(python), "-m", "pip", words[0], "--quiet", "--disable-pip-version-check", *words[1:]]
    subprocess.run(command, capture_output=True, text=True, timeout=PIP_TIMEOUT, env=environment(), check=True)


def environment(**extra: str) -> dict[str, str]:
    """This process's environment without what would lead an interpreter to other packages or another Spark."""
    return {name: value for name, value in os.environ.items() if name not in _MEDDLING} | extra
