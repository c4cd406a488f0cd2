"""A schema registry for tests: the part of Confluent's interface that clients use, in memory, over loopback."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


class RegistryServer(ThreadingHTTPServer):
    """`registered` has a schema by its id; `requests` what was asked, with the value of Authorization."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.registered: dict[int, dict[str, Any]] = {}
        self.subjects: dict[str, list[int]] = {}
        self.serialized: dict[int, str] = {}
        self.requests: list[tuple[str, str, str | None]] = []
        self.refuse: tuple[int, bytes] | None = None
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def add(self, subject: str, text: str, kind: str = "AVRO", references: Any = (), serialized: str = "") -> int:
        """Register a schema, and return its id."""
        entry = {"schema": text, "schemaType": kind, "references": list(references)}
        known = next((number for number, one in self.registered.items() if one == entry), None)
        number = known or 100 + len(self.registered)
        self.registered[number] = entry
        self.serialized[number] = serialized
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join(10)


class _Handler(BaseHTTPRequestHandler):
    server: RegistryServer

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        words = [unquote(word) for word in parts.path.strip("/").split("/")]
        plain = parse_qs(parts.query).get("format") != ["serialized"]
        if words[:2] == ["schemas", "ids"]:
            number = int(words[2])
            if number not in self.server.registered:
                self._answer(404, {"error_code": 40403, "message": "Schema not found"})
            else:
                self._answer(200, self._text(number, plain=plain))
            return
        versions = self.server.subjects.get(words[1], [])
        at = len(versions) if words[3] == "latest" else int(words[3])
        if not 1 <= at <= len(versions):
            self._answer(404, {"error_code": 40401, "message": f"Subject '{words[1]}' not found."})
            return
        number = versions[at - 1]
        self._answer(200, {"subject": words[1], "version": at, "id": number, **self._text(number, plain=plain)})

    def _text(self, number: int, *, plain: bool) -> dict[str, Any]:
        entry = dict(self.server.registered[number])
        if entry["schemaType"] == "AVRO":  # which registries leave out
            del entry["schemaType"]
        return entry if plain else {**entry, "schema": self.server.serialized[number]}

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        subject = unquote(self.path.split("/")[2])
        number = self.server.add(subject, body["schema"], body.get("schemaType", "AVRO"), body.get("references", ()))
        self._answer(200, {"id": number})

    def _answer(self, status: int, found: Any) -> None:
        self.server.requests.append((self.command, self.path, self.headers.get("Authorization")))
        body = json.dumps(found).encode()
        if self.server.refuse is not None:
            status, body = self.server.refuse
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass
