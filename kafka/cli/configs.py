"""``purekafka configs``: show and change the settings of topics, brokers, groups and client metrics."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Final

from kafka.cli.arguments import CommandError, UsageError, reason, setting_pairs
from kafka.cli.connection import Connection
from kafka.cli.grammar import TABLE, Noun, Verb, arg
from kafka.cli.output import Column, agreed, complain, counted, emit, report

if TYPE_CHECKING:
    from kafka.admin import ConfigResource

_KINDS: Final = ("topic", "broker", "broker-logger", "client-metrics", "group")
_DEFAULT: Final = "default"
_KIND: Final = arg("KIND", f"the kind of resource: {', '.join(_KINDS)}", choices=_KINDS)
_NAME: Final = arg(
    "NAME", "the name of a topic or group, the id of a broker, or default for all brokers", complete="topic"
)


def _resource(arguments: Namespace, changes: Mapping[str, object] | Iterable[str] | None = None) -> ConfigResource:
    from kafka.admin import ConfigResource

    kind, name = arguments.kind, arguments.name
    if kind == "broker" and name == _DEFAULT:
        name = ""
    if kind.startswith("broker") and name and not name.isdecimal():
        raise UsageError(f"{name!r} is not the id of a broker; {_DEFAULT} names the settings of all brokers")
    if kind == "topic" and "*" in name:
        raise UsageError(f"{name!r} is a pattern, not one topic: purekafka topics alter and describe take patterns")
    return ConfigResource(kind, name, changes)


@Verb(
    "list: list the resources that have settings",
    arg("[KIND...]", f"only these kinds: {', '.join(_KINDS)}"),
    examples=["--sandbox", "topic --sandbox -q"],
    lists=True,
)
def _list(arguments: Namespace, connection: Connection) -> int:
    found = connection.admin().list_config_resources(arguments.kind or None)
    rows = [
        {"kind": kind.replace("_", "-"), "name": name or _DEFAULT}
        for kind, names in sorted(found.items())
        for name in sorted(names)
    ]
    return emit(arguments, rows, Column.of("kind", "name"))


@Verb(
    "describe: show the settings of a resource that differ from the defaults",
    _KIND,
    _NAME,
    arg("settings [SETTING...]", "only these settings", complete="setting"),
    arg("-a, --all", "show the settings at their defaults too"),
    arg("--documentation", "show what the broker documents about each"),
    examples=["topic events --all --sandbox", "broker 1 log.retention.hours --sandbox --format json"],
    lists=True,
)
def _describe(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    result = admin.describe_configs(
        [_resource(arguments)],
        include_synonyms=arguments.all,
        config_filter="all",
        include_documentation=arguments.documentation,
    )
    (described,) = result.resources
    rows = []
    for name, entry in sorted(described.configs.items()):
        default = entry.config_source.name in {"DEFAULT_CONFIG", "STATIC_BROKER_CONFIG"}
        if arguments.settings and name not in arguments.settings:
            continue
        if default and not (arguments.all or arguments.settings):
            continue
        rows.append(
            {
                "setting": name,
                "value": "***" if entry.is_sensitive and entry.value is None else entry.value,
                "source": entry.config_source.name.removesuffix("_CONFIG").lower().replace("_", "-"),
                "type": entry.config_type.name.lower(),
                "read_only": entry.read_only,
                "sensitive": entry.is_sensitive,
                "documentation": entry.documentation,
            }
        )
    missing = sorted(set(arguments.settings) - set(described.configs))
    for name in missing:
        complain(arguments, f"{arguments.kind} {arguments.name} has no setting {name!r}")
    if not rows and not missing and arguments.format == "table":
        complain(arguments, "every setting has its default; --all shows them")
    columns = Column.of("setting", "value", "source", *(["documentation"] if arguments.documentation else []))
    return emit(arguments, rows, columns) or (1 if missing else 0)


def _change(arguments: Namespace, connection: Connection, changes: dict[str, object]) -> int:
    admin = connection.admin()
    before = admin.describe_configs([_resource(arguments)], config_filter="all").resources[0].configs
    altered = admin.alter_configs([_resource(arguments, changes)], validate_only=True, raise_errors=False)
    (outcome,) = (one for kind in altered.values() for one in kind.values())
    if outcome.error is not None:
        raise CommandError(reason(outcome.error))
    rows = [
        {
            "setting": name,
            "value": before[name].value if name in before else None,
            "new_value": "***"
            if change is not None and _is_secret(name, before)
            else _new(change, before[name].value if name in before else None),
        }
        for name, change in sorted(changes.items())
    ]
    what = f"{arguments.kind} {arguments.name}"
    if not agreed(connection, f"Change {counted(len(changes), 'setting')} of {what}?", rows):
        return 0
    altered = admin.alter_configs([_resource(arguments, changes)], raise_errors=False)
    (outcome,) = (one for kind in altered.values() for one in kind.values())
    return report(arguments, {what: outcome}, f"changed {counted(len(changes), 'setting')}")


def _is_secret(name: str, known: Mapping[str, Any]) -> bool:
    """Whether a value must not be shown; the broker does not describe a setting of a listener that is not set yet."""
    if name in known:
        return bool(known[name].is_sensitive)
    return name.endswith(("password", "secret", "jaas.config", "keystore.key"))


def _new(change: object, before: str | None) -> str | None:
    """Return the value after a change, as far as it is known here."""
    from kafka.admin import AlterConfigOp

    if change is None:
        return "(default)"
    if not isinstance(change, tuple):
        return str(change)
    operation, value = change
    parts = [part for part in (before or "").split(",") if part]
    if operation is AlterConfigOp.APPEND:
        return ",".join([*parts, *(part for part in value.split(",") if part not in parts)])
    return ",".join(part for part in parts if part not in value.split(","))


def _changing(operation: str) -> Callable[[Namespace, Connection], int]:
    """Return the function of a verb that changes settings in one way."""

    def run(arguments: Namespace, connection: Connection) -> int:
        from kafka.admin import AlterConfigOp

        if operation == "unset":
            return _change(arguments, connection, dict.fromkeys(arguments.settings))
        given = setting_pairs(arguments.settings, "a setting")
        if operation == "set":
            return _change(arguments, connection, dict(given))
        how = AlterConfigOp[operation.upper()]
        return _change(arguments, connection, {name: (how, value) for name, value in given.items()})

    return run


def _changes(summary: str, form: str, *examples: str) -> Verb:
    shown = "settings with their values" if "=" in form else "names of settings"
    words = arg(f"settings {form}", shown, complete="setting")
    return Verb(summary, _KIND, _NAME, words, TABLE, examples=examples, asks=True)(_changing(summary.partition(":")[0]))


COMMAND = Noun(
    "configs",
    [
        _list,
        _describe,
        _changes(
            "set: set values, and leave all other settings as they are",
            "NAME=VALUE...",
            "topic events retention.ms=86400000 cleanup.policy=compact --yes --sandbox",
            "broker default log.retention.ms=1000000 --dry-run --sandbox",
        ),
        _changes(
            "append: add values to settings that are lists",
            "NAME=VALUE...",
            "topic events cleanup.policy=compact --yes --sandbox",
            "topic orders cleanup.policy=compact --dry-run --sandbox",
        ),
        _changes(
            "subtract: remove values from settings that are lists",
            "NAME=VALUE...",
            "topic events cleanup.policy=compact --yes --sandbox",
            "topic orders cleanup.policy=compact --dry-run --sandbox",
        ),
        _changes(
            "unset: take settings back to their defaults",
            "SETTING...",
            "topic events retention.ms --yes --sandbox",
            "broker default log.retention.ms --dry-run --sandbox",
        ),
    ],
)
