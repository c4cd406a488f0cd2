"""``purekafka produce``: write records from lines, files, JSON or CSV."""

from __future__ import annotations

import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from kafka.cli.arguments import UsageError, count, from_json, pair
from kafka.cli.connection import Connection
from kafka.cli.delivery import Delivery, Record, in_transaction
from kafka.cli.files import standard_output
from kafka.cli.grammar import Verb, arg, positive
from kafka.cli.output import complain
from kafka.cli.record_input import objects_of, pieces_of
from kafka.errors import KafkaError

if TYPE_CHECKING:
    from kafka.schema_registry import SchemaSerializer


NO_TOPIC: Final = "the record has no topic, and the command line names none"


class _Lines:
    """Turns pieces of the input into records."""

    def __init__(self, arguments: Namespace, connection: Connection) -> None:
        from kafka.cli.record_format import unescape_bytes
        from kafka.cli.record_types import schema_serializer

        self.key_schema = schema_serializer(arguments, "key", connection)
        self.value_schema = schema_serializer(arguments, "value", connection)
        self._key_delimiter = unescape_bytes(arguments.key_delimiter or "")
        self._null = None if arguments.null is None else arguments.null.encode()
        self._key = _encoder(arguments.topic, arguments.key_type, self.key_schema)
        self._value = _encoder(arguments.topic, arguments.value_type, self.value_schema)
        self._fixed_key = None if arguments.key is None else self._encoded_key(arguments.key, arguments.key_type)
        self._key_field = arguments.key_field
        headers = [pair(word, "--header") for word in arguments.header]
        self._headers = [(name, value.encode()) for name, value in headers] or None
        self._partition = arguments.partition
        self._timestamp = _time_of(arguments.timestamp)
        self.plain = not (
            self._key_delimiter
            or self._null is not None
            or self._fixed_key is not None
            or self._key_field is not None
            or self._headers
            or self._partition is not None
            or self._timestamp is not None
            or arguments.value_type != "str"
        )
        """Whether records are values alone, as they are in the input."""

    def _encoded_key(self, key: str, name: str) -> bytes:
        try:
            return self._key(key.encode())
        except ValueError as error:
            raise UsageError(f"--key {key!r} is not of the type {name}: {error}") from None

    def _key_of(self, value: bytes) -> bytes | None:
        """Return the key that a field of a JSON object is: a text as it is, a null as a null, all else as JSON."""
        import json

        try:
            fields = from_json(value)
        except ValueError:
            fields = None
        if not isinstance(fields, dict):
            raise ValueError(f"the value is not a JSON object and has no field {self._key_field!r} for the key")
        if self._key_field not in fields:
            raise ValueError(f"the JSON object has no field {self._key_field!r} for the key")
        found = fields[self._key_field]
        if found is None:
            return None
        if isinstance(found, str) and self.key_schema is None:
            return self._key(found.encode())
        return self._key(json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode())

    def record(self, piece: bytes) -> Record:
        """Return the record of a piece; ValueError says what is wrong with it."""
        key, value = self._fixed_key, piece
        if self._key_delimiter:
            before, delimiter, after = piece.partition(self._key_delimiter)
            if delimiter:
                value = after
                key = None if before == self._null else self._key(before)
        elif self._key_field is not None:
            key = self._key_of(value)
        data = None if value == self._null else self._value(value)
        return key, data, self._headers, self._partition, self._timestamp


def _encoder(topic: str, name: str, schema: SchemaSerializer | None) -> Callable[[bytes], bytes]:
    """Return the function that turns text into bytes of a type; with a schema the text is JSON."""
    from kafka.cli.record_types import encoder

    if schema is None:
        return encoder(name)
    return lambda text: schema.encode(topic, from_json(text))


def _time_of(word: str | None) -> int | None:
    from kafka.cli.ranges import parse_time

    if word is None:
        return None
    return int(word) if word.isdecimal() else parse_time(word)


def record_of(
    text: bytes, schemas: _Lines | None = None, topic: str | None = None, *, partitions: bool = True
) -> tuple[str | None, Record]:
    """Return the topic and the record of a line of ``consume --format jsonl``; ValueError says what is wrong with it.

    >>> record_of(b'{"topic": "a", "partition": 2, "timestamp": 5, "value": "/w==", "value_encoding": "base64"}')
    ('a', (None, b'\\xff', None, 2, 5))
    >>> record_of(b'{"value": {"id": 1}}')[1][1]
    b'{"id":1}'
    """
    fields = from_json(text)
    if not isinstance(fields, dict) or "value" not in fields:
        raise ValueError(
            'a record is an object with "value", and may have key, headers, partition, timestamp and topic'
        )
    headers = fields.get("headers") or None
    if isinstance(headers, dict):
        headers = list(headers.items())
    if headers:
        headers = [(name, _bytes_of(value, *encoding)) for name, value, *encoding in headers]
    own = fields.get("topic")
    key_schema, value_schema = (None, None) if schemas is None else (schemas.key_schema, schemas.value_schema)
    return own, (
        _bytes_of(fields.get("key"), fields.get("key_encoding"), key_schema, topic or own),
        _bytes_of(fields["value"], fields.get("value_encoding"), value_schema, topic or own),
        headers,
        fields.get("partition") if partitions else None,
        fields.get("timestamp"),
    )


def _bytes_of(
    value: Any, encoding: str | None = None, schema: SchemaSerializer | None = None, topic: str | None = None
) -> bytes | None:
    if value is None:
        return None
    if schema is not None and encoding is None and topic is not None:
        return schema.encode(topic, value)
    if encoding == "base64":
        from base64 import b64decode

        return b64decode(value, validate=True)
    if encoding is not None:
        raise ValueError(f"the encoding {encoding!r} is unknown: base64 is the only one")
    if isinstance(value, str):
        return value.encode()
    import json

    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def _check(arguments: Namespace) -> None:
    """Refuse options that contradict each other."""
    if arguments.topic is None and arguments.format != "jsonl":
        raise UsageError("name a topic")
    if arguments.key_field is not None:
        if arguments.format == "jsonl":
            raise UsageError("--key-field is for lines and csv: with --format jsonl each record has its key")
        if arguments.key is not None or arguments.key_delimiter:
            raise UsageError("the key is --key, before --key-delimiter, or in --key-field: give one of them")
    if arguments.format == "csv":
        for given, option in (
            (arguments.value, "--value"),
            (arguments.files, "FILE (--lines FILE reads CSV from a file)"),
            (arguments.key_delimiter, "--key-delimiter (--key-field takes a column)"),
            (arguments.delimiter != "\\n", "--delimiter"),
        ):
            if given:
                raise UsageError(f"--format csv does not go with {option}")
    if arguments.files and arguments.key_delimiter and arguments.format == "lines":
        raise UsageError("--key-delimiter is for lines, and a FILE is one value: --lines FILE reads its lines")
    if arguments.files.count("-") > 1:
        raise UsageError("standard input can be read once: give one -")


@Verb(
    "produce",
    arg("[TOPIC]", "the topic to write to (jsonl: that of each record)", complete="topic"),
    arg("files [FILE...]", "files whose whole content is a value each", complete="file"),
    arg("-V, --value TEXT...", "write this value; with --repeat {i} is its number"),
    arg("-l, --lines FILE", "read lines from a file, not standard input", complete="file"),
    arg(
        "-f, --format lines|jsonl|csv",
        "the input; jsonl: as consume prints it; csv: rows become JSON (lines)",
        default="lines",
    ),
    arg("-k, --key TEXT", "the key of all records"),
    arg("-K, --key-delimiter TEXT", "the text between key and value, such as : or \\t"),
    arg("--key-field NAME", "the field of JSON or column of CSV that is the key"),
    arg("-D, --delimiter TEXT", "the text between records (\\n)", default="\\n"),
    arg("-H, --header NAME=VALUE...", "a header; may be repeated"),
    arg("-p, --partition N", "the number of the partition (chosen by the key)", int),
    arg("--repartition", "with jsonl: choose partitions again, by the keys"),
    arg("--timestamp TIME", "the time of all records, as 2026-01-31 or ms (now)"),
    arg("--null TEXT", "this text is a null key, value or cell"),
    arg("--key-type TYPE", "the type of keys (str)", default="str", section="Types"),
    arg("--value-type TYPE", "the type of values (str)", default="str", section="Types"),
    arg("--registry URL", "the schema registry of avro, protobuf and jsonschema", section="Types"),
    arg(
        "--key-schema SCHEMA",
        "a file with a schema to register for TOPIC-key, or the id of one (the newest of the subject)",
        complete="file",
        section="Types",
    ),
    arg("--value-schema SCHEMA", "the same for values and TOPIC-value", complete="file", section="Types"),
    arg("--repeat N", "write --value, --lines or files N times (once)", count),
    arg("--rate N", "at most this number of records per second", positive),
    arg("-z, --compression none|gzip|snappy|lz4|zstd", "compress batches of records"),
    arg("--acks 0|1|all", "how many replicas must have a record (all)"),
    arg("--tee", "print the input on standard output too"),
    arg("--transactional-id ID", "write all in one transaction; an error aborts it"),
    arg("--progress", "show counts on standard error even without a terminal", section="Output"),
    examples=[
        "echo hello | purekafka produce events --sandbox",
        "events --value 'order {i}' --key eu --header source=shop --repeat 3 --sandbox",
        "events --format csv --lines users.csv --key-field id --sandbox",
        "orders --value-type avro --registry http://localhost:8081 -b localhost:9092",
    ],
)
def _run(arguments: Namespace, connection: Connection) -> int:
    _check(arguments)
    configs: dict[str, object] = {}
    if arguments.compression:
        configs["compression_type"] = None if arguments.compression == "none" else arguments.compression
    if arguments.acks is not None:
        configs["acks"] = arguments.acks if arguments.acks == "all" else int(arguments.acks)
    if arguments.transactional_id:
        configs["transactional_id"] = arguments.transactional_id
    if arguments.timeout:
        configs["delivery_timeout_ms"] = configs["max_block_ms"] = max(1, round(arguments.timeout * 1000))
        configs["request_timeout_ms"] = configs["delivery_timeout_ms"]
        configs["linger_ms"] = 0
    lines = _Lines(arguments, connection)
    if sys.stderr.isatty() and arguments.topic is not None:
        # Tell a user at a terminal that a topic does not exist: brokers may create one whose name is misspelt.
        with suppress(KafkaError):
            if not connection.admin().describe_topics([arguments.topic])[0].ok:
                complain(arguments, f"topic {arguments.topic!r} does not exist; brokers that may create it do that now")
    producer = connection.producer(**configs)
    delivery = Delivery(arguments, producer, "record" if arguments.value or arguments.files else "line")

    def send() -> None:
        _send_all(arguments, lines, delivery)

    if arguments.transactional_id:
        return in_transaction(arguments, producer, delivery, send)
    return delivery.run(send)


def _send_all(arguments: Namespace, lines: _Lines, delivery: Delivery) -> None:
    pace = _Pace(arguments.rate) if arguments.rate else None
    if arguments.format == "csv":
        for line, row in _csv_input(arguments):
            if pace is not None:
                pace.wait()
            if isinstance(row, ValueError):
                delivery.fail(line, row)
            else:
                _send_one(arguments, lines, delivery, row, line)
        return
    first = 1
    for pieces in _input(arguments):
        if arguments.tee:
            standard_output().write(b"".join(piece + b"\n" for piece in pieces))
        if pace is None:
            _send(arguments, lines, delivery, pieces, first)
        else:
            for at, piece in enumerate(pieces):
                pace.wait()
                _send(arguments, lines, delivery, [piece], first + at)
        first += len(pieces)


def _send(arguments: Namespace, lines: _Lines, delivery: Delivery, pieces: list[bytes], first: int) -> None:
    if lines.plain and arguments.format != "jsonl":
        delivery.send_values(arguments.topic, pieces, first)
        return
    for line, piece in enumerate(pieces, first):
        _send_one(arguments, lines, delivery, piece, line)


def _send_one(arguments: Namespace, lines: _Lines, delivery: Delivery, piece: bytes, line: int) -> None:
    from kafka.schema_registry import SchemaMismatchError

    topic = arguments.topic
    try:
        if arguments.format == "jsonl":
            own, record = record_of(piece, lines, topic, partitions=not arguments.repartition)
            topic = topic or own
            if topic is None:
                raise ValueError(NO_TOPIC)
        else:
            record = lines.record(piece)
    except (ValueError, TypeError, SchemaMismatchError) as error:
        delivery.fail(line, error)
    else:
        delivery.send(topic, record, line)


def _input(arguments: Namespace) -> Iterable[list[bytes]]:
    from kafka.cli.record_format import unescape_bytes

    if arguments.value or arguments.files:
        texts = [text.encode() for text in arguments.value]
        contents = [_content(name) for name in arguments.files]
        for number in range(arguments.repeat or 1):
            # Files are written as they are, and so are values that are written once.
            yield [*(text.replace(b"{i}", b"%d" % number) if arguments.repeat else text for text in texts), *contents]
        return
    delimiter = unescape_bytes(arguments.delimiter)
    if not delimiter:
        raise UsageError("--delimiter must not be empty")
    for source in _sources(arguments):
        yield from pieces_of(source, delimiter)


def _csv_input(arguments: Namespace) -> Iterator[tuple[int, bytes | ValueError]]:
    seen = standard_output().write if arguments.tee else None
    for source in _sources(arguments):
        yield from objects_of(pieces_of(source, b"\n"), arguments.null, seen)


def _sources(arguments: Namespace) -> Iterator[BinaryIO]:
    """Yield what lines are read from: the file of --lines as often as --repeat says, or standard input."""
    if arguments.lines:
        for _ in range(arguments.repeat or 1):
            with open(arguments.lines, "rb") as file:
                yield file
        return
    if sys.stdin.isatty():
        print("Type records, one per line; Ctrl-D ends.", file=sys.stderr)
    yield sys.stdin.buffer


def _content(name: str) -> bytes:
    """Return what a file contains; - is standard input."""
    if name == "-":
        return sys.stdin.buffer.read()
    return Path(name).read_bytes()


class _Pace:
    """Lets a number of records pass per second."""

    def __init__(self, rate: float) -> None:
        self._gap = 1 / rate
        self._next = time.monotonic()

    def wait(self) -> None:
        now = time.monotonic()
        if self._next > now:
            time.sleep(self._next - now)
        self._next = max(self._next + self._gap, now - 1)


COMMAND = _run
