"""Schema registries: records whose bytes begin with the id of a schema, in Avro, JSON Schema or Protobuf.

`SchemaRegistry` reads and registers schemas over HTTP, with the interface of Confluent's registry, which Karapace,
Apicurio and Redpanda have too. `SchemaSerializer` and `SchemaDeserializer` are serializers for the clients. Avro needs
nothing else; Protobuf, and values that are checked by a JSON Schema, need ``pip install 'purekafka[registry]'``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names

if TYPE_CHECKING:
    from kafka.schema_registry.protobuf import message_schema
    from kafka.schema_registry.registry import Reference, Schema, SchemaRegistry, SchemaRegistryError
    from kafka.schema_registry.serializers import (
        SchemaDeserializer,
        SchemaMismatchError,
        SchemaSerializer,
        schema_id,
    )
    from kafka.schema_registry.server.http_server import SchemaRegistryServer

__all__ = [
    "Reference",
    "Schema",
    "SchemaDeserializer",
    "SchemaMismatchError",
    "SchemaRegistry",
    "SchemaRegistryError",
    "SchemaRegistryServer",
    "SchemaSerializer",
    "message_schema",
    "schema_id",
]

_MODULES = {
    "protobuf": "message_schema",
    "registry": "Reference Schema SchemaRegistry SchemaRegistryError",
    "serializers": "schema_id SchemaDeserializer SchemaMismatchError SchemaSerializer",
    "server.http_server": "SchemaRegistryServer",
}

# Names that confluent-kafka has.
_ELSEWHERE = {
    **dict.fromkeys(("AvroSerializer", "JSONSerializer", "ProtobufSerializer"), "SchemaSerializer"),
    **dict.fromkeys(("AvroDeserializer", "JSONDeserializer", "ProtobufDeserializer"), "SchemaDeserializer"),
    "SchemaRegistryClient": "SchemaRegistry",
}

if not TYPE_CHECKING:  # checkers report a name that is not here
    __getattr__, __dir__ = lazy_names(__name__, _MODULES, _ELSEWHERE)
