"""Writes the initialisers: defaults for what is not given, tuples made into structs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafka.protocol import _interpret, types
from kafka.protocol._historic import OLD_TUPLES
from kafka.protocol._source import Source
from kafka.protocol.fields import MAKE_EMPTY, Field
from kafka.protocol.struct import Struct, UnknownFieldError, describe

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kafka.protocol.struct import StructMeta


def compile_init(cls: StructMeta) -> Callable[..., None]:
    """Make the ``__init__`` of a class: defaults for what is not given, tuples made into structs."""
    source = Source()
    fields = [cls._fields[name] for name in cls._wire_names()]
    parameters = [f"{f.name}={source.constant('DEFAULT', f.default)}" for f in fields]
    # The order of arguments is that of a version; a class without one takes them by name.
    parameters.insert(0 if cls._version is None else len(parameters), "*")
    source.line("self._tagged = None")
    for field in fields:
        _init_field(source, cls, field)
    more = source.constant("more", _init_more)
    source.line("if unknown_tags: self.unknown_tags = unknown_tags")
    source.line(f"if unknown: {more}(self, unknown)")
    head = ", ".join(["self", *parameters, "unknown_tags=None", "**unknown"])
    initialiser = source.finish(f"def __init__({head}):", f"kafka.protocol {describe(cls)} init")
    initialiser.__qualname__ = f"{describe(cls)}.__init__"
    return initialiser


def _init_field(source: Source, cls: StructMeta, field: Field) -> None:
    name = field.name
    default = source.constant("DEFAULT", field.default)
    convert = "pass"
    if not issubclass(field.element, types.AbstractType):
        nested = source.constant("C", _nested_class(cls, field))
        structs = source.constant("structs", _maker(field))
        convert = f"{name} = {structs}({nested}, {name})"
    if field.tag is not None:  # what is not given is not kept
        source.line(f"if {name} is not {default}:")
        if convert != "pass":
            source.line(f"    if {name}: {convert}")
        source.line(f"    self.{name} = {name}")
        return
    if field.default is MAKE_EMPTY:
        made = "[]" if field.is_array else f"{source.constant('C', _nested_class(cls, field))}()"
        source.line(f"if {name} is {default}: {name} = {made}")
        if convert != "pass":
            source.line(f"elif {name}: {convert}")
    elif convert != "pass":
        source.line(f"if {name}: {convert}")
    source.line(f"self.{name} = {name}")


def _nested_class(cls: Any, field: Field) -> StructMeta:
    nested: StructMeta = field.element
    return nested if cls._version is None else nested._of_version(cls._version)


def _maker(field: Field) -> Callable[[StructMeta, Any], Any]:
    """Return what makes the value of a field out of tuples."""
    if not field.is_array:
        return _struct
    reshape = OLD_TUPLES.get(field.element._label)
    return _structs if reshape is None else lambda cls, items: _structs(cls, [*map(reshape, types.as_sequence(items))])


def _structs(cls: StructMeta, items: Any) -> list[Any]:
    # Of what class an item is asks the encoder.
    return [
        item if isinstance(item, Struct) else _interpret.as_struct(cls, item, describe(cls))
        for item in types.as_sequence(items)
    ]


def _struct(cls: StructMeta, item: Any) -> Any:
    if isinstance(item, Struct):
        return item  # of what class is asked when it is written
    return _interpret.as_struct(cls, item, describe(cls))


def _init_more(struct_: Any, given: dict[str, Any]) -> None:
    """Take keyword arguments that are no field of this version: old names, and fields it does not carry."""
    cls = type(struct_)
    for name, value in given.items():
        official = cls._aliases.get(name, name)
        if official not in cls._fields:
            if name in ("tags", "_tagged_fields"):  # what ``unknown_tags`` was called
                struct_.unknown_tags = value
                continue
            names = ", ".join(_spellings(cls))
            raise UnknownFieldError(f"{describe(cls)} has no field {name!r}; it has {names}")
        field = cls._fields[official]
        if not issubclass(field.element, types.AbstractType) and value:
            nested = _nested_class(cls, field)
            value = _maker(field)(nested, value)  # noqa: PLW2901
        setattr(struct_, official, value)


def _spellings(cls: Any) -> Iterator[str]:
    old = {official: alias for alias, official in cls._aliases.items()}
    for name in cls._wire_names():
        yield f"{name} (once {old[name]})" if name in old else name
