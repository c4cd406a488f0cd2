"""Options as other clients have them: the file client.properties of Java, the names of Java and librdkafka, JAAS texts.

The command line and the Spark source read them through this module alone. `find_option` looks a name up; `translate`
turns texts by such names into texts by the names of the table of options, which `kafka.config.parse` reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from kafka.config.option import Option
from kafka.config.table import BY_SPELLING
from kafka.errors import KafkaConfigurationError

# Files…

_ESCAPES: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f"}
_KEY: Final = r"((?:\\.|[^\\=: \t\f])*)[ \t\f]*[=:]?[ \t\f]*(.*)"


def parse_properties(text: str) -> dict[str, str]:
    r"""Read a file of properties as `java.util.Properties` does; white space around values is cut, as Kafka does.

    >>> parse_properties("# broker\nbootstrap.servers = b1\\:9092,\\\n  b2\\:9092\nclient.id: m\\u00e9\n")
    {'bootstrap.servers': 'b1:9092,b2:9092', 'client.id': 'mé'}
    """
    found: dict[str, str] = {}
    pending: str | None = None
    for raw in [*re.split(r"\r\n|\r|\n", text), ""]:
        line = raw.lstrip(" \t\f")
        if pending is None and line[:1] in {"", "#", "!"}:
            continue
        line = (pending or "") + line
        pending = None
        if (len(line) - len(line.rstrip("\\"))) % 2:
            pending = line[:-1]
            continue
        parts = re.match(_KEY, line, re.DOTALL)
        assert parts is not None, "a name may be empty"
        found[_unescaped(parts[1])] = _unescaped(parts[2]).strip("".join(map(chr, range(33))))
    return found


def _unescaped(text: str) -> str:
    def replaced(found: re.Match[str]) -> str:
        return chr(int(found[1], 16)) if found[1] else _ESCAPES.get(found[2], found[2])

    plain = re.sub(r"\\(?:u([0-9a-fA-F]{4})|(.?))", replaced, text, flags=re.DOTALL)
    # Java writes a character beyond 16 bits as two.
    return plain.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def parse_conf(text: str) -> dict[str, str]:
    r"""Read a file of librdkafka or kcat: lines ``name=value`` without escapes.

    >>> parse_conf("# kcat\nsasl.password = a\\b:c\n")
    {'sasl.password': 'a\\b:c'}
    """
    lines = [line.strip() for line in text.splitlines()]
    parts = [line.partition("=") for line in lines if line and not line.startswith("#")]
    return {name.strip(): value.strip() for name, _equals, value in parts}


# Names…

_JAAS: Final = "sasl_jaas_config"
_CALLBACKS: Final = ("sasl_client_callback_handler_class", "sasl_login_callback_handler_class")
_ENDPOINT: Final = "ssl_endpoint_identification_algorithm"
_ASSIGNORS: Final = {
    "RangeAssignor": "range",
    "RoundRobinAssignor": "roundrobin",
    "StickyAssignor": "sticky",
    "CooperativeStickyAssignor": "cooperative-sticky",
}

#: Options of Java's clients and of librdkafka without an effect here: most choose classes, the command line and the
#: Spark source have words for what these do. The kind of a key store is found by its first bytes.
_NO_EFFECT: Final = frozenset(
    """
    auto.include.jmx.reporter basic.auth.credentials.source bearer.auth.credentials.source config.providers
    confluent.telemetry context interceptor.classes
    internal.auto.downgrade.txn.commit internal.leave.group.on.close internal.throw.on.fetch.stable.offset.unsupported
    key.deserializer key.serializer metric.reporters metrics.recording.level partitioner.class
    sasl.kerberos.kinit.cmd sasl.kerberos.min.time.before.relogin sasl.kerberos.ticket.renew.jitter
    sasl.kerberos.ticket.renew.window.factor sasl.login.class sasl.login.read.timeout.ms
    sasl.login.refresh.buffer.seconds sasl.login.refresh.min.period.seconds sasl.login.refresh.window.jitter
    sasl.login.retry.backoff.max.ms sasl.login.retry.backoff.ms security.providers share.acknowledgement.mode
    ssl.enabled.protocols ssl.engine.factory.class ssl.keymanager.algorithm ssl.keystore.type ssl.protocol ssl.provider
    ssl.secure.random.implementation ssl.trustmanager.algorithm ssl.truststore.type value.deserializer value.serializer

    api.version.fallback.ms api.version.request api.version.request.timeout.ms batch.num.messages
    broker.address.family broker.address.ttl broker.version.fallback debug enable.auto.offset.store
    enable.partition.eof enable.sparse.connections enable.ssl.certificate.verification fetch.error.backoff.ms
    log.connection.close log.queue log.thread.name log_level message.copy.max.bytes
    queue.buffering.backpressure.threshold queue.buffering.max.kbytes queue.buffering.max.messages
    queued.max.messages.kbytes queued.min.messages
    reconnect.backoff.jitter.ms sasl.kerberos.keytab sasl.kerberos.principal sasl.oauthbearer.method
    socket.blocking.max.ms socket.keepalive.enable socket.max.fails socket.nagle.disable statistics.interval.ms
    topic.metadata.propagation.max.ms topic.metadata.refresh.fast.interval.ms topic.metadata.refresh.sparse
    """.split()  # noqa: SIM905 - read by people
)

#: What librdkafka calls an option, where the table of options does not have that name.
_LIBRDKAFKA: Final = {
    "max.in.flight": "max_in_flight_requests_per_connection",
    "message.timeout.ms": "delivery_timeout_ms",
    "queue.buffering.max.ms": "linger_ms",
    "sasl.mechanisms": "sasl_mechanism",
    "topic.metadata.refresh.interval.ms": "metadata_max_age_ms",
}

#: Options of the client of a schema registry, by the names of Java's and librdkafka's tools -> their names here.
_REGISTRY: Final = {
    "schema.registry.url": "schema_registry_url",
    "schema.registry.basic.auth.user.info": "schema_registry_user_info",
    "basic.auth.user.info": "schema_registry_user_info",
    "schema.registry.bearer.auth.token": "schema_registry_token",
    "bearer.auth.token": "schema_registry_token",
    "schema.registry.ssl.ca.location": "schema_registry_ssl_cafile",
    "schema.registry.ssl.certificate.location": "schema_registry_ssl_certfile",
    "schema.registry.ssl.key.location": "schema_registry_ssl_keyfile",
}


class ForeignOption(NamedTuple):
    """An option that the table of options does not have: of a schema registry, or one that `translate` replaces."""

    name: str
    secret: bool = False
    """Whether its value must not be shown."""


_FOREIGN: Final = {
    option.name: option
    for option in (
        ForeignOption(_JAAS, secret=True),
        ForeignOption(_ENDPOINT),
        *(ForeignOption(name) for name in _CALLBACKS),
        *(ForeignOption(name, name.endswith(("_user_info", "_token"))) for name in _REGISTRY.values()),
    )
}


def find_option(name: str) -> Option | ForeignOption | None:
    """Return the option with a name of ours, of Java or of librdkafka; None for one without an effect here.

    `KeyError` is raised for a name that none of them has.

    >>> find_option("sasl.mechanisms").name, find_option("sasl.jaas.config").name, find_option("key.serializer")
    ('sasl_mechanism', 'sasl_jaas_config', None)
    """
    if name in _NO_EFFECT:
        return None
    foreign = _FOREIGN.get(_REGISTRY.get(name, name.replace(".", "_")))
    return foreign or BY_SPELLING[_LIBRDKAFKA.get(name, name)]


def nearest_name(name: str) -> str | None:
    """Return the name that was probably meant, with dots if this one has dots.

    >>> nearest_name("sasl.pasword")
    'sasl.password'
    """
    from difflib import get_close_matches

    known = (*BY_SPELLING, *_LIBRDKAFKA, *_REGISTRY, *_NO_EFFECT, "sasl.jaas.config")
    near = get_close_matches(name, [one for one in known if ("." in one) == ("." in name)], n=1, cutoff=0.7)
    return near[0] if near else None


def translate(given: Mapping[str, str]) -> dict[str, str]:
    """Return options by the names of the table of options, from names that `find_option` knows.

    A user and a password that are given apart override the ones in a JAAS text.

    >>> translate({"sasl.jaas.config": 'x.PlainLoginModule required username="ada" password="hush";', "acks": "all"})
    {'sasl_plain_username': 'ada', 'sasl_plain_password': 'hush', 'acks': 'all'}
    """
    replaced: dict[str, str] = {}
    named: dict[str, str] = {}
    for name, text in given.items():
        option = find_option(name)
        if option is None:
            continue
        change = _REPLACED.get(option.name)
        if change is None:
            named[option.name] = text
        else:
            replaced |= change(text)
    found = {**replaced, **named}
    if replaced.get("sasl_mechanism") == "AWS_MSK_IAM":  # for Java it is OAUTHBEARER with a class of AWS
        found["sasl_mechanism"] = "AWS_MSK_IAM"
    return found


def _host_check(text: str) -> dict[str, str]:
    # Java has an empty text for no check, librdkafka the word none.
    return {"ssl_check_hostname": "false" if text.strip().lower() in {"", "none"} else "true"}


def _callback(text: str) -> dict[str, str]:
    return {"sasl_mechanism": "AWS_MSK_IAM"} if text.rpartition(".")[2].startswith("IAM") else {}


def _assignors(text: str) -> dict[str, str]:
    """Return the strategies by name; a class that only Java has is left out."""
    words = [word.strip() for word in text.split(",") if word.strip()]
    names = [_ASSIGNORS.get(word.rpartition(".")[2], "" if "." in word else word) for word in words]
    known = ",".join(name for name in names if name)
    return {"partition_assignment_strategy": known} if known else {}


def _jaas(text: str) -> dict[str, str]:
    module, options = parse_jaas(text)
    if module in {"PlainLoginModule", "ScramLoginModule"}:
        if not {"username", "password"} <= set(options):
            raise KafkaConfigurationError(f"sasl.jaas.config: {module} needs username and password")
        token = {"sasl_scram_delegation_token": "true"} if options.get("tokenauth", "").lower() == "true" else {}
        return {"sasl_plain_username": options["username"], "sasl_plain_password": options["password"], **token}
    if module == "OAuthBearerLoginModule":
        found = {_OAUTH[name]: value for name, value in options.items() if name in _OAUTH}
        extensions = {name[10:]: value for name, value in options.items() if name.startswith("extension_")}
        joined = ",".join(f"{name}={value}" for name, value in extensions.items())
        return {**found, "sasl_oauthbearer_extensions": joined} if joined else found
    if module == "IAMLoginModule":
        return {"sasl_mechanism": "AWS_MSK_IAM"}
    if module == "Krb5LoginModule":
        # Tickets come from the system's cache (kinit), where GSSAPI looks; the keytab's options are Java's.
        service = options.get("serviceName")
        # Java's default mechanism is GSSAPI.
        return {"sasl_mechanism": "GSSAPI", **({"sasl_kerberos_service_name": service} if service else {})}
    raise KafkaConfigurationError(
        f"sasl.jaas.config: there is nothing here for {module}; PlainLoginModule, ScramLoginModule, "
        "OAuthBearerLoginModule, Krb5LoginModule and IAMLoginModule are known"
    )


_OAUTH: Final = {
    "clientId": "sasl_oauthbearer_client_id",
    "clientSecret": "sasl_oauthbearer_client_secret",
    "scope": "sasl_oauthbearer_scope",
    "ssl.truststore.location": "sasl_oauthbearer_cafile",
}

#: Options whose text stands for others.
_REPLACED: Final[dict[str, Callable[[str], dict[str, str]]]] = {
    _JAAS: _jaas,
    _ENDPOINT: _host_check,
    **dict.fromkeys(_CALLBACKS, _callback),
    "partition_assignment_strategy": _assignors,
}


# JAAS…

# Compiled when they are used: few programs read such texts, and all import this module.
_ENTRY: Final = r"\s*([\w.$]+)\s+(required|requisite|sufficient|optional)\b(.*?);?\s*"
_OPTION: Final = r"""\s*([\w.\-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))"""


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
    entry = re.fullmatch(_ENTRY, text, re.DOTALL | re.IGNORECASE)
    if entry is None:
        raise KafkaConfigurationError(
            "sasl.jaas.config must be the class of a login module, 'required', its options and a semicolon: "
            'org.apache.kafka.common.security.plain.PlainLoginModule required username="..." password="...";'
        )
    options: dict[str, str] = {}
    option = re.compile(_OPTION)
    at = 0
    rest = entry[3].rstrip().rstrip(";").rstrip()
    while at < len(rest):
        found = option.match(rest, at)
        if found is None:
            raise KafkaConfigurationError(
                f"sasl.jaas.config: what stands after the option {len(options)} of {entry[1].rpartition('.')[2]} "
                'is not of the form name="value"'
            )
        quoted = found[2] if found[2] is not None else found[3]
        options[found[1]] = found[4] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        at = found.end()
    return JaasEntry(entry[1].rpartition(".")[2], options)
