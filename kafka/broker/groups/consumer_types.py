"""The words of the consumer protocol (KIP-848): a heartbeat, its answer, and what is known of a member."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from kafka.broker.groups.assignors import Assignment
from kafka.broker.groups.interfaces import Timer
from kafka.broker.groups.members import Protocols
from kafka.broker.groups.reconcile import Holding

__all__ = ["JOIN", "LEAVE", "LEAVE_STATIC", "ClassicTerms", "ConsumerMember", "HeartbeatAsk", "HeartbeatResult"]

#: Epochs with a special meaning.
JOIN: Final = 0
LEAVE: Final = -1
LEAVE_STATIC: Final = -2


@dataclass(frozen=True)
class HeartbeatAsk:
    """A ConsumerGroupHeartbeat request; None stands for what did not change."""

    member_id: str
    epoch: int
    instance_id: str | None = None
    rack_id: str | None = None
    rebalance_timeout: float | None = None
    names: tuple[str, ...] | None = None
    regex: str | None = None
    assignor: str | None = None
    owned: Mapping[UUID, frozenset[int]] | None = None
    client_id: str = ""
    client_host: str = ""


@dataclass(frozen=True)
class HeartbeatResult:
    """The reply to a member; it has an assignment only if it changed or everything was asked for."""

    member_id: str
    epoch: int
    assignment: Mapping[UUID, frozenset[int]] | None = None


@dataclass(frozen=True)
class ClassicTerms:
    """The terms of a member that speaks the classic protocol in a consumer group."""

    session_timeout: float
    protocols: Protocols

    @property
    def protocol_name(self) -> str:
        """The protocol that it is answered with: its own favourite, since members need not agree."""
        return self.protocols[0][0]

    @property
    def metadata(self) -> bytes:
        """Its subscription."""
        return self.protocols[0][1]


@dataclass(eq=False)
class ConsumerMember:
    """One member of a consumer group."""

    member_id: str
    instance_id: str | None = None
    rack_id: str | None = None
    client_id: str = ""
    client_host: str = ""
    rebalance_timeout: float = 300.0
    names: frozenset[str] = frozenset()
    regex: str | None = None
    assignor: str | None = None
    holding: Holding = field(default_factory=Holding)
    classic: ClassicTerms | None = None
    session: Timer | None = None
    #: Revoking in time, or joining and synchronising in time for classic members.
    rebalance: Timer | None = None

    @property
    def epoch(self) -> int:
        """Its epoch."""
        return self.holding.epoch

    @property
    def assigned(self) -> Assignment:
        """What it may read."""
        return dict(self.holding.assigned)

    def stop_timers(self) -> None:
        """Watch it no more."""
        for timer in (self.session, self.rebalance):
            if timer is not None:
                timer.cancel()
        self.session = self.rebalance = None
