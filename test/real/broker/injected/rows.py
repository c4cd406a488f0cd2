"""What is injected: for each API the codes that Kafka really sends, and the command that asks for it."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["COMMANDS", "ROWS", "Row"]


class Row(NamedTuple):
    """An error of an API, in the course of a command."""

    api: str
    code: int
    command: str
    #: How many requests are answered with it; a client that asks for metadata asks more than once.
    times: int = 1


#: What the commands of the judges do, in the words of the page.
COMMANDS: Final = {
    "produce": "send a record",
    "transact": "send a record in a transaction",
    "consume": "read assigned partitions",
    "join": "read as a member of a group",
    "commit": "commit an offset",
    "committed": "ask for the committed offset",
    "begin": "read from where a partition begins",
    "list": "ask for the partitions of a topic",
}
_CODES: Final = {
    ("Produce", "produce"): (2, 3, 5, 6, 7, 10, 18, 19, 20, 29, 31, 45, 56, 59, 76, 87),
    ("Produce", "transact"): (6, 29, 45, 47, 48, 49, 53, 90, 120),
    ("Fetch", "consume"): (1, 2, 3, 6, 9, 29, 56, 70, 71, 74, 75, 76, 100),
    ("ListOffsets", "begin"): (3, 6, 9, 29, 56, 74, 75, 78),
    ("OffsetCommit", "commit"): (3, 12, 14, 15, 16, 22, 25, 27, 28, 29, 30),
    ("OffsetFetch", "committed"): (14, 15, 16, 29, 30, 88),
    ("JoinGroup", "join"): (14, 15, 16, 23, 24, 25, 26, 30, 79, 81),
    ("SyncGroup", "join"): (14, 15, 16, 22, 25, 27, 30),
    # Not 25: the broker still has the member, and when the client joins again is up to chance.
    ("Heartbeat", "join"): (14, 15, 16, 22, 27, 30),
    ("FindCoordinator", "committed"): (14, 15, 24, 30),
    ("FindCoordinator", "transact"): (14, 15, 53),
    ("InitProducerId", "produce"): (14, 31),
    ("InitProducerId", "transact"): (14, 15, 16, 50, 51, 53),
    ("AddPartitionsToTxn", "transact"): (14, 15, 16, 29, 47, 48, 49, 51, 53, 90),
    ("EndTxn", "transact"): (14, 15, 16, 47, 48, 49, 51, 53, 90, 120),
}
ROWS: Final = [
    *(Row(api, code, command) for (api, command), codes in _CODES.items() for code in codes),
    Row("Metadata", 3, "list", 100),
    Row("Metadata", 5, "list"),
    Row("Metadata", 17, "list", 100),
    Row("Metadata", 29, "list", 100),
    Row("Metadata", 29, "produce", 100),
    Row("Metadata", 5, "produce"),
]
