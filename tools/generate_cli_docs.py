"""Writes docs/reference/commands.rst from the grammar of the command line; a test holds it current."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kafka.cli.grammar import COMMANDS, CONNECTION, CONSENT, LISTING, OUTCOME, TABLE, Argument, Verb, load

TARGET = Path(__file__).resolve().parent.parent / "docs" / "reference" / "commands.rst"

# Options that many commands have, by the word for them.
SHARED = {"connection": CONNECTION, "listing": LISTING, "table": TABLE, "outcome": OUTCOME, "consent": CONSENT}


def render() -> str:
    """Return the page."""
    lines = [
        "Commands",
        "========",
        "",
        "Every command with its arguments, made from the grammar by ``tools/generate_cli_docs.py``. The guide is",
        ":doc:`/command_line`. Shared options come at the end.",
        "",
    ]
    for name in COMMANDS:
        command = load(name)
        if isinstance(command, Verb):
            lines += _verb(name, command, alone=True)
            continue
        lines += [name, "-" * len(name), "", f"{command.summary[0].upper()}{command.summary[1:]}.", ""]
        for verb in command.verbs.values():
            lines += _verb(name, verb, alone=False)
    lines += ["Shared options", "--------------", ""]
    for word, arguments in SHARED.items():
        lines += [f"{word.capitalize()}:", "", *_arguments(arguments)]
    return "\n".join(lines).rstrip() + "\n"


def _verb(name: str, verb: Verb, *, alone: bool) -> list[str]:
    title = name if alone else f"{name} {verb.name}"
    lines = [title, ("-" if alone else "~") * len(title), ""]
    groups = []
    for word, arguments in SHARED.items():
        if arguments[0] in verb.arguments and not (word == "table" and LISTING[0] in verb.arguments):
            known = {name for argument in verb.arguments for name in argument.names}
            lacks = [argument.names[0] for argument in arguments if known.isdisjoint(argument.names)]
            groups.append(f"{word} without ``{'`` and ``'.join(lacks)}``" if lacks else word)
    shared = f" Shared options: {', '.join(groups)}." if groups else ""
    lines += [f"{verb.summary[0].upper()}{verb.summary[1:]}.{shared}", ""]
    common = [argument for arguments in SHARED.values() for argument in arguments]
    lines += _arguments(argument for argument in verb.own if argument not in common)
    if verb.examples:
        lines += [".. code-block:: sh", "", *(f"    {example}" for example in verb.examples), ""]
    return lines


def _arguments(arguments: Iterable[Argument]) -> list[str]:
    """Return a definition list: compact, as an item of two lines needs no blank line behind it."""
    lines = []
    for argument in arguments:
        text = argument.help.replace("%%", "%").replace("%(default)s", str(argument.settings.get("default")))
        text = text.replace("\\", "\\\\").replace("*", "\\*").replace("|", "\\|")
        lines += [f"``{argument.shown}``", f"    {text[0].upper()}{text[1:]}."]
    return [*lines, ""] if lines else []


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")
