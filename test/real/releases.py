"""Which releases of Apache Kafka the tests run against, and what each of them needs.

The one list of the matrix is here. Everything about a release that is not a question of a running
process (its Scala suffix, the jars it lacks, whether it still wants ZooKeeper) follows from its number.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

MATRIX = ("0.8.2.2", "0.9.0.1", "0.10.2.2", "0.11.0.3", "1.1.1", "2.8.2", "3.9.1", "4.3.1")
NEWEST = MATRIX[-1]


@dataclass(frozen=True, slots=True)
class Release:
    """One release, such as ``Release("2.8.2")``."""

    version: str

    def __str__(self) -> str:
        return self.version

    @property
    def number(self) -> tuple[int, ...]:
        """The version as a tuple that compares: ``(0, 10, 2, 2)``."""
        return tuple(int(part) for part in self.version.split("."))

    @property
    def scala(self) -> str:
        """The Scala version in the name of the broker's jar; any that the release has will do."""
        return "2.13" if self.number >= (2, 4) else "2.11"

    @property
    def kraft(self) -> bool:
        """True where the tests run it without ZooKeeper (KRaft is fit for use since 3.3)."""
        return self.number >= (3, 3)

    @property
    def named_listeners(self) -> bool:
        """True where a listener may have a name that is not its protocol (KIP-103)."""
        return self.number >= (0, 10, 2)

    @property
    def jaas_properties(self) -> bool:
        """True where each mechanism of a listener has its login module in a property (KIP-226)."""
        return self.number >= (1, 1)

    @property
    def maven_profiles(self) -> tuple[str, ...]:
        """The profiles of ``java/pom.xml`` with the jars that the release's own pom leaves out."""
        profiles = ["log4j2" if self.number >= (4,) else "log4j1"]
        if self.number >= (3, 5):
            profiles.append("tools")
        if self.number < (1,):
            profiles.append("jaxb")
        return tuple(profiles)


def chosen_version() -> str:
    """The release that ordinary tests use: ``KAFKA_VERSION``, else the newest of the matrix."""
    return os.environ.get("KAFKA_VERSION") or NEWEST
