"""Kafka's own Java client in one long-lived JVM, for what our client and it must agree on.

>>> java = JavaClient("4.3.1")                             # doctest: +SKIP
>>> java.produce(kafka.bootstrap_servers, "events", [{"value": b"x", "headers": [("h", b"1")]}])
[{'partition': 0, 'offset': 0, 'timestamp': 1700000000000}]
>>> java.consume(kafka.bootstrap_servers, "events", count=1)[0]["value"]
b'x'

Kafka 4.x clients speak to brokers from 2.1 on, 3.9.1's to brokers from 0.10 on; for older ones run
their own programs with ``cluster.tool("kafka.tools.ConsoleConsumer", ...)``.
"""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from test.scratch import Scratch

from . import jvm
from .child import Child

if TYPE_CHECKING:
    from typing_extensions import Self

SOURCE = Path(__file__).parent / "java" / "JavaClient.java"


class JavaClientError(Exception):
    """The Java client raised; ``name`` is its exception's class, such as ``SaslAuthenticationException``."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}")
        self.name = name


class JavaClient:
    """Calls block until Java has answered; several threads take turns."""

    def __init__(self, version: str, system_properties: Mapping[str, str] | None = None) -> None:
        self._scratch = Scratch()
        self._lock = threading.Lock()
        properties = [f"-D{key}={value}" for key, value in (system_properties or {}).items()]
        self._java = Child(
            f"JavaClient.java with Kafka {version}",
            jvm.command(version, *jvm.QUICK_START, "-Xmx256m", *properties, str(SOURCE)),
            self._scratch.path / "log",
            pipes=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """End the JVM; may be called twice."""
        self._java.kill()
        self._scratch.close()

    def produce(
        self,
        servers: str,
        topic: str,
        records: Iterable[Mapping[str, Any]],
        *,
        transaction: str | None = None,
        **config: str,
    ) -> list[dict[str, Any]]:
        """Send records (key, value, partition, timestamp, headers), all optional; where each one went.

        ``transaction`` is ``"commit"`` or ``"abort"`` and wants ``transactional_id``. Further keywords
        are configuration, with underscores for dots.
        """
        encoded = [{key: _encode(value) for key, value in record.items()} for record in records]
        request = {"op": "produce", "topic": topic, "records": encoded, "transaction": transaction}
        placed: list[dict[str, Any]] = self._ask(request, servers, config)
        return placed

    def consume(
        self, servers: str, topic: str, *, count: int, timeout: float = 60.0, **config: str
    ) -> list[dict[str, Any]]:
        """Read records until there are so many or the time is up; with ``group_id`` as a member, committing."""
        request = {"op": "consume", "topic": topic, "count": count, "timeout_ms": int(timeout * 1000)}
        records: list[dict[str, Any]] = self._ask(request, servers, config)
        for record in records:
            record["key"], record["value"] = _decode(record["key"]), _decode(record["value"])
            record["headers"] = [(name, _decode(value)) for name, value in record["headers"]]
        return records

    def nodes(self, servers: str, **config: str) -> list[int]:
        """The ids of the cluster's nodes: the shortest call that shows whether one may come in."""
        return sorted(self._ask({"op": "nodes"}, servers, config))

    def _ask(self, request: dict[str, Any], servers: str, config: Mapping[str, str]) -> Any:
        dotted = {key.replace("_", "."): value for key, value in config.items()}
        line = json.dumps({**request, "config": {"bootstrap.servers": servers, **dotted}})
        with self._lock:
            self._java.stdin.write(line.encode() + b"\n")
            self._java.stdin.flush()
            answer = self._java.stdout.readline()
        if not answer:
            raise JavaClientError("Ended", self._java.log_tail())
        result = json.loads(answer)
        if isinstance(result, dict):
            raise JavaClientError(result["error"], result["message"])
        return result


def _encode(value: Any) -> Any:
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, (list, tuple)):
        return [_encode(item) for item in value]
    return value


def _decode(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
