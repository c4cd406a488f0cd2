"""The historic place of `kafka.legacy.offset_commit_context.OffsetCommitContext`."""

from __future__ import annotations

from kafka.legacy.offset_commit_context import OffsetCommitContext

__all__ = ["OffsetCommitContext"]
