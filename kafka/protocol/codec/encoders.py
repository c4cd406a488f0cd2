"""Writes the encoders: from the layout of a struct to Python source that writes it."""

from __future__ import annotations

from collections.abc import Callable

from kafka.protocol import types
from kafka.protocol.codec.layout import FIXED_FORMATS, Layout, WireField, element_as_field, layout_of, null_marker
from kafka.protocol.codec.runtime import SHORT_LIST, Source, short_packers, struct_of
from kafka.protocol.struct import StructMeta, describe


class EncoderSource(Source):
    """Collects neighbouring pieces and writes them as one expression."""

    def __init__(self) -> None:
        super().__init__()
        self._pieces: list[tuple[str, str]] = []  # (format, expression); no format: the expression is bytes

    def fixed(self, format_: str, expression: str) -> None:
        """Write a fixed-width value."""
        self._pieces.append((format_, expression))

    def raw(self, expression: str) -> None:
        """Write bytes, small enough to be joined to their neighbours."""
        self._pieces.append(("", expression))

    def pending(self) -> str:
        """Return one expression for all that was collected, and forget it."""
        terms: list[str] = []
        formats, values = "", []
        for format_, expression in [*self._pieces, ("", "")]:
            if format_:
                formats += format_
                values.append(expression)
                continue
            if formats:
                pack = self.constant(f"pack_{formats}_", struct_of(formats).pack)
                terms.append(f"{pack}({', '.join(values)})")
                formats, values = "", []
            if expression:
                terms.append(expression)
        self._pieces.clear()
        return " + ".join(terms)

    def flush(self) -> None:
        """Write what was collected."""
        expression = self.pending()
        if expression:
            self.line(f"parts.append({expression})")


def compile_encoder(cls: StructMeta) -> Callable[..., None]:
    """Return `encode(message, parts)` for a bound class."""
    source = EncoderSource()
    _encode_struct(source, layout_of(cls), "m")
    source.flush()
    source.line("return")
    return source.finish("def encode(m, parts):", f"kafka.protocol {describe(cls)} encode")


def _encode_struct(source: EncoderSource, layout: Layout, value: str) -> None:
    cls = source.constant("C", layout.cls)
    source.line(f"if {value}.__class__ is not {cls}: foreign({value}, {cls})")
    for wire in layout.plain:
        _encode_field(source, wire, f"{value}.{wire.name}")
    if not layout.flexible:
        return
    tags = source.name("t")
    source.line(f"{tags} = {value}._tagged")
    write = f"{source.constant('tags', _compile_tag_encoder(layout))}({tags})"
    source.raw(f"({write} if {tags} else b'\\0')")


def _compile_tag_encoder(layout: Layout) -> Callable[[dict[str | int, object]], bytes]:
    """Make the function that writes a tag buffer which holds something; fields at their default are left out."""
    source = EncoderSource()
    source.line("known = []")
    for wire in layout.tagged:
        value = source.name("v")
        source.line(f"if {wire.name!r} in tagged:")
        source.indent()
        source.line(f"{value} = tagged[{wire.name!r}]")
        source.line(f"if not {source.constant('F', wire.field)}.is_default({value}):")
        source.indent()
        source.line("parts = []")
        _encode_field(source, wire, value)
        source.flush()
        source.line(f"known.append(({wire.field.tag}, join(parts)))")
        source.dedent()
        source.dedent()
    source.line("return write_tags(known, tagged)")
    return source.finish("def encode_tags(tagged):", f"kafka.protocol {describe(layout.cls)} tags")


def _encode_field(source: EncoderSource, wire: WireField, value: str) -> None:
    if wire.is_array:
        _encode_array(source, wire, value)
    elif wire.is_struct:
        _encode_nested(source, wire, value)
    elif wire.element is types.Uuid:
        source.raw(f"{value}.bytes")
    elif wire.element is types.Boolean:
        source.fixed("B", f"BOOL[{value}]")
    elif wire.element in FIXED_FORMATS:
        source.fixed(FIXED_FORMATS[wire.element], value)
    elif wire.element is types.String:
        _encode_text(source, wire, value)
    else:
        _encode_blob(source, wire, value)


def _null(wire: WireField) -> str:
    return repr(b"\0" if wire.compact else struct_of(wire.prefix).pack(-1))


def _put_length(source: EncoderSource, wire: WireField, length: str) -> None:
    if wire.compact:
        more = source.name("n")
        source.line(f"{more} = {length} + 1")
        source.raw(f"(UV[{more}] if {more} < 128 else {_long_prefix(wire)}({more}))")
    else:
        source.fixed(wire.prefix, length)


def _long_prefix(wire: WireField) -> str:
    return "text_prefix" if wire.element is types.String and not wire.is_array else "uvarint"


def _encode_text(source: EncoderSource, wire: WireField, value: str) -> None:
    text = source.name("x")
    if not wire.nullable:
        source.line(f"{text} = {value}.encode()")
        _put_length(source, wire, f"len({text})")
        source.raw(text)
        return
    length = source.name("n")
    source.line(f"{text} = {value}")
    source.line(f"if {text} is None: {text} = {_null(wire)}")
    source.line("else:")
    source.indent()
    source.line(f"{text} = {text}.encode()")
    if wire.compact:
        source.line(f"{length} = len({text}) + 1")
        source.line(f"{text} = (UV[{length}] if {length} < 128 else text_prefix({length})) + {text}")
    else:
        pack = source.constant("pack_h_", struct_of("h").pack)
        source.line(f"{text} = {pack}(len({text})) + {text}")
    source.dedent()
    source.raw(text)


def _encode_blob(source: EncoderSource, wire: WireField, value: str) -> None:
    """Write bytes as a separate part: they may be large, and are not copied."""
    raw = source.name("b")
    source.line(f"{raw} = {value}")
    if wire.nullable:
        before = source.pending()
        source.line(f"if {raw} is None: parts.append({before + ' + ' if before else ''}{_null(wire)})")
        source.line("else:")
        source.indent()
        source.line(f"if {raw}.__class__ is not bytes: {raw} = blob({raw})")
        if before:
            source.raw(before)
    else:
        source.line(f"if {raw}.__class__ is not bytes: {raw} = blob({raw})")
    _put_length(source, wire, f"len({raw})")
    source.flush()
    if wire.element is types.Records:
        source.line(f"if {raw}.__class__ is Gathered: parts += {raw}.buffers")
        source.line(f"else: parts.append({raw})")
    else:
        source.line(f"parts.append({raw})")
    if wire.nullable:
        source.dedent()


def _encode_nested(source: EncoderSource, wire: WireField, value: str) -> None:
    struct_ = source.name("s")
    source.line(f"{struct_} = {value}")
    if not wire.nullable:
        _encode_struct(source, layout_of(wire.element), struct_)
        return
    source.flush()
    source.line(f"if {struct_} is None: parts.append({struct_of('b').pack(null_marker(wire))!r})")
    source.line("else:")
    source.indent()
    source.raw("b'\\x01'")
    _encode_struct(source, layout_of(wire.element), struct_)
    source.flush()
    source.dedent()


def _encode_array(source: EncoderSource, wire: WireField, value: str) -> None:
    items = source.name("l")
    source.line(f"{items} = {value}")
    if wire.nullable:
        before = source.pending()
        source.line(f"if {items} is None: parts.append({before + ' + ' if before else ''}{_null(wire)})")
        source.line("else:")
        source.indent()
        if before:
            source.raw(before)
    source.line(f"if {items}.__class__ is not list: {items} = sequence({items})")
    _put_length(source, wire, f"len({items})")
    if wire.element in FIXED_FORMATS and wire.element is not types.Boolean:
        code = FIXED_FORMATS[wire.element]
        packed, short = source.name("b"), source.constant("SHORT", short_packers(code))
        source.line(f"{packed} = len({items})")
        source.line(f"{packed} = {short}[{packed}](*{items}) if {packed} < {SHORT_LIST} else ints({items}, {code!r})")
        source.raw(packed)
        if wire.nullable:
            source.flush()
    else:
        source.flush()
        item = source.name("s")
        source.line(f"for {item} in {items}:")
        source.indent()
        if wire.is_struct:
            _encode_struct(source, layout_of(wire.element), item)
        else:
            _encode_field(source, element_as_field(wire), item)
        source.flush()
        source.dedent()
    if wire.nullable:
        source.dedent()
