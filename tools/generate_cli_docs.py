"""Writes docs/reference/commands.rst from the grammar of the command line; a test holds it current."""

from __future__ import annotations

from pathlib import Path

from kafka.cli.grammar import COMMANDS, CONNECTION, CONSENT, LISTING, Argument, Noun, Verb, load

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
        lines += [name, "-" * len(name), "", f"{command.summary[0].upper()}{command.summary[1:]}.", ""]
        verbs = command.verbs.values() if isinstance(command, Noun) else [command]
        for verb in verbs:
            lines += _verb(name, verb, alone=verb is command)
    lines += ["Shared options", "--------------", ""]
    for title, arguments in (("Connection", CONNECTION), ("Listings", LISTING), ("Consent", CONSENT)):
        lines += [f"{title}:", ""]
        for argument in arguments:
            lines += _argument(argument)
    return "\n".join(lines).rstrip() + "\n"


def _verb(name: str, verb: Verb, *, alone: bool) -> list[str]:
    lines: list[str] = []
    if not alone:
        title = f"{name} {verb.name}"
        lines += [title, "~" * len(title), "", f"{verb.summary[0].upper()}{verb.summary[1:]}.", ""]
    for argument in verb.own:
        lines += _argument(argument)
    groups = [
        word
        for word, arguments in (("connection", CONNECTION), ("listing", LISTING), ("consent", CONSENT))
        if arguments[0] in verb.arguments
    ]
    if groups:
        lines += [f"Shared options: {', '.join(groups)}.", ""]
    if verb.examples:
        lines += [".. code-block:: sh", "", *(f"    {example}" for example in verb.examples), ""]
    return lines


def _argument(argument: Argument) -> list[str]:
    text = argument.help.replace("%%", "%").replace("%(default)s", str(argument.settings.get("default")))
    text = text.replace("\\", "\\\\").replace("*", "\\*").replace("|", "\\|")
    return [f"``{argument.shown}``", f"    {text[0].upper()}{text[1:]}.", ""]


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")
