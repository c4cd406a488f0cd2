"""buffer_memory: bounded, and first come first served."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from kafka.producer.memory import Memory


def take(memory: Memory, size: int) -> bool:
    """Take memory for a batch, if there is enough and nobody was first."""
    if not memory.has(size):
        return False
    memory.lend(SimpleNamespace(reserved=0), size)
    return True


def test_nobody_overtakes_who_waits_already():
    memory = Memory(100)
    assert take(memory, 100)
    first, second = memory.queue(80), memory.queue(10)
    assert memory.give(50) == []
    assert not take(memory, 10)
    assert memory.give(50) == [first, second]
    assert memory.free == 10
    assert not memory.waited_for


def test_who_leaves_lets_the_next_one_in():
    memory = Memory(100)
    take(memory, 90)
    first, second = memory.queue(80), memory.queue(10)
    assert memory.leave(first) == [second]
    assert memory.free == 0


def test_memory_granted_to_one_who_left_goes_back():
    memory = Memory(100)
    take(memory, 100)
    ticket = memory.queue(60)
    memory.give(100)
    assert memory.leave(ticket) == []
    assert memory.free == 100


def test_everybody_can_be_sent_away():
    memory = Memory(10)
    take(memory, 10)
    tickets = [memory.queue(1), memory.queue(2)]
    assert memory.refuse_all() == tickets
    assert memory.give(10) == []


def test_a_ticket_is_given_back_once_however_often_that_is_said():
    memory = Memory(100)
    take(memory, 80)
    refused = memory.queue(30)
    memory.refuse_all()
    assert memory.leave(refused) == []
    granted = memory.queue(15)
    assert memory.give(0) == [granted]
    spent = memory.queue(5)
    assert memory.give(0) == [spent]
    assert memory.spend(spent) == 5
    for _ in range(2):
        memory.leave(granted)
        memory.leave(spent)
        assert memory.free == 15


@given(st.lists(st.tuples(st.sampled_from(["take", "queue", "give", "leave"]), st.integers(1, 60))))
def test_no_byte_is_lost_or_made(steps):
    memory, held, waiting = Memory(100), [], []

    def served(tickets):
        for ticket in tickets:
            assert ticket is waiting.pop(0), "out of turn"
            held.append(ticket.size)

    for what, size in steps:
        if what == "take" and take(memory, size):
            held.append(size)
        elif what == "queue" and (memory.waited_for or size > memory.free):
            waiting.append(memory.queue(size))
        elif what == "give" and held:
            served(memory.give(held.pop(0)))
        elif what == "leave" and waiting:
            ticket = waiting.pop(size % len(waiting))
            served(memory.leave(ticket))
        assert 0 <= memory.free == 100 - sum(held)
        assert memory.waited_for == bool(waiting)
