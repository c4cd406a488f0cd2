"""What a session begins with, and what the shim does to Spark's classes: without Spark."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from kafka.errors import KafkaConfigurationError
from kafka.spark import KafkaSparkOptionError, session

SHUFFLE = "spark.sql.shuffle.partitions"
UNIX_SOCKETS = "spark.python.unix.domain.socket.enabled"


@pytest.mark.parametrize("master", ["local", "local[4]", "local[*]"])
def test_a_master_on_this_machine_has_the_address_of_this_machine_and_as_many_shuffle_partitions_as_threads(
    master: str,
) -> None:
    for chosen, environment in (
        session._surroundings(master, {}, {}),
        session._surroundings(None, {"spark.master": master}, {}),
        session._surroundings(None, {}, {"MASTER": master, "SPARK_HOME": "/opt/spark"}),
    ):
        assert environment["SPARK_LOCAL_IP"] == "127.0.0.1"
        assert (chosen["spark.master"], int(chosen[SHUFFLE]) >= 2) == (master, True)
        assert chosen[UNIX_SOCKETS] == "true"


@pytest.mark.parametrize("master", ["spark://m:7077", "yarn", "k8s://https://m:443", "local-cluster[2,1,1024]"])
def test_a_cluster_can_connect_back_to_the_driver_and_shuffles_as_it_says_itself(master: str) -> None:
    chosen, environment = session._surroundings(master, {}, {})
    assert chosen["spark.master"] == master
    assert SHUFFLE not in chosen
    assert ("SPARK_LOCAL_IP" in environment, UNIX_SOCKETS in chosen) == (master.startswith("local-cluster"),) * 2


def test_without_a_master_it_is_this_machine_unless_spark_has_a_configuration() -> None:
    chosen, environment = session._surroundings(None, {}, {})
    assert chosen["spark.master"].startswith("local[")
    assert "SPARK_LOCAL_IP" in environment
    chosen, environment = session._surroundings(None, {}, {"SPARK_HOME": "/opt/spark"})
    assert "spark.master" not in chosen
    assert SHUFFLE not in chosen
    assert "SPARK_LOCAL_IP" not in environment


class Writer:
    """As Spark's, as far as the shim goes."""

    def __init__(self) -> None:
        self.seen: list[str | None] = []
        self.source = ""

    def format(self, source: str) -> Any:
        self.source = source
        return self

    def mode(self, saveMode: str | None) -> Any:
        self.seen.append(saveMode)
        return self


@pytest.fixture
def shimmed(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Writer]]:
    """Return a class of writers that the shim was installed for."""
    module = ModuleType("some_writers")
    fresh = type("Fresh", (Writer,), {"mode": Writer.mode, "format": Writer.format})
    module.Fresh = fresh  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "some_writers", module)
    monkeypatch.setattr(session, "_replaced", {})
    monkeypatch.setattr(session, "_READERS", ())
    monkeypatch.setattr(session, "_WRITERS", (("some_writers", "Fresh"), ("not_installed", "Fresh")))
    session._install_shim()
    session._install_shim()  # once is enough
    yield fresh
    session.unregister()


def test_the_shim_appends_where_no_mode_was_chosen(shimmed: type[Writer]) -> None:
    writer = shimmed().format("Kafka")
    assert (writer.source, writer.seen) == ("purekafka", ["append"])
    writer = shimmed().mode(None).format("kafka")
    assert writer.seen == [None, "append"]


def test_the_shim_leaves_a_mode_that_was_chosen_before_the_format(shimmed: type[Writer]) -> None:
    assert shimmed().mode("overwrite").format("kafka").seen == ["overwrite"]
    assert shimmed().format("kafka").mode("overwrite").seen == ["append", "overwrite"]


def test_the_shim_leaves_other_formats_alone(shimmed: type[Writer]) -> None:
    writer = shimmed().format("parquet")
    assert (writer.source, writer.seen) == ("parquet", [])


@pytest.mark.parametrize("end", [ImportError("no pandas"), SystemExit(0)])
def test_the_shim_goes_without_spark_connect(monkeypatch: pytest.MonkeyPatch, end: BaseException) -> None:
    """With python -c, an import of Spark Connect without its packages calls sys.exit()."""

    def import_module(name: str) -> None:
        raise end

    monkeypatch.setattr(session, "_replaced", {})
    monkeypatch.setattr(session, "import_module", import_module)
    session._install_shim()
    assert session._replaced == {}


def test_the_shim_is_taken_back(shimmed: type[Writer]) -> None:
    session.unregister()
    writer = shimmed().mode(None).format("kafka")
    assert (writer.source, writer.seen) == ("kafka", [None])
    assert (shimmed.format, shimmed.mode) == (Writer.format, Writer.mode)
    session.unregister()  # once more changes nothing
    session._install_shim()
    assert shimmed().format("kafka").source == "purekafka"
    with session.Registration():
        pass
    assert shimmed().format("kafka").source == "kafka"


class StreamWriter:
    """As pyspark's, which takes its arguments by name too."""

    def format(self, source: str) -> Any:
        self.source = source
        return self

    def outputMode(self, outputMode: str) -> Any:
        return self

    def start(
        self,
        path: str | None = None,
        format: str | None = None,  # noqa: A002 - the name there
        outputMode: str | None = None,
    ) -> str:
        return "started"


@pytest.mark.parametrize("by_name", [False, True])
def test_update_mode_is_refused_for_this_format_only(monkeypatch: pytest.MonkeyPatch, by_name: bool) -> None:
    module = ModuleType("some_writers")
    fresh = type("DataStreamWriter", (StreamWriter,), dict(vars(StreamWriter)))
    module.DataStreamWriter = fresh  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "some_writers", module)
    monkeypatch.setattr(session, "_replaced", {})
    session._refuse_update_mode("some_writers")

    def start(source: str, mode: str) -> str:
        writer = fresh()
        writer = writer.format(source=source) if by_name else writer.format(source)
        writer = writer.outputMode(outputMode=mode) if by_name else writer.outputMode(mode)
        return str(writer.start())

    assert [start("purekafka", "append"), start("console", "update")] == ["started"] * 2
    with pytest.raises(KafkaSparkOptionError, match="foreach_batch_writer"):
        start("PureKafka", "Update")
    with pytest.raises(KafkaSparkOptionError, match="foreach_batch_writer"):
        fresh().start(format="purekafka", outputMode="update")


# Which interpreter the workers run, and whether Spark finds the source with it.


class Session:
    """As Spark's, as far as registering goes."""

    def __init__(self, java: dict[str, str], worker: str, *, master: str = "local[1]", finds: bool = True) -> None:
        self.registered: list[type] = []
        self.looked_up: list[str] = []
        self.dataSource = SimpleNamespace(register=self.registered.append)
        machine = SimpleNamespace(System=SimpleNamespace(getenv=java.get))
        conf = SimpleNamespace(contains=lambda _name: False)
        self.sparkContext = SimpleNamespace(_jvm=machine, master=master, pythonExec=worker, getConf=lambda: conf)

        def exists(name: str) -> bool:
            self.looked_up.append(name)
            return finds

        manager = SimpleNamespace(dataSourceExists=exists)
        state = SimpleNamespace(dataSourceManager=lambda: manager)
        self._jsparkSession = SimpleNamespace(sessionState=lambda: state)


def register(spark: Session) -> int:
    """Register the source, and return how often Spark was given it."""
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'purekafka[spark]'")
    session.register(spark)  # type: ignore[arg-type]
    return len(spark.registered)


@pytest.mark.parametrize("name", ["PYSPARK_PYTHON", "PYSPARK_DRIVER_PYTHON"])
def test_a_source_that_spark_finds_is_not_registered_once_more(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    spark = Session({name: sys.executable}, sys.executable)
    assert register(spark) == 0
    assert spark.looked_up == ["purekafka"]
    assert register(Session({name: sys.executable}, sys.executable, finds=False)) == 1


def test_a_source_found_with_another_interpreter_is_registered(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    other = tmp_path / "python3"
    other.symlink_to(sys.executable)  # as in another virtual environment: the same file, other packages
    spark = Session({"PYSPARK_PYTHON": str(other)}, "python3")
    assert register(spark) == 1
    assert spark.sparkContext.pythonExec == sys.executable  # on this machine, where none was chosen
    assert spark.looked_up == []
    assert register(spark) == 1  # a second time changes nothing


def test_workers_load_the_installed_pyspark_and_not_spark_s_archive_of_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("PYSPARK_PYTHON", raising=False)
    pyspark = pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'purekafka[spark]'")
    py4j = pytest.importorskip("py4j")
    installed = Path(pyspark.__file__).parent
    spark = Session({"SPARK_HOME": str(installed)}, "python3")
    assert register(spark) == 1
    python = spark.sparkContext.pythonExec
    assert python != sys.executable
    archives = [str(path) for path in (installed / "python" / "lib").glob("*.zip")]
    assert len(archives) == 2
    program = (
        "import os, sys, py4j, pyspark as p; print(p.__file__, py4j.__file__, *sys.argv, os.environ['PYTHONPATH'])"
    )
    path = os.pathsep.join([archives[0], "a b", *archives[1:], "*"])
    found = subprocess.run(
        [python, "-c", program, "one word"], env={"PYTHONPATH": path}, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == f"{pyspark.__file__} {py4j.__file__} -c one word a b:*"
    # Another Spark's archive is another release.
    other = Session({"SPARK_HOME": str(tmp_path)}, "python3")
    register(other)
    assert other.sparkContext.pythonExec == sys.executable


def test_an_interpreter_that_the_driver_does_not_have_is_named_before_spark_looks_for_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    packed = "./environment/bin/python"
    monkeypatch.setenv("PYSPARK_PYTHON", packed)
    spark = Session({"PYSPARK_PYTHON": packed}, packed, master="spark://m:7077")
    with pytest.raises(KafkaConfigurationError) as caught:
        register(spark)
    assert str(caught.value).startswith(
        f"The interpreter {packed} (PYSPARK_PYTHON) does not exist on the driver, in {tmp_path}."
    )
    assert "(mkdir environment && tar -xzf environment.tar.gz -C environment)" in str(caught.value)
    (tmp_path / "environment" / "bin").mkdir(parents=True)
    (tmp_path / "environment" / "bin" / "python").symlink_to(sys.executable)
    assert register(spark) == 0
    spark = Session({"PYSPARK_PYTHON": "no-such-python"}, "no-such-python", master="yarn")
    with pytest.raises(KafkaConfigurationError, match="set PYSPARK_PYTHON to an interpreter that exists"):
        register(spark)


def test_processes_of_spark_print_warnings_and_programs_decide_for_themselves() -> None:
    program = """
import logging, sys
import kafka.client_async  # which keeps the package silent where a program has no handlers
import kafka.spark.client_cache as cache
sys.modules["__main__"].__spec__ = type("Spec", (), {"name": sys.argv[1]})()
cache.show_warnings()
cache.show_warnings()
logging.getLogger("kafka.spark.planning").warning("skipped 3 offsets")
"""

    def printed(name: str) -> str:
        command = [sys.executable, "-c", program, name]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stderr

    assert printed("pyspark.daemon").endswith("WARNING kafka.spark.planning: skipped 3 offsets\n")
    assert printed("pyspark.daemon").count("skipped") == 1
    assert printed("program") == ""
