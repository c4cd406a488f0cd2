"""confluent-kafka's serializers: writes values to a topic, or prints those that it reads, as JSON; run with its Python.

confluent_side.py write|read KIND REGISTRY SERVERS TOPIC SCHEMA_FILE [VALUES]
"""

import json
import sys
import time
import warnings

warnings.simplefilter("ignore")  # of packages that it uses

from confluent_kafka import Consumer, Producer  # noqa: E402
from confluent_kafka.schema_registry import SchemaRegistryClient  # noqa: E402
from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer  # noqa: E402
from confluent_kafka.schema_registry.json_schema import JSONDeserializer, JSONSerializer  # noqa: E402
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer, ProtobufSerializer  # noqa: E402
from confluent_kafka.serialization import MessageField, SerializationContext  # noqa: E402
from google.protobuf import descriptor_pb2, descriptor_pool, json_format  # noqa: E402
from google.protobuf.message_factory import GetMessageClass  # noqa: E402

MODE, KIND, URL, SERVERS, TOPIC, SCHEMA = sys.argv[1:7]


def message_class():
    """Return the class of the message `Order` in a file that protoc compiles."""
    import os
    import tempfile

    import google.protobuf.timestamp_pb2  # noqa: F401 - adds its file to the pool
    import grpc_tools
    from grpc_tools import protoc

    with tempfile.TemporaryDirectory() as directory:
        out = os.path.join(directory, "out")
        include = os.path.join(os.path.dirname(grpc_tools.__file__), "_proto")
        where = os.path.dirname(SCHEMA)
        assert protoc.main(["", f"-I{where}", f"-I{include}", f"--descriptor_set_out={out}", SCHEMA]) == 0
        with open(out, "rb") as file:
            found = descriptor_pb2.FileDescriptorSet.FromString(file.read()).file[0]
    pool = descriptor_pool.Default()
    pool.Add(found)
    return GetMessageClass(pool.FindMessageTypeByName("shop.Order"))


def write():
    client = SchemaRegistryClient({"url": URL})
    with open(SCHEMA, encoding="utf-8") as file:
        text = file.read()
    values = json.loads(sys.argv[7])
    if KIND == "AVRO":
        serializer = AvroSerializer(client, text)
    elif KIND == "JSON":
        serializer = JSONSerializer(text, client)
    else:
        message = message_class()
        serializer = ProtobufSerializer(message, client, {"use.deprecated.format": False})
        values = [json_format.ParseDict(value, message()) for value in values]
    producer = Producer({"bootstrap.servers": SERVERS})
    context = SerializationContext(TOPIC, MessageField.VALUE)
    for value in values:
        producer.produce(TOPIC, serializer(value, context))
    assert producer.flush(20) == 0


def read():
    client = SchemaRegistryClient({"url": URL})
    if KIND == "AVRO":
        deserializer = AvroDeserializer(client)
    elif KIND == "JSON":
        deserializer = JSONDeserializer(None, schema_registry_client=client)
    else:
        deserializer = ProtobufDeserializer(message_class(), {"use.deprecated.format": False})
    consumer = Consumer(
        {"bootstrap.servers": SERVERS, "group.id": f"{TOPIC}-confluent", "auto.offset.reset": "earliest"}
    )
    consumer.subscribe([TOPIC])
    context = SerializationContext(TOPIC, MessageField.VALUE)
    found, deadline = [], time.monotonic() + 40
    while len(found) < int(sys.argv[7]):
        assert time.monotonic() < deadline, f"{len(found)} records came"
        record = consumer.poll(0.2)
        if record is not None:
            assert not record.error(), record.error()
            value = deserializer(record.value(), context)
            found.append(
                json_format.MessageToDict(value, preserving_proto_field_name=True) if KIND == "PROTOBUF" else value
            )
    consumer.close()
    print(json.dumps(found))


{"write": write, "read": read}[MODE]()
