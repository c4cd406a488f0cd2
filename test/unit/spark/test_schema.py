"""A schema that chooses columns: what it may choose, and what a refusal says."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark", reason="pyspark is not installed: pip install 'purekafka[spark]'")

from pyspark.sql.types import BinaryType, DataType, LongType, StringType, StructField, StructType

from kafka.spark.datasource import chosen_columns
from kafka.spark.errors import KafkaSparkOptionError


@pytest.mark.parametrize(
    ("name", "kind", "nullable", "fault"),
    [
        ("vlaue", BinaryType(), True, "it has no column 'vlaue'"),
        ("value", StringType(), True, "its column 'value' is binary, not string; cast it in the query"),
        ("offset", LongType(), False, "its column 'offset' is nullable, remove NOT NULL"),
    ],
)
def test_a_column_that_the_source_cannot_give_is_refused_with_the_reason(
    name: str, kind: DataType, nullable: bool, fault: str
) -> None:
    with pytest.raises(KafkaSparkOptionError) as caught:
        chosen_columns(StructType([StructField("key", BinaryType()), StructField(name, kind, nullable)]))
    assert f"cannot be set with a custom one: {fault}. A schema may choose among key:binary,value:binary," in str(
        caught.value
    )
