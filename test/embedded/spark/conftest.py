"""One Spark session for all tests of this package, and one process for programs: Java starts once for each."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafka.broker import Broker
from test.spark_runs.quick_start import quick_home
from test.spark_runs.sessions import spark_session

from .programs import ROOT, Programs, programs

HERE = Path(__file__).parent


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let parity come first: it needs a Java machine with jars, and the package's session keeps its own to the end."""
    items.sort(key=lambda item: item.path != HERE / "test_parity.py")


@pytest.fixture(scope="package", autouse=True)
def quick_starts() -> Iterator[None]:
    """Let Spark start quickly in the programs that tests run."""
    with quick_home():
        yield


@pytest.fixture(scope="package")
def spark() -> Iterator[Any]:
    """Return a session with the source registered."""
    with spark_session("tests") as session:
        yield session


@pytest.fixture(scope="package")
def one_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Programs]:
    """What runs whole programs of users, in an environment that is not activated.

    python3 on the path, which Spark's processes would run by themselves, is another one.
    """
    wrong = tmp_path_factory.mktemp("path") / "python3"
    wrong.write_text("#!/bin/sh\nexit 3\n", encoding="utf-8")
    wrong.chmod(0o755)
    found = {key: value for key, value in os.environ.items() if not key.startswith("PYSPARK_")}
    path = os.pathsep.join((str(wrong.parent), os.environ["PATH"]))
    with programs({**found, "PATH": path, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}) as running:
        yield running


@pytest.fixture
def kafka_broker_options() -> dict[str, Any]:
    return {"topics": {"events": 2, "out": 2}}


Read = Callable[..., Any]


@pytest.fixture
def read(spark: Any, broker: Broker) -> Read:
    """Return what makes a batch frame of ``events``."""

    def load(**options: str) -> Any:
        chosen = {"subscribe": "events", **{name.replace("__", "."): value for name, value in options.items()}}
        reader = spark.read.format("purekafka").option("kafka.bootstrap.servers", broker.bootstrap_servers)
        return reader.options(**chosen).load()

    return load


@pytest.fixture
def stream(spark: Any, broker: Broker) -> Read:
    """Return what makes a streaming frame of ``events``, from the earliest offsets."""

    def load(**options: str) -> Any:
        chosen = {
            "subscribe": "events",
            "startingOffsets": "earliest",
            **{name.replace("__", "."): value for name, value in options.items()},
        }
        reader = spark.readStream.format("purekafka").option("kafka.bootstrap.servers", broker.bootstrap_servers)
        return reader.options(**chosen).load()

    return load
