"""The options ``kafka.*``, which are the Java client's, as keywords for the classes of this library."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final

from kafka.config import OPTIONS, find_option, nearest_name, parse, resolve, translate
from kafka.errors import KafkaConfigurationError
from kafka.spark.errors import KafkaSparkOptionError, as_typed

__all__ = ["check_together", "client_options"]


log = logging.getLogger(__name__)

# Of a member of a group, which the source is not, and of a client's own metrics.
_WITHOUT_GROUP: Final = frozenset(
    """
    enable.metrics.push exclude.internal.topics group.id group.protocol group.remote.assignor group.instance.id
    heartbeat.interval.ms max.poll.interval.ms max.poll.records metrics.num.samples metrics.sample.window.ms
    partition.assignment.strategy session.timeout.ms
    """.split()  # noqa: SIM905 - read by people
)
_warned: set[str] = set()


def client_options(kind: str, given: Mapping[str, str]) -> dict[str, Any]:
    """Return the keywords for a class of this library; ``given`` is without the prefix ``kafka.``.

    >>> client_options("consumer", {"bootstrap.servers": "b1:9092", "max.poll.records": "10"})
    {'bootstrap_servers': 'b1:9092'}
    """
    chosen = {name: text for name, text in given.items() if name not in _WITHOUT_GROUP and _is_known(kind, name)}
    try:
        texts = translate(chosen)
        servers = texts.pop("bootstrap_servers", None)
        # With dots, as errors name them.
        dotted = {name.replace("_", "."): text for name, text in texts.items() if kind in OPTIONS[name].kinds}
        found = parse(kind, dotted)
    except KafkaConfigurationError as error:
        raise KafkaSparkOptionError(f"kafka.{error}") from error
    if servers is not None:
        found["bootstrap_servers"] = servers
    if "default_api_timeout_ms" in found and "request_timeout_ms" not in found:
        # With Java's consumer one call may be given less time than one request has by default; here that is refused.
        default = OPTIONS["request_timeout_ms"].default_for(kind)
        found["request_timeout_ms"] = min(default, found["default_api_timeout_ms"])
    return found


def _is_known(kind: str, name: str) -> bool:
    """Whether an option is one of the client or without an effect; warn once if it is neither."""
    try:
        option = find_option(name)
    except KeyError:
        _warn(name)
        return False
    if option is not None and option.name in OPTIONS and kind not in OPTIONS[option.name].kinds:
        _warn(name)
        return False
    return option is None or not option.name.startswith("schema_registry_")


def check_together(kind: str, options: Mapping[str, object]) -> None:
    """Refuse options that exclude each other in the driver, before a task starts.

    >>> check_together("producer", {"transactional_id": "t", "acks": 1})
    Traceback (most recent call last):
    kafka.spark.errors.KafkaSparkOptionError: Options do not go together: exactlyOnce=true needs kafka.acks='all', not 1
    """
    try:
        resolve(kind, dict(options))
    except KafkaConfigurationError as error:
        raise KafkaSparkOptionError(f"Options do not go together: {as_typed(str(error))}") from error


def _warn(name: str) -> None:
    if name in _warned:
        return
    _warned.add(name)
    near = nearest_name(name)
    hint = f": did you mean kafka.{near}?" if near else ""
    log.warning("The option kafka.%s is not known and has no effect%s", name, hint)
