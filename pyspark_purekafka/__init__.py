"""Lets Spark find the format ``purekafka`` without registration: Spark imports every package named pyspark_*.

Raises nothing: one exception here would keep Spark from finding any source that is written in Python.
"""

try:
    from kafka.spark import KafkaDataSource as DefaultSource
except Exception:  # pyspark or pyarrow is missing or too old; register() says so
    __all__ = []
else:
    __all__ = ["DefaultSource"]
