"""``purekafka quotas``: limits of users, clients and addresses."""

from __future__ import annotations

from argparse import Namespace
from typing import Final

from kafka.cli.arguments import UsageError, setting_pairs
from kafka.cli.connection import Connection
from kafka.cli.grammar import Noun, Verb, arg
from kafka.cli.output import Column, complain, emit, report

_TYPES: Final = (("user", "user"), ("client-id", "client"), ("ip", "ip"))
_DEFAULT: Final = "default"
_ENTITY: Final = (
    arg("--user USER", "the name of a user, or default"),
    arg("--client ID", "the id of a client, or default"),
    arg("--ip ADDRESS", "the address of a client, or default"),
)
_RATES: Final = "producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate"
_KEYS: Final = f"{_RATES}; of an address connection_creation_rate"
_DRY: Final = arg("--dry-run", "show what would be done, and do nothing")


def _entity(arguments: Namespace) -> dict[str, str | None]:
    given = {kind: getattr(arguments, name) for kind, name in _TYPES}
    return {kind: None if name == _DEFAULT else name for kind, name in given.items() if name is not None}


@Verb("list: list the quotas", _ENTITY, examples=["--sandbox", "--user ada --sandbox --format json"], lists=True)
def _list_quotas(arguments: Namespace, connection: Connection) -> int:
    found = connection.admin().describe_client_quotas(_entity(arguments) or None)
    rows = [
        {
            **{kind: entry.entity.get(kind, "") or (_DEFAULT if kind in entry.entity else None) for kind, _ in _TYPES},
            "quota": name,
            "value": value,
        }
        for entry in found
        for name, value in sorted(entry.quotas.items())
    ]
    return emit(arguments, rows, Column.of("user", "client-id=CLIENT", "ip", "quota", "value"))


@Verb(
    "set: set quotas of an entity",
    arg("quotas NAME=NUMBER...", _KEYS),
    _ENTITY,
    _DRY,
    examples=[
        "producer_byte_rate=1000000 --user ada --sandbox",
        "request_percentage=50 --client default --dry-run --sandbox",
    ],
    changes=True,
)
def _set_quotas(arguments: Namespace, connection: Connection) -> int:
    return _change_quotas(arguments, connection, unset=False)


def _change_quotas(arguments: Namespace, connection: Connection, *, unset: bool) -> int:
    entity = _entity(arguments)
    if not entity:
        raise UsageError("name an entity: --user, --client or --ip")
    changes: dict[str, float | None] = {}
    for word in arguments.quotas:
        name, equals, _ = word.partition("=")
        try:
            changes[name] = float(setting_pairs([word], "a quota")[name]) if equals else None
            if value := changes[name]:
                round(value)  # an OverflowError for inf, a ValueError for nan
        except (ValueError, OverflowError):
            raise UsageError(f"{word!r}: the value of a quota must be a number, or a size such as 5MB") from None
    if not unset and None in changes.values():
        raise UsageError("write quotas as NAME=NUMBER")
    admin = connection.admin()
    results = admin.alter_client_quotas([(entity, changes)], validate_only=arguments.dry_run, raise_errors=False)
    if report(arguments, [("quota", result, "") for result in results.failed]):
        if any("configuration key" in str(result.error) for result in results.failed):
            complain(arguments, f"the names of quotas are {_KEYS}")
        return 1
    shown = ", ".join(f"{name} unset" if value is None else f"{name}={value:.15g}" for name, value in changes.items())
    names = ", ".join(f"{kind} {name or _DEFAULT}" for kind, name in entity.items())
    return report(arguments, {names: None}, f"{'would have ' if arguments.dry_run else ''}{shown}")


@Verb(
    "unset: remove quotas of an entity",
    [arg("quotas NAME...", f"the quotas to remove: {_KEYS}"), *_ENTITY, _DRY],
    examples=["producer_byte_rate --user ada --sandbox", "consumer_byte_rate --client app --dry-run --sandbox"],
    changes=True,
)
def _unset_quotas(arguments: Namespace, connection: Connection) -> int:
    arguments.quotas = [word.partition("=")[0] for word in arguments.quotas]
    return _change_quotas(arguments, connection, unset=True)


COMMAND = Noun("quotas", [_list_quotas, _set_quotas, _unset_quotas])
