"""The Python blocks of docs/spark.rst run, one after another in one session."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from kafka.broker import Broker
from test.embedded.docs.blocks import ROOT, python_blocks, run

PAGE = ROOT / "docs" / "spark.rst"
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
