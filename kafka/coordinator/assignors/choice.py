"""The assignors that a member offers: from `partition_assignment_strategy` to objects, and how it rebalances."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kafka.coordinator.assignors.abstract import AbstractPartitionAssignor, Assignor, RebalanceProtocol
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from kafka.errors import KafkaConfigurationError

__all__ = ["is_builtin", "common_protocol", "make_assignors"]

_BY_NAME: Final[dict[str, type[AbstractPartitionAssignor]]] = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
    # As the Java client's configuration has them
    "org.apache.kafka.clients.consumer.RangeAssignor": RangePartitionAssignor,
    "org.apache.kafka.clients.consumer.RoundRobinAssignor": RoundRobinPartitionAssignor,
    "org.apache.kafka.clients.consumer.StickyAssignor": StickyPartitionAssignor,
    "org.apache.kafka.clients.consumer.CooperativeStickyAssignor": CooperativeStickyAssignor,
}


def make_assignors(strategies: Iterable[object]) -> list[Assignor]:
    """Return assignors from classes, instances or names; each consumer has its own, as some have state.

    >>> [assignor.name for assignor in make_assignors(["sticky", RangePartitionAssignor])]
    ['sticky', 'range']
    """
    found = [_make(strategy) for strategy in strategies]
    names = [str(assignor.name) for assignor in found]
    for name in names:
        if names.count(name) > 1:
            raise KafkaConfigurationError(
                f"partition_assignment_strategy has {name!r} twice", option="partition_assignment_strategy"
            )
    if not found:
        raise KafkaConfigurationError(
            "partition_assignment_strategy is empty; give at least one", option="partition_assignment_strategy"
        )
    return found


def _make(strategy: object) -> Any:
    if isinstance(strategy, str):
        if strategy not in _BY_NAME:
            raise KafkaConfigurationError(
                f"partition_assignment_strategy has an unknown assignor {strategy!r}: known are "
                f"{', '.join(list(_BY_NAME)[:4])}; another one is given as its class",
                option="partition_assignment_strategy",
            )
        strategy = _BY_NAME[strategy]
    return strategy() if isinstance(strategy, type) else strategy


def is_builtin(assignor: object) -> bool:
    """Whether an assignor is one of this library's, not a subclass.

    >>> is_builtin(RangePartitionAssignor())
    True
    """
    return type(assignor) in _BY_NAME.values()


def common_protocol(assignors: Iterable[object]) -> RebalanceProtocol:
    """Return the rebalance protocol of a member with these assignors: cooperative if all support it (KIP-429).

    >>> common_protocol([RangePartitionAssignor(), CooperativeStickyAssignor()]).name
    'EAGER'
    """
    protocols: set[RebalanceProtocol] | None = None
    for assignor in assignors:
        ask = getattr(assignor, "supported_protocols", None)
        offered = set(ask()) if ask is not None else {RebalanceProtocol.EAGER}
        protocols = offered if protocols is None else protocols & offered
    if not protocols:
        raise KafkaConfigurationError(
            "the assignors have no rebalance protocol in common", option="partition_assignment_strategy"
        )
    return max(protocols)
