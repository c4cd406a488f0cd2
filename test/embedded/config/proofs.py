"""Which test proves that an option has an effect. One line to add one::

    @proves("linger_ms")
    def a_batch_waits_for_more(subject: Subject) -> None:
        ...

A proof uses an object of a class that takes the option and looks at what others get to see of it: bytes at a broker,
a socket's options, when something happens, the error raised. It fails where the option does nothing. It is run for
each class that takes the option; ``kinds`` narrows it to some of them, where others need one of their own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kafka.cluster import ClusterMetadata
from kafka.config import BY_SPELLING, CLASSES, OPTIONS, Option
from kafka.coordinator.base import BaseCoordinator
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.coordinator.heartbeat import Heartbeat

if TYPE_CHECKING:
    from .subjects import Subject

Proof = Callable[["Subject"], None]

#: Classes that take the options in their DEFAULT_CONFIG, which is a part of a client's.
PARTS = {
    "cluster": ClusterMetadata,
    "coordinator": BaseCoordinator,
    "consumer_coordinator": ConsumerCoordinator,
    "heartbeat": Heartbeat,
}
NAMES = {**CLASSES, **{kind: part.__name__ for kind, part in PARTS.items()}}
# What these take because programs pass it: the brokers' release is their client's business, and so on.
WITHOUT_EFFECT = {
    ("cluster", "client_dns_lookup"),
    ("coordinator", "api_version"),
    ("consumer_coordinator", "api_version"),
    ("heartbeat", "retry_backoff_ms"),
    ("share", "max_in_flight_requests_per_connection"),  # the requests of a share session follow one another
}


def kinds_of(option: Option) -> set[str]:
    """Return the classes that take an option and make use of it."""
    parts = {kind for kind, part in PARTS.items() if option in {BY_SPELLING[one] for one in part.DEFAULT_CONFIG}}
    return {kind for kind in option.kinds | parts if (kind, option.name) not in WITHOUT_EFFECT}


_PROOFS: dict[tuple[str, str], Proof] = {}


def proves(*names: str, kinds: str = "") -> Callable[[Proof], Proof]:
    """Register a proof for these options, and for these classes alone (``"producer consumer"``) if any are named."""

    def register(proof: Proof) -> Proof:
        for name in names:
            for kind in kinds.split() or kinds_of(OPTIONS[name]):
                if kind not in kinds_of(OPTIONS[name]):
                    raise ValueError(f"{kind} does not take {name}")
                if _PROOFS.setdefault((kind, name), proof) is not proof:
                    raise ValueError(f"two proofs for {name} of {kind}")
        return proof

    return register


def proof_of(kind: str, name: str) -> Proof | None:
    """The proof of an option for a class."""
    return _PROOFS.get((kind, name))
