"""Who a member is at a moment: what it signs heartbeats and commits with."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["NO_GENERATION", "Generation"]


class Generation(NamedTuple):
    """A member in one round of its group.

    >>> NO_GENERATION.is_member
    False
    """

    generation_id: int = -1
    """The round; in the protocol of KIP-848 the member's epoch."""
    member_id: str = ""
    protocol: str | None = None
    """The assignor that the round was made with."""

    @property
    def is_member(self) -> bool:
        """Whether the coordinator knows it as a member."""
        return self.generation_id >= 0


NO_GENERATION: Final = Generation()
