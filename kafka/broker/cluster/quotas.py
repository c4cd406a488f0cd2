"""Client quotas: kept and described, not enforced. An entity is a user, a client id, both, or an address (KIP-546)."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Final

from kafka.broker.cluster.cluster import Cluster
from kafka.errors import InvalidRequestError, UnsupportedVersionError

Entity = tuple[tuple[str, "str | None"], ...]
"""Pairs of type and name, each type once, sorted; no name means the default."""

USER, CLIENT, IP = "user", "client-id", "ip"
_CLIENT_KEYS: Final = frozenset(
    {"producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate"}
)
_KEYS: Final = {USER: _CLIENT_KEYS, CLIENT: _CLIENT_KEYS, IP: frozenset({"connection_creation_rate"})}

#: The quotas that are whole numbers, with the type that they have in Kafka.
_WHOLE: Final = {
    "connection_creation_rate": ("an INT", 2**31 - 1),
    "consumer_byte_rate": ("a LONG", 2**63 - 1),
    "producer_byte_rate": ("a LONG", 2**63 - 1),
}
#: Kafka takes a value for whole that is this near to a whole number.
_NEARLY: Final = 1e-6
_HOST: Final = re.compile(r"[0-9A-Za-z]([0-9A-Za-z.:_-]*[0-9A-Za-z:])?|::1?")

EXACT, DEFAULT, ANY = range(3)


def check_entity(entity: Entity) -> None:
    """Raise unless quotas can be set for it."""
    types = [kind for kind, _ in entity]
    if not types:
        raise InvalidRequestError("Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in _KEYS:
            raise InvalidRequestError(f"Unhandled client quota entity type: {kind}")
        if name == "":
            raise InvalidRequestError(f"Empty {kind} not supported")
        if kind == IP and name is not None and not _HOST.fullmatch(name):
            raise InvalidRequestError(f"{name} is not a valid IP or resolvable host.")
    if IP in types and len(types) > 1:
        raise InvalidRequestError(f"Invalid quota entity combination, ip and {'/'.join(sorted(set(types) - {IP}))}")


def alter(cluster: Cluster, entity: Entity, ops: Iterable[tuple[str, float | None]], *, validate_only: bool) -> None:
    """Set the quotas of an entity; None removes one."""
    check_entity(entity)
    table = cluster.store.table("quotas")
    key = json.dumps(entity)
    values = dict(table.get(key, {}))
    for name, value in ops:
        if name not in _KEYS[entity[0][0]]:
            raise InvalidRequestError(f"Invalid configuration key {name}")
        if value is None:
            values.pop(name, None)
        else:
            _check_value(name, value)
            values[name] = value
    if validate_only:
        return
    if values:
        table[key] = values
    else:
        table.pop(key, None)


def _check_value(name: str, value: float) -> None:
    if value <= 0:
        raise InvalidRequestError(f"Quota {name} must be greater than 0")
    if name in _WHOLE and not math.isnan(value):
        kind, most = _WHOLE[name]
        if value > most:
            raise InvalidRequestError(f"Proposed value for {name} is too large for {kind}.")
        if abs(value - round(value)) > _NEARLY:
            raise InvalidRequestError(f"{name} cannot be a fractional value.")


def matching(
    cluster: Cluster, components: Iterable[tuple[str, int, str | None]], *, strict: bool
) -> list[tuple[Entity, dict[str, float]]]:
    """Return the entities that have all these components; with ``strict`` no others."""
    wanted = list(components)
    for kind, how, _ in wanted:
        if how not in {EXACT, DEFAULT, ANY}:
            raise InvalidRequestError(f"Unknown match type {how}")
        if kind not in _KEYS:
            raise UnsupportedVersionError(f"Unsupported entity type {kind}")
    found = []
    for key, values in cluster.store.table("quotas").items():
        entity: Entity = tuple((kind, name) for kind, name in json.loads(key))
        names = dict(entity)
        if strict and len(names) != len(wanted):
            continue
        if all(kind in names and _fits(names[kind], how, match) for kind, how, match in wanted):
            found.append((entity, values))
    return found


def _fits(name: str | None, how: int, match: str | None) -> bool:
    if how == EXACT:
        return name is not None and name == match
    return name is None if how == DEFAULT else True
