"""What tests of groups wait for."""

from __future__ import annotations

from .members import Group
from .writer import Writer


def tops(group: Group) -> dict[int, int]:
    """Partition -> offset behind the last record that anyone of a group has read."""
    found = dict.fromkeys(range(group.partitions), 0)
    for member in group.members:
        for event in member.said("read"):
            number = event.what["p"]
            found[number] = max(found[number], event.what["o"][-1][1] + 1)
    return found


def wait_read(groups: list[Group], writer: Writer, seconds: float = 60.0) -> None:
    """Wait until each group has read all that was acknowledged by now: nobody has stopped in silence."""
    ends = writer.ends()
    for group in groups:

        def done(group: Group = group) -> bool:
            read = tops(group)
            return all(read[number] >= end for number, end in ends.items())

        group.wait(done, f"everything up to {ends}", seconds)
