"""The object model of the protocol: structs whose attributes are the union of all versions.

``FetchRequest`` has every field that any version carries. ``FetchRequest[4]`` is that class bound to
version 4: positional arguments and iteration follow the wire order of version 4, ``encode()`` and
``decode()`` need no version, and a field that version 4 lacks reads as its default and refuses any
other value. Decoded objects are always of bound classes.

Nothing is compiled before it is used: the initialiser of a class when the first instance is made, a
codec when the first message of that version is encoded or decoded.

Classes that state ``SCHEMA = Schema(...)`` instead of fields, the historic declarative style, work by
that schema.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, overload

from kafka.errors import KafkaProtocolError, UnsupportedFieldError, UnsupportedVersionError
from kafka.protocol import types
from kafka.protocol.aliases import CLASS_CONSTANTS, FIELD_ALIASES
from kafka.protocol.fields import MAKE_EMPTY, Field, VersionRange
from kafka.protocol.types import Schema

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from typing_extensions import Self

    from kafka.protocol.codec.compiler import Codec
    from kafka.protocol.fields import Buffer

_S = TypeVar("_S", bound="Struct")


class UnknownFieldError(TypeError, ValueError):
    """A struct was given a field that it does not have. A ValueError too, as in the releases before."""


class UnsupportedField:
    """Stands in a bound class for a field that this version does not carry.

    Reads as the field's default. Takes nothing but that default, unless the definition lets a version
    that cannot carry the field drop it.
    """

    __slots__ = ("_field",)

    def __init__(self, field: Field) -> None:
        self._field = field

    def __get__(self, instance: object, owner: type) -> Any:
        return self if instance is None else self._field.fresh_default(None)

    def __set__(self, instance: Struct, value: object) -> None:
        if not self._field.ignorable and not self._field.is_default(value):
            raise cannot_carry(type(instance), self._field, value)


def _alias(official: str) -> property:
    def get(struct: object) -> object:
        return getattr(struct, official)

    def put(struct: object, value: object) -> None:
        setattr(struct, official, value)

    return property(get, put)


class Tagged:
    """A field in the tag buffer: kept in a dictionary that most structs never need.

    A list or a struct that was not given is made when it is first looked at, so that it can be changed in place.
    """

    __slots__ = ("_field",)

    def __init__(self, field: Field) -> None:
        self._field = field

    def __get__(self, struct: Struct | None, owner: type) -> Any:
        if struct is None:
            return self
        name = self._field.name
        tagged = struct._tagged
        if tagged is not None and name in tagged:
            return tagged[name]
        value = self._field.fresh_default(type(struct)._version)
        if self._field.default is MAKE_EMPTY:
            self.__set__(struct, value)
        return value

    def __set__(self, struct: Struct, value: object) -> None:
        if struct._tagged is None:
            struct._tagged = {}
        struct._tagged[self._field.name] = value


class _NoTags:
    """The tag buffer of a version that has none."""

    __slots__ = ()

    def __get__(self, struct: object, owner: type) -> None:
        return None

    def __set__(self, struct: Struct, value: object) -> None:
        if value is not None:
            raise KafkaProtocolError(f"{describe(type(struct))} has no tagged fields: it is not a flexible version")


def check_encodable(struct: object, cls: StructMeta) -> None:
    """Raise where an instance of another version, or of none, holds what the version of ``cls`` cannot carry."""
    held_by: type = type(struct)
    for field in _fields_without_a_place(held_by, cls):
        value = getattr(struct, field.name)
        if not field.is_default(value):
            raise cannot_carry(cls, field, value)


@lru_cache(maxsize=4096)
def _fields_without_a_place(held_by: type, cls: StructMeta) -> tuple[Field, ...]:
    """Return the fields of one class that the version of another cannot carry, and may not drop."""
    if held_by is cls:
        return ()
    return tuple(
        field
        for name, field in cls._fields.items()
        # A property is an old name of another field, in the version of the instance.
        if not (cls._version in field.versions or field.ignorable or isinstance(vars(held_by).get(name), property))
    )


def cannot_carry(cls: StructMeta, field: Field, value: object) -> KafkaProtocolError:
    """Return the error for a value that a version cannot carry."""
    shown = "..." if field.secret else types.shown(value)
    return UnsupportedFieldError(
        f"{describe(cls)} cannot carry {field.name}={shown}: versions {field.versions} of it have that field",
        message_name=cls._message.__name__,
        field=field.name,
        version=cls._version,
    )


def describe(cls: StructMeta) -> str:
    """Name a class and its version for a person, as ``FetchRequest[4].FetchTopic``."""
    if cls._version is None:
        return cls._label
    message, dot, rest = cls._label.partition(".")
    return f"{message}[{cls._version}]{dot}{rest}"


class _SchemaOfFields:
    """The wire format in the declarative style, made when it is looked at."""

    def __get__(self, struct: object, owner: StructMeta) -> Schema:
        from kafka.protocol._declarative import schema_of

        if owner._version is None:
            raise AttributeError("SCHEMA")  # `__getattr__` says more
        return schema_of(owner)


class StructMeta(type):
    """Turns a class body of fields into slots, and gives ``cls[version]``, ``len(cls)`` and a ``repr``."""

    _label: str
    _fields: Mapping[str, Field]
    _aliases: Mapping[str, str]
    _structs: list[StructMeta]
    _message: StructMeta
    _version: int | None
    _unbound: StructMeta
    _bound: dict[int, StructMeta]
    _versions: VersionRange
    _stable: VersionRange
    _flexible: VersionRange
    _schema: Schema | None
    _codecs: dict[int, Codec]
    _names: tuple[str, ...]
    _counterpart: StructMeta
    encode: Callable[..., bytes]
    decode: Callable[..., Any]

    def __new__(
        mcls, name: str, bases: tuple[type, ...], namespace: dict[str, object], **_options: object
    ) -> StructMeta:
        """Make the class: its fields become slots."""
        fields = {key: value for key, value in namespace.items() if isinstance(value, Field)}
        for key, definition in fields.items():
            if definition.tag is None:
                del namespace[key]
            else:
                namespace[key] = Tagged(definition)
        schema = namespace.get("SCHEMA")
        names = schema.names if isinstance(schema, Schema) else tuple(k for k, f in fields.items() if f.tag is None)
        namespace.setdefault("__slots__", names)
        cls = super().__new__(mcls, name, bases, namespace)
        if fields or "_fields" not in namespace:
            cls._fields = fields or getattr(cls, "_fields", {})
        for key, definition in fields.items():
            definition.__set_name__(cls, key)
        return cls

    def __init__(
        cls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, object],
        *,
        api_key: int | None = None,
        record_type: int | None = None,
        versions: str = "0+",
        flexible: str = "none",
        unstable: str = "none",
    ) -> None:
        super().__init__(name, bases, namespace)
        if "_version" in namespace:  # a bound class: _bind has set everything
            return
        cls._label = name
        cls._version = None
        cls._unbound = cls._message = cls
        cls._bound = {}
        cls._codecs = {}
        cls._versions = VersionRange.parse(versions)
        cls._flexible = VersionRange.parse(flexible)
        cls._stable = cls._versions.without(VersionRange.parse(unstable))
        schema = namespace.get("SCHEMA")
        cls._schema = schema if isinstance(schema, Schema) else getattr(cls, "_schema", None)
        if cls._schema is not None:
            cls._version = getattr(cls, "API_VERSION", 0)
            if namespace.get("FLEXIBLE_VERSION"):
                cls._flexible = cls._versions
        if api_key is not None:
            cls.API_KEY = api_key
        if record_type is not None:
            cls.RECORD_TYPE = record_type
        cls._aliases = FIELD_ALIASES.get(name, {})
        cls._structs = [value for value in namespace.values() if isinstance(value, StructMeta)]
        for struct in cls._structs:
            for definition in struct._fields.values():
                definition.resolve(namespace)
            struct._message = cls
            struct._label = f"{name}.{struct.__name__}"
            struct._versions = cls._versions
            struct._flexible = cls._flexible
            struct._aliases = FIELD_ALIASES.get(struct._label, {})

    def __getattr__(cls, name: str) -> Any:
        label = next((base.__dict__["_label"] for base in cls.__mro__ if "_label" in base.__dict__), "")
        constants = CLASS_CONSTANTS.get(label, {}) if name.isupper() else {}
        if name not in constants:
            advice = f": each version has one, {cls.__name__}[n].SCHEMA" if name == "SCHEMA" else ""
            raise AttributeError(f"type object {cls.__name__!r} has no attribute {name!r}{advice}")
        value = constants[name]
        return value[cls._version != 0] if isinstance(value, tuple) else value

    # Versions

    @overload
    def __getitem__(cls: type[_S], version: int) -> type[_S]: ...  # type: ignore[misc]
    @overload
    def __getitem__(cls: type[_S], version: slice) -> list[type[_S]]: ...  # type: ignore[misc]
    def __getitem__(cls: Any, version: int | slice) -> Any:
        """Return the class bound to ``version``, or a list of them; negative numbers count from the newest."""
        # The annotations of ``cls`` are what users' type checkers see; StructMeta is what it is.
        if isinstance(version, slice):
            numbers = range(cls._versions.high + 1)[version]
            return [cls._of_version(number) for number in numbers if number in cls._versions]
        return cls._of_version(version)

    def _of_version(cls, version: Any) -> StructMeta:
        found = cls._bound.get(version)
        if found is None:
            if isinstance(version, (str, type)):  # a type parameter, as in Request["MetadataResponse"]
                return cls
            number = version + cls._versions.high + 1 if version < 0 else version
            if number not in cls._versions or cls._version is not None:
                raise UnsupportedVersionError(
                    f"{cls._label} has versions {cls._versions}, not {version}"
                    if cls._version is None
                    else f"{describe(cls)} is bound to a version already"
                )
            found = cls._bound.get(number) or cls._bind(number)
        return found

    def _bind(cls, version: int) -> StructMeta:
        flexible = version in cls._flexible
        namespace: dict[str, object] = {
            "__slots__": (),
            "__module__": cls.__module__,
            "__doc__": cls.__doc__,
            "_version": version,
            "_fields": cls._fields,
            "__init__": Struct.__init__,  # not the one that the unbound class may have compiled already
        }
        for name, definition in cls._fields.items():
            if version not in definition.versions:
                # An old name may have become that of a newer field: in old versions it means what it meant.
                old = cls._fields.get(cls._aliases.get(name, ""))
                meant = old is not None and version in old.versions
                namespace[name] = _alias(old.name) if old is not None and meant else UnsupportedField(definition)
        if not flexible:
            namespace["_tagged"] = _NoTags()
        if cls is cls._message:
            namespace["API_VERSION"] = version
            for struct in cls._structs:
                namespace[struct.__name__] = struct._of_version(version)
        bound = StructMeta(cls.__name__, (cls,), namespace)
        bound.__qualname__ = describe(bound)
        # Two threads may get here at once: both must use the same class.
        return cls._bound.setdefault(version, bound)

    def __len__(cls) -> int:
        return max(0, cls._versions.high - cls._versions.low + 1)

    def __bool__(cls) -> bool:
        return True

    def __iter__(cls: type[_S]) -> Iterator[type[_S]]:  # type: ignore[misc]
        versions: VersionRange = cls._versions
        return iter([cls[version] for version in range(versions.low, versions.high + 1)])

    def __repr__(cls) -> str:
        if not cls._fields and cls._schema is None and cls._message is cls:
            return super().__repr__()
        if cls._version is not None or cls._message is not cls:
            return f"<class {describe(cls)}({', '.join(cls._wire_names())})>"
        key = f" api_key={cls.API_KEY}" if hasattr(cls, "API_KEY") else ""
        stable = "" if cls._stable == cls._versions else f" (stable {cls._stable})"
        return f"<class {cls._label}{key} versions {cls._versions}{stable} flexible {cls._flexible}>"

    # The wire form of a version

    def _wire_names(cls) -> tuple[str, ...]:
        """Return the names of the fields that this version carries: in wire order, the tagged ones last."""
        if cls._schema is not None:
            return cls._schema.names
        names = cls.__dict__.get("_names")
        if names is None:
            fields = [f for f in cls._fields.values() if cls._version is None or cls._version in f.versions]
            plain = [f.name for f in fields if f.tag is None]
            names = cls._names = (*plain, *(f.name for f in fields if f.tag is not None))
        return names

    def _codec(cls, version: int) -> Codec:
        """Return the compiled codec of one version; ``cls`` is an unbound class."""
        codec = cls._codecs.get(version)
        if codec is None:
            from kafka.protocol.codec.compiler import compile_codec

            codec = cls._codecs[version] = compile_codec(cls._of_version(version))
        return codec


class Struct(metaclass=StructMeta):
    """A group of fields: a message, or a part of one.

    Instances compare by value, unpack like tuples in the wire order of their version, and show all
    that they hold:

    >>> from kafka.protocol.metadata import MetadataRequest
    >>> request = MetadataRequest[1](['events'])
    >>> request.topics[0].name
    'events'
    >>> request
    MetadataRequest[1](topics=[MetadataRequestTopic(name='events')])
    """

    __slots__ = ("_tagged",)

    #: The content of the tag buffer: known fields by name, unknown ones by number.
    _tagged: dict[str | int, Any] | None
    API_VERSION: ClassVar[int]
    SCHEMA: ClassVar[Any] = _SchemaOfFields()

    def __init__(self, *args: object, **kwargs: object) -> None:
        # Runs once per class: the compiled initialiser takes this one's place.
        cls = type(self)
        if cls._schema is not None:
            from kafka.protocol._declarative import init_by_schema

            init_by_schema(self, cls._schema, args, kwargs)
            return
        from kafka.protocol.codec.compiler import compile_init

        initialiser: Callable[..., None] = compile_init(cls)
        cls.__init__ = initialiser  # type: ignore[method-assign]
        initialiser(self, *args, **kwargs)

    # To bytes and back

    def encode(self, version: int | None = None) -> bytes:
        """Return the wire form, of ``version`` or of the version that the class is bound to."""
        return b"".join(self.encode_parts(version))

    def encode_parts(self, version: int | None = None) -> list[bytes]:
        """Return the wire form in pieces, so that large byte fields are not copied."""
        cls = type(self)
        if cls._schema is not None:
            return [cls._schema.encode(tuple(self))]
        if version is None:
            version = _need_version(cls)
        parts: list[bytes] = []
        cls._unbound._codec(version).encode(self, parts)
        return parts

    @classmethod
    def decode(cls, data: Buffer, version: int | None = None, *, start: int = 0) -> Self:
        """Read a message from bytes; whatever they are, only a ``KafkaProtocolError`` comes out.

        It must fill ``data`` from ``start`` to the end. A file, such as a ``BytesIO``, is read from where it is, and
        left behind the message.
        """
        meta: StructMeta = cls
        if meta._schema is not None:
            from kafka.protocol._declarative import decode_by_schema

            return cls(*decode_by_schema(meta._schema, data[start:] if start else data, describe(meta)))
        if version is None:
            version = _need_version(meta)
        return meta._unbound._codec(version).decode(data, start=start)  # type: ignore[no-any-return]

    @classmethod
    def decode_prefix(cls, data: Buffer, *, start: int = 0) -> tuple[Self, int]:
        """Read a message that more bytes may follow; return it and the position of its end.

        Kafka's brokers ignore bytes behind the last field of a request, and librdkafka sends some.

        >>> from kafka.protocol.metadata import MetadataRequest
        >>> MetadataRequest[0].decode_prefix(MetadataRequest[0]([]).encode() + b"more")
        (MetadataRequest[0](topics=[]), 4)
        """
        meta: StructMeta = cls
        return meta._unbound._codec(_need_version(meta)).decode_prefix(data, start)

    @property
    def unknown_tags(self) -> dict[int, bytes]:
        """Tagged fields that our definition does not know, kept so that they can be passed on."""
        return {tag: raw for tag, raw in (self._tagged or {}).items() if isinstance(tag, int)}

    @unknown_tags.setter
    def unknown_tags(self, tags: Mapping[int, bytes] | None) -> None:
        kept: dict[str | int, object] = {k: v for k, v in (self._tagged or {}).items() if isinstance(k, str)}
        unknown: dict[str | int, object] = dict((tags or {}).items())
        self._tagged = {**kept, **unknown} or None

    # As a value

    def __iter__(self) -> Iterator[Any]:
        # As tuples, structs are read by older programs, for whom records are bytes; attributes share the buffer.
        values = [getattr(self, name) for name in type(self)._wire_names()]
        return iter([bytes(value) if type(value) is memoryview else value for value in values])

    def __len__(self) -> int:
        return len(type(self)._wire_names())

    def __getitem__(self, index: Any) -> Any:
        return tuple(self)[index]

    def get_item(self, name: str) -> Any:
        """Return a field by its name, present or old."""
        cls = type(self)
        if name not in cls._wire_names() and name not in cls._aliases:
            raise KeyError(f"{describe(cls)} has no field {name!r}; it has {', '.join(cls._wire_names())}")
        return getattr(self, name)

    def __bool__(self) -> bool:
        return True

    def __eq__(self, other: object) -> bool:
        if isinstance(other, tuple):
            return tuple(self) == other
        if not isinstance(other, Struct) or type(other)._unbound is not type(self)._unbound:
            return NotImplemented
        names = type(self)._fields or type(self)._wire_names()
        same = all(getattr(self, name) == getattr(other, name) for name in names)
        return same and self.unknown_tags == other.unknown_tags

    __hash__ = None  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        cls = type(self)
        if name == "_tagged":
            return None
        official = cls._aliases.get(name)
        if official is not None:
            return getattr(self, official)
        if name == "tags" and cls._version in cls._unbound._flexible:
            return self.unknown_tags
        if name in cls._fields:
            raise AttributeError(f"{describe(cls)}.{name} was never set")
        raise AttributeError(f"{describe(cls)} has no field {name!r}; it has {', '.join(cls._wire_names())}")

    def __reduce__(self) -> tuple[object, ...]:
        cls = type(self)
        names = cls._wire_names()
        state = {name: getattr(self, name) for name in names}
        return _rebuild, (cls._unbound, cls._version, state, self.unknown_tags)

    def __repr__(self) -> str:
        cls = type(self)
        shown = [f"{name}={self._show(name)}" for name in cls._wire_names()]
        if self.unknown_tags:
            shown.append(f"unknown_tags={self.unknown_tags!r}")
        name = describe(cls) if cls._unbound._message is cls._unbound else cls.__name__
        return f"{name}({', '.join(shown)})"

    def _show(self, name: str) -> str:
        value = getattr(self, name)
        definition = type(self)._fields.get(name)
        if definition is not None and definition.secret and value:
            return "<hidden>"
        if isinstance(value, (bytes, bytearray, memoryview)) and len(value) > 64:
            return f"<{len(value)} bytes>"
        return repr(bytes(value)) if isinstance(value, memoryview) else repr(value)

    # JSON, in the form of Kafka's own converters

    def to_json(self, version: int | None = None) -> dict[str, Any]:
        """Return plain data in Kafka's JSON form: official names, bytes in base64."""
        from kafka.protocol import _json

        return _json.to_json(self, _need_version(type(self)) if version is None else version)

    @classmethod
    def from_json(cls, data: Mapping[str, object], version: int | None = None) -> Self:
        """Build a message from plain data; takes official names and ours."""
        from kafka.protocol import _json

        meta: StructMeta = cls
        bound = meta._unbound._of_version(_need_version(meta) if version is None else version)
        return _json.from_json(bound, data)  # type: ignore[no-any-return]


def _need_version(cls: StructMeta) -> int:
    if cls._version is None:
        raise KafkaProtocolError(
            f"{cls._label} is not bound to a version: use {cls._label}[n] with n in {cls._versions}, or pass version="
        )
    return cls._version


def _rebuild(
    cls: StructMeta, version: int | None, state: Mapping[str, object], unknown_tags: Mapping[int, bytes] | None
) -> Struct:
    made: Struct = (cls if version is None or cls._schema is not None else cls._of_version(version))(**state)
    if unknown_tags:
        made.unknown_tags = unknown_tags
    return made
