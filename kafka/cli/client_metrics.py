"""``purekafka metrics``: which metrics the clients of a cluster push to its brokers (KIP-714)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka.cli.arguments import CommandError, UsageError, count
from kafka.cli.connection import Connection
from kafka.cli.grammar import TABLE, Noun, Verb, arg
from kafka.cli.output import Column, agreed, counted, emit, print_table, report

if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Sequence

    from kafka.admin import KafkaAdminClient

__all__ = ["COMMAND"]

_COLUMNS: Final = [Column("name", "SUBSCRIPTION"), *Column.of("metrics", "interval_ms", "match")]


def _rows(admin: KafkaAdminClient, names: Sequence[str]) -> list[dict[str, object]]:
    """Return the subscriptions with their settings."""
    from kafka.admin import ConfigResource

    if not names:
        return []
    resources = [ConfigResource("client-metrics", name) for name in names]
    found = admin.describe_configs(resources, config_filter="all").resources
    rows: list[dict[str, object]] = []
    for resource in found:
        settings = {name: entry.value for name, entry in resource.configs.items()}
        interval = settings.get("interval.ms")
        rows.append(
            {
                "name": resource.resource_name,
                "metrics": _parts(settings.get("metrics")),
                "interval_ms": int(interval) if interval else None,
                "match": _parts(settings.get("match")),
            }
        )
    return sorted(rows, key=lambda row: str(row["name"]))


def _parts(text: str | None) -> list[str]:
    return [part for part in (text or "").split(",") if part]


def _describe(arguments: Namespace) -> int:
    with Connection(arguments) as connection:
        admin = connection.admin()
        known = sorted(admin.list_client_metrics_resources())
        chosen = [name for name in known if not arguments.names or name in arguments.names]
        code = report(arguments, ((name, _missing(name), "") for name in arguments.names if name not in known))
        rows = _rows(admin, chosen)
    return emit(arguments, rows, _COLUMNS) or code


def _missing(name: str) -> CommandError:
    return CommandError(f"subscription {name!r} does not exist")


def _set(arguments: Namespace) -> int:
    from kafka.admin import ConfigResource

    changes: dict[str, object] = {}
    if arguments.metrics:
        changes["metrics"] = ",".join(arguments.metrics)
    if arguments.interval is not None:
        changes["interval.ms"] = str(arguments.interval)
    if arguments.match:
        changes["match"] = ",".join(arguments.match)
    if not changes:
        raise UsageError("give --metrics, --interval or --match")
    with Connection(arguments) as connection:
        resource = ConfigResource("client-metrics", arguments.name, changes)
        altered = connection.admin().alter_configs([resource], validate_only=arguments.dry_run, raise_errors=False)
    (outcome,) = (one for kind in altered.values() for one in kind.values())
    shown = ", ".join(f"{name}={value}" for name, value in changes.items())
    would = "would have " if arguments.dry_run else ""
    return report(arguments, [(arguments.name, outcome.error, f"{would}{shown}")])


def _delete(arguments: Namespace) -> int:
    from kafka.admin import ConfigResource

    with Connection(arguments) as connection:
        admin = connection.admin()
        known = set(admin.list_client_metrics_resources())
        code = report(arguments, ((name, _missing(name), "") for name in arguments.names if name not in known))
        chosen = [name for name in dict.fromkeys(arguments.names) if name in known]
        if not chosen:
            return code
        print_table(arguments, _rows(admin, chosen), _COLUMNS)
        if not agreed(arguments, connection.cluster(), f"Delete {counted(len(chosen), 'subscription')}?"):
            return code
        unset = dict.fromkeys(("metrics", "interval.ms", "match"))
        altered = admin.alter_configs(
            [ConfigResource("client-metrics", name, unset) for name in chosen], raise_errors=False
        )
        outcomes = [(name, one.error, "deleted") for kind in altered.values() for name, one in kind.items()]
        return code | report(arguments, outcomes)


_NAMES: Final = arg("names NAME...", "the names of the subscriptions")

COMMAND = Noun(
    "metrics",
    "choose the metrics that clients push to the brokers",
    [
        Verb(
            "list",
            "list the subscriptions with their metrics, intervals and clients",
            _describe,
            [arg("names [NAME...]", "only these subscriptions")],
            ["purekafka metrics list --sandbox", "purekafka metrics list --sandbox --format json"],
            lists=True,
        ),
        Verb(
            "set",
            "create a subscription, or change it",
            _set,
            [
                arg("NAME", "the name of the subscription"),
                arg("--metrics PREFIX...", "metrics whose names begin so, '*' for all; may be repeated"),
                arg("--interval MS", "how often clients push, in milliseconds", count),
                arg(
                    "--match NAME=REGEX...",
                    "only clients whose client_id, client_software_name and so on match; may be repeated",
                ),
                arg("--dry-run", "have the broker check it, and change nothing"),
            ],
            [
                "purekafka metrics set latency --metrics org.apache.kafka.producer. --interval 30000 --sandbox",
                "purekafka metrics set shop --metrics '*' --match 'client_id=shop.*' --dry-run --sandbox",
            ],
            changes=True,
        ),
        Verb(
            "delete",
            "delete subscriptions, after showing them",
            _delete,
            [_NAMES, *TABLE],
            [
                "purekafka metrics delete latency --yes -b localhost:9092",
                "purekafka metrics delete latency --dry-run -b localhost:9092",
            ],
            asks=True,
        ),
    ],
)
