"""``purekafka users`` and ``tokens``: passwords for SCRAM, and delegation tokens."""

from __future__ import annotations

import sys
from argparse import Namespace
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kafka.cli.arguments import CommandError, UsageError, expand, principal
from kafka.cli.connection import Connection
from kafka.cli.grammar import Noun, Verb, arg
from kafka.cli.output import Column, agreed, emit, report, report_failed

if TYPE_CHECKING:
    from kafka.admin import DelegationToken, UserScramCredentialDeletion, UserScramCredentialUpsertion

_HMAC: Final = arg("HMAC", "its HMAC in base64, or @env:NAME, @FILE, @-")
_MECHANISM: Final = arg("--mechanism SCRAM-SHA-256|SCRAM-SHA-512...", "only this mechanism; may be repeated")
_SECURED: Final = "Brokers refuse tokens to clients without authentication: the examples need a secured cluster."


# Users…


@Verb(
    "list: list the users that have a password for SCRAM",
    arg("users [USER...]", "only these users"),
    examples=["--sandbox", "--sandbox --format json"],
    lists=True,
)
def _list_users(arguments: Namespace, connection: Connection) -> int:
    found = connection.admin().describe_user_scram_credentials(arguments.users or None)
    code = report_failed(arguments, {f"user {user!r}": one for user, one in found.items()})
    rows = [
        {"user": user, "mechanism": info.mechanism.name.replace("_", "-"), "iterations": info.iterations}
        for user, credentials in sorted(found.items())
        for info in credentials.credential_infos or ()
    ]
    return emit(arguments, rows, Column.of("user", "mechanism", "iterations")) or code


@Verb(
    "set-password: set the password of a user, from the terminal, standard input, a file or the environment",
    arg("USER", "the name of the user"),
    arg("--password @SOURCE", "@env:NAME, @FILE or @- (ask, or standard input)"),
    _MECHANISM,
    arg("--iterations N", "how often it is hashed (8192)", int, default=8192),
    examples=[
        "echo secret | purekafka users set-password ada --sandbox",
        "echo secret | purekafka users set-password ada --mechanism SCRAM-SHA-512 --sandbox",
    ],
    changes=True,
)
def _set_password(arguments: Namespace, connection: Connection) -> int:
    from kafka.admin import UserScramCredentialUpsertion

    if arguments.password is not None:
        password = expand(arguments.password, "--password")
        if password == arguments.password:
            raise UsageError("--password takes @env:NAME, @FILE or @-: ps and the history would show a password here")
    elif sys.stdin.isatty():
        from getpass import getpass

        password = getpass(f"New password of {arguments.user}: ")
        if getpass("Again: ") != password:
            raise UsageError("the passwords differ")
    else:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise UsageError("the password is empty")
    changes = [
        UserScramCredentialUpsertion(arguments.user, mechanism, password, arguments.iterations)
        for mechanism in arguments.mechanism or ["SCRAM-SHA-256", "SCRAM-SHA-512"]
    ]
    return _alter_users(arguments, connection, changes, "password set")


@Verb(
    "delete: delete the passwords of a user",
    arg("USER", "the name of the user"),
    _MECHANISM,
    examples=["ada --yes -b localhost:9092", "ada --mechanism SCRAM-SHA-256 --dry-run -b localhost:9092"],
    asks=True,
)
def _delete_user(arguments: Namespace, connection: Connection) -> int:
    from kafka.admin import UserScramCredentialDeletion

    found = connection.admin().describe_user_scram_credentials([arguments.user])[arguments.user]
    if found.error is not None:
        raise CommandError(f"user {arguments.user!r} has no password for SCRAM")
    mechanisms = {info.mechanism.name.replace("_", "-"): info.mechanism for info in found.credential_infos}
    if missing := [name for name in arguments.mechanism if name not in mechanisms]:
        raise CommandError(f"user {arguments.user!r} has no password for {' and '.join(missing)}")
    chosen = arguments.mechanism or list(mechanisms)
    print(f"{arguments.user}: {', '.join(chosen)}")
    if not agreed(connection, f"Delete the passwords of {arguments.user}?"):
        return 0
    changes = [UserScramCredentialDeletion(arguments.user, mechanisms[name]) for name in dict.fromkeys(chosen)]
    return _alter_users(arguments, connection, changes, "deleted")


def _alter_users(
    arguments: Namespace,
    connection: Connection,
    changes: Sequence[UserScramCredentialDeletion | UserScramCredentialUpsertion],
    done: str,
) -> int:
    failed: dict[str, object] = {}
    changed: list[str] = []
    for change in changes:  # brokers refuse two changes of a user in one request
        name = change.mechanism.name.replace("_", "-")
        (outcome,) = connection.admin().alter_user_scram_credentials([change], raise_errors=False).values()
        if outcome is not None and outcome.error is not None:
            failed[f"{arguments.user} {name}"] = outcome.error
        else:
            changed.append(name)
    if not failed:
        return report(arguments, {arguments.user: None}, done)
    report(arguments, {f"{arguments.user} {name}": None for name in changed}, done)
    return report_failed(arguments, failed)


# Tokens…

_TOKEN_COLUMNS: Final = Column.of("token_id=TOKEN", "owner", "renewers", "expires", "hmac")


def _token_row(token: DelegationToken, *, secret: bool) -> dict[str, object]:
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


@Verb(
    "list: list the tokens of this user, or of others",
    arg("--owner USER...", "only tokens of this user"),
    arg("--show-secrets", "print the HMACs, which are passwords"),
    examples=["-b b1:9093", "--owner ada --format json -b b1:9093"],
    lists=True,
    epilog=_SECURED,
)
def _list_tokens(arguments: Namespace, connection: Connection) -> int:
    found = connection.admin().describe_delegation_token([principal(one) for one in arguments.owner] or None)
    return emit(arguments, [_token_row(token, secret=arguments.show_secrets) for token in found], _TOKEN_COLUMNS)


@Verb(
    "create: create a token and print it with its HMAC, which is its password",
    arg("--owner USER", "the user that the token is for (this one)"),
    arg("--renewer USER...", "a user that may renew it"),
    arg("--lifetime DURATION", "how long it can be renewed, such as 7d"),
    examples=["-b b1:9093", "--lifetime 7d -f json -b b1:9093"],
    lists=True,
    epilog=_SECURED,
)
def _create_token(arguments: Namespace, connection: Connection) -> int:
    from kafka.cli.ranges import parse_duration

    lifetime = -1
    if arguments.lifetime is not None:
        seconds = parse_duration(arguments.lifetime)
        if seconds is None:
            raise UsageError(f"--lifetime takes a duration such as 12h or 7d, not {arguments.lifetime!r}")
        lifetime = round(seconds * 1000)
    token = connection.admin().create_delegation_token(
        [principal(one) for one in arguments.renewer], lifetime, principal(arguments.owner) if arguments.owner else None
    )
    return emit(arguments, [_token_row(token, secret=True)], _TOKEN_COLUMNS)


def _hmac(arguments: Namespace) -> bytes:
    import binascii
    from base64 import b64decode

    text = expand(arguments.hmac, "HMAC")
    try:
        return b64decode(text, validate=True)
    except binascii.Error:
        raise UsageError("the HMAC of a token is in base64, as tokens create prints it") from None


@Verb(
    "renew: renew a token",
    _HMAC,
    examples=["@hmac.txt -b b1:9093", "purekafka token renew @env:HMAC -b b1:9093"],
    epilog=_SECURED,
    changes=True,
)
def _renew_token(arguments: Namespace, connection: Connection) -> int:
    expires = _moment(connection.admin().renew_delegation_token(_hmac(arguments)))
    return report(arguments, {"token": None}, f"expires {expires}")


@Verb(
    "expire: expire a token now",
    _HMAC,
    examples=["@hmac.txt --yes -b b1:9093", "purekafka token expire @env:HMAC -y -b b1:9093"],
    asks=True,
    epilog=_SECURED,
)
def _expire_token(arguments: Namespace, connection: Connection) -> int:
    if not agreed(connection, "Expire the token now?"):
        return 0
    expired = _moment(connection.admin().expire_delegation_token(_hmac(arguments)))
    return report(arguments, {"token": None}, f"expired {expired}")


COMMAND = {
    "users": Noun("users", [_list_users, _set_password, _delete_user]),
    "tokens": Noun("tokens", [_list_tokens, _create_token, _renew_token, _expire_token]),
}
