"""The options of a command's clients: from flags, the environment, a context and a file.

The command line overrides the environment: ``-b`` and ``-X``, then ``--context``, then ``--config``, then the variables
``PUREKAFKA_BOOTSTRAP_SERVERS``, ``PUREKAFKA_SASL_PASSWORD`` and so on, then the current context. The context of
``--context`` is complete: variables do not add to it. Beside ``--config`` the current context does not apply.
"""

from __future__ import annotations

import os
import sys
from argparse import Namespace
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from kafka.cli.arguments import UsageError, expand, pair

if TYPE_CHECKING:
    from kafka.config import ForeignOption, Option

_PREFIX: Final = "PUREKAFKA_"
#: Variables that choose where options come from, and are not options themselves.
_NOT_OPTIONS: Final = {"PUREKAFKA_CONTEXT", "PUREKAFKA_CONFIG", "PUREKAFKA_TRACEBACK", "PUREKAFKA_SECONDS"}
#: Options that exclude each other: the one that is given last names the cluster.
_OTHER_ADDRESS: Final = {"bootstrap_servers": "bootstrap_controllers", "bootstrap_controllers": "bootstrap_servers"}


def option_named(name: str) -> Option | ForeignOption | None:
    """Return the option with a name of ours, of Java's clients or of librdkafka; None for one without an effect here.

    >>> option_named("sasl.mechanisms").name
    'sasl_mechanism'
    >>> option_named("sasl.pasword")
    Traceback (most recent call last):
    kafka.cli.arguments.UsageError: option 'sasl.pasword' does not exist: did you mean sasl.password?
    """
    from kafka.config import find_option, nearest_name

    try:
        return find_option(name)
    except KeyError:
        near = nearest_name(name)
        hint = f": did you mean {near}?" if near else ""
        raise UsageError(f"option {name!r} does not exist{hint}") from None


# Files…

#: Text in quotes, as TOML and JSON write it.
_TEXT: Final = r'"(?:[^"\\]|\\.)*"'


class OptionsFile(NamedTuple):
    """The options in a file."""

    options: dict[str, str]
    ours: bool
    """Whether the file is TOML, where @ refers to other places; for Java and librdkafka it is a character."""


def read_options(path: str) -> OptionsFile:
    """Return the options in a file: TOML or librdkafka's if its name says so, else properties as Java reads them."""
    from kafka.config import parse_conf, parse_properties

    try:
        data = Path(path).expanduser().read_bytes()
    except OSError as error:
        setting = (
            "; a setting of a topic is --set NAME=VALUE, an option of the client -X NAME=VALUE" if "=" in path else ""
        )
        raise UsageError(f"--config: cannot read {path}: {error.strerror}{setting}") from None
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")  # as Java reads it
    if path.endswith(".toml"):
        found = parse_toml(text, path)
        options = {name: value for name, value in found.items() if not isinstance(value, dict)}
        return OptionsFile({name: _as_text(value) for name, value in options.items()}, ours=True)
    return OptionsFile(parse_conf(text) if path.endswith(".conf") else parse_properties(text), ours=False)


def parse_toml(text: str, path: str) -> dict[str, Any]:
    """Read TOML as far as options need it: tables of strings, numbers, true and false.

    >>> parse_toml('current = "a"\\n[contexts.a]\\nclient_id = "me" # who', "config.toml")
    {'current': 'a', 'contexts': {'a': {'client_id': 'me'}}}
    """
    import json
    import re

    found: dict[str, Any] = {}
    table = found
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        if heading := re.fullmatch(rf"\[((?:{_TEXT}|[^\[\]\"])+)\]\s*(#.*)?", line):
            table = found
            for part in re.findall(rf"{_TEXT}|[^.\s]+", heading.group(1)):
                table = table.setdefault(json.loads(part) if part[0] == '"' else part, {})
                if not isinstance(table, dict):
                    raise UsageError(f"{path}, line {number}: {part} has a value already, and cannot be a table")
            continue
        setting = re.fullmatch(
            rf"""("[^"]+"|[\w.-]+)\s*=\s*({_TEXT}|'[^']*'|true|false|-?[\d_]+(?:\.\d+)?)\s*(#.*)?""", line
        )
        if setting is None:
            raise UsageError(f"{path}, line {number}: write NAME = VALUE, where VALUE is text in quotes or a number")
        word = setting.group(2)
        try:
            value = word[1:-1] if word[0] == "'" else json.loads(word if word[0] == '"' else word.replace("_", ""))
        except ValueError as error:
            raise UsageError(f"{path}, line {number}: {word} is not a value: {error}") from None
        table[setting.group(1).strip('"')] = value
    return found


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class Contexts:
    """The file with the contexts: names of clusters, with their options; only its owner may read it."""

    def __init__(self, path: Path | None = None) -> None:
        if path is None:
            home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
            path = Path(home).expanduser() / "purekafka" / "config.toml"
        self.path = path
        try:
            found = parse_toml(path.read_text(encoding="utf-8"), str(path))
        except FileNotFoundError:
            found = {}
        except (OSError, UnicodeDecodeError) as error:
            cause = error.strerror if isinstance(error, OSError) else "it is not text in UTF-8"
            raise UsageError(f"cannot read {path}: {cause}") from None
        self.current: str | None = found.get("current")
        tables = found.get("contexts", {})
        if not isinstance(tables, dict) or not all(isinstance(options, dict) for options in tables.values()):
            raise UsageError(f"{path}: a context is a table with options, which begins with [contexts.NAME]")
        self.contexts: dict[str, dict[str, str]] = {
            name: {option: _as_text(value) for option, value in options.items()} for name, options in tables.items()
        }

    def get(self, name: str) -> dict[str, str]:
        """Return the options of a context."""
        if name not in self.contexts:
            from kafka.cli.grammar import nearest

            raise UsageError(f"context {name!r} does not exist in {self.path}{nearest(name, self.contexts)}")
        return self.contexts[name]

    def save(self) -> None:
        """Write the file, complete or not at all."""
        import json

        lines = [] if self.current is None else [f"current = {json.dumps(self.current)}", ""]
        for name, options in sorted(self.contexts.items()):
            lines.append(f"[contexts.{json.dumps(name)}]")
            lines += [f"{option} = {json.dumps(value)}" for option, value in sorted(options.items())]
            lines.append("")
        write_private(self.path, "\n".join(lines))


def write_private(path: Path, text: str) -> None:
    """Write a file that only its owner may read, complete or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with open(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
            file.write(text)
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


# The options of a command…


def settings(arguments: Namespace) -> dict[str, str]:
    """Return the options of a command's clients as texts, by the names of the table of options."""
    merged: dict[str, str] = {}
    file, named = arguments.config_file, arguments.context
    if named is None:
        # A cluster that the command line names must not get the address or the password of another one.
        if file is None:
            _merge_chosen(merged)
        _merge_variables(merged)
    if file is not None:
        _merge_file(merged, file, f"--config {file}")
    if named is not None:
        _merge(merged, Contexts().get(named), f"context {named}")
    merge_flags(merged, arguments)
    if arguments.bootstrap_servers:
        _merge(merged, {"bootstrap_servers": arguments.bootstrap_servers}, "-b", expanded=True)
    return merged


def merge_flags(merged: dict[str, str], arguments: Namespace) -> None:
    """Let the options of -X override the ones before."""
    _merge(merged, dict(map(_pair_of_option, arguments.options)), "-X", expanded=True)


def _merge_chosen(merged: dict[str, str]) -> None:
    """Merge the file and the context that variables name, or the current context if they name no file."""
    file, named = os.environ.get("PUREKAFKA_CONFIG"), os.environ.get("PUREKAFKA_CONTEXT")
    if file:
        _merge_file(merged, file, f"PUREKAFKA_CONFIG {file}")
    if named or not file:
        contexts = Contexts()
        chosen = named or contexts.current
        if chosen:
            _merge(merged, contexts.get(chosen), f"context {chosen}")


def _merge_variables(merged: dict[str, str]) -> None:
    if "KAFKA_BOOTSTRAP_SERVERS" in os.environ:  # which `purekafka broker -- COMMAND` sets
        _merge(merged, {"bootstrap_servers": os.environ["KAFKA_BOOTSTRAP_SERVERS"]}, "environment", expanded=True)
    variables = {name for name in os.environ if name.startswith(_PREFIX)} - _NOT_OPTIONS
    _merge(merged, {name.removeprefix(_PREFIX).lower(): os.environ[name] for name in variables}, "environment")


def _pair_of_option(word: str) -> tuple[str, str]:
    """Split the argument of -X; ``@prompt`` as its value asks for it on the terminal."""
    name, equals, value = word.partition("=")
    return (name, _prompted(name)) if equals and value == "@prompt" else pair(word, "-X")


def _prompted(name: str) -> str:
    from getpass import getpass

    if not sys.stdin.isatty():
        raise UsageError(f"-X {name}=@prompt: standard input is not a terminal")
    return getpass(f"{name}: ")


def _merge_file(merged: dict[str, str], path: str, where: str) -> None:
    file = read_options(path)
    if file.ours:
        _merge(merged, file.options, where)
        return
    known: dict[str, str] = {}
    for name, value in file.options.items():
        try:
            option_named(name)
        except UsageError as error:  # noqa: PERF203 - programs keep other options in the file too
            print(f"{where}: {error}; it is ignored", file=sys.stderr)
        else:
            known[name] = value
    _merge(merged, known, where, expanded=True)


def _merge(merged: dict[str, str], found: Mapping[str, str], where: str, *, expanded: bool = False) -> None:
    """Let options override the ones before; a value that refers to another place is looked up unless `expanded`."""
    from kafka.config import translate
    from kafka.errors import KafkaConfigurationError

    texts: dict[str, str] = {}
    for name, value in found.items():
        try:
            option = option_named(name)
        except UsageError as error:
            raise UsageError(f"{where}: {error}") from None
        if option is None:
            continue
        if expanded:
            texts[name] = value
        else:
            texts[name] = _prompted(name) if value == "@prompt" else expand(value, f"{where}: {name}")
    try:
        options = translate(texts)
    except KafkaConfigurationError as error:
        raise UsageError(f"{where}: {error}") from None
    for name in options:
        merged.pop(_OTHER_ADDRESS.get(name, ""), None)
    merged |= options
