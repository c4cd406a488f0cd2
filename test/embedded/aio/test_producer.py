"""`AIOKafkaProducer` against the embedded broker: what it accepts is written once, in order, whatever is cancelled."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import random
import time
import weakref

import pytest

from kafka.aio import AIOKafkaAdminClient, AIOKafkaProducer, IllegalOperation, TopicPartition
from kafka.aio.errors import (
    MessageSizeTooLargeError,
    ProducerClosed,
    RecordTooLargeError,
)
from kafka.aio.structs import RecordMetadata
from kafka.broker import Broker
from test.embedded.holding import held_up

TP = TopicPartition("events", 0)


pytestmark = pytest.mark.kafka_broker(topics={"events": 1, "wide": 4})


def values(broker, topic="events", **options):
    return [record.value for record in broker.records(topic, **options)]


@pytest.mark.parametrize("partitions", [1, 2])
def test_metadata_of_a_record_say_where_its_partition_begins_as_in_aiokafka(run, broker, partitions):
    tps = [TopicPartition("long", number) for number in range(partitions)]
    broker.create_topic("long", partitions)

    async def main():
        async with (
            AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin,
            AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=20) as producer,
        ):
            assert (await producer.send_and_wait("long", b"0", partition=0)).log_start_offset == 0
            await producer.send_and_wait("long", b"1", partition=0)
            await admin.delete_records({tps[0]: 2})
            futures = [await producer.send("long", b"2", partition=tp.partition) for tp in tps]
            assert [(await future).log_start_offset for future in futures] == [2, 0][:partitions]

    run(main())


def test_without_acknowledgements_the_result_is_none_as_in_aiokafka(run, broker):
    class Watching:
        def __init__(self):
            self.seen = []

        def on_acknowledgement(self, metadata, error):
            self.seen.append((metadata.topic_partition, metadata.offset, error))

    async def main():
        watching = Watching()
        async with AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, acks=0, interceptors=[watching]
        ) as producer:
            assert await (await producer.send("events", b"0")) is None
        assert watching.seen == [(TP, -1, None)]
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, acks=0) as producer:
            assert await producer.send_and_wait("events", b"1") is None
            future = await producer.send("events", b"2")
            assert await future is None
            assert future.result() is None
            assert await (await producer.send_many("events", [b"3", b"4"])) == [None, None]
            batch = producer.create_batch()
            batch.append(key=None, value=b"5", timestamp=None)
            assert await (await producer.send_batch(batch, "events", partition=0)) is None

    run(main())
    assert sorted(values(broker)) == [b"%d" % number for number in range(6)]


def test_send_and_wait_and_what_its_metadata_has(run, broker):
    async def main():
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            metadata = await producer.send_and_wait("events", b"v", b"k", timestamp_ms=5, headers=[("a", b"b")])
            assert isinstance(metadata, RecordMetadata)
            assert metadata == ("events", 0, TP, 0, 5, 0, 0)
            future = await producer.send("events", b"w")
            assert asyncio.isfuture(future)
            assert (await future).offset == 1
            assert await producer.partitions_for("wide") == {0, 1, 2, 3}
            assert (await producer.send_and_wait("wide", b"x", partition=3)).partition == 3
            await producer.flush()
            assert producer.health()["ok"] is True
            assert producer.metrics()
            assert producer.bootstrap_connected()
            assert producer.client.cluster.topics() >= {"events", "wide"}
            await producer.client.stop()  # is the producer's to stop
            assert (await producer.send_and_wait("events", b"x")).offset == 2

    run(main())
    (first, *_) = broker.records("events")
    assert (first.key, first.value, first.headers, first.timestamp) == (b"k", b"v", [("a", b"b")], 5)


def test_futures_are_citizens_of_asyncio(run, broker):
    async def main():
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            futures = [await producer.send("events", b"%d" % number) for number in range(100)]
            assert [found.offset for found in await asyncio.gather(*futures)] == list(range(100))
            future = futures[7]
            assert (await future, await future) == (future.result(), future.result())
            assert future.exception() is None
            assert not future.cancelled()
            assert future.get_loop() is asyncio.get_running_loop()
            done, pending = await asyncio.wait([await producer.send("events", b"w") for _ in range(10)])
            assert (len(done), len(pending)) == (10, 0)
            assert (await asyncio.wait_for(await producer.send("events", b"x"), 60)).offset == 110
            assert (await asyncio.shield(await producer.send("events", b"x"))).offset == 111
            several = [await producer.send("events", b"x") for _ in range(5)]
            assert sorted([(await each).offset for each in asyncio.as_completed(several)]) == list(range(112, 117))
            seen = []
            where = contextvars.ContextVar("where", default="nowhere")
            context = contextvars.copy_context()
            context.run(where.set, "callback")
            with held_up(broker, "Produce") as let_go:  # of a future that is done, there are no callbacks to remove
                another = await producer.send("events", b"x")
                another.add_done_callback(lambda which: seen.append((which is another, where.get())), context=context)
                another.add_done_callback(print)
                assert another.remove_done_callback(print) == 1
                let_go()
            await producer.flush()
            while not seen:  # another thread may have brought the answer
                await asyncio.sleep(0)
            assert seen == [(True, "callback")]
            assert len(await (await producer.send_many("events", [b"a", b"b"]))) == 2

    run(main())


def test_what_cannot_be_sent_is_refused_by_send(run_once, broker):
    async def main():
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, max_request_size=10_000) as producer:
            with pytest.raises(MessageSizeTooLargeError) as caught:
                await producer.send("events", bytes(20_000))
            assert isinstance(caught.value, RecordTooLargeError)
            with pytest.raises(TypeError, match="value must be bytes, not str"):
                await producer.send("events", "text")
            with pytest.raises(TypeError, match=r"pass headers by name, headers=\[\.\.\.\]"):
                await producer.send("events", b"v", b"k", [("a", b"b")])
            with pytest.raises(ValueError, match="there is no partition 7"):
                await producer.send("events", b"v", partition=7)
            with pytest.raises(IllegalOperation, match="has no transactional_id"):
                await producer.begin_transaction()

    run_once(main())
    assert values(broker) == []
    for options in ({"acks": 7}, {"compression_type": "zip"}, {"enable_idempotence": True, "acks": 1}):
        with pytest.raises(ValueError, match=next(iter(options))):
            AIOKafkaProducer(**options)
    with pytest.raises(TypeError, match="got both max_batch_size and batch_size"):
        AIOKafkaProducer(max_batch_size=1, batch_size=1)
    assert AIOKafkaProducer(max_batch_size=77).config["batch_size"] == 77


def test_after_stop_every_future_has_an_outcome_and_calls_say_so(run, broker):
    async def main():
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=60_000)
        async with producer:
            futures = [await producer.send("events", b"x") for _ in range(100)]
        assert all(future.done() for future in futures)
        assert [future.result().offset for future in futures] == list(range(100))
        with pytest.raises(ProducerClosed):
            await producer.send("events", b"late")
        with pytest.raises(ProducerClosed):
            await producer.flush()

    run(main())
    assert len(values(broker)) == 100


# Cancelled calls (A2, A3)


@pytest.mark.slow
def test_a_send_that_is_cancelled_is_not_written_and_an_accepted_record_is(run_once):
    """10,000 sends that are cancelled at random moments: counted at the broker."""
    rng = random.Random(7)
    with Broker(topics={"events": 2}) as broker:

        async def main():
            accepted, refused = [], 0
            async with AIOKafkaProducer(
                bootstrap_servers=broker.bootstrap_servers, buffer_memory=20_000, batch_size=5_000, linger_ms=1
            ) as producer:

                async def one(value):
                    await producer.send("events", value)
                    accepted.append(value)

                for begin in range(0, 10_000, 100):
                    tasks = [asyncio.ensure_future(one(b"%d" % number * 40)) for number in range(begin, begin + 100)]
                    for _ in range(rng.randrange(4)):
                        await asyncio.sleep(0)
                    for task in rng.sample(tasks, 50):
                        task.cancel()
                    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
                    refused += sum(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
                    assert not [one for one in outcomes if one and not isinstance(one, asyncio.CancelledError)]
                await producer.flush()
                assert producer._calls.accumulator.memory.waiting == 0
            return accepted, refused

        accepted, refused = run_once(main())
        assert refused > 1000
        assert len(accepted) + refused == 10_000
        assert sorted(values(broker)) == sorted(accepted)


def test_cancelling_send_and_wait_or_a_future_withdraws_nothing(run, broker):
    async def main():
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=10_000) as producer:
            await producer.partitions_for("events")
            tasks = [asyncio.ensure_future(producer.send_and_wait("events", b"%d" % number)) for number in range(50)]
            for _ in range(3):  # send() may let other tasks run first
                await asyncio.sleep(0)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            futures = [await producer.send("events", b"%d" % number) for number in range(50, 100)]
            assert all(future.cancel() for future in futures)
            assert all(future.cancelled() for future in futures)
            await producer.flush()

    run(main())
    assert values(broker) == [b"%d" % number for number in range(100)]


def test_a_flush_that_is_cancelled_leaves_nothing_behind(run_once, broker):
    async def main():
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=1000) as producer:
            await producer.partitions_for("events")
            for number in range(50):
                await producer.send("events", b"%d" % number)
                task = asyncio.ensure_future(producer.flush())
                for _ in range(number % 5):
                    await asyncio.sleep(0)
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
            await producer.flush()

    run_once(main())
    assert values(broker) == [b"%d" % number for number in range(50)]


# Transactions


def test_transactions(run, broker):
    async def main():
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="mover") as producer:
            with pytest.raises(IllegalOperation):
                await producer.send("events", b"outside")
            async with producer.transaction():
                await producer.send("events", b"committed")
                with pytest.raises(TypeError, match=r"must be .* the name of a group, not bytes"):
                    await producer.send_offsets_to_transaction({TP: 3}, b"g")
                await producer.send_offsets_to_transaction({TP: (3, "note")}, "g")
            with pytest.raises(ZeroDivisionError):  # noqa: PT012
                async with producer.transaction():
                    await producer.send("events", b"aborted")
                    raise ZeroDivisionError
            await producer.begin_transaction()
            await producer.send_and_wait("events", b"also committed")
            await producer.commit_transaction()
            with pytest.raises(IllegalOperation):
                await producer.send("events", b"outside")
            with pytest.raises(IllegalOperation):
                await producer.commit_transaction()

    run(main())
    assert values(broker, committed=True) == [b"committed", b"also committed"]
    assert broker.committed("g", "events") == 3


def test_a_commit_that_is_cancelled_continues_and_the_next_call_waits_for_its_end(run_once, broker):
    async def main():
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="mover") as producer:
            for number in range(20):
                await producer.begin_transaction()
                await producer.send("events", b"%d" % number)
                committing = asyncio.ensure_future(producer.commit_transaction())
                for _ in range(number):
                    await asyncio.sleep(0)
                committing.cancel()
                await asyncio.gather(committing, return_exceptions=True)
                if committing.cancelled():
                    await producer.commit_transaction()

    run_once(main())
    assert values(broker, committed=True) == [b"%d" % number for number in range(20)]


@pytest.mark.parametrize(("first", "second"), [("commit", "abort"), ("abort", "commit")])
def test_the_end_of_a_transaction_that_was_cancelled_is_reported_as_what_it_was(run_once, broker, first, second):
    """While EndTxn is under way, and when it is done, the other end is refused."""

    async def main():
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="mover") as producer:
            await producer.begin_transaction()
            await producer.send_and_wait("events", first.encode())
            with held_up(broker, "EndTxn") as let_go:
                ending = asyncio.ensure_future(getattr(producer, f"{first}_transaction")())
                while not any(seen.name == "EndTxn" for seen in broker.requests):
                    await asyncio.sleep(0)
                ending.cancel()
                await asyncio.wait([ending])
                assert ending.cancelled()
                with pytest.raises(IllegalOperation, match=rf"{first}_transaction\(\).* call it again"):
                    await getattr(producer, f"{second}_transaction")()
                let_go()
            with pytest.raises(IllegalOperation, match=rf"{first}_transaction\(\).* call it again"):
                await getattr(producer, f"{second}_transaction")()
            await getattr(producer, f"{first}_transaction")()
            await producer.begin_transaction()
            await producer.send("events", b"next")
            await producer.commit_transaction()

    run_once(main())
    assert values(broker, committed=True) == [*([b"commit"] if first == "commit" else []), b"next"]


def test_a_task_cancelled_in_the_block_of_a_transaction_does_not_wait_for_a_silent_coordinator(run_once, broker):
    async def main():
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="mover") as producer:
            entered = asyncio.Event()

            async def work():
                async with producer.transaction():
                    await producer.send_and_wait("events", b"x")
                    entered.set()
                    await asyncio.Event().wait()

            with held_up(broker, "EndTxn") as let_go:
                task = asyncio.ensure_future(work())
                await entered.wait()
                task.cancel()
                await asyncio.wait([task], timeout=15)
                assert task.cancelled()
                let_go()
            await producer.abort_transaction()  # waits for the rest
            async with producer.transaction():
                await producer.send("events", b"next")

    run_once(main())
    assert values(broker, committed=True) == [b"next"]


def test_init_transactions_needs_a_transactional_id_and_a_producer_that_was_not_stopped(run_once, broker):
    async def main():
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as plain:
            with pytest.raises(IllegalOperation, match="no transactional_id"):
                await plain.init_transactions()
        async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="mover") as producer:
            await producer.init_transactions()  # start() has done it
        with pytest.raises(ProducerClosed):
            await producer.init_transactions()

    run_once(main())


# Batches of the application


def test_create_batch_and_send_batch(run, broker):
    async def main():
        async with AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, max_batch_size=1000, value_serializer=str.encode
        ) as producer:
            batch = producer.create_batch()
            assert (batch.record_count(), batch.closed()) == (0, False)
            first = batch.append(timestamp=5, key=b"k", value="0", headers=[("h", b"x")])
            assert (first.offset, first.timestamp) == (0, 5)
            assert first.size > 0
            count = 1
            while batch.append(timestamp=None, key=None, value=str(count)) is not None:
                count += 1
            assert count == batch.record_count() > 20
            assert batch.size() <= 1000
            batch.close()
            assert batch.closed()
            assert batch.append(timestamp=None, key=None, value="late") is None
            before = await producer.send("wide", "before", partition=1)
            metadata = await (await producer.send_batch(batch, "wide", partition=1))
            chosen = producer.create_batch()
            chosen.append(timestamp=None, key=None, value="anywhere")
            placed = await (await producer.send_batch(chosen, "events", partition=None))
            assert (placed.topic, placed.offset) == ("events", 0)
            assert (metadata.partition, metadata.offset, metadata.timestamp) == (1, 1, 5)
            assert (await before).offset == 0
            with pytest.raises(Exception, match="was sent before"):
                await producer.send_batch(batch, "wide", partition=1)
            with pytest.raises(ValueError, match="there is no partition 9"):
                await producer.send_batch(producer.create_batch(), "wide", partition=9)
            return count

    count = run(main())
    assert values(broker, "wide", partition=1) == [b"before", *(b"%d" % number for number in range(count))]


# Context and lifetime (A16, A18)


def test_serializers_and_partitioners_see_the_context_of_the_caller(run_once, broker):
    tenant = contextvars.ContextVar("tenant", default="none")

    def partitioner(_key, partitions, _available):
        return partitions[int(tenant.get()[-1])]

    async def main():
        async with AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers,
            value_serializer=lambda value: f"{tenant.get()}:{value}".encode(),
            partitioner=partitioner,
        ) as producer:

            async def caller(name):
                tenant.set(name)
                return await producer.send_and_wait("wide", "v")

            found = await asyncio.gather(caller("t1"), caller("t3"))
            assert [metadata.partition for metadata in found] == [1, 3]

    run_once(main())
    assert sorted(values(broker, "wide")) == [b"t1:v", b"t3:v"]


def test_nothing_keeps_the_context_of_a_caller_alive(run_once, broker):
    class Tenant:
        pass

    tenant = contextvars.ContextVar("tenant")
    refs = []

    async def main():
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers)

        async def caller(call):
            tenant.set(Tenant())
            refs.append(weakref.ref(tenant.get()))
            await call()

        async def send():
            await producer.send_and_wait("events", b"x")
            await producer.flush()

        await asyncio.create_task(caller(producer.start))
        await asyncio.create_task(caller(send))
        await asyncio.sleep(0.05)
        gc.collect()
        assert [ref() for ref in refs] == [None, None]
        await producer.stop()

    run_once(main())


def test_a_dropped_producer_delivers_what_it_has_accepted_and_is_collected(run_once, broker):
    async def main():
        loop = asyncio.get_running_loop()
        handler, told = loop.get_exception_handler(), []
        loop.set_exception_handler(lambda _loop, context: told.append(context["message"]))
        producer = AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        await producer.start()
        await producer.send_and_wait("events", b"x")
        ref = weakref.ref(producer)
        kept = [producer]
        del producer
        with pytest.warns(ResourceWarning, match="^Unclosed AIOKafkaProducer"):
            kept.clear()
        await asyncio.sleep(0.01)
        gc.collect()
        assert ref() is None
        assert told == ["Unclosed AIOKafkaProducer"]
        loop.set_exception_handler(handler)

    run_once(main())


# Memory, and many tasks (A10, A15)


def test_ten_thousand_tasks_that_wait_for_room_are_all_served(run_once, broker):
    async def main():
        async with AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, buffer_memory=65_536, max_batch_size=16_384
        ) as producer:
            await producer.partitions_for("events")
            tasks = [asyncio.ensure_future(producer.send("events", b"%d" % number * 20)) for number in range(10_000)]
            sent, most = asyncio.gather(*tasks), 0
            while not sent.done():
                most = max(most, producer._calls.accumulator.memory.waiting)
                await asyncio.sleep(0)
            assert most > 1000
            await sent
            await producer.flush()
            assert producer._calls.accumulator.memory.waiting == 0

    run_once(main())
    assert len(set(values(broker))) == 10_000


@pytest.mark.slow
def test_a_record_of_three_thousand_tasks_that_wait_costs_at_most_twice_that_of_one_task_that_waits(run_once, broker):
    """The buffer has room for one record: each send() waits for the one before it."""
    costs = {}

    async def main():
        async with AIOKafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, buffer_memory=200, max_batch_size=200
        ) as producer:
            memory = producer._calls.accumulator.memory

            async def some(count):
                for _ in range(count):
                    await producer.send("events", b"x" * 100)

            await some(300)
            for tasks, each in ((1, 1000), (3_000, 1)):
                sending = [asyncio.ensure_future(some(each)) for _ in range(tasks)]
                began = time.thread_time()  # the broker has threads of its own
                await asyncio.sleep(0)
                assert memory.waiting >= tasks - 1 - (tasks > 1)
                await asyncio.gather(*sending)
                await producer.flush()
                costs[tasks] = (time.thread_time() - began) / (tasks * each)

    run_once(main())
    print({tasks: f"{seconds * 1e6:.0f} us" for tasks, seconds in costs.items()})
    assert costs[3_000] < 2 * costs[1]
