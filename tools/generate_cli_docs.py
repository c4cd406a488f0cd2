"""Writes docs/reference/commands.rst from the grammar of the command line; a test holds it current."""

from __future__ import annotations

from pathlib import Path

from kafka.cli.grammar import COMMANDS, CONNECTION, CONSENT, LISTING, Argument, Noun, Verb, load

TARGET = Path(__file__).resolve().parent.parent / "docs" / "reference" / "commands.rst"

# Why the tests of the documentation do not run the examples of a command; the command's own tests prepare these things.
NOT_RUN = {
    "groups remove-members": "needs a group with members",
    "records decode": "needs the internal topics of Apache Kafka",
    "brokers unregister": "needs a broker that has left the cluster",
    "cluster voters-add": "needs a quorum of controllers",
    "cluster voters-remove": "needs a quorum of controllers",
    "tokens list": "needs a cluster with users",
    "tokens create": "needs a cluster with users",
    "tokens renew": "needs a cluster with users",
    "tokens expire": "needs a cluster with users",
    "partitions reassign-cancel": "needs a partition that moves",
    "partitions move-dir": "needs a broker with several directories",
    "transactions abort": "needs a transaction that hangs",
    "logs dump": "reads the files of a broker",
    "demo": "test/embedded/test_demo.py runs it",
    "spark": "needs Spark; test/embedded/spark/test_jobs.py runs the jobs",
}
# Other examples that name a cluster need things on it; these commands do not.
ON_ANY_CLUSTER = {"acls delete", "metrics delete", "users delete"}
CLUSTER = (" -b localhost:9092", " -b b1:9093")


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
        command = f"{name} {verb.name}"
        reason = NOT_RUN.get(name) or NOT_RUN.get(command)
        if reason is None and command not in ON_ANY_CLUSTER and any(line.endswith(CLUSTER) for line in verb.examples):
            reason = "needs a cluster that has what an example names"
        lines += [f".. not-run: {reason}", ""] if reason else []
        lines += [".. code-block:: sh", "", *(f"    {example}" for example in verb.examples), ""]
    return lines


def _argument(argument: Argument) -> list[str]:
    text = argument.help.replace("%%", "%").replace("%(default)s", str(argument.settings.get("default")))
    text = text.replace("\\", "\\\\").replace("*", "\\*").replace("|", "\\|")
    return [f"``{argument.shown}``", f"    {text[0].upper()}{text[1:]}.", ""]


if __name__ == "__main__":
    TARGET.write_text(render(), encoding="utf-8")
