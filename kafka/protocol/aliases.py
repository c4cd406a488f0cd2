"""Names of the 1.x and 2.x generations and what they are called now."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

FIELD_ALIASES: Final[Mapping[str, Mapping[str, str]]] = {}
