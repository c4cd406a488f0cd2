"""Packages made for kafka-python, from the registry and unchanged, on this one: each produces and consumes a record.

The environment is made once for the run. Packages that require kafka-python are installed without what they require,
and the rest of that is listed; so there is one package ``kafka`` in it, ours.
"""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path
from typing import Final

import pytest

from kafka.broker import Broker

pytestmark = [pytest.mark.soak, pytest.mark.timeout(900)]

ROOT: Final = Path(__file__).parents[3]
PROGRAMS: Final = Path(__file__).with_name("third_party.py")
# Program -> what requires kafka-python, and what else that requires.
PACKAGES: Final = {
    "opentelemetry": ([], ["opentelemetry-instrumentation-kafka-python", "opentelemetry-sdk"]),
    "elasticapm": ([], ["elastic-apm"]),
    "newrelic": ([], ["newrelic"]),
    "instana": ([], ["instana"]),
    "aiokafka": (["aiokafka==0.8.1"], ["async-timeout", "packaging"]),
    "kq": (["kq"], ["dill"]),
    "robotframework": (["robotframework-kafkalibrary"], ["robotframework", "six"]),
    "kafka_logging_handler": (["kafka-logging-handler"], []),
    "kafka_utils": (["kafka-utils"], ["humanfriendly", "kazoo", "PyYAML", "pytz", "requests-futures", "tenacity"]),
    "pytest_kafka": (["pytest-kafka"], ["pytest", "port-for"]),
}


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make an environment with the packages; return its Python."""
    place = tmp_path_factory.mktemp("packages")
    venv.create(place, with_pip=True)
    python = place / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    others = sorted({name for _, names in PACKAGES.values() for name in names})
    subprocess.run([*install, "setuptools<81", "typing-extensions", *others], check=True)
    requiring = [name for names, _ in PACKAGES.values() for name in names]
    subprocess.run([*install, "--no-deps", *requiring], check=True)
    subprocess.run([*install, "--no-deps", "--editable", ROOT], check=True)
    return python


@pytest.mark.parametrize("name", PACKAGES)
def test_a_package_made_for_kafka_python_produces_and_consumes(environment: Path, name: str) -> None:
    with Broker(topics={"events": 1, "jobs": 1}) as broker:
        done = subprocess.run(
            [environment, "-W", "ignore", PROGRAMS, name, broker.bootstrap_servers],
            env={key: value for key, value in os.environ.items() if key != "PYTHONPATH"},
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert done.stdout.endswith("done\n")
        assert broker.records("jobs" if name == "kq" else "events")
