"""The log levels of a broker's loggers, as the resource BROKER_LOGGER (KIP-412).

The loggers are the main ones of Kafka's brokers, under its names. A node remembers the levels until it stops; they
change nothing about what the embedded broker logs, which Python's ``logging`` decides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from kafka.broker.configs import Source, Value
from kafka.broker.configs.option import Kind, Option
from kafka.broker.configs.resource_kinds import Described
from kafka.errors import InvalidConfigurationError, InvalidRequestError, UnknownError

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kafka.broker.configs.resource_kinds import Change
    from kafka.broker.server.node import Node

ROOT: Final = "root"
LOGGERS: Final = (
    ROOT,
    "kafka.coordinator.transaction.TransactionCoordinator",
    "kafka.coordinator.transaction.TransactionMarkerChannelManager",
    "kafka.log.LogCleaner",
    "kafka.log.LogManager",
    "kafka.network.ConnectionQuotas",
    "kafka.network.DataPlaneAcceptor",
    "kafka.network.Processor",
    "kafka.network.RequestChannel$",
    "kafka.network.SocketServer",
    "kafka.request.logger",
    "kafka.server.BrokerServer",
    "kafka.server.ConfigAdminManager",
    "kafka.server.ControllerApis",
    "kafka.server.ControllerServer",
    "kafka.server.KafkaApis",
    "kafka.server.KafkaRaftServer",
    "kafka.server.KafkaRequestHandler",
    "kafka.server.ReplicaManager",
    "kafka.server.ReplicationQuotaManager",
    "kafka.server.SharedServer",
    "kafka.server.metadata.BrokerMetadataPublisher",
    "kafka.server.metadata.DynamicConfigPublisher",
    "kafka.server.share.SharePartitionManager",
    "state.change.logger",
)
_LEVELS: Final = ("DEBUG", "ERROR", "FATAL", "INFO", "TRACE", "WARN")
_DEFAULT: Final = "INFO"
_SET, _DELETE = 0, 1
_VERBS: Final = {2: "APPEND", 3: "SUBTRACT"}


def describe_loggers(node: Node, name: str) -> list[Described]:
    """Return the level of each logger: its own, or the root's."""
    if not name:
        raise InvalidRequestError("Broker id must not be empty")
    if _number(name, "Broker") != node.node_id:
        raise InvalidRequestError(f"Unexpected broker id, expected {node.node_id} but received {name}")
    levels = _levels_of(node)
    inherited = levels.get(ROOT, _DEFAULT)
    # Kafka says nothing about synonyms, types and documentation of levels.
    return [
        Described(
            Option(logger, Kind.UNKNOWN, None, ""),
            [Value("", levels.get(logger, inherited), Source.DYNAMIC_BROKER_LOGGER)],
        )
        for logger in LOGGERS
    ]


def alter_loggers(node: Node, name: str, changes: Iterable[Change], *, validate_only: bool) -> None:
    """Set or remove the levels of loggers, all of them or, if one is refused, none."""
    if _number(name, "Node") != node.node_id:
        raise InvalidRequestError(f"Unexpected node id. Expected {node.node_id}, but received {name}")
    levels = dict(_levels_of(node))
    for change in changes:
        _check(change)
        if change.operation == _DELETE:
            levels.pop(change.name, None)
        else:
            levels[change.name] = change.value or ""
    if not validate_only:
        node.memory[LOGGERS] = levels


def _check(change: Change) -> None:
    logger, operation, value = change.name, change.operation, change.value
    if operation != _DELETE and value is None:
        raise InvalidRequestError(f"Null value not supported for : {logger}")
    if operation in _VERBS:
        raise InvalidRequestError(f"{_VERBS[operation]} operation is not allowed for the BROKER_LOGGER resource")
    if operation not in (_SET, _DELETE):
        raise UnknownError
    if logger not in LOGGERS:
        raise InvalidConfigurationError(f"Logger {logger} does not exist!")
    if operation == _DELETE and logger == ROOT:
        raise InvalidRequestError("Removing the log level of the root logger is not allowed")
    if operation == _SET and value not in _LEVELS:
        raise InvalidConfigurationError(
            f"Cannot set the log level of {logger} to {value} as it is not a supported log level."
            f" Valid log levels are {', '.join(_LEVELS)}"
        )


def _levels_of(node: Node) -> dict[str, str]:
    levels: dict[str, str] = node.memory.get(LOGGERS, {})
    return levels


def _number(name: str, noun: str) -> int:
    try:
        return int(name)
    except ValueError:
        raise InvalidRequestError(f"{noun} id must be an integer, but it is: {name}") from None
