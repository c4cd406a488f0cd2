"""A Spark data source for Kafka, without a jar.

``spark.readStream.format("purekafka")`` reads topics and ``df.writeStream.format("purekafka")`` writes them; options,
columns and checkpoints are the same as in Spark's own Kafka connector. See ``docs/spark.rst``.

Importing this package imports neither pyspark nor pyarrow; names that need them are loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka._lazy import lazy_names

if TYPE_CHECKING:
    from kafka.spark.datasource import KafkaDataSource
    from kafka.spark.errors import KafkaAvailableNowError, KafkaDataLossError, KafkaSparkOptionError, cause_of
    from kafka.spark.jobs.runner import watch
    from kafka.spark.listeners import LagListener, foreach_batch_writer
    from kafka.spark.progress import lag
    from kafka.spark.registry import from_registry, to_registry
    from kafka.spark.session import ensure_java, register, unregister

__all__ = [
    "KafkaAvailableNowError",
    "KafkaDataLossError",
    "KafkaDataSource",
    "KafkaSparkOptionError",
    "LagListener",
    "cause_of",
    "ensure_java",
    "foreach_batch_writer",
    "from_registry",
    "lag",
    "register",
    "to_registry",
    "unregister",
    "watch",
]

_MODULES: Final = {
    "datasource": "KafkaDataSource",
    "errors": "KafkaAvailableNowError KafkaDataLossError KafkaSparkOptionError cause_of",
    "jobs.runner": "watch",
    "listeners": "LagListener foreach_batch_writer",
    "progress": "lag",
    "registry": "from_registry to_registry",
    "session": "ensure_java register unregister",
}

if not TYPE_CHECKING:  # checkers report a name that is not here
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
