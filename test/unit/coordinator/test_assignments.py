"""Taking partitions, giving them up and losing them: what the application hears, and when."""

from __future__ import annotations

import pytest

from kafka._runtime.application import ApplicationLoop, complete
from kafka._runtime.loop import Loop
from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.rebalance import Assignments, Rendezvous
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
            complete(call.run(ApplicationLoop(self.loop)))

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


def test_what_is_given_up_is_gone_when_the_listener_has_run(app):
    app.do(app.assignments.revoke([P]))
    assert app.listener.heard == [("revoked", [P])]
    assert app.assignments.held() == app.subscription.assigned() == {Q}


def test_what_is_lost_is_heard_of_once(app):
    app.assignments.mark_lost()
    app.assignments.mark_lost()
    assert not app.assignments.held()
    app.do(app.assignments.wait_lost())
    assert app.listener.heard == [("lost", [P, Q])]
    assert not app.subscription.assigned()


def test_what_is_lost_while_it_waits_to_be_revoked_is_lost(app, loop):
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
