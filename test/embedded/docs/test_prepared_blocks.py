"""Code blocks that need more than a broker with some topics: members, users, a quorum, a schema registry, a wheel."""

from __future__ import annotations

import json
import os
import re
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer
from kafka.broker import Broker
from kafka.broker.faults import Exchange
from test.embedded.schema_registry.registry_server import RegistryServer

from .blocks import Block, runs
from .shell_blocks import CERTIFICATES, USERS, Shell

pytestmark = [pytest.mark.slow, pytest.mark.skipif(os.name == "nt", reason="bash and terminals")]
COMMANDS = "docs/reference/commands.rst"
GUIDE = "docs/command_line.rst"
REGISTRY = "http://localhost:8081"
DEADLINE_S = 30.0
ORDER = {"type": "record", "name": "Order", "fields": [{"name": "id", "type": "long"}]}
ORDER_PROTOBUF = 'syntax = "proto3"; package shop; message Order { int64 id = 1; }'
ORDER_LINE = b'{"id": 1}\n'


def wait_for(condition: Callable[[], object], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, f"no {what} in {DEADLINE_S:.0f} s"
        time.sleep(0.02)


# Groups, brokers, controllers.


@contextmanager
def polling(consumer: KafkaConsumer) -> Iterator[None]:
    done = threading.Event()

    def poll() -> None:
        while not done.is_set():
            consumer.poll(100)

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
        consumer.close()


@runs((COMMANDS, "purekafka groups remove-members"))
def test_members_are_removed(shown: list[Block], tmp_path: Path) -> None:
    with Broker(topics={"events": 3}) as broker:
        servers = broker.bootstrap_servers
        consumer = KafkaConsumer(
            "events", bootstrap_servers=servers, group_id="readers", group_instance_id="consumer-1"
        )
        with KafkaAdminClient(bootstrap_servers=servers) as admin, polling(consumer):
            removed: list[str] = []

            def members() -> list[str]:
                (group,) = admin.describe_consumer_groups(["readers"])
                return [member.member_id for member in group.members if member.member_id not in removed]

            def before(_command: str) -> None:
                """Wait for a member, the second time for one that has joined again after it was removed."""
                wait_for(members, "member")
                removed.extend(members())

            for block in shown:
                assert Shell(tmp_path, servers).run(block, before) == 2
            assert len(removed) == 2


@runs((COMMANDS, "purekafka brokers unregister"))
def test_a_broker_that_left_is_unregistered(shown: list[Block], tmp_path: Path) -> None:
    with Broker(nodes=7) as broker:
        broker.stop_node(7)
        with KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
            for block in shown:
                assert Shell(tmp_path, broker.bootstrap_servers).run(block) == 2
            registered = admin.describe_cluster(include_fenced_brokers=True).brokers
            assert [node.broker_id for node in registered] == [1, 2, 3, 4, 5, 6]


@runs(
    (GUIDE, "purekafka cluster voters add"),
    (COMMANDS, "purekafka cluster voters add"),
    (COMMANDS, "purekafka cluster voters remove"),
)
def test_voters_are_added_and_removed(shown: list[Block], tmp_path: Path) -> None:
    with Broker(nodes=4) as broker:
        servers = broker.bootstrap_servers
        address = f"CONTROLLER=127.0.0.1:{broker.port(4)}"
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            admin.update_features({"kraft.version": 1})
            here = Shell(tmp_path, servers, {"CONTROLLER=c4:9093": address})

            def voters() -> list[int]:
                return sorted(voter.replica_id for voter in admin.describe_metadata_quorum().voters)

            def without_the_fourth(command: str) -> None:
                if "voters add" in command and "--sandbox" not in command:
                    here.run_line("purekafka cluster voters remove 4 --yes")

            guide, add, remove = shown
            for block, left in ((guide, [1, 2, 3, 4]), (add, [1, 2, 3, 4]), (remove, [1, 2, 3])):
                assert here.run(block, without_the_fourth)
                assert voters() == left


# Users and transactions.


@runs(*((COMMANDS, f"purekafka tokens {verb}") for verb in ("list", "create", "renew", "expire")))
def test_tokens_are_listed_made_renewed_and_expired(shown: list[Block], tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CERTIFICATES / "server.pem", CERTIFICATES / "server.key")
    with Broker(ssl_context=context, sasl=USERS, configs={"delegation.token.secret.key": "hush"}) as broker:
        servers = broker.bootstrap_servers
        here = Shell(tmp_path, servers, {"b1:9093": servers})
        here.environment |= {
            "PUREKAFKA_SECURITY_PROTOCOL": "SASL_SSL",
            "PUREKAFKA_SASL_MECHANISM": "PLAIN",
            "PUREKAFKA_SASL_USERNAME": "ada",
            "PUREKAFKA_SASL_PASSWORD": "ada-secret",
        }

        def token() -> str:
            made: dict[str, Any] = json.loads(here.run_line("purekafka tokens create -f json"))[0]
            return str(made["hmac"])

        def two_more(command: str) -> None:
            if "@" in command:
                (tmp_path / "hmac.txt").write_text(token())
                here.environment["HMAC"] = token()

        for block in shown:
            assert here.run(block, two_more) == 2


@runs((COMMANDS, "purekafka transactions abort"))
def test_hanging_transactions_are_aborted(shown: list[Block], tmp_path: Path) -> None:
    """The coordinator has lost what the transaction wrote to, and its record is older than the 15 minutes."""
    with Broker(topics={"orders": 1}, configs={"transaction.max.timeout.ms": 7_200_000}) as broker:
        servers = broker.bootstrap_servers

        def lost(exchange: Exchange) -> Any:
            reply = exchange.reply
            for one in reply.transaction_states:
                one.topics = []
            return reply

        def old(exchange: Exchange) -> Any:
            reply = exchange.reply
            for topic in reply.topics:
                for partition in topic.partitions:
                    partition.active_producers = [
                        (*state[:3], state[3] - 3_600_000, *state[4:]) for state in partition.active_producers
                    ]
            return reply

        producer = KafkaProducer(bootstrap_servers=servers, transactional_id="shop", transaction_timeout_ms=7_200_000)
        with ExitStack() as stack:
            stack.callback(producer.close, timeout=0)
            producer.init_transactions()
            producer.begin_transaction()
            producer.send("orders", b"a").get(DEADLINE_S)
            stack.enter_context(broker.intercept("DescribeTransactions", lost))
            stack.enter_context(broker.intercept("DescribeProducers", old))
            here = Shell(tmp_path, servers)
            (block,) = shown
            aborted: list[bool] = []

            def before(command: str) -> None:
                if "--dry-run" in command:  # the first command left nothing that hangs
                    aborted.append("hang" not in here.run_line("purekafka transactions hanging -f json"))
                    producer.abort_transaction()
                    producer.begin_transaction()
                    producer.send("orders", b"b").get(DEADLINE_S)

            assert here.run(block, before) == 2
            assert aborted == [True]


# Directories.


@runs((COMMANDS, "purekafka partitions move-dir"))
def test_replicas_are_moved_to_a_directory(shown: list[Block], tmp_path: Path) -> None:
    """Kafka's own directories are in test/real/cli; here the replica is moved to where it is."""
    with Broker(topics={"events": 1}, data_dir=tmp_path / "data" / "2") as broker:
        for block in shown:
            assert Shell(tmp_path, broker.bootstrap_servers).run(block) == 2


# A schema registry.


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    server = RegistryServer()
    yield server
    server.close()


@runs((COMMANDS, "echo hello | purekafka produce"), (GUIDE, "purekafka consume orders --value-type avro"))
def test_records_are_written_and_read_with_a_schema_registry(
    shown: list[Block], registry: RegistryServer, tmp_path: Path
) -> None:
    pytest.importorskip("google.protobuf", reason="protobuf is not installed: pip install 'purekafka[registry]'")
    registry.add("orders-value", json.dumps(ORDER))
    with Broker(topics={"orders": 1}) as broker:
        here = Shell(tmp_path, broker.bootstrap_servers, {REGISTRY: registry.url})
        here.stdin = ORDER_LINE
        (tmp_path / "order.avsc").write_text(json.dumps(ORDER))
        (tmp_path / "orders.jsonl").write_bytes(ORDER_LINE)

        def before(command: str) -> None:
            if "protobuf" in command:
                registry.add("orders-value", ORDER_PROTOBUF, "PROTOBUF")

        written, read = shown
        assert here.run(written) == 4
        assert here.run(read, before) == 4
        # Two of Avro and one of Protobuf, with the ids of their schemas.
        schemas = [int.from_bytes((record.value or b"")[1:5], "big") for record in broker.records("orders")]
        assert schemas == [100, 100, 101]


# Other programs.


@runs(("docs/benchmarks.rst", "python benchmarks/records.py"))
def test_a_benchmark_runs_alone(shown: list[Block], tmp_path: Path) -> None:
    (block,) = shown
    with Broker() as broker:
        printed = Shell(tmp_path, broker.bootstrap_servers).run_line(block.text.strip())
    assert "read-json" in printed


# Probes.


@runs(("docs/operations.rst", "import json\nimport os\nimport threading"), ("docs/operations.rst", "env:"))
def test_the_probes_tell_whether_a_consumer_lives_and_is_ready(
    shown: list[Block], monkeypatch: pytest.MonkeyPatch
) -> None:
    program, manifest = shown
    monkeypatch.setenv("PROBE_PORT", "0")
    paths = dict(re.findall(r"^(\w+)Probe:\n  httpGet: \{path: (\S+), port: 8080\}$", manifest.text, re.MULTILINE))
    assert sorted(paths) == ["liveness", "readiness"]
    with Broker(topics={"events": 1}) as broker:
        servers = broker.bootstrap_servers
        with KafkaConsumer("events", bootstrap_servers=servers, group_id="probed") as consumer:
            names: dict[str, Any] = {"consumer": consumer}
            exec(compile(program.text, program.place, "exec"), names)
            try:
                port = names["probes"].server_port

                def answers() -> dict[str, int]:
                    consumer.poll(10)
                    return {name: status_of(port, path) for name, path in paths.items()}

                wait_for(lambda: answers() == {"liveness": 200, "readiness": 200}, "readiness")
                broker.stop_node(1)
                wait_for(lambda: answers() == {"liveness": 200, "readiness": 503}, "problem")
                broker.start_node(1)
                wait_for(lambda: answers() == {"liveness": 200, "readiness": 200}, "readiness")
                consumer.close()
                assert status_of(port, paths["liveness"]) == 503
            finally:
                names["probes"].shutdown()
                names["probes"].server_close()


def status_of(port: int, path: str) -> int:
    connection = HTTPConnection("127.0.0.1", port, timeout=DEADLINE_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()
