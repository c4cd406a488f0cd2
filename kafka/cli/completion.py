"""``purekafka completion``: what shells complete; it is made of the grammar.

A shell's function calls ``purekafka completion words ...`` for each word. Names of topics and groups come from the
cluster of the command line, are remembered for half a minute, and are left out without a word if no broker answers.
"""

from __future__ import annotations

import io
import os
import sys
import time
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, suppress
from pathlib import Path
from typing import Final

from kafka.cli.grammar import COMMANDS, Argument, Noun, Verb, connection_words, load, plural
from kafka.cli.parser import parse

_REMEMBERED_S: Final = 30.0
_PATIENCE_MS = 300

_BASH: Final = """\
# eval "$(purekafka completion bash)"
_purekafka() {
    local IFS=$'\\n'
    COMPREPLY=($(purekafka completion words -- "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
}
complete -o default -F _purekafka purekafka
"""
_ZSH: Final = """\
#compdef purekafka
# eval "$(purekafka completion zsh)"
_purekafka() {
    local -a found
    found=("${(@f)$(purekafka completion words -- "${words[@]:1:$((CURRENT - 1))}" 2>/dev/null)}")
    if [[ -n "${found[1]}" ]]; then compadd -a found; else _files; fi
}
compdef _purekafka purekafka
"""
_FISH: Final = """\
# purekafka completion fish | source
function __purekafka
    set -l found (commandline -opc) (commandline -ct)
    purekafka completion words -- $found[2..-1] 2>/dev/null
end
complete -c purekafka -f -a '(__purekafka)'
complete -c purekafka -n 'not __purekafka | string length -q' -F
"""


def candidates(words: Sequence[str]) -> list[str]:
    """Return what may stand in place of the last word.

    >>> candidates(["topi"]), candidates(["topics", "de"]), candidates(["topics", "list", "--f"])
    (['topics'], ['describe', 'delete'], ['--fail-if-empty', '--format'])
    """
    before, last = list(words[:-1]), words[-1] if words else ""
    return [word for word in _candidates(before, last) if word.startswith(last)]


def _candidates(before: list[str], last: str) -> list[str]:
    if not before:
        return [*COMMANDS, "--help", "--version"]
    name = plural(before[0])
    if name not in COMMANDS:
        return []
    command, rest = load(name), before[1:]
    if isinstance(command, Noun):
        if not rest:
            return [*command.verbs, "--help"]
        joined = "-".join(rest[:2])
        verb = command.verbs.get(joined) or command.verbs.get(rest[0])
        if verb is None:
            return [found.partition("-")[2] for found in command.verbs if found.startswith(f"{rest[0]}-")]
        rest = rest[2 if joined in command.verbs and len(rest) > 1 else 1 :]
    else:
        verb = command
    return _arguments(verb, rest, last)


def _arguments(verb: Verb, rest: list[str], last: str) -> list[str]:
    options = {name: argument for argument in verb.arguments if not argument.positional for name in argument.names}
    if rest and rest[-1] in options and options[rest[-1]].takes_value:
        return _values(options[rest[-1]], rest)
    if last.startswith("-"):
        return sorted(name for name in options if name.startswith("--"))
    positionals = [argument for argument in verb.arguments if argument.positional]
    given, skip = 0, False
    for word in rest:
        if skip:
            skip = False
        elif word.startswith("-"):
            skip = word in options and options[word].takes_value
        else:
            given += 1
    if not positionals:
        return []
    return _values(positionals[min(given, len(positionals) - 1)], rest)


def _values(argument: Argument, rest: list[str]) -> list[str]:
    if "choices" in argument.settings:
        return [str(choice) for choice in argument.settings["choices"]]
    kind = argument.complete
    if kind == "context":
        from kafka.cli.options import Contexts

        return sorted(Contexts().contexts)
    if kind == "option":
        from kafka.config import OPTIONS

        return [*(f"{name.replace('_', '.')}=" for name in OPTIONS), "schema.registry.url="]
    if kind == "api":
        from kafka.protocol.registry import APIS

        return sorted(api.name for api in APIS.values())
    if kind == "setting":
        return ["cleanup.policy=", "retention.ms=", "retention.bytes=", "segment.bytes=", "min.insync.replicas=",
                "max.message.bytes=", "compression.type=", "delete.retention.ms="]  # fmt: skip
    return _names(kind, rest) if kind in {"topic", "group"} else []


def _names(kind: str, rest: list[str]) -> list[str]:
    """Return the topics or groups of the cluster that the words choose; none if it does not answer at once."""
    import json

    from kafka.cli.options import settings, write_private

    cache = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "purekafka" / "names.json"
    # An error is silent here, and an option of the line must not ask for a password or read what is typed.
    with suppress(Exception, SystemExit), redirect_stderr(io.StringIO()), _no_input():
        found = parse(["topics", "list", *connection_words(rest)])
        if found is None:
            return []
        arguments = found[1]
        key = _key(kind, {"sandbox": str(arguments.sandbox), **settings(arguments)})
        with suppress(OSError, ValueError, KeyError, TypeError):
            kept = json.loads(cache.read_text(encoding="utf-8"))
            if kept["key"] == key and 0 <= time.time() - kept["at"] < _REMEMBERED_S:
                return list(kept["names"])
        names = _asked(kind, arguments)
        write_private(cache, json.dumps({"key": key, "at": time.time(), "names": names}))
        return names
    return []


def _key(kind: str, options: dict[str, str]) -> str:
    """Return what identifies a cluster and its user, without a secret."""
    import hashlib

    from kafka.cli.options import option_named

    known = {name: None if name == "sandbox" else option_named(name) for name in options}
    public = {name: text for name, text in sorted(options.items()) if not getattr(known[name], "secret", False)}
    return hashlib.sha256(repr((kind, public)).encode()).hexdigest()


@contextmanager
def _no_input() -> Iterator[None]:
    """Give the commands of a completion an empty standard input."""
    before, sys.stdin = sys.stdin, io.StringIO()
    try:
        yield
    finally:
        sys.stdin = before


def _asked(kind: str, arguments: Namespace) -> list[str]:
    from kafka.cli.connection import Connection

    arguments.options = [*arguments.options, f"bootstrap.timeout.ms={_PATIENCE_MS}"]
    with Connection(arguments) as connection:
        admin = connection.admin()
        if kind == "topic":
            return sorted(admin.list_topics(timeout_ms=_PATIENCE_MS))
        return sorted(str(group.group_id) for group in admin.list_groups(timeout_ms=_PATIENCE_MS, raise_errors=False))


@Verb(
    "words: print the words that may stand in place of the last one; shells call this",
    examples=["-- top", "-- topics de"],
    connects=False,
    runs_command=True,
)
def _words(arguments: Namespace) -> int:
    for found in candidates(arguments.command):
        print(found)
    return 0


def _script(text: str) -> Callable[[Namespace], int]:
    def run(_arguments: Namespace) -> int:
        sys.stdout.write(text)
        return 0

    return run


COMMAND = Noun(
    "completion",
    [
        Verb(
            f"{shell}: print the completion for {shell}",
            examples=["", f"purekafka completion {shell} > purekafka.{shell}"],
            connects=False,
        )(_script(text))
        for shell, text in (("bash", _BASH), ("zsh", _ZSH), ("fish", _FISH))
    ]
    + [_words],
)
