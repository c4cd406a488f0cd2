"""What is asked of both brokers before and after a client has said who it is: each function is one script.

User alice with the password secret, mechanisms PLAIN, SCRAM-SHA-256 and OAUTHBEARER.
"""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable
from typing import Any

from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.sasl import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)

from .script import Connection, Script

ALICE = b"\0alice\0secret"
TOKEN_NOT_FOUND = 62


def shake(script: Script, mechanism: str, version: int = 1) -> Connection:
    here = script.connect()
    script.ask(here, SaslHandshakeRequest[version](mechanism))
    return here


def say(script: Script, here: Connection, words: bytes, version: int = 2) -> None:
    script.ask(here, SaslAuthenticateRequest[version](words))


def is_served(script: Script, here: Connection) -> None:
    script.ask(here, MetadataRequest[4]([], False))


def plain(script: Script) -> None:
    for version in range(3):
        here = shake(script, "PLAIN")
        say(script, here, ALICE, version)
        is_served(script, here)
        say(script, here, ALICE)
        script.ask(here, SaslHandshakeRequest[1]("PLAIN"))
        is_served(script, here)
    for words in (b"\0alice\0wrong", b"\0eve\0secret", b"bob\0alice\0secret", b"alice", b"", b"\0\0", b"\0alice\0"):
        here = shake(script, "PLAIN")
        say(script, here, words)
        is_served(script, here)


def out_of_turn(script: Script) -> None:
    here = script.connect()
    is_served(script, here)
    here = script.connect()
    say(script, here, ALICE)
    is_served(script, here)
    here = shake(script, "GSSAPI")
    is_served(script, here)
    here = shake(script, "PLAIN")
    script.ask(here, SaslHandshakeRequest[1]("PLAIN"))
    is_served(script, here)


def scram(script: Script) -> None:
    other = b"n,a=bob,n=alice,r=abc"
    for words in (b"n,,n=eve,r=abc", b"p=tls-unique,,n=alice,r=abc", b"nonsense", b"n,,n=alice", other):
        here = shake(script, "SCRAM-SHA-256")
        say(script, here, words)
        is_served(script, here)


def token(**claims: object) -> bytes:
    parts = [urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "none"}, claims)]
    return b"n,,\x01auth=Bearer " + b".".join(parts) + b".\x01\x01"


def oauthbearer(script: Script) -> None:
    now = time.time()
    for words in (
        token(sub="alice", iat=now, exp=now - 1),
        token(iat=now, exp=now + 100),
        token(sub="alice", iat=now),
        b"n,,\x01auth=Bearer nonsense\x01\x01",
        b"n,,\x01\x01",
    ):
        here = shake(script, "OAUTHBEARER")
        say(script, here, words)
        say(script, here, b"\x01")
        is_served(script, here)


SASL_SCRIPTS: list[Callable[[Script], None]] = [plain, out_of_turn, scram, oauthbearer]


# Sessions that last five seconds (KIP-368), which a script has for what is between two of its steps, however busy the
# machine is. Whoever authenticates anew within a second of the last time is cut off.


def entered(script: Script, user: str = "alice") -> Connection:
    """A connection that has authenticated."""
    here = shake(script, "PLAIN")
    say(script, here, f"\0{user}\0secret".encode())
    return here


def session_is_over(script: Script) -> None:
    here = entered(script)
    is_served(script, here)
    time.sleep(5.3)
    is_served(script, here)


def session_is_renewed(script: Script) -> None:
    here = entered(script)
    for _ in range(2):
        time.sleep(1.3)
        script.ask(here, SaslHandshakeRequest[1]("PLAIN"))
        say(script, here, ALICE)
        is_served(script, here)


def session_is_renewed_wrongly(script: Script) -> None:
    here = entered(script)
    time.sleep(1.3)
    script.ask(here, SaslHandshakeRequest[1]("SCRAM-SHA-256"))
    reply = script.ask(here, SaslAuthenticateRequest[2](b"n,,n=alice,r=abc"), note=False)
    if reply is not None:
        facts = reply.error_code, bool(reply.error_message), bool(reply.auth_bytes)
        script.notes.append(f"another mechanism {facts}")
    is_served(script, here)
    for words in (b"\0alice\0wrong", b"\0eve\0secret"):
        here = entered(script)
        time.sleep(1.3)
        script.ask(here, SaslHandshakeRequest[1]("PLAIN"))
        say(script, here, words)
        is_served(script, here)


# Delegation tokens (KIP-48)


def _note_token(script: Script, reply: object) -> None:
    """Note what is not random about a token."""
    names = ("error_code", "principal_type", "principal_name", "token_requester_principal_name")
    facts = [getattr(reply, name, None) for name in names]
    hmac = bytes(getattr(reply, "hmac", b""))
    issued = getattr(reply, "issue_timestamp_ms", 0)
    lives = [getattr(reply, name, 0) - issued for name in ("expiry_timestamp_ms", "max_timestamp_ms")]
    script.notes.append(f"token {facts} {len(hmac)} {lives}")


def _describe(script: Script, alice: Connection, eve: Connection, renewable: int) -> None:
    """Note what is shown: two tokens, so many with renewers, once the broker has heard of it."""

    def heard(reply: Any) -> bool:
        return len(reply.tokens) == 2 and sum(bool(token.renewers) for token in reply.tokens) == renewable

    script.wait(alice, lambda: DescribeDelegationTokenRequest[3](owners=None), heard)
    for version in (1, 3):
        for here in (alice, eve):
            reply = here.ask(DescribeDelegationTokenRequest[version](owners=None))
            found = [
                (token.principal_name, [tuple(renewer) for renewer in token.renewers], len(bytes(token.hmac)))
                for token in reply.tokens
            ]
            script.notes.append(f"described {reply.error_code} {sorted(found)}")


def tokens(script: Script) -> None:
    alice, eve = entered(script), entered(script, "eve")
    hmac = b""
    for version, lifetime, renewers in ((1, -1, []), (3, 600_000, [("User", "eve")]), (2, -1, [("Group", "all")])):
        request = CreateDelegationTokenRequest[version](renewers=renewers, max_lifetime_ms=lifetime)
        reply = alice.ask(request)
        _note_token(script, reply)
        if lifetime > 0:
            hmac = bytes(reply.hmac)
    _describe(script, alice, eve, 1)
    # The controller learns of a token by its log, as the broker does.
    renew = RenewDelegationTokenRequest[2](hmac=hmac, renew_period_ms=100_000)
    script.wait(alice, lambda: renew, lambda reply: reply.error_code != TOKEN_NOT_FOUND)
    for here in (alice, eve):
        for proof in (hmac, b"nonsense", b""):
            renewed = here.ask(RenewDelegationTokenRequest[2](hmac=proof, renew_period_ms=100_000))
            script.notes.append(f"renewed {renewed.error_code}")
    _note_token(script, eve.ask(CreateDelegationTokenRequest[3]("User", "alice", [], -1)))
    for proof in (b"nonsense", hmac):
        expired = eve.ask(ExpireDelegationTokenRequest[2](hmac=proof, expiry_time_period_ms=-1))
        script.notes.append(f"expired {expired.error_code}")
    _describe(script, alice, eve, 0)


TOKEN_SCRIPTS: list[Callable[[Script], None]] = [tokens]
SESSION_SCRIPTS: list[Callable[[Script], None]] = [session_is_over, session_is_renewed, session_is_renewed_wrongly]
