"""Reading the checkpoint of a query on a file system of this machine: where it stands. Needs no pyspark."""

from __future__ import annotations

import json
from pathlib import Path

from kafka.errors import KafkaConfigurationError
from kafka.spark.offsets import Offsets, from_nested

__all__ = ["committed_offsets"]


def committed_offsets(checkpoint: str | Path, source: int = 0) -> Offsets:
    """Return the offsets up to which a query has processed its source, none if no batch is done.

    >>> committed_offsets("/does/not/exist")
    Traceback (most recent call last):
    kafka.errors.KafkaConfigurationError: /does/not/exist is no checkpoint of a query: it has no directory offsets
    """
    root = Path(str(checkpoint).removeprefix("file://"))
    if not (root / "offsets").is_dir():
        raise KafkaConfigurationError(f"{root} is no checkpoint of a query: it has no directory offsets")
    done = [int(path.name) for path in (root / "commits").glob("*") if path.name.isdigit()]
    if not done:
        return {}
    # A version, what belongs to the batch as a whole, and then a line for each source.
    lines = (root / "offsets" / str(max(done))).read_text(encoding="utf-8").splitlines()[2:]
    if source >= len(lines) or lines[source] == "-":
        return {}
    try:
        return from_nested(json.loads(lines[source]))
    except (AttributeError, TypeError, ValueError):
        raise KafkaConfigurationError(
            f"source {source} of {root} is not Kafka: its offset is {lines[source]}"
        ) from None
