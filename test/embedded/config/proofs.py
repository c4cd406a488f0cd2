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

from kafka.config import OPTIONS

if TYPE_CHECKING:
    from .subjects import Subject

Proof = Callable[["Subject"], None]

_PROOFS: dict[tuple[str, str], Proof] = {}


def proves(*names: str, kinds: str = "") -> Callable[[Proof], Proof]:
    """Register a proof for these options, and for these classes alone (``"producer consumer"``) if any are named."""

    def register(proof: Proof) -> Proof:
        for name in names:
            for kind in kinds.split() or OPTIONS[name].kinds:
                if kind not in OPTIONS[name].kinds:
                    raise ValueError(f"{kind} does not take {name}")
                if _PROOFS.setdefault((kind, name), proof) is not proof:
                    raise ValueError(f"two proofs for {name} of {kind}")
        return proof

    return register


def proof_of(kind: str, name: str) -> Proof | None:
    """The proof of an option for a class."""
    return _PROOFS.get((kind, name))
