"""``purekafka contexts``: the addresses and options of clusters under names, in one file that only its owner reads."""

from __future__ import annotations

import sys
from argparse import Namespace

from kafka.cli.arguments import UsageError, no_value
from kafka.cli.grammar import Noun, Verb, arg
from kafka.cli.options import Contexts, option_named, read_options
from kafka.cli.output import Column, complain, emit

_NAME = arg("NAME", "the name of the context", complete="context")
_REPLACE = arg("--replace", "overwrite a context that exists")


def _shown(option: str, value: str) -> str:
    from kafka._text import without_passwords

    try:
        found = option_named(option)
    except UsageError:
        found = None
    # What names a source, @env:NAME or a file, is not the secret itself.
    secret = found is not None and found.secret and not (value.startswith("@") and not value.startswith("@@"))
    return "***" if secret else without_passwords(value)


@Verb("list: list the contexts", examples=["", "--format json"], connects=False, lists=True)
def _list(arguments: Namespace) -> int:
    contexts = Contexts()
    rows = [
        {
            "name": name,
            "current": name == contexts.current,
            "bootstrap_servers": _shown("bootstrap_servers", options.get("bootstrap_servers", "")),
            "security_protocol": options.get("security_protocol", "PLAINTEXT"),
        }
        for name, options in sorted(contexts.contexts.items())
    ]
    if not rows and arguments.format == "table":
        print('There are no contexts yet: see "purekafka contexts add --help".', file=sys.stderr)
    return emit(arguments, rows, Column.of("name", "current", "bootstrap_servers", "security_protocol"))


@Verb(
    "show: show the options of a context, without secrets",
    arg("[NAME]", "the name of a context (the one in use)", complete="context"),
    examples=["", "local --format json"],
    connects=False,
    lists=True,
)
def _show(arguments: Namespace) -> int:
    contexts = Contexts()
    name = arguments.name or contexts.current
    if name is None:
        raise UsageError("no context is in use: name one")
    rows = [{"option": option, "value": _shown(option, value)} for option, value in sorted(contexts.get(name).items())]
    return emit(arguments, rows, Column.of("option", "value"))


@Verb(
    "add: add a context; the first one is in use at once",
    _NAME,
    arg(
        "-b, --bootstrap-server, --bootstrap-servers HOST:PORT[,...]",
        "brokers to connect to first",
        dest="bootstrap_servers",
    ),
    arg(
        "-X NAME=VALUE...",
        "an option of the client; a value @env:NAME, @FILE or @prompt is stored as it is and looked "
        "up when the context is used; may be repeated",
        dest="options",
        complete="option",
    ),
    _REPLACE,
    examples=["local -b localhost:9092", "prod -b b1:9093 -X sasl.username=ada -X sasl.password=@env:ADA_PASSWORD"],
    connects=False,
)
def _add(arguments: Namespace) -> int:
    found: dict[str, str] = {}
    for word in arguments.options:
        name, equals, value = word.partition("=")
        if not equals:
            raise no_value(word, "-X")
        if (option := option_named(name)) is not None:
            found[option.name] = value
    if arguments.bootstrap_servers:
        found["bootstrap_servers"] = arguments.bootstrap_servers
    return _saved(arguments, Contexts(), found)


@Verb(
    "import: add a context from client.properties, kcat.conf or TOML",
    [_NAME, arg("FILE", "the file to read", complete="file"), _REPLACE],
    examples=["prod client.properties", "prod kcat.conf --replace"],
    connects=False,
)
def _import(arguments: Namespace) -> int:
    options: dict[str, str] = {}
    file = read_options(arguments.file)
    for name, value in file.options.items():
        try:
            option = option_named(name)
        except UsageError as error:
            complain(arguments, f"{arguments.file}: {error}; it is left out")
            continue
        if option is not None:
            options[option.name] = f"@{value}" if value.startswith("@") and not file.ours else value
    return _saved(arguments, Contexts(), options)


def _saved(arguments: Namespace, contexts: Contexts, options: dict[str, str]) -> int:
    if arguments.name in contexts.contexts and not arguments.replace:
        raise UsageError(f"there is a context {arguments.name!r} already; --replace overwrites it")
    if "bootstrap_servers" not in options:
        raise UsageError("the brokers are missing: give -b HOST:PORT")
    contexts.contexts[arguments.name] = options
    first = contexts.current is None
    if first:
        contexts.current = arguments.name
    contexts.save()
    print(f"{arguments.name}: saved in {contexts.path}" + (", and in use" if first else ""))
    return 0


@Verb(
    "use: choose the context of the commands to come",
    [arg("[NAME]", "the name of the context", complete="context"), arg("--none", "use no context")],
    examples=["local", "--none"],
    connects=False,
)
def _use(arguments: Namespace) -> int:
    contexts = Contexts()
    if arguments.none:
        contexts.current = None
    elif arguments.name is None:
        raise UsageError("name a context, or give --none")
    else:
        contexts.get(arguments.name)
        contexts.current = arguments.name
    contexts.save()
    print("no context is in use" if contexts.current is None else f"{contexts.current}: in use")
    return 0


@Verb("remove: remove a context", _NAME, examples=["local", "purekafka context remove prod"], connects=False)
def _remove(arguments: Namespace) -> int:
    contexts = Contexts()
    contexts.get(arguments.name)
    del contexts.contexts[arguments.name]
    if contexts.current == arguments.name:
        contexts.current = None
    contexts.save()
    print(f"{arguments.name}: removed")
    return 0


COMMAND = Noun("contexts", [_list, _add, _use, _show, _remove, _import])
