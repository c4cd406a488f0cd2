"""``purekafka acls``, ``users``, ``quotas`` and ``tokens``: permissions, passwords, limits and delegation tokens."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

from kafka.cli.connection import Connection
from kafka.cli.grammar import Argument, Noun, Verb
from kafka.cli.output import Column, agreed, complain, counted, emit, print_table
from kafka.cli.words import Failed, WrongWord, expand, reason

if TYPE_CHECKING:
    from argparse import Namespace

    from kafka.admin import ACL

__all__ = ["COMMAND"]

# ACLs…

_ACL_COLUMNS: Final = [
    *Column.of("principal", "permission", "operation"),
    Column("resource_type", "TYPE"),
    Column("resource_name", "RESOURCE"),
    *Column.of("pattern", "host"),
]


def _acl_row(acl: ACL) -> dict[str, Any]:
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


def _principal(word: str) -> str:
    return word if ":" in word else f"User:{word}"


def _resources(arguments: Namespace) -> list[tuple[str, str]]:
    found = [("topic", name) for name in arguments.topic]
    found += [("group", name) for name in arguments.group]
    found += [("transactional-id", name) for name in arguments.transactional_id]
    if arguments.cluster:
        found.append(("cluster", "kafka-cluster"))
    return found


def _acl_filters(arguments: Namespace) -> list[Any]:
    from kafka.admin import ACLFilter, ResourcePatternFilter

    resources: list[tuple[str, str | None]] = [*_resources(arguments)] or [("any", None)]
    principals: list[str | None] = [_principal(word) for word in arguments.principal] or [None]
    operations = arguments.operation or ["any"]
    return [
        ACLFilter(principal, None, operation, "any", ResourcePatternFilter(kind, name, arguments.pattern or "any"))
        for principal in principals
        for operation in operations
        for kind, name in resources
    ]


def _list_acls(arguments: Namespace) -> int:
    with Connection(arguments) as connection:
        admin = connection.admin()
        found = {acl for one in _acl_filters(arguments) for acl in admin.describe_acls(one)[0]}
    rows = sorted((_acl_row(acl) for acl in found), key=lambda row: [str(value) for value in row.values()])
    return emit(arguments, rows, _ACL_COLUMNS)


def _bindings(arguments: Namespace, permission: str) -> list[ACL]:
    from kafka.admin import ResourcePattern, acl_bindings, consumer_acls, producer_acls

    principals = [_principal(word) for word in arguments.principal]
    hosts, pattern = arguments.host or ["*"], arguments.pattern or "literal"
    if pattern not in {"literal", "prefixed"}:
        raise WrongWord(f"--pattern {pattern} is for filters: an ACL is literal or prefixed")
    found: list[ACL] = []
    for principal in principals:
        for host in hosts:
            if arguments.producer:
                found += producer_acls(
                    principal,
                    arguments.topic,
                    transactional_ids=arguments.transactional_id,
                    host=host,
                    pattern_type=pattern,
                )
            if arguments.consumer:
                found += consumer_acls(principal, arguments.topic, arguments.group, host=host, pattern_type=pattern)
    resources = [ResourcePattern(kind, name, pattern) for kind, name in _resources(arguments)]
    if not resources:
        raise WrongWord("name a resource: --topic, --group, --transactional-id or --cluster")
    if arguments.operation:
        found += acl_bindings(principals, arguments.operation, resources, hosts=hosts, permission_type=permission)
    if not found:
        raise WrongWord("give --operation, --producer or --consumer")
    return list(dict.fromkeys(found))


def _add_acls(permission: str) -> Any:
    def run(arguments: Namespace) -> int:
        acls = _bindings(arguments, permission)
        print_table(arguments, [_acl_row(acl) for acl in acls], _ACL_COLUMNS)
        if arguments.dry_run:
            complain(arguments, "nothing was changed (--dry-run)")
            return 0
        with Connection(arguments) as connection:
            result = connection.admin().create_acls(acls)
        for error in result.errors.values():
            complain(arguments, error)
        return 1 if result.errors else 0

    return run


def _delete_acls(arguments: Namespace) -> int:
    with Connection(arguments) as connection:
        admin = connection.admin()
        filters = _acl_filters(arguments)
        if not (_resources(arguments) or arguments.principal or arguments.operation):
            raise WrongWord("say which ACLs: --principal, --operation, --topic and so on")
        found = list({acl for one in filters for acl in admin.describe_acls(one)[0]})
        if not found:
            raise Failed("no ACL matches")
        print_table(arguments, [_acl_row(acl) for acl in found], _ACL_COLUMNS)
        if not agreed(arguments, f"Delete {counted(len(found), 'ACL')}?"):
            return 0
        code = 0
        for _, deleted, error in admin.delete_acls(filters):
            for one in [*(one for _, one in deleted), error]:
                if getattr(one, "errno", 0):
                    complain(arguments, getattr(one, "description", one.__name__))
                    code = 1
        return code


_PRINCIPAL: Final = Argument(
    "--principal",
    action="append",
    default=[],
    metavar="USER",
    help="a user, as ada or User:ada; may be repeated",
)
_PLACES: Final = (
    Argument("--topic", action="append", default=[], metavar="TOPIC", complete="topic", help="a topic, or * for all"),
    Argument("--group", action="append", default=[], metavar="GROUP", complete="group", help="a group, or * for all"),
    Argument("--transactional-id", action="append", default=[], metavar="ID", help="a transactional id, or * for all"),
    Argument("--cluster", action="store_true", help="the cluster as a whole"),
    Argument(
        "--operation",
        action="append",
        default=[],
        metavar="NAME",
        help="read, write, create, delete, alter, describe, all and so on; may be repeated",
    ),
    Argument(
        "--pattern",
        choices=("literal", "prefixed", "match", "any"),
        help="how names are meant; match and any are for filters (literal; in filters any)",
    ),
)
_PLAIN: Final = (
    Argument("--no-headers", action="store_true", help="leave the heading of the table out"),
    Argument("--color", choices=("auto", "always", "never"), default="auto", help="when to use colours (auto)"),
)
_DRY: Final = Argument("--dry-run", action="store_true", help="show what would be done, and do nothing")
_NEW: Final = (
    Argument(
        "--principal",
        action="append",
        required=True,
        metavar="USER",
        help="a user, as ada or User:ada, or User:* for all; may be repeated",
    ),
    *_PLACES,
    Argument("--host", action="append", default=[], metavar="HOST", help="the client's address (any); may be repeated"),
)
_SETS: Final = (
    Argument("--producer", action="store_true", help="all that producers to the topics need"),
    Argument("--consumer", action="store_true", help="all that consumers of the topics in the groups need"),
)


# Users…


def _list_users(arguments: Namespace) -> int:
    with Connection(arguments) as connection:
        found = connection.admin().describe_user_scram_credentials(arguments.users or None)
    rows, code = [], 0
    for user, credentials in sorted(found.items()):
        if credentials.error is not None:
            complain(arguments, f"user {user!r}: {getattr(credentials.error, 'description', credentials.error)}")
            code = 1
            continue
        rows += [
            {"user": user, "mechanism": info.mechanism.name.replace("_", "-"), "iterations": info.iterations}
            for info in credentials.credential_infos
        ]
    return emit(arguments, rows, Column.of("user", "mechanism", "iterations")) or code


def _set_password(arguments: Namespace) -> int:
    from kafka.admin import UserScramCredentialUpsertion

    if arguments.password is not None:
        password = expand(arguments.password, "--password")
        if password == arguments.password:
            raise WrongWord("--password takes @env:NAME, @FILE or @-: a password here would show in ps and the history")
    elif sys.stdin.isatty():
        from getpass import getpass

        password = getpass(f"New password of {arguments.user}: ")
        if getpass("Again: ") != password:
            raise WrongWord("the passwords differ")
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise WrongWord("the password is empty")
    changes = [
        UserScramCredentialUpsertion(arguments.user, mechanism, password, arguments.iterations)
        for mechanism in arguments.mechanism or ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    ]
    return _alter_users(arguments, changes, "password set")


def _delete_user(arguments: Namespace) -> int:
    from kafka.admin import UserScramCredentialDeletion

    with Connection(arguments) as connection:
        found = connection.admin().describe_user_scram_credentials([arguments.user])[arguments.user]
        if found.error is not None:
            raise Failed(f"there is no user {arguments.user!r} with a password for SCRAM")
        mechanisms = [info.mechanism for info in found.credential_infos]
        shown = ", ".join(mechanism.name.replace("_", "-") for mechanism in mechanisms)
        print(f"{arguments.user}: {shown}")
        if not agreed(arguments, f"Delete the passwords of {arguments.user}?"):
            return 0
        changes = [UserScramCredentialDeletion(arguments.user, mechanism) for mechanism in mechanisms]
        return _apply_users(arguments, connection, changes, "deleted")


def _alter_users(arguments: Namespace, changes: list[Any], done: str) -> int:
    with Connection(arguments) as connection:
        return _apply_users(arguments, connection, changes, done)


def _apply_users(arguments: Namespace, connection: Connection, changes: list[Any], done: str) -> int:
    for change in changes:  # brokers refuse two changes of a user in one request
        for outcome in connection.admin().alter_user_scram_credentials([change]).values():
            if outcome is not None and outcome.error is not None:
                raise Failed(reason(outcome.error))
    print(f"{arguments.user}: {done}")
    return 0


# Quotas…

_TYPES: Final = (("user", "user"), ("client-id", "client"), ("ip", "ip"))
_DEFAULT: Final = "default"


def _entity(arguments: Namespace) -> dict[str, str | None]:
    given = {kind: getattr(arguments, name) for kind, name in _TYPES}
    return {kind: None if name == _DEFAULT else name for kind, name in given.items() if name is not None}


def _list_quotas(arguments: Namespace) -> int:
    with Connection(arguments) as connection:
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
    return emit(
        arguments, rows, [*Column.of("user"), Column("client-id", "CLIENT"), *Column.of("ip", "quota", "value")]
    )


def _change_quotas(arguments: Namespace) -> int:
    entity = _entity(arguments)
    if not entity:
        raise WrongWord("name an entity: --user, --client or --ip")
    changes: dict[str, float | None] = {}
    for word in arguments.quotas:
        name, equals, value = word.partition("=")
        try:
            changes[name] = float(value) if equals else None
        except ValueError:
            raise WrongWord(f"{word!r}: the value of a quota must be a number") from None
    if not arguments.unset and None in changes.values():
        raise WrongWord("write quotas as NAME=NUMBER")
    with Connection(arguments) as connection:
        admin = connection.admin()
        results = admin.alter_client_quotas([(entity, changes)], validate_only=arguments.dry_run, raise_errors=False)
    for result in results.failed:
        complain(arguments, result.error)
    if results.failed:
        return 1
    shown = ", ".join(f"{name} unset" if value is None else f"{name}={value:g}" for name, value in changes.items())
    names = ", ".join(f"{kind} {name or _DEFAULT}" for kind, name in entity.items())
    print(f"{names}: {'would have ' if arguments.dry_run else ''}{shown}")
    return 0


def _set_quotas(arguments: Namespace) -> int:
    arguments.unset = False
    return _change_quotas(arguments)


def _unset_quotas(arguments: Namespace) -> int:
    arguments.unset = True
    arguments.quotas = [word.partition("=")[0] for word in arguments.quotas]
    return _change_quotas(arguments)


_ENTITY: Final = (
    Argument("--user", metavar="USER", help="the name of a user, or default"),
    Argument("--client", metavar="ID", help="the id of a client, or default"),
    Argument("--ip", metavar="ADDRESS", help="the address of a client, or default"),
)


# Tokens…

_TOKEN_COLUMNS: Final = [
    Column("token_id", "TOKEN"),
    *Column.of("owner", "renewers"),
    Column("expires", "EXPIRES"),
    Column("hmac", "HMAC"),
]


def _token_row(token: Any, *, secret: bool) -> dict[str, Any]:
    from base64 import b64encode

    return {
        "token_id": token.token_id,
        "owner": token.owner,
        "renewers": list(token.renewers),
        "issued": _moment(token.issue_timestamp),
        "expires": _moment(token.expiry_timestamp),
        "latest": _moment(token.max_timestamp),
        "hmac": b64encode(token.hmac).decode() if secret else "***",
    }


def _moment(milliseconds: int) -> str:
    from datetime import datetime, timezone

    return datetime.fromtimestamp(milliseconds / 1000, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def _list_tokens(arguments: Namespace) -> int:
    with Connection(arguments) as connection:
        found = connection.admin().describe_delegation_token([_principal(one) for one in arguments.owner] or None)
    return emit(arguments, [_token_row(token, secret=arguments.show_secrets) for token in found], _TOKEN_COLUMNS)


def _create_token(arguments: Namespace) -> int:
    from kafka.cli.ranges import parse_duration

    lifetime = -1
    if arguments.lifetime is not None:
        seconds = parse_duration(arguments.lifetime)
        if seconds is None:
            raise WrongWord(f"--lifetime takes a duration such as 12h or 7d, not {arguments.lifetime!r}")
        lifetime = round(seconds * 1000)
    with Connection(arguments) as connection:
        token = connection.admin().create_delegation_token(
            [_principal(one) for one in arguments.renewer],
            lifetime,
            _principal(arguments.owner) if arguments.owner else None,
        )
    return emit(arguments, [_token_row(token, secret=True)], _TOKEN_COLUMNS)


def _hmac(arguments: Namespace) -> bytes:
    import binascii
    from base64 import b64decode

    text = expand(arguments.hmac, "HMAC")
    try:
        return b64decode(text, validate=True)
    except binascii.Error:
        raise WrongWord("the HMAC of a token is in base64, as tokens create prints it") from None


def _renew_token(arguments: Namespace) -> int:
    with Connection(arguments) as connection:
        print(f"expires {_moment(connection.admin().renew_delegation_token(_hmac(arguments)))}")
    return 0


def _expire_token(arguments: Namespace) -> int:
    if not agreed(arguments, "Expire the token now?"):
        return 0
    with Connection(arguments) as connection:
        print(f"expired {_moment(connection.admin().expire_delegation_token(_hmac(arguments)))}")
    return 0


_HMAC: Final = Argument("hmac", metavar="HMAC", help="its HMAC in base64, or @env:NAME, @FILE, @-")
_SECURED: Final = "Brokers refuse tokens to clients without authentication: the examples need a secured cluster."

COMMAND = {
    "acls": Noun(
        "acls",
        "list, add and delete permissions",
        [
            Verb(
                "list",
                "list the ACLs, or the ones that match",
                _list_acls,
                [_PRINCIPAL, *_PLACES],
                [
                    "purekafka acls list --sandbox",
                    "purekafka acls list --topic events --pattern match --sandbox -f json",
                ],
                lists=True,
            ),
            Verb(
                "allow",
                "allow users to do something",
                _add_acls("allow"),
                [*_NEW, *_SETS, _DRY, *_PLAIN],
                [
                    "purekafka acls allow --principal ada --consumer --topic events --group billing --sandbox",
                    "purekafka acls allow --principal ada --operation write --topic log- --pattern prefixed --sandbox",
                ],
            ),
            Verb(
                "deny",
                "deny users to do something, against all that is allowed",
                _add_acls("deny"),
                [*_NEW, *_SETS, _DRY, *_PLAIN],
                [
                    "purekafka acls deny --principal eve --operation all --topic '*' --sandbox",
                    "purekafka acls deny --principal eve --operation read --topic orders --dry-run --sandbox",
                ],
            ),
            Verb(
                "delete",
                "delete the ACLs that match, after showing them",
                _delete_acls,
                [_PRINCIPAL, *_PLACES, *_PLAIN],
                [
                    "purekafka acls delete --principal ada --topic events --yes -b localhost:9092",
                    "purekafka acls delete --principal ada --dry-run -b localhost:9092",
                ],
                asks=True,
            ),
        ],
    ),
    "users": Noun(
        "users",
        "list users of SCRAM, set and delete their passwords",
        [
            Verb(
                "list",
                "list the users that have a password for SCRAM",
                _list_users,
                [Argument("users", metavar="USER", nargs="*", help="only these users")],
                ["purekafka users list --sandbox", "purekafka users list --sandbox --format json"],
                lists=True,
            ),
            Verb(
                "set-password",
                "set the password of a user, from the terminal, standard input, a file or the environment",
                _set_password,
                [
                    Argument("user", metavar="USER", help="the name of the user"),
                    Argument("--password", metavar="@SOURCE", help="@env:NAME, @FILE or @- (ask, or standard input)"),
                    Argument(
                        "--mechanism",
                        action="append",
                        choices=("SCRAM-SHA-256", "SCRAM-SHA-512"),
                        help="only this mechanism; may be repeated",
                    ),
                    Argument("--iterations", type=int, default=8192, metavar="N", help="how often it is hashed (8192)"),
                ],
                [
                    "echo secret | purekafka users set-password ada --sandbox",
                    "echo secret | purekafka users set-password ada --mechanism SCRAM-SHA-512 --sandbox",
                ],
            ),
            Verb(
                "delete",
                "delete the passwords of a user",
                _delete_user,
                [Argument("user", metavar="USER", help="the name of the user")],
                [
                    "purekafka users delete ada --yes -b localhost:9092",
                    "purekafka users delete ada --dry-run -b localhost:9092",
                ],
                asks=True,
            ),
        ],
    ),
    "quotas": Noun(
        "quotas",
        "list, set and unset limits of users, clients and addresses",
        [
            Verb(
                "list",
                "list the quotas",
                _list_quotas,
                _ENTITY,
                ["purekafka quotas list --sandbox", "purekafka quotas list --user ada --sandbox --format json"],
                lists=True,
            ),
            Verb(
                "set",
                "set quotas of an entity",
                _set_quotas,
                [
                    Argument(
                        "quotas",
                        metavar="NAME=NUMBER",
                        nargs="+",
                        help="producer_byte_rate, consumer_byte_rate, request_percentage and so on",
                    ),
                    *_ENTITY,
                    _DRY,
                ],
                [
                    "purekafka quotas set producer_byte_rate=1000000 --user ada --sandbox",
                    "purekafka quotas set request_percentage=50 --client default --dry-run --sandbox",
                ],
            ),
            Verb(
                "unset",
                "remove quotas of an entity",
                _unset_quotas,
                [
                    Argument("quotas", metavar="NAME", nargs="+", help="names of quotas to remove"),
                    *_ENTITY,
                    _DRY,
                ],
                [
                    "purekafka quotas unset producer_byte_rate --user ada --sandbox",
                    "purekafka quotas unset consumer_byte_rate --client app --dry-run --sandbox",
                ],
            ),
        ],
    ),
    "tokens": Noun(
        "tokens",
        "create, renew, expire and list delegation tokens",
        [
            Verb(
                "list",
                "list the tokens of this user, or of others",
                _list_tokens,
                [
                    Argument("--owner", action="append", default=[], metavar="USER", help="only tokens of this user"),
                    Argument("--show-secrets", action="store_true", help="print the HMACs, which are passwords"),
                ],
                ["purekafka tokens list -b b1:9093", "purekafka tokens list --owner ada --format json -b b1:9093"],
                lists=True,
                epilog=_SECURED,
            ),
            Verb(
                "create",
                "create a token and print it with its HMAC, which is its password",
                _create_token,
                [
                    Argument("--owner", metavar="USER", help="the user that the token is for (this one)"),
                    Argument("--renewer", action="append", default=[], metavar="USER", help="a user that may renew it"),
                    Argument("--lifetime", metavar="DURATION", help="how long it can be renewed, such as 7d"),
                ],
                ["purekafka tokens create -b b1:9093", "purekafka tokens create --lifetime 7d -f json -b b1:9093"],
                lists=True,
                epilog=_SECURED,
            ),
            Verb(
                "renew",
                "renew a token",
                _renew_token,
                [_HMAC],
                ["purekafka tokens renew @hmac.txt -b b1:9093", "purekafka token renew @env:HMAC -b b1:9093"],
                epilog=_SECURED,
            ),
            Verb(
                "expire",
                "expire a token now",
                _expire_token,
                [_HMAC],
                [
                    "purekafka tokens expire @hmac.txt --yes -b b1:9093",
                    "purekafka token expire @env:HMAC -y -b b1:9093",
                ],
                asks=True,
                epilog=_SECURED,
            ),
        ],
    ),
}
