"""Spark 4.0, 4.1 and 4.2 in environments of their own, against Apache Kafka: what each does, and how it says what not.

And Spark Connect, whose client needs packages that the others do not. ``make test-spark-versions``; the first run
downloads four releases of Spark. Everything else of test/ runs with the release that is installed, which is the newest.
"""

from __future__ import annotations

import json
import subprocess
import uuid
from pathlib import Path
from typing import Any

import pytest

from test.real.kafka_process import KafkaCluster
from test.real.spark.venvs import build_project, environment, python_with_spark

pytestmark = [pytest.mark.soak, pytest.mark.timeout(3000)]

PROGRAM = Path(__file__).with_name("smoke.py")
SKIPPED = "failOnDataLoss is false: skipped 290 offsets of {topic}-0, continuing at 390"
NO_LIMITS = "maxOffsetsPerTrigger and minOffsetsPerTrigger have no effect before Spark 4.2"


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_project(tmp_path_factory.mktemp("project"))


@pytest.mark.parametrize("release", ["4.0", "4.1", "4.2"])
def test_a_release_reads_and_writes_batches_and_streams(
    release: str, project: Path, kafka: KafkaCluster, tmp_path: Path
) -> None:
    python = python_with_spark(release)
    mark = uuid.uuid4().hex[:8]
    topic, target = (kafka.create_topic(f"{name}-{mark}", partitions=2) for name in ("events", "out"))
    for other in ("once", "limited", "lossy"):
        kafka.create_topic(f"{target}-{other}", partitions=2)
    variables = environment(PYTHONPATH=str(project), PYTHONDONTWRITEBYTECODE="1")
    found, shown = tried(python, PROGRAM, variables, kafka.bootstrap_servers, topic, target, str(tmp_path))
    version, home = found["versions"]
    assert version.startswith(f"{release}.")
    assert Path(home).is_relative_to(project)
    check_limits(release, found["limits_of_batches"], shown)
    assert found["skipped_data"] == [100, 10]
    skipped = SKIPPED.format(topic=f"{target}-lossy")
    sentences = [line for line in shown.splitlines() if skipped in line]
    assert sentences, shown[-4000:]
    print(*sentences, sep="\n")


def test_spark_connect_reads_writes_and_knows_registries(project: Path, kafka: KafkaCluster, tmp_path: Path) -> None:
    python = python_with_spark("4.3", "[connect]")
    mark = uuid.uuid4().hex[:8]
    topic, target = (kafka.create_topic(f"{name}-{mark}", partitions=2) for name in ("events", "out"))
    kafka.create_topic(f"{target}-avro", partitions=2)
    variables = environment(PYTHONPATH=str(project), PYTHONDONTWRITEBYTECODE="1", PYSPARK_PYTHON=str(python))
    program = PROGRAM.with_name("connect_smoke.py")
    found, _ = tried(python, program, variables, kafka.bootstrap_servers, topic, target, str(tmp_path))
    assert len(found) == 5


def tried(python: Path, program: Path, variables: dict[str, str], *words: str) -> tuple[dict[str, Any], str]:
    """Run a program that tries things; return what came of each, and its standard error. None of them failed."""
    command = [str(python), str(program), *words]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=1500, env=variables, check=False, cwd=words[-1]
    )
    said = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    print(*(json.dumps(each) for each in said), sep="\n")
    assert done.returncode == 0, done.stderr[-4000:]
    failed = {each["what"]: each.get("error") for each in said if not each["ok"]}
    assert not failed, f"{failed}\n{done.stderr[-4000:]}"
    return {each["what"]: each["result"] for each in said}, done.stderr


def check_limits(release: str, batches: int, stderr: str) -> None:
    """2100 offsets in batches of 500, or in one and a warning that there are no limits yet."""
    if release >= "4.2":
        assert batches == 5
        return
    assert batches == 1
    assert NO_LIMITS in stderr
    found: Any = [line for line in stderr.splitlines() if NO_LIMITS in line]
    print(found[0])
