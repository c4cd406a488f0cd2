"""A partition's log, in memory and on disk alike."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafka.broker.storage.cleaner import compact, compaction
from kafka.broker.storage.log import Log, LogConfig
from kafka.broker.storage.segment import DiskSegment, MemorySegment, Segment
from kafka.broker.storage.times import Reader, first_at_or_after, greatest_timestamp, offsets_before
from kafka.errors import InvalidProducerEpochError, OutOfOrderSequenceNumberError, TransactionCoordinatorFencedError
from kafka.record.batch import decode_batch
from kafka.record.batch_builder import BatchBuilder
from kafka.record.header import BatchHeader, read_header, scan

NOW = 1_700_000_000_000


class Clock:
    now = NOW

    def __call__(self) -> int:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "disk"])
def make(request: pytest.FixtureRequest, clock: Clock, tmp_path: Path) -> Iterator[Callable[..., Log]]:
    made: list[Log] = []

    def make_segment(base: int, created: int) -> Segment:
        return DiskSegment(tmp_path / f"{base:020}.log", base, created)

    def make_log(**config: object) -> Log:
        log = Log(MemorySegment if request.param == "memory" else make_segment, clock, LogConfig(**config))  # type: ignore[arg-type]
        made.append(log)
        return log

    yield make_log
    for log in made:
        log.close()


def batch(
    *values: bytes | None, key: bytes | None = None, at: int = NOW, codec: str | None = None, **seal: object
) -> bytes:
    builder = BatchBuilder(2**30, codec)
    for number, value in enumerate(values):
        builder.append(at + number, key, value)
    return builder.seal(**seal).data  # type: ignore[arg-type]


def values(data: object) -> list[bytes | None]:
    return [row.value for header in scan(data) for row in decode_batch(data, header)]  # type: ignore[arg-type]


def test_appended_records_are_read_at_their_offsets(make: Callable[..., Log]) -> None:
    log = make()
    assert [log.append(batch(b"a", b"b"), 0), log.append(batch(b"c"), 1)] == [0, 2]
    data = log.read(0, 10_000)
    assert values(data) == [b"a", b"b", b"c"]
    assert [(header.base_offset, header.leader_epoch) for header in scan(data)] == [(0, 0), (2, 1)]
    assert values(log.read(1, 10_000)) == [b"a", b"b", b"c"]  # from the batch that holds it
    assert values(log.read(2, 10_000)) == [b"c"]
    assert values(log.read(3, 10_000)) == []
    assert values(log.read(0, 10_000, 2)) == [b"a", b"b"]


def test_reads_cross_segments_and_end_at_the_limit(make: Callable[..., Log]) -> None:
    log = make(segment_bytes=200)
    for number in range(10):
        log.append(batch(b"%d" % number * 50), 0)
    assert len(log.segments) > 3
    assert len(values(log.read(0, 100_000))) == 10
    assert len(log.read(0, 300)) == 300
    assert len(values(log.read(0, 1))) == 1
    assert len(log.read(4, 150, whole_first=False)) == 150
    assert log.read(0, 1, whole_first=False) == b""
    assert log.available(4, 10, 10_000) == len(log.read(4, 100_000))
    assert log.offset_after(0, len(log.read(0, 300))) == 3


def test_views_that_were_given_out_stay_as_they_are(make: Callable[..., Log]) -> None:
    log = make()
    log.append(batch(b"first"), 0)
    view = log.read(0, 1000)
    before = bytes(view)
    for _ in range(300):
        log.append(batch(b"x" * 100), 0)
    assert bytes(view) == before


def test_epochs_end_where_the_next_one_begins(make: Callable[..., Log]) -> None:
    log = make()
    log.begin_epoch(0)
    log.append(batch(b"a", b"b"), 0)
    log.begin_epoch(2)
    log.append(batch(b"c"), 2)
    log.begin_epoch(5)
    assert log.epoch_end(0) == (0, 2)
    assert log.epoch_end(1) == (0, 2)
    assert log.epoch_end(2) == (2, 3)
    assert log.epoch_end(5) == (5, 3)
    assert log.epoch_end(6) == (-1, -1)
    assert [log.epoch_of(offset) for offset in (0, 1, 2)] == [0, 0, 2]
    log.begin_epoch(7)  # epoch 5 wrote nothing
    assert log.epochs == [(0, 0), (2, 2), (7, 3)]


def test_deleting_moves_the_start_and_drops_whole_segments(make: Callable[..., Log]) -> None:
    log = make(segment_bytes=200)
    for number in range(10):
        log.append(batch(b"%d" % number * 50), 0)
    count = len(log.segments)
    log.delete_before(5)
    assert (log.start_offset, log.end_offset) == (5, 10)
    assert len(log.segments) < count
    log.delete_before(3)
    assert log.start_offset == 5
    log.delete_before(10)
    assert (log.start_offset, log.end_offset, log.segments) == (10, 10, [])
    assert log.append(batch(b"next"), 0) == 10


def test_retention_by_time_and_by_size(make: Callable[..., Log], clock: Clock) -> None:
    log = make(segment_bytes=200, retention_ms=5000, retention_bytes=500)
    for number in range(10):
        clock.now = NOW + number * 1000
        log.append(batch(b"%d" % number * 50, at=clock.now), 0)
    assert log.apply_retention()
    assert log.size <= 700
    clock.now += 100_000
    assert log.apply_retention()
    assert (log.start_offset, log.size) == (10, 0)
    assert not log.apply_retention()


def test_retention_by_size_leaves_no_less_than_the_limit(make: Callable[..., Log]) -> None:
    log = make(segment_bytes=200, retention_ms=-1, retention_bytes=500)
    for _ in range(20):
        log.append(batch(b"x" * 50), 0)
    whole = log.segments[0].size
    assert log.apply_retention()
    assert 500 <= log.size < 500 + whole
    while (log.size - 500) % whole == 0:
        log.append(batch(b"x" * 50), 0)
    assert 0 < log.size - 500 < whole
    assert not log.apply_retention()  # without its first segment it would have less than the limit


def test_a_segment_is_as_long_as_its_records_say(make: Callable[..., Log], clock: Clock) -> None:
    day = 86_400_000
    log = make(segment_ms=7 * day, retention_ms=7 * day)
    log.append(batch(b"old", at=NOW - 30 * day), 0)
    log.append(batch(b"new"), 0)
    clock.now += 6 * day
    log.append(batch(b"newer", at=clock.now), 0)
    assert [segment.base_offset for segment in log.segments] == [0, 1]
    assert log.apply_retention()
    assert log.start_offset == 1  # Kafka's answer for the old record: OFFSET_OUT_OF_RANGE


def test_by_the_clock_a_segment_ends_only_where_records_have_no_time(make: Callable[..., Log], clock: Clock) -> None:
    log = make(segment_ms=1000)
    log.append(batch(b"a"), 0)
    clock.now += 5000
    log.append(batch(b"b", at=NOW + 1), 0)
    assert len(log.segments) == 1
    builder = BatchBuilder(2**30, None)
    builder.append(-1, None, b"c")
    data = builder.seal().data
    log.roll()
    log.append(data, 0)
    log.append(data, 0)
    assert len(log.segments) == 2
    clock.now += 5000
    log.append(data, 0)
    assert len(log.segments) == 3


def test_records_are_found_by_time(make: Callable[..., Log]) -> None:
    log = make(segment_bytes=200)
    for at in (NOW, NOW + 100, NOW + 50):
        log.append(batch(b"a" * 30, b"b" * 30, at=at), 0)
    assert first_at_or_after(log, NOW, Reader()) == (NOW, 0, 0)
    assert first_at_or_after(log, NOW + 1, Reader()) == (NOW + 1, 1, 0)
    assert first_at_or_after(log, NOW + 2, Reader()) == (NOW + 100, 2, 0)
    assert first_at_or_after(log, NOW + 102, Reader()) is None
    assert greatest_timestamp(log, Reader()) == (NOW + 101, 3, 0)
    assert offsets_before(log, -1, 10)[0] == 6
    assert offsets_before(log, -2, 10) == [0]


def test_markers_are_found_by_time_too(make: Callable[..., Log], clock: Clock) -> None:
    # Kafka answers MAX_TIMESTAMP with the marker, and a time between the last record and the marker as well.
    log = make()
    log.append(sent(0, transactional=True), 0)
    clock.now += 500
    log.append_marker(1, 0, 0, committed=True)
    assert greatest_timestamp(log, Reader()) == (NOW + 500, 1, 0)
    assert first_at_or_after(log, NOW + 1, Reader()) == (NOW + 500, 1, 0)


def test_the_greatest_of_no_timestamps_is_the_first_record(make: Callable[..., Log]) -> None:
    log = make()
    assert greatest_timestamp(log, Reader()) is None
    builder = BatchBuilder(2**30, None)
    builder.append(-1, None, b"a")
    builder.append(-1, None, b"b")
    log.append(builder.seal().data, 0)
    assert greatest_timestamp(log, Reader()) == (-1, 0, 0)  # as Kafka has it
    assert first_at_or_after(log, 0, Reader()) is None


# Producers and transactions


def check(log: Log, data: bytes) -> None:
    header = read_header(data)
    assert header is not None
    log.producers.check(header)


def sent(sequence: int, epoch: int = 0, **seal: object) -> bytes:
    return batch(b"v", producer_id=1, producer_epoch=epoch, base_sequence=sequence, **seal)


@pytest.mark.parametrize(("is_v2", "after"), [(False, "current end sequence"), (True, "earliest seen sequence")])
def test_no_batch_is_accepted_without_an_earlier_one_that_the_coordinator_refused(
    make: Callable[..., Log], is_v2: bool, after: str
) -> None:
    """Kafka remembers the lowest sequence number that a producer has tried since its last batch or marker here."""
    log = make()

    def attempt(sequence: int) -> None:
        header = read_header(sent(sequence, transactional=True))
        assert header is not None
        log.producers.attempt(header, is_v2=is_v2)

    for sequence in (4, 2, 7):
        attempt(sequence)
    check(log, sent(2, transactional=True))
    with pytest.raises(OutOfOrderSequenceNumberError, match=r"3 .incoming seq. number., 2 .earliest seen sequence"):
        check(log, sent(3, transactional=True))
    # The marker of a v2 transaction has the epoch that the next one begins with.
    log.append_marker(1, 0, 0, committed=False)
    with pytest.raises(OutOfOrderSequenceNumberError, match=after):
        check(log, sent(3, transactional=True))
    log.append(sent(2, transactional=True), 0)
    attempt(1)  # of a transaction that has begun
    check(log, sent(3, transactional=True))


def test_sequences_continue_without_gaps(make: Callable[..., Log]) -> None:
    log = make()
    for sequence in range(7):
        check(log, sent(sequence))
        log.append(sent(sequence), 0)
    for wrong in (0, 5, 6, 8):
        with pytest.raises(OutOfOrderSequenceNumberError):
            check(log, sent(wrong))
    known = [log.producers.find_duplicate(read_header(sent(sequence))) for sequence in range(8)]  # type: ignore[arg-type]
    assert [mark and mark.base_offset for mark in known] == [None, None, 2, 3, 4, 5, 6, None]
    check(log, sent(0, epoch=1))
    with pytest.raises(OutOfOrderSequenceNumberError, match="new epoch"):
        check(log, sent(7, epoch=1))


def test_transactions_hold_the_stable_offset_back(make: Callable[..., Log]) -> None:
    log = make()
    log.append(batch(b"plain"), 0)
    log.append(sent(0, transactional=True), 0)
    log.append(batch(b"plain"), 0)
    assert (log.stable_offset, log.end_offset) == (1, 3)
    assert log.append_marker(1, 0, 0, committed=False) == 3
    assert log.stable_offset == 4
    assert [(one.producer_id, one.first_offset) for one in log.producers.aborted_between(0, 4)] == [(1, 1)]
    assert log.producers.aborted_between(4, 9) == []
    log.append(sent(1, transactional=True), 0)
    log.append_marker(1, 0, 0, committed=True)
    assert len(log.producers.aborted) == 1


def test_a_producer_is_forgotten_after_a_day_unless_its_transaction_is_open(
    make: Callable[..., Log], clock: Clock
) -> None:
    log = make(retention_ms=-1)
    log.append(sent(0, transactional=True), 0)
    clock.now += 2 * 86_400_000
    log.apply_retention()
    with pytest.raises(OutOfOrderSequenceNumberError):
        check(log, sent(7, transactional=True))
    log.append_marker(1, 0, 0, committed=True)
    clock.now += 4 * 86_400_000
    log.apply_retention()
    assert log.producers.states == {}


def test_the_stable_offset_is_not_before_the_start(make: Callable[..., Log]) -> None:
    log = make()
    log.append(sent(0, transactional=True), 0)
    log.append(batch(b"a", b"b"), 0)
    log.delete_before(3)
    assert (log.start_offset, log.stable_offset, log.end_offset) == (3, 3, 3)  # as Kafka has it
    log.append_marker(1, 0, 0, committed=False)
    assert log.stable_offset == 4


def test_late_markers_are_fenced(make: Callable[..., Log]) -> None:
    log = make()
    log.append(sent(0, epoch=3, transactional=True), 0)
    with pytest.raises(InvalidProducerEpochError):
        log.append_marker(1, 2, 0, committed=True)
    log.append_marker(1, 3, 0, committed=True, coordinator_epoch=5)
    with pytest.raises(TransactionCoordinatorFencedError):
        log.append_marker(1, 3, 0, committed=True, coordinator_epoch=4)
    with pytest.raises(InvalidProducerEpochError):
        check(log, sent(0, epoch=2))


def test_after_a_marker_of_a_later_epoch_sequences_begin_again(make: Callable[..., Log]) -> None:
    log = make()
    log.append(sent(0, transactional=True), 0)
    log.append_marker(1, 1, 0, committed=True)
    check(log, sent(0, 1, transactional=True))
    log.append(sent(0, 1, transactional=True), 0)
    header = read_header(sent(0, transactional=True))
    assert header is not None
    assert log.producers.find_duplicate(header) is None, "it is of an earlier epoch, and fenced"
    with pytest.raises(InvalidProducerEpochError):
        log.producers.check(header)


def test_a_batch_is_a_duplicate_only_with_the_same_first_and_last_sequence(make: Callable[..., Log]) -> None:
    log = make()
    log.append(batch(b"a", b"b", b"c", producer_id=1, producer_epoch=0, base_sequence=0), 0)

    def again(*values: bytes, sequence: int = 0) -> BatchHeader:
        header = read_header(batch(*values, producer_id=1, producer_epoch=0, base_sequence=sequence))
        assert header is not None
        return header

    assert log.producers.find_duplicate(again(b"a", b"b", b"c")) is not None
    for other in (again(b"a", b"b"), again(b"a", b"b", b"c", b"d"), again(b"b", b"c", sequence=1)):
        assert log.producers.find_duplicate(other) is None
        with pytest.raises(OutOfOrderSequenceNumberError):
            log.producers.check(other, begins_at_zero=False)


def test_idle_producers_are_forgotten_but_not_their_transactions(make: Callable[..., Log], clock: Clock) -> None:
    log = make()
    log.append(sent(0), 0)
    log.append(batch(b"v", producer_id=2, producer_epoch=0, base_sequence=0, transactional=True), 0)
    clock.now += 3 * 86_400_000
    log.apply_retention()
    assert set(log.producers.states) <= {2}


# Compaction


@pytest.mark.parametrize("codec", [None, "gzip", "lz4"])
def test_compaction_keeps_the_latest_of_each_key(make: Callable[..., Log], clock: Clock, codec: str | None) -> None:
    log = make(compacts=True, deletes=False)
    builder = BatchBuilder(2**20, codec)
    for key, value in ((b"a", b"1" * 50), (b"b", b"1" * 50), (b"a", b"2" * 50), (b"c", None), (b"b", None)):
        builder.append(NOW, key, value, [("h", b"x")])
    log.append(builder.seal().data, 4)
    log.append(batch(b"3", key=b"a", codec=codec), 4)
    log.roll()
    log.append(batch(b"last", key=b"a"), 4)
    assert compact(log, clock.now) > 0
    data = log.read(0, 1 << 20)
    rows = [row for header in scan(data) for row in decode_batch(data, header)]
    assert [(row.offset, row.key, row.value) for row in rows] == [
        (3, b"c", None), (4, b"b", None), (5, b"a", b"3"), (6, b"a", b"last"),
    ]  # fmt: skip
    assert rows[0].headers == [("h", b"x")]
    assert [header.leader_epoch for header in scan(data)] == [4, 4, 4]
    assert log.dirty_ratio() == 0
    # Tombstones go when they have been there for long enough after the first pass, whatever their timestamps.
    compact(log, clock.now + 86_400_000 - 1)
    assert [
        row.offset for header in scan(log.read(0, 1 << 20)) for row in decode_batch(log.read(0, 1 << 20), header)
    ] == [*(3, 4, 5, 6)]
    compact(log, clock.now + 86_400_000)
    rows = [row for header in scan(log.read(0, 1 << 20)) for row in decode_batch(log.read(0, 1 << 20), header)]
    assert [row.offset for row in rows] == [5, 6]
    assert values(log.read(1, 1 << 20)) == [b"3", b"last"]


def offsets(log: Log) -> list[int]:
    data = log.read(0, 1 << 20)
    return [row.offset for header in scan(data) for row in decode_batch(data, header)]


def test_a_tombstone_stays_from_the_first_compaction_on_for_delete_retention_ms(
    make: Callable[..., Log], clock: Clock
) -> None:
    log = make(compacts=True, deletes=False, delete_retention_ms=1000)
    three_days_ago = clock.now - 3 * 86_400_000
    log.append(batch(None, key=b"a", at=three_days_ago), 0)
    log.append(batch(b"v", key=b"b", at=three_days_ago), 0)
    log.append(batch(b"w", key=b"b", at=three_days_ago), 0)
    log.roll()
    compact(log, clock.now)
    assert offsets(log) == [0, 2]
    data = log.read(0, 1 << 20)
    header = next(iter(scan(data)))
    (tombstone,) = decode_batch(data, header)
    assert header.delete_horizon_ms == clock.now + 1000
    assert (tombstone.value, tombstone.timestamp) == (None, three_days_ago)
    compact(log, clock.now + 999)
    assert offsets(log) == [0, 2]
    compact(log, clock.now + 1000)
    assert offsets(log) == [2]


def test_a_marker_stays_until_its_records_are_gone_and_then_for_delete_retention_ms(
    make: Callable[..., Log], clock: Clock
) -> None:
    log = make(compacts=True, deletes=False, delete_retention_ms=1000)
    for committed in (True, False):
        sequence = 0 if committed else 1
        log.append(
            batch(b"v", key=b"k", producer_id=1, producer_epoch=0, base_sequence=sequence, transactional=True), 0
        )
        log.append_marker(1, 0, 0, committed=committed)
    log.append(batch(b"w", key=b"k"), 0)
    log.roll()
    clock.now += 10_000  # their timestamps do not matter
    compact(log, clock.now)  # takes the records, and sees them: the markers have no horizon yet
    assert offsets(log) == [1, 3, 4]
    compact(log, clock.now + 5000)
    assert offsets(log) == [1, 3, 4]
    compact(log, clock.now + 5999)
    assert offsets(log) == [1, 3, 4]
    compact(log, clock.now + 6000)
    assert offsets(log) == [4]


def test_compaction_drops_what_has_no_key(make: Callable[..., Log], clock: Clock) -> None:
    log = make(compacts=True, deletes=False)
    log.append(batch(b"none", key=None), 0)
    log.append(batch(b"one", key=b"k"), 0)
    log.roll()
    compact(log, clock.now)
    assert offsets(log) == [1]


def test_compaction_ends_at_the_first_segment_that_is_too_young(make: Callable[..., Log], clock: Clock) -> None:
    log = make(compacts=True, deletes=False, min_compaction_lag_ms=1000)
    for age in (5000, 0, 5000):
        log.append(batch(b"v", key=b"k", at=clock.now - age), 0)
        log.roll()
    log.append(batch(b"v", key=b"k", at=clock.now), 0)
    compact(log, clock.now)
    assert log.compacted_to == 1


def test_records_older_than_max_compaction_lag_are_dirty_and_in_a_complete_segment(
    make: Callable[..., Log], clock: Clock
) -> None:
    log = make(compacts=True, max_compaction_lag_ms=1000)
    log.append(batch(b"v", key=b"k", at=clock.now), 0)
    assert not log.is_dirty_before(clock.now + 1)
    log.append(batch(b"v", key=b"k", at=clock.now + 2000), 0)  # in another segment: the first may be compacted
    assert len(log.segments) == 2
    assert log.is_dirty_before(clock.now + 1)
    assert not log.is_dirty_before(clock.now)
    compact(log, clock.now)
    assert not log.is_dirty_before(clock.now + 1)


def test_a_segment_that_goes_during_a_compaction_ends_it(make: Callable[..., Log], clock: Clock) -> None:
    log = make(compacts=True)
    for _ in range(2):
        log.append(batch(b"v", b"w", key=b"k"), 0)
        log.roll()
    for steps in range(6):
        cleaning = compaction(log, clock.now)
        for _ in range(steps):
            next(cleaning, None)
    log.delete_before(log.end_offset)
    assert list(cleaning) == []
    assert offsets(log) == []


def test_an_empty_segment_does_not_stop_retention(make: Callable[..., Log], clock: Clock) -> None:
    log = make(compacts=True, retention_ms=1000)
    log.append(batch(b"v", key=b"k"), 0)
    log.roll()
    log.append(batch(b"w", key=b"k"), 0)
    log.roll()
    compact(log, clock.now)
    assert [len(segment) for segment in log.segments] == [0, 1, 0]
    clock.now += 2000
    assert log.apply_retention()
    assert log.start_offset == 2


def test_compaction_stops_at_open_transactions(make: Callable[..., Log], clock: Clock) -> None:
    log = make(compacts=True, deletes=False)
    log.append(batch(b"old", key=b"k"), 0)
    log.append(sent(0, transactional=True), 0)
    log.roll()
    log.append(batch(b"new", key=b"k"), 0)
    log.roll()
    assert compact(log, clock.now) == 0
    log.append_marker(1, 0, 0, committed=False)
    assert compact(log, clock.now) > 0
    data = log.read(0, 1 << 20)
    assert [row.value for header in scan(data) if not header.is_control for row in decode_batch(data, header)] == [
        b"new"
    ]


def test_without_room_for_a_byte_the_last_segment_goes_too(make: Callable[..., Log]) -> None:
    log = make(retention_ms=-1, retention_bytes=0)
    log.append(batch(b"a"), 0)
    log.append(batch(b"b"), 0)
    assert log.apply_retention()
    assert (log.start_offset, log.end_offset, log.size) == (2, 2, 0)
    assert log.append(batch(b"c"), 0) == 2


def test_a_segment_that_compaction_has_emptied_goes_with_the_next_one(make: Callable[..., Log], clock: Clock) -> None:
    day = 86_400_000
    log = make(compacts=True, deletes=True, segment_ms=1000, retention_ms=2 * day)
    for number in range(3):
        clock.now = NOW + number * day
        log.append(batch(b"value", key=b"key", at=clock.now), 0)
    compact(log, clock.now)
    assert [len(segment) for segment in log.segments] == [0, 1, 1]
    clock.now += day
    assert not log.apply_retention()  # the record of the second day is no older than the limit
    clock.now += 1
    assert log.apply_retention()
    assert log.start_offset == 2
