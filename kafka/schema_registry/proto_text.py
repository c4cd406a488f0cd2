"""The text of a .proto file, parsed to the descriptor that the package protobuf makes classes of.

Registries return Protobuf schemas as text; only some offer descriptors. All of proto2 and proto3 is parsed. Options are
kept where they change how values are encoded or written in JSON, services are left out.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, NoReturn

__all__ = ["parse_proto"]

_TOKEN: Final = re.compile(
    r"""(?P<space>\s+|//[^\n]*|/\*.*?\*/)
    |(?P<name>\.?[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)
    |(?P<number>0[xX][0-9a-fA-F]+|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fF]?)
    |(?P<text>"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')
    |(?P<sign>[][{}()<>=;:,/.+-])""",
    re.VERBOSE | re.DOTALL,
)
#: Names of types -> their numbers in descriptors; 10, 11 and 14 are groups, messages and enums.
_SCALARS: Final = {
    "double": 1, "float": 2, "int64": 3, "uint64": 4, "int32": 5, "fixed64": 6, "fixed32": 7, "bool": 8,
    "string": 9, "bytes": 12, "uint32": 13, "sfixed32": 15, "sfixed64": 16, "sint32": 17, "sint64": 18,
}  # fmt: skip
_GROUP: Final = 10
_LABELS: Final = {"optional": 1, "required": 2, "repeated": 3}
_MOST_FIELDS: Final = 536870911
_CLOSING: Final = {"{": "}", "[": "]", "<": ">", "(": ")"}


def parse_proto(text: str) -> Any:
    """Return the FileDescriptorProto of a .proto file; ValueError says in which line it is wrong.

    >>> file = parse_proto('syntax = "proto3"; package shop; message Order { repeated int64 ids = 1; }')
    >>> file.message_type[0].field[0].name
    'ids'
    """
    return _Parser(text).file()


class _Parser:
    """Reads one file, statement by statement."""

    def __init__(self, text: str) -> None:
        from google.protobuf import descriptor_pb2

        self._tokens: list[tuple[str, str, int]] = []
        self._at = 0
        self._file = descriptor_pb2.FileDescriptorProto()
        position = 0
        while position < len(text):
            found = _TOKEN.match(text, position)
            line = text.count("\n", 0, position) + 1
            if found is None:
                raise ValueError(f"line {line} of the .proto file: {text[position : position + 10]!r} is not expected")
            if found.lastgroup != "space":
                self._tokens.append((found.lastgroup or "", found[0], line))
            position = found.end()

    # Tokens…

    def _peek(self) -> str:
        return self._tokens[self._at][1] if self._at < len(self._tokens) else ""

    def _fail(self, wanted: str) -> NoReturn:
        line = self._tokens[min(self._at, len(self._tokens) - 1)][2] if self._tokens else 1
        raise ValueError(f"line {line} of the .proto file: {self._peek() or 'its end'!r} instead of {wanted}")

    def _take(self, kind: str, wanted: str) -> str:
        if self._at == len(self._tokens) or self._tokens[self._at][0] != kind:
            self._fail(wanted)
        self._at += 1
        return self._tokens[self._at - 1][1]

    def _skip(self, sign: str) -> bool:
        """Pass a token if it is the next one."""
        if self._peek() == sign and self._tokens[self._at][0] != "text":
            self._at += 1
            return True
        return False

    def _need(self, sign: str) -> None:
        if not self._skip(sign):
            self._fail(sign)

    def _name(self) -> str:
        return self._take("name", "a name")

    def _text(self) -> str:
        """Read text, of which pieces may stand behind each other, without its quotes."""
        pieces = [self._take("text", "text in quotes")[1:-1]]
        while self._at < len(self._tokens) and self._tokens[self._at][0] == "text":
            pieces.append(self._take("text", "")[1:-1])
        return "".join(pieces)

    def _number(self) -> int:
        minus = self._skip("-")
        text = self._take("number", "a number")
        number = int(text, 8 if text.startswith("0") and text.isdigit() else 0)
        return -number if minus else number

    def _skip_until(self, end: str) -> None:
        """Pass everything up to a token and the token itself; brackets in between are passed whole."""
        while not self._skip(end):
            if self._at == len(self._tokens):
                self._fail(end)
            kind, token, _ = self._tokens[self._at]
            self._at += 1
            if kind == "sign" and token in _CLOSING:
                self._skip_until(_CLOSING[token])

    # Statements…

    def file(self) -> Any:
        file = self._file
        while self._at < len(self._tokens):
            if self._peek() in {"syntax", "edition"}:
                self._syntax()
            elif self._skip("package"):
                file.package = self._name()
                self._need(";")
            elif self._skip("import"):
                self._import()
            elif self._skip("message"):
                self._message(file.message_type.add())
            elif self._skip("service"):
                self._name()
                self._need("{")
                self._skip_until("}")
            else:
                self._common(file.enum_type, file.extension, file.message_type)
        if file.syntax == "proto2":
            file.ClearField("syntax")  # as in the descriptors of protoc
        return file

    def _syntax(self) -> None:
        if self._skip("edition"):
            raise ValueError("the .proto file has an edition; only proto2 and proto3 are known")
        self._at += 1
        self._need("=")
        self._file.syntax = self._text()
        if self._file.syntax not in {"proto2", "proto3"}:
            raise ValueError(f"the .proto file has the unknown syntax {self._file.syntax!r}")
        self._need(";")

    def _import(self) -> None:
        if self._skip("public"):
            self._file.public_dependency.append(len(self._file.dependency))
        else:
            self._skip("weak")
        self._file.dependency.append(self._text())
        self._need(";")

    def _common(self, enums: Any, extensions: Any, groups: Any) -> None:
        """Read a statement that files and messages both have."""
        if self._skip(";"):
            return
        if self._skip("enum"):
            self._enum(enums.add())
        elif self._skip("extend"):
            extendee = self._name()
            self._need("{")
            while not self._skip("}"):
                if not self._skip(";"):
                    field = self._field(extensions, groups)
                    field.extendee = extendee
        elif self._skip("option"):
            self._skip_until(";")
        else:
            self._fail("a statement")

    def _message(self, message: Any) -> None:
        message.name = self._name()
        self._message_body(message)

    def _message_body(self, message: Any) -> None:
        self._need("{")
        optional: list[Any] = []
        while not self._skip("}"):
            if self._skip("message"):
                self._message(message.nested_type.add())
            elif self._skip("oneof"):
                self._oneof(message)
            elif self._skip("reserved"):
                self._skip_until(";")
            elif self._skip("extensions"):
                self._extension_ranges(message)
            elif self._peek() in {"enum", "extend", "option", ";"}:
                self._common(message.enum_type, message.extension, message.nested_type)
            else:
                explicit = self._peek() == "optional"
                field = self._field(message.field, message.nested_type)
                if explicit and self._file.syntax == "proto3":
                    optional.append(field)
        names = {one.name for one in (*message.field, *message.oneof_decl)}
        for field in optional:  # each is a oneof with one member, behind all others
            name = f"_{field.name}"
            while name in names:
                name = f"X{name}"
            names.add(name)
            field.proto3_optional = True
            field.oneof_index = len(message.oneof_decl)
            message.oneof_decl.add(name=name)

    def _oneof(self, message: Any) -> None:
        index = len(message.oneof_decl)
        message.oneof_decl.add(name=self._name())
        self._need("{")
        while not self._skip("}"):
            if self._skip("option"):
                self._skip_until(";")
            elif not self._skip(";"):
                self._field(message.field, message.nested_type).oneof_index = index

    def _extension_ranges(self, message: Any) -> None:
        while True:
            start = end = self._number()
            if self._skip("to"):
                end = _MOST_FIELDS if self._skip("max") else self._number()
            message.extension_range.add(start=start, end=end + 1)
            if not self._skip(","):
                break
        self._skip_until(";")

    def _field(self, fields: Any, nested: Any) -> Any:
        """Read a field; a group and the entries of a map make a message among the nested ones."""
        label = _LABELS.get(self._peek())
        if label is not None:
            self._at += 1
        field = fields.add(label=label or 1)
        if self._skip("group"):
            group = nested.add(name=self._name())
            field.name, field.type, field.type_name = group.name.lower(), _GROUP, group.name
            self._need("=")
            field.number = self._number()
            self._field_options(field)
            self._message_body(group)
            return field
        if self._peek() == "map" and self._tokens[self._at + 1 : self._at + 2][0][1] == "<":
            self._at += 1
            self._need("<")
            key = self._name()
            self._need(",")
            value = self._name()
            self._need(">")
            field.name = self._name()
            entry = nested.add(name=f"{_camel(field.name)}Entry")
            entry.options.map_entry = True
            for number, (name, kind) in enumerate((("key", key), ("value", value)), 1):
                _set_type(entry.field.add(name=name, number=number, label=1), kind)
            field.label, field.type_name = 3, entry.name
        else:
            _set_type(field, self._name())
            field.name = self._name()
        self._need("=")
        field.number = self._number()
        self._field_options(field)
        self._need(";")
        return field

    def _field_options(self, field: Any) -> None:
        def take(name: str) -> None:
            if name == "packed":
                field.options.packed = self._name() == "true"
            elif name == "json_name":
                field.json_name = _unescaped(self._text())
            elif name == "default":
                field.default_value = self._default(field)

        self._options(take)

    def _options(self, take: Callable[[str], None]) -> None:
        """Read options in square brackets; `take` may read the value of one, else it is passed."""
        if not self._skip("["):
            return
        while True:
            name = "" if self._peek() == "(" else self._name()
            if name:
                self._need("=")
                take(name)
            while self._peek() not in {",", "]"}:
                opening = self._peek()
                if not opening:
                    self._fail("]")
                self._at += 1
                if opening in _CLOSING:
                    self._skip_until(_CLOSING[opening])
            if self._skip("]"):
                return
            self._need(",")

    def _default(self, field: Any) -> str:
        if self._tokens[self._at][0] == "text":
            text = self._text()
            return text if field.type == _SCALARS["bytes"] else _unescaped(text)
        sign = "-" if self._skip("-") else ""
        if self._tokens[self._at][0] == "name":
            return sign + self._name()
        if field.type in {_SCALARS["double"], _SCALARS["float"]}:
            return sign + self._take("number", "a number").rstrip("fF")
        return sign + str(self._number())

    def _enum(self, enum: Any) -> None:
        enum.name = self._name()
        self._need("{")
        while not self._skip("}"):
            if self._skip("option"):
                if self._skip("allow_alias"):
                    self._need("=")
                    enum.options.allow_alias = self._name() == "true"
                self._skip_until(";")
            elif self._skip("reserved"):
                self._skip_until(";")
            elif not self._skip(";"):
                value = enum.value.add(name=self._name())
                self._need("=")
                value.number = self._number()
                self._options(lambda _name: None)
                self._need(";")


def _set_type(field: Any, name: str) -> None:
    """Set the type of a field; whether a name is of a message or an enum is found out where it is declared."""
    if name in _SCALARS:
        field.type = _SCALARS[name]
    else:
        field.type_name = name


def _camel(name: str) -> str:
    return "".join(part[:1].upper() + part[1:] for part in name.split("_"))


def _unescaped(text: str) -> str:
    return text.encode("latin-1", "backslashreplace").decode("unicode_escape")
