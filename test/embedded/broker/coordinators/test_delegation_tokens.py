"""Delegation tokens over TCP: made, shown, renewed, ended, and used instead of a password."""

from __future__ import annotations

import hashlib
import hmac
from base64 import b64decode, b64encode
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kafka.broker import Broker
from kafka.protocol.sasl import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
    SaslAuthenticateRequest,
    SaslHandshakeRequest,
)
from test.embedded.broker.wire import Wire

USERS = [("SCRAM-SHA-256", name, name) for name in ("ann", "bob", "eve")]
ACLS = {"authorizer.class.name": "StandardAuthorizer"}
DISABLED, NOT_FOUND, OWNER_MISMATCH, NOT_ALLOWED, REFUSED, EXPIRED, BAD_TYPE = 61, 62, 63, 64, 65, 66, 67


pytestmark = pytest.mark.kafka_broker(sasl=USERS, configs={**ACLS, "delegation.token.secret.key": "s"})


class Door:
    """Lets users in, and closes behind all of them."""

    def __init__(self, broker: Broker, stack: ExitStack) -> None:
        self.broker = broker
        self.stack = stack

    def enter(self, user: str) -> Wire:
        wire, reply = self.try_to_enter(user, user)
        assert reply.error_code == 0
        return wire

    def try_to_enter(self, user: str, password: str, extension: str = "") -> tuple[Wire, Any]:
        wire = self.stack.enter_context(Wire(self.broker.port()))
        return wire, prove(wire, user, password, extension)


@pytest.fixture
def door(broker: Broker) -> Iterator[Door]:
    with ExitStack() as stack:
        yield Door(broker, stack)


def prove(wire: Wire, user: str, password: str, extension: str) -> Any:
    """Log in by SCRAM; the last reply, None if it did not come that far."""
    wire.ask(SaslHandshakeRequest[1]("SCRAM-SHA-256"))
    bare = f"n={user},r=nonce{extension}"
    first = bytes(wire.ask(SaslAuthenticateRequest[2](b"n,," + bare.encode())).auth_bytes).decode()
    if not first:
        return None
    nonce, salt, iterations = (part.split("=", 1)[1] for part in first.split(","))
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), b64decode(salt), int(iterations))
    key = hmac.digest(salted, b"Client Key", "sha256")
    message = f"{bare},{first},c=biws,r={nonce}".encode()
    signature = hmac.digest(hashlib.sha256(key).digest(), message, "sha256")
    proof = b64encode(bytes(a ^ b for a, b in zip(key, signature, strict=True))).decode()
    return wire.ask(SaslAuthenticateRequest[2](f"c=biws,r={nonce},p={proof}".encode()))


def create(wire: Wire, *, renewers: Any = (), owner: Any = (None, None), lifetime: int = -1) -> Any:
    return wire.ask(CreateDelegationTokenRequest[3](*owner, list(renewers), lifetime))


def test_a_token_lets_its_owner_in_until_it_expires(broker: Broker, door: Door) -> None:
    ann = door.enter("ann")
    token = create(ann, lifetime=60_000)
    password = b64encode(bytes(token.hmac)).decode()
    wire, reply = door.try_to_enter(token.token_id, password, ",tokenauth=true")
    assert reply.error_code == 0
    assert 50_000 < reply.session_lifetime_ms <= 60_000
    shown = wire.ask(DescribeDelegationTokenRequest[3](None))
    assert shown.error_code == NOT_ALLOWED  # a token does not beget tokens
    assert create(wire).error_code == NOT_ALLOWED
    broker.clock.advance(61)
    assert door.try_to_enter(token.token_id, password, ",tokenauth=true")[1] is None


def test_tokens_are_shown_to_those_whom_they_concern(broker: Broker, door: Door) -> None:
    ann, bob, eve = map(door.enter, ("ann", "bob", "eve"))
    token = create(ann, renewers=[("User", "bob")])
    for wire, seen in ((ann, [token.token_id]), (bob, [token.token_id]), (eve, [])):
        reply = wire.ask(DescribeDelegationTokenRequest[3](None))
        assert [each.token_id for each in reply.tokens] == seen
    reply = ann.ask(DescribeDelegationTokenRequest[2]([("User", "bob")]))
    assert reply.tokens == []
    assert (token.principal_name, token.token_requester_principal_name) == ("ann", "ann")


def test_only_owners_and_renewers_change_a_token_s_end(broker: Broker, door: Door) -> None:
    ann, bob, eve = map(door.enter, ("ann", "bob", "eve"))
    token = create(ann, renewers=[("User", "bob")])
    proof = bytes(token.hmac)
    broker.clock.advance(300)
    renewed = bob.ask(RenewDelegationTokenRequest[2](proof, -1))
    assert renewed.expiry_timestamp_ms >= token.expiry_timestamp_ms + 300_000
    assert eve.ask(RenewDelegationTokenRequest[2](proof, -1)).error_code == OWNER_MISMATCH
    assert ann.ask(RenewDelegationTokenRequest[2](b"other", -1)).error_code == NOT_FOUND
    assert ann.ask(ExpireDelegationTokenRequest[2](proof, 10_000)).error_code == 0
    broker.clock.advance(11)
    assert ann.ask(RenewDelegationTokenRequest[2](proof, -1)).error_code == EXPIRED
    again = bytes(create(ann).hmac)
    assert ann.ask(ExpireDelegationTokenRequest[2](again, -1)).error_code == 0
    assert ann.ask(ExpireDelegationTokenRequest[2](again, -1)).error_code == NOT_FOUND


def test_a_token_never_outlives_its_longest_life(broker: Broker, door: Door) -> None:
    ann = door.enter("ann")
    token = create(ann, lifetime=60_000)
    assert token.expiry_timestamp_ms == token.max_timestamp_ms == token.issue_timestamp_ms + 60_000
    reply = ann.ask(RenewDelegationTokenRequest[2](bytes(token.hmac), 120_000))
    assert reply.expiry_timestamp_ms == token.max_timestamp_ms


def test_what_cannot_be_asked_for_is_refused(broker: Broker, door: Door) -> None:
    ann = door.enter("ann")
    assert create(ann, renewers=[("Group", "bob")]).error_code == BAD_TYPE
    assert create(ann, owner=("User", "bob")).error_code == REFUSED
    with Broker() as open_broker, Wire(open_broker.port()) as wire:
        assert create(wire).error_code == NOT_ALLOWED  # whether there is a secret or not
    with Broker(configs={"delegation.token.secret.key": "s"}) as open_broker, Wire(open_broker.port()) as wire:
        assert create(wire).error_code == NOT_ALLOWED
    with Broker(sasl=USERS) as without_secret, ExitStack() as stack:
        assert create(Door(without_secret, stack).enter("ann")).error_code == DISABLED
