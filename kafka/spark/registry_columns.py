"""The option schemaRegistry: keys and values of a source have the types of their schemas; a sink writes such columns.

The driver asks the registry for the types before a query runs. Each worker decodes what it fetches before Spark gets
it, so that a record crosses to Java once, and not three times as with a function of a query.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from kafka.spark.errors import KafkaSparkOptionError

# Every process of Spark loads this module, most without a registry: what one needs is imported where it is used.
if TYPE_CHECKING:
    from pyspark.sql.types import DataType, StructType

    from kafka.spark.registry import RegistryReader

__all__ = ["ERROR", "REGISTRY_OPTIONS", "RegistryOptions", "TypedColumns"]

_URL: Final = "schemaRegistry"
#: Options -> the arguments of a registry's client.
_CLIENT: Final = {
    f"{_URL}.userInfo": "user_info",
    f"{_URL}.token": "token",
    f"{_URL}.sslCafile": "ssl_cafile",
    f"{_URL}.sslCertfile": "ssl_certfile",
    f"{_URL}.sslKeyfile": "ssl_keyfile",
    f"{_URL}.timeout": "timeout",
}
_PARTS: Final = ("key", "value")
_OF_PART: Final = ("Subject", "Version", "Message")
_MODES: Final = ("FAILFAST", "PERMISSIVE")
REGISTRY_OPTIONS: Final = (
    _URL,
    *_CLIENT,
    f"{_URL}.mode",
    *(f"{_URL}.{part}{name}" for part in _PARTS for name in _OF_PART),
)
#: The column of a permissive source that says what could not be read.
ERROR: Final = "error"
_PLACE: Final = ("topic", "partition", "offset")
_HEADERS: Final = "headers"


@dataclass(frozen=True)
class RegistryOptions:
    """The options about a schema registry.

    >>> options = {"schemaregistry": "http://localhost:8081", "schemaregistry.mode": "permissive"}
    >>> RegistryOptions.parse(options, ["orders"]).subjects
    {'value': 'orders-value'}
    """

    registry: tuple[tuple[str, Any], ...] = field(repr=False)
    """Arguments of its client; secrets are among them."""
    subjects: Mapping[str, str]
    """Subjects of keys and of values, which stay bytes without one."""
    versions: Mapping[str, int]
    messages: Mapping[str, str]
    permissive: bool

    @classmethod
    def parse(cls, options: Mapping[str, str], topics: Sequence[str]) -> RegistryOptions | None:
        """Check the options, whose names are in lower case; None without a registry. Values need a subject or topic."""
        if _URL.lower() not in options:
            for name in REGISTRY_OPTIONS:
                if name.lower() in options:
                    raise KafkaSparkOptionError(f"{name} needs the option {_URL}, the URL of a registry", option=name)
            return None
        from kafka.spark.registry import registry_of  # which needs pyarrow

        of_client: dict[str, Any] = {
            argument: options[name.lower()] for name, argument in _CLIENT.items() if name.lower() in options
        }
        if "timeout" in of_client:
            of_client["timeout"] = float(_number(f"{_URL}.timeout", of_client["timeout"]))
        mode = options.get(f"{_URL}.mode".lower(), _MODES[0]).strip().upper()
        if mode not in _MODES:
            raise KafkaSparkOptionError(f"{_URL}.mode must be one of {', '.join(_MODES)}, not {mode}")
        given: dict[str, dict[str, str]] = {}
        for name in _OF_PART:
            words = {part: options.get(f"{_URL}.{part}{name}".lower(), "").strip() for part in _PARTS}
            given[name] = {part: word for part, word in words.items() if word}
        subjects = given["Subject"]
        if "value" not in subjects:
            if len(topics) != 1:
                raise KafkaSparkOptionError(
                    f"{_URL}.valueSubject must name the subject whose types the values have: it is TOPIC-value for one "
                    "topic only",
                    option=f"{_URL}.valueSubject",
                )
            subjects["value"] = f"{topics[0]}-value"
        versions = {part: _number(f"{_URL}.{part}Version", text) for part, text in given["Version"].items()}
        registry = registry_of(options[_URL.lower()], of_client)
        return cls(registry, subjects, versions, given["Message"], mode == _MODES[1])

    # The source.

    def schema(self, plain: StructType) -> StructType:
        """Return the columns of a source, with the types of the newest versions."""
        from pyspark.sql.types import BinaryType, StringType, StructField, StructType

        kinds = {part: _spark_type(self._reader(part)) for part in self.subjects}
        fields = [StructField(one.name, kinds.get(one.name, one.dataType)) for one in plain.fields]
        if self.permissive:
            raw = [StructField(part, BinaryType()) for part in _PARTS]
            fields.append(StructField(ERROR, StructType([StructField("reason", StringType()), *raw])))
        return StructType(fields)

    def columns(self, schema: StructType) -> TypedColumns:
        """Return what makes the columns of a frame, whose types a version of each subject has.

        Spark plans a frame more than once, and a version that is registered meanwhile must not change its types.
        """
        readers = {
            one.name: self._reader_of_type(one.name, one.dataType) for one in schema.fields if one.name in self.subjects
        }
        return TypedColumns([one.name for one in schema.fields], readers, permissive=self.permissive)

    def _reader(self, part: str, version: int | None = None) -> RegistryReader:
        from kafka.spark.registry import reader_of

        version = self.versions.get(part, version)
        subject, message = self.subjects[part], self.messages.get(part)
        return reader_of(self.registry, subject, version, None, key=part == "key", message=message)

    def _reader_of_type(self, part: str, kind: DataType) -> RegistryReader:
        found = self._reader(part)
        if _spark_type(found) == kind:
            return found
        if part not in self.versions:
            from kafka.schema_registry import SchemaRegistry

            client = SchemaRegistry(**dict(self.registry))
            for version in reversed(client.versions(self.subjects[part])[:-1]):
                older = self._reader(part, version)
                if _spark_type(older) == kind:
                    return older
        raise KafkaSparkOptionError(
            f"the column {part!r} is {kind.simpleString()}, and no version of the subject {self.subjects[part]!r} has "
            f"this type; the newest one has {_spark_type(found).simpleString()}. Call load() again"
        )

    # The sink.

    def encoded(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the Arrow batches of a task with keys and values as bytes that begin with the id of a schema."""
        from kafka.spark.registry import newest_writer

        for batch in batches:
            for part, subject in self.subjects.items():
                at = batch.schema.get_field_index(part)
                if at >= 0:
                    writer = newest_writer(self.registry, subject, self.versions.get(part), self.messages.get(part))
                    batch = batch.set_column(at, part, writer.encode(batch.column(at)))  # noqa: PLW2901
            yield batch


def _number(option: str, text: str) -> int:
    if not text.strip().isdecimal():
        raise KafkaSparkOptionError(f"{option} must be a number, not {text!r}", option=option)
    return int(text)


def _spark_type(reader: RegistryReader) -> DataType:
    from pyspark.sql.pandas.types import from_arrow_type

    found: DataType = from_arrow_type(reader.columns().type, prefer_timestamp_ntz=True)
    return found


class TypedColumns:
    """Makes the columns of a frame from the columns of records, in tasks."""

    def __init__(self, names: Sequence[str], readers: Mapping[str, RegistryReader], *, permissive: bool) -> None:
        self._names = names
        self._readers = readers
        self._permissive = permissive
        needed = [one for one in names if one != ERROR]
        if permissive and ERROR in names:
            needed += _PARTS
        elif readers:
            needed += _PLACE
        #: The columns of records that are needed.
        self.needed = list(dict.fromkeys(needed))

    def of(self, batches: Iterable[Any]) -> Iterator[Any]:
        """Yield the batches of records as batches of the frame."""
        import pyarrow as pa

        from kafka.schema_registry import SchemaMismatchError
        from kafka.spark.registry import shown_place

        for batch in batches:
            columns = {name: batch.column(at) for at, name in enumerate(batch.schema.names)}
            found, reasons = dict(columns), dict[int, str]()
            for part, reader in self._readers.items():
                column, errors = reader.columns().decode(columns[part], columns.get(_HEADERS))
                if errors and not self._permissive:
                    row = min(errors)
                    place = shown_place([columns[name] for name in _PLACE], row)
                    raise SchemaMismatchError(f"the {part} of {place} cannot be read: {errors[row]}")
                for row, reason in errors.items():
                    reasons.setdefault(row, f"{part}: {reason}")
                found[part] = column
            if self._permissive and ERROR in self._names:
                found[ERROR] = _errors(reasons, columns)
            yield pa.RecordBatch.from_arrays([found[name] for name in self._names], names=list(self._names))


def _errors(reasons: Mapping[int, str], columns: Mapping[str, Any]) -> Any:
    """Return the column of errors: why a record cannot be read, and the bytes of its key and value."""
    import pyarrow as pa

    from kafka.spark.registry import in_rows

    rows = sorted(reasons)
    parts = {part: columns[part].take(pa.array(rows, pa.int64())) for part in _PARTS}
    return in_rows(rows, {"reason": pa.array(map(reasons.get, rows), pa.string()), **parts}, len(columns["value"]))
