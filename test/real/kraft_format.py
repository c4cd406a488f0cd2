"""What ``kafka-storage format`` writes, without starting a JVM for each node.

Its output depends on the release alone but for the ids, so it is run once per release and kept in the cache.
"""

from __future__ import annotations

import hashlib
import secrets
import shutil
import tempfile
from base64 import urlsafe_b64encode
from pathlib import Path

from . import jvm, kafka_jars
from .broker_config import CONTROLLER, INTERNAL, Listener, NodePlan, properties_text, server_properties
from .releases import Release


def new_id() -> str:
    """A random id as Kafka writes its uuids: 16 bytes, base64url without padding."""
    return urlsafe_b64encode(secrets.token_bytes(15)).decode() + "AA"  # the last byte is 0


def format_node(release: Release, plan: NodePlan, cluster_id: str) -> None:
    """Prepare the data directory of a node."""
    data = Path(plan.data_dir)
    data.mkdir()
    shutil.copy(_bootstrap_records(release), data / "bootstrap.checkpoint")
    fields = {"version": 1, "cluster.id": cluster_id, "node.id": plan.node_id, "directory.id": new_id()}
    (data / "meta.properties").write_text(
        "".join(f"{key}={value}\n" for key, value in fields.items()), encoding="utf-8"
    )


def format_dynamic(release: Release, properties: Path, cluster_id: str, *, voter: bool | None) -> None:
    """Prepare the data directory of a node of a dynamic quorum with Kafka's tool: the voters are in the metadata log.

    A controller is the only voter at first, or it follows the log until it is added; None is for a broker.
    """
    quorum = [] if voter is None else ["--standalone" if voter else "--no-initial-controllers"]
    _storage_tool(release, "format", "-t", cluster_id, "-c", str(properties), *quorum)


def _bootstrap_records(release: Release) -> Path:
    """The feature levels of a new cluster, as the release's own tool writes them."""
    recipe = hashlib.sha256(kafka_jars.classpath(release.version).encode()).hexdigest()[:8]
    kept = kafka_jars.cache_dir() / f"bootstrap-{release}-{recipe}.checkpoint"
    kafka_jars.cache_dir().mkdir(parents=True, exist_ok=True)
    with kafka_jars.locked(kept.with_suffix(".lock")):
        if not kept.exists():
            with tempfile.TemporaryDirectory(dir=kafka_jars.cache_dir()) as directory:
                _run_tool(release, Path(directory))
                (Path(directory) / "data" / "bootstrap.checkpoint").rename(kept)
    return kept


def _run_tool(release: Release, directory: Path) -> None:
    plan = NodePlan(1, str(directory / "data"), {INTERNAL: 9092, CONTROLLER: 9093})
    listeners = [Listener(INTERNAL, INTERNAL)]
    properties = server_properties(release, plan, [plan], listeners, host="127.0.0.1", zookeeper_port=None, extra={})
    path = directory / "server.properties"
    path.write_text(properties_text(properties), encoding="utf-8")
    _storage_tool(release, "format", "-t", new_id(), "-c", str(path))


def _storage_tool(release: Release, *words: str) -> None:
    result = jvm.run(release.version, "kafka.tools.StorageTool", *words)
    if result.returncode:
        raise RuntimeError(f"kafka-storage {words[0]} failed:\n{result.stdout}{result.stderr}")
