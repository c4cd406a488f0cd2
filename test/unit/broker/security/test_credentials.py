"""Delegation tokens: how long one lives, and who may say so."""

from __future__ import annotations

from typing import Any

import pytest

from kafka.broker.security.credentials import Tokens
from kafka.errors import DelegationTokenExpiredError, DelegationTokenOwnerMismatchError


def make(clock: list[int]) -> Tokens:
    table: dict[str, Any] = {}
    return Tokens(b"secret", table, lambda: clock[0], lambda: f"id{len(table)}", lifetime_ms=50, max_lifetime_ms=100)


def test_a_token_lives_to_the_millisecond_in_which_it_expires_and_not_beyond() -> None:
    clock = [1000]
    tokens = make(clock)
    token = tokens.create("User:ann", "User:ann", [], -1)
    proof = tokens.hmac_of(token)
    clock[0] = token.expires_ms
    assert tokens.find("id0") is not None
    assert tokens.renew(proof, "User:ann", 0) == token.expires_ms
    assert tokens.alive() == [token]
    clock[0] += 1
    assert tokens.find("id0") is None
    with pytest.raises(DelegationTokenExpiredError):
        tokens.renew(proof, "User:ann", -1)
    assert tokens.alive() == []


def test_owner_requester_and_renewers_renew_a_token_up_to_its_longest_life() -> None:
    clock = [1000]
    tokens = make(clock)
    token = tokens.create("User:ann", "User:bob", ["User:eve"], -1)
    proof = tokens.hmac_of(token)
    clock[0] = 1040
    assert [tokens.renew(proof, who, -1) for who in ("User:ann", "User:bob", "User:eve")] == [1090] * 3
    clock[0] = 1060
    assert tokens.renew(proof, "User:ann", -1) == 1100
    with pytest.raises(DelegationTokenOwnerMismatchError):
        tokens.renew(proof, "User:dan", -1)
