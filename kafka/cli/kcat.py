"""``python -m kafka.cli.kcat``: the options and the output of kcat, for scripts and for fingers that know it.

Modes -C, -P, -L, -Q and -G, with the options of kcat 1.7; the mock cluster (-M) is left out. -r and -s avro read Avro.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kafka.cli.arguments import CommandError, UsageError, reason
from kafka.cli.connection import Connection, Watchdog
from kafka.cli.consume import Printer
from kafka.cli.delivery import Delivery, in_transaction
from kafka.cli.files import open_streams, standard_output, whole_output
from kafka.cli.ranges import AdminOffsets, Place, resolve
from kafka.cli.record_format import compile_format, token_starts, unescape_bytes
from kafka.cli.record_input import pieces_of
from kafka.cli.record_types import Undecodable
from kafka.cli.source import GroupSource, Source, partitions_of
from kafka.errors import KafkaError
from kafka.structs import TopicPartition

if TYPE_CHECKING:
    from kafka.admin import ClusterDescription, TopicDescription
    from kafka.consumer import KafkaConsumer
    from kafka.record import ConsumerRecord

_OPTIONS: Final = "PCG:LQt:p:b:z:o:eED:K:k:H:Od:qvF:X:c:Tuf:ZlVhs:Jm:r:M:U"
_MODES: Final = "PCGLQ"
_TIME: Final = ("s@", "e@")
#: Seconds that kcat waits for a broker unless -m says otherwise.
_METADATA_S: Final = 5
#: The arguments of the commands whose parts this mode uses.
_PLAIN: Final = Namespace(prog="%", progress=False)

USAGE: Final = """\
usage: python -m kafka.cli.kcat -C|-P|-L|-Q|-G GROUP -b BROKERS [options] [FILE... | TOPIC...]

The options of kcat 1.7:
  -t TOPIC, -p PARTITION, -F FILE, -X NAME=VALUE, -m SECONDS, -q, -v, -d, -E
  produce: -K DELIM, -D DELIM, -k KEY, -H NAME=VALUE, -z CODEC, -Z, -l, -T, -c COUNT
  consume: -o OFFSET, -e, -c COUNT, -f FORMAT, -J, -K DELIM, -D DELIM, -O, -Z, -u, -s TYPE, -r REGISTRY
  query:   -Q -t TOPIC:PARTITION:TIME
"""


class _Given:
    """The options of a command line."""

    def __init__(self, words: Sequence[str]) -> None:
        import getopt

        try:
            pairs, self.rest = getopt.gnu_getopt(list(words), _OPTIONS)
        except getopt.GetoptError as error:
            raise UsageError(str(error)) from None
        self._pairs = [(name[1], value) for name, value in pairs]
        self.flags = {name for name, _ in self._pairs}
        chosen = [name for name, _ in self._pairs if name in _MODES]
        self.mode = chosen[-1] if chosen else ""

    def last(self, name: str, default: str | None = None) -> str | None:
        return next((value for found, value in reversed(self._pairs) if found == name), default)

    def every(self, name: str) -> list[str]:
        return [value for found, value in self._pairs if found == name]

    def number(self, name: str) -> int | None:
        text = self.last(name)
        try:
            return None if text is None else int(text)
        except ValueError:
            raise UsageError(f"-{name} takes a number, not {text!r}") from None

    def delimiter(self, name: str) -> bytes | None:
        text = self.last(name)
        return None if text is None else unescape_bytes(text)


def main(argv: Sequence[str] | None = None) -> int:
    """Run kcat's command line and return the exit code, which is 1 for every error, as kcat's is."""
    open_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    with Watchdog(None) as watchdog, whole_output():
        try:
            code = _run(_Given(words))
            sys.stdout.flush()
            return code
        except BrokenPipeError:
            from kafka.cli import forget_output

            forget_output()
            return 0
        except (OSError, ValueError, RecursionError, KafkaError) as error:
            _error(error)
        except KeyboardInterrupt:
            return 143 if watchdog.terminated else 130
    return 1


def _error(error: Exception) -> None:
    text = f"{error.filename}: {error.strerror}" if isinstance(error, OSError) and error.strerror else reason(error)
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    print(f"% ERROR: {text}", file=sys.stderr)


def _note(given: _Given, text: str) -> None:
    if "q" not in given.flags:
        print(f"% {text}", file=sys.stderr)


def _run(given: _Given) -> int:
    if "h" in given.flags or not given.flags:
        print(USAGE, end="")
        return 0
    if "V" in given.flags:
        from kafka.version import __version__

        print(f"kcat mode of purekafka {__version__}")
        return 0
    for name in "pcm":
        given.number(name)  # raises what is not one before anything is connected
    if "M" in given.flags:
        raise UsageError("-M of kcat is not supported: purekafka broker starts a cluster")
    if not given.mode:
        given.mode = "P" if not sys.stdin.isatty() else "C"
        _note(
            given, f"Auto-selecting {'Producer' if given.mode == 'P' else 'Consumer'} mode (use -P or -C to override)"
        )
    modes: dict[str, Callable[[_Given, Connection], int]] = {
        "C": _consume,
        "G": _group,
        "P": _produce,
        "L": _metadata,
        "Q": _query,
    }
    with Connection(_connection(given)) as connection:
        if "bootstrap_servers" not in connection.options:
            raise UsageError("-b <broker,..> missing")
        seconds = given.number("m") or _METADATA_S
        connection.options.setdefault("bootstrap_timeout_ms", str(seconds * 1000))
        return modes[given.mode](given, connection)


def _connection(given: _Given) -> Namespace:
    file = given.last("F") or os.environ.get("KCAT_CONFIG")
    if file is None:
        home = Path("~/.config/kcat.conf").expanduser()
        file = str(home) if home.exists() else None
    options = [word.removeprefix("topic.") for word in given.every("X")]
    return Namespace(
        prog="kcat",
        bootstrap_servers=given.last("b"),
        options=options,
        config_file=file,
        context=None,
        registry=given.last("r"),
        sandbox=False,
        timeout=None,
        verbose=len(given.every("v")),
    )


def _topic(given: _Given) -> str:
    topic = given.last("t")
    if topic is None:
        raise UsageError("-t <topic> missing")
    return topic


# Consuming…


def _types(given: _Given, connection: Connection) -> tuple[dict[str, object], dict[str, Callable[[bytes], str]]]:
    """Return the functions of -s that print keys and values, and which of these functions make JSON of Avro."""
    types: dict[str, object] = {"key": None, "value": None}
    avro: dict[str, Callable[[bytes], str]] = {}
    for word in given.every("s"):
        which, equals, name = word.partition("=")
        for part in (which,) if equals else types:
            if part not in types:
                raise UsageError(f"-s takes key=TYPE or value=TYPE, not {word!r}")
            kind = name if equals else word
            if kind == "avro":
                from kafka.cli.kcat_avro import avro_formatter, avro_reader

                avro[part] = avro_reader(connection)
                types[part] = avro_formatter(avro[part], part)
            else:
                avro.pop(part, None)
                types[part] = _pack(kind, part)
    return types, avro


class _Format:
    """Prints a record as -f, -K, -D, -O, -Z and -s have it."""

    def __init__(self, given: _Given, types: Mapping[str, Any]) -> None:
        layout = given.last("f")
        if layout is None:
            key = given.last("K")  # kcat 1.7 knows -O, and prints no offset
            layout = f"{'' if key is None else '%k' + _escaped(key)}%s{_escaped(given.last('D', chr(92) + 'n'))}"
        self._layout = layout
        self._types = types
        self._null = b"NULL" if "Z" in given.flags else b""
        self.print = self._compile(layout)

    def _compile(self, layout: str) -> Callable[[ConsumerRecord], bytes]:
        show = compile_format(layout, key=self._types["key"], value=self._types["value"], null=self._null)
        if not self._null:
            return show
        # kcat prints NULL for an empty key or payload too.
        return lambda r: show(r._replace(key=r.key or None, value=r.value or None))

    def begin(self, record: ConsumerRecord) -> bytes:
        """Return what stands before the part that cannot be printed: kcat writes one part after the other."""
        done = b""
        with suppress(Undecodable):
            for at in token_starts(self._layout):
                done = self._compile(self._layout[:at])(record)
        return done


def _escaped(text: str | None) -> str:
    return (text or "").replace("%", "%%")


def _pack(layout: str, what: str) -> Callable[[bytes], bytes]:  # noqa: C901 - one branch for each token
    """Return the function of a pack string: values without separators, and spaces where the pack string has them.

    >>> _pack("> h h", "value")(b"\\1\\2\\3\\4")
    b' 258 772'
    """
    import struct

    for char in layout:
        if char not in "<> bBhHiIqQcs$":
            raise UsageError(f"-s {what}={layout}: invalid token {char!r}")

    def unpack(data: bytes) -> bytes:
        order, at, out = ">", 0, b""
        for char in layout:
            left = len(data) - at
            if char in "<>":
                order = char
            elif char == " ":
                out += b" "
            elif char == "s":
                out, at = out + data[at:], len(data)
            elif char != "$":
                size = struct.calcsize(order + char)
                if left < size:
                    missing = f"expected {size} bytes to unpack {char} but only {left} bytes remaining"
                    raise Undecodable(f"{what} truncated, {missing}", out)
                (found,) = struct.unpack_from(order + char, data, at)
                out, at = out + (found if isinstance(found, bytes) else b"%d" % found), at + size
            elif left:
                raise Undecodable(f"expected {what} end-of-input, but {left} bytes remaining", out)
        return out

    return unpack


def _json(avro: Mapping[str, Callable[[bytes], str]]) -> Callable[[ConsumerRecord], bytes]:
    """Return the function that prints a record for -J; Avro stands in it as it is, behind it the id of its schema."""

    def shown(r: ConsumerRecord) -> bytes:
        fields: dict[str, object] = {
            "topic": r.topic,
            "partition": r.partition,
            "offset": r.offset,
            "tstype": {0: "create", 1: "logappend"}.get(
                -1 if r.timestamp_type is None else r.timestamp_type, "unknown"
            ),
            "ts": -1 if r.timestamp is None else r.timestamp,
            "broker": brokers.get((r.topic, r.partition), -1),
        }
        if r.headers:
            fields["headers"] = [part for name, data in r.headers for part in (name, _decoded(data))]
        if avro:
            from kafka.cli.kcat_avro import avro_fields

            text = f"{_compact(fields)[:-1]},{avro_fields(r, avro, lambda data: _compact(_decoded(data)))}}}"
        else:
            fields["key"], fields["payload"] = _decoded(r.key), _decoded(r.value)
            text = _compact(fields)
        return text.encode("utf-8", "surrogateescape") + b"\n"

    brokers: dict[tuple[str, int], int] = {}
    shown.brokers = brokers  # type: ignore[attr-defined]
    return shown


def _decoded(data: bytes | None) -> str | None:
    """Return text that is encoded to the same bytes, as kcat writes them."""
    return None if data is None else data.decode("utf-8", "surrogateescape")


def _compact(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


class _Output(Printer):
    """Prints records, and stops after -c of them."""

    def __init__(self, given: _Given, connection: Connection) -> None:
        types, avro = _types(given, connection)
        # -J prints keys and payloads as text, whatever pack string -s has.
        self._format = None if "J" in given.flags else _Format(given, types)
        show = _json(avro) if self._format is None else self._format.print
        super().__init__(_PLAIN, show, limit=given.number("c") or None)

    def know_leaders(self, given: _Given, connection: Connection, topics: Sequence[str]) -> None:
        """Look the leaders of topics up, which -J prints."""
        if "J" in given.flags:
            brokers = self._show.brokers  # type: ignore[attr-defined]
            for topic in connection.admin().describe_topics(topics):
                brokers.update({(topic.name, each.partition_index): each.leader_id for each in topic.partitions})

    def write(self, records: Sequence[ConsumerRecord]) -> None:
        """Print records of a partition; one that cannot be decoded ends it."""
        taken = records if len(records) <= self._left else records[: int(self._left)]
        self._left -= len(taken)
        tp = TopicPartition(records[0].topic, records[0].partition)
        texts: list[bytes] = []
        for record in taken:
            try:
                texts.append(self._show(record))
            except Undecodable as error:  # noqa: PERF203 - free where nothing is raised
                self._put(taken, texts, tp, record.offset)
                begin = b"" if self._format is None else self._format.begin(record)
                self._out.write(begin + error.args[1])  # kcat has written this before it finds the error
                place = f"{record.topic} [{record.partition}] at offset {record.offset}"
                raise CommandError(f"Failed to format message in {place}: {error.args[0]}: terminating") from None
        self._put(taken, texts, tp, taken[-1].offset + 1)


def _consume(given: _Given, connection: Connection) -> int:
    topic = _topic(given)
    consumer = connection.reader()
    known = consumer.partitions_for_topic(topic)
    if known is None:
        raise CommandError(f"Topic {topic} error: Broker: Unknown topic or partition")
    number = given.number("p")
    if number is not None and number >= 0 and number not in known:
        raise CommandError(f"Topic {topic} (with partitions 0..{len(known) - 1}): partition {number} does not exist")
    partitions = partitions_of(consumer, [topic], None if number is None or number < 0 else {number})
    starts, stops = _range(given, consumer, partitions)
    ends = consumer.end_offsets(partitions)
    limits = {tp: min(stops.get(tp, ends[tp]), ends[tp]) for tp in partitions} if "e" in given.flags or stops else None
    output = _Output(given, connection)
    output.know_leaders(given, connection, [topic])
    Source(consumer, starts, limits).run(output.write, output.full)
    if limits is not None and not output.full():
        _ends(given, limits, ends)
    return 0


def _ends(
    given: _Given, limits: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int] | None = None
) -> None:
    for at, (tp, end) in enumerate(sorted(limits.items()), 1):
        last = ": exiting" if at == len(limits) else ""
        what = "end of" if ends is None or end == ends[tp] else "stop timestamp for"
        _note(given, f"Reached {what} topic {tp.topic} [{tp.partition}] at offset {end}{last}")


def _range(
    given: _Given, consumer: KafkaConsumer, partitions: Sequence[TopicPartition]
) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
    """Return where to begin, and where e@ stops."""
    begin, stops = Place("earliest"), {}
    for word in given.every("o"):
        if word.startswith(_TIME):
            if not word[2:].isdecimal():
                raise UsageError(f"-o {word}: a time in milliseconds must follow @")
            place = Place("time", int(word[2:]))
            if word.startswith("e@"):
                stops = resolve(consumer, dict.fromkeys(partitions, place), say=None)
                continue
        else:
            place = Place.of(word)
        begin = place
    stored: dict[TopicPartition, int] = {}
    if begin.kind == "stored":
        if consumer.config["group_id"] is None:
            raise CommandError("-o stored needs the group of -X group.id=GROUP, or -G GROUP")
        ends = consumer.end_offsets(partitions)
        stored = {tp: ends[tp] if (found := consumer.committed(tp)) is None else found for tp in partitions}
    return resolve(consumer, dict.fromkeys(partitions, begin), stored, say=None), stops


def _group(given: _Given, connection: Connection) -> int:
    topics = [*given.every("t"), *given.rest]
    if not topics:
        raise UsageError("-G needs topics")
    group = given.last("G") or ""
    place = Place.of(given.last("o") or "stored")
    consumer = connection.consumer(group_id=group, enable_auto_commit=False, auto_offset_reset="latest")
    names = _matching(consumer, topics)
    limits = consumer.end_offsets(partitions_of(consumer, names, None)) if "e" in given.flags else None
    output = _Output(given, connection)
    output.know_leaders(given, connection, names)

    def start(new: Collection[TopicPartition]) -> dict[TopicPartition, int]:
        """Return where to begin, if -o overrides the committed offsets."""
        return {} if place.kind == "stored" else resolve(consumer, dict.fromkeys(new, place), say=None)

    def tell(what: str, partitions: Collection[TopicPartition]) -> None:
        shown = ", ".join(f"{tp.topic} [{tp.partition}]" for tp in sorted(partitions))
        member = consumer.group_metadata().member_id
        _note(given, f"Group {group} rebalanced (memberid {member}): {what}: {shown}")

    _note(given, "Waiting for group rebalance")
    source = GroupSource(_PLAIN, consumer, names, limits, output.printed, start, tell)
    source.run(output.write, output.full)
    if limits is not None and not output.full():
        _ends(given, {tp: end for tp, end in limits.items() if tp in consumer.assignment()})
    return 1 if source.repeats else 0


def _matching(consumer: KafkaConsumer, words: Sequence[str]) -> list[str]:
    import re

    names: list[str] = []
    for word in words:
        if word.startswith("^"):
            names += [name for name in sorted(consumer.topics()) if re.match(word, name)]
        else:
            names.append(word)
    return list(dict.fromkeys(names))


# Producing…


def _produce(given: _Given, connection: Connection) -> int:
    topic = _topic(given)
    configs: dict[str, object] = {}
    if (codec := given.last("z")) is not None:
        configs["compression_type"] = codec
    connection.options.setdefault("partitioner", "consistent_random")
    producer = connection.producer(**configs)
    delivery = Delivery(_PLAIN, producer, "message")
    transactional = producer.config["transactional_id"] is not None

    def send() -> None:
        _send_all(given, topic, delivery)

    return in_transaction(_PLAIN, producer, delivery, send) if transactional else delivery.run(send)


def _send_all(given: _Given, topic: str, delivery: Delivery) -> None:
    headers = [_header(word) for word in given.every("H")] or None
    partition = given.number("p")
    place = None if partition is None or partition < 0 else partition
    fixed = given.last("k")
    null = "Z" in given.flags
    for line, (key, value) in enumerate(islice(_messages(given), given.number("c") or None), 1):
        if "T" in given.flags:
            standard_output().write(value)
        # -Z makes a null of an empty key in a line; the key of -k stays as it is.
        chosen = (key or None if null else key) if key is not None else None if fixed is None else fixed.encode()
        delivery.send(topic, (chosen, value or None if null else value, headers, place, None), line)


def _header(word: str) -> tuple[str, bytes | None]:
    name, equals, value = word.partition("=")
    return name, value.encode() if equals else None


def _messages(given: _Given) -> Iterator[tuple[bytes | None, bytes]]:
    """Yield keys and values; empty lines are left out, as kcat does it."""
    if given.rest and "l" not in given.flags:
        for name in given.rest:
            yield None, Path(name).read_bytes()
        return
    delimiter = given.delimiter("D")
    if delimiter is None:
        delimiter = b"\n"
    if not delimiter:
        raise CommandError("Message delimiter -D must not be empty when producing")
    between = given.delimiter("K")
    source = open(given.rest[0], "rb") if given.rest else sys.stdin.buffer  # noqa: SIM115 - the process ends with it
    for pieces in pieces_of(source, delimiter):
        for piece in pieces:
            if not piece:
                continue
            key, found, value = piece.partition(between) if between else (b"", b"", b"")
            yield (key, value) if found else (None, piece)


# Looking…


def _metadata(given: _Given, connection: Connection) -> int:
    admin = connection.admin()
    cluster = admin.describe_cluster()
    wanted = given.last("t")
    topics = list(admin.describe_topics(None if wanted is None else [wanted]))
    first = cluster.brokers[0]
    name = f"{first.host}:{first.port}/{first.broker_id}"
    if "J" in given.flags:
        sys.stdout.write(_metadata_json(cluster, topics, wanted, first.broker_id, name))
        return 0
    lines = [f"Metadata for {wanted or 'all topics'} (from broker {first.broker_id}: {name}):"]
    lines.append(f" {len(cluster.brokers)} brokers:")
    for broker in cluster.brokers:
        controller = " (controller)" if broker.broker_id == cluster.controller_id else ""
        lines.append(f"  broker {broker.broker_id} at {broker.host}:{broker.port}{controller}")
    lines.append(f" {len(topics)} topics:")
    for topic in topics:
        error = f": {_librdkafka(topic.error)}" if topic.error is not None else ""
        lines.append(f'  topic "{topic.name}" with {len(topic.partitions)} partitions{error}:'.replace("::", ":"))
        for each in sorted(topic.partitions, key=lambda one: int(one.partition_index)):
            replicas, isrs = (",".join(map(str, nodes)) for nodes in (each.replica_nodes, each.isr_nodes))
            lines.append(
                f"    partition {each.partition_index}, leader {each.leader_id}, replicas: {replicas}, isrs: {isrs}"
            )
    print("\n".join(lines))
    return 0


def _librdkafka(error: object) -> str:
    return f"Broker: {getattr(error, 'description', error)}"


def _metadata_json(
    cluster: ClusterDescription, topics: list[TopicDescription], wanted: str | None, broker: int, name: str
) -> str:
    found: dict[str, object] = {
        "originating_broker": {"id": broker, "name": name},
        "query": {"topic": wanted or "*"},
        "controllerid": cluster.controller_id,
        "brokers": [{"id": each.broker_id, "name": f"{each.host}:{each.port}"} for each in cluster.brokers],
        "topics": [
            {
                "topic": topic.name,
                "partitions": [
                    {
                        "partition": each.partition_index,
                        "leader": each.leader_id,
                        "replicas": [{"id": node} for node in each.replica_nodes],
                        "isrs": [{"id": node} for node in each.isr_nodes],
                    }
                    for each in sorted(topic.partitions, key=lambda one: int(one.partition_index))
                ],
            }
            for topic in topics
        ],
    }
    return _compact(found)


def _query(given: _Given, connection: Connection) -> int:
    wanted: dict[TopicPartition, int] = {}
    for word in given.every("t"):
        parts = word.rsplit(":", 2)
        if len(parts) != 3 or not parts[1].isdecimal() or not parts[2].lstrip("-").isdecimal():
            raise UsageError(f"-t takes TOPIC:PARTITION:TIME with -Q, not {word!r}")
        wanted[TopicPartition(parts[0], int(parts[1]))] = int(parts[2])
    if not wanted:
        raise UsageError("-t <topic>:<partition>:<timestamp> missing")
    kinds = {-1: Place("latest"), -2: Place("earliest")}
    places = {tp: kinds.get(stamp, Place("time", stamp)) for tp, stamp in wanted.items()}
    looked = AdminOffsets(connection.admin())
    times = {tp: place.number for tp, place in places.items() if place.kind == "time"}
    late = {tp for tp, found in looked.offsets_for_times(times).items() if found is None}
    for tp, offset in sorted(resolve(looked, places, say=None).items()):
        print(f"{tp.topic} [{tp.partition}] offset {-1 if tp in late else offset}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
