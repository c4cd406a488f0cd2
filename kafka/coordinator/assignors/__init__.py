"""Assignors: they distribute partitions among the members of a classic group."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names

if TYPE_CHECKING:
    from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, RebalanceProtocol
    from kafka.coordinator.assignors.choice import common_protocol, is_builtin, make_assignors
    from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
    from kafka.coordinator.assignors.range import RangePartitionAssignor
    from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
    from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

__all__ = [
    "AbstractPartitionAssignor",
    "CooperativeStickyAssignor",
    "RangePartitionAssignor",
    "RebalanceProtocol",
    "RoundRobinPartitionAssignor",
    "StickyPartitionAssignor",
    "is_builtin",
    "common_protocol",
    "make_assignors",
]

_MODULES = {
    "abstract": "AbstractPartitionAssignor RebalanceProtocol",
    "choice": "common_protocol is_builtin make_assignors",
    "cooperative_sticky": "CooperativeStickyAssignor",
    "range": "RangePartitionAssignor",
    "roundrobin": "RoundRobinPartitionAssignor",
    "sticky.sticky_assignor": "StickyPartitionAssignor",
}

if not TYPE_CHECKING:  # checkers report a name that is not here
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
