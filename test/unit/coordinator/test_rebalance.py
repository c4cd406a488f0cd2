"""Assigning, revoking and losing partitions: the calls of the listener, and which offsets may be committed."""

from __future__ import annotations

import pytest

from kafka._runtime.loop import Loop
from kafka._runtime.network_thread import CallerDriver, complete
from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.rebalance import Assignments, CallKind, Ownership, RebalanceCall, Rendezvous, tell
from kafka.structs import TopicPartition

P, Q = TopicPartition("t", 0), TopicPartition("t", 1)


class Listener:
    def __init__(self):
        self.heard = []

    def on_partitions_assigned(self, assigned):
        self.heard.append(("assigned", sorted(assigned)))

    def on_partitions_revoked(self, revoked):
        self.heard.append(("revoked", sorted(revoked)))

    def on_partitions_lost(self, lost):
        self.heard.append(("lost", sorted(lost)))


class Application:
    """An assignment, and an application that polls when it is told to."""

    def __init__(self, loop, commit=None):
        self.loop = loop
        self.listener = Listener()
        self.subscription = SubscriptionState()
        self.subscription.subscribe(["t"], listener=self.listener)
        self.rendezvous = Rendezvous()
        self.assignments = Assignments(self.subscription, self.rendezvous)
        self.assignments.commit = commit

    def poll(self):
        while (call := self.rendezvous.take()) is not None:
            complete(call.run(CallerDriver(self.loop), self.loop))

    def turn(self):
        for _ in range(5):
            self.loop.turn(0)

    def do(self, coro):
        """Run something of the loop's to its end, polling meanwhile."""
        task = self.loop.spawn(coro)
        while not task.is_done:
            self.turn()
            self.poll()
        return task.result()


@pytest.fixture
def loop():
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture
def app(loop):
    app = Application(loop)
    app.do(app.assignments.assign([P, Q]))
    assert app.listener.heard == [("assigned", [P, Q])]
    app.listener.heard.clear()
    return app


def test_revoked_partitions_are_gone_when_the_listener_has_run(app):
    app.do(app.assignments.revoke([P]))
    assert app.listener.heard == [("revoked", [P])]
    assert app.assignments.held() == app.subscription.assigned() == {Q}


def test_lost_partitions_are_reported_once(app):
    app.assignments.mark_lost()
    app.assignments.mark_lost()
    assert not app.assignments.held()
    app.do(app.assignments.wait_lost())
    assert app.listener.heard == [("lost", [P, Q])]
    assert not app.subscription.assigned()


def test_partitions_lost_while_they_wait_to_be_revoked_are_lost(app, loop):
    """A listener that commits what it has processed must not do so when another may have the partition already."""
    task = loop.spawn(app.assignments.revoke([P]))
    app.turn()
    app.assignments.mark_lost()
    app.poll()
    app.turn()
    assert task.is_done
    assert app.listener.heard == [("lost", [P]), ("lost", [Q])]
    assert not app.subscription.assigned()
    assert not app.assignments.held()


# The rendezvous…


def test_the_loop_waits_until_the_application_has_done_it(loop):
    meeting, seen = Rendezvous(), []
    meeting.on_waiting = lambda: seen.append("bell")
    call = RebalanceCall(CallKind.REVOKED, [P], lambda: seen.append("listener"), lambda: seen.append("after"))
    task = loop.spawn(meeting.ask(call))
    loop.turn(0)
    assert seen == ["bell"]
    assert not task.is_done
    taken = meeting.take()
    assert taken is call
    complete(taken.run(CallerDriver(loop), loop))
    loop.run_until(task)
    assert seen == ["bell", "listener", "after"]
    assert meeting.take() is None


def test_an_exception_of_a_listener_comes_out_and_the_loop_continues(loop):
    meeting = Rendezvous()

    def fail():
        raise ValueError("mine")

    after = []
    task = loop.spawn(meeting.ask(RebalanceCall(CallKind.LOST, [P], fail, lambda: after.append(1))))
    loop.turn(0)
    with pytest.raises(ValueError, match="mine"):
        complete(meeting.take().run(CallerDriver(loop), loop))
    loop.run_until(task)
    assert after == [1]


def test_partitions_assigned_during_ctrl_c_are_read(app, loop, monkeypatch):
    """The group counts on this member to read it, and names it to no listener again."""
    assign = app.subscription.assign_from_group

    def interrupted(_partitions):
        monkeypatch.setattr(app.subscription, "assign_from_group", assign)
        raise KeyboardInterrupt

    monkeypatch.setattr(app.subscription, "assign_from_group", interrupted)
    task = loop.spawn(app.assignments.assign([P]))
    app.turn()
    with pytest.raises(KeyboardInterrupt):
        app.poll()
    app.turn()
    assert task.is_done
    assert app.subscription.assigned() == {P} == app.assignments.held()


def test_a_call_that_ctrl_c_has_kept_from_beginning_is_made_later(app, loop):
    task = loop.spawn(app.assignments.assign([P, Q]))
    app.turn()
    interrupted = app.rendezvous.take()
    assert interrupted is not None
    assert app.rendezvous
    app.poll()
    app.turn()
    assert task.is_done
    assert app.listener.heard == [("assigned", [])]
    assert not app.rendezvous
    assert app.rendezvous.take() is None


def test_work_without_a_waiter_does_not_happen(loop):
    meeting = Rendezvous()
    task = loop.spawn(meeting.ask(RebalanceCall(CallKind.ASSIGNED, [P], lambda: None)))
    loop.turn(0)
    task.cancel()
    loop.turn(0)
    assert not meeting


def test_a_listener_may_lack_methods():
    class Old:
        def on_partitions_revoked(self, revoked):
            self.seen = revoked

    listener = Old()
    tell(listener, CallKind.ASSIGNED, [P])
    tell(None, CallKind.REVOKED, [P])
    tell(listener, CallKind.LOST, [P])
    assert listener.seen == {P}


# Ownership…


def test_an_ownership_continues_while_the_partition_is_kept():
    ownership = Ownership()
    ownership.replace([P])
    ids = ownership.ids([P])
    ownership.replace([P, Q])
    assert ownership.ended(ids) == []
    assert ownership.held() == {P, Q}


def test_an_earlier_ownership_is_not_a_later_one():
    ownership = Ownership()
    ownership.replace([P, Q])
    ids = ownership.ids([P, Q])
    ownership.replace([Q])
    ownership.replace([P, Q])
    assert ownership.ended(ids) == [P]


def test_a_partition_that_was_never_owned_has_no_ownership():
    assert Ownership().ended(Ownership().ids([P])) == [P]
