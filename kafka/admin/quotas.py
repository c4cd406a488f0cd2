"""Quotas of users, client ids and addresses."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from kafka.admin.calls import Calls, call
from kafka.admin.results import ItemResult, Result, Results, raise_failed
from kafka.protocol.users import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

_EXACT: Final = 0
_DEFAULT: Final = 1
_ANY: Final = 2

Entity = dict[str, "str | None"]


class ClientQuota(Result):
    """The quotas of an entity: names by type (``user``, ``client-id``, ``ip``), None for the default of a type."""

    __slots__ = ()
    entity: Entity
    quotas: dict[str, float]


class AlteredQuota(ItemResult):
    """Whether the quotas of an entity were changed."""

    __slots__ = ()
    _item = "quotas of {0.entity}"
    entity: Entity


class Quotas(Calls):
    """The calls about quotas."""

    @call
    async def describe_client_quotas(
        self, components: Mapping[str, object] | None = None, strict: bool = False, timeout_ms: float | None = None
    ) -> list[ClientQuota]:
        """Return the quotas of the entities that a filter means, of all for None (Kafka 2.6).

        `components` is a dict from a type of entity to a name, to None for the default of the type, or to ``...`` for
        any name. With `strict`, entities that have other types beside these are left out.

        >>> from kafka import KafkaAdminClient
        >>> from kafka.broker import Broker
        >>> with Broker() as broker, KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers) as admin:
        ...     changed = admin.alter_client_quotas([({"user": "alice"}, {"producer_byte_rate": 1024})])
        ...     admin.describe_client_quotas({"user": ...})
        [ClientQuota(entity={'user': 'alice'}, quotas={'producer_byte_rate': 1024.0})]
        """
        deadline = self._core.deadline(timeout_ms)
        wanted = dict(components or {})
        kind = DescribeClientQuotasRequest
        await self._core.require(deadline, kind.API_KEY, 0, "describe_client_quotas()", "2.6")
        request = kind(
            components=[
                kind.ComponentData(
                    entity_type=entity_type,
                    match_type=_DEFAULT if name is None else _ANY if name is ... else _EXACT,
                    match=None if name is None or name is ... else str(name),
                )
                for entity_type, name in wanted.items()
            ],
            strict=strict,
        )
        response = await self._core.ask(request, deadline, "describe_client_quotas()", checked=True)
        return [
            ClientQuota(entity=_entity(entry), quotas={value.key: value.value for value in entry.values})
            for entry in response.entries or ()
        ]

    @call
    async def alter_client_quotas(
        self,
        entries: Iterable[tuple[Mapping[str, str | None], Mapping[str, float | None]]],
        validate_only: bool = False,
        timeout_ms: float | None = None,
        *,
        raise_errors: bool = True,
    ) -> Results[AlteredQuota]:
        """Set quotas of entities, or remove the quotas whose value is None (Kafka 2.6).

        Each entry is a pair: the names of an entity by type, with None for the default of a type, and values by quota:
        ``producer_byte_rate``, ``consumer_byte_rate``, ``request_percentage``, ``controller_mutation_rate``,
        ``connection_creation_rate``.
        """
        deadline = self._core.deadline(timeout_ms)
        wanted = [(dict(entity), dict(values)) for entity, values in entries]
        for entity, values in wanted:
            for name, value in values.items():
                if value is not None and (isinstance(value, bool) or not isinstance(value, (int, float))):
                    raise TypeError(f"quota {name!r} of {entity} must be a number, or None to remove it, not {value!r}")
        kind = AlterClientQuotasRequest
        await self._core.require(deadline, kind.API_KEY, 0, "alter_client_quotas()", "2.6")
        request = kind(
            entries=[
                kind.EntryData(
                    entity=[
                        kind.EntityData(entity_type=entity_type, entity_name=name)
                        for entity_type, name in entity.items()
                    ],
                    ops=[
                        kind.OpData(key=key, value=0.0 if value is None else float(value), remove=value is None)
                        for key, value in values.items()
                    ],
                )
                for entity, values in wanted
            ],
            validate_only=validate_only,
        )
        response = await self._core.ask(request, deadline, "alter_client_quotas()")
        found = Results(AlteredQuota.of_entry(entry, entity=_entity(entry)) for entry in response.entries)
        if raise_errors:
            raise_failed(found, found)
        return found


def _entity(entry: DescribeClientQuotasResponse.EntryData | AlterClientQuotasResponse.EntryData) -> Entity:
    return {part.entity_type: part.entity_name for part in entry.entity}
