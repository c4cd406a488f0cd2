"""Assignors of the application: what they are asked, where, and what becomes of their mistakes."""

from __future__ import annotations

import threading
import time

import pytest

from kafka._runtime.network_thread import complete
from kafka.coordinator.assignors import CooperativeStickyAssignor, RoundRobinPartitionAssignor
from kafka.errors import KafkaError
from test.embedded.sessions import SESSION, let_sessions_pass

from .member import Member, poll_until, stable

pytestmark = pytest.mark.kafka_broker(topics={"t": 6}, configs={"group.min.session.timeout.ms": 100})


class Own(RoundRobinPartitionAssignor):
    name = "own"

    def __init__(self):
        self.calls = []
        self.before_assign = lambda: None

    def _note(self, what):
        self.calls.append((what, threading.current_thread() is threading.main_thread()))

    def metadata(self, topics):
        self._note("metadata")
        return super().metadata(topics)

    def assign(self, cluster, members):
        self._note("assign")
        self.before_assign()
        return super().assign(cluster, members)

    def on_assignment(self, assignment):
        self._note("on_assignment")

    def on_generation_assignment(self, generation):
        self._note("on_generation_assignment")


def member(broker, *assignors, **configs):
    return Member(broker.bootstrap_servers, partition_assignment_strategy=list(assignors), **configs)


def test_an_assignor_of_one_s_own_runs_in_the_application_s_thread(broker):
    own = Own()
    with member(broker, own) as one, member(broker, own, "range") as two:
        poll_until(stable(one, two, partitions=6), one, two)
    assert {what for what, _ in own.calls} == {"metadata", "assign", "on_assignment", "on_generation_assignment"}
    assert all(in_main_thread for _, in_main_thread in own.calls)


def test_heartbeats_continue_while_it_takes_its_time(broker):
    own = Own()
    # Longer than a session: only heartbeats keep it alive meanwhile.
    own.before_assign = lambda: let_sessions_pass(broker)
    with member(broker, own, session_timeout_ms=SESSION * 1000) as one:
        poll_until(stable(one, partitions=6), one)
        assert own.calls.count(("assign", True)) == 1


def test_what_it_raises_reaches_poll_and_it_is_asked_again_afterwards(broker):
    own = Own()
    mistakes = ["one"]

    def fail():
        if mistakes:
            raise LookupError(mistakes.pop())

    own.before_assign = fail
    with member(broker, own) as one:
        with pytest.raises(KafkaError, match=r"'own' failed: LookupError\('one'\)"):
            poll_until(stable(one, partitions=6), one)
        poll_until(stable(one, partitions=6), one)


def test_a_cooperative_one_that_takes_from_another_is_refused(broker):
    class Greedy(CooperativeStickyAssignor):
        name = "greedy"

        def assign(self, cluster, members):
            found = super().assign(cluster, members)
            owners = [name for name in members if members[name].owned_partitions]
            newcomers = [name for name in members if name not in owners]
            if owners and newcomers:
                found[newcomers[0]] = found[owners[0]]
            return found

    with member(broker, Greedy) as one:
        poll_until(stable(one, partitions=6), one)
        with pytest.raises(KafkaError, match="still has it"), member(broker, Greedy) as two:
            poll_until(stable(one, two, partitions=6), one, two)


def test_unsubscribing_while_it_waits_for_the_application_ends_the_wait(broker):
    own = Own()
    with member(broker, own) as one:
        one.poll()
        deadline = time.monotonic() + 10
        while not one.coordinator.rendezvous:
            assert time.monotonic() < deadline
            time.sleep(0.002)
        one.subscription.unsubscribe()
        complete(one.coordinator.unsubscribed(one.client.loop.time() + 5))
        assert one.state == "UNJOINED"
        one.subscribe(["t"])
        poll_until(stable(one, partitions=6), one)
