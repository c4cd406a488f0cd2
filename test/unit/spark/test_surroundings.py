"""What a session begins with, and what the shim does to Spark's classes: without Spark."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Any

import pytest

from kafka.spark import session

SHUFFLE = "spark.sql.shuffle.partitions"


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


@pytest.mark.parametrize("master", ["spark://m:7077", "yarn", "k8s://https://m:443", "local-cluster[2,1,1024]"])
def test_a_cluster_can_connect_back_to_the_driver_and_shuffles_as_it_says_itself(master: str) -> None:
    chosen, environment = session._surroundings(master, {}, {})
    assert chosen["spark.master"] == master
    assert SHUFFLE not in chosen
    assert ("SPARK_LOCAL_IP" in environment) == master.startswith("local-cluster")


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
def shimmed(monkeypatch: pytest.MonkeyPatch) -> type[Writer]:
    """Return a class of writers that the shim was installed for."""
    module = ModuleType("some_writers")
    fresh = type("Fresh", (Writer,), {"mode": Writer.mode, "format": Writer.format})
    module.Fresh = fresh  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "some_writers", module)
    monkeypatch.setattr(session, "_READERS", ())
    monkeypatch.setattr(session, "_WRITERS", (("some_writers", "Fresh"), ("not_installed", "Fresh")))
    session._install_shim()
    session._install_shim()  # once is enough
    return fresh


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
