"""The Python blocks of docs/spark.rst run, one after another in one session."""

from __future__ import annotations

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
        # The streaming query wrote the values in upper case, and the one with exactlyOnce as they are.
        written = [record.value for record in broker.records("counts")]
    assert capsys.readouterr().out.count("|") > 0, "the batch query shows no table"
    assert written.count(b"A") + written.count(b"a") >= 2
