"""Apache Kafka of any release as plain processes on loopback: one node or several, to be broken at will.

>>> with KafkaCluster("4.3.1", nodes=3) as kafka:           # doctest: +SKIP
...     kafka.create_topic("events", partitions=6, replicas=3)
...     kafka.kill(kafka.leader("events", 0))

Node ids count from 1. Every node also has a PLAINTEXT listener, over which the brokers and this
library itself talk. Whatever happens to the test run, no process survives it (child.py).
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kafka import KafkaAdminClient, KafkaConsumer, KafkaProducer, KafkaShareConsumer
from kafka.admin import ConfigResource
from test.scratch import Scratch

from . import jvm, kafka_jars, kraft_format, ports, wire, zookeeper
from .broker_config import (
    CONTROLLER,
    INTERNAL,
    Listener,
    NodePlan,
    Security,
    jaas_text,
    properties_text,
    security_properties,
    server_properties,
)
from .child import Child
from .releases import NEWEST, Release

if TYPE_CHECKING:
    from typing_extensions import Self

START_TIMEOUT = 200.0  # for what takes seconds, if the machine is not busy
STOP_TIMEOUT = 30.0
HEAP_MB = 256

live_clusters: list[KafkaCluster] = []


class KafkaCluster:
    """Some nodes of one release, and ZooKeeper where that release needs it. A context manager.

    Each node is a broker and a controller too, unless there are `controllers`: nodes that are nothing else. With
    `dynamic_quorum` the first of them is the only voter, and the others follow it until they are added.
    """

    def __init__(
        self,
        version: str = NEWEST,
        nodes: int = 1,
        *,
        controllers: int = 0,
        dynamic_quorum: bool = False,
        listeners: Sequence[str] = (INTERNAL,),
        properties: Mapping[str, str] | None = None,
        node_properties: Mapping[int, Mapping[str, str]] | None = None,
        security: Sequence[Security] = (),
        advertised_ports: Mapping[int, int] | None = None,
        host: str = "127.0.0.1",
        heap_mb: int = HEAP_MB,
        java_args: Sequence[str] = jvm.QUICK_START,
        archive: bool = True,
    ) -> None:
        self.release = Release(version)
        self.host = host
        kafka_jars.jars(version)  # what is missing is said before anything starts
        self._listeners = _with_internal(listeners)
        self._first = Listener.parse(listeners[0]).name
        self._properties = security_properties(self.release, security, self._listeners) | dict(properties or {})
        self._node_properties = node_properties or {}
        self._security = security
        self._advertised_ports = advertised_ports or {}
        self._java_args = [f"-Xmx{heap_mb}m", *java_args]
        self._broker_args: list[str] = []
        self._archive = archive and version == NEWEST  # the one that is started often
        self._children: dict[int, Child] = {}
        self._zookeeper: Child | None = None
        self._zookeeper_port: int | None = None
        self._plans: dict[int, NodePlan] = {}
        self._nodes = range(1, nodes + 1)
        self._controllers = range(nodes + 1, nodes + 1 + controllers)
        self._dynamic_quorum = dynamic_quorum
        self._scratch: Scratch | None = None

    # Coming up

    def __enter__(self) -> Self:
        return self.open()

    def __exit__(self, *exc: object) -> None:
        self.close()

    def open(self) -> Self:
        """Start everything and wait until it answers."""
        if self._archive:
            jvm.class_archive(self.version, _train)
        self._scratch = Scratch()
        live_clusters.append(self)
        try:
            self._lay_out()
            if not self.release.kraft:
                self._start_zookeeper()
            for node in (*self._controllers, *self._nodes):
                self._launch(node)
            self.wait_ready()
        except BaseException:
            self.close()
            raise
        return self

    def _lay_out(self) -> None:
        """Choose ports and write each node's directory."""
        names = [one.name for one in self._listeners] + ([CONTROLLER] if self.release.kraft else [])
        for node in (*self._nodes, *self._controllers):
            home = self.root / f"node-{node}"
            home.mkdir()
            taken = {name: ports.reserve() for name in names}
            told = {self._first: self._advertised_ports[node]} if node in self._advertised_ports else {}
            roles = (
                "controller" if node in self._controllers else "broker" if self._controllers else "broker,controller"
            )
            self._plans[node] = NodePlan(node, str(home / "data"), taken, told, roles, self._dynamic_quorum)
        modules = [kind.login_module for kind in self._security if kind.login_module]
        if modules and not self.release.jaas_properties:
            (self.root / "jaas.conf").write_text(jaas_text(modules), encoding="utf-8")
            self._broker_args.append(f"-Djava.security.auth.login.config={self.root / 'jaas.conf'}")
        for kind in self._security:
            self._broker_args += [f"-D{key}={value}" for key, value in kind.java.items()]
        if self.release.kraft:
            cluster_id = kraft_format.new_id()
            for node, plan in self._plans.items():
                if self._dynamic_quorum:
                    voter = None if node not in self._controllers else node == self._controllers[0]
                    kraft_format.format_dynamic(self.release, self._write_properties(node), cluster_id, voter=voter)
                else:
                    kraft_format.format_node(self.release, plan, cluster_id)
        else:
            self._zookeeper_port = ports.reserve()

    def _write_properties(self, node: int) -> Path:
        properties = server_properties(
            self.release,
            self._plans[node],
            list(self._plans.values()),
            self._listeners,
            host=self.host,
            zookeeper_port=self._zookeeper_port,
            extra={**self._properties, **self._node_properties.get(node, {})},
        )
        path = self.root / f"node-{node}" / "server.properties"
        path.write_text(properties_text(properties), encoding="utf-8")
        return path

    def _start_zookeeper(self) -> None:
        home = self.root / "zookeeper"
        home.mkdir()
        assert self._zookeeper_port is not None
        (home / "zoo.cfg").write_text(zookeeper.config_text(self._zookeeper_port, str(home / "data")), encoding="utf-8")
        main = "org.apache.zookeeper.server.quorum.QuorumPeerMain"
        command = self._java("-Xmx128m", main, str(home / "zoo.cfg"))
        self._zookeeper = Child("zookeeper", command, home / "log")

    def _launch(self, node: int) -> None:
        command = self._java(*self._broker_args, "kafka.Kafka", str(self._write_properties(node)))
        self._children[node] = Child(f"kafka {self.release} node {node}", command, self._log_path(node))

    def _java(self, *args: str) -> list[str]:
        return jvm.command(self.version, *self._java_args, *args)

    def wait_ready(self, timeout: float = START_TIMEOUT) -> None:
        """Wait until every running node answers and knows of all running nodes."""
        running = self.running()
        self._wait_known(running, running, time.monotonic() + timeout)

    def wait_settled(self, timeout: float = START_TIMEOUT) -> None:
        """Wait until nothing shows that nodes were away: all replicas are in sync, all groups are loaded."""
        deadline = time.monotonic() + timeout

        def settled(node: int) -> bool:
            address = self.address(node)
            return not wire.metadata(address).lagging and wire.has_loaded_its_groups(address)

        for node in self.running():
            self._children[node].wait_for(lambda node=node: settled(node), "replicas and groups", deadline)  # type: ignore[misc]

    def _wait_known(self, askers: Sequence[int], wanted: Sequence[int], deadline: float) -> None:
        for node in askers:
            self._children[node].wait_for(
                lambda node=node: set(wanted) <= self._known_to(node),  # type: ignore[misc]
                f"an answer that names the nodes {list(wanted)}",
                deadline,
            )

    def _known_to(self, node: int) -> set[int]:
        try:
            known = set(wire.metadata(self.address(node)).brokers)
            if self.release.number < (0, 9):  # there a broker knows nobody until the first topic
                with zookeeper.ZooKeeper(self.zookeeper_address()) as session:
                    return {one for one in self._nodes if session.exists(f"/brokers/ids/{one}")}
        except OSError:  # not listening yet, or it closed the connection in the middle of its start
            return set()
        return known

    # What is where

    @property
    def root(self) -> Path:
        """The directory with everything of this cluster; gone after :meth:`close`."""
        assert self._scratch is not None, "the cluster is not open"
        return self._scratch.path

    @property
    def version(self) -> str:
        """The release, as text."""
        return self.release.version

    @property
    def nodes(self) -> list[int]:
        """All node ids, running or not."""
        return list(self._nodes)

    @property
    def bootstrap_servers(self) -> str:
        """``host:port,...`` of all nodes at the first listener that was asked for."""
        return self.bootstrap(self._first)

    def bootstrap(self, listener: str) -> str:
        """``host:port,...`` of all nodes at a listener, for example ``SASL_SSL``, as the nodes advertise it."""
        role = "controller" if listener == CONTROLLER else "broker"
        told = [{**plan.ports, **plan.advertised}[listener] for plan in self._plans.values() if role in plan.roles]
        return ",".join(f"{self.host}:{port}" for port in told)

    def address(self, node: int, listener: str = INTERNAL) -> tuple[str, int]:
        """Host and port of one node."""
        return "127.0.0.1", self._plans[node].ports[listener]

    def zookeeper_address(self) -> tuple[str, int]:
        """Host and port of ZooKeeper, for releases that have one."""
        assert self._zookeeper_port is not None, f"Kafka {self.version} runs without ZooKeeper"
        return "127.0.0.1", self._zookeeper_port

    def running(self) -> list[int]:
        """The ids of the brokers whose process runs (or is paused)."""
        return [node for node in self._nodes if node in self._children and self._children[node].running()]

    def pid(self, node: int) -> int:
        """The process id of a node."""
        return self._children[node].pid

    def leader(self, topic: str, partition: int = 0) -> int:
        """The node that leads a partition, -1 while nobody does."""
        return wire.metadata(self._any_address(), topic).leaders[topic][partition]

    def log_tail(self, node: int, lines: int = 40) -> str:
        """The last lines that a node logged since its last start."""
        return self._children[node].log_tail(lines)

    def log_text(self, node: int) -> str:
        """All that a node logged since its last start."""
        return self._children[node].log_text()

    def log_tails(self, lines: int = 40) -> dict[str, str]:
        """The last lines of all processes, by name; for the report of a failed test."""
        children = [*self._children.values(), self._zookeeper]
        return {child.name: child.log_tail(lines) for child in children if child is not None}

    def _log_path(self, node: int) -> Path:
        return self.root / f"node-{node}" / "log"

    def _any_address(self) -> tuple[str, int]:
        return self.address(self.running()[0])

    # Breaking it

    def kill(self, node: int) -> None:
        """End a node as a crash does (SIGKILL)."""
        self._children[node].kill()

    def stop(self, node: int) -> None:
        """Shut a node down in order (SIGTERM): it hands over its partitions first."""
        self._children[node].stop(STOP_TIMEOUT)

    def start(self, node: int, timeout: float = START_TIMEOUT) -> None:
        """Start a node that was killed or stopped, at its old ports with its old data; wait until it answers."""
        assert node not in self.running(), f"node {node} is running"
        deadline = time.monotonic() + timeout
        self._relaunch(node, deadline)
        self._wait_known([node], [node], deadline)

    def start_all(self, timeout: float = START_TIMEOUT) -> None:
        """Have all nodes run: start those that do not, at once (none answers before most of them run), and wait."""
        deadline = time.monotonic() + timeout
        for node in set(self._nodes) - set(self.running()):
            self._relaunch(node, deadline)
        for node in self._nodes:
            self.resume(node)
        self.wait_ready(deadline - time.monotonic())

    def _relaunch(self, node: int, deadline: float) -> None:
        if self._zookeeper is not None:
            # A broker refuses to start while the session of its killed predecessor lives.
            with zookeeper.ZooKeeper(self.zookeeper_address()) as session:
                self._zookeeper.wait_for(lambda: not session.exists(f"/brokers/ids/{node}"), "end of session", deadline)
        self._launch(node)

    def restart(self, node: int) -> None:
        """Stop in order, then start."""
        self.stop(node)
        self.start(node)

    def pause(self, node: int) -> None:
        """Freeze a node (SIGSTOP): connections stay open, nothing answers."""
        self._children[node].pause()

    def resume(self, node: int) -> None:
        """Let a paused node run again."""
        self._children[node].resume()

    # What a test needs to be there

    def create_topic(
        self, name: str, partitions: int = 1, replicas: int = 1, configs: Mapping[str, str] | None = None
    ) -> str:
        """Create a topic, wait until every running node knows all its leaders, and return its name."""
        if self.release.kraft:
            wire.create_topic(self._any_address(), name, partitions, replicas, configs or {})
        else:
            with zookeeper.ZooKeeper(self.zookeeper_address()) as session:
                zookeeper.create_topic(
                    session,
                    name,
                    partitions=partitions,
                    replicas=replicas,
                    nodes=self.running(),
                    configs=configs or {},
                )
        self.wait_topic(name, partitions)
        return name

    def wait_topic(self, name: str, partitions: int = 1, timeout: float = START_TIMEOUT) -> None:
        """Wait until every running node knows a leader for each partition of a topic."""
        deadline = time.monotonic() + timeout

        def known(node: int) -> bool:
            leaders = wire.metadata(self.address(node), name).leaders.get(name, [])
            return len(leaders) == partitions and min(leaders) >= 0

        for node in self.running():
            self._children[node].wait_for(lambda node=node: known(node), f"topic {name}", deadline)  # type: ignore[misc]

    def add_scram_user(
        self, user: str, password: str, mechanism: str = "SCRAM-SHA-256", iterations: int = 4096
    ) -> None:
        """Give a user a SCRAM credential, and wait until every running node accepts it."""
        if self.release.kraft:
            wire.add_scram_user(self._any_address(), user, password, mechanism, iterations)
        else:
            with zookeeper.ZooKeeper(self.zookeeper_address()) as session:
                zookeeper.add_scram_user(session, user, password, mechanism, iterations)
        listener = next(one for one in self._listeners if one.protocol.startswith("SASL_"))
        tls = listener.protocol == "SASL_SSL"
        deadline = time.monotonic() + START_TIMEOUT

        def known(node: int) -> bool:
            return wire.knows_scram_user(self.address(node, listener.name), user, mechanism, tls=tls)

        for node in self.running():
            self._children[node].wait_for(lambda node=node: known(node), f"SCRAM user {user}", deadline)  # type: ignore[misc]

    def tool(
        self, main: str, *args: str, text: str | None = None, timeout: float = 200.0
    ) -> subprocess.CompletedProcess[str]:
        """Run a Java program of this release, for example ``org.apache.kafka.tools.TopicCommand``, to its end."""
        return jvm.run(self.version, main, *args, text=text, timeout=timeout)

    # When it ends

    def close(self) -> None:
        """Kill what runs and remove every file; may be called twice."""
        for child in [*self._children.values(), self._zookeeper]:
            if child is not None:
                child.kill()
        if self in live_clusters:
            live_clusters.remove(self)
        for plan in self._plans.values():
            for port in plan.ports.values():
                ports.release(port)
        self._plans.clear()
        if self._zookeeper_port is not None:
            ports.release(self._zookeeper_port)
            self._zookeeper_port = None
        if self._scratch is not None:
            self._scratch.close()
            self._scratch = None


def _with_internal(listeners: Sequence[str]) -> list[Listener]:
    parsed = [Listener.parse(text) for text in listeners]
    if all(one.name != INTERNAL for one in parsed):
        parsed.append(Listener(INTERNAL, INTERNAL))
    return parsed


def _train(flag: str) -> None:
    """Let a broker load the classes that most brokers load, and put them into an archive as it ends.

    What it does for its clients is a third of those classes, and a second of a processor in each node without them.
    """
    with KafkaCluster(NEWEST, java_args=(*jvm.QUICK_START, flag), archive=False) as cluster:
        topic, servers = cluster.create_topic("training"), cluster.bootstrap_servers
        with KafkaProducer(bootstrap_servers=servers, transactional_id=topic) as producer:
            producer.init_transactions()
            for _ in range(2):
                with producer.transaction():
                    producer.send(topic, b"record")
        with KafkaAdminClient(bootstrap_servers=servers) as admin:
            admin.alter_configs([ConfigResource("GROUP", "share", {"share.auto.offset.reset": "earliest"})])
            readers: tuple[Any, ...] = (
                KafkaConsumer(topic, bootstrap_servers=servers, group_id="classic", auto_offset_reset="earliest"),
                KafkaConsumer(
                    topic,
                    bootstrap_servers=servers,
                    group_id="consumer",
                    group_protocol="consumer",
                    auto_offset_reset="earliest",
                ),
                KafkaShareConsumer(topic, bootstrap_servers=servers, group_id="share"),
            )
            for reader in readers:
                deadline = time.monotonic() + START_TIMEOUT
                with reader:
                    while not reader.poll(500) and time.monotonic() < deadline:
                        pass
                    reader.commit()
            admin.describe_cluster()
            admin.describe_configs([ConfigResource("topic", topic)])
            admin.list_groups()
            admin.delete_topics([topic])
        cluster.stop(1)
