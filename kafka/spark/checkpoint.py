"""Reading the checkpoint of a query on a file system of this machine: where it stands. Needs no pyspark."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Final

from kafka.errors import KafkaConfigurationError
from kafka.spark.offsets import Offsets, from_nested, lowest

__all__ = ["committed_offsets", "local_path"]

# Two letters or more: one is a drive.
_SCHEME: Final = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?://[^/]*)?(?=/)")


def local_path(place: str | Path) -> Path:
    """Return where a path of Spark's is on this machine.

    >>> str(local_path("file:/data/copy")), str(local_path("file:///data/copy")), str(local_path("data/copy"))
    ('/data/copy', '/data/copy', 'data/copy')
    >>> local_path("s3a://bucket/copy")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    kafka.errors.KafkaConfigurationError: s3a://bucket/copy is not on this machine's file system, the only one ...
    """
    text = str(place)
    scheme = _SCHEME.match(text)
    if scheme is None or isinstance(place, Path):
        return Path(text)
    if scheme[1].lower() != "file":
        raise KafkaConfigurationError(
            f"{text} is not on this machine's file system, the only one that this reads. Elsewhere let the query have "
            "the option commitOffsetsToGroup, or ask kafka.spark.lag(query.lastProgress)"
        )
    return Path(text[scheme.end() :])


def committed_offsets(checkpoint: str | Path, source: int | None = None) -> Offsets:
    """Return the offsets up to which a query has processed what it reads, none if no batch is done.

    Of several sources, all those that are Kafka, or the one of a number; of a partition that two of them read, the one
    that is behind.

    >>> committed_offsets("/does/not/exist")
    Traceback (most recent call last):
    kafka.errors.KafkaConfigurationError: /does/not/exist is not a checkpoint of a query: it has no directory offsets
    """
    root = local_path(checkpoint)
    if not (root / "offsets").is_dir():
        raise KafkaConfigurationError(f"{root} is not a checkpoint of a query: it has no directory offsets")
    done = [int(path.name) for path in (root / "commits").glob("*") if path.name.isdigit()]
    if not done:
        return {}
    # A version, what belongs to the batch as a whole, and then a line for each source.
    lines = (root / "offsets" / str(max(done))).read_text(encoding="utf-8").splitlines()[2:]
    wanted = {number: line for number, line in enumerate(lines) if source in {None, number} and line != "-"}
    found = {number: offsets for number, line in wanted.items() if (offsets := _offsets(line)) is not None}
    if wanted and not found:
        number, line = next(iter(wanted.items()))
        raise KafkaConfigurationError(f"source {number} of {root} is not Kafka: its offset is {line}")
    return lowest(found.values())


def _offsets(line: str) -> Offsets | None:
    """Return what the log has for a source; None if that is not Kafka."""
    try:
        return from_nested(json.loads(line))
    except (AttributeError, TypeError, ValueError):
        return None
