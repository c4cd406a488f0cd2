"""``purekafka acls``: list, add and delete permissions."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, cast

from kafka.cli.arguments import CommandError, UsageError, principal
from kafka.cli.connection import Connection
from kafka.cli.grammar import TABLE, Argument, Noun, Verb, arg
from kafka.cli.output import Column, agreed, counted, emit, report

if TYPE_CHECKING:
    from kafka.admin import ACL, ACLFilter

_ACL_COLUMNS: Final = Column.of(
    "principal", "permission", "operation", "resource_type=TYPE", "resource_name=RESOURCE", "pattern", "host"
)
_PRINCIPAL: Final = arg("--principal USER...", "a user, as ada or User:ada; may be repeated")
_PLACES: Final = (
    arg("--topic TOPIC...", "a topic, or * for all", complete="topic"),
    arg("--group GROUP...", "a group, or * for all", complete="group"),
    arg("--transactional-id ID...", "a transactional id, or * for all"),
    arg("--cluster", "the cluster as a whole"),
    arg("--operation NAME...", "read, write, create, delete, alter, describe, all and so on; may be repeated"),
    arg(
        "--pattern literal|prefixed|match|any",
        "how names are meant; match and any are for filters (literal; in filters any)",
    ),
)


def _acl_row(acl: ACL) -> dict[str, object]:
    pattern = acl.resource_pattern
    return {
        "principal": acl.principal,
        "permission": acl.permission_type.name.lower(),
        "operation": acl.operation.name.lower().replace("_", "-"),
        "resource_type": pattern.resource_type.name.lower().replace("_", "-"),
        "resource_name": pattern.resource_name,
        "pattern": pattern.pattern_type.name.lower(),
        "host": acl.host,
    }


def _resources(arguments: Namespace) -> list[tuple[str, str]]:
    found = [("topic", name) for name in arguments.topic]
    found += [("group", name) for name in arguments.group]
    found += [("transactional-id", name) for name in arguments.transactional_id]
    if arguments.cluster:
        found.append(("cluster", "kafka-cluster"))
    return found


def _acl_filters(arguments: Namespace) -> list[ACLFilter]:
    from kafka.admin import ACLFilter, ResourcePatternFilter

    resources: list[tuple[str, str | None]] = [*_resources(arguments)] or [("any", None)]
    principals: list[str | None] = [principal(word) for word in arguments.principal] or [None]
    operations = arguments.operation or ["any"]
    return [
        ACLFilter(user, None, operation, "any", ResourcePatternFilter(kind, name, arguments.pattern or "any"))
        for user in principals
        for operation in operations
        for kind, name in resources
    ]


@Verb(
    "list: list the ACLs, or the ones that match",
    [_PRINCIPAL, *_PLACES],
    examples=["--sandbox", "--topic events --operation write --pattern match --sandbox"],
    lists=True,
    epilog="--pattern match shows who may do something: also by a prefix, by * and by the operation all.",
)
def _list_acls(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    if arguments.operation and arguments.pattern == "match":
        arguments.operation = [*arguments.operation, "all"]
    found = {acl for one in _acl_filters(arguments) for acl in admin.describe_acls(one)[0]}
    rows = sorted((_acl_row(acl) for acl in found), key=lambda row: [str(value) for value in row.values()])
    return emit(arguments, rows, _ACL_COLUMNS)


def _named(acl: ACL) -> str:
    """Return what names an ACL in an outcome.

    >>> from kafka.admin import ACL, ResourcePattern
    >>> _named(ACL("User:ada", "*", "read", "allow", ResourcePattern("topic", "events")))
    'User:ada allow read topic events'
    """
    return " ".join(str(value) for value in list(_acl_row(acl).values())[:5])


def _bindings(arguments: Namespace, permission: str) -> list[ACL]:
    from kafka.admin import ResourcePattern, acl_bindings, consumer_acls, producer_acls

    principals = [principal(word) for word in arguments.principal]
    hosts, pattern = arguments.host or ["*"], arguments.pattern or "literal"
    if pattern not in {"literal", "prefixed"}:
        raise UsageError(f"--pattern {pattern} is for filters: an ACL is literal or prefixed")
    found: list[ACL] = []
    for user in principals:
        for host in hosts:
            if arguments.producer:
                found += producer_acls(
                    user, arguments.topic, transactional_ids=arguments.transactional_id, host=host, pattern_type=pattern
                )
            if arguments.consumer:
                found += consumer_acls(user, arguments.topic, arguments.group, host=host, pattern_type=pattern)
    resources = [ResourcePattern(kind, name, pattern) for kind, name in _resources(arguments)]
    if not resources:
        raise UsageError("name a resource: --topic, --group, --transactional-id or --cluster")
    if arguments.operation:
        found += acl_bindings(principals, arguments.operation, resources, hosts=hosts, permission_type=permission)
    if not found:
        raise UsageError("give --operation, --producer or --consumer")
    return list(dict.fromkeys(found))


def _add_acls(permission: str) -> Callable[[Namespace, Connection], int]:
    def run(arguments: Namespace, connection: Connection) -> int:
        acls = _bindings(arguments, permission)
        if not agreed(connection, f"Add {counted(len(acls), 'ACL')}?", [_acl_row(acl) for acl in acls], _ACL_COLUMNS):
            return 0
        result = connection.admin().create_acls(acls, raise_errors=False)
        return report(arguments, ((_named(acl), result.errors.get(acl), "added") for acl in acls))

    return run


@Verb(
    "delete: delete the ACLs that match, after showing them",
    [_PRINCIPAL, *_PLACES, *TABLE],
    examples=["--principal ada --topic events --yes -b localhost:9092", "--principal ada --dry-run -b localhost:9092"],
    asks=True,
)
def _delete_acls(arguments: Namespace, connection: Connection) -> int:
    admin = connection.admin()
    filters = _acl_filters(arguments)
    if not (_resources(arguments) or arguments.principal or arguments.operation):
        raise UsageError("say which ACLs: --principal, --operation, --topic and so on")
    found = list({acl for one in filters for acl in admin.describe_acls(one)[0]})
    if not found:
        raise CommandError("no ACL matches")
    if not agreed(connection, f"Delete {counted(len(found), 'ACL')}?", [_acl_row(acl) for acl in found], _ACL_COLUMNS):
        return 0
    # The ACLs that were shown, not the filters: others may match these by now.
    outcomes: list[tuple[str, object, str]] = []
    for acl, deleted, failure in admin.delete_acls(found, raise_errors=False):
        done = "deleted" if deleted else "was deleted already"
        outcomes.append((_named(cast("ACL", acl)), deleted[0][1] if deleted else failure, done))
    return report(arguments, outcomes)


def _new(permission: str) -> Sequence[Argument]:
    names = f"--principal, --{permission}-principal USER..."  # that of the other verb would say its contrary
    return [
        arg(names, "a user, as ada or User:ada, or User:* for all; may be repeated", required=True, dest="principal"),
        *_PLACES,
        arg("--host HOST...", "the client's address (any); may be repeated"),
        arg("--producer", "all that producers to the topics need"),
        arg("--consumer", "all that consumers of the topics in the groups need"),
        *TABLE,
    ]


COMMAND = Noun(
    "acls",
    [
        _list_acls,
        Verb(
            "allow: allow users to do something",
            _new("allow"),
            examples=[
                "--principal ada --consumer --topic events --group billing --yes --sandbox",
                "--principal ada --operation write --topic log --pattern prefixed --yes --sandbox",
            ],
            asks=True,
        )(_add_acls("allow")),
        Verb(
            "deny: forbid users to do something, even if another ACL allows it",
            _new("deny"),
            examples=[
                "--principal eve --operation all --topic '*' --yes --sandbox",
                "--principal eve --operation read --topic orders --dry-run --sandbox",
            ],
            asks=True,
        )(_add_acls("deny")),
        _delete_acls,
    ],
)
