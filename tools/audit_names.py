"""Compares the public names of kafka-python's releases with the names of this package.

``python tools/audit_names.py [FILE ...]`` reads the name lists in ``tools/names`` (or the given ones) and prints one
line for each name that is absent or differs, then the totals; it exits with 1 if a difference is not in
``tools/names/on_purpose.txt``. A name list has one fact for each line:

* ``module kafka.client``
* ``name kafka.client.KafkaClient``: anything that can be imported or read there; a class attribute too
* ``function kafka.errors.for_code(error_code)``, ``method kafka.KafkaConsumer.poll(timeout_ms=0, max_records=None)``
* ``class kafka.structs.TopicPartition(topic, partition)``: with the arguments of its constructor
* ``option kafka.KafkaProducer acks = 1``: a keyword argument of the constructor, with its default
* ``error kafka.errors.NodeNotReadyError < kafka.errors.KafkaError``: an exception and a class that catches it

A call matches if everything that the listed signature allows is allowed here: the same arguments in the same positions
under the same names, with the same defaults. Further arguments may follow.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import sys
import warnings
from collections import Counter
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

NAMES = Path(__file__).resolve().parent / "names"
ON_PURPOSE = NAMES / "on_purpose.txt"
EMPTY = inspect.Parameter.empty


class Finding(NamedTuple):
    """The verdict on one fact: ``present``, ``absent``, or a text that says what differs."""

    fact: str
    verdict: str


class AbsentError(LookupError):
    """The name does not exist here."""


def name_lists() -> list[Path]:
    """Return the files that hold the names of a release or of a manual."""
    return sorted(path for path in NAMES.glob("*.txt") if path != ON_PURPOSE)


def facts(path: Path) -> Iterator[str]:
    """Yield the facts of a name list."""
    for line in path.read_text(encoding="utf-8").splitlines():
        fact = line.strip()
        if fact and not fact.startswith("#"):
            yield fact


def on_purpose() -> dict[str, str]:
    """Return the patterns of facts that differ on purpose, with the reasons."""
    pairs = (line.partition(" -- ") for line in facts(ON_PURPOSE))
    return {pattern.strip(): reason.strip() for pattern, _, reason in pairs}


def find(dotted: str) -> Any:
    """Import the longest module of a dotted name and read the rest from it."""
    parts = dotted.split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError as error:
            if error.name is None or not dotted.startswith(error.name):
                raise
            continue
        try:
            for part in parts[length:]:
                found = getattr(found, part)
        except Exception:  # whatever says that it does not exist
            raise AbsentError(dotted) from None
        return found
    raise AbsentError(dotted)


def check(fact: str) -> str:
    """Return the verdict on one fact."""
    kind, _, rest = fact.partition(" ")
    try:
        return CHECKS[kind](rest)
    except AbsentError:
        return "absent"


def _check_name(rest: str) -> str:
    owner, _, name = rest.rpartition(".")
    try:
        find(rest)
    except AbsentError:  # an attribute of instances is only in the source
        holder = find(owner)
        if not isinstance(holder, type) or not any(_sets(cls, name) for cls in holder.__mro__[:-1]):
            raise
    return "present"


def _sets(cls: type, name: str) -> bool:
    try:
        source = inspect.getsource(cls)
    except (OSError, TypeError):  # a builtin
        return False
    return re.search(rf"\bself\.{name}\b[^=\n]*=", source) is not None


def _check_module(rest: str) -> str:
    return "present" if inspect.ismodule(find(rest)) else "is not a module"


def _check_call(rest: str) -> str:
    dotted, _, arguments = rest.partition("(")
    found = find(dotted)
    if not callable(found):  # a property or a constant where a method was
        return f"cannot be called: {found!r}"
    try:
        actual = list(inspect.signature(found).parameters.values())
    except Exception:  # a builtin, or a metaclass that answers for itself
        return "present"
    if "." in dotted and inspect.isfunction(found) and actual and actual[0].name in {"self", "cls"}:
        actual = actual[1:]
    return _compare(_parse_signature(arguments), actual) or "present"


def _parse_signature(arguments: str) -> list[inspect.Parameter]:
    """Parse ``a, b=1, *c, **d)``. A default that is not a literal is not compared."""
    (function,) = ast.parse(f"def f({arguments or ')'}: pass").body
    assert isinstance(function, ast.FunctionDef)
    listed = function.args
    positional = listed.posonlyargs + listed.args
    defaults = [*[None] * (len(positional) - len(listed.defaults)), *listed.defaults]
    kinds = inspect.Parameter
    found = [
        kinds(a.arg, kinds.POSITIONAL_OR_KEYWORD, default=_default(d))
        for a, d in zip(positional, defaults, strict=True)
    ]
    if listed.vararg:
        found.append(kinds(listed.vararg.arg, kinds.VAR_POSITIONAL))
    found += [
        kinds(a.arg, kinds.KEYWORD_ONLY, default=_default(d))
        for a, d in zip(listed.kwonlyargs, listed.kw_defaults, strict=True)
    ]
    if listed.kwarg:
        found.append(kinds(listed.kwarg.arg, kinds.VAR_KEYWORD))
    return found


class Unknown:
    """The default of an argument that the list names by an expression."""


def _default(node: ast.expr | None) -> Any:
    if node is None:
        return EMPTY
    try:
        return ast.literal_eval(node)
    except ValueError:
        return Unknown


def _compare(listed: Iterable[inspect.Parameter], actual: list[inspect.Parameter]) -> str | None:
    """Return what a call that the list allows finds different, or None."""
    wanted = list(listed)
    for index, parameter in enumerate(wanted):
        difference = _compare_one(index, parameter, actual)
        if difference:
            return difference
    names = {parameter.name for parameter in wanted}
    for parameter in actual:
        named = parameter.kind in {parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY}
        if named and parameter.name not in names and parameter.default is EMPTY:
            return f"needs an argument {parameter.name}"
    return None


def _compare_one(index: int, wanted: inspect.Parameter, actual: list[inspect.Parameter]) -> str | None:
    kinds = {parameter.kind for parameter in actual}
    if wanted.kind is wanted.VAR_POSITIONAL:
        return None if wanted.VAR_POSITIONAL in kinds else f"does not take *{wanted.name}"
    if wanted.kind is wanted.VAR_KEYWORD:
        return None if kinds & {wanted.VAR_KEYWORD, wanted.KEYWORD_ONLY} else f"does not take **{wanted.name}"
    found = next((parameter for parameter in actual if parameter.name == wanted.name), None)
    if found is None and wanted.VAR_KEYWORD not in kinds:
        return f"has no argument {wanted.name}"
    if wanted.kind is wanted.POSITIONAL_OR_KEYWORD and wanted.VAR_POSITIONAL not in kinds:
        positions = [p.name for p in actual if p.kind in {p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD}]
        if wanted.name not in positions[: index + 1]:
            return f"has {wanted.name} in another position"
    return None if found is None else _compare_defaults(wanted, found)


def _compare_defaults(wanted: inspect.Parameter, found: inspect.Parameter) -> str | None:
    if wanted.default is EMPTY or wanted.default is Unknown:
        return None
    if found.default is EMPTY:
        return f"needs {wanted.name}"
    if found.default != wanted.default and repr(found.default) != "<given by the configuration>":
        return f"has {wanted.name}={found.default!r}, not {wanted.default!r}"
    return None


def _check_option(rest: str) -> str:
    subject, _, default = rest.partition(" = ")
    dotted, _, option = subject.partition(" ")
    table = find(f"{dotted}.DEFAULT_CONFIG")
    if option not in table:
        try:
            from kafka.config import resolve

            resolve(_kind(dotted), {option: ast.literal_eval(default)} if default else {})
        except Exception as error:  # whichever error says that it does not exist
            return f"absent: {type(error).__name__}: {error}"
        return "present"
    if not default:
        return "present"
    try:
        wanted = ast.literal_eval(default)
    except (ValueError, SyntaxError):
        return "present"
    found = table[option]
    same = found == wanted or (isinstance(wanted, (list, tuple)) and list(found or ()) == list(wanted))
    if option == "bootstrap_servers":  # 'localhost' and 'localhost:9092' are the same server
        from kafka.config import parse_servers

        same = parse_servers(found) == parse_servers(wanted)
    return "present" if same else f"has the default {found!r}, not {wanted!r}"


def _kind(dotted: str) -> str:
    kinds = {"KafkaProducer": "producer", "KafkaConsumer": "consumer", "BrokerConnection": "connection"}
    return kinds.get(dotted.rpartition(".")[2], "client")


def _check_error(rest: str) -> str:
    dotted, _, base = rest.partition(" < ")
    found = find(dotted)
    if not (isinstance(found, type) and issubclass(found, BaseException)):
        return "is not an exception"
    if base and not issubclass(found, find(base)):
        return f"is not a {base}"
    return "present"


CHECKS = {
    "module": _check_module,
    "name": _check_name,
    "attr": _check_name,
    "function": _check_call,
    "method": _check_call,
    "class": _check_call,
    "option": _check_option,
    "error": _check_error,
}


def audit(paths: Iterable[Path]) -> list[Finding]:
    """Check the facts of several lists, each fact once."""
    unique = dict.fromkeys(fact for path in paths for fact in facts(path))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return [Finding(fact, check(fact)) for fact in unique]


def unexplained(findings: Iterable[Finding]) -> list[Finding]:
    """Return the differences that are not on purpose."""
    patterns = on_purpose()
    return [
        finding
        for finding in findings
        if finding.verdict != "present" and not any(fnmatchcase(finding.fact, pattern) for pattern in patterns)
    ]


def main(arguments: list[str]) -> int:
    """Print what is absent and what differs."""
    findings = audit([Path(argument) for argument in arguments] or name_lists())
    open_ones = unexplained(findings)
    for fact, verdict in open_ones:
        print(f"{fact}: {verdict}")
    counts = Counter("present" if finding.verdict == "present" else "differs" for finding in findings)
    absent = sum(finding.verdict.startswith("absent") for finding in open_ones)
    print(
        f"{len(findings)} facts: {counts['present']} present, {counts['differs'] - len(open_ones)} differ on purpose, "
        f"{absent} absent, {len(open_ones) - absent} differ"
    )
    return 1 if open_ones else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
