"""RE2 expressions, as Kafka's brokers take them for topics and transactional ids, matched in linear time.

Kafka uses RE2/J, whose promise is that no expression takes longer than its size times that of the text. Python's ``re``
backtracks: ``(a+)+b`` and a name of sixty letters stop it, and with it every client of the broker. So expressions are
compiled here to a nondeterministic automaton (Thompson's construction), and that runs as a deterministic one whose
states are made when they are first reached (as in RE2). A pattern matches a text as a whole or not at all, so groups
capture nothing, and greedy and lazy repetition are the same.

All of RE2's syntax is taken but scripts (``\\p{Greek}``) and ``\\C``; general categories (``\\pL``, ``\\p{Lu}``) are
taken. As RE2 does, it refuses lookaround, back references, possessive and atomic groups and repetition above 1000. It
also refuses expressions of more than 32,768 characters, and repetition that adds more than 10,000 states.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple
from unicodedata import category

from kafka.errors import InvalidRegularExpressionError

__all__ = ["Pattern", "compile_re2"]

_MAX_REPEAT: Final = 1000
_MAX_DEPTH: Final = 200
_MAX_LENGTH: Final = 32_768
#: Counted repetition may add this many states to the two that each character may have.
_MAX_REPEATED: Final = 10_000
#: The cached states of the deterministic automaton are dropped when they hold more states of the other than this.
_MAX_CACHED: Final = 1_000_000
# Of an expression in an error message.
_LONGEST_SHOWN: Final = 1000
_LAST: Final = 0x10FFFF

Ranges = tuple[tuple[int, int], ...]


def _ranges(letters: str) -> Ranges:
    """Return the ranges that pairs of letters stand for: "09az" are the digits and small letters."""
    return tuple((ord(letters[at]), ord(letters[at + 1])) for at in range(0, len(letters), 2))


_POSIX: Final = {
    "alnum": _ranges("09AZaz"),
    "alpha": _ranges("AZaz"),
    "ascii": _ranges("\0\x7f"),
    "blank": _ranges("\t\t  "),
    "cntrl": _ranges("\0\x1f\x7f\x7f"),
    "digit": _ranges("09"),
    "graph": _ranges("!~"),
    "lower": _ranges("az"),
    "print": _ranges(" ~"),
    "punct": _ranges("!/:@[`{~"),
    "space": _ranges("\t\r  "),
    "upper": _ranges("AZ"),
    "word": _ranges("09AZaz__"),
    "xdigit": _ranges("09AFaf"),
}
_PERL: Final = {"d": _POSIX["digit"], "s": _ranges("\t\n\f\r  "), "w": _POSIX["word"]}
_CONTROLS: Final = {"a": 7, "f": 12, "t": 9, "n": 10, "r": 13, "v": 11}
_CATEGORIES: Final = frozenset(
    (
        *("C", "Cc", "Cf", "Co", "Cs", "L", "Ll", "Lm", "Lo", "Lt", "Lu", "M", "Mc", "Me", "Mn", "N", "Nd", "Nl", "No"),
        *("P", "Pc", "Pd", "Pe", "Pf", "Pi", "Po", "Ps", "S", "Sc", "Sk", "Sm", "So", "Z", "Zl", "Zp", "Zs"),
    )
)


class Chars(NamedTuple):
    """A set of characters."""

    ranges: Ranges
    categories: tuple[tuple[str, bool], ...] = ()
    """General categories, each with whether it is the others that are meant."""
    negated: bool = False
    folds: bool = False
    """Whether capitals and small letters are the same."""

    def holds(self, char: str) -> bool:
        """Whether a character is in the set."""
        variants = {char, char.lower(), char.upper()} if self.folds else {char}
        return any(self._lists(each) for each in variants if len(each) == 1) != self.negated

    def _lists(self, char: str) -> bool:
        code = ord(char)
        return any(low <= code <= high for low, high in self.ranges) or any(
            category(char).startswith(name) != others for name, others in self.categories
        )


# Parsing. A node is Chars, one of the assertions (a string), or a tuple of its kind and parts.

_START, _END, _LINE_START, _LINE_END, _WORD_EDGE, _NO_WORD_EDGE = "\\A", "\\z", "^", "$", "\\b", "\\B"


class _Invalid(Exception):  # noqa: N818 - becomes the error that callers see
    """The expression is not one of RE2."""


class _Group:
    """A group that is being read: its finished alternatives and the parts of the present one."""

    def __init__(self, flags: frozenset[str]) -> None:
        self.flags_outside = flags
        self.alternatives: list[object] = []
        self.parts: list[object] = []

    def next_alternative(self) -> None:
        self.alternatives.append(("cat", tuple(self.parts)) if len(self.parts) != 1 else self.parts[0])
        self.parts = []

    def node(self) -> object:
        self.next_alternative()
        return self.alternatives[0] if len(self.alternatives) == 1 else ("alt", tuple(self.alternatives))


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._flags: frozenset[str] = frozenset()
        self._names: set[str] = set()
        #: Whether what was read last is a repetition, which cannot be repeated.
        self._repeated = False

    def parse(self) -> object:
        groups = [_Group(self._flags)]
        while self._at < len(self._text):
            char = self._take()
            group = groups[-1]
            if char in "*+?" or (char == "{" and self._counts() is not None):
                self._repeat(group, char)
                continue
            self._repeated = False
            if char == "(":
                outside = self._flags
                if self._open_group():
                    groups.append(_Group(outside))
                if len(groups) > _MAX_DEPTH:
                    raise _Invalid("expression nests too deeply")
            elif char == ")":
                if len(groups) == 1:
                    raise _Invalid("unexpected )")
                groups.pop()
                self._flags = group.flags_outside
                groups[-1].parts.append(group.node())
            elif char == "|":
                group.next_alternative()
            else:
                group.parts += self._atom(char)
        if len(groups) > 1:
            raise _Invalid("missing closing )")
        return groups[0].node()

    # Single things

    def _take(self) -> str:
        if self._at >= len(self._text):
            raise _Invalid("trailing \\ or unfinished expression")
        char = self._text[self._at]
        self._at += 1
        return char

    def _rest_starts(self, text: str) -> bool:
        return self._text.startswith(text, self._at)

    def _literal(self, char: str) -> Chars:
        return Chars(((ord(char), ord(char)),), folds="i" in self._flags)

    def _atom(self, char: str) -> Sequence[str | Chars]:
        if char == ".":
            return [Chars((), (), negated=True) if "s" in self._flags else Chars(((10, 10),), negated=True)]
        if char == "^":
            return [_LINE_START if "m" in self._flags else _START]
        if char == "$":
            return [_LINE_END if "m" in self._flags else _END]
        if char == "[":
            return [self._class()]
        if char == "\\":
            return self._escape()
        return [self._literal(char)]

    def _escape(self) -> Sequence[str | Chars]:
        char = self._take()
        if char == "Q":
            end = self._text.find("\\E", self._at)
            quoted = self._text[self._at : end] if end >= 0 else self._text[self._at :]
            self._at = end + 2 if end >= 0 else len(self._text)
            return [self._literal(each) for each in quoted]
        if char in "AzbB":
            return ["\\" + char]
        found = self._set_escape(char)
        if found is not None:
            ranges, categories, negated = found
            return [Chars(ranges, categories, negated, folds="i" in self._flags)]
        return [self._literal(chr(self._code(char)))]

    def _set_escape(self, char: str) -> tuple[Ranges, tuple[tuple[str, bool], ...], bool] | None:
        if char.lower() in _PERL:
            return _PERL[char.lower()], (), char.isupper()
        if char not in "pP":
            return None
        name = self._take()
        if name == "{":
            end = self._text.find("}", self._at)
            if end < 0:
                raise _Invalid("invalid character class range")
            name, self._at = self._text[self._at : end], end + 1
        others = (char == "P") != name.startswith("^")
        name = name.lstrip("^")
        if name == "Any":
            return ((0, _LAST),), (), others
        if name not in _CATEGORIES:
            raise _Invalid(f"\\{char}{{{name}}} is not supported")
        return (), ((name, others),), False

    def _code(self, char: str) -> int:
        """Return the code of an escaped single character."""
        if char in _CONTROLS:
            return _CONTROLS[char]
        if char in "01234567":
            digits = char
            while len(digits) < 3 and self._at < len(self._text) and self._text[self._at] in "01234567":
                digits += self._take()
            if digits == char and char != "0":
                raise _Invalid(f"\\{char}: back references are not supported")
            return int(digits, 8)
        if char == "x":
            digits = self._take()
            if digits == "{":
                end = self._text.find("}", self._at)
                digits, self._at = self._text[self._at : max(end, self._at)], end + 1
            else:
                digits += self._take()
            if not digits or not set(digits) <= set("0123456789abcdefABCDEF") or int(digits, 16) > _LAST:
                raise _Invalid(f"\\x{digits} is not a character")
            return int(digits, 16)
        if char.isascii() and not char.isalnum():
            return ord(char)
        raise _Invalid(f"invalid escape sequence: \\{char}")

    # Classes

    def _class(self) -> Chars:
        negated = self._rest_starts("^")
        self._at += negated
        ranges: list[tuple[int, int]] = []
        categories: list[tuple[str, bool]] = []
        is_first = True
        while True:
            if self._at >= len(self._text):
                raise _Invalid("missing closing ]")
            if self._rest_starts("]") and not is_first:
                self._at += 1
                break
            is_first = False
            if self._rest_starts("[:"):
                ranges += self._posix()
                continue
            low = self._class_part(ranges, categories)
            if low is None:
                continue
            high: int | None = low
            if self._rest_starts("-") and not self._rest_starts("-]"):
                self._at += 1
                high = self._class_part(None, None)
            if high is None or high < low:
                raise _Invalid("invalid character class range")
            ranges.append((low, high))
        return Chars(tuple(ranges), tuple(categories), negated, folds="i" in self._flags)

    def _posix(self) -> Ranges:
        end = self._text.find(":]", self._at)
        name = self._text[self._at + 2 : end] if end >= 0 else ""
        ranges = _POSIX.get(name.removeprefix("^"))
        if ranges is None:
            raise _Invalid(f"invalid character class range: [:{name}:]")
        self._at = end + 2
        return _inverse(ranges) if name.startswith("^") else ranges

    def _class_part(
        self, ranges: list[tuple[int, int]] | None, categories: list[tuple[str, bool]] | None
    ) -> int | None:
        """Read one character of a class and return its code; None if it was a set, which is added to the lists."""
        char = self._take()
        if char != "\\":
            return ord(char)
        char = self._take()
        found = self._set_escape(char)
        if found is None:
            return self._code(char)
        if ranges is None or categories is None:
            raise _Invalid("invalid character class range")
        ranges += _inverse(found[0]) if found[2] else found[0]
        categories += found[1]
        return None

    # Groups and repetition

    def _open_group(self) -> bool:
        """Read what follows an opening parenthesis; return whether a group begins, and not just flags."""
        if not self._rest_starts("?"):
            return True
        self._at += 1
        for opening in ("P<", "<"):
            if self._rest_starts(opening):
                end = self._text.find(">", self._at)
                name = self._text[self._at + len(opening) : max(end, self._at)]
                if end < 0 or not name.isascii() or not name.isidentifier() or name in self._names:
                    raise _Invalid(f"invalid named capture: (?{opening}{name}")
                self._names.add(name)
                self._at = end + 1
                return True
        added: set[str] = set()
        removed: set[str] = set()
        into = added
        while True:
            char = self._take()
            if char in ":)":
                break
            if char == "-" and into is added:
                into = removed
            elif char in "imsU":
                into.add(char)
            else:
                raise _Invalid(f"invalid or unsupported Perl syntax: (?{char}")
        self._flags = (self._flags | added) - removed
        return char == ":"

    def _counts(self) -> tuple[int, int | None] | None:
        """Return the bounds of the repetition that begins here; None if a brace is just a brace."""
        end = self._text.find("}", self._at)
        if end < 0 or end - self._at > 20:
            return None
        low, comma, high = self._text[self._at : end].partition(",")
        if not _is_number(low) or not (high == "" or _is_number(high)):
            return None
        return int(low), int(low) if not comma else int(high) if high else None

    def _repeat(self, group: _Group, char: str) -> None:
        low, high = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(char) or self._counts() or (0, 0)
        if char == "{":
            self._at = self._text.index("}", self._at) + 1
        if not group.parts:
            raise _Invalid(f"missing argument to repetition operator: {char}")
        if self._repeated:
            raise _Invalid("invalid nested repetition operator")
        if low > _MAX_REPEAT or (high is not None and not low <= high <= _MAX_REPEAT):
            raise _Invalid("invalid repeat count")
        if self._rest_starts("?"):  # lazy, which is the same for a whole match
            self._at += 1
        self._repeated = True
        group.parts.append(("repeat", group.parts.pop(), low, high))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _inverse(ranges: Ranges) -> Ranges:
    """Return the ranges between these, which are in order."""
    starts = [0, *(high + 1 for _, high in sorted(ranges))]
    ends = [*(low - 1 for low, _ in sorted(ranges)), _LAST]
    return tuple((low, high) for low, high in zip(starts, ends, strict=True) if low <= high)


# The automaton. A state is a tuple: (Chars, next), (assertion, next), (None, (next, ...)) or () for the match.


class _Automaton:
    def __init__(self, node: object, size: int) -> None:
        self.states: list[Any] = [()]
        self._steps_left = _MAX_REPEATED + 2 * size
        self.start = self._add(node, 0)

    def _new(self, state: object) -> int:
        self.states.append(state)
        return len(self.states) - 1

    def _add(self, node: Any, then: int) -> int:
        """Add the states of a node that ``then`` follows; return the first."""
        self._steps_left -= 1  # counts what adds no state, too: an empty group a thousand times a thousand times
        if self._steps_left < 0:
            raise _Invalid("expression is too large")
        if isinstance(node, (str, Chars)):
            return self._new((node, then))
        kind, part = node[0], node[1]
        if kind == "cat":
            for each in reversed(part):
                then = self._add(each, then)
            return then
        if kind == "alt":
            return self._new((None, tuple(self._add(each, then) for each in part)))
        low, high = node[2], node[3]
        first = then
        if high is None:
            first = self._new((None, ()))
            self.states[first] = (None, (self._add(part, first), then))
        else:
            for _ in range(high - low):
                first = self._new((None, (self._add(part, first), then)))
        for _ in range(low):
            first = self._add(part, first)
        return first


_Kernel = frozenset[int]


class Pattern:
    """A compiled expression.

    >>> compile_re2("(a+)+b").fullmatch("a" * 200 + "-")
    False
    """

    def __init__(self, expression: str) -> None:
        if len(expression) > _MAX_LENGTH:
            raise _Invalid("expression is too large")
        automaton = _Automaton(_Parser(expression).parse(), len(expression))
        self._states = automaton.states
        self._sets = list(dict.fromkeys(state[0] for state in self._states if state and isinstance(state[0], Chars)))
        self._classes: dict[str, tuple[bool, ...]] = {}
        self._begin: tuple[_Kernel, str] = (frozenset([automaton.start]), "start")
        #: (states, what was before) -> (class of the next character, whether it is a word's, a newline) -> the same.
        self._moves: dict[tuple[_Kernel, str], dict[tuple[bool, ...], tuple[_Kernel, str]]] = {}
        self._cached = 0

    def fullmatch(self, text: str) -> bool:
        """Whether the whole text matches; takes time linear to it."""
        at = self._begin
        for char in text:
            known = self._moves.get(at)
            if known is None:
                known = self._remember(at)
            key = self._key(char)
            following = known.get(key)
            if following is None:
                following = known[key] = self._move(at, char, key)
            at = following
            if not at[0]:
                return False
        return 0 in self._reached(at, None)

    def _remember(self, at: tuple[_Kernel, str]) -> dict[tuple[bool, ...], tuple[_Kernel, str]]:
        self._cached += len(at[0])
        if self._cached > _MAX_CACHED:
            self._moves.clear()
            self._cached = len(at[0])
        return self._moves.setdefault(at, {})

    def _key(self, char: str) -> tuple[bool, ...]:
        """Return what the automaton can see of a character: two of the same key lead to the same states."""
        key = self._classes.get(char)
        if key is None:
            key = self._classes[char] = (_is_word(char), char == "\n", *(each.holds(char) for each in self._sets))
        return key

    def _move(self, at: tuple[_Kernel, str], char: str, key: tuple[bool, ...]) -> tuple[_Kernel, str]:
        held = {each for each, is_held in zip(self._sets, key[2:], strict=True) if is_held}
        states = self._states
        kernel = frozenset(
            state[1] for number in self._reached(at, char) if (state := states[number]) and state[0] in held
        )
        return kernel, "line" if char == "\n" else "word" if key[0] else "other"

    def _reached(self, at: tuple[_Kernel, str], char: str | None) -> set[int]:
        """Return the states that can be reached without a character, where ``char`` comes next (None: the end)."""
        kernel, before = at
        seen = set(kernel)
        waiting = list(kernel)
        while waiting:
            for number in self._free_moves(self._states[waiting.pop()], before, char):
                if number not in seen:
                    seen.add(number)
                    waiting.append(number)
        return seen

    @staticmethod
    def _free_moves(state: Any, before: str, char: str | None) -> Iterator[int]:
        if not state or isinstance(state[0], Chars):
            return
        if state[0] is None:
            yield from state[1]
        elif _ASSERTIONS[state[0]](before, char):
            yield state[1]


def _is_word(char: str | None) -> bool:
    return char is not None and char.isascii() and (char.isalnum() or char == "_")


#: Whether each holds between what was before and the next character.
_ASSERTIONS: Final[dict[str, Callable[[str, str | None], bool]]] = {
    _START: lambda before, _char: before == "start",
    _END: lambda _before, char: char is None,
    _LINE_START: lambda before, _char: before in {"start", "line"},
    _LINE_END: lambda _before, char: char is None or char == "\n",
    _WORD_EDGE: lambda before, char: (before == "word") != _is_word(char),
    _NO_WORD_EDGE: lambda before, char: (before == "word") == _is_word(char),
}


def compile_re2(expression: str) -> Pattern:
    """Compile an expression; raise InvalidRegularExpressionError for what is not one.

    >>> compile_re2("orders-[[:digit:]]+").fullmatch("orders-17")
    True
    """
    try:
        return Pattern(expression)
    except _Invalid as error:
        # An error's text is cut where it is too long, and the reason stands behind the expression.
        shown = expression if len(expression) <= _LONGEST_SHOWN else f"{expression[:_LONGEST_SHOWN]}..."
        raise InvalidRegularExpressionError(f"SubscribedTopicRegex `{shown}` is not valid: {error}.") from None
