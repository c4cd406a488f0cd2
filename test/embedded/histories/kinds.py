"""The kinds of histories."""

from __future__ import annotations

from .consumers import Consumers
from .history import Kind
from .producers import Producers
from .transactions import Transactions

KINDS: dict[str, type[Kind]] = {"consumers": Consumers, "producers": Producers, "transactions": Transactions}
