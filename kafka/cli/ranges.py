"""Places in partitions, in the words that all commands share: ``beginning``, ``-10``, ``2h ago``, ``2026-01-31``.

The table in `HELP` has them all. A place for one partition is written ``PARTITION=PLACE``; places are separated by
commas: ``beginning,2=-100``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Final, NamedTuple

from kafka.cli.arguments import UsageError
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.admin import KafkaAdminClient
    from kafka.consumer import KafkaConsumer
    from kafka.structs import OffsetAndTimestamp

HELP: Final = (
    "A PLACE is beginning, end, stored (the group's committed offset), an offset, -N (N records before the end), +N (N "
    "records after the beginning), or the first record at or after a time: 2026-01-31, 2026-01-31T12:00Z, "
    '1769817600000ms, "2h ago", yesterday, "yesterday 08:00"; @ may stand before a time: @-2h. PARTITION=PLACE is for '
    "one partition; commas separate several: beginning,2=-100."
)

#: The same in short, for the help of verbs.
PLACES: Final = (
    "A PLACE is beginning, end, stored, an offset, -N or +N (from an end), or a time such as 2026-01-31, "
    '"yesterday 08:00" or "2h ago": purekafka help places'
)

_WORDS: Final = {
    "beginning": "earliest",
    "earliest": "earliest",
    "start": "earliest",
    "end": "latest",
    "latest": "latest",
    "stored": "stored",
    "committed": "stored",
    "current": "stored",
}
_UNITS: Final = {"ms": 0.001, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400, "w": 604800}
_LONG_UNITS: Final = {"sec": "s", "second": "s", "minute": "m", "hour": "h", "day": "d", "week": "w"}
_DURATION: Final = re.compile(r"(?:(\d+(?:\.\d+)?)\s*([a-z]+)\s*)+")
_ISO_DURATION: Final = re.compile(r"P(?:(\d+)W)?(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
_SECONDS_FROM: Final = 1_000_000_000
_MILLISECONDS_FROM: Final = 100_000_000_000
_MOST_PARTITIONS: Final = 1_000_000
#: Partitions that a sentence names.
_NAMED: Final = 3


class Place(NamedTuple):
    """A place in a partition: how it is given, and the number that belongs to that."""

    kind: str
    """earliest, latest, stored, offset, back (before the end), ahead (after the beginning) or time."""
    number: int = 0

    @classmethod
    def of(cls, word: str) -> Place:
        """Read a place.

        >>> Place.of("end"), Place.of("-10"), Place.of("1769817600000ms")
        (Place(kind='latest', number=0), Place(kind='back', number=10), Place(kind='time', number=1769817600000))
        """
        text = word.strip()
        if text.lower() in _WORDS:
            return cls(_WORDS[text.lower()])
        if re.fullmatch(r"\d+", text):
            return cls("offset", int(text))
        if re.fullmatch(r"[-+]\d+", text):
            return cls("back" if text[0] == "-" else "ahead", int(text[1:]))
        return cls("time", parse_time(text))


class Places:
    """Places by partition, and one for all others."""

    def __init__(self, text: str) -> None:
        self.default: Place | None = None
        self.by_partition: dict[int, Place] = {}
        for part in text.split(","):
            number, equals, word = part.partition("=")
            if not equals:
                self.default = Place.of(part)
            elif number.strip().isdecimal():
                self.by_partition[int(number)] = Place.of(word)
            else:
                raise UsageError(f"{part!r}: the number of a partition must stand before =")

    def of(self, partition: int) -> Place | None:
        """Return the place in a partition, None if there is none for it."""
        return self.by_partition.get(partition, self.default)


def parse_time(word: str, now: datetime | None = None) -> int:
    """Return the milliseconds since 1970 of a time; without an offset it is local time.

    >>> parse_time("2026-01-31T12:00Z"), parse_time("@1769860800")
    (1769860800000, 1769860800000)
    >>> parse_time("1h30m ago", datetime(2026, 1, 31, 12, tzinfo=timezone.utc))
    1769855400000
    >>> noon = datetime(2026, 1, 31, 12).astimezone()
    >>> noon.timestamp() * 1000 - parse_time("yesterday 08:00", noon)
    100800000.0
    >>> parse_time("soon")
    Traceback (most recent call last):
    kafka.cli.arguments.UsageError: 'soon' is not a place: use beginning, end, stored, an offset, -N, +N, or ...
    """
    text = word.strip().removeprefix("@").strip()
    now = now or datetime.now(timezone.utc)
    if found := re.fullmatch(r"(\d+)ms", text):
        return int(found.group(1))
    if re.fullmatch(r"\d{9,}", text):
        number = int(text)
        return number if number >= _MILLISECONDS_FROM else number * 1000
    day, _, clock = text.lower().partition(" ")
    days = {"now": now, "today": _midnight(now), "yesterday": _midnight(now) - timedelta(days=1)}
    if day in days:
        text = f"{days[day]:%Y-%m-%d}T{clock}"  # is read below
        if not clock:
            return round(days[day].timestamp() * 1000)
    if text.endswith(" ago") or text.startswith("-"):
        seconds = parse_duration(text.removeprefix("-").removesuffix("ago").strip())
        if seconds is not None:
            return round(now.timestamp() * 1000 - seconds * 1000)
    try:
        return round(datetime.fromisoformat(re.sub(r"[zZ]$", "+00:00", text)).timestamp() * 1000)
    except (ValueError, OverflowError):  # not a time, or one of the year 0
        raise UsageError(
            f"{word!r} is not a place: use beginning, end, stored, an offset, -N, +N, or a time such as "
            '2026-01-31T12:00Z, "yesterday 08:00" or "2h ago"'
        ) from None


def _midnight(moment: datetime) -> datetime:
    return moment.astimezone().replace(hour=0, minute=0, second=0, microsecond=0)


def parse_duration(text: str) -> float | None:
    """Return the seconds of a duration, None if it is not one.

    >>> parse_duration("1h30m"), parse_duration("3 days"), parse_duration("P1DT2H"), parse_duration("soon")
    (5400.0, 259200.0, 93600.0, None)
    """
    if (iso := _ISO_DURATION.fullmatch(text)) and any(iso.groups()):
        weeks, days, hours, minutes, seconds = (float(part or 0) for part in iso.groups())
        return ((weeks * 7 + days) * 24 + hours) * 3600 + minutes * 60 + seconds
    if not _DURATION.fullmatch(text):
        return None
    total = 0.0
    for number, unit in re.findall(r"(\d+(?:\.\d+)?)\s*([a-z]+)", text):
        name = unit if unit in _UNITS else _LONG_UNITS.get(unit.removesuffix("s"), "")
        if name not in _UNITS:
            return None
        total += float(number) * _UNITS[name]
    return total


def parse_partitions(words: Iterable[str]) -> set[int] | None:
    """Return the numbers of partitions, None for all.

    >>> parse_partitions(["0,2-4"]), parse_partitions([])
    ({0, 2, 3, 4}, None)
    """
    found: set[int] = set()
    parts = [part for word in words for part in word.split(",")]
    for part in parts:
        low, dash, high = part.partition("-")
        if not low.isdecimal() or (dash and not high.isdecimal()):
            raise UsageError(f"--partition takes numbers such as 0,2-4, not {part!r}")
        if int(high or low) - int(low) > _MOST_PARTITIONS:
            raise UsageError(f"--partition {part}: a topic has fewer partitions")
        found.update(range(int(low), int(high or low) + 1))
    return found if parts else None


class AdminOffsets:
    """Looks offsets up with an administrator, by the names that consumers have."""

    def __init__(self, admin: KafkaAdminClient) -> None:
        self._admin = admin

    def _at(self, specs: Mapping[TopicPartition, str | int]) -> dict[TopicPartition, OffsetAndTimestamp]:
        return self._admin.list_partition_offsets(specs) if specs else {}

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the first offset of each partition."""
        return {tp: found.offset for tp, found in self._at(dict.fromkeys(partitions, "earliest")).items()}

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        """Return the offset behind the last record of each partition."""
        return {tp: found.offset for tp, found in self._at(dict.fromkeys(partitions, "latest")).items()}

    def offsets_for_times(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """Return the first record at or after a time in each partition, None where there is none."""
        return {tp: None if found.offset < 0 else found for tp, found in self._at(timestamps).items()}


def parse_topic_partitions(words: Iterable[str]) -> dict[str, set[int] | None]:
    """Return topics with their partitions, None for all of them.

    >>> parse_topic_partitions(["events", "orders:0,2-3"])
    {'events': None, 'orders': {0, 2, 3}}
    """
    found: dict[str, set[int] | None] = {}
    for word in words:
        topic, colon, numbers = word.rpartition(":")
        found[topic if colon else word] = parse_partitions([numbers]) if colon else None
    return found


def resolve(
    consumer: KafkaConsumer | AdminOffsets,
    places: Mapping[TopicPartition, Place],
    stored: Mapping[TopicPartition, int] | None = None,
    base: Mapping[TopicPartition, int] | None = None,
    *,
    say: Callable[[str], object] | None,
) -> dict[TopicPartition, int]:
    """Return the offsets of places, which are never outside of their partition.

    `stored` has the committed offsets for the place of that name; a partition without one begins at its beginning. With
    `base`, ``+N`` counts from there. `say` hears about offsets that are outside, and a number that must be a time is an
    error; None takes the nearest offset without a word.
    """
    if not places:
        return {}
    first, last = consumer.beginning_offsets(places), consumer.end_offsets(places)
    times = {tp: place.number for tp, place in places.items() if place.kind == "time"}
    found: Mapping[TopicPartition, OffsetAndTimestamp | None] = consumer.offsets_for_times(times) if times else {}
    offsets = {}
    outside: dict[int, list[TopicPartition]] = {}
    for tp, place in places.items():
        low, high = first[tp], last[tp]
        timed = found.get(tp)
        offset = {
            "earliest": low,
            "latest": high,
            "stored": (stored or {}).get(tp, low),
            "offset": place.number,
            "back": high - place.number,
            "ahead": (base or first).get(tp, low) + place.number,
            "time": high if timed is None else timed.offset,
        }[place.kind]
        offsets[tp] = min(max(offset, low), high)
        if place.kind in {"offset", "stored"} and offset != offsets[tp]:
            outside.setdefault(offset, []).append(tp)
    if say is not None:
        for offset, partitions in outside.items():
            say(_outside(offset, partitions, offsets))
    return offsets


def _outside(offset: int, partitions: list[TopicPartition], offsets: Mapping[TopicPartition, int]) -> str:
    """Return the sentence about an offset that partitions do not have, or raise if it is the time of a record."""
    if offset >= _SECONDS_FROM and all(offsets[tp] < offset for tp in partitions):
        time = f"{offset}ms" if offset >= _MILLISECONDS_FROM else f"@{offset}"
        raise UsageError(f"offset {offset} is behind the end of the partitions: the time is written {time}")
    names = [f"{tp.topic}-{tp.partition} has {offsets[tp]}" for tp in partitions[:_NAMED]]
    more = f" and {len(partitions) - _NAMED} more" if len(partitions) > _NAMED else ""
    return f"offset {offset} does not exist: the nearest one is taken: {', '.join(names)}{more}"
