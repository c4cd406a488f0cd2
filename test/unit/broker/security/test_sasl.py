"""SASL on the broker's side: mechanisms, the order of steps, and authenticating again."""

from __future__ import annotations

import hashlib
import hmac
import itertools
import json
from base64 import b64decode, b64encode, urlsafe_b64encode
from collections.abc import Callable
from contextlib import suppress
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafka.broker.security import sasl
from kafka.broker.security.credentials import Credentials
from kafka.broker.security.sasl import Event, SaslSession, State, next_state
from kafka.broker.security.tls import principal_of
from kafka.errors import (
    IllegalSaslStateError,
    IllegalStateError,
    KafkaError,
    SaslAuthenticationFailedError,
    UnsupportedSaslMechanismError,
)

NOW = 1_000_000


def session(
    *, mechanism: str = "PLAIN", lenient: bool = False, clock: Callable[[], float] = lambda: NOW
) -> SaslSession:
    credentials = Credentials()
    credentials.set_password(1, "al,i=ce", "secret", b"salt")

    def begin(name: str) -> sasl.Exchange | None:
        return {
            "PLAIN": lambda: sasl.plain({"alice": "secret", "bob": "b"}),
            "SCRAM-SHA-256": lambda: sasl.scram(
                "SCRAM-SHA-256", "sha256", lambda user: credentials.get(1, user), lambda: "more", lenient=lenient
            ),
            "OAUTHBEARER": lambda: sasl.oauthbearer(lambda: NOW),
        }.get(name, lambda: None)()

    made = SaslSession(begin, clock)
    made.handshake(mechanism)
    return made


def test_plain_lets_in_who_knows_the_password() -> None:
    here = session()
    step = here.token(b"\0alice\0secret")
    assert step.user is not None
    assert (step.user.name, step.words, here.state) == ("alice", b"", State.DONE)


@pytest.mark.parametrize(
    "said",
    [b"\0alice\0wrong", b"\0eve\0secret", b"\0\0", b"", b"alice", b"bob\0alice\0secret", b"\xff\xfe", b"\0eve\0"],
)
def test_plain_refuses_everyone_else(said: bytes) -> None:
    here = session()
    with pytest.raises(SaslAuthenticationFailedError):
        here.token(said)
    assert here.state is State.FAILED


def scram_client(
    here: SaslSession, password: str, *, header: str = "n,,", user: str = "al=2Ci=3Dce", before_nonce: str = ""
) -> bytes:
    """RFC 5802's client, written down from the document; returns the server's last words."""
    bare = f"n={user},r=nonce"
    first = here.token((header + bare).encode()).words.decode()
    attributes = dict(part.split("=", 1) for part in first.split(","))
    assert attributes["r"] == "noncemore"
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), b64decode(attributes["s"]), int(attributes["i"]))
    client_key = hmac.digest(salted, b"Client Key", "sha256")
    without_proof = f"c={b64encode(header.encode()).decode()},r={before_nonce}{attributes['r']}"
    message = f"{bare},{first},{without_proof}".encode()
    signature = hmac.digest(hashlib.sha256(client_key).digest(), message, "sha256")
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    last = here.token(f"{without_proof},p={b64encode(proof).decode()}".encode()).words
    expected = hmac.digest(hmac.digest(salted, b"Server Key", "sha256"), message, "sha256")
    assert last == b"v=" + b64encode(expected)
    return last


def test_scram_proves_both_sides() -> None:
    here = session(mechanism="SCRAM-SHA-256")
    scram_client(here, "secret")
    assert here.user is not None
    assert here.user.name == "al,i=ce"


def test_scram_refuses_a_wrong_password_and_an_unknown_user() -> None:
    with pytest.raises(SaslAuthenticationFailedError, match="invalid credentials with SASL mechanism SCRAM-SHA-256"):
        scram_client(session(mechanism="SCRAM-SHA-256"), "wrong")
    with pytest.raises(SaslAuthenticationFailedError):
        scram_client(session(mechanism="SCRAM-SHA-256"), "secret", user="eve")


def test_scram_takes_a_repeated_nonce_as_kafka_before_4() -> None:
    with pytest.raises(
        SaslAuthenticationFailedError, match=r"as librdkafka before 2.6.1 does .* upgrade the client, use"
    ):
        scram_client(session(mechanism="SCRAM-SHA-256"), "secret", before_nonce="nonce")
    here = session(mechanism="SCRAM-SHA-256", lenient=True)
    scram_client(here, "secret", before_nonce="nonce")
    assert here.user is not None
    with pytest.raises(SaslAuthenticationFailedError):
        scram_client(session(mechanism="SCRAM-SHA-256", lenient=True), "wrong", before_nonce="nonce")
    with pytest.raises(SaslAuthenticationFailedError):
        scram_client(session(mechanism="SCRAM-SHA-256", lenient=True), "secret", before_nonce="x,")


SAID = st.one_of(st.binary(max_size=40), st.sampled_from([b"n,,n=a,r=b", b"c=biws,r=bmore,p=AA=="]))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "OAUTHBEARER"])
@settings(deadline=None)  # others may use the machine
@given(said=st.lists(SAID, max_size=4))
def test_arbitrary_exchanges_raise_only_errors_of_kafka(mechanism: str, said: list[bytes]) -> None:
    here = session(mechanism=mechanism)
    with suppress(KafkaError):
        for each in said:
            here.token(each)
    assert here.user is None
    assert here.state in (State.TOKENS, State.FAILED)


def token(claims: dict[str, Any], algorithm: str = "none") -> bytes:
    parts = [urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": algorithm}, claims)]
    return b"n,,\x01auth=Bearer " + b".".join(parts) + b".\x01\x01"


def test_unsecured_tokens_name_the_user_and_end_with_the_session() -> None:
    here = session(mechanism="OAUTHBEARER")
    step = here.token(token({"sub": "alice", "exp": 2000}))
    assert step.user is not None
    assert (step.user.name, step.user.expires_ms) == ("alice", 2_000_000)
    # From its first millisecond to the one before its last.
    assert session(mechanism="OAUTHBEARER").token(token({"sub": "a", "nbf": 1000, "exp": 1000.125})).user is not None


@pytest.mark.parametrize(
    "said",
    [
        token({"sub": "alice", "exp": 999}),
        token({"sub": "alice"}),
        token({"exp": 2000}),
        token({"sub": "alice", "exp": 1000}),
        token({"sub": "alice", "exp": 2000, "nbf": 1500}),
        token({"sub": "alice", "exp": 2000, "nbf": 1000.125}),
        token({"sub": "alice", "exp": 2000}, "RS256"),
        b"n,,\x01auth=Bearer nonsense\x01\x01",
    ],
)
def test_tokens_that_say_nothing_valid_are_refused_in_two_steps(said: bytes) -> None:
    here = session(mechanism="OAUTHBEARER")
    assert json.loads(here.token(said).words) == {"status": "invalid_token"}
    with pytest.raises(SaslAuthenticationFailedError, match=r'\{"status":"invalid_token"\}: \S'):
        here.token(b"\x01")


@pytest.mark.parametrize("said", [b"n,,\x01\x01", b"", b"n,,\x01auth=Basic abc\x01\x01", b"\xff"])
def test_a_malformed_message_of_oauthbearer_is_refused_at_once(said: bytes) -> None:
    with pytest.raises(SaslAuthenticationFailedError, match="Invalid OAUTHBEARER client first message"):
        session(mechanism="OAUTHBEARER").token(said)


def test_steps_out_of_turn_are_refused() -> None:
    here = SaslSession(lambda name: None, lambda: NOW)
    with pytest.raises(IllegalSaslStateError):
        here.token(b"x")
    with pytest.raises(UnsupportedSaslMechanismError):
        here.handshake("GSSAPI")
    here = session()
    with pytest.raises(IllegalSaslStateError):
        here.handshake("PLAIN")
    here.token(b"\0alice\0secret")
    with pytest.raises(IllegalSaslStateError):
        here.handshake("PLAIN")  # sessions without end cannot be renewed


def test_authenticating_again_cannot_change_who_it_is_nor_how() -> None:
    seconds = itertools.count(NOW, 1000)
    here = session(clock=lambda: next(seconds))
    here.token(b"\0alice\0secret")
    here.may_repeat = True
    here.handshake("PLAIN")
    here.token(b"\0alice\0secret")
    here.handshake("PLAIN")
    with pytest.raises(SaslAuthenticationFailedError, match="Cannot change principals"):
        here.token(b"\0bob\0b")
    here = session(clock=lambda: next(seconds))
    here.token(b"\0alice\0secret")
    here.may_repeat = True
    here.handshake("PLAIN")
    assert not here.changes_mechanism
    here.token(b"\0alice\0secret")
    here.handshake("OAUTHBEARER")
    assert here.changes_mechanism  # which ends the connection


def test_a_client_authenticates_again_once_in_a_second_as_kafka_has_it() -> None:
    moment = [NOW]
    here = session(clock=lambda: moment[0])
    here.token(b"\0alice\0secret")
    here.may_repeat = True
    here.handshake("PLAIN")  # the first time at once
    here.token(b"\0alice\0secret")
    moment[0] += 999
    with pytest.raises(IllegalSaslStateError, match="once in a second"):
        here.handshake("PLAIN")
    assert here.state is State.DONE
    moment[0] += 1
    here.handshake("PLAIN")
    here.token(b"\0alice\0secret")


def test_a_key_that_the_table_does_not_have_is_an_error() -> None:
    assert sum(_is_allowed(*pair) for pair in product(State, Event)) == 6
    with pytest.raises(IllegalStateError, match="has failed cannot take a handshake"):
        next_state(State.FAILED, Event.HANDSHAKE)


def _is_allowed(state: State, event: Event) -> bool:
    try:
        next_state(state, event)
    except IllegalStateError:
        return False
    return True


def test_a_certificate_names_a_principal_as_java_writes_it() -> None:
    subject = ((("countryName", "DE"),), (("organizationName", "A, B"),), (("commonName", "alice"),))
    assert principal_of({"subject": subject}) == "User:CN=alice,O=A\\, B,C=DE"
    assert principal_of({}) is None
    assert principal_of(None) is None
