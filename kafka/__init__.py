"""A Kafka client in pure Python.

The names below, and the modules of the package, are loaded when they are first used (PEP 562), so that
``import kafka`` costs next to nothing.

>>> import kafka
>>> kafka.TopicPartition("events", 0)
TopicPartition(topic='events', partition=0)
>>> kafka.errors.KafkaTimeoutError.retriable
True
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # Type checkers do not see what __getattr__ finds.
    from kafka import admin as admin
    from kafka import aio as aio
    from kafka import broker as broker
    from kafka import client as client
    from kafka import client_async as client_async
    from kafka import cluster as cluster
    from kafka import codec as codec
    from kafka import conn as conn
    from kafka import consumer as consumer
    from kafka import coordinator as coordinator
    from kafka import errors as errors
    from kafka import future as future
    from kafka import interceptors as interceptors
    from kafka import metrics as metrics
    from kafka import oauth as oauth
    from kafka import options as options
    from kafka import partitioner as partitioner
    from kafka import producer as producer
    from kafka import protocol as protocol
    from kafka import record as record
    from kafka import sasl as sasl
    from kafka import schema_registry as schema_registry
    from kafka import serializer as serializer
    from kafka import share as share
    from kafka import structs as structs
    from kafka import testing as testing
    from kafka import util as util
    from kafka import vendor as vendor
    from kafka import version as version
    from kafka.admin import IsolationLevel as IsolationLevel
    from kafka.admin import KafkaAdminClient as KafkaAdminClient
    from kafka.admin import OffsetSpec as OffsetSpec
    from kafka.client_async import KafkaClient as KafkaClient
    from kafka.conn import BrokerConnection as BrokerConnection
    from kafka.consumer import AsyncConsumerRebalanceListener as AsyncConsumerRebalanceListener
    from kafka.consumer import ConsumerRebalanceListener as ConsumerRebalanceListener
    from kafka.consumer import KafkaConsumer as KafkaConsumer
    from kafka.legacy.multiprocess_consumer import MultiProcessConsumer as MultiProcessConsumer
    from kafka.legacy.protocol_payloads import create_gzip_message as create_gzip_message
    from kafka.legacy.protocol_payloads import create_message as create_message
    from kafka.legacy.protocol_payloads import create_snappy_message as create_snappy_message
    from kafka.legacy.simple_client import SimpleClient as SimpleClient
    from kafka.legacy.simple_consumer import SimpleConsumer as SimpleConsumer
    from kafka.legacy.simple_producer import KeyedProducer as KeyedProducer
    from kafka.legacy.simple_producer import SimpleProducer as SimpleProducer
    from kafka.partitioner import HashedPartitioner as HashedPartitioner
    from kafka.partitioner import Murmur2Partitioner as Murmur2Partitioner
    from kafka.partitioner import RoundRobinPartitioner as RoundRobinPartitioner
    from kafka.producer import KafkaProducer as KafkaProducer
    from kafka.serializer import DefaultSerializer as DefaultSerializer
    from kafka.serializer import Deserializer as Deserializer
    from kafka.serializer import JsonSerializer as JsonSerializer
    from kafka.serializer import Serializer as Serializer
    from kafka.share import AcknowledgeType as AcknowledgeType
    from kafka.share import KafkaShareConsumer as KafkaShareConsumer
    from kafka.share import ShareRecord as ShareRecord
    from kafka.structs import ConsumerGroupMetadata as ConsumerGroupMetadata
    from kafka.structs import OffsetAndMetadata as OffsetAndMetadata
    from kafka.structs import SubscriptionPattern as SubscriptionPattern
    from kafka.structs import TopicPartition as TopicPartition
    from kafka.structs import TopicPartitionReplica as TopicPartitionReplica
    from kafka.version import __version__ as __version__

# The public names, by the modules that they live in.
_MODULES = {
    "admin": "KafkaAdminClient",
    "admin.offsets": "IsolationLevel OffsetSpec",
    "client_async": "KafkaClient",
    "conn": "BrokerConnection",
    "consumer": "AsyncConsumerRebalanceListener ConsumerRebalanceListener KafkaConsumer",
    "legacy.multiprocess_consumer": "MultiProcessConsumer",
    "legacy.simple_client": "SimpleClient",
    "legacy.simple_consumer": "SimpleConsumer",
    "legacy.simple_producer": "KeyedProducer SimpleProducer",
    "partitioner": "HashedPartitioner Murmur2Partitioner RoundRobinPartitioner",
    "producer": "KafkaProducer",
    "protocol.legacy": "create_gzip_message create_message create_snappy_message",
    "serializer": "DefaultSerializer Deserializer JsonSerializer Serializer",
    "share.acknowledgements": "AcknowledgeType",
    "share.consumer": "KafkaShareConsumer",
    "share.record": "ShareRecord",
    "structs": "ConsumerGroupMetadata OffsetAndMetadata SubscriptionPattern TopicPartition TopicPartitionReplica",
    "version": "__version__",
}
_HOMES = {name: module for module, names in _MODULES.items() for name in names.split()}

# The directories of the metadata of other distributions with a package ``kafka`` begin so.
_OTHER_OWNERS = ("kafka_python-", "kafka_python_ng-")

# Names that other packages have.
_ELSEWHERE = {
    "AIOKafkaConsumer": "kafka.aio.AIOKafkaConsumer",
    "AIOKafkaProducer": "kafka.aio.AIOKafkaProducer",
    "AIOKafkaShareConsumer": "kafka.aio.AIOKafkaShareConsumer",
    "AdminClient": "kafka.KafkaAdminClient",
    "Broker": "kafka.broker.Broker",
    "ConfigResource": "kafka.admin.ConfigResource",
    "Consumer": "kafka.KafkaConsumer",
    "ConsumerRecord": "kafka.record.ConsumerRecord",
    "DeserializingConsumer": "kafka.KafkaConsumer(key_deserializer=..., value_deserializer=...)",
    "KafkaError": "kafka.errors.KafkaError",
    "KafkaException": "kafka.errors.KafkaError",
    "NewTopic": "kafka.admin.NewTopic",
    "OFFSET_BEGINNING": "KafkaConsumer.seek_to_beginning()",
    "OFFSET_END": "KafkaConsumer.seek_to_end()",
    "Producer": "kafka.KafkaProducer",
    "RecordMetadata": "kafka.producer.future.RecordMetadata",
    "SerializingProducer": "kafka.KafkaProducer(key_serializer=..., value_serializer=...)",
    "SchemaRegistryClient": "kafka.schema_registry.SchemaRegistry",
    "ShareConsumer": "kafka.KafkaShareConsumer",
}

__all__ = list(_HOMES)


def _check_owners() -> None:
    """Warn if kafka-python has put its files into this directory too: a part of each package is overwritten then."""
    place = os.path.dirname(os.path.dirname(__file__))
    try:
        neighbours = os.listdir(place)
    except OSError:  # a zip file, say
        return
    for entry in neighbours:
        if entry.startswith(_OTHER_OWNERS) and entry.endswith(".dist-info"):
            import warnings

            other = entry.partition("-")[0].replace("_", "-")
            text = (
                f"{other} has its files in the same package 'kafka': run 'pip uninstall {other}', then "
                "'pip install --force-reinstall --no-deps purekafka'"
            )
            warnings.warn_explicit(text, UserWarning, filename=__name__, lineno=1)  # one line, without source


_check_owners()


if not TYPE_CHECKING:  # checkers report a name that is not here

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            use = _ELSEWHERE.get(name)
            if use is not None:  # the text of an AttributeError does not come out of `from kafka import ...`
                raise ImportError(f"cannot import name {name!r} from {__name__!r}: use {use}", name=__name__)
            from kafka._lazy import module_in

            return module_in(__name__, name)
        value = getattr(import_module(f"kafka.{_HOMES[name]}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    # Not what this module itself uses; but parts of the package, once they are loaded.
    parts = (name for name, value in globals().items() if (getattr(value, "__package__", "") or "").startswith("kafka"))
    return sorted({*__all__, *parts, *(name for name in globals() if name.startswith("__"))})
