"""The meeting of the loop and the application's thread."""

from __future__ import annotations

import pytest

from kafka._runtime.application import ApplicationLoop, complete
from kafka._runtime.loop import Loop
from kafka.coordinator.rebalance import CallKind, RebalanceCall, Rendezvous, tell
from kafka.structs import TopicPartition

P = TopicPartition("t", 0)


@pytest.fixture
def loop():
    loop = Loop()
    yield loop
    loop.close()


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
    complete(taken.run(ApplicationLoop(loop)))
    loop.run_until(task)
    assert seen == ["bell", "listener", "after"]
    assert meeting.take() is None


def test_what_a_listener_raises_comes_out_and_the_loop_goes_on(loop):
    meeting = Rendezvous()

    def fail():
        raise ValueError("mine")

    after = []
    task = loop.spawn(meeting.ask(RebalanceCall(CallKind.LOST, [P], fail, lambda: after.append(1))))
    loop.turn(0)
    with pytest.raises(ValueError, match="mine"):
        complete(meeting.take().run(ApplicationLoop(loop)))
    loop.run_until(task)
    assert after == [1]


def test_what_nobody_waits_for_any_more_does_not_happen(loop):
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
