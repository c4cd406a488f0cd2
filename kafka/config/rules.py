"""Constraints between options. Each rule gets a whole configuration, and the names of the options that were given.

A rule raises an error if two given options contradict each other, or if a given option is too low for the default of
another one. If the default of an option is too low for a given one, the rule changes the default: acks=1 switches
idempotence off, and a request_timeout_ms of an hour raises default_api_timeout_ms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from typing import Any, Final

from kafka.errors import IllegalArgumentError, KafkaConfigurationError

Values = dict[str, Any]
Rule = Callable[[Values, Collection[str]], None]

_CREDENTIALS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
# Brokers keep the last five batches of a producer to recognise one sent twice.
_IDEMPOTENT_IN_FLIGHT: Final = 5


def _refuse(option: str, sentence: str) -> KafkaConfigurationError:
    return KafkaConfigurationError(sentence, option=option)


def _at_least(values: Values, given: Collection[str], name: str, parts: tuple[str, ...], more: int = 0) -> None:
    """Refuse an option that is below the sum of others if it was given, otherwise raise it to the sum."""
    floor = sum(values[part] for part in parts) + more
    if name not in values or values[name] is None or values[name] >= floor:
        return
    if name in given:
        least = " plus ".join([*(f"{part} ({values[part]:.15g})" for part in parts), *([str(more)] if more else [])])
        raise _refuse(name, f"{name} must be at least {least}, not {values[name]:.15g}: lower {parts[-1]} too")
    values[name] = floor


def _ordered(low: str, high: str) -> Rule:
    def rule(values: Values, given: Collection[str]) -> None:
        if high in values and low in values:
            _at_least(values, given, high, (low,))

    return rule


def _sasl(values: Values, given: Collection[str]) -> None:
    if "security_protocol" not in values:
        return
    protocol, mechanism = values["security_protocol"], values["sasl_mechanism"]
    if not protocol.startswith("SASL_"):
        if mechanism is not None and "sasl_mechanism" in given:
            raise _refuse(
                "sasl_mechanism",
                f"sasl_mechanism={mechanism!r} has no effect with security_protocol={protocol!r}: "
                f"set security_protocol to 'SASL_SSL', or to 'SASL_PLAINTEXT' without TLS",
            )
        return
    if mechanism is None:
        raise _refuse("sasl_mechanism", f"security_protocol={protocol!r} needs a sasl_mechanism, such as 'PLAIN'")
    needed = {
        **dict.fromkeys(_CREDENTIALS, ("sasl_plain_username", "sasl_plain_password")),
        "OAUTHBEARER": () if values["sasl_oauthbearer_token_endpoint_url"] else ("sasl_oauth_token_provider",),
    }
    for name in needed.get(mechanism, ()):
        if values[name] is None:
            instead = " or sasl_oauthbearer_token_endpoint_url" if mechanism == "OAUTHBEARER" else ""
            raise _refuse(name, f"sasl_mechanism={mechanism!r} needs {name}{instead}")
    if values["sasl_oauthbearer_token_endpoint_url"] and values["sasl_oauth_token_provider"] is None:
        for name in ("sasl_oauthbearer_client_id", "sasl_oauthbearer_client_secret"):
            if values[name] is None:
                raise _refuse(name, f"sasl_oauthbearer_token_endpoint_url needs {name}")


def _tls_context(values: Values, given: Collection[str]) -> None:
    context = values.get("ssl_context")
    if context is None:
        return
    for name in sorted(given):
        if not name.startswith("ssl_") or name == "ssl_context" or values[name] is None:
            continue
        # Older programs set it both in the context and here, which is harmless if the two agree.
        if name == "ssl_check_hostname" and values[name] == context.check_hostname:
            continue
        raise _refuse(name, f"{name} has no effect with ssl_context: set it up in the context")


def _tls_sources(values: Values, _given: Collection[str]) -> None:
    for path, text in (
        ("ssl_cafile", "ssl_truststore_certificates"),
        ("ssl_certfile", "ssl_keystore_certificate_chain"),
        ("ssl_keyfile", "ssl_keystore_key"),
    ):
        if values.get(path) is not None and values.get(text) is not None:
            raise _refuse(text, f"{path} and {text} are two forms of the same setting; give one of them")
    key = values.get("ssl_keyfile") or values.get("ssl_keystore_key")
    if key and not (values.get("ssl_certfile") or values.get("ssl_keystore_certificate_chain")):
        raise _refuse("ssl_certfile", "a private key needs its certificate: set ssl_certfile")


def _proxies(values: Values, _given: Collection[str]) -> None:
    if values.get("proxy_url") and values.get("socks5_proxy"):
        raise _refuse("socks5_proxy", "socks5_proxy is the older name of proxy_url; give one of them")


def _idempotence(values: Values, given: Collection[str]) -> None:
    if "enable_idempotence" not in values:
        return
    transactional = values["transactional_id"] is not None
    if transactional and "enable_idempotence" in given and not values["enable_idempotence"]:
        raise _refuse("enable_idempotence", "a transactional_id needs enable_idempotence=True")
    wanted = transactional or ("enable_idempotence" in given and values["enable_idempotence"])
    conflicts = {
        "acks": (values["acks"] != -1, "acks='all'"),
        "max_in_flight_requests_per_connection": (
            values["max_in_flight_requests_per_connection"] > _IDEMPOTENT_IN_FLIGHT,
            f"max_in_flight_requests_per_connection of at most {_IDEMPOTENT_IN_FLIGHT}",
        ),
        "retries": (values["retries"] == 0, "retries above 0"),
    }
    for name, (conflict, needed) in conflicts.items():
        if not conflict:
            continue
        if wanted:
            cause = "a transactional_id" if transactional else "enable_idempotence=True"
            raise _refuse(name, f"{cause} needs {needed}, not {values[name]!r}")
        values["enable_idempotence"] = False


def _delivery(values: Values, given: Collection[str]) -> None:
    if "delivery_timeout_ms" in values:
        _at_least(values, given, "delivery_timeout_ms", ("linger_ms", "request_timeout_ms"))


def _compression(values: Values, _given: Collection[str]) -> None:
    level, codec = values.get("compression_level"), values.get("compression_type")
    if level is None or codec is None:
        return
    from kafka.codec import check_level, codec_id

    try:
        check_level(codec_id(codec), level)
    except IllegalArgumentError as error:
        raise _refuse("compression_level", f"compression_level={level}: {error.args[0]}") from None


def _membership(values: Values, given: Collection[str]) -> None:
    if values.get("group_instance_id") is not None and values.get("group_id") is None:
        raise _refuse("group_instance_id", "group_instance_id needs a group_id")
    if values.get("group_protocol") == "consumer":
        for name in ("session_timeout_ms", "heartbeat_interval_ms", "partition_assignment_strategy"):
            if name in given:
                raise _refuse(
                    name,
                    f"{name} has no effect with group_protocol='consumer', where brokers decide that; leave it unset",
                )
    elif values.get("group_remote_assignor") is not None and values.get("group_protocol") == "classic":
        raise _refuse("group_remote_assignor", "group_remote_assignor needs group_protocol='consumer'")


def _below(low: str, high: str, share: float) -> Rule:
    """Refuse an option that is not below another if it was given, otherwise set it to a share of the other."""

    def rule(values: Values, given: Collection[str]) -> None:
        if low not in values or high not in values or values[low] < values[high]:
            return
        if low in given:
            raise _refuse(low, f"{low} ({values[low]!r}) must be below {high} ({values[high]!r})")
        values[low] = int(values[high] * share)

    return rule


def _fetching(values: Values, given: Collection[str]) -> None:
    if "fetch_max_wait_ms" not in values:
        return
    # 512 bytes, as librdkafka has it: the reply's own framing.
    _at_least(values, given, "receive_message_max_bytes", ("fetch_max_bytes",), 512)
    if values["consumer_timeout_ms"] < 0:
        values["consumer_timeout_ms"] = math.inf


def _controllers(values: Values, given: Collection[str]) -> None:
    if values.get("bootstrap_controllers") is None:
        return
    if "bootstrap_servers" in given:
        raise _refuse(
            "bootstrap_controllers",
            "bootstrap_controllers and bootstrap_servers exclude each other: the client connects to controllers or to "
            "brokers; leave one of them unset",
        )
    if values["kafka_client"] is not None:
        raise _refuse(
            "bootstrap_controllers",
            "bootstrap_controllers has no effect with kafka_client, which makes a client of brokers; leave one unset",
        )


RULES: Final[tuple[Rule, ...]] = (
    _controllers,
    _ordered("reconnect_backoff_ms", "reconnect_backoff_max_ms"),
    _ordered("retry_backoff_ms", "retry_backoff_max_ms"),
    _ordered("socket_connection_setup_timeout_ms", "socket_connection_setup_timeout_max_ms"),
    _ordered("request_timeout_ms", "default_api_timeout_ms"),
    _tls_context,
    _tls_sources,
    _sasl,
    _proxies,
    _idempotence,
    _delivery,
    _compression,
    _membership,
    _below("heartbeat_interval_ms", "session_timeout_ms", 1 / 3),
    # Otherwise every fetch without new records would time out.
    _below("fetch_max_wait_ms", "request_timeout_ms", 1 / 2),
    _fetching,
)
