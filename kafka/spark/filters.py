"""The option filterPushdown: which offsets a query with filters must read.

Nothing is decided here about single records. Spark applies every filter to what is read, so the only fault can
be to leave out an offset whose record passes them. A query leaves out partitions whose topic or number does not pass,
offsets outside of bounds, and what lies before the first record that is as late as a lower bound of the timestamp: by
the brokers' own definition of that lookup all records before it are earlier, in whatever order timestamps are. An upper
bound says nothing of that kind, as earlier records may come after later ones.

Pure functions, without pyspark: its filters are known by the names of their classes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from operator import eq, ge, gt, le, lt
from typing import Any, Final, NamedTuple

from kafka.spark.offset_ranges import OffsetRange
from kafka.structs import TopicPartition

__all__ = ["Condition", "condition_of", "narrowed"]


AtTimes = Callable[[Mapping[TopicPartition, int]], Mapping[TopicPartition, int | None]]

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)
_MICROSECOND: Final = timedelta(microseconds=1)
_TESTS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "EqualTo": eq,
    "EqualNullSafe": eq,
    "GreaterThan": gt,
    "GreaterThanOrEqual": ge,
    "LessThan": lt,
    "LessThanOrEqual": le,
    "StringStartsWith": str.startswith,
    "StringEndsWith": str.endswith,
    "StringContains": str.__contains__,
}


class Condition(NamedTuple):
    """One filter of a query, all of which have to hold.

    >>> Condition("partition", "EqualTo", 3)
    Condition(column='partition', kind='EqualTo', value=3, negated=False)
    """

    column: str
    kind: str
    """The name of Spark's class."""
    value: Any = None
    negated: bool = False


def condition_of(given: Any) -> Condition | None:
    """Return what one of Spark's filters says; None if it is not about a column of the source."""
    negated = type(given).__name__ == "Not"
    inner = given.child if negated else given
    path: tuple[str, ...] = getattr(inner, "attribute", ())
    if len(path) != 1:
        return None
    return Condition(path[0], type(inner).__name__, getattr(inner, "value", None), negated)


def narrowed(ranges: Sequence[OffsetRange], conditions: Iterable[Condition], at_times: AtTimes) -> list[OffsetRange]:
    """Return the parts of the ranges that must be read; ``at_times`` looks up offsets by timestamps in milliseconds.

    >>> ranges = [OffsetRange("a", 0, 0, 10), OffsetRange("a", 1, 0, 10)]
    >>> conditions = [Condition("partition", "In", [1, 2]), Condition("offset", "GreaterThan", 4)]
    >>> narrowed(ranges, conditions, lambda wanted: {})
    [OffsetRange(topic='a', partition=1, start=5, end=10)]
    """
    conditions = list(conditions)
    low, high = _bounds(conditions, "offset", _whole)
    left = []
    for each in ranges:
        if _is_refused(conditions, "topic", each.topic) or _is_refused(conditions, "partition", each.partition):
            continue
        start = each.start if low is None else max(each.start, low)
        end = each.end if high is None else min(each.end, high)
        if start < end:
            left.append(each._replace(start=start, end=end))
    since, _ = _bounds(conditions, "timestamp", _microseconds)
    return left if since is None else _since(left, -(-since // 1000), at_times)


def _since(ranges: list[OffsetRange], millis: int, at_times: AtTimes) -> list[OffsetRange]:
    """Leave out what lies before the first records that are as late."""
    if millis <= 0 or not ranges:  # numbers below zero ask for other things, and nothing is earlier than zero
        return ranges
    found = at_times(dict.fromkeys({each.tp for each in ranges}, millis))
    left = []
    for each in ranges:
        # No answer is taken as none: where records were deleted, a broker may overlook later ones.
        first = found.get(each.tp)
        start = each.start if first is None else max(each.start, first)
        if start < each.end:
            left.append(each._replace(start=start))
    return left


# The meaning of a condition…


def _is_refused(conditions: Iterable[Condition], column: str, value: object) -> bool:
    """Whether some condition certainly does not hold for a value that all records of a partition share."""
    return any(_holds(each, value) is False for each in conditions if each.column == column)


def _holds(condition: Condition, value: object) -> bool | None:
    """Return whether a condition holds for a value that is not null; None where SQL's answer is null, or unknown."""
    found = _answer(condition.kind, condition.value, value)
    return found if found is None else found is not condition.negated


def _answer(kind: str, given: Any, value: object) -> bool | None:
    if kind in {"IsNull", "IsNotNull"}:
        return kind == "IsNotNull"
    if kind == "In":
        if value in given:
            return True
        return False if all(type(each) is type(value) for each in given) else None
    test = _TESTS.get(kind)
    if test is None or type(given) is not type(value):
        return None
    return test(value, given)


def _bounds(
    conditions: Iterable[Condition], column: str, number: Callable[[object], int | None]
) -> tuple[int | None, int | None]:
    """Return the least number that passes, and the one behind the last; None where there is no such bound."""
    low: int | None = None
    high: int | None = None
    for each in conditions:
        if each.column != column or each.negated:
            continue
        least, behind = _interval(each, number)
        low = least if low is None or (least is not None and least > low) else low
        high = behind if high is None or (behind is not None and behind < high) else high
    return low, high


def _interval(condition: Condition, number: Callable[[object], int | None]) -> tuple[int | None, int | None]:
    kind = condition.kind
    if kind == "In":
        # A null among them lets nothing pass that the others do not.
        given = [number(value) for value in condition.value if value is not None]
        numbers = [each for each in given if each is not None]
        return (min(numbers), max(numbers) + 1) if numbers and len(numbers) == len(given) else (None, None)
    at = number(condition.value)
    if at is None:
        return None, None
    return {
        "EqualTo": (at, at + 1),
        "EqualNullSafe": (at, at + 1),
        "GreaterThan": (at + 1, None),
        "GreaterThanOrEqual": (at, None),
        "LessThan": (None, at),
        "LessThanOrEqual": (None, at + 1),
    }.get(kind, (None, None))


def _whole(value: object) -> int | None:
    return value if type(value) is int else None


def _microseconds(value: object) -> int | None:
    if not isinstance(value, datetime) or value.tzinfo is None:
        return None
    return (value - _EPOCH) // _MICROSECOND
