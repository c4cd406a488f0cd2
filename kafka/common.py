"""The historic place of the names of `kafka.structs` and `kafka.errors`, from the time before they were two modules."""

from __future__ import annotations

from kafka.errors import *  # noqa: F403
from kafka.legacy.payloads import *  # noqa: F403
from kafka.structs import *  # noqa: F403
