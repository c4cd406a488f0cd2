"""How far a query is behind, from Spark's progress reports or its checkpoint. Needs no pyspark, contacts no broker."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from kafka.errors import KafkaConfigurationError
from kafka.spark.offsets import Offsets, from_nested, lowest
from kafka.structs import TopicPartition

__all__ = ["lag", "committed_offsets", "local_path"]


def lag(progress: object) -> dict[TopicPartition, int] | None:
    """Return how many offsets of each partition a query had not processed when it reported this progress.

    ``progress`` is what ``query.lastProgress`` gives, or the progress of a listener's event. Returns None where the lag
    is unknown: before the first progress, and for a batch that a query repeats after a restart, for which Spark does
    not ask the source for the latest offsets. The next batch reports it again.

    >>> ends = {"endOffset": '{"events":{"0":7}}', "latestOffset": '{"events":{"0":10}}'}
    >>> lag({"sources": [ends]})
    {TopicPartition(topic='events', partition=0): 3}
    >>> lag({"sources": [{**ends, "latestOffset": None}]}) is None
    True
    """
    if progress is None:
        return None
    found: dict[TopicPartition, int] = {}
    for source in _field(progress, "sources") or ():
        end, latest = _offsets(_field(source, "endOffset")), _offsets(_field(source, "latestOffset"))
        if end and not latest:
            return None
        for tp, offset in latest.items():
            # A partition that the batch did not have yet is read from its beginning, which is not known here. One that
            # two sources read is as far behind as the slower of them.
            found[tp] = max(0, offset - end.get(tp, 0), found.get(tp, 0))
    return found


def _field(holder: object, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def _offsets(text: Any) -> Offsets:
    """Return the offsets in a report; none where they are of another kind of source."""
    try:
        nested = json.loads(text) if isinstance(text, str) else text
        return {} if nested is None else from_nested(nested)
    except (AttributeError, TypeError, ValueError):
        return {}


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

    Of several sources, all Kafka sources, or the one with a number; of a partition that two of them read, the lower
    offset.

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
    found = {number: offsets for number, line in wanted.items() if (offsets := _offsets_of(line)) is not None}
    if wanted and not found:
        number, line = next(iter(wanted.items()))
        raise KafkaConfigurationError(f"source {number} of {root} is not Kafka: its offset is {line}")
    return lowest(found.values())


def _offsets_of(line: str) -> Offsets | None:
    """Return what the log has for a source; None if that is not Kafka."""
    try:
        return from_nested(json.loads(line))
    except (AttributeError, TypeError, ValueError):
        return None
