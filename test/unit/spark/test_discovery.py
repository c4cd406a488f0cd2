"""Spark finds the source by itself: by a module whose name begins with pyspark_, which never fails."""

from __future__ import annotations

import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import kafka

ROOT = Path(kafka.__file__).parents[1]


def test_the_module_is_where_spark_looks_and_has_the_source() -> None:
    pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'purekafka[spark]'")
    import pyspark_purekafka
    from kafka.spark import KafkaDataSource

    found = [module.name for module in pkgutil.iter_modules([str(ROOT)]) if module.name.startswith("pyspark_")]
    assert found == ["pyspark_purekafka"]
    assert pyspark_purekafka.DefaultSource is KafkaDataSource


def test_without_pyspark_it_raises_nothing() -> None:
    # One exception would hide every source that is written in Python.
    program = "import sys; sys.modules['pyspark'] = None; import pyspark_purekafka as m; print(m.__all__)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
