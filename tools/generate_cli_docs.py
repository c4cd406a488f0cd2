"""Writes docs/reference/commands.rst from the grammar of the command line; a test holds it current."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from kafka.cli.grammar import COMMANDS, CONNECTION, CONSENT, LISTING, Argument, Verb, load

TARGET = Path(__file__).resolve().parent.parent / "docs" / "reference" / "commands.rst"


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
    for title, arguments in (("Connection", CONNECTION), ("Listings", LISTING), ("Consent", CONSENT)):
        lines += [f"{title}:", ""]
        lines += _arguments(arguments)
    return "\n".join(lines).rstrip() + "\n"


def _verb(name: str, verb: Verb, *, alone: bool) -> list[str]:
    title = name if alone else f"{name} {verb.name}"
    lines = [title, ("-" if alone else "~") * len(title), ""]
    groups = [
        word
        for word, arguments in (("connection", CONNECTION), ("listing", LISTING), ("consent", CONSENT))
        if arguments[0] in verb.arguments
    ]
    shared = f" Shared options: {', '.join(groups)}." if groups else ""
    lines += [f"{verb.summary[0].upper()}{verb.summary[1:]}.{shared}", ""]
    lines += _arguments(verb.own)
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
