"""One transaction: what may be known of it outside, which decides how it can end and how the next one begins."""

from __future__ import annotations

__all__ = ["Transaction"]


class Transaction:
    """One transaction: what may be known of it outside."""

    __slots__ = (
        "asked",
        "broken",
        "confirmed",
        "groups",
        "is_v2",
        "late",
        "lost_id",
        "ran_out",
        "started",
        "unsure",
    )

    def __init__(self, started: float, *, is_v2: bool) -> None:
        self.started = started
        self.is_v2 = is_v2
        self.groups: set[str] = set()
        """Added at the coordinator."""
        self.asked = False
        """Something was sent that makes it known to the coordinator."""
        self.confirmed = False
        """The coordinator has it for sure."""
        self.late = False
        """A request of it was not answered, and may still arrive somewhere."""
        self.broken = False
        """A sequence number was spent on a batch that is not in the log."""
        self.unsure = False
        """One was spent on a batch of which nobody knows."""
        self.lost_id = False
        """The coordinator does not go on with this producer id and epoch: others are needed."""
        self.ran_out = False
        """The coordinator has aborted it because it took too long."""
