"""buffer_memory: bounded, first come first served."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from kafka.producer.buffer_pool import BufferPool, Reservation


def take(pool: BufferPool, size: int) -> SimpleNamespace | None:
    """Allocate memory for a batch, if there is enough and no call waits."""
    if not pool.has(size):
        return None
    batch = SimpleNamespace(reserved=0)
    pool.allocate(batch, size)
    return batch


def queue(pool: BufferPool, *sizes: int) -> list[Reservation]:
    reservations = [Reservation(size) for size in sizes]
    for reservation in reservations:
        pool.queue(reservation)
    return reservations


def test_no_call_overtakes_one_that_waits_already():
    pool = BufferPool(100)
    batch = take(pool, 100)
    first, second = queue(pool, 80, 10)
    assert pool.release(batch, 50) == []
    assert take(pool, 10) is None
    assert pool.release(batch) == [first, second]
    assert pool.free == 10
    assert not pool.has_waiters


def test_a_cancelled_reservation_lets_the_next_one_in():
    pool = BufferPool(100)
    take(pool, 90)
    first, second = queue(pool, 80, 10)
    assert pool.cancel(first) == [second]
    assert pool.free == 0


def test_memory_granted_to_a_reservation_that_is_cancelled_is_free_again():
    pool = BufferPool(100)
    batch = take(pool, 100)
    (reservation,) = queue(pool, 60)
    assert pool.release(batch) == [reservation]
    assert pool.cancel(reservation) == []
    assert pool.free == 100


def test_all_reservations_can_be_refused():
    pool = BufferPool(10)
    batch = take(pool, 10)
    reservations = queue(pool, 1, 2)
    assert pool.refuse_all() == reservations
    assert pool.release(batch) == []


def test_memory_of_a_reservation_is_released_once_however_often_it_is_cancelled():
    pool = BufferPool(100)
    take(pool, 80)
    (refused,) = queue(pool, 30)
    pool.refuse_all()
    assert pool.cancel(refused) == []
    (granted,) = queue(pool, 15)
    assert pool.grant() == [granted]
    (spent,) = queue(pool, 5)
    assert pool.grant() == [spent]
    pool.give_back(spent)
    pool.allocate(SimpleNamespace(reserved=0), 5)
    for _ in range(2):
        pool.cancel(granted)
        pool.cancel(spent)
        assert pool.free == 15


STEPS = ["take", "queue", "release", "cancel"]


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 60))))
def test_no_byte_is_lost_or_made_and_no_call_forgotten(steps):
    pool, held, waiting = BufferPool(100), [], []

    def granted(reservations):
        for reservation in reservations:
            assert reservation is waiting.pop(0), "out of turn"
            assert reservation.held == reservation.size
            pool.give_back(reservation)
            pool.allocate(batch := SimpleNamespace(reserved=0), reservation.size)
            held.append(batch)

    for what, size in steps:
        if what == "take" and (batch := take(pool, size)):
            held.append(batch)
        elif what == "queue" and not pool.has(size):
            waiting += queue(pool, size)
        elif what == "release" and held:
            granted(pool.release(held.pop(size % len(held))))
        elif what == "cancel" and waiting:
            granted(pool.cancel(waiting.pop(size % len(waiting))))
        assert 0 <= pool.free == 100 - sum(batch.reserved for batch in held)
        assert pool.waiting == len(waiting)
