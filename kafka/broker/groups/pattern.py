r"""RE2 expressions, as Kafka's brokers take them for topics and transactional ids, translated to Python's ``re``.

Kafka uses RE2/J, which takes time linear to the name. Python's ``re`` backtracks: ``(a+)+b`` and a name of sixty
letters stop it, and with it every client of the broker. So an expression is refused if it could match in too many ways:
repetition in repetition whose borders are not clear, or more than three unlimited repetitions after each other.
Patterns match whole names, so groups capture nothing, and greedy and lazy repetition are the same. Names have no line
breaks, so the flags ``m`` and ``s`` change nothing.

What RE2 refuses is refused: lookaround, back references, possessive and atomic groups, repetition above 1000. Refused
besides: classes by Unicode property (``\pL``), octal numbers, ``\C``, and more than 32,768 characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from kafka.errors import InvalidRegularExpressionError

_MAX_REPEAT: Final = 1000
_MAX_DEPTH: Final = 30
_MAX_LENGTH: Final = 32_768
#: The longest name of a topic: how many ways there are to end an unlimited repetition.
_LONGEST_NAME: Final = 249
#: Three unlimited repetitions, and some choice besides, take ``re`` less than a second.
_MAX_WAYS: Final = 50 * _LONGEST_NAME**3
# Of an expression in an error message.
_LONGEST_SHOWN: Final = 1000

_TOKEN: Final = re.compile(
    r"""\\Q (?P<quoted>.*?) (?:\\E|\Z)
    | \\ (?P<escape> x\{[0-9a-fA-F]{1,6}\} | x[0-9a-fA-F]{2} | [^Qx])
    | (?P<set> \[ \^? \]? (?: \[:\^?[a-z]+:\] | \\. | [^\]\\] )* \] )
    | \( \? P? < (?P<name>[A-Za-z_]\w*) >
    | \( \? (?P<flags>[imsU]* (?:-[imsU]+)?) (?P<scope>[:)])
    | (?P<group> \( (?!\?) )
    | (?P<repeat> [*+?] | \{ (?P<low>[0-9]+) (?P<more>,(?P<high>[0-9]*))? \} ) \??
    | (?P<char> [^\\\[(] )""",
    re.VERBOSE | re.DOTALL | re.ASCII,
)
_IN_SET: Final = re.compile(
    r"\[:(?P<no>\^?)(?P<class>[a-z]+):\] | \\(?P<escape>x\{[^}]*\}|x..|.) | (?P<char>.)", re.VERBOSE | re.DOTALL
)
_POSIX: Final = {
    "alnum": r"0-9A-Za-z",
    "alpha": r"A-Za-z",
    "ascii": r"\x00-\x7f",
    "blank": r"\t ",
    "cntrl": r"\x00-\x1f\x7f",
    "digit": r"0-9",
    "graph": r"!-~",
    "lower": r"a-z",
    "print": r" -~",
    "punct": r"!-/:-@\[-`{-~",
    "space": r"\t-\r ",
    "upper": r"A-Z",
    "word": r"\w",
    "xdigit": r"0-9A-Fa-f",
}
_EDGES: Final = {"A": r"\A", "z": r"\Z", "b": r"\b", "B": r"(?!\b)"}
#: Classes of Perl for a set of ``re``, in which white space has another character.
_PERL: Final = {letter: f"\\{letter}" for letter in "dDwW"} | {"s": r"\t\n\f\r ", "S": r"\S\x0b"}
_CONTROLS: Final = {"a": "\a", "f": "\f", "t": "\t", "n": "\n", "r": "\r", "v": "\v"}


class _Invalid(Exception):  # noqa: N818 - becomes the error that callers see
    """The expression is not one of RE2, or one that is refused here."""


class _Part(NamedTuple):
    """A part of an expression in the syntax of ``re``, and how it matches."""

    text: str
    #: In how many ways it can match one name at most.
    ways: int = 1
    #: How often its innermost part can be repeated, which RE2 limits.
    repeats: int = 1
    #: The parts that are repeated, with a varying length; None where a part is not as plain as that.
    loops: tuple[str, ...] | None = ()
    #: Characters that are in each match.
    literals: str = ""
    #: The character that each match begins with.
    first: str = ""
    #: Whether it is one character, or one of a set.
    is_atom: bool = False


_SPECIAL: Final = {"^": _Part(r"\A"), "$": _Part(r"\Z"), ".": _Part(r"[^\n]", is_atom=True)}


def _sequence(parts: Sequence[_Part]) -> _Part:
    ways, repeats, literals = 1, 1, ""
    loops: tuple[str, ...] | None = ()
    for part in parts:
        ways, repeats = _limited(ways * part.ways), max(repeats, part.repeats)
        loops = None if loops is None or part.loops is None else loops + part.loops
        literals += part.literals
    return _Part("".join(part.text for part in parts), ways, repeats, loops, literals, parts[0].first if parts else "")


def _choice(parts: Sequence[_Part]) -> _Part:
    """Return the alternatives; where each begins with another character at most one can match."""
    text = f"(?:{'|'.join(part.text for part in parts)})"
    if len(parts) == 1:
        return parts[0]._replace(text=text)
    firsts = {part.first for part in parts}
    is_clear = "" not in firsts and len(firsts) == len(parts)
    ways = max(part.ways for part in parts) if is_clear else _limited(sum(part.ways for part in parts))
    return _Part(text, ways, max(part.repeats for part in parts), () if ways == 1 else None)


def _repeated(part: _Part, low: int, high: int | None) -> _Part:
    repeats = part.repeats * max(low, high or 0, 1)
    if repeats > _MAX_REPEAT:
        raise _Invalid("invalid repeat count")
    text = f"(?:{part.text}){{{low},{'' if high is None else high}}}"
    literals = part.literals if low else ""
    if low == high:
        return _Part(text, _limited(part.ways**low), repeats, part.loops, literals)
    if part.ways == 1:
        return _Part(
            text,
            _LONGEST_NAME if high is None else high - low + 1,
            repeats,
            (part.text,) if part.is_atom else None,
            literals,
        )
    # A character that is in each round, and in no repetition within it, shows where rounds begin.
    is_clear = part.loops is not None and any(
        not any(re.fullmatch(loop, char, re.ASCII) for loop in part.loops) for char in part.literals
    )
    if high is None and not (is_clear and len(part.loops or ()) == 1):
        raise _Invalid("repetition in repetition could take this broker too long (Kafka accepts the expression)")
    ways = _LONGEST_NAME if high is None else _limited(2 * part.ways**high)
    return _Part(text, ways, repeats, None, literals)


def _limited(ways: int) -> int:
    return min(ways, _MAX_WAYS + 1)


class _Group:
    """A group that is being read: its finished alternatives and the parts of the present one."""

    def __init__(self, flags_outside: frozenset[str] = frozenset()) -> None:
        self.flags_outside = flags_outside
        self.alternatives: list[_Part] = []
        self.parts: list[_Part] = []

    def next_alternative(self) -> None:
        self.alternatives.append(_sequence(self.parts))
        self.parts = []

    def close(self) -> _Part:
        self.next_alternative()
        return _choice(self.alternatives)


class _Parser:
    def __init__(self) -> None:
        self._groups = [_Group()]
        self._flags: frozenset[str] = frozenset()
        self._names: set[str] = set()
        #: Whether the last part is a repetition, which cannot be repeated.
        self._is_repeated = False

    def parse(self, expression: str) -> _Part:
        at = 0
        while at < len(expression):
            token = _TOKEN.match(expression, at)
            if token is None:
                raise _Invalid(f"invalid or unsupported syntax: {expression[at : at + 20]}")
            at = token.end()
            if token["repeat"] is not None:
                parts = self._groups[-1].parts
                if self._is_repeated or not parts:
                    raise _Invalid(f"missing argument to repetition operator: {token[0]}")
                self._is_repeated = True
                parts.append(_repeated(parts.pop(), *_bounds(token)))
                continue
            self._is_repeated = False
            if token["scope"] is not None or token["name"] is not None or token["group"] is not None:
                self._open(token)
            elif token["char"] == ")":
                if len(self._groups) == 1:
                    raise _Invalid("unexpected )")
                closed = self._groups.pop()
                self._flags = closed.flags_outside
                self._groups[-1].parts.append(closed.close())
            elif token["char"] == "|":
                self._groups[-1].next_alternative()
            else:
                self._groups[-1].parts += _atoms(token, folds="i" in self._flags)
        if len(self._groups) > 1:
            raise _Invalid("missing closing )")
        return self._groups[0].close()

    def _open(self, token: re.Match[str]) -> None:
        """Begin a group, or take flags for the rest of the present one."""
        if token["name"] in self._names:
            raise _Invalid(f"duplicate name of a group: {token['name']}")
        if token["name"] is not None:
            self._names.add(token["name"])
        if token["scope"] != ")":
            self._groups.append(_Group(self._flags))
        if len(self._groups) > _MAX_DEPTH:
            raise _Invalid("expression nests too deeply")
        added, _, removed = (token["flags"] or "").partition("-")
        self._flags = (self._flags | set(added)) - set(removed)


def _bounds(token: re.Match[str]) -> tuple[int, int | None]:
    if token["low"] is None:
        return {"*": (0, None), "+": (1, None), "?": (0, 1)}[token["repeat"]]
    low = int(token["low"])
    high = low if token["more"] is None else int(token["high"]) if token["high"] else None
    if low > _MAX_REPEAT or (high is not None and not low <= high <= _MAX_REPEAT):
        raise _Invalid("invalid repeat count")
    return low, high


def _atoms(token: re.Match[str], *, folds: bool) -> list[_Part]:
    """Return a character, a set of characters, or an edge; several characters for quoted ones."""
    quoted, escape, char = token["quoted"], token["escape"], token["char"]
    if quoted is not None:
        return [_literal(each, folds=folds) for each in quoted]
    if token["set"] is not None:
        text = _set(token["set"])
        return [_Part(f"(?i:{text})" if folds else text, is_atom=True)]
    if escape is None:
        return [_SPECIAL[char] if char in _SPECIAL else _literal(char, folds=folds)]
    if escape in _EDGES:
        return [_Part(_EDGES[escape])]
    if escape in _PERL:
        return [_Part(f"[{_PERL[escape]}]", is_atom=True)]
    return [_literal(_escaped(escape), folds=folds)]


def _literal(char: str, *, folds: bool) -> _Part:
    text = re.escape(char)
    return _Part(f"(?i:{text})", is_atom=True) if folds else _Part(text, literals=char, first=char, is_atom=True)


def _escaped(escape: str) -> str:
    """Return the character that an escape stands for."""
    if escape in _CONTROLS:
        return _CONTROLS[escape]
    if escape[0] == "x" and len(escape) > 1:
        code = int(escape[1:].strip("{}"), 16)
        if code <= 0x10FFFF:
            return chr(code)
    elif escape.isascii() and not escape.isalnum():
        return escape
    raise _Invalid(f"invalid escape sequence: \\{escape}")


def _set(text: str) -> str:
    """Return a set of characters in the syntax of ``re``."""
    negated = text.startswith("[^")
    found = []
    for token in _IN_SET.finditer(text[2 if negated else 1 : -1]):
        name, escape, char = token["class"], token["escape"], token["char"]
        if name is not None and name not in _POSIX:
            raise _Invalid(f"invalid character class range: {token[0]}")
        if name is not None:
            found.append(_complement(_POSIX[name]) if token["no"] else _POSIX[name])
        elif escape is not None:
            found.append(_PERL[escape] if escape in _PERL else re.escape(_escaped(escape)))
        else:
            found.append(char if char == "-" else re.escape(char))
    return f"[{'^' if negated else ''}{''.join(found)}]"


def _complement(members: str) -> str:
    others = [re.escape(chr(code)) for code in range(128) if not re.fullmatch(f"[{members}]", chr(code))]
    return "".join(others) + r"\x80-\U0010ffff"


def compile_re2(expression: str) -> re.Pattern[str]:
    """Compile an expression; raise InvalidRegularExpressionError for one that is not valid, or could take too long.

    >>> bool(compile_re2("orders-[[:digit:]]+").fullmatch("orders-17"))
    True
    """
    try:
        if len(expression) > _MAX_LENGTH:
            raise _Invalid("expression is too large")
        parsed = _Parser().parse(expression)
        if parsed.ways > _MAX_WAYS:
            raise _Invalid("its repetitions could take this broker too long (Kafka accepts the expression)")
        return re.compile(parsed.text, re.ASCII)
    except (_Invalid, re.error) as error:
        # An error's text is cut where it is too long, and the reason stands behind the expression.
        shown = expression if len(expression) <= _LONGEST_SHOWN else f"{expression[:_LONGEST_SHOWN]}..."
        raise InvalidRegularExpressionError(f"SubscribedTopicRegex `{shown}` is not valid: {error}.") from None
