"""The words of the command line: nouns, verbs, arguments. Parsers, help, completion and docs are made of it.

`COMMANDS` names every command and the module that has its table, so that ``--help`` loads none of them. A command is a
`Noun` with verbs, or a `Verb` itself; both are in the module's ``COMMAND``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from importlib import import_module
from typing import Any, Final, NamedTuple


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
    "records": Command("offsets", "delete the oldest records", _ADMIN),
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
    "completion": Command("completion", "print what completes words in a shell", _LOCAL),
    "request": Command("request", "send a request of the protocol, print the reply as JSON", _LOCAL),
    "protocol": Command("protocol", "show the messages of the protocol; decode and encode them", _LOCAL),
    "spark": Command("spark", "jobs on Spark: a pipeline, copies, dumps, lag", _LOCAL),
}


class Argument:
    """A positional argument or an option: its names, its help, what completes it, and what argparse needs to know.

    It is written as usage lines write it; three dots behind a value: it may be repeated.

    >>> Argument("-n, --max-records N", "how many", int).shown
    '-n, --max-records N'
    >>> Argument("groups [GROUP...]", "all").shown, Argument("--topic TOPIC...", "only these").settings["default"]
    ('[GROUP...]', [])
    >>> Argument("--by partition|topic", "a row for each").settings["choices"], Argument("--all", "all").settings
    (('partition', 'topic'), {'action': 'store_true'})
    """

    __slots__ = ("complete", "help", "names", "section", "settings")

    def __init__(
        self,
        spec: str,
        help: str,  # noqa: A002 - argparse's name
        type: Callable[[str], Any] | None = None,  # noqa: A002 - argparse's name
        *,
        complete: str = "",
        section: str = "",
        **settings: Any,
    ) -> None:
        self.help = help
        self.complete = complete
        """The kind of names that the shell completes: topic, group, context, setting, file; empty for none."""
        self.section = section
        self.settings = settings
        if type is not None:
            settings["type"] = type
        if spec.startswith("-"):
            *names, last = spec.split(", ")
            last, _, form = last.partition(" ")
            names.append(last)
            value = form.removesuffix("...")
            if not form:
                settings.setdefault("action", "store_true")
            elif value != form:
                settings["action"] = "append"
                if not settings.get("required"):
                    settings.setdefault("default", [])
        else:
            name, _, form = spec.rpartition(" ")
            value = form.removeprefix("[").removesuffix("]").removesuffix("...")
            if value != form:
                many, optional = form.rstrip("]").endswith("..."), form.startswith("[")
                settings["nargs"] = "?" if not many else "*" if optional else "+"
            names = [name or value.lower()]
        self.names = tuple(names)
        if "|" in value:
            settings.setdefault("choices", tuple(value.split("|")))
        if form:
            settings["metavar"] = value

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


arg = Argument


class Verb:
    """One thing that the program does: its arguments, examples that run as they are printed, and its function.

    It stands above the function, as a decorator, and begins with its name and what it does: "list: list the topics". A
    command without verbs has what it does in `COMMANDS`.
    """

    __slots__ = ("_tails", "arguments", "changes", "connects", "epilog", "name", "noun", "own", "reads", "run",
                 "runs_command", "summary")  # fmt: skip

    def __init__(
        self,
        words: str,
        *arguments: Argument | Sequence[Argument],
        examples: Sequence[str] = (),
        connects: bool = True,
        lists: bool = False,
        asks: bool = False,
        changes: bool = False,
        reads: bool = False,
        runs_command: bool = False,
        epilog: str = "",
    ) -> None:
        self.name, _, summary = words.partition(": ")
        self.noun = ""
        self.summary = summary or COMMANDS[self.name].summary
        self.connects = connects
        self.own = tuple(one for some in arguments for one in ((some,) if isinstance(some, Argument) else some))
        self.changes = (asks or changes) and not lists
        """Whether it changes something, and prints an outcome for each item that it was to change."""
        shared = (CONSENT if asks else ()) + (OUTCOME if self.changes else ()) + (LISTING if lists else ())
        shared += CONNECTION if connects else ()
        taken = {name for argument in self.own for name in argument.names}
        self.arguments = self.own + tuple(one for one in shared if not taken.intersection(one.names))
        self._tails = tuple(examples)
        self.reads = reads or (lists and not asks)
        """Whether it only shows something: it then does not wait long for a broker."""
        self.runs_command = runs_command
        """Whether words behind ``--`` are a command to run."""
        self.epilog = epilog

    def __call__(self, run: Callable[..., int]) -> Verb:
        """Take its function, which gets the arguments and, if the verb connects, `kafka.cli.connection.Connection`."""
        self.run = run
        return self

    @property
    def words(self) -> str:
        """The words of a command line for it: its noun, if it has one, and its name."""
        return f"{self.noun} {self.name}".lstrip()

    @property
    def examples(self) -> list[str]:
        """Lines for a shell; one that does not name the program is what stands behind the words of the verb."""
        return [tail if "purekafka" in tail else f"purekafka {self.words} {tail}".rstrip() for tail in self._tails]


class Noun:
    """A kind of thing, and what can be done with it."""

    __slots__ = ("name", "summary", "verbs")

    def __init__(self, name: str, verbs: Iterable[Verb]) -> None:
        self.name = name
        self.summary = COMMANDS[name].summary
        self.verbs = {verb.name: verb for verb in verbs}
        for verb in self.verbs.values():
            verb.noun = name


_MOST: Final = 1_000_000_000


def positive(word: str) -> float:
    """Read a number above zero that `time.sleep` takes, for argparse's ``type=``."""
    number = float(word)
    if not 0 < number <= _MOST:
        raise argparse.ArgumentTypeError(f"{word} is not above zero, or above {_MOST:,}")
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
    arg("--timeout SECONDS", "end with exit code 124 after this time", positive, section="Connection"),
    arg("-v, --verbose", "log to standard error; -vv: more", action="count", default=0, section="Connection"),
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
CONSENT: Final = (arg("-y, --yes", "do it without asking"), arg("--dry-run", "show what would be done, and do nothing"))

SINGULAR: Final = {
    name.removesuffix("s"): name for name in COMMANDS if name.endswith("s") and name.removesuffix("s") not in COMMANDS
}


def plural(name: str) -> str:
    """Return the name of a command that may be given in the singular.

    >>> plural("topic"), plural("broker")
    ('topics', 'broker')
    """
    return SINGULAR.get(name, name)


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
