"""Every option of every class has an effect that can be seen from outside, or says that it has none."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kafka.config import OPTIONS, resolve
from kafka.errors import KafkaConfigurationError

from . import (
    proofs_consumer,
    proofs_group,
    proofs_metadata,
    proofs_metrics,
    proofs_network,
    proofs_producer,
    proofs_sasl,
    proofs_share,
    proofs_tls,
)
from .proofs import NAMES, kinds_of, proof_of
from .subjects import Subject

PROOFS = (
    proofs_consumer,
    proofs_group,
    proofs_metadata,
    proofs_metrics,
    proofs_network,
    proofs_producer,
    proofs_sasl,
    proofs_share,
    proofs_tls,
)


def _walk(*, effective: bool) -> list[Any]:
    return [
        pytest.param(kind, option.name, id=f"{NAMES[kind]}-{option.name}")
        for kind in NAMES
        for option in OPTIONS.values()
        if kind in kinds_of(option) and effective is not bool(option.obsolete)
    ]


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.mark.parametrize(("kind", "name"), _walk(effective=True))
def test_an_option_has_an_effect(kind: str, name: str, stack: ExitStack, request: pytest.FixtureRequest) -> None:
    proof = proof_of(kind, name)
    assert proof is not None, f"nothing proves that {name} has an effect on {NAMES[kind]}: add it to a proofs_*.py"
    try:
        proof(Subject(kind, name, stack, request))
    except KafkaConfigurationError as error:
        # Refused in so many words is not accepted.
        if f"{name} is not supported by this release" not in str(error):
            raise


@pytest.mark.parametrize(("kind", "name"), _walk(effective=False))
def test_an_option_without_an_effect_says_so(kind: str, name: str) -> None:
    with pytest.warns(DeprecationWarning, match=f"{name} (no longer has an|has no) effect"):
        resolve(kind, {name: OPTIONS[name].default_for(kind)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        resolve(kind, {})
