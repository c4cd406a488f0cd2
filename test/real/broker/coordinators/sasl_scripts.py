"""What is asked of both brokers before and after a client has said who it is: each function is one script.

User alice with the password secret, mechanisms PLAIN, SCRAM-SHA-256 and OAUTHBEARER.
"""

from __future__ import annotations

import json
import time
from base64 import urlsafe_b64encode
from collections.abc import Callable

from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest

from .script import Connection, Script

ALICE = b"\0alice\0secret"


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
