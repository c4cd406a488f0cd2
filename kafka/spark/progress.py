"""How far a query is behind, from the progress that Spark reports. Needs no pyspark and contacts no broker."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from kafka.spark.offsets import Offsets, from_nested
from kafka.structs import TopicPartition

__all__ = ["lag"]


def lag(progress: Any) -> dict[TopicPartition, int] | None:
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


def _field(holder: Any, name: str) -> Any:
    return holder.get(name) if isinstance(holder, Mapping) else getattr(holder, name, None)


def _offsets(text: Any) -> Offsets:
    """Return the offsets in a report; none where they are of another kind of source."""
    try:
        nested = json.loads(text) if isinstance(text, str) else text
        return {} if nested is None else from_nested(nested)
    except (AttributeError, TypeError, ValueError):
        return {}
