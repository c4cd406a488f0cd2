"""Checks of option values: each check describes the values it accepts, normalises a value, or raises ValueError.

A check does not know its option. `kafka.config.resolve` adds the option's name and the value to the message, as in
"linger_ms must be a number of at least 0, not -1".

Plain classes: a dozen dataclasses would take longer to import than the rest of the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final, NoReturn, Protocol

from kafka.config.servers import parse_servers

# The largest number that the protocol has for times and sizes.
INT32: Final = 2**31 - 1
# The longest time, in milliseconds, that all of the system's clocks and locks can wait for: 31 years.
_LONGEST: Final = 10**12
# The longest text that the protocol can carry, in bytes.
_LONGEST_TEXT: Final = 2**15 - 1


class Check(Protocol):
    """The interface of a check."""

    @property
    def accepts(self) -> str:
        """The accepted values, as they read after "must be"."""
        ...

    @property
    def annotation(self) -> str:
        """The type of accepted values for type checkers; kafka/options.py is written from it."""
        ...

    def __call__(self, value: object) -> Any:
        """Return the value as the library uses it; raise ValueError if it is not acceptable."""
        ...

    def parse(self, text: str) -> Any:
        """Return the value for a text, as from a command line or a properties file."""
        ...


def _range(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f" from {least:g} to {most:g}" if most < 1e6 else f" from {least:g} to {int(most)}"
    if least is not None:
        return f" of at least {least:g}"
    return "" if most is None else f" of at most {most:g}"


def _or_none(accepts: str, optional: bool) -> str:
    return f"{accepts} or None" if optional else accepts


def _optional(annotation: str, optional: bool) -> str:
    return f"{annotation} | None" if optional else annotation


class Whole:
    """An integer within bounds."""

    def __init__(
        self, least: float | None = 0, most: float | None = None, *, optional: bool = False, infinite: bool = False
    ) -> None:
        self.least, self.most, self.optional, self.infinite = least, most, optional, infinite

    @property
    def accepts(self) -> str:
        """In words."""
        return _or_none(f"an integer{_range(self.least, self.most)}{' or inf' if self.infinite else ''}", self.optional)

    @property
    def annotation(self) -> str:
        """As a type."""
        return _optional("float" if self.infinite else "int", self.optional)

    def __call__(self, value: object) -> Any:
        """The integer."""
        if value is None and self.optional:
            return None
        if self.infinite and isinstance(value, float) and value == math.inf:
            return value
        # True and False are integers to Python, but never meant as such; 5.0 is.
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1:
            raise ValueError(value)
        if (self.least is not None and value < self.least) or (self.most is not None and value > self.most):
            raise ValueError(value)
        return int(value)

    def parse(self, text: str) -> Any:
        """From digits."""
        return self(None if self.optional and not text else math.inf if text == "inf" else int(text))


class Number:
    """A number within bounds; times may be fractions of a millisecond, or ``inf`` unless `finite`."""

    def __init__(
        self, least: float = 0, most: float = _LONGEST, *, optional: bool = False, finite: bool = False
    ) -> None:
        self.least, self.most, self.optional, self.finite = least, most, optional, finite

    @property
    def accepts(self) -> str:
        """In words."""
        return _or_none(f"a number{_range(self.least, self.most)}{'' if self.finite else ' or inf'}", self.optional)

    @property
    def annotation(self) -> str:
        """As a type."""
        return _optional("float", self.optional)

    def __call__(self, value: object) -> float | None:
        """The number."""
        if value is None and self.optional:
            return None
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= self.least:
            raise ValueError(value)
        if value > self.most and (self.finite or value != math.inf):
            raise ValueError(value)
        return value

    def parse(self, text: str) -> float | None:
        """From digits."""
        if self.optional and not text:
            return None
        number = float(text)
        return self(int(number) if number.is_integer() else number)


class Flag:
    """True or False."""

    accepts = "True or False"
    annotation = "bool"

    def __call__(self, value: object) -> bool:
        """The flag."""
        if not isinstance(value, bool):
            raise ValueError(value)
        return value

    def parse(self, text: str) -> bool:
        """From true or false."""
        return self({"true": True, "false": False}.get(text.strip().lower(), text))


class Text:
    """A str; ``empty=False`` refuses the empty string, ``sent=True`` a string that the protocol cannot carry."""

    def __init__(self, *, optional: bool = True, empty: bool = True, sent: bool = False) -> None:
        self.optional, self.empty, self.sent = optional, empty, sent

    @property
    def accepts(self) -> str:
        """In words."""
        text = "a str" if self.empty else "a str that is not empty"
        return _or_none(f"{text}, of at most {_LONGEST_TEXT} bytes in UTF-8" if self.sent else text, self.optional)

    @property
    def annotation(self) -> str:
        """As a type."""
        return _optional("str", self.optional)

    def __call__(self, value: object) -> str | None:
        """The text."""
        if value is None and self.optional:
            return None
        if not isinstance(value, str) or not (value or self.empty):
            raise ValueError(value)
        size = len(value.encode())  # a ValueError for text that UTF-8 cannot encode, such as a lone surrogate
        if self.sent and size > _LONGEST_TEXT:
            raise ValueError(value)
        return value

    def parse(self, text: str) -> str | None:
        """The text itself."""
        return self(text)


class Choice:
    """One of a few names, in any case; synonyms map to what the library uses."""

    def __init__(
        self,
        names: Collection[str],
        *,
        optional: bool = False,
        synonyms: Mapping[object, object] | None = None,
        shown: str = "",
    ) -> None:
        self.names, self.optional, self.synonyms, self.shown = names, optional, synonyms or {}, shown

    @property
    def accepts(self) -> str:
        """In words."""
        return self.shown or _or_none("one of " + ", ".join(repr(name) for name in self.names), self.optional)

    @property
    def annotation(self) -> str:
        """As a type: the names in the case of the table, and the synonyms."""
        values = [*self.names, *(value for value in self.synonyms if value not in {None, ""})]
        return _optional(f"Literal[{', '.join(map(repr, values))}]", self.optional)

    def __call__(self, value: object) -> object:
        """The name."""
        if value is None and self.optional:
            return None
        if isinstance(value, str):
            value = value.lower()
        for given, meant in (*self.synonyms.items(), *((name.lower(), name) for name in self.names)):
            # 1 == True: compare types too, or acks=True would pass for acks=1.
            if value == given and type(value) is type(given):
                return meant
        raise ValueError(value)

    def parse(self, text: str) -> object:
        """The name; synonyms may be numbers."""
        if self.optional and text.lower() in {"", "none"}:
            return None
        return self(int(text) if text.lstrip("-").isdigit() else text)


class Custom:
    """Anything that passes a test: callables, objects with certain methods."""

    def __init__(
        self,
        accepts: str,
        annotation: str,
        test: Callable[[object], bool],
        convert: Callable[[object], object] | None = None,
    ) -> None:
        self.accepts, self.annotation, self.test, self.convert = accepts, annotation, test, convert

    def __call__(self, value: object) -> object:
        """The object."""
        if not self.test(value):
            raise ValueError(value)
        return value if self.convert is None else self.convert(value)

    def parse(self, text: str) -> object:
        """Objects have no textual form, unless text itself is accepted."""
        return self(text)


class Items:
    """A list of things, or one of them alone."""

    def __init__(self, accepts: str, annotation: str, test: Callable[[object], bool]) -> None:
        self.accepts, self.annotation, self.test = accepts, annotation, test

    def __call__(self, value: object) -> tuple[object, ...]:
        """The list, as a tuple."""
        items = (value,) if self.test(value) else value
        if isinstance(items, (str, bytes)) or not isinstance(items, Iterable):
            raise ValueError(value)
        found = tuple(items)
        if not all(self.test(item) for item in found):
            raise ValueError(value)
        return found

    def parse(self, text: str) -> tuple[object, ...]:
        """From names separated by commas."""
        return self([item.strip() for item in text.split(",") if item.strip()])


class OneOf:
    """A value that one of several checks accepts; the first of them that accepts it converts it."""

    def __init__(self, *checks: Check) -> None:
        self.checks = checks

    @property
    def accepts(self) -> str:
        """In words."""
        return ", or ".join(check.accepts for check in self.checks)

    @property
    def annotation(self) -> str:
        """As a type."""
        types = [check.annotation for check in self.checks]
        return _optional(
            " | ".join(each.removesuffix(" | None") for each in types), any(each.endswith(" | None") for each in types)
        )

    def __call__(self, value: object) -> object:
        """The value, converted by the first check that accepts it."""
        return self._first(lambda check: check(value), value)

    def parse(self, text: str) -> object:
        """The value, parsed by the first check that accepts the text."""
        return self._first(lambda check: check.parse(text), text)

    def _first(self, call: Callable[[Check], object], value: object) -> object:
        for check in self.checks:
            try:
                return call(check)
            except ValueError:  # noqa: PERF203 - two or three checks, once per client
                continue
        raise ValueError(value)


class Servers:
    """Bootstrap servers; see `parse_servers` for the forms."""

    def __init__(self, *, optional: bool = False) -> None:
        self.optional = optional

    @property
    def accepts(self) -> str:
        """In words."""
        return _or_none(
            "'host[:port]', several of them separated by commas, or a list of strings or (host, port) tuples",
            self.optional,
        )

    @property
    def annotation(self) -> str:
        """As a type."""
        return _optional("str | tuple[str, int] | Sequence[str | tuple[str, int]] | AbstractSet[str]", self.optional)

    def __call__(self, value: object) -> list[str] | None:
        """The addresses as a list of ``host:port``, which is also what programs read."""
        if value is None and self.optional:
            return None
        servers = parse_servers(value)
        if not servers:
            raise ValueError(value)
        return [str(server) for server in servers]

    def parse(self, text: str) -> list[str] | None:
        """The addresses."""
        return self(text)


class ApiVersion:
    """The release of the brokers."""

    accepts = "None or 'auto' to ask the brokers, or a release such as (2, 8) or '2.8'"
    annotation = "str | tuple[int, ...] | None"

    def __call__(self, value: object) -> tuple[int, ...] | None:
        """The release, None for auto."""
        if value is None or value == "auto":
            return None
        parts = value.split(".") if isinstance(value, str) else value
        if not isinstance(parts, (tuple, list)) or not 2 <= len(parts) <= 4:
            raise ValueError(value)
        return tuple(Whole()(int(part) if isinstance(part, str) and part.isdigit() else part) for part in parts)

    def parse(self, text: str) -> tuple[int, ...] | None:
        """From digits and dots."""
        return self(text or None)


class Reset:
    """Where a consumer starts without a position."""

    accepts = "'earliest', 'latest', 'none', or 'by_duration:' and an ISO 8601 duration such as 'by_duration:PT1H'"
    annotation = "Literal['earliest', 'latest', 'none'] | str"

    def __call__(self, value: object) -> str:
        """The policy."""
        if not isinstance(value, str):
            raise ValueError(value)
        name = {"smallest": "earliest", "largest": "latest"}.get(value.lower(), value.lower())
        if name in {"earliest", "latest", "none"}:
            return name
        prefix, _, duration = value.partition(":")
        if prefix.lower() == "by_duration":
            try:
                duration_ms(duration)
            except OverflowError:  # of more digits than a float has room for
                raise ValueError(value) from None
            return f"by_duration:{duration}"
        raise ValueError(value)

    def parse(self, text: str) -> str:
        """The policy."""
        return self(text)


def duration_ms(text: str) -> int:
    """The milliseconds of an ISO 8601 duration in days, hours, minutes and seconds, as Java's Duration takes it.

    >>> duration_ms("P1DT2H0.5S")
    93600500
    """
    import re

    match = re.fullmatch(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?", text.upper(), flags=re.ASCII)
    if match is None or not any(match.groups()):
        raise ValueError(text)
    days, hours, minutes, seconds = (float(group or 0) for group in match.groups())
    return round((((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1000)


def _is_c_int(value: object) -> bool:
    return isinstance(value, int) and -INT32 <= value <= INT32


class SocketOptions:
    """Arguments for ``socket.setsockopt``."""

    accepts = "a list of (level, option, value), level and option integers, the value an integer of 32 bits or bytes"
    annotation = "Sequence[tuple[int, int, int | bytes]]"

    def __call__(self, value: object) -> tuple[tuple[object, ...], ...]:
        """The list, as a tuple of tuples."""
        if not isinstance(value, (list, tuple)):
            raise ValueError(value)
        options = tuple(tuple(option) if isinstance(option, (list, tuple)) else () for option in value)
        for option in options:
            if len(option) != 3 or not all(_is_c_int(part) for part in option[:2]):
                raise ValueError(value)
            if not (_is_c_int(option[2]) or isinstance(option[2], (bytes, bytearray))):
                raise ValueError(value)
        return options

    def parse(self, text: str) -> NoReturn:
        """Socket options have no textual form."""
        raise ValueError(text)
