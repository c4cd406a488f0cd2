"""Reads a command line by the tables of `kafka.cli.grammar`, and prints the help that is made from them."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from importlib import import_module
from typing import Any, Final, NoReturn

from kafka.cli.grammar import COMMANDS, CONNECTION, LISTING, SINGULAR, Argument, Noun, Verb, load, nearest, plural
from kafka.cli.other_tools import advice, command_advice, understood

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

_HELP: Final = Argument("-h, --help", "show this help and exit", action="help")

#: How alike two options must be for one to be suggested: --topic is not --timeout.
_OPTIONS_ALIKE: Final = 0.7
#: And two commands: node is not produce.
_WORDS_ALIKE: Final = 0.65


#: The width that help is written for; tables of options are as wide as the terminal.
_WIDTH: Final = 80

_MODES_OF_KCAT: Final = {"-C", "-P", "-L", "-Q", "-G", "-M"}


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
        hint = command_advice(name) or _verbs_called(name) or nearest(name, [*COMMANDS, *SINGULAR], _WORDS_ALIKE)
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
    only = next(iter(noun.verbs.values())) if len(noun.verbs) == 1 else None
    if only is not None and not only.changes and name not in noun.verbs and not nearest(name, noun.verbs):
        return only  # offsets events: the only verb need not be named, if it changes nothing
    words.pop(place)
    if place < len(words) and f"{name}-{words[place]}" in noun.verbs:  # reassign plan
        name = f"{name}-{words.pop(place)}"
    if name not in noun.verbs:
        _refuse_dashes(noun, words, prog)
        begun = [verb for verb in noun.verbs if verb.startswith(f"{name}-")]  # set: set-password, not list
        hint = command_advice(f"{noun.name} {name}") or nearest((begun or [name])[0], noun.verbs)
        _refuse(prog, f"unknown verb {name!r}{hint}")
    return noun.verbs[name]


def _verbs_called(name: str) -> str:
    """Return a hint at the verbs of any command that have a name, or begin with it."""
    found = [
        f"purekafka {one} {verb}"
        for one in COMMANDS
        for verb in getattr(load(one), "verbs", ())
        if verb == name or verb.startswith(f"{name}-")
    ]
    return f": did you mean {' or '.join(found[:3])}?" if found else ""


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

    def print_help(self, file: Any = None) -> None:
        (file or sys.stdout).write(self.format_help())  # argparse ignores an error of that

    def _hint(self, option: str) -> str:
        options = self._option_string_actions
        if option == "--yes":
            return ": this command does not ask"
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
