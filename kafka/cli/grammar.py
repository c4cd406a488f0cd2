"""The words of the command line: nouns, verbs, arguments. Parsers, help, completion, man pages and docs are made of it.

`COMMANDS` names every command and the module that has its table, so that ``--help`` loads none of them. A command is a
`Noun` with verbs, or a `Verb` itself; both are in the module's ``COMMAND``.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple, NoReturn

from kafka.cli.other_tools import advice, command_advice, understood

__all__ = [
    "COMMANDS",
    "CONNECTION",
    "CONSENT",
    "EXIT_CODES",
    "LISTING",
    "OUTCOME",
    "PAGES",
    "TABLE",
    "Argument",
    "Command",
    "Noun",
    "Verb",
    "arg",
    "connection_words",
    "load",
    "nearest",
    "parse",
    "plural",
    "shown_example",
]


class Command(NamedTuple):
    """A command as ``purekafka --help`` lists it."""

    module: str
    summary: str
    section: str


_DATA: Final = "Records"
_ADMIN: Final = "Administration"
_LOAD: Final = "Measuring"
_LOCAL: Final = "This machine"

#: Name -> the module with its table, what it does, and the section of the help, in the order of the help.
COMMANDS: Final[dict[str, Command]] = {
    "produce": Command("produce", "write records from lines, files, JSON or CSV", _DATA),
    "consume": Command("consume", "print records of topics, from any place to any place", _DATA),
    "tail": Command("consume", "print the last records of topics, and new ones as they arrive", _DATA),
    "topics": Command("topics", "list, describe, create, change and delete topics", _ADMIN),
    "groups": Command("groups", "list and describe groups, their lag, and their committed offsets", _ADMIN),
    "configs": Command("configs", "show and change settings of topics, brokers and groups", _ADMIN),
    "offsets": Command("offsets", "look offsets of partitions up, by place or time", _ADMIN),
    "records": Command("offsets", "delete the oldest records, decode internal records", _ADMIN),
    "brokers": Command("cluster", "list and describe brokers, and the requests that they support", _ADMIN),
    "cluster": Command("cluster", "describe the cluster", _ADMIN),
    "acls": Command("acls", "list, add and delete permissions", _ADMIN),
    "users": Command("credentials", "list users of SCRAM, set and delete their passwords", _ADMIN),
    "quotas": Command("quotas", "list, set and unset limits of users, clients and addresses", _ADMIN),
    "tokens": Command("credentials", "create, renew, expire and list delegation tokens", _ADMIN),
    "partitions": Command("partitions", "reassign replicas, elect leaders, choose log directories", _ADMIN),
    "transactions": Command("transactions", "list and describe transactions, and end the ones that hang", _ADMIN),
    "top": Command("top", "watch brokers, topics and groups with their rates and lag", _ADMIN),
    "health": Command("health", "tell by the exit code whether the cluster is healthy", _ADMIN),
    "exporter": Command("exporter.command", "serve lag, offsets, groups, topics and brokers to Prometheus", _ADMIN),
    "perf": Command("perf", "measure producing, consuming and latency", _LOAD),
    "logs": Command("logs", "read segment files of a broker, without a broker", _LOCAL),
    "demo": Command("demo", "a first look: a broker, a producer and consumers in one process", _LOCAL),
    "broker": Command("broker", "run a broker of one or several nodes on this machine", _LOCAL),
    "contexts": Command("contexts", "keep the addresses and options of clusters under names", _LOCAL),
    "completion": Command("completion", "print what completes words in a shell, and the manual page", _LOCAL),
    "request": Command("request", "send a request of the protocol, print the reply as JSON", _LOCAL),
    "protocol": Command("protocol", "show the messages of the protocol; decode and encode them", _LOCAL),
    "spark": Command("spark", "jobs on Spark: a pipeline, copies, dumps, lag", _LOCAL),
}

#: The meaning of the exit codes of all commands.
EXIT_CODES: Final = {
    0: "all done; also if the reader of the output, such as head, has closed it",
    1: "something failed: a broker cannot be reached or refuses, one of several items failed, a file or the output "
    "cannot be written, offsets of printed records cannot be committed",
    2: "the arguments are wrong: an unknown word or option, or a value that is malformed or out of range",
    3: "nothing was found, with --fail-if-empty; or the reply of purekafka request has an error code in it",
    4: "a lag is larger than --fail-above, or the cluster is not healthy",
    124: "the time of --timeout was over",
    130: "Ctrl-C ended it (143: SIGTERM); records that were printed are committed, records that were sent are counted",
}


class Argument:
    """A positional argument or an option: its names, its help, what completes it, and what argparse needs to know."""

    __slots__ = ("complete", "help", "names", "section", "settings")

    def __init__(self, *names: str, help: str, complete: str = "", section: str = "", **settings: Any) -> None:  # noqa: A002 - argparse's name
        self.names = names
        self.help = help
        self.complete = complete
        """The kind of names that the shell completes: topic, group, context, setting, file; empty for none."""
        self.section = section
        self.settings = settings

    @property
    def positional(self) -> bool:
        """Whether it is given by its place, not by its name."""
        return not self.names[0].startswith("-")

    @property
    def takes_value(self) -> bool:
        """Whether a word follows the option."""
        return self.settings.get("action", "store") in {"store", "append"} and self.settings.get("nargs") != "?"

    @property
    def shown(self) -> str:
        """The argument as usage lines have it."""
        metavar = self.settings.get("metavar") or self.names[-1].lstrip("-").upper()
        if "choices" in self.settings and "metavar" not in self.settings:
            metavar = "|".join(self.settings["choices"])
        if not self.positional:
            return f"{', '.join(self.names)} {metavar}" if self.takes_value else ", ".join(self.names)
        return {"*": f"[{metavar}...]", "+": f"{metavar}...", "?": f"[{metavar}]"}.get(
            str(self.settings.get("nargs")), metavar
        )


def arg(
    spec: str,
    help: str,  # noqa: A002 - argparse's name
    type: Callable[[str], Any] | None = None,  # noqa: A002 - argparse's name
    *,
    complete: str = "",
    section: str = "",
    **settings: Any,
) -> Argument:
    """Return an argument that is written as usage lines write it; three dots behind a value: it may be repeated.

    >>> arg("-n, --max-records N", "how many", int).shown
    '-n, --max-records N'
    >>> arg("groups [GROUP...]", "all if none").shown, arg("--topic TOPIC...", "only these").settings["default"]
    ('[GROUP...]', [])
    >>> arg("--by partition|topic", "a row for each").settings["choices"], arg("--all", "all").settings
    (('partition', 'topic'), {'action': 'store_true'})
    """
    if type is not None:
        settings["type"] = type
    form = spec
    if spec.startswith("-"):
        *names, last = spec.split(", ")
        last, _, form = last.partition(" ")
        names.append(last)
        if not form:
            return Argument(*names, help=help, complete=complete, section=section, action="store_true", **settings)
        if form.endswith("..."):
            settings["action"] = "append"
            if not settings.get("required"):
                settings.setdefault("default", [])
        value = form.removesuffix("...")
    else:
        name, _, form = spec.rpartition(" ")
        many, optional = form.rstrip("]").endswith("..."), form.startswith("[")
        value = form.removeprefix("[").removesuffix("]") if optional else form
        value = value.removesuffix("...")
        if many or optional:
            settings["nargs"] = "?" if not many else "*" if optional else "+"
        names = [name or value.lower()]
    if "|" in value:
        settings.setdefault("choices", tuple(value.split("|")))
    settings["metavar"] = value
    return Argument(*names, help=help, complete=complete, section=section, **settings)


class Verb:
    """One thing that the program does: its arguments, examples that run as they are printed, and its function."""

    __slots__ = ("arguments", "changes", "epilog", "examples", "name", "own", "reads", "run", "runs_command", "summary")

    def __init__(
        self,
        name: str,
        summary: str,
        run: Callable[[argparse.Namespace], int],
        arguments: Sequence[Argument] = (),
        examples: Sequence[str] = (),
        *,
        connects: bool = True,
        lists: bool = False,
        asks: bool = False,
        changes: bool = False,
        reads: bool = False,
        runs_command: bool = False,
        epilog: str = "",
    ) -> None:
        self.name = name
        self.summary = summary
        self.run = run
        self.own = tuple(arguments)
        self.changes = (asks or changes) and not lists
        """Whether it changes something, and prints an outcome for each item that it was to change."""
        shared = (CONSENT if asks else ()) + (OUTCOME if self.changes else ()) + (LISTING if lists else ())
        shared += CONNECTION if connects else ()
        taken = {name for argument in self.own for name in argument.names}
        self.arguments = self.own + tuple(one for one in shared if not taken.intersection(one.names))
        self.examples = tuple(examples)
        self.reads = reads or (lists and not asks)
        """Whether it only shows something: it then does not wait long for a broker."""
        self.runs_command = runs_command
        """Whether words behind ``--`` are a command to run."""
        self.epilog = epilog


class Noun:
    """A kind of thing, and what can be done with it."""

    __slots__ = ("epilog", "name", "summary", "verbs")

    def __init__(self, name: str, summary: str, verbs: Iterable[Verb], *, epilog: str = "") -> None:
        self.name = name
        self.summary = summary
        self.verbs = {verb.name: verb for verb in verbs}
        self.epilog = epilog


def _positive(word: str) -> float:
    number = float(word)
    if not 0 < number < float("inf"):
        raise argparse.ArgumentTypeError(f"{word} is not above zero")
    return number


#: How a command finds its cluster.
CONNECTION: Final = (
    arg(
        "-b, --bootstrap-server, --bootstrap-servers HOST:PORT[,...]",
        "brokers to connect to first (localhost:9092)",
        dest="bootstrap_servers",
        section="Connection",
    ),
    arg(
        "-X NAME=VALUE...",
        "an option of the client, such as security.protocol=SSL; names of Java's client and of librdkafka work "
        "too; may be repeated",
        dest="options",
        complete="option",
        section="Connection",
    ),
    arg(
        "--config, -F FILE",
        "read options from a file: client.properties, kcat.conf or TOML",
        dest="config_file",
        complete="file",
        section="Connection",
    ),
    arg("--context NAME", "use the options of a context", complete="context", section="Connection"),
    arg(
        "--sandbox",
        "use an embedded broker that lives as long as the command, with some topics, records and a group",
        section="Connection",
    ),
    arg("--timeout SECONDS", "end with exit code 124 after this time", _positive, section="Connection"),
    Argument(
        "-v", "--verbose", action="count", default=0, section="Connection", help="log to standard error; -vv: more"
    ),
)
#: How a command prints a table that has no other format, such as a plan.
TABLE: Final = (
    arg("--no-headers", "leave the heading of a table or of CSV out", section="Output"),
    arg("--color auto|always|never", "when to use colours (auto)", default="auto", section="Output"),
)
#: How a command prints what it has found.
LISTING: Final = (
    arg(
        "-f, --format FORMAT",
        "table, json, jsonl, csv, or a template such as '{name}' (table)",
        default="table",
        section="Output",
    ),
    TABLE[0],
    arg("-q, --quiet", "print names alone, one per line", section="Output"),
    arg("--fail-if-empty", "end with exit code 3 if there is nothing to print", section="Output"),
    TABLE[1],
)
#: How a command that changes something says what it did.
OUTCOME: Final = (
    arg("-f, --format FORMAT", "print what was done as text, json or jsonl (text)", default="text", section="Output"),
)
#: How a command that destroys or moves something gets consent.
CONSENT: Final = (
    arg("-y, --yes", "do it without asking"),
    arg("--dry-run", "show what would be done, and do nothing"),
)

#: What many verbs share: ``purekafka help NAME`` prints it, and their help only its names.
PAGES: Final = {
    "connection": "how a command finds its cluster",
    "output": "how a command prints what it has found",
    "places": "where a range of records begins and ends",
    "types": "what keys, values and headers may be",
    "values": "where a secret may come from",
}

#: Sections whose options stand in one line of the help of a verb.
_FOLDED: Final = ("Types", "Output", "Connection")

_HELP: Final = Argument("-h", "--help", action="help", help="show this help and exit")

_SINGULAR: Final = {
    name.removesuffix("s"): name for name in COMMANDS if name.endswith("s") and name.removesuffix("s") not in COMMANDS
}


#: How alike two options must be for one to be suggested: --topic is not --timeout.
_OPTIONS_ALIKE: Final = 0.7


#: The width that help is written for; tables of options are as wide as the terminal.
_WIDTH: Final = 80

_MODES_OF_KCAT: Final = {"-C", "-P", "-L", "-Q", "-G", "-M"}


def plural(name: str) -> str:
    """Return the name of a command that may be given in the singular.

    >>> plural("topic"), plural("broker")
    ('topics', 'broker')
    """
    return _SINGULAR.get(name, name)


def connection_words(words: Sequence[str]) -> list[str]:
    """Return the words that choose a cluster.

    >>> connection_words(["events", "-b", "b1:9092", "--from", "end"])
    ['-b', 'b1:9092']
    """
    takes = {name: one.takes_value for one in CONNECTION for name in one.names}
    found: list[str] = []
    for at, word in enumerate(words):
        if word in takes:
            found += words[at : at + (2 if takes[word] else 1)]
    return found


def load(name: str) -> Noun | Verb:
    """Return a command's table."""
    module = import_module(f"kafka.cli.{COMMANDS[name].module}")
    found: Noun | Verb | dict[str, Noun | Verb] = module.COMMAND
    return found[name] if isinstance(found, dict) else found


def nearest(word: str, words: Iterable[str], alike: float = 0.5) -> str:
    """Return a hint at the word that was probably meant, or an empty text.

    >>> nearest("lsit", ["list", "delete"])
    ': did you mean list?'
    """
    from difflib import get_close_matches

    near = get_close_matches(word, list(words), n=1, cutoff=alike)
    return f": did you mean {near[0]}?" if near else ""


def parse(words: Sequence[str]) -> tuple[Verb, argparse.Namespace] | None:
    """Return the verb that the words name, with its arguments; None after help was printed. Exits with 2 if wrong."""
    words = list(words)
    behind: list[str] = []
    if "--" in words:
        at = words.index("--")
        words, behind = words[:at], words[at:]
    if words[:1] == ["help"]:
        if words[1:2] and words[1] in PAGES:
            _print_page(words[1])
            return None
        words = [*words[1:3], "--help"]
    if words[:1] and words[0] in _MODES_OF_KCAT:
        _refuse("purekafka", f"unknown option {words[0]}: for kcat's options, purekafka kcat {words[0]} ...")
    first = _first_word(words)
    if first is None:
        _root_help(words)
        return None
    words = _in_words_here(words, first)
    name = plural(words.pop(first))
    if name not in COMMANDS:
        hint = command_advice(name) or nearest(name, [*COMMANDS, *_SINGULAR])
        _refuse("purekafka", f"unknown command {name!r}{hint}")
    command, prog = load(name), f"purekafka {name}"
    if isinstance(command, Noun):
        chosen = _verb_of(command, words, prog)
        if chosen is None:
            return None
        found, prog = chosen, f"{prog} {chosen.name}"
    else:
        found = command
    parser = _parser(found, prog)
    if found.runs_command:
        arguments = parser.parse_intermixed_args(words)
        arguments.command = behind[1:]
    else:
        arguments = parser.parse_intermixed_args(words + behind)
    arguments.prog = prog
    return found, arguments


def _in_words_here(words: list[str], first: int) -> list[str]:
    """Replace a command of another tool that takes the same arguments here."""
    noun = plural(words[first])
    second = _first_word(words[first + 1 :])
    at = None if second is None else first + 1 + second
    if at is not None and (found := understood(f"{noun} {words[at]}")):
        return [*words[:first], *found.split(), *words[first + 1 : at], *words[at + 1 :]]
    if found := understood(noun):
        return [*words[:first], *found.split(), *words[first + 1 :]]
    return words


def _verb_of(noun: Noun, words: list[str], prog: str) -> Verb | None:
    """Take the verb out of the words; None after the help of the noun was printed."""
    place = _first_word(words)
    if place is None:
        if any(word not in {"-h", "--help"} for word in words) and not {"-h", "--help"} & set(words):
            _refuse_dashes(noun, words, prog)
            _refuse(prog, f"a verb is missing: one of {', '.join(noun.verbs)}")
        print(_noun_help(noun), end="")
        return None
    name = words[place]
    if name not in noun.verbs and len(noun.verbs) == 1 and not nearest(name, noun.verbs):
        return next(iter(noun.verbs.values()))  # offsets events: the only verb need not be named
    words.pop(place)
    if place < len(words) and f"{name}-{words[place]}" in noun.verbs:  # reassign plan
        name = f"{name}-{words.pop(place)}"
    if name not in noun.verbs:
        _refuse_dashes(noun, words, prog)
        _refuse(prog, f"unknown verb {name!r}{command_advice(f'{noun.name} {name}') or nearest(name, noun.verbs)}")
    return noun.verbs[name]


def _refuse_dashes(noun: Noun, words: Sequence[str], prog: str) -> None:
    """Refuse a verb that is written as Kafka's scripts have it: topics --list."""
    for word in words:
        if word.removeprefix("--") in noun.verbs and word.startswith("--"):
            _refuse(prog, f"unknown option {word}: the verb stands without dashes: {prog} {word[2:]}")
        if word.startswith("--") and (hint := command_advice(f"{noun.name} {word[2:]}")):
            _refuse(prog, f"unknown option {word}{hint}")


def _first_word(words: list[str]) -> int | None:
    """Return the index of the first word that is not an option or the value of a shared one."""
    skip = False
    for at, word in enumerate(words):
        if skip:
            skip = False
        elif not word.startswith("-"):
            return at
        else:
            skip = word in _WITH_VALUE
    return None


_WITH_VALUE: Final = {name for argument in CONNECTION + LISTING if argument.takes_value for name in argument.names}


class _Formatter(argparse.RawDescriptionHelpFormatter):
    """Shows the value of an option once, behind its last name."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28)

    def _format_action_invocation(self, action: argparse.Action) -> str:
        if not action.option_strings:
            return super()._format_action_invocation(action)
        names = ", ".join(sorted(action.option_strings, key=len)[:2])
        value = "" if action.nargs == 0 else self._format_args(action, action.dest.upper())
        return f"{names} {value}".rstrip()


class _Parser(argparse.ArgumentParser):
    """A parser that explains an error in one line, with the option that was probably meant."""

    def error(self, message: str) -> NoReturn:
        word = message.removeprefix("unrecognized arguments: ")
        if word != message:
            first = word.split()[0]
            if first.startswith("-"):
                message = f"unknown option {first}{self._hint(first.partition('=')[0])}"
            else:
                message = f"unexpected argument {first!r}"
        _refuse(self.prog, message)

    def _hint(self, option: str) -> str:
        options = self._option_string_actions
        arguments = {str(action.metavar) for action in self._get_positional_actions()}
        return advice(option, options, arguments) or nearest(option, options, _OPTIONS_ALIKE)


def _refuse(prog: str, message: str) -> NoReturn:
    print(f'{prog}: {message}\nSee "{prog} --help".', file=sys.stderr)
    sys.exit(2)


def _parser(verb: Verb, prog: str) -> argparse.ArgumentParser:
    optional = "" if all(argument.positional for argument in verb.arguments) else " [options]"
    required = "".join(
        f" {one.names[0]} {one.settings.get('metavar', '')}".rstrip()
        for one in verb.own
        if one.settings.get("required")
    )
    positional = "".join(f" {argument.shown}" for argument in verb.own if argument.positional)
    command = " [-- COMMAND [ARGUMENT...]]" if verb.runs_command else ""
    examples = "".join(f"\n{shown_example(example)}" for example in verb.examples)
    parser = _Parser(
        prog=prog,
        usage=f"{prog}{_usage_break(prog, f'{required}{positional}{optional}{command}')}",
        description=f"{_wrapped(f'{verb.summary[0].upper()}{verb.summary[1:]}.')}\n\nExamples:{examples}",
        epilog=_wrapped("\n\n".join(filter(None, (verb.epilog, *_shared_options(verb))))),
        formatter_class=_Formatter,
        allow_abbrev=False,
        add_help=False,
    )
    _add_arguments(parser, [*verb.arguments, _HELP], _FOLDED)
    return parser


def _add_arguments(
    parser: argparse.ArgumentParser, arguments: Iterable[Argument], hidden: Collection[str] = ()
) -> None:
    sections: dict[str, Any] = {}
    for argument in arguments:
        title = argument.section or ("Arguments" if argument.positional else "Options")
        if title not in sections:
            sections[title] = parser.add_argument_group(title)
        shown = argparse.SUPPRESS if title in hidden or (argument is _HELP and hidden) else argument.help
        sections[title].add_argument(*argument.names, help=shown, **argument.settings)


def _shared_options(verb: Verb) -> Iterator[str]:
    """Yield a line for each section of options that many verbs have."""
    for section in _FOLDED:
        shown = (
            f"{one.names[0]} {one.settings.get('metavar', '')}" for one in verb.arguments if one.section == section
        )
        names = [name.rstrip() for name in shown]
        if names:
            yield f"{section}: {'; '.join(names)} (purekafka help {section.lower()})"


def _print_page(name: str) -> None:
    """Print what many verbs share."""
    texts = {"places": ("ranges", "HELP"), "types": ("record_types", "HELP"), "values": ("arguments", "VALUES")}
    if name in texts:
        module, constant = texts[name]
        print(_wrapped(getattr(import_module(f"kafka.cli.{module}"), constant)))
        return
    parser = argparse.ArgumentParser(usage=argparse.SUPPRESS, formatter_class=_Formatter, add_help=False)
    _add_arguments(parser, CONNECTION if name == "connection" else LISTING)
    print(parser.format_help().lstrip(), end="")


def shown_example(line: str) -> str:
    """Return an example, in several lines that a shell joins where it is wider than a terminal of 80 columns."""
    import re

    lines = [" "]
    for word in re.findall(r"(?:'[^']*'|\"[^\"]*\"|\S)+", line):
        if len(lines[-1]) + len(word) > _WIDTH - 3:
            lines[-1] += " \\"
            lines.append("     ")
        lines[-1] += f" {word}"
    return "\n".join(lines)


def _usage_break(prog: str, words: str) -> str:
    """Return what stands behind the program in a usage line, on a separate line if both are too long for one."""
    return words if len(prog) + len(words) < 72 else f"\n      {words}"


def _wrapped(text: str) -> str:
    if not text:
        return ""
    from textwrap import fill

    return "\n\n".join(fill(paragraph, _WIDTH - 2, break_on_hyphens=False) for paragraph in text.split("\n\n"))


def _root_help(words: list[str]) -> None:
    if "--version" in words or "-V" in words:
        from kafka.version import __version__

        print(f"purekafka {__version__}")
        return
    stray = next((word for word in words if word not in {"-h", "--help"}), None)
    if stray is not None and not {"-h", "--help"} & set(words):
        _refuse("purekafka", f"unknown option {stray}" if stray not in _WITH_VALUE else "a command is missing")
    print("usage: purekafka COMMAND [VERB] [arguments] [options]\n\nKafka from the shell, in pure Python.")
    section = ""
    for name, command in COMMANDS.items():
        if command.section != section:
            section = command.section
            print(f"\n{section}:")
        print(f"  {name:<13} {command.summary}")
    print(
        '\n"purekafka COMMAND --help" lists the verbs of a command, and\n'
        '"purekafka COMMAND VERB --help" their arguments.\n'
        f'"purekafka help NAME" is about {", ".join(PAGES)}.\n'
        '"purekafka topics list --sandbox" needs no cluster; --version is there too.\n'
        '"purekafka kcat ..." takes the options of kcat.'
    )


def _noun_help(noun: Noun) -> str:
    from textwrap import fill

    width = max(map(len, noun.verbs)) + 2
    examples = [example for verb in noun.verbs.values() for example in verb.examples[:1]]
    lines = [f"usage: purekafka {noun.name} VERB [arguments] [options]", ""]
    lines += [_wrapped(f"{noun.summary[0].upper()}{noun.summary[1:]}."), "", "Verbs:"]
    for verb in noun.verbs.values():
        begin, rest = f"  {verb.name:<{width}}", " " * (width + 2)
        lines.append(fill(verb.summary, _WIDTH, initial_indent=begin, subsequent_indent=rest, break_on_hyphens=False))
    lines += ["", "Examples:", *map(shown_example, examples)]
    lines += ["", f'"purekafka {noun.name} VERB --help" shows the arguments of a verb.']
    return "\n".join(lines) + "\n"
