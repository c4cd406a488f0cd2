"""Python source under construction: lines, the names they use, and how they become a function."""

from __future__ import annotations

import linecache
import struct
from functools import cache
from typing import TYPE_CHECKING, Any

from kafka.protocol._runtime import RUNTIME

if TYPE_CHECKING:
    from collections.abc import Callable


class Source:
    """The lines of a function under construction, and the names that it refers to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.globals: dict[str, Any] = dict(RUNTIME)
        self._depth = 1
        self._serial = 0

    def line(self, text: str) -> None:
        self.lines.append("    " * self._depth + text)

    def indent(self) -> None:
        self._depth += 1

    def dedent(self) -> None:
        self._depth -= 1

    def name(self, stem: str) -> str:
        self._serial += 1
        return f"{stem}{self._serial}"

    def constant(self, stem: str, value: Any) -> str:
        for known, held in self.globals.items():
            if held is value and known.startswith(stem):
                return known
        name = self.name(stem)
        self.globals[name] = value
        return name

    def finish(self, head: str, label: str) -> Callable[..., Any]:
        """Compile the function; its source can be seen in tracebacks."""
        text = "\n".join([head, *self.lines, ""])
        filename = f"<{label}>"
        linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
        exec(compile(text, filename, "exec"), self.globals)  # noqa: S102 - the text is made of our own definitions
        return self.globals[head.split("(", maxsplit=1)[0].removeprefix("def ")]  # type: ignore[no-any-return]


@cache
def struct_of(format_: str) -> struct.Struct:
    return struct.Struct(">" + format_)
