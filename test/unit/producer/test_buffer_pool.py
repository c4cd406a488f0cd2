"""buffer_memory: bounded, first come first served, and every call woken whose record fits."""

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
    assert pool.join("t", 100) is None


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
    pool.allocate(batch := SimpleNamespace(reserved=0), 0, spent)
    assert batch.reserved == 5
    for _ in range(2):
        pool.cancel(granted)
        pool.cancel(spent)
        assert pool.free == 15


def test_a_call_whose_record_fits_into_a_batch_joins_it_before_younger_ones():
    pool = BufferPool(100)
    take(pool, 100)
    first, second = queue(pool, 50, 50, target="t", record_size=20)
    (other,) = queue(pool, 50, target="u", record_size=1)
    (large,) = queue(pool, 50, target="t", record_size=70)
    queue(pool, 50, target="t", record_size=1)
    assert pool.join("t", 70) is first
    assert pool.join("t", 19) is None
    assert pool.join("t", 20) is second
    assert pool.join("t", 69) is None, "a small one does not overtake a large one"
    assert pool.join("t", 70) is large
    assert pool.join("u", 1) is other
    assert pool.join("nothing", 5) is None
    assert pool.waiting == 1


def test_a_call_that_could_not_join_waits_in_its_old_place():
    pool = BufferPool(100)
    held = take(pool, 100)
    first, second, third = queue(pool, 40, 40, 40, target="t", record_size=10)
    assert [pool.join("t", 20), pool.join("t", 10)] == [first, second]
    first.ready.success(None)
    second.ready.success(None)
    assert pool.queue_again(second) == []
    assert pool.queue_again(first) == []
    assert not first.ready.is_done
    assert pool.release(held) == [first, second]
    assert pool.cancel(first) == [third]


def test_a_call_that_waits_again_is_granted_what_came_free_meanwhile():
    pool = BufferPool(100)
    held = take(pool, 100)
    (joined,) = queue(pool, 40, target="t", record_size=10)
    assert pool.join("t", 20) is joined
    assert pool.release(held) == []
    assert pool.queue_again(joined) == [joined]
    assert joined.held == 40


STEPS = ["take", "queue", "release", "cancel", "join", "again"]


@given(st.lists(st.tuples(st.sampled_from(STEPS), st.integers(1, 60), st.sampled_from("tu"))))
def test_no_byte_is_lost_or_made_and_no_call_forgotten(steps):  # noqa: C901
    pool, held, waiting, joined, spent = BufferPool(100), [], [], [], []

    def granted(reservations):
        assert reservations == sorted(reservations, key=lambda one: one.number)
        for reservation in reservations:
            assert reservation.number == min(one.number for one in waiting), "out of turn"
            waiting.remove(reservation)
            spent.append(reservation)
            pool.allocate(batch := SimpleNamespace(reserved=0), 0, reservation)
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
            found = pool.join(target, size)
            if found is not None:
                waiting.remove(found)
                joined.append(found)
        elif what == "again" and joined:
            again = joined.pop(size % len(joined))
            waiting.append(again)
            granted(pool.queue_again(again))
        assert 0 <= pool.free == 100 - sum(batch.reserved for batch in held)
        assert pool.waiting == len(waiting)
