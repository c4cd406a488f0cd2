"""buffer_memory: bounded, first come first served, and every call woken whose record fits."""

from __future__ import annotations

from types import SimpleNamespace

from hypothesis import given
from hypothesis import strategies as st

from kafka.future import Future
from kafka.producer.buffer_pool import BufferPool, Reservation, Share
from kafka.record.header import V2_HEADER_SIZE


def take(pool: BufferPool, size: int) -> SimpleNamespace | None:
    """Allocate memory for a batch, if there is enough and no call waits."""
    if not pool.has(size):
        return None
    batch = SimpleNamespace(reserved=0)
    pool.allocate(batch, size)
    return batch


def queue(pool: BufferPool, *sizes: int, target: object = None, record_size: int = 0) -> list[Reservation]:
    reservations = [Reservation(size, target, record_size) for size in sizes]
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
    reservations = queue(pool, 1, 2, target="t")
    assert pool.refuse_all() == reservations
    assert pool.release(batch) == []
    assert pool.join(Share("t", 0), 100) == []


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
    pool.allocate(batch := SimpleNamespace(reserved=0), 0, spent.share)
    assert batch.reserved == 5
    for _ in range(2):
        pool.cancel(granted)
        pool.cancel(spent)
        assert pool.free == 15


def test_calls_whose_records_fit_into_a_batch_join_it_in_order_and_none_overtakes():
    pool = BufferPool(100)
    take(pool, 100)
    first, second = queue(pool, 50, 50, target="t", record_size=20)
    (other,) = queue(pool, 50, target="u", record_size=1)
    (large,) = queue(pool, 50, target="t", record_size=70)
    queue(pool, 50, target="t", record_size=1)
    share = Share("t", 0)
    assert pool.join(share, 19) == []
    assert pool.join(share, 109) == [first, second], "a small one does not overtake a large one"
    assert pool.join(share, 70) == [large]
    assert pool.join(Share("u", 0), 1) == [other]
    assert pool.join(Share("nothing", 0), 5) == []
    assert pool.waiting == 1
    assert list(share.members) == [first, second, large]
    assert [pool.leave(one) for one in (first, second, large)] == [None, None, share]


def test_memory_is_granted_to_the_oldest_call_and_those_that_fit_into_its_batch():
    pool = BufferPool(1000)
    held = take(pool, 1000)
    one, two, three = queue(pool, 500, 500, 500, target="t", record_size=(500 - V2_HEADER_SIZE) // 2)
    (other,) = queue(pool, 500, target="u", record_size=10)
    assert pool.release(held) == [one, two, three]
    assert one.share is two.share is not three.share
    assert pool.free == 0
    assert pool.waiting == 1
    assert pool.cancel(two) == []
    assert pool.cancel(one) == [other], "it was the last one to hold the memory"


def test_a_call_whose_batch_was_closed_waits_in_its_old_place():
    pool = BufferPool(100)
    held = take(pool, 100)
    first, second, third = queue(pool, 40, 40, 40, target="t", record_size=10)
    share = Share("t", 0)
    assert pool.join(share, 20) == [first, second]
    for one in (second, first):
        pool.leave(one)
        assert pool.queue_again(one, Future()) == []
    assert pool.release(held) == [first, second]
    assert pool.cancel(first) == [third]


def test_a_call_that_waits_again_is_granted_what_came_free_meanwhile():
    pool = BufferPool(100)
    held = take(pool, 100)
    (joined,) = queue(pool, 40, target="t", record_size=10)
    assert pool.join(Share("t", 0), 20) == [joined]
    assert pool.release(held) == []
    pool.leave(joined)
    assert pool.queue_again(joined, Future()) == [joined]
    assert joined.share.held == 40


STEPS = ["take", "queue", "release", "cancel", "join", "again"]


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 60), st.sampled_from("tu"))))
def test_no_byte_is_lost_or_made_and_no_call_forgotten(steps):
    pool, held, waiting, joined, spent = BufferPool(100), [], [], [], []

    def granted(reservations):
        assert reservations == sorted(reservations, key=lambda one: one.number)
        for reservation in reservations:
            assert reservation.number == min(one.number for one in waiting), "out of turn"
            waiting.remove(reservation)
            spent.append(reservation)
            pool.allocate(batch := SimpleNamespace(reserved=0), 0, reservation.share)
            assert pool.leave(reservation).members == {}
            held.append(batch)

    for what, size, target in steps:
        if what == "take" and (batch := take(pool, size)):
            held.append(batch)
        elif what == "queue" and not pool.has(size):
            waiting += queue(pool, size, target=target, record_size=size // 3)
        elif what == "release" and held:
            granted(pool.release(held.pop(size % len(held))))
        elif what == "cancel" and waiting:
            granted(pool.cancel(waiting.pop(size % len(waiting))))
        elif what == "join":
            found = pool.join(Share(target, 0), size)
            joined += found
            waiting = [one for one in waiting if one not in found]
        elif what == "again" and joined:
            again = joined.pop(size % len(joined))
            pool.leave(again)
            waiting.append(again)
            granted(pool.queue_again(again, Future()))
        assert 0 <= pool.free == 100 - sum(batch.reserved for batch in held)
        assert pool.waiting == len(waiting)
