"""``purekafka exporter`` against the embedded broker: what it serves while things change, and who may read it."""

from __future__ import annotations

import gzip
import json
import os
import random
import re
import signal
import ssl
import subprocess
import sys
import time
import urllib.error
import urllib.request
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, TopicPartition
from kafka.broker import Broker
from kafka.cli.exporter import command
from kafka.cli.exporter.facts import Choice, Facts, collect
from kafka.cli.exporter.lag_history import LagHistory
from kafka.cli.exporter.series import Series, exposition
from kafka.cli.parser import parse
from kafka.protocol.share import ShareGroupHeartbeatRequest
from test import quick_start
from test.speed import slowness

from .conftest import Shell

CERTS = Path(__file__).resolve().parents[2] / "unit" / "net" / "certs"
DEADLINE = 60.0


def samples(text: str) -> dict[str, float]:
    """Return the samples by name and labels, without the label of the cluster."""
    found = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            name, _, value = line.rpartition(" ")
            found[re.sub(r'cluster="[^"]*",?', "", name).replace("{}", "")] = float(value)
    return found


class Running:
    """The exporter in a process of its own, and its pages."""

    def __init__(self, process: subprocess.Popen[str], url: str) -> None:
        self.process, self.url = process, url
        self.context = ssl.create_default_context(cafile=str(CERTS / "ca.pem"))
        self.context.check_hostname = False

    def get(self, path: str, **headers: str) -> tuple[int, Any, bytes]:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(self.url + path, headers=named)
        try:
            with urllib.request.urlopen(request, timeout=30, context=self.context) as response:
                return response.status, response.headers, response.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers, error.read()

    def samples(self) -> dict[str, float]:
        return samples(self.get("/metrics")[2].decode())

    def wait(self, holds: Callable[[dict[str, float]], bool]) -> dict[str, float]:
        deadline = time.monotonic() + DEADLINE
        while not holds(found := self.samples()):
            assert time.monotonic() < deadline, found
            time.sleep(0.05)
        return found


@contextmanager
def exporter(broker: Broker, *words: str) -> Iterator[Running]:
    environment = {**os.environ, "KAFKA_BOOTSTRAP_SERVERS": broker.bootstrap_servers}
    command = [sys.executable, "-m", "kafka", "exporter", "--listen", "127.0.0.1:0", *words]
    with quick_start.Program(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stderr is not None
            line = process.stderr.readline()
            found = re.match(r"Serving (https?://127\.0\.0\.1:\d+)/metrics", line)
            assert found is not None, line + process.stderr.read()
            yield Running(process, found[1])
        finally:
            process.kill()


def test_lag_is_served_while_records_arrive_and_are_read(broker: Broker) -> None:
    address = broker.bootstrap_servers
    lag = 'kafka_consumergroup_lag_sum{consumergroup="readers",topic="orders"}'
    with (
        exporter(broker, "--interval", "0.2", "--state") as running,
        KafkaProducer(bootstrap_servers=address) as producer,
        KafkaConsumer("orders", bootstrap_servers=address, group_id="readers", auto_offset_reset="earliest") as reader,
    ):
        for number in range(10):
            producer.send("orders", str(number).encode()).get(10)
        read = [next(reader) for _ in range(4)]
        reader.commit()
        found = running.wait(lambda found: found.get(lag) == 6)
        assert found['kafka_consumergroup_members{consumergroup="readers"}'] == 1
        assert found['kafka_consumergroup_state{consumergroup="readers",state="Stable"}'] == 1
        assert found['kafka_topic_current_offset_sum{topic="orders"}'] == 10
        age = 'kafka_consumergroup_lag_seconds{consumergroup="readers",topic="orders"}'
        running.wait(lambda found: found.get(age, 0) > 1)
        read += [next(reader) for _ in range(6)]
        reader.commit()
        found = running.wait(lambda found: found.get(lag) == 0)
        assert found[age] == 0
        assert len(read) == 10


def test_groups_of_all_kinds_have_lag(broker: Broker) -> None:
    with (
        KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin,
        KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer,
        KafkaConsumer(
            "orders", bootstrap_servers=broker.bootstrap_servers, group_id="new", group_protocol="consumer"
        ) as reader,
    ):
        for _ in range(5):
            producer.send("orders", b"record", partition=0).get(10)
        member = ShareGroupHeartbeatRequest(
            group_id="shared", member_id="AAAAAAAAAAAAAAAAAAAAAQ", member_epoch=0, subscribed_topic_names=["orders"]
        )
        assert admin.send_request(member).error_code == 0
        admin.alter_group_offsets("simple", {TopicPartition("orders", 0): 3})
        reader.poll(timeout_ms=100)
        facts = collect(admin, Choice(), LagHistory(), 0.0)
        while "new" not in facts.groups or not facts.groups["new"].topics:
            reader.poll(timeout_ms=100)
            facts = collect(admin, Choice(), LagHistory(), 0.0)
    kinds = {name: group.kind for name, group in facts.groups.items()}
    assert kinds == {"new": "consumer", "shared": "share", "simple": "classic"}
    assert facts.groups["simple"].topics["orders"].lags == {0: 2}
    assert facts.groups["new"].topics["orders"].uncommitted == 1
    assert facts.groups["shared"].members == 1
    assert facts.errors == []


def test_a_cluster_that_cannot_be_reached_is_down_at_once_and_its_series_vanish(broker: Broker) -> None:
    topic = 'kafka_topic_partitions{topic="events"}'
    with exporter(
        broker, "--interval", "0.3", "-X", "default.api.timeout.ms=200", "-X", "request.timeout.ms=200"
    ) as run:
        run.wait(lambda found: found["kafka_exporter_up"] == 1)
        assert run.get("/health")[0] == 200
        broker.stop_node(1)
        run.wait(lambda found: found["kafka_exporter_up"] == 0)
        found = run.wait(lambda found: topic not in found)
        assert set(found) == {
            "kafka_exporter_up",
            "kafka_exporter_collect_seconds",
            "kafka_exporter_last_success_timestamp_seconds",
            "kafka_exporter_series",
            "kafka_exporter_series_dropped",
        }
        code, _, body = run.get("/health")
        assert code == 503
        assert json.loads(body)["problems"]
        broker.start_node(1)
        run.wait(lambda found: found["kafka_exporter_up"] == 1 and topic in found)


def test_a_collection_that_fails_unforeseen_is_reported_and_is_not_the_last_one(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fail_once(*args: Any) -> Facts:
        monkeypatch.setattr(command, "collect", collect)
        raise RuntimeError("unforeseen")

    monkeypatch.setattr(command, "collect", fail_once)
    parsed = parse(["exporter", "-b", broker.bootstrap_servers, "--cluster", "mine", "--interval", "0.1"])
    assert parsed is not None
    with ExitStack() as stack:
        running = command.Exporter(parsed[1], stack)
        stack.callback(running.stop)
        Thread(target=running.run, daemon=True).start()
        deadline = time.monotonic() + DEADLINE
        while running.page().problems:
            assert time.monotonic() < deadline, running.page().problems
            time.sleep(0.01)
    assert "mine: RuntimeError: unforeseen" in capsys.readouterr().err


def test_a_partition_without_leader_has_no_lag_and_takes_no_time() -> None:
    with Broker(nodes=2, topics={}) as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.create_topics({"events": {"assignments": {0: [1], 1: [2]}}}, wait_for_metadata=True)
        admin.alter_group_offsets("readers", {TopicPartition("events", number): 0 for number in range(2)})
        leader = admin.find_coordinator("readers")
        broker.stop_node(3 - leader)
        deadline = time.monotonic() + DEADLINE
        facts = collect(admin, Choice(), LagHistory(), 0.0)
        while facts.topics["events"].leaderless == 0:
            assert time.monotonic() < deadline
            facts = collect(admin, Choice(), LagHistory(), 0.0)
        made = Series("c")
        made.add_facts(facts, "topic", 10**6, states=False)
    found = samples(b"".join(exposition([made])).decode())
    assert found['kafka_topic_leaderless_partitions{topic="events"}'] == 1
    assert found['kafka_consumergroup_unknown_partitions{consumergroup="readers",topic="events"}'] == 1
    assert 'kafka_consumergroup_lag_sum{consumergroup="readers",topic="events"}' not in found


def test_a_password_and_tls_protect_the_metrics(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SCRAPER", "ada:s3cret")
    words = [
        "--auth",
        "@env:SCRAPER",
        "--tls-cert",
        str(CERTS / "server.pem"),
        "--tls-key",
        str(CERTS / "server.key"),
        "--interval",
        "0.2",
    ]
    with exporter(broker, *words) as running:
        assert running.url.startswith("https:")
        wrong = "Basic " + b64encode(b"ada:guess").decode()
        for headers in ({}, {"Authorization": wrong}, {"Authorization": "nonsense"}):
            code, answered, body = running.get("/metrics", **headers)
            assert (code, body) == (401, b"")
            assert answered["WWW-Authenticate"].startswith("Basic")
        allowed = {"Authorization": "Basic " + b64encode(b"ada:s3cret").decode()}
        deadline = time.monotonic() + DEADLINE
        while b"kafka_brokers" not in running.get("/metrics", **allowed)[2]:
            assert time.monotonic() < deadline
        code, answered, body = running.get("/metrics", **allowed, Accept_Encoding="gzip")
        assert answered["Content-Encoding"] == "gzip"
        assert b"kafka_brokers" in gzip.decompress(body)
        assert running.get("/health")[0] == 200
        assert running.get("/nothing")[0] == 404


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_in_a_second(broker: Broker, sent: signal.Signals, code: int) -> None:
    with exporter(broker, "--interval", "0.2") as running:
        running.wait(lambda found: found["kafka_exporter_up"] == 1)
        began = time.monotonic()
        running.process.send_signal(sent)
        assert running.process.wait(30) == code
        assert time.monotonic() - began < 15  # a second, and what a busy machine takes to end it; requests have 30
        assert running.process.stderr is not None
        assert running.process.stderr.read() == ""


def test_a_scraper_that_sends_nothing_holds_up_no_other_one(broker: Broker) -> None:
    import socket

    with exporter(broker, "--interval", "0.2") as running, ExitStack() as stack:
        port = int(running.url.rpartition(":")[2])
        for _ in range(10):
            stack.enter_context(socket.create_connection(("127.0.0.1", port)))
        running.wait(lambda found: found["kafka_exporter_up"] == 1)


def test_once_prints_and_tells_by_its_code(broker: Broker, shell: Shell) -> None:
    found = shell("purekafka exporter --once --by partition")
    assert (found.code, found.err) == (0, "")
    assert samples(found.out)['kafka_topic_partition_current_offset{topic="events",partition="2"}'] == 0
    broker.fail("ListGroups", "CLUSTER_AUTHORIZATION_FAILED")
    partly = shell("purekafka exporter --once")
    assert "broker 1: " in partly.err
    assert samples(partly.out)["kafka_exporter_errors"] == 1
    down = shell("purekafka exporter --once -b 127.0.0.1:1")
    assert down.code == 1
    assert samples(down.out)["kafka_exporter_up"] == 0


def test_several_clusters_have_a_label_each(shell: Shell, broker: Broker) -> None:
    with Broker(topics=["west"]) as other:
        shell(f"purekafka contexts add east -b {broker.bootstrap_servers}")
        shell(f"purekafka contexts add west -b {other.bootstrap_servers}")
        found = shell("purekafka exporter --once --context east --context west")
    assert found.code == 0, found.err
    assert 'kafka_topic_partitions{cluster="east",topic="events"} 3' in found.lines
    assert 'kafka_topic_partitions{cluster="west",topic="west"} 1' in found.lines
    assert found.out.count("# TYPE kafka_brokers ") == 1


@pytest.mark.parametrize(
    "words",
    [
        "--group (", "--fold nothing", "--listen nowhere", "--listen :99999", "--auth nobody", "--tls-key k.pem",
        "--tls-cert /nowhere.pem", "--context a --context a",
    ],
)  # fmt: skip
def test_words_that_make_no_sense_are_refused(shell: Shell, words: str) -> None:
    shell("purekafka contexts add a -b localhost:1")
    found = shell(f"purekafka exporter {words}")
    assert found.code == 2
    assert found.out == ""
    assert len(found.err.splitlines()) <= 2


class History:
    """A cluster, and a model of it: what is written, committed, deleted and made again at random."""

    def __init__(self, rng: random.Random, admin: KafkaAdminClient, producer: KafkaProducer) -> None:
        self.rng, self.admin, self.producer = rng, admin, producer
        partitions = [TopicPartition("a", 0), TopicPartition("a", 1), TopicPartition("b", 0)]
        self.begins, self.ends = dict.fromkeys(partitions, 0), dict.fromkeys(partitions, 0)
        self.commits: dict[str, dict[TopicPartition, int]] = {}

    def step(self) -> str:
        tp = self.rng.choice(list(self.ends))
        doing = self.rng.choice(["write", "write", "commit", "commit", "delete", "remake", "forget"])
        getattr(self, doing)(tp)
        return f"{doing} {tp}"

    def write(self, tp: TopicPartition) -> None:
        for _ in range(self.rng.randint(1, 8)):
            self.producer.send(tp.topic, b"record", partition=tp.partition).get(30)
            self.ends[tp] += 1

    def commit(self, tp: TopicPartition) -> None:
        group, offset = self.rng.choice(["g1", "g2"]), self.rng.randint(0, self.ends[tp])  # also one that was deleted
        self.admin.alter_group_offsets(group, {tp: offset})
        self.commits.setdefault(group, {})[tp] = offset

    def delete(self, tp: TopicPartition) -> None:
        self.begins[tp] = self.rng.randint(self.begins[tp], self.ends[tp])
        self.admin.delete_records({tp: self.begins[tp]})

    def remake(self, tp: TopicPartition) -> None:
        if tp.topic == "b":
            self.admin.delete_topics(["b"])
            self.admin.create_topics({"b": {"num_partitions": 1}}, wait_for_metadata=True)
            self.begins[tp] = self.ends[tp] = 0
            for some in self.commits.values():  # Kafka deletes the offsets of a deleted topic
                some.pop(tp, None)

    def forget(self, _: TopicPartition) -> None:
        if self.commits:
            group = self.rng.choice(list(self.commits))
            self.admin.delete_groups([group], raise_errors=False)
            del self.commits[group]

    def check(self, facts: Facts, age: float, what: object) -> None:
        assert facts.errors == []
        found = {name: group for name, group in facts.groups.items() if group.topics}
        expected = {group: some for group, some in self.commits.items() if some}
        assert found.keys() == expected.keys(), what
        for group, some in expected.items():
            assert found[group].topics.keys() == {one.topic for one in some}, what
            for topic, lag in found[group].topics.items():
                mine = {
                    one.partition: (at, self.begins[one], self.ends[one])
                    for one, at in some.items()
                    if one.topic == topic
                }
                assert lag.offsets == {number: at for number, (at, _, _) in mine.items()}, what
                assert lag.lags == {
                    number: max(0, end - max(at, begin)) for number, (at, begin, end) in mine.items()
                }, what
                assert lag.lost == sum(max(0, begin - at) for at, begin, _ in mine.values()), what
                assert 0 <= lag.ratio <= 1, what
                assert lag.seconds is None or 0 <= lag.seconds <= age, what


@pytest.mark.parametrize("seed", range(6))
def test_o13_no_lag_is_negative_or_false_in_a_random_history(seed: int) -> None:
    with (
        Broker(topics={"a": 2, "b": 1}) as broker,
        KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin,
        KafkaProducer(bootstrap_servers=broker.bootstrap_servers, linger_ms=0, enable_idempotence=False) as producer,
    ):
        history, model = LagHistory(), History(random.Random(seed), admin, producer)
        for number in range(40):
            doing = model.step()
            model.check(collect(admin, Choice(), history, float(number)), float(number), (seed, number, doing))


@pytest.mark.alone
def test_o12_1000_groups_of_100_partitions_cost_a_second_and_100_mb() -> None:
    """The CPU time is the exporter's and the broker's together; the memory is Python's, without the broker's before.

    A quarter of the groups take a quarter of both.
    """
    import tracemalloc

    groups = 250
    offsets = {("events", number): 0 for number in range(100)}
    with (
        Broker(nodes=3, topics={"events": 100}) as broker,
        # Under tracemalloc and on a busy machine a request may take a minute.
        KafkaAdminClient(
            bootstrap_servers=broker.bootstrap_servers, default_api_timeout_ms=600_000, request_timeout_ms=600_000
        ) as admin,
    ):
        for number in range(groups):
            admin.alter_group_offsets(f"group-{number}", offsets)
        collect(admin, Choice(), LagHistory(), 0.0)
        broker.forget_requests()
        began = time.process_time()
        facts = collect(admin, Choice(), LagHistory(), 0.0)
        made = Series("c")
        assert made.add_facts(facts, "topic", 200_000, states=False) == 0
        assert len(b"".join(exposition([made]))) > 800 * groups
        took = time.process_time() - began
        assert took < 0.003 * groups * slowness(), took  # a third of it, with the broker
        assert made.count > 8 * groups
        assert sum(lag.lags[0] == 0 for group in facts.groups.values() for lag in group.topics.values()) == groups
        requests = Counter((one.node_id, one.name) for one in broker.requests)
        of_cluster = sum(
            requests.pop((node, name), 0) for node in (1, 2, 3) for name in ("Metadata", "DescribeCluster")
        )
        assert of_cluster == 2, requests  # what brokers there are, and the topics with their leaders
        assert {node: sum(count for (at, _), count in requests.items() if at == node) for node in (1, 2, 3)} == {
            1: 6,
            2: 6,
            3: 6,
        }, requests
        del facts, made
        tracemalloc.start()
        try:
            facts = collect(admin, Choice(), LagHistory(), 0.0)
            made = Series("c")
            made.add_facts(facts, "partition", 10**6, states=False)
            assert made.count > 200 * groups
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 40_000 * groups, peak  # half of it


def test_a_group_that_cannot_be_looked_at_is_counted(broker: Broker) -> None:
    with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        admin.alter_group_offsets("readers", {TopicPartition("events", 0): 0})
        broker.fail("OffsetFetch", "GROUP_AUTHORIZATION_FAILED")
        facts = collect(admin, Choice(), LagHistory(), 0.0)
    assert facts.failed_groups == 1
    assert facts.groups["readers"].topics == {}
    assert len(facts.errors) == 1
