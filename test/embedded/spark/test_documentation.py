"""The code blocks about Spark run: Python in one session, jobs from the shell, and what a cluster would be given."""

from __future__ import annotations

import shlex
import shutil
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka.broker import Broker
from test.embedded.docs.blocks import ROOT, Block, python_blocks, run, runs
from test.embedded.docs.shell_blocks import Shell, commands

from .test_jobs import ClientCache, signalled

PAGE = ROOT / "docs" / "spark.rst"
COMMANDS = "docs/reference/commands.rst"
pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def test_the_blocks_of_the_page_run(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names: dict[str, Any] = {"__name__": "__example__"}
    with Broker(topics={"events": 4, "counts": 1}) as broker:
        broker.append_many("events", [b"a", b"b", b"c"], partition=0)
        try:
            assert run(PAGE, names, broker, str(tmp_path)) == len(python_blocks(PAGE))
        finally:
            for query in spark.streams.active:
                query.stop()
            if "consumer" in names:
                names["consumer"].close()
    assert capsys.readouterr().out.count("|") > 0, "the batch query shows no table"


def wait_for_values(broker: Broker, values: set[bytes]) -> None:
    deadline = time.monotonic() + 120
    while missing := values - {record.value for record in broker.records("counts")}:
        assert time.monotonic() < deadline, f"no query wrote {missing}"
        time.sleep(0.1)


# Commands.


@pytest.fixture
def here(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shell]:
    """A shell whose jobs run in the session of all tests."""
    monkeypatch.setattr("kafka.spark.session.local_session", lambda *_, **__: ClientCache(spark))
    topics = {"events": 2, "events-2": 2, "counts": 1, "events-dead": 1}
    with Broker(topics=topics) as broker:
        for number in range(20):
            event = f'{{"user": "ada", "amount": 1.5, "at": "2026-01-01T00:{number:02}:00Z"}}'
            broker.append("events", event if number else "malformed", partition=number % 2)
        replaced = {
            "--checkpoint /c": f"--checkpoint {tmp_path}/c",
            "purekafka demo": f"purekafka demo --events 20000 --directory {tmp_path}/demo",
        }
        yield Shell(tmp_path, broker.bootstrap_servers, replaced)


@runs(
    ("docs/spark.rst", "$ purekafka spark run"),
    *((COMMANDS, f"purekafka spark {verb} ") for verb in ("run", "copy", "lag", "dump", "plan")),
)
def test_the_jobs_of_the_pages_run(shown: list[Block], here: Shell, tmp_path: Path) -> None:
    guide, plain, copy, lag, dump, plan = shown
    shutil.rmtree(tmp_path / "data")
    # Jobs that run until they are stopped, and what is there when each of their queries has finished a batch.
    for block, *checkpoints in (
        (guide, "checkpoint/topic", "checkpoint/parquet", "checkpoint/dead-letters"),
        (plain, "c/topic"),
        (copy, "data/copy"),
    ):
        done = [tmp_path / checkpoint / "commits" / "0" for checkpoint in checkpoints]
        with signalled(signal.SIGTERM, *done):
            assert here.run(block) == 1
        assert all(path.exists() for path in done)
    assert here.run_line(commands(lag)[0].text).split()[-2:] == ["all", "0"]
    assert here.run(lag) == 2
    for block in (dump, plan):
        assert here.run(block) == 1
    assert list((tmp_path / "data" / "events").glob("*.parquet"))


@runs((COMMANDS, "purekafka demo"))
def test_the_demo_counts_every_event_on_spark(shown: list[Block], here: Shell, tmp_path: Path) -> None:
    """With fewer events; test/real/docs runs it as it is, in a new environment (make test-spark-versions)."""
    (block,) = shown
    on_spark, without = (here.run_line(command.text) for command in commands(block))
    assert "on Spark, 20,000 events in 10 windows" in on_spark
    assert "all 20,000 events arrived, each once, and the group committed them" in on_spark
    assert list((tmp_path / "demo" / "by-window").glob("*.parquet"))
    assert "all 20,000 events arrived, each once, and the group committed them" in without
    assert "on Spark" not in without


# Clusters that a test cannot have: Spark's own front end checks and resolves the arguments, up to sending them.


@runs(("docs/spark.rst", "$ spark-submit --master k8s"), ("docs/spark.rst", "$ spark-submit --master yarn"))
def test_the_commands_for_kubernetes_and_yarn_are_accepted(shown: list[Block], spark: Any, tmp_path: Path) -> None:
    kubernetes, yarn = (submitted(spark, commands(block)[0].text, tmp_path) for block in shown)
    assert kubernetes == (
        "org.apache.spark.deploy.k8s.submit.KubernetesClientApplication",
        {
            "spark.master": "k8s://https://HOST:6443",
            "spark.submit.deployMode": "cluster",
            "spark.kubernetes.container.image": "IMAGE",
        },
    )
    assert yarn == (
        "org.apache.spark.deploy.yarn.YarnClusterApplication",
        {
            "spark.master": "yarn",
            "spark.submit.deployMode": "cluster",
            "spark.yarn.dist.archives": f"file://{tmp_path}/environment.tar.gz#environment",
            "spark.yarn.isPython": "true",
            "spark.yarn.appMasterEnv.PYSPARK_PYTHON": "./environment/bin/python",
            "spark.executorEnv.PYSPARK_PYTHON": "./environment/bin/python",
        },
    )


def submitted(spark: Any, command: str, tmp_path: Path) -> tuple[str, dict[str, str]]:
    """Return the class that spark-submit would start for a command, and the configuration it would give it."""
    for name in ("program.py", "environment.tar.gz"):
        (tmp_path / name).touch()
    words = shlex.split(command)[1:]
    words = [
        f"{tmp_path}/{word}" if word.partition("#")[0] in {"program.py", "environment.tar.gz"} else word
        for word in words
    ]
    java = spark.sparkContext._jvm
    deploy = java.org.apache.spark.deploy
    environment = java.PythonUtils.toScalaMap({"YARN_CONF_DIR": str(tmp_path)})
    arguments = deploy.SparkSubmitArguments(java.PythonUtils.toSeq(words), environment)
    prepared = deploy.SparkSubmit().prepareSubmitEnvironment(arguments, java.scala.Option.empty())
    named = (
        "spark.master",
        "spark.submit.deployMode",
        "spark.kubernetes.container",
        "spark.yarn.",
        "spark.executorEnv.",
    )
    found = {pair._1(): pair._2() for pair in prepared._3().getAll()}
    return prepared._4(), {name: value for name, value in found.items() if name.startswith(named)}
