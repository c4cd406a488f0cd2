"""Checks of option values: each check describes the values it accepts, normalises a value, or raises ValueError.

A check does not know its option. `kafka.config.resolve` adds the option's name and the value to the message, as in
"linger_ms must be a number of at least 0, not -1".

Plain classes: a dozen dataclasses would take longer to import than the rest of the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, Final

from kafka.config.servers import parse_servers

# The largest number that the protocol has for times and sizes.
INT32: Final = 2**31 - 1
# The longest time, in milliseconds, that all of the system's clocks and locks can wait for: 31 years.
_LONGEST: Final = 10**12
# The longest text that the protocol can carry, in bytes.
_LONGEST_TEXT: Final = 2**15 - 1


class Check:
    """One check: ``accepts`` reads after "must be"; ``annotation`` is for type checkers (kafka/options.py has it).

    With `optional` None is accepted, and an empty text stands for it.
    """

    def __init__(self, accepts: str, annotation: str, *, optional: bool = False) -> None:
        self.accepts = f"{accepts} or None" if optional else accepts
        self.annotation = f"{annotation} | None" if optional else annotation
        self.optional = optional

    def __call__(self, value: object) -> Any:
        """Return the value as the library uses it; raise ValueError if it is not acceptable."""
        return None if value is None and self.optional else self.checked(value)

    def checked(self, value: object) -> Any:
        """Do that for a value that is not None, or must not be."""
        raise NotImplementedError

    def parse(self, text: str) -> Any:
        """Return the value for a text, as from a command line or a properties file."""
        return self(text)


def _range(least: float | None, most: float | None) -> str:
    if least is not None and most is not None:
        return f" from {least:g} to {most:g}" if most < 1e6 else f" from {least:g} to {int(most)}"
    if least is not None:
        return f" of at least {least:g}"
    return "" if most is None else f" of at most {most:g}"


class Whole(Check):
    """An integer within bounds."""

    def __init__(
        self, least: float | None = 0, most: float | None = None, *, optional: bool = False, infinite: bool = False
    ) -> None:
        accepts = f"an integer{_range(least, most)}{' or inf' if infinite else ''}"
        super().__init__(accepts, "float" if infinite else "int", optional=optional)
        self.least, self.most, self.infinite = least, most, infinite

    def checked(self, value: object) -> Any:
        """Return the integer."""
        if self.infinite and isinstance(value, float) and value == math.inf:
            return value
        # True and False are integers to Python, but never meant as such; 5.0 is.
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value // 1:
            raise ValueError(value)
        if (self.least is not None and value < self.least) or (self.most is not None and value > self.most):
            raise ValueError(value)
        return int(value)

    def parse(self, text: str) -> Any:
        """Return the integer for digits."""
        return self(None if self.optional and not text else math.inf if text == "inf" else int(text))


class Number(Check):
    """A number within bounds; times may be fractions of a millisecond, or ``inf`` unless `finite`."""

    def __init__(
        self, least: float = 0, most: float = _LONGEST, *, optional: bool = False, finite: bool = False
    ) -> None:
        super().__init__(f"a number{_range(least, most)}{'' if finite else ' or inf'}", "float", optional=optional)
        self.least, self.most, self.finite = least, most, finite

    def checked(self, value: object) -> float:
        """Return the number."""
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not value >= self.least:
            raise ValueError(value)
        if value > self.most and (self.finite or value != math.inf):
            raise ValueError(value)
        return value

    def parse(self, text: str) -> Any:
        """Return the number for digits."""
        if self.optional and not text:
            return None
        number = float(text)
        return self(int(number) if number.is_integer() else number)


class Flag(Check):
    """True or False."""

    def __init__(self) -> None:
        super().__init__("True or False", "bool")

    def checked(self, value: object) -> bool:
        """Return the flag."""
        if not isinstance(value, bool):
            raise ValueError(value)
        return value

    def parse(self, text: str) -> Any:
        """Return the flag for true or false."""
        return self({"true": True, "false": False}.get(text.strip().lower(), text))


class Text(Check):
    """A str; ``empty=False`` refuses the empty string, ``sent=True`` a string that the protocol cannot carry."""

    def __init__(self, *, optional: bool = True, empty: bool = True, sent: bool = False) -> None:
        text = "a str" if empty else "a str that is not empty"
        accepts = f"{text}, of at most {_LONGEST_TEXT} bytes in UTF-8" if sent else text
        super().__init__(accepts, "str", optional=optional)
        self.empty, self.sent = empty, sent

    def checked(self, value: object) -> str:
        """Return the text."""
        if not isinstance(value, str) or not (value or self.empty):
            raise ValueError(value)
        size = len(value.encode())  # a ValueError for text that UTF-8 cannot encode, such as a lone surrogate
        if self.sent and size > _LONGEST_TEXT:
            raise ValueError(value)
        return value


class Choice(Check):
    """One of a few names, in any case; synonyms map to what the library uses."""

    def __init__(
        self,
        names: Collection[str],
        *,
        optional: bool = False,
        synonyms: Mapping[object, object] | None = None,
        shown: str = "",
    ) -> None:
        self.names, self.synonyms = names, synonyms or {}
        # The names in the case of the table, and the synonyms.
        values = [*names, *(value for value in self.synonyms if value not in {None, ""})]
        accepts = "one of " + ", ".join(map(repr, names))
        super().__init__(accepts, f"Literal[{', '.join(map(repr, values))}]", optional=optional)
        self.accepts = shown or self.accepts

    def checked(self, value: object) -> object:
        """Return the name."""
        if isinstance(value, str):
            value = value.lower()
        for given, meant in (*self.synonyms.items(), *((name.lower(), name) for name in self.names)):
            # 1 == True: compare types too, or acks=True would pass for acks=1.
            if value == given and type(value) is type(given):
                return meant
        raise ValueError(value)

    def parse(self, text: str) -> Any:
        """Return the name; synonyms may be numbers."""
        if self.optional and text.lower() in {"", "none"}:
            return None
        return self(int(text) if text.lstrip("-").isdigit() else text)


class Custom(Check):
    """Anything that passes a test: callables, objects with certain methods; a text too only if it passes."""

    def __init__(
        self,
        accepts: str,
        annotation: str,
        test: Callable[[object], bool],
        convert: Callable[[object], object] | None = None,
    ) -> None:
        super().__init__(accepts, annotation)
        self.test, self.convert = test, convert

    def checked(self, value: object) -> object:
        """Return the object."""
        if not self.test(value):
            raise ValueError(value)
        return value if self.convert is None else self.convert(value)


class Items(Check):
    """A list of things, or one of them alone."""

    def __init__(self, accepts: str, annotation: str, test: Callable[[object], bool]) -> None:
        super().__init__(accepts, annotation)
        self.test = test

    def checked(self, value: object) -> tuple[object, ...]:
        """Return the list, as a tuple."""
        items = (value,) if self.test(value) else value
        if isinstance(items, (str, bytes)) or not isinstance(items, Iterable):
            raise ValueError(value)
        found = tuple(items)
        if not all(self.test(item) for item in found):
            raise ValueError(value)
        return found

    def parse(self, text: str) -> Any:
        """Return the list for names separated by commas."""
        return self([item.strip() for item in text.split(",") if item.strip()])


class OneOf(Check):
    """A value that one of several checks accepts; the first of them that accepts it converts it."""

    def __init__(self, *checks: Check) -> None:
        self.checks = checks
        types = [check.annotation for check in checks]
        takes_none = any(each.endswith(" | None") for each in types)
        super().__init__("", " | ".join(each.removesuffix(" | None") for each in types), optional=takes_none)
        self.accepts = ", or ".join(check.accepts for check in checks)

    def __call__(self, value: object) -> Any:
        """Return the value, converted by the first check that accepts it."""
        return self._first(lambda check: check(value), value)

    def parse(self, text: str) -> Any:
        """Return the value, parsed by the first check that accepts the text."""
        return self._first(lambda check: check.parse(text), text)

    def _first(self, call: Callable[[Check], object], value: object) -> object:
        for check in self.checks:
            try:
                return call(check)
            except ValueError:  # noqa: PERF203 - two or three checks, once per client
                continue
        raise ValueError(value)


class Servers(Check):
    """Bootstrap servers; see `parse_servers` for the forms."""

    def __init__(self, *, optional: bool = False) -> None:
        super().__init__(
            "'host[:port]', several of them separated by commas, or a list of strings or (host, port) tuples",
            "str | tuple[str, int] | Sequence[str | tuple[str, int]] | AbstractSet[str]",
            optional=optional,
        )

    def checked(self, value: object) -> list[str]:
        """Return the addresses as a list of ``host:port``, which is also what programs read."""
        servers = parse_servers(value)
        if not servers:
            raise ValueError(value)
        return [str(server) for server in servers]


class ApiVersion(Check):
    """The release of the brokers."""

    def __init__(self) -> None:
        accepts = "None or 'auto' to ask the brokers, or a release such as (2, 8) or '2.8'"
        super().__init__(accepts, "str | tuple[int, ...] | None")

    def checked(self, value: object) -> tuple[int, ...] | None:
        """Return the release, None for auto."""
        if value is None or value == "auto":
            return None
        parts = value.split(".") if isinstance(value, str) else value
        if not isinstance(parts, (tuple, list)) or not 2 <= len(parts) <= 4:
            raise ValueError(value)
        return tuple(Whole()(int(part) if isinstance(part, str) and part.isdigit() else part) for part in parts)

    def parse(self, text: str) -> Any:
        """Return the release for digits and dots."""
        return self(text or None)


class Reset(Check):
    """Where a consumer starts without a position."""

    def __init__(self) -> None:
        super().__init__(
            "'earliest', 'latest', 'none', or 'by_duration:' and an ISO 8601 duration such as 'by_duration:PT1H'",
            "Literal['earliest', 'latest', 'none'] | str",
        )

    def checked(self, value: object) -> str:
        """Return the policy."""
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


class SocketOptions(Check):
    """Arguments for ``socket.setsockopt``. They have no textual form."""

    def __init__(self) -> None:
        super().__init__(
            "a list of (level, option, value), level and option integers, the value an integer of 32 bits or bytes",
            "Sequence[tuple[int, int, int | bytes]]",
        )

    def checked(self, value: object) -> tuple[tuple[object, ...], ...]:
        """Return the list, as a tuple of tuples."""
        if not isinstance(value, (list, tuple)):
            raise ValueError(value)
        options = tuple(tuple(option) if isinstance(option, (list, tuple)) else () for option in value)
        for option in options:
            if len(option) != 3 or not all(_is_c_int(part) for part in option[:2]):
                raise ValueError(value)
            if not (_is_c_int(option[2]) or isinstance(option[2], (bytes, bytearray))):
                raise ValueError(value)
        return options
