"""Messages that carry their version in front: what group members tell each other, and what brokers keep in their logs.

The bytes are an INT16 version and the message in that version. Members of a group may be newer than
we are, so a version beyond ours is read as our newest, and what follows is left alone, as Java does.

>>> from kafka.protocol.consumer_protocol import ConsumerProtocolSubscription
>>> data = encode_versioned(ConsumerProtocolSubscription[1](['events'], b'rack-7'))
>>> decode_versioned(ConsumerProtocolSubscription, data)
ConsumerProtocolSubscription[1](topics=['events'], user_data=b'rack-7', owned_partitions=[])
"""

from __future__ import annotations

import struct
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from kafka.errors import KafkaProtocolError
from kafka.protocol.codec.interpreter import decode_prefix
from kafka.protocol.fields import Buffer
from kafka.protocol.struct import Struct, StructMeta

if TYPE_CHECKING:
    from kafka.protocol.control_records import ControlRecordTypeSchema

_S = TypeVar("_S", bound=Struct)
_VERSION = struct.Struct(">h")


def encode_versioned(message: Struct) -> bytes:
    """Return version and message of an instance that is bound to a version."""
    return _VERSION.pack(message.API_VERSION) + message.encode()


def decode_versioned(cls: type[_S], data: Buffer) -> _S:
    """Read version and message; ``cls`` is a message class without a version."""
    version = _leading_number(data, cls.__name__)
    meta: StructMeta = cls
    newest = meta._versions.high
    if version < meta._versions.low:
        raise KafkaProtocolError(f"{cls.__name__} has versions {meta._versions}, not {version}")
    if version <= newest:
        return cls[version].decode(data, start=_VERSION.size)
    message, _ = decode_prefix(meta._of_version(newest), memoryview(data)[_VERSION.size :])
    return message  # type: ignore[no-any-return]


def _leading_number(data: Buffer, what: str) -> int:
    if len(data) < _VERSION.size:
        raise KafkaProtocolError(f"{what} needs at least {_VERSION.size} bytes, not {len(data)}")
    return int(_VERSION.unpack_from(data)[0])


# The logs of coordinators


class LogEntry(NamedTuple):
    """A decoded record of a coordinator's log; the value is None where the record deletes its key."""

    key: Struct
    value: Struct | None


def _record_types(module: ModuleType) -> dict[int, tuple[type[Struct], type[Struct]]]:
    found = {}
    for name, key in vars(module).items():
        if name.endswith("Key"):
            found[key.RECORD_TYPE] = (key, getattr(module, name.removesuffix("Key") + "Value"))
    return found


def decode_group_log(key: Buffer | None, value: Buffer | None) -> LogEntry:
    """Decode a record of ``__consumer_offsets``: a committed offset, a group, or a member of one.

    >>> key = bytes.fromhex('0001 0001 67 0001 74 00000000')
    >>> decode_group_log(key, None)
    LogEntry(key=OffsetCommitKey[0](group='g', topic='t', partition=0), value=None)
    """
    from kafka.protocol import group_log  # few programs read this log; the module takes 2 ms to import

    return _decode_log(group_log, key, value)


def decode_transaction_log(key: Buffer | None, value: Buffer | None) -> LogEntry:
    """Decode a record of ``__transaction_state``."""
    from kafka.protocol import transaction_log

    return _decode_log(transaction_log, key, value)


def _decode_log(module: ModuleType, key: Buffer | None, value: Buffer | None) -> LogEntry:
    if key is None:
        raise KafkaProtocolError(f"a record of {module.__name__.rpartition('.')[2]} always has a key")
    record_type = _leading_number(key, "a key")
    types = _record_types(module)
    if record_type not in types:
        raise KafkaProtocolError(f"{record_type} is not a type of record in {module.__name__.rpartition('.')[2]}")
    key_class, value_class = types[record_type]
    decoded = key_class._of_version(0).decode(key, start=_VERSION.size)
    return LogEntry(decoded, None if value is None else decode_versioned(value_class, value))


# Control records


def decode_control_record(key: Buffer, value: Buffer) -> tuple[str, Struct]:
    """Decode a control record: ``('commit', EndTxnMarker)``, ``('abort', EndTxnMarker)``, or its type in words.

    >>> kind, marker = decode_control_record(bytes.fromhex('0000 0001'), bytes.fromhex('0000 00000005'))
    >>> kind, marker.coordinator_epoch
    ('commit', 5)
    """
    from kafka.protocol import control_records

    _leading_number(key, "the key of a control record")
    # Version 0 is the only one; a later one may only add to it, so it is read whatever the key says.
    known: type[ControlRecordTypeSchema] = control_records.ControlRecordTypeSchema[0]
    schema, _ = decode_prefix(known, memoryview(key)[_VERSION.size :])
    kind = {0: "abort", 1: "commit"}.get(schema.type)
    if kind is None:
        return f"type {schema.type}", schema
    return kind, decode_versioned(control_records.EndTxnMarker, value)
