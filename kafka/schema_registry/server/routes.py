"""The requests of Confluent's interface: each route is a function of the store, the words of the path, and the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from kafka.schema_registry.server.formats import KINDS
from kafka.schema_registry.server.store import Refused, SchemaStore, Setting, Version

__all__ = ["RawText", "RegistryRequest", "answer_of"]


class RegistryRequest(NamedTuple):
    """A request without what its path says."""

    store: SchemaStore
    query: dict[str, str]
    body: dict[str, Any]

    def asks(self, name: str) -> bool:
        """Return whether the query says that something is true."""
        return self.query.get(name, "").lower() == "true"


class RawText(str):
    """An answer that is a schema's own text."""

    __slots__ = ()


def answer_of(request: RegistryRequest, method: str, words: list[str]) -> Any:
    """Return the answer of a request; Refused if it is not carried out."""
    for wanted, pattern, route in _ROUTES:
        if wanted == method and len(pattern) == len(words):
            pairs = list(zip(pattern, words, strict=True))
            if all(part in {word, "*"} for part, word in pairs):
                return route(request, *(word for part, word in pairs if part == "*"))
    raise Refused(404, f"HTTP 404 Not Found: {method} /{'/'.join(words)}")


def _shown(request: RegistryRequest, one: Version) -> dict[str, Any]:
    """Return the JSON of a schema; Avro is the type of one without a type."""
    serialized = request.query.get("format") == "serialized"
    found: dict[str, Any] = {"schema": one.parsed.serialized() if serialized else one.parsed.text}
    if one.parsed.kind != "AVRO":
        found["schemaType"] = one.parsed.kind
    if one.references:
        found["references"] = list(one.references)
    return found


def _shown_version(request: RegistryRequest, one: Version) -> dict[str, Any]:
    place = {"subject": one.subject, "version": one.number, "id": one.id, "guid": one.guid}
    return {**place, **_shown(request, one)}


# Schemas…


def _schemas(request: RegistryRequest) -> Any:
    prefix = request.query.get("subjectPrefix", "")
    found = [one for one in request.store.all_versions() if one.subject.startswith(prefix)]
    found = [one for one in found if request.asks("deleted") or not one.deleted]
    if request.asks("latestOnly"):
        found = list({one.subject: one for one in found}.values())
    return [_shown_version(request, one) for one in found]


def _by_id(request: RegistryRequest, number: str) -> list[Version]:
    if not number.lstrip("-").isdigit():
        raise Refused(404, f"HTTP 404 Not Found: {number} is not an id")
    return request.store.by_id(int(number))


def _schema(request: RegistryRequest, number: str) -> Any:
    found = _by_id(request, number)[0]
    return {**_shown(request, found), "guid": found.guid}


def _versions_of_id(request: RegistryRequest, number: str) -> list[Version]:
    return [one for one in _by_id(request, number) if request.asks("deleted") or not one.deleted]


def _by_guid(request: RegistryRequest, guid: str) -> Any:
    found = request.store.by_guid(guid)
    return {**_shown(request, found), "guid": guid}


# Subjects…


def _subjects(request: RegistryRequest) -> Any:
    prefix = request.query.get("subjectPrefix", "")
    return sorted(
        name
        for name, versions in request.store.subjects.items()
        if name.startswith(prefix) and (request.asks("deleted") or any(not one.deleted for one in versions))
    )


def _find(request: RegistryRequest, subject: str) -> Any:
    found = request.store.find(subject, request.body, deleted=request.asks("deleted"))
    return _shown_version(request, found)


def _register(request: RegistryRequest, subject: str) -> Any:
    added = request.store.register(subject, request.body)
    return {"id": added.id, "version": added.number, "guid": added.guid, **_shown(request, added)}


def _version(request: RegistryRequest, subject: str, word: str) -> Version:
    return request.store.version(subject, word, deleted=request.asks("deleted"))


def _used_by(request: RegistryRequest, subject: str, word: str) -> Any:
    found = _version(request, subject, word)
    return [one.id for one in request.store.users_of(found.subject, found.number)]


def _fits(request: RegistryRequest, subject: str, word: str | None = None) -> Any:
    store = request.store
    parsed, _ = store.parse(request.body)
    versions = [one for one in store.subjects.get(subject, ()) if not one.deleted]
    if word is not None:
        versions = versions[-1:] if word in {"latest", "-1"} else [store.version(subject, word)]
    found = store.incompatibilities(subject, parsed, versions)
    return {"is_compatible": not found, **({"messages": found} if request.asks("verbose") else {})}


# Compatibility and mode…


_Route = Callable[..., Any]
_Entry = tuple[str, list[str], _Route]


def _route(method: str, path: str, route: _Route) -> _Entry:
    return method, path.split("/"), route


def _routes_of(path: str, put: str, answer: str, setting: Callable[[SchemaStore], Setting]) -> list[_Entry]:
    """Return the routes of a setting, by the names that a request to change it and the other answers have for it."""

    def get(request: RegistryRequest, subject: str | None = None) -> Any:
        return {answer: setting(request.store).get(subject, default=request.asks("defaultToGlobal"))}

    def change(request: RegistryRequest, subject: str | None = None) -> Any:
        changed = setting(request.store)
        word = changed.check(request.body.get(put))
        if word == "IMPORT" and not request.asks("force"):
            request.store.check_importable(subject)
        changed.set(subject, word)
        return {put: word}

    def drop(request: RegistryRequest, subject: str | None = None) -> Any:
        return {answer: setting(request.store).drop(subject)}

    routes = {"GET": get, "PUT": change, "DELETE": drop}
    return [_route(method, f"{path}{end}", route) for method, route in routes.items() for end in ("", "/*")]


_ROUTES: Final = [
    _route("GET", "", lambda _: {}),
    _route("GET", "contexts", lambda _: ["."]),
    _route("GET", "schemas", _schemas),
    _route("GET", "schemas/types", lambda _: list(KINDS)),
    _route("GET", "schemas/ids/*", _schema),
    _route("GET", "schemas/ids/*/schema", lambda request, number: RawText(_by_id(request, number)[0].parsed.text)),
    _route("GET", "schemas/ids/*/subjects", lambda *given: [one.subject for one in _versions_of_id(*given)]),
    _route(
        "GET",
        "schemas/ids/*/versions",
        lambda *given: [{"subject": one.subject, "version": one.number} for one in _versions_of_id(*given)],
    ),
    _route("GET", "schemas/guids/*", _by_guid),
    _route("GET", "subjects", _subjects),
    _route("POST", "subjects/*", _find),
    _route(
        "DELETE",
        "subjects/*",
        lambda request, subject: request.store.delete_subject(subject, permanent=request.asks("permanent")),
    ),
    _route(
        "GET",
        "subjects/*/versions",
        lambda request, subject: [
            one.number for one in request.store.versions(subject, deleted=request.asks("deleted"))
        ],
    ),
    _route("POST", "subjects/*/versions", _register),
    _route("GET", "subjects/*/versions/*", lambda request, *place: _shown_version(request, _version(request, *place))),
    _route(
        "DELETE",
        "subjects/*/versions/*",
        lambda request, *place: request.store.delete_version(*place, permanent=request.asks("permanent")),
    ),
    _route("GET", "subjects/*/versions/*/schema", lambda *given: RawText(_version(*given).parsed.text)),
    _route("GET", "subjects/*/versions/*/referencedby", _used_by),
    _route("POST", "compatibility/subjects/*/versions", _fits),
    _route("POST", "compatibility/subjects/*/versions/*", _fits),
    *_routes_of("config", "compatibility", "compatibilityLevel", lambda store: store.level),
    *_routes_of("mode", "mode", "mode", lambda store: store.mode),
]
