"""One member of a group, of whichever library the interpreter has; it writes what happens to it, a JSON line each.

Run as ``python program.py '{"kind": "ours", ...}'``; ``members.py`` does, and reads the lines. It polls, says what it
was given before it polls again, and commits just that. SIGTERM lets it commit, leave and end.

    {"t": 12.3, "e": "assigned", "p": [0, 1]}              the listener is called; also "revoked", "lost"
    {"t": 12.4, "e": "read", "p": 0, "o": [[5, 9]], "v": [[5, 9]]}    offsets and values, as ranges
    {"t": 12.5, "e": "committed", "o": {"0": 10}}          the broker said yes; "refused" with an error otherwise

Times are of the machine's monotonic clock, so that what several processes say can be put in order.
"""

import json
import os
import signal
import sys
import time


class Diary:
    """The file with the lines. Each is written at once, so that a kill loses none."""

    def __init__(self, path):
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def say(self, event, **what):
        os.write(self._file, json.dumps({"t": time.monotonic(), "e": event, **what}).encode() + b"\n")

    def numbers(self, event, partitions):
        self.say(event, p=sorted(partition.partition for partition in partitions))

    def read(self, partition, rows):
        self.say("read", p=partition, o=ranges(row[0] for row in rows), v=ranges(row[1] for row in rows))


def ranges(numbers):
    found = []
    for number in numbers:
        if found and found[-1][1] + 1 == number:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


class Classic:
    """Ours and kafka-python's, which have the same face."""

    def __init__(self, plan, diary):
        from kafka import ConsumerRebalanceListener, KafkaConsumer

        self.plan, self.diary = plan, diary
        self.sync, member = plan["commit"] == "sync", self

        class Listener(ConsumerRebalanceListener):
            def on_partitions_assigned(self, assigned):
                diary.numbers("assigned", assigned)

            def on_partitions_revoked(self, revoked):
                time.sleep(plan.get("listener_s", 0))
                # kafka-python's listeners may not block; what a poll returned was committed before the next one.
                if revoked and member.sync and plan["kind"] == "ours":
                    member.commit()
                diary.numbers("revoked", revoked)

            def on_partitions_lost(self, lost):
                diary.numbers("lost", lost)

        self.consumer = KafkaConsumer(
            bootstrap_servers=plan["servers"].split(","),
            group_id=plan["group"],
            auto_offset_reset="earliest",
            enable_auto_commit=not self.sync,
            **self._protocol(plan),
            **plan["options"],
        )
        self.consumer.subscribe([plan["topic"]], listener=Listener())

    def _protocol(self, plan):
        if plan["assignors"] is None:  # what its users have by default
            return {}
        if plan["kind"] == "ours":
            if plan["protocol"] == "consumer":
                return {"group_protocol": "consumer"}
            return {"partition_assignment_strategy": plan["assignors"]}
        from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
        from kafka.coordinator.assignors.range import RangePartitionAssignor
        from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
        from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

        known = {
            "range": RangePartitionAssignor,
            "roundrobin": RoundRobinPartitionAssignor,
            "sticky": StickyPartitionAssignor,
            "cooperative-sticky": CooperativeStickyAssignor,
        }
        return {"partition_assignment_strategy": [known[name] for name in plan["assignors"]]}

    def poll(self):
        found = self.consumer.poll(timeout_ms=200)
        for partition, records in found.items():
            if records:
                self.diary.read(partition.partition, [(record.offset, int(record.value)) for record in records])
        return bool(found)

    def commit(self):
        from kafka import TopicPartition
        from kafka.errors import KafkaError, KafkaTimeoutError

        positions = {}
        for number in sorted(partition.partition for partition in self.consumer.assignment()):
            try:
                positions[number] = self.consumer.position(TopicPartition(self.plan["topic"], number), timeout_ms=5000)
            except KafkaTimeoutError:  # noqa: PERF203 - its leader is away, so it is not read either
                positions[number] = None
        try:
            self.consumer.commit()
        except KafkaError as error:
            self.diary.say("refused", why=repr(error))
        else:
            # None where kafka-python has not looked for the position yet; that one was not committed either.
            self.diary.say("committed", o={number: offset for number, offset in positions.items() if offset})

    def close(self):
        if self.sync:
            self.commit()
        self.consumer.close()


class Asyncio:
    """Ours for asyncio and aiokafka, which have the same face. Its calls are coroutines."""

    def __init__(self, plan, diary):
        if plan["kind"] == "aiokafka":
            from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
        else:
            from kafka.aio import AIOKafkaConsumer, ConsumerRebalanceListener

        self.plan, self.diary = plan, diary
        self.sync, member = plan["commit"] == "sync", self
        self.next = {}  # partition -> the offset behind what was read

        class Listener(ConsumerRebalanceListener):
            async def on_partitions_assigned(self, assigned):
                diary.numbers("assigned", assigned)

            async def on_partitions_revoked(self, revoked):
                if revoked and member.sync:
                    await member.commit()
                for partition in revoked:
                    member.next.pop(partition, None)
                diary.numbers("revoked", revoked)

            async def on_partitions_lost(self, lost):
                for partition in lost:
                    member.next.pop(partition, None)
                diary.numbers("lost", lost)

        self.listener = Listener()
        self.consumer = AIOKafkaConsumer(
            bootstrap_servers=plan["servers"].split(","),
            group_id=plan["group"],
            auto_offset_reset="earliest",
            enable_auto_commit=not self.sync,
            **self._protocol(plan),
            **plan["options"],
        )

    def _protocol(self, plan):
        if plan["assignors"] is None:
            return {}
        if plan["kind"] != "aiokafka":
            if plan["protocol"] == "consumer":
                return {"group_protocol": "consumer"}
            return {"partition_assignment_strategy": plan["assignors"]}
        from aiokafka.coordinator.assignors.range import RangePartitionAssignor
        from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
        from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

        known = {
            "range": RangePartitionAssignor,
            "roundrobin": RoundRobinPartitionAssignor,
            "sticky": StickyPartitionAssignor,
        }
        return {"partition_assignment_strategy": [known[name] for name in plan["assignors"]]}

    async def start(self):
        await self.consumer.start()
        self.consumer.subscribe([self.plan["topic"]], listener=self.listener)

    async def poll(self):
        # Nothing is awaited between the records' coming and what the diary says: no rebalance comes in between.
        found = await self.consumer.getmany(timeout_ms=200)
        for partition, records in found.items():
            if records:
                self.diary.read(partition.partition, [(record.offset, int(record.value)) for record in records])
                self.next[partition] = records[-1].offset + 1
        return bool(found)

    async def commit(self):
        if self.plan["kind"] == "aiokafka":
            from aiokafka.errors import KafkaError
        else:
            from kafka.aio.errors import KafkaError

        offsets = {partition: offset for partition, offset in self.next.items() if offset}
        if not offsets:
            return
        try:
            await self.consumer.commit(offsets)
        except KafkaError as error:
            self.diary.say("refused", why=repr(error))
        else:
            self.diary.say("committed", o={partition.partition: offset for partition, offset in offsets.items()})

    async def close(self):
        if self.sync:
            await self.commit()
        await self.consumer.stop()


async def run_asyncio(plan, diary, stopped):
    import asyncio

    member = Asyncio(plan, diary)
    await member.start()
    diary.say("started")
    while not stopped:
        if await member.poll():
            await asyncio.sleep(plan["process_s"])
            if member.sync:
                await member.commit()
    await member.close()
    diary.say("closed")


class Confluent:
    def __init__(self, plan, diary):
        from confluent_kafka import Consumer

        self.plan, self.diary = plan, diary
        self.sync = plan["commit"] == "sync"
        options = {"group.protocol": "consumer"} if plan["protocol"] == "consumer" else {}
        if not options:
            options["partition.assignment.strategy"] = ",".join(plan["assignors"])
        options |= {name.removesuffix("_ms").replace("_", ".") + ".ms": ms for name, ms in plan["options"].items()}
        self.consumer = Consumer(
            {
                "bootstrap.servers": plan["servers"],
                "group.id": plan["group"],
                "auto.offset.reset": "earliest",
                "enable.auto.commit": not self.sync,
                **options,
                **{
                    name.removesuffix("_ms").replace("_", ".") + ".ms": value for name, value in plan["options"].items()
                },
            }
        )
        self.consumer.subscribe([plan["topic"]], on_assign=self._assigned, on_revoke=self._revoked, on_lost=self._lost)

    def _assigned(self, _consumer, partitions):
        self.diary.numbers("assigned", partitions)

    def _revoked(self, _consumer, partitions):
        if self.sync:
            self.commit()
        self.diary.numbers("revoked", partitions)

    def _lost(self, _consumer, partitions):
        self.diary.numbers("lost", partitions)

    def poll(self):
        rows = {}
        found = self.consumer.consume(500, 0.2)
        for message in found:
            if message.error():
                self.diary.say("warning", why=str(message.error()))
            else:
                rows.setdefault(message.partition(), []).append((message.offset(), int(message.value())))
        for number, read in rows.items():
            self.diary.read(number, read)
        return bool(rows)

    def commit(self):
        from confluent_kafka import KafkaException

        try:
            done = self.consumer.commit(asynchronous=False)
        except KafkaException as error:
            if error.args[0].name() != "_NO_OFFSET":
                self.diary.say("refused", why=repr(error))
        else:
            good = {one.partition: one.offset for one in done if one.error is None and one.offset >= 0}
            self.diary.say("committed", o=good)

    def close(self):
        if self.sync:
            self.commit()
        self.consumer.close()


def main():
    plan = json.loads(sys.argv[1])
    stopped = []
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.append(True))
    if plan.get("log"):
        import logging

        logging.basicConfig(level=plan["log"], format="%(asctime)s %(relativeCreated)d %(name)s %(message)s")
    diary = Diary(plan["diary"])
    if plan["kind"] in {"ours-asyncio", "aiokafka"}:
        import asyncio

        asyncio.run(run_asyncio(plan, diary, stopped))
        return
    member = Confluent(plan, diary) if plan["kind"] == "confluent-kafka" else Classic(plan, diary)
    diary.say("started")
    while not stopped:
        if member.poll():
            time.sleep(plan["process_s"])
            if member.sync:
                member.commit()
    member.close()
    diary.say("closed")


if __name__ == "__main__":
    main()
