"""The historic place of the standard library's `selectors`."""

from __future__ import annotations

from selectors import *  # noqa: F403
