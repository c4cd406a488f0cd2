"""The HTTP interface of a schema registry: schemas by id and by subject, each asked for once."""

from __future__ import annotations

import json
import logging
import time
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import quote, unquote, urlsplit, urlunsplit

from kafka._runtime.clock import SYSTEM_CLOCK, Clock
from kafka._text import is_http, without_passwords
from kafka.errors import KafkaConfigurationError, KafkaConnectionError, KafkaError

if TYPE_CHECKING:
    import ssl

    from kafka.sasl.http import HttpAnswer

__all__ = ["Reference", "Schema", "SchemaRegistry", "SchemaRegistryError"]

log = logging.getLogger(__name__)

#: Bytes that are no schema ids can look like many ids, so the memory for them is bounded.
_REMEMBERED: Final = 1000
#: An id that the registry does not know is asked for again after this many seconds, and not for each record before.
_ASK_AGAIN: Final = 1.0
_CONTENT_TYPE: Final = "application/vnd.schemaregistry.v1+json"
_NOT_FOUND: Final = 404
#: Seconds between two attempts.
_PAUSE: Final = 0.5


class SchemaRegistryError(KafkaError):
    """A schema registry refused a request; `status` is that of HTTP, `error_code` the registry's own number.

    `is_temporary` says whether another attempt may succeed: it is overloaded, broken or does not answer.
    """

    def __init__(self, message: str, status: int = 0, error_code: int = 0, *, is_temporary: bool = False) -> None:
        super().__init__(message)
        self.status = status
        self.error_code = error_code
        self.is_temporary = is_temporary

    def __str__(self) -> str:
        return str(self.args[0])


class Reference(NamedTuple):
    """A schema that another one uses: the name by which it does so, and its subject and version."""

    name: str
    subject: str
    version: int


class Schema(NamedTuple):
    """A schema: its text, its type, and what it refers to. The id, subject and version are known once it is registered.

    >>> Schema('"string"').kind
    'AVRO'
    """

    text: str
    kind: str = "AVRO"
    references: tuple[Reference, ...] = ()
    id: int = -1
    subject: str = ""
    version: int = 0


class SchemaRegistry:
    """A client of a schema registry. It remembers schemas, and is safe to share between threads and clients.

    ``url`` may be a list, or have commas between addresses: the next one is asked when one does not answer. A user and
    password may be in the URL or in ``user_info`` as ``user:password``; ``token`` is for bearer authentication. Calls
    block for at most ``timeout`` seconds for each address. Where none answers, or only with 429 or 5xx, a request is
    repeated for ``retry_for`` seconds, with a warning in the log.

    >>> registry = SchemaRegistry("http://ada:secret@localhost:8081")
    >>> registry
    SchemaRegistry('http://localhost:8081')
    """

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        user_info: str | None = None,
        token: str | None = None,
        ssl_cafile: str | None = None,
        ssl_certfile: str | None = None,
        ssl_keyfile: str | None = None,
        ssl_context: ssl.SSLContext | None = None,
        timeout: float = 10.0,
        retry_for: float = 0.0,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        given = [part.strip() for part in (url.split(",") if isinstance(url, str) else url)]
        self._urls: list[str] = []
        for one in filter(None, given):
            if not is_http(one):
                shown = without_passwords(one)
                raise KafkaConfigurationError(f"the URL of a schema registry must be http(s), not {shown!r}")
            parts = urlsplit(one)
            if parts.username is not None and user_info is None:
                user_info = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            host = parts.netloc.rpartition("@")[2]
            self._urls.append(urlunsplit((parts.scheme, host, parts.path.rstrip("/"), "", "")))
        if not self._urls:
            raise KafkaConfigurationError("the URL of the schema registry is empty")
        self._headers = {"Accept": f"{_CONTENT_TYPE}, application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        elif user_info is not None:
            from base64 import b64encode

            self._headers["Authorization"] = f"Basic {b64encode(user_info.encode()).decode()}"
        self._files = (ssl_cafile, ssl_certfile, ssl_keyfile)
        self._ssl_context = ssl_context
        self._timeout = timeout
        self._retry_for = retry_for
        self._clock = clock
        self._remembered: OrderedDict[Hashable, Any] = OrderedDict()
        self._unknown: OrderedDict[int, tuple[float, SchemaRegistryError]] = OrderedDict()
        """Ids that the registry did not know, with the time from which they are asked for again."""

    def __repr__(self) -> str:
        return f"SchemaRegistry({','.join(self._urls)!r})"

    @property
    def url(self) -> str:
        """The addresses, without a password."""
        return ",".join(self._urls)

    # Schemas…

    def schema(self, schema_id: int) -> Schema:
        """Return the schema with an id.

        An id that the registry does not know is asked for again after a second: a registry that follows another one
        may be behind, and bytes of another format, of which there may be many, begin like ids.
        """
        key = ("id", schema_id)
        found = self._remembered.get(key)
        if found is None:
            again_at, unknown = self._unknown.get(schema_id, (0.0, None))
            if unknown is not None and self._clock.monotonic() < again_at:
                raise SchemaRegistryError(str(unknown), unknown.status, unknown.error_code)
            try:
                answer = self._request("GET", f"/schemas/ids/{schema_id}", f"schema id {schema_id}")
                found = _schema_of(answer, schema_id)
            except SchemaRegistryError as error:
                if error.status == _NOT_FOUND:
                    self._unknown[schema_id] = (self._clock.monotonic() + _ASK_AGAIN, error)
                    _limit(self._unknown)
                raise
            self._unknown.pop(schema_id, None)
            self._remember(key, found)
        schema: Schema = found
        return schema

    def schema_by_guid(self, guid: str) -> Schema:
        """Return the schema with a GUID, an id that is equal in all registries (Confluent's registry 8.0 and later)."""
        key = ("guid", guid)
        found = self._remembered.get(key)
        if found is None:
            found = _schema_of(self._request("GET", f"/schemas/guids/{quote(guid, safe='')}", f"schema GUID {guid}"))
            self._remember(key, found)
        schema: Schema = found
        return schema

    def schema_named(self, identifier: int | str) -> Schema:
        """Return the schema with an id or a GUID."""
        return self.schema(identifier) if isinstance(identifier, int) else self.schema_by_guid(identifier)

    def version(self, subject: str, version: int) -> Schema:
        """Return a version of a subject."""
        key = ("version", subject, version)
        found = self._remembered.get(key)
        if found is None:
            path = f"{_path(subject)}/versions/{version}"
            found = _schema_of(self._request("GET", path, f"version {version} of subject {subject!r}"))
            self._remember(key, found)
        schema: Schema = found
        return schema

    def latest(self, subject: str) -> Schema:
        """Return the newest version of a subject. It is asked for each time, because it changes."""
        return _schema_of(self._request("GET", f"{_path(subject)}/versions/latest", f"subject {subject!r}"))

    def register(self, subject: str, schema: Schema) -> int:
        """Register a schema under a subject, and return its id; a schema that is registered already keeps its id.

        SchemaRegistryError with the status 409 says that the schema is not compatible with the versions before it,
        with 422 that it is not a valid schema.
        """
        key = ("register", subject, schema.text, schema.kind, schema.references)
        if key not in self._remembered:
            answer = self._request("POST", f"{_path(subject)}/versions", f"subject {subject!r}", _body(schema))
            self._remember(key, int(answer["id"]))
            self._unknown.pop(int(answer["id"]), None)
        return int(self._remembered[key])

    def lookup(self, subject: str, schema: Schema) -> Schema:
        """Return the schema with its id and version if it is registered under a subject.

        A registry that does not have it answers with the status 404: SchemaRegistryError, with the code 40403.
        """
        answer = self._request("POST", _path(subject), f"the schema under subject {subject!r}", _body(schema))
        return _schema_of({"schemaType": schema.kind, **answer})

    # Subjects…

    def subjects(self, *, deleted: bool = False) -> list[str]:
        """Return the names of all subjects; with `deleted` also the deleted ones, unless permanently."""
        return [str(name) for name in self._request("GET", f"/subjects{_deleted(deleted)}", "subjects", wanted=list)]

    def versions(self, subject: str, *, deleted: bool = False) -> list[int]:
        """Return the versions of a subject; with `deleted` also the deleted ones, unless permanently."""
        path = f"{_path(subject)}/versions{_deleted(deleted)}"
        return [int(number) for number in self._request("GET", path, f"subject {subject!r}", wanted=list)]

    def delete(self, subject: str, version: int | None = None, *, permanent: bool = False) -> list[int]:
        """Delete a version of a subject, or all of them, and return their numbers.

        Records are still read by the ids of deleted schemas. With `permanent` what is deleted already is removed for
        good, and records with its ids cannot be read any more.
        """
        query = "?permanent=true" if permanent else ""
        if version is None:
            answer = self._request("DELETE", f"{_path(subject)}{query}", f"subject {subject!r}", wanted=list)
            numbers = [int(number) for number in answer]
        else:
            what = f"version {version} of subject {subject!r}"
            numbers = [int(self._request("DELETE", f"{_path(subject)}/versions/{version}{query}", what, wanted=int))]
        for key in list(self._remembered):
            if isinstance(key, tuple) and key[0] in {"version", "register"} and key[1] == subject:
                self._remembered.pop(key, None)
        return numbers

    def is_compatible(self, subject: str, schema: Schema, version: int | None = None) -> bool:
        """Return whether a schema may follow a version of a subject, the newest one by default."""
        path = f"/compatibility{_path(subject)}/versions/{'latest' if version is None else version}"
        answer = self._request("POST", path, f"subject {subject!r}", _body(schema))
        return bool(answer.get("is_compatible"))

    def compatibility(self, subject: str | None = None) -> str:
        """Return the compatibility that new versions must have, such as ``BACKWARD``: of a subject, or the global one.

        The answer for a subject that has none is the status 404: SchemaRegistryError, with the code 40408.
        """
        answer = self._request("GET", _config(subject), _config_of(subject))
        return str(answer.get("compatibilityLevel") or answer.get("compatibility"))

    def set_compatibility(self, level: str, subject: str | None = None) -> None:
        """Set the compatibility of a subject, or the global one: ``NONE``, ``BACKWARD``, ``FULL_TRANSITIVE``, …"""
        self._request("PUT", _config(subject), _config_of(subject), {"compatibility": level})

    def _remember(self, key: Hashable, found: object) -> None:
        self._remembered[key] = found
        _limit(self._remembered)

    # HTTP…

    def _request(self, method: str, path: str, what: str, body: object = None, wanted: type = dict) -> Any:
        """Make a request, again for a while where the registry is away; return the JSON of the answer."""
        began = self._clock.monotonic()
        attempts = 0
        while True:
            try:
                return self._request_once(method, path, what, body, wanted)
            except SchemaRegistryError as error:
                if not error.is_temporary or self._clock.monotonic() - began >= self._retry_for:
                    raise
                if not attempts:
                    log.warning("Waiting up to %.0f seconds: %s", self._retry_for, error)
            attempts += 1
            time.sleep(_PAUSE)

    def _request_once(self, method: str, path: str, what: str, body: object, wanted: type) -> Any:
        """Make a request at the first address that answers."""
        from kafka.sasl.http import http_request

        headers = dict(self._headers)
        data = None
        if body is not None:
            data = json.dumps(body).encode()
            headers["Content-Type"] = _CONTENT_TYPE
        failures = []
        for url in self._urls:
            try:
                answer = http_request(
                    method,
                    url + path,
                    body=data,
                    headers=headers,
                    timeout=self._timeout,
                    ssl_context=self._context() if url.startswith("https") else None,
                )
            except KafkaConnectionError as error:
                failures.append(str(error.args[0] if error.args else error))
                continue
            return _checked(answer, f"{url}: {what}", wanted)
        raise SchemaRegistryError(
            f"the schema registry does not answer about {what}: {'; '.join(failures)}", is_temporary=True
        )

    def _context(self) -> ssl.SSLContext:
        if self._ssl_context is None:
            import ssl

            cafile, certfile, keyfile = self._files
            try:
                context = ssl.create_default_context(cafile=cafile)
                if certfile is not None:
                    context.load_cert_chain(certfile, keyfile)
            except OSError as error:
                raise KafkaConfigurationError(f"the certificates for the schema registry: {error}") from None
            self._ssl_context = context
        return self._ssl_context


def _limit(remembered: OrderedDict[Any, Any]) -> None:
    if len(remembered) > _REMEMBERED:
        remembered.popitem(last=False)


def _path(subject: str) -> str:
    return f"/subjects/{quote(subject, safe='')}"


def _config(subject: str | None) -> str:
    return "/config" if subject is None else f"/config/{quote(subject, safe='')}"


def _config_of(subject: str | None) -> str:
    return "the global compatibility" if subject is None else f"the compatibility of subject {subject!r}"


def _deleted(deleted: bool) -> str:
    return "?deleted=true" if deleted else ""


def _body(schema: Schema) -> dict[str, Any]:
    """Return what a request says of a schema; Avro is the type of one without a type."""
    body: dict[str, Any] = {"schema": schema.text}
    if schema.kind != "AVRO":
        body["schemaType"] = schema.kind
    if schema.references:
        body["references"] = [reference._asdict() for reference in schema.references]
    return body


def _checked(answer: HttpAnswer, what: str, wanted: type) -> Any:
    status = answer.status
    try:
        found = json.loads(answer.body) if answer.body else {}
    except (ValueError, RecursionError):
        found = None
    if status // 100 == 2 and isinstance(found, wanted):
        return found
    code, message = 0, answer.reason
    if status // 100 == 2:
        kind = {dict: "object", list: "array", int: "number"}[wanted]
        message = f"the answer is not a JSON {kind}; this is not the URL of a schema registry"
    elif isinstance(found, dict):
        number = found.get("error_code")
        code, message = number if isinstance(number, int) else 0, str(found.get("message") or answer.reason)
    text = f"schema registry {what}: {message} (status {status})"
    raise SchemaRegistryError(text, status, code, is_temporary=answer.is_temporary)


def _schema_of(found: dict[str, Any], schema_id: int = -1) -> Schema:
    try:
        return Schema(
            text=str(found["schema"]),
            kind=str(found.get("schemaType") or "AVRO"),
            references=tuple(
                Reference(str(one["name"]), str(one["subject"]), int(one["version"]))
                for one in found.get("references") or ()
            ),
            id=int(found.get("id", schema_id)),
            subject=str(found.get("subject", "")),
            version=int(found.get("version", 0)),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise SchemaRegistryError(f"the answer of the schema registry has no valid schema: {error!r}") from None
