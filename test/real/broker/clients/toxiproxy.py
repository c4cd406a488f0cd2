"""The part of Toxiproxy's HTTP interface, and of ``docker compose``, with which sarama's own tests disturb a cluster.

Five proxies at the ports that these tests know stand before the nodes of the embedded broker. A program named
``docker`` on the path, which this module writes, stops and starts nodes through the same interface.
"""

from __future__ import annotations

import json
import sys
import threading
from contextlib import ExitStack
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

from kafka.broker import Broker
from test.network import Proxy

if TYPE_CHECKING:
    from typing_extensions import Self

NODES = 5
FIRST_PORT = 29091  # these tests have it as a constant
#: Those of the containers of these tests.
CONFIGS = {
    "auto.create.topics.enable": "false",
    "default.replication.factor": 2,
    "group.initial.rebalance.delay.ms": 0,
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
}
DOCKER = """#!{python}
import sys, urllib.request
verb, service = sys.argv[-2:]
urllib.request.urlopen("{address}/nodes/" + service.rpartition("-")[2] + "/" + verb, data=b"").read()
"""


class Toxiproxy:
    """A broker of five nodes behind proxies, and the server that changes these."""

    def __init__(self, directory: Path) -> None:
        self._stack = ExitStack()
        self._resets: dict[str, threading.Event] = {}
        with ExitStack() as stack:
            self.broker = stack.enter_context(
                Broker(
                    nodes=NODES,
                    configs=CONFIGS,
                    racks=[str(node + 1) for node in range(NODES)],
                    advertise=f"127.0.0.1:{FIRST_PORT}",
                )
            )
            self._proxies: dict[str, Proxy] = {}
            for node in range(NODES):
                proxy = stack.enter_context(Proxy(port=FIRST_PORT + node))
                proxy.target = "127.0.0.1", self.broker.port(node + 1)
                self._proxies[f"kafka{node + 1}"] = proxy
            self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
            stack.callback(self._server.server_close)
            thread = threading.Thread(target=self._server.serve_forever, name="toxiproxy", daemon=True)
            thread.start()
            stack.callback(thread.join)
            stack.callback(self._server.shutdown)
            self.address = f"http://127.0.0.1:{self._server.server_address[1]}"
            docker = directory / "docker"
            docker.write_text(DOCKER.format(python=sys.executable, address=self.address))
            docker.chmod(0o755)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._stack.close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self._answer(200, outer._state(self.path.rpartition("/")[2]))

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                status, said = outer._change(self.path.strip("/").split("/"), json.loads(body) if body else {})
                self._answer(status, said)

            def _answer(self, status: int, said: object) -> None:
                self.send_response(status)
                self.end_headers()
                if status != 204:
                    self.wfile.write(json.dumps(said).encode())

            def log_message(self, *_words: object) -> None:
                """Say nothing."""

        return Handler

    def _state(self, name: str) -> dict[str, object]:
        proxy = self._proxies[name]
        return {"name": name, "listen": proxy.address, "upstream": name, "enabled": True}

    def _change(self, words: list[str], said: dict[str, object]) -> tuple[int, object]:
        match words:
            case ["reset"]:
                for proxy in self._proxies.values():
                    proxy.hangs_up = False
                    proxy.heal()
                return 204, None
            case ["proxies", name]:
                (self._proxies[name].heal if said["enabled"] else self._proxies[name].refuse)()
                return 200, {**self._state(name), "enabled": said["enabled"]}
            case ["proxies", name, "toxics"] if said["type"] == "reset_peer":
                self._proxies[name].hangs_up = True
                self._proxies[name].cut()
                return 200, said
            case ["proxies", name, "toxics"] if said["type"] == "latency":
                self._proxies[name].delay_down = float(said["attributes"]["latency"]) / 1000  # type: ignore[index]
                return 200, said
            case ["nodes", number, "stop"]:
                self.broker.stop_node(int(number))
                return 200, None
            case ["nodes", number, "start"]:
                self.broker.start_node(int(number))
                return 200, None
        return 404, {"error": f"{words} {said}"}
