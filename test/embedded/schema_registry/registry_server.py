"""A schema registry for tests: the part of Confluent's interface that clients use, in memory, over loopback."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


class RegistryServer(ThreadingHTTPServer):
    """`registered` has a schema by its id; `requests` what was asked, with the value of Authorization.

    `levels` has the compatibility of each subject, and under "" the global one. Every schema but one with the text of
    `incompatible` is compatible.
    """

    incompatible = '"null"'

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.registered: dict[int, dict[str, Any]] = {}
        self.subjects: dict[str, list[int]] = {}
        self.deleted: dict[str, list[int]] = {}
        self.levels: dict[str, str] = {"": "NONE"}
        self.requests: list[tuple[str, str, str | None]] = []
        self.refuse: tuple[int, bytes] | None = None
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def add(self, subject: str, text: str, kind: str = "AVRO", references: Any = ()) -> int:
        """Register a schema, and return its id."""
        entry = {"schema": text, "schemaType": kind, "references": list(references)}
        known = next((number for number, one in self.registered.items() if one == entry), None)
        number = known or 100 + len(self.registered)
        self.registered[number] = entry
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def stop(self) -> None:
        self.shutdown()
        self.server_close()
        self._thread.join(60)


_NO_LEVEL = (404, {"error_code": 40408, "message": "Subject does not have subject-level compatibility configured"})


def _no_subject(name: str) -> tuple[int, dict[str, Any]]:
    return 404, {"error_code": 40401, "message": f"Subject '{name}' not found."}


class _Handler(BaseHTTPRequestHandler):
    server: RegistryServer

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        words = [unquote(word) for word in parts.path.strip("/").split("/")]
        subjects, deleted = self.server.subjects, self.server.deleted if parts.query == "deleted=true" else {}
        if words[0] == "config":
            level = self.server.levels.get(words[1] if len(words) > 1 else "")
            self._answer(*(_NO_LEVEL if level is None else (200, {"compatibilityLevel": level})))
            return
        if words[:2] == ["schemas", "ids"]:
            number = int(words[2])
            if number not in self.server.registered:
                self._answer(404, {"error_code": 40403, "message": "Schema not found"})
            else:
                self._answer(200, self._text(number))
            return
        if words == ["subjects"]:
            self._answer(200, sorted({*subjects, *deleted}))
            return
        versions = subjects.get(words[1], [])
        if len(words) == 3:
            found = [*range(1, len(versions) + 1), *deleted.get(words[1], [])]
            self._answer(*((200, found) if found else _no_subject(words[1])))
            return
        at = len(versions) if words[3] == "latest" else int(words[3])
        if not 1 <= at <= len(versions):
            self._answer(*_no_subject(words[1]))
            return
        number = versions[at - 1]
        self._answer(200, {"subject": words[1], "version": at, "id": number, **self._text(number)})

    def _text(self, number: int) -> dict[str, Any]:
        entry = dict(self.server.registered[number])
        if entry["schemaType"] == "AVRO":  # which registries leave out
            del entry["schemaType"]
        return entry

    def _body(self) -> dict[str, Any]:
        body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        return body

    def do_POST(self) -> None:
        body, words = self._body(), [unquote(word) for word in self.path.strip("/").split("/")]
        compatible = body["schema"] != self.server.incompatible
        if words[0] == "compatibility":
            self._answer(200, {"is_compatible": compatible})
            return
        if len(words) == 2:  # is it registered?
            for at, number in enumerate(self.server.subjects.get(words[1], []), 1):
                if self.server.registered[number]["schema"] == body["schema"]:
                    self._answer(200, {"subject": words[1], "version": at, "id": number, **self._text(number)})
                    return
            self._answer(404, {"error_code": 40403, "message": "Schema not found"})
            return
        if not compatible:
            self._answer(409, {"error_code": 409, "message": "Schema is incompatible with an earlier one"})
            return
        number = self.server.add(words[1], body["schema"], body.get("schemaType", "AVRO"), body.get("references", ()))
        self._answer(200, {"id": number})

    def do_PUT(self) -> None:
        level = self._body()["compatibility"]
        self.server.levels["/".join(self.path.strip("/").split("/")[1:])] = level
        self._answer(200, {"compatibility": level})

    def do_DELETE(self) -> None:
        """Delete a whole subject, or its newest version."""
        parts = urlsplit(self.path)
        words = [unquote(word) for word in parts.path.strip("/").split("/")]
        if parts.query == "permanent=true":
            self._answer(200, self.server.deleted.pop(words[1]))
            return
        versions = self.server.subjects[words[1]]
        if len(words) == 2:
            numbers = list(range(1, len(versions) + 1))
            del self.server.subjects[words[1]]
            self.server.deleted[words[1]] = numbers
            self._answer(200, numbers)
            return
        assert int(words[3]) == len(versions)
        versions.pop()
        self._answer(200, int(words[3]))

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
