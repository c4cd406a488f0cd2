"""The lines that clients log about one group."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    _LoggerAdapter = logging.LoggerAdapter[logging.Logger]
else:  # before 3.11 it has no parameter at run time
    _LoggerAdapter = logging.LoggerAdapter


class GroupLog(_LoggerAdapter):
    """The lines about one group: each begins with the group's name, and has it as the field ``kafka_group``."""

    def __init__(self, group_id: str) -> None:
        super().__init__(logging.getLogger("kafka.coordinator"))
        self._group_id = group_id

    def log(self, level: int, msg: object, *args: object, **kwargs: Any) -> None:
        """Log a line of this group."""
        if self.isEnabledFor(level):
            template = f"Group %s: {msg}"
            extra = {"kafka_group": self._group_id, **kwargs.pop("extra", {})}
            self.logger.log(level, template, self._group_id, *args, extra=extra, stacklevel=2, **kwargs)
