"""What brokers of each release offer, under the name of 2.2. New code: ``broker_release``.

>>> BROKER_API_VERSIONS[(0, 10, 0)][3]
(0, 1)
"""

from __future__ import annotations

from typing import Final

from kafka.protocol.broker_release import KNOWN_RELEASES, apis_of

__all__ = ["BROKER_API_VERSIONS"]

#: Release -> API key -> the oldest and the newest version offered. Two releases had a shorter name: (0, 9) and (0, 11).
BROKER_API_VERSIONS: Final = {
    **{release: dict(apis_of(release)) for release in KNOWN_RELEASES},
    (0, 9): dict(apis_of((0, 9))),
    (0, 11): dict(apis_of((0, 11))),
}
