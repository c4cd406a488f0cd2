"""One partition as a client asks for it, with what an incremental session remembers of the last answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uuid import UUID

__all__ = ["Key", "Wanted"]

Key = tuple[Any, int]
"""Topic (its name, or its id from v13 on) and partition."""


class Wanted:
    """A partition to read from."""

    __slots__ = (
        "epoch",
        "index",
        "last_epoch",
        "max_bytes",
        "name",
        "offset",
        "sent_high_watermark",
        "sent_start",
        "topic_id",
    )

    def __init__(self, name: str, topic_id: UUID, part: Any) -> None:
        self.name = name
        self.topic_id = topic_id
        self.index: int = part.partition
        #: What the last reply of the session said; -1 before it: then all is news.
        self.sent_high_watermark = -1
        self.sent_start = -1
        self.update(part)

    def update(self, part: Any) -> None:
        """Take what a later request of the session says."""
        self.offset: int = part.fetch_offset
        self.max_bytes: int = part.partition_max_bytes
        self.epoch: int = part.current_leader_epoch
        self.last_epoch: int = part.last_fetched_epoch
