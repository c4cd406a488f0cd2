"""From what a test asks for to the text of server.properties, for any release.

Pure: no file, no process, no port of its own choice. What differs between a broker of 2015 and one
of today is decided here and in releases.py.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .releases import Release

CONTROLLER = "CONTROLLER"
INTERNAL = "PLAINTEXT"  # between brokers, and for the test library itself


@dataclass(frozen=True)
class Security:
    """What one kind of security adds to a broker: properties, login modules, Java system properties.

    The functions in ``tls.py``, ``sasl.py`` and ``kdc.py`` make these; a cluster takes any number.
    """

    properties: Mapping[str, str] = field(default_factory=dict)
    mechanism: str | None = None
    login_module: str | None = None
    java: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Listener:
    """A listener of every node: its name and its security protocol, ``MTLS:SSL`` or just ``SSL``."""

    name: str
    protocol: str

    @classmethod
    def parse(cls, text: str) -> Listener:
        """``"SSL"`` and ``"MTLS:SSL"``."""
        name, _, protocol = text.partition(":")
        return cls(name, protocol or name)


@dataclass(frozen=True)
class NodePlan:
    """Where one node lives: its id, its directory, the port of each listener."""

    node_id: int
    data_dir: str
    ports: Mapping[str, int]
    advertised: Mapping[str, int] = field(default_factory=dict)
    """Listener to the port that clients are told in place of its own: that of a proxy before it."""
    roles: str = "broker,controller"
    """What a node of a release without ZooKeeper is."""
    dynamic_quorum: bool = False
    """Whether the voters of the quorum are in the metadata log (KIP-853), and not in the properties."""


def server_properties(
    release: Release,
    plan: NodePlan,
    everyone: Sequence[NodePlan],
    listeners: Sequence[Listener],
    *,
    host: str,
    zookeeper_port: int | None,
    extra: Mapping[str, str],
) -> dict[str, str]:
    """All properties of one node; ``extra`` wins over everything."""
    properties = _sizes(sum("broker" in node.roles for node in everyone)) | {"log.dirs": plan.data_dir}
    if release.kraft:
        properties |= _kraft(plan, everyone)
    else:
        properties |= {
            "broker.id": str(plan.node_id),
            "zookeeper.connect": f"127.0.0.1:{zookeeper_port}",
            "zookeeper.connection.timeout.ms": "30000",  # it starts at the same time as we do
            "zookeeper.session.timeout.ms": "4000",
        }
    properties |= _addresses(release, plan, listeners, host)
    return properties | dict(extra)


def properties_text(properties: Mapping[str, str]) -> str:
    """A Java properties file."""
    return "".join(f"{key}={value}\n".replace("\\", "\\\\") for key, value in properties.items())


def jaas_text(modules: Sequence[str]) -> str:
    """A JAAS file with the broker's login modules, for releases whose brokers have no sasl.jaas.config."""
    return "KafkaServer {\n" + "".join(f"  {module};\n" for module in modules) + "};\n"


def security_properties(
    release: Release, security: Sequence[Security], listeners: Sequence[Listener]
) -> dict[str, str]:
    """The properties of all kinds of security together."""
    merged: dict[str, str] = {}
    for kind in security:
        merged |= kind.properties
    mechanisms = {kind.mechanism: kind.login_module for kind in security if kind.mechanism}
    if mechanisms:
        merged["sasl.enabled.mechanisms"] = ",".join(mechanisms)
    if release.jaas_properties:
        for one in listeners:
            if one.protocol.startswith("SASL_"):
                prefix = f"listener.name.{one.name.lower()}"
                for mechanism, module in mechanisms.items():
                    merged[f"{prefix}.{mechanism.lower()}.sasl.jaas.config"] = f"{module};"
    return merged


def _sizes(nodes: int) -> dict[str, str]:
    """Small and quick instead of production's defaults. Each thread wakes up three times a second."""
    replicas, in_sync = str(min(3, nodes)), str(min(2, nodes))
    small = {"num.network.threads": "1", "num.io.threads": "2", "log.cleaner.dedupe.buffer.size": "4194304"}
    for internal in ("offsets.topic", "transaction.state.log", "share.coordinator.state.topic"):
        small |= {f"{internal}.num.partitions": "5", f"{internal}.replication.factor": replicas}
    small |= {f"{log}.min.isr": in_sync for log in ("transaction.state.log", "share.coordinator.state.topic")}
    return small | {
        "default.replication.factor": replicas,
        "group.initial.rebalance.delay.ms": "0",
        "replica.lag.time.max.ms": "5000",
        # Many records here bear times of long ago, and a broker first looks for what to delete 30 s after its start.
        "log.initial.task.delay.ms": "86400000",
    }


def _kraft(plan: NodePlan, everyone: Sequence[NodePlan]) -> dict[str, str]:
    controllers = {
        node.node_id: f"127.0.0.1:{node.ports[CONTROLLER]}" for node in everyone if "controller" in node.roles
    }
    if plan.dynamic_quorum:
        quorum = {"controller.quorum.bootstrap.servers": ",".join(controllers.values())}
    else:
        quorum = {"controller.quorum.voters": ",".join(f"{node}@{at}" for node, at in controllers.items())}
    return {
        "process.roles": plan.roles,
        "node.id": str(plan.node_id),
        **quorum,
        "controller.listener.names": CONTROLLER,
        # A broker that is gone is noticed in 6 s instead of 9; in 3 s a busy machine loses brokers that run.
        "broker.heartbeat.interval.ms": "500",
        "broker.session.timeout.ms": "6000",
        # Else the controller writes a record twice a second, a third of what an idle node takes of a processor.
        "metadata.max.idle.interval.ms": "5000",
    }


def _addresses(release: Release, plan: NodePlan, listeners: Sequence[Listener], host: str) -> dict[str, str]:
    if release.number < (0, 9):
        return {"host.name": "127.0.0.1", "advertised.host.name": host, "port": str(plan.ports[INTERNAL])}
    told = {**plan.ports, **plan.advertised}
    open_to_clients = [f"{one.name}://{host}:{told[one.name]}" for one in listeners]
    bound = [f"{one.name}://127.0.0.1:{plan.ports[one.name]}" for one in listeners]
    protocols = [f"{one.name}:{one.protocol}" for one in listeners]
    if release.kraft:
        protocols.append(f"{CONTROLLER}:PLAINTEXT")
        if "broker" not in plan.roles:
            endpoint = f"{CONTROLLER}://127.0.0.1:{plan.ports[CONTROLLER]}"
            return {"listeners": endpoint, "listener.security.protocol.map": ",".join(protocols)}
    if release.kraft and "controller" in plan.roles:
        bound.append(f"{CONTROLLER}://127.0.0.1:{plan.ports[CONTROLLER]}")
    addresses = {"listeners": ",".join(bound), "advertised.listeners": ",".join(open_to_clients)}
    if release.named_listeners:
        addresses |= {"listener.security.protocol.map": ",".join(protocols), "inter.broker.listener.name": INTERNAL}
    return addresses
