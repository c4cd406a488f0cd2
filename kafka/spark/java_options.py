"""The options ``kafka.*``, which are the Java client's: their names here, those without effect, and JAAS texts."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from kafka.config import BY_SPELLING, OPTIONS, parse, resolve
from kafka.errors import KafkaConfigurationError
from kafka.spark.errors import KafkaSparkOptionError, as_typed

__all__ = ["check_together", "client_options", "JaasEntry", "parse_jaas"]


log = logging.getLogger(__name__)

# Names of the Java client's consumer, producer and admin (4.3) that change nothing that a program could see.
_JAVA_ONLY: Final = frozenset(
    """
    auto.include.jmx.reporter config.providers context confluent.telemetry enable.metrics.push exclude.internal.topics
    group.id group.protocol group.remote.assignor group.instance.id heartbeat.interval.ms
    internal.auto.downgrade.txn.commit
    internal.leave.group.on.close internal.throw.on.fetch.stable.offset.unsupported max.poll.interval.ms
    max.poll.records metric.reporters metrics.num.samples metrics.recording.level metrics.sample.window.ms
    partition.assignment.strategy partitioner.class sasl.client.callback.handler.class
    sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.ticket.renew.jitter
    sasl.kerberos.ticket.renew.window.factor sasl.login.callback.handler.class sasl.login.class
    sasl.login.read.timeout.ms sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds
    sasl.login.refresh.window.jitter sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms
    security.providers session.timeout.ms share.acknowledgement.mode
    ssl.enabled.protocols ssl.engine.factory.class ssl.keymanager.algorithm ssl.keystore.password ssl.protocol
    ssl.provider ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.password
    """.split()  # noqa: SIM905 - read by people
)
_OTHER_STORES: Final = (".jks", ".p12", ".pfx", ".pkcs12", ".keystore", ".truststore")
_warned: set[str] = set()


def client_options(kind: str, given: Mapping[str, str]) -> dict[str, Any]:
    """Return the keywords for a class of this library; ``given`` is without the prefix ``kafka.``.

    >>> client_options("consumer", {"bootstrap.servers": "b1:9092", "max.poll.records": "10"})
    {'bootstrap_servers': 'b1:9092'}
    """
    texts: dict[str, str] = {}
    special: dict[str, Any] = {}
    for name, text in given.items():
        translate = _SPECIAL.get(name)
        if translate is not None:
            special.update(translate(text))
        elif name in _JAVA_ONLY:
            continue
        elif name in BY_SPELLING and kind in BY_SPELLING[name].kinds:
            texts[name] = text
        else:
            _warn(kind, name)
    _check_stores(given)
    try:
        found = {**special, **parse(kind, texts)}
    except KafkaConfigurationError as error:
        raise KafkaSparkOptionError(f"kafka.{error}") from error
    if "default_api_timeout_ms" in found and "request_timeout_ms" not in found:
        # With Java's consumer one call may be given less time than one request has by default; here that is refused.
        default = OPTIONS["request_timeout_ms"].default_for(kind)
        found["request_timeout_ms"] = min(default, found["default_api_timeout_ms"])
    if "sasl_mechanism" in special:  # for Java it is OAUTHBEARER with a class of AWS
        found["sasl_mechanism"] = special["sasl_mechanism"]
    return found


def check_together(kind: str, options: Mapping[str, object]) -> None:
    """Refuse options that do not go together, while that is the driver's to tell and not a task's.

    >>> check_together("producer", {"transactional_id": "t", "acks": 1})
    Traceback (most recent call last):
    kafka.spark.errors.KafkaSparkOptionError: Options do not go together: exactlyOnce=true needs kafka.acks='all', not 1
    """
    try:
        resolve(kind, dict(options))
    except KafkaConfigurationError as error:
        raise KafkaSparkOptionError(f"Options do not go together: {as_typed(str(error))}") from error


def _warn(kind: str, name: str) -> None:
    if name in _warned:
        return
    _warned.add(name)
    known = [*_JAVA_ONLY, *(spelling for spelling, option in BY_SPELLING.items() if kind in option.kinds)]
    near = get_close_matches(name, [spelling for spelling in known if "_" not in spelling], n=1, cutoff=0.75)
    hint = f": did you mean kafka.{near[0]}?" if near else ""
    log.warning("The option kafka.%s is not known and has no effect%s", name, hint)


def _hostname_check(text: str) -> dict[str, Any]:
    return {"ssl_check_hostname": text.strip() != ""}


def _store_type(text: str) -> dict[str, Any]:
    if text.strip().upper() != "PEM":
        raise KafkaSparkOptionError(
            f"Stores of type {text} belong to Java. Convert them to PEM once: keytool -importkeystore -srckeystore "
            "store.jks -destkeystore store.p12 -deststoretype PKCS12, then openssl pkcs12 -in store.p12 -nodes -out "
            "store.pem; and set kafka.ssl.truststore.type or kafka.ssl.keystore.type to PEM"
        )
    return {}


def _check_stores(given: Mapping[str, str]) -> None:
    for store in ("truststore", "keystore"):
        location = given.get(f"ssl.{store}.location", "")
        if f"ssl.{store}.type" not in given and location.lower().endswith(_OTHER_STORES):
            _store_type("JKS")


def _jaas(text: str) -> dict[str, Any]:
    module, options = parse_jaas(text)
    if module in {"PlainLoginModule", "ScramLoginModule"}:
        wanted: dict[str, Any] = {
            "sasl_plain_username": options.get("username"),
            "sasl_plain_password": options.get("password"),
        }
        if None in wanted.values():
            raise KafkaSparkOptionError(f"kafka.sasl.jaas.config: {module} needs username and password")
        if options.get("tokenauth", "").lower() == "true":
            wanted["sasl_scram_delegation_token"] = True
        return wanted
    if module == "OAuthBearerLoginModule":
        names = {
            "clientId": "sasl_oauthbearer_client_id",
            "clientSecret": "sasl_oauthbearer_client_secret",
            "scope": "sasl_oauthbearer_scope",
        }
        return {names[name]: value for name, value in options.items() if name in names}
    if module == "IAMLoginModule":
        return {"sasl_mechanism": "AWS_MSK_IAM"}
    if module == "Krb5LoginModule":
        # Tickets come from the system's cache (kinit), where GSSAPI looks; the keytab's options are Java's.
        return {"sasl_kerberos_service_name": options["serviceName"]} if "serviceName" in options else {}
    raise KafkaSparkOptionError(
        f"kafka.sasl.jaas.config: there is nothing here for {module}; PlainLoginModule, ScramLoginModule, "
        "OAuthBearerLoginModule, Krb5LoginModule and IAMLoginModule are known"
    )


def _msk_class(text: str) -> dict[str, Any]:
    # The mechanism is OAUTHBEARER or AWS_MSK_IAM there; the signing is the same here.
    return {"sasl_mechanism": "AWS_MSK_IAM"} if text.rpartition(".")[2].startswith("IAM") else {}


# What Spark's users set instead of options of this library.
_SPECIAL: Final[dict[str, Callable[[str], dict[str, Any]]]] = {
    "sasl.jaas.config": _jaas,
    "sasl.client.callback.handler.class": _msk_class,
    "sasl.login.callback.handler.class": _msk_class,
    "ssl.endpoint.identification.algorithm": _hostname_check,
    "ssl.truststore.type": _store_type,
    "ssl.keystore.type": _store_type,
    "bootstrap.servers": lambda text: {"bootstrap_servers": text},
}


_ENTRY: Final = re.compile(
    r"\s*([\w.$]+)\s+(required|requisite|sufficient|optional)\b(.*?);?\s*", re.DOTALL | re.IGNORECASE
)
_OPTION: Final = re.compile(r"""\s*([\w.\-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))""")


class JaasEntry(NamedTuple):
    """One login module."""

    module: str
    """The class without its package."""
    options: dict[str, str]


def parse_jaas(text: str) -> JaasEntry:
    """Read such a text; what it says is never part of an error.

    >>> parse_jaas('org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b c";')
    JaasEntry(module='PlainLoginModule', options={'username': 'a', 'password': 'b c'})
    """
    entry = _ENTRY.fullmatch(text)
    if entry is None:
        raise KafkaSparkOptionError(
            "kafka.sasl.jaas.config must be the class of a login module, 'required', its options and a semicolon: "
            'org.apache.kafka.common.security.plain.PlainLoginModule required username="..." password="...";'
        )
    options: dict[str, str] = {}
    at = 0
    rest = entry[3].rstrip().rstrip(";").rstrip()
    while at < len(rest):
        found = _OPTION.match(rest, at)
        if found is None:
            raise KafkaSparkOptionError(
                f"kafka.sasl.jaas.config: what stands after the option {len(options)} of {entry[1].rpartition('.')[2]} "
                'is not of the form name="value"'
            )
        quoted = found[2] if found[2] is not None else found[3]
        options[found[1]] = found[4] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        at = found.end()
    return JaasEntry(entry[1].rpartition(".")[2], options)
