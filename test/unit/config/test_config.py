"""kafka.config: one table; unknown names, wrong values and contradictions are refused in words."""

import gc
import importlib.util
import math
import pickle
import random
import re
import ssl
import warnings
from pathlib import Path

import pytest

import kafka
from kafka.client_async import KafkaClient
from kafka.cluster import ClusterMetadata
from kafka.codec import codec_id, compressor
from kafka.config import (
    BY_SPELLING,
    CLASSES,
    OPTIONS,
    Config,
    accept_mechanism,
    defaults,
    parse,
    parse_servers,
    render_rst,
    resolve,
)
from kafka.config.checks import duration_ms
from kafka.config.librdkafka_options import advice_for, render_librdkafka_rst
from kafka.config.option import Lazy
from kafka.conn import BrokerConnection
from kafka.consumer.subscription_state import SubscriptionState
from kafka.coordinator.base import BaseCoordinator
from kafka.coordinator.consumer import ConsumerCoordinator
from kafka.coordinator.heartbeat import Heartbeat
from kafka.errors import IllegalArgumentError, KafkaConfigurationError
from kafka.net.environment import Environment
from kafka.net.settings import ConnectionContext
from kafka.partitioner import DefaultPartitioner

ROOT = Path(__file__).parents[3]

# Keywords that constructors took in 1.3.4, 2.0.2, 2.3.0 and 3.0.12.
_SECURITY = """security_protocol ssl_context ssl_check_hostname ssl_cafile ssl_certfile ssl_keyfile ssl_crlfile
    ssl_password sasl_mechanism sasl_plain_username sasl_plain_password sasl_kerberos_name sasl_kerberos_service_name
    sasl_kerberos_domain_name sasl_oauth_token_provider"""
_NETWORK = f"""client_id request_timeout_ms reconnect_backoff_ms reconnect_backoff_max_ms
    max_in_flight_requests_per_connection receive_buffer_bytes send_buffer_bytes socket_options sock_chunk_bytes
    sock_chunk_buffer_count api_version api_version_auto_timeout_ms selector socks5_proxy proxy_url
    receive_message_max_bytes {_SECURITY}"""
_FACE = f"""bootstrap_servers retry_backoff_ms metadata_max_age_ms connections_max_idle_ms metric_reporters
    metrics_num_samples metrics_sample_window_ms kafka_client bootstrap_timeout_ms client_dns_lookup {_NETWORK}"""
HISTORIC = {
    "producer": f"""key_serializer value_serializer acks bootstrap_topics_filter compression_type retries batch_size
        linger_ms partitioner buffer_memory max_block_ms max_request_size enable_idempotence transactional_id
        transaction_timeout_ms delivery_timeout_ms allow_auto_create_topics metrics_enabled ssl_ciphers
        reconnect_backoff_max {_FACE}""",
    "consumer": f"""group_id group_instance_id key_deserializer value_deserializer fetch_max_wait_ms fetch_min_bytes
        fetch_max_bytes max_partition_fetch_bytes auto_offset_reset enable_auto_commit auto_commit_interval_ms
        default_offset_commit_callback check_crcs isolation_level allow_auto_create_topics
        partition_assignment_strategy max_poll_records max_poll_interval_ms session_timeout_ms heartbeat_interval_ms
        consumer_timeout_ms skip_double_compressed_messages legacy_iterator enable_incremental_fetch_sessions
        exclude_internal_topics metrics_enabled metric_group_prefix client_rack ssl_ciphers {_FACE}""",
    "admin": f"default_api_timeout_ms {_FACE}",
    "client": f"""bootstrap_servers bootstrap_topics_filter wakeup_timeout_ms connections_max_idle_ms retry_backoff_ms
        metadata_max_age_ms allow_auto_create_topics metrics metric_group_prefix ssl_ciphers {_NETWORK}""",
    "connection": f"""node_id state_change_callback metrics metric_group_prefix ssl_ciphers client_software_name
        client_software_version {_NETWORK}""",
}

# The same of classes that take a part of the options, which their DEFAULT_CONFIG has.
HISTORIC_PARTS = {
    ClusterMetadata: """retry_backoff_ms metadata_max_age_ms bootstrap_servers allow_auto_create_topics
        client_dns_lookup""",
    BaseCoordinator: """group_id group_instance_id session_timeout_ms heartbeat_interval_ms max_poll_interval_ms
        retry_backoff_ms request_timeout_ms api_version metric_group_prefix""",
    ConsumerCoordinator: """group_id enable_auto_commit auto_commit_interval_ms default_offset_commit_callback
        assignors session_timeout_ms heartbeat_interval_ms retry_backoff_ms api_version exclude_internal_topics
        metric_group_prefix""",
    Heartbeat: "group_id heartbeat_interval_ms session_timeout_ms max_poll_interval_ms retry_backoff_ms",
}

# One acceptable value other than the default for what has no default that is a value.
SAMPLES = {
    "sasl_mechanism": None,
    "api_version": "2.8",
    "proxy_url": "socks5://p:1080",
    "ssl_certfile": "c.pem",
}


def refused(kind, option, **given):
    with pytest.raises(KafkaConfigurationError) as caught:
        resolve(kind, given)
    assert caught.value.option == option
    return str(caught.value)


@pytest.mark.parametrize("kind", HISTORIC)
def test_every_historic_keyword_is_taken(kind):
    for name in HISTORIC[kind].split():
        assert kind in BY_SPELLING[name].kinds, name


class TestEveryOption:
    def test_is_well_formed(self):
        for option in OPTIONS.values():
            assert option.doc.endswith(".")
            assert option.kinds <= set(CLASSES)
            assert option.check.accepts
            assert set(option.defaults) <= option.kinds

    def test_its_defaults_are_acceptable(self):
        for option in OPTIONS.values():
            for kind in option.kinds:
                default = option.defaults.get(kind, option.default)
                if not isinstance(default, Lazy):
                    checked = option.check(default)
                    assert option.check(checked) == checked or option.name == "bootstrap_servers"

    def test_it_refuses_what_is_absurd_and_names_itself(self):
        for option in OPTIONS.values():
            kind = min(option.kinds)
            if option.name in {"sasl_kerberos_name", "metric_reporters"}:
                continue
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                absurd = {1.5j: None} if "dict" not in option.check.accepts else 1.5j
                with pytest.raises(KafkaConfigurationError) as caught:
                    resolve(kind, {option.name: absurd})
            assert caught.value.option == option.name
            assert str(caught.value).startswith(f"{option.name} of {CLASSES[kind]} must be ")
            assert option.check.accepts in str(caught.value)

    def test_a_secret_is_never_shown(self):
        for option in OPTIONS.values():
            if not option.secret:
                assert not any(word in option.name for word in ("password", "secret", "session_token"))
                continue
            for value in ("socks5://u:hunter2@p", "hunter2"):
                try:
                    config = Config("admin", {option.name: option.check(value)}, frozenset([option.name]))
                except ValueError:
                    continue
                assert "hunter2" not in repr(config)
                assert "***" in repr(config)
            assert "hunter2" not in refused("admin", option.name, **{option.name: ["hunter2"]})


def test_no_spelling_belongs_to_two_options():
    spellings = [spelling for option in OPTIONS.values() for spelling in option.names]
    assert len(spellings) == len(set(spellings))


def test_an_unknown_option_names_the_nearest_known_one():
    assert refused("producer", "lingr_ms", lingr_ms=5) == (
        "KafkaProducer has no option 'lingr_ms': did you mean 'linger_ms'?"
    )


def test_an_option_of_another_class_names_that_class():
    assert refused("producer", "group_id", group_id="g") == (
        "KafkaProducer has no option 'group_id': it is an option of KafkaConsumer and KafkaShareConsumer"
    )
    assert refused("admin", "fetch_min_byte", fetch_min_byte=1).endswith(
        "did you mean 'fetch_min_bytes'? It is an option of KafkaConsumer and KafkaShareConsumer"
    )


def test_each_class_that_messages_and_the_page_name_can_be_imported():
    assert not [name for name in CLASSES.values() if not hasattr(kafka, name)]
    page = render_rst()
    takers = {taker for line in re.findall("taken by: ([a-z, ]+)", page) for taker in line.rstrip().split(", ")}
    assert takers == set(CLASSES)


@pytest.mark.parametrize("kind", HISTORIC_PARTS, ids=lambda kind: kind.__name__)
def test_classes_for_parts_of_a_client_take_their_options_alone(kind):
    assert set(HISTORIC_PARTS[kind].split()) <= set(kind.DEFAULT_CONFIG)
    arguments = {ClusterMetadata: (), Heartbeat: ()}.get(kind)
    if arguments is None:
        client = KafkaClient(bootstrap=False)
        arguments = (client,) if kind is BaseCoordinator else (client, SubscriptionState())
    made = kind(*arguments, **kind.DEFAULT_CONFIG)
    try:
        assert {name: made.config[name] for name in ("retry_backoff_ms",)} == {"retry_backoff_ms": 100}
        for wrong in ({"acks": 1}, {"fetch_min_bytes": 1}, {"no_such_option": 1}):
            with pytest.raises((TypeError, KafkaConfigurationError), match=next(iter(wrong))):
                kind(*arguments, **wrong)
    finally:
        if arguments:
            made.close(timeout_ms=0)
            arguments[0].close()


def test_a_coordinator_by_hand_has_the_session_of_the_manuals_unless_brokers_decide_it():
    client = KafkaClient(bootstrap=False)
    for options in ({}, {"group_protocol": "consumer"}, {"group_instance_id": "i"}):
        made = ConsumerCoordinator(client, SubscriptionState(), **options)
        assert made.config["session_timeout_ms"] == 30000
        made.close(timeout_ms=0)
    client.close()


def test_a_default_that_a_subclass_changes_holds_for_it():
    class Eager(ClusterMetadata):
        DEFAULT_CONFIG = {**ClusterMetadata.DEFAULT_CONFIG, "metadata_max_age_ms": 5}

    assert (Eager().config["metadata_max_age_ms"], Eager(metadata_max_age_ms=6).config["metadata_max_age_ms"]) == (5, 6)


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("producer", "message.timeout.ms", "delivery_timeout_ms"),
        ("producer", "queue.buffering.max.kbytes", "buffer_memory, in bytes"),
        ("consumer", "enable.ssl.certificate.verification", "verify_mode=ssl.CERT_NONE"),
        ("admin", "sasl.mechanisms", "sasl_mechanism"),
        ("consumer", "enable_partition_eof", r"position\(partition\)"),
        ("producer", "socket.timeout.ms", "which librdkafka has; here it is: request_timeout_ms"),
    ],
)
def test_options_of_librdkafka_are_refused_with_what_to_use_here(kind, name, said):
    with pytest.raises(KafkaConfigurationError, match=said):
        resolve(kind, {name: 1})


def test_options_named_in_place_of_librdkafka_s_exist():
    text = render_librdkafka_rst()
    assert text == (ROOT / "docs" / "reference" / "librdkafka-options.inc").read_text(encoding="utf-8")
    rows = re.findall(r"^``(\S+)`` +(.*)$", text, re.MULTILINE)
    assert len(rows) >= 50
    for name, said in rows:
        assert advice_for(name)
        for option in re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", said):
            assert option in OPTIONS or option in {"add_callback", "add_errback", "end_offsets", "verify_mode"}, option
        for kind in ("producer", "consumer", "admin"):
            # One of them is an option of old releases of kafka-python too, which warns.
            with pytest.raises((KafkaConfigurationError, DeprecationWarning)) as caught:
                resolve(kind, {name: 1})
            shown = str(caught.value)
            assert said.strip("`") in shown or "commit() may be called" in shown, name
            assert name not in BY_SPELLING or kind not in BY_SPELLING[name].kinds or BY_SPELLING[name].obsolete, name


def test_a_partitioner_of_librdkafka_is_explained():
    with pytest.raises(KafkaConfigurationError, match="murmur2_random"):
        resolve("producer", {"partitioner": "consistent_random"})


def test_an_option_like_no_other_is_refused_without_a_guess():
    assert refused("consumer", "frobnicate", frobnicate=1) == "KafkaConsumer has no option 'frobnicate'"


def test_a_wrong_value_says_what_is_accepted():
    assert refused("consumer", "max_poll_records", max_poll_records=0) == (
        "max_poll_records of KafkaConsumer must be an integer of at least 1, not 0"
    )
    assert "one of 'gzip', 'snappy', 'lz4', 'zstd' or None, not 'zip'" in refused(
        "producer", "compression_type", compression_type="zip"
    )


@pytest.mark.parametrize("value", [True, "1", 1.5, float("nan"), math.inf, None, -1])
def test_an_integer_is_an_integer(value):
    refused("consumer", "fetch_min_bytes", fetch_min_bytes=value)


def test_integers_may_be_written_as_floats():
    assert resolve("consumer", {"fetch_min_bytes": 1e3})["fetch_min_bytes"] == 1000


@pytest.mark.parametrize("value", [True, "5", float("nan"), None, -0.1])
def test_a_time_is_a_number(value):
    refused("producer", "linger_ms", linger_ms=value)


def test_times_may_be_fractions_or_infinite():
    config = resolve("producer", {"linger_ms": 0.5, "max_block_ms": math.inf})
    assert config.seconds("linger_ms") == 0.0005
    assert config.seconds("max_block_ms") == math.inf


@pytest.mark.parametrize(
    ("option", "value", "accepted"),
    [
        ("request_timeout_ms", 2**31, "a number from 1 to 2147483647"),  # goes into requests, as 32 bits
        ("request_timeout_ms", math.inf, "a number from 1 to 2147483647"),
        ("metadata_max_age_ms", 2**63, "a number from 0 to 1000000000000 or inf"),
        ("metadata_max_age_ms", 2**2000, "a number from 0 to 1000000000000 or inf"),
        ("session_timeout_ms", 2**31, "a number from 1 to 2147483647"),
        ("fetch_max_wait_ms", 2**31, "an integer from 0 to 2147483647"),
        ("sock_chunk_bytes", 2**63, "an integer from 64 to 268435456"),
        ("receive_buffer_bytes", 2**31, "an integer from 0 to 2147483647 or None"),
        ("client_id", "x" * 32768, "a str, of at most 32767 bytes in UTF-8 or None"),
        ("client_id", "tenant-\udcff", "a str, of at most 32767 bytes in UTF-8 or None"),
        ("group_id", "g\ud800", "a str, of at most 32767 bytes in UTF-8 or None"),
        ("sasl_plain_username", "\udcff", "a str or None"),
        ("client_software_name", "my app", "letters, digits, '-' and '.'"),
        ("client_software_version", "1.0\n", "letters, digits, '-' and '.'"),
        ("metric_reporters", int, "a list of classes or instances of AbstractMetricsReporter"),
        ("metric_reporters", ["a.b"], "a list of classes or instances of AbstractMetricsReporter"),
        ("socket_options", [(1, 2, "x")], "a list of (level, option, value)"),
        ("socket_options", [(1, 2, 2**31)], "a list of (level, option, value)"),
        ("socket_options", [(1, None, 1)], "a list of (level, option, value)"),
    ],
)
def test_what_would_fail_later_in_other_words_is_refused_at_once(option, value, accepted):
    with pytest.raises(KafkaConfigurationError) as caught:
        resolve("consumer", {option: value})
    assert str(caught.value).startswith(f"{option} of KafkaConsumer must be {accepted}")
    assert caught.value.option == option


@pytest.mark.parametrize("value", [b"x", bytearray(4), 1, -1])
def test_socket_options_as_setsockopt_takes_them(value):
    assert resolve("client", {"socket_options": [(6, 1, value)]})["socket_options"] == ((6, 1, value),)


@pytest.mark.parametrize("make", [KafkaClient, lambda **options: BrokerConnection("b", 9092, **options)])
@pytest.mark.parametrize("selector", [int, object, len, lambda: 5])
def test_a_selector_that_is_not_one_is_refused(make, selector):
    with pytest.raises(KafkaConfigurationError, match="selector must be a class as in the module selectors, not") as e:
        make(selector=selector)
    assert e.value.option == "selector"


def test_what_programs_of_java_pass_for_sasl_is_named():
    with pytest.raises(KafkaConfigurationError, match=r"no option 'sasl\.jaas\.config': use sasl_plain_username and"):
        resolve("producer", {"sasl.jaas.config": "Module required;"})


def test_a_selector_of_a_second_import_is_one():
    """Eventlet imports `selectors` again."""
    specification = importlib.util.find_spec("selectors")
    again = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(again)
    loop = Environment(selector=again.DefaultSelector).make_loop()
    loop.close()


@pytest.mark.parametrize("kind", [KafkaClient, BrokerConnection])
def test_a_client_whose_constructor_failed_half_way_is_collected_without_a_word(kind, monkeypatch):
    """Warnings and errors of finalizers fail the test."""
    monkeypatch.setattr(ConnectionContext, "__init__", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        kind() if kind is KafkaClient else kind("b", 9092)
    gc.collect()


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("bootstrap_servers", "me:PASSWORD@b1"),
        ("bootstrap_servers", ["b1", "SASL_SSL://me:PASSWORD@b2:9092", "b3:x"]),
        ("bootstrap_servers", "b1,me:PA,SS@b2:9092"),
        ("client_dns_lookup", "https://me:PASSWORD@dns?key=PASSWORD"),
    ],
)
def test_a_password_in_an_address_is_not_repeated(option, value):
    with pytest.raises(KafkaConfigurationError) as caught:
        resolve("client", {option: value})
    assert "me:***@" in str(caught.value) or "b1:***@" in str(caught.value)
    assert not {"PASSWORD", "PA,SS"} & set(re.split(r"[@:?=/]", str(caught.value)))


def test_an_option_that_is_secret_is_not_shown_at_all():
    with pytest.raises(KafkaConfigurationError, match=r"not '\*\*\*'"):
        resolve("client", {"proxy_url": "ftp://me:PASSWORD@proxy"})


def test_the_repr_of_a_configuration_masks_passwords_in_addresses():
    config = resolve("client", {"sasl_oauthbearer_token_endpoint_url": "https://me:PASSWORD@login/token"})
    assert "https://me:***@login/token" in repr(config)


def test_java_names_and_aliases_are_taken():
    config = resolve(
        "consumer",
        {"bootstrap.servers": "b:1", "fetch.wait.max.ms": 7, "client.rack": "r", "sasl.username": "u"},
    )
    assert (config["fetch_max_wait_ms"], config["client_rack"], config["sasl_plain_username"]) == (7, "r", "u")
    assert config["bootstrap_servers"] == ["b:1"]


def test_an_option_given_twice_is_refused():
    with pytest.raises(KafkaConfigurationError, match="given twice"):
        resolve("producer", {"linger_ms": 1, "linger.ms": 2})


def test_an_option_without_effect_warns_and_says_why():
    with pytest.warns(DeprecationWarning, match="legacy_iterator no longer has an effect: there is one iterator"):
        resolve("consumer", {"legacy_iterator": False})


def test_defaults_are_safe():
    config = resolve("producer", {})
    assert config["acks"] == -1
    assert config["enable_idempotence"] is True
    assert config["linger_ms"] == 5
    assert config["delivery_timeout_ms"] == 120000
    assert config["retries"] == math.inf
    assert config["max_in_flight_requests_per_connection"] == 5
    assert not config.given


def test_default_config_of_the_manuals():
    assert Heartbeat.DEFAULT_CONFIG["session_timeout_ms"] == 30000
    assert BaseCoordinator.DEFAULT_CONFIG["group_id"] == "kafka-python-default-group"
    assert OPTIONS["group_id"].default_for("consumer") is None
    assert defaults("client")["request_timeout_ms"] == defaults("connection")["request_timeout_ms"] == 30000


def test_a_lazy_default_is_made_once():
    config = resolve("producer", {})
    assert isinstance(config["partitioner"], DefaultPartitioner)
    assert config["partitioner"] is config["partitioner"]
    assert config["partitioner"] is not resolve("producer", {})["partitioner"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("b1", [("b1", 9092)]),
        ("b1:9093", [("b1", 9093)]),
        (" b1 , b2:9093,", [("b1", 9092), ("b2", 9093)]),
        (["b1", "b2:1,b3:2"], [("b1", 9092), ("b2", 1), ("b3", 2)]),
        (("b1", "b2"), [("b1", 9092), ("b2", 9092)]),
        ([("b1", 9093), ["b2", 9094]], [("b1", 9093), ("b2", 9094)]),
        (("b1", 9093), [("b1", 9093)]),
        ("[::1]:9093", [("::1", 9093)]),
        ("[::1]", [("::1", 9092)]),
        ("fe80::1", [("fe80::1", 9092)]),
        ("SASL_SSL://b1:9093", [("b1", 9093)]),
        (["b1:1", "b1:1"], [("b1", 1)]),
        ({"b1:1"}, [("b1", 1)]),
    ],
)
def test_forms_of_bootstrap_servers(given, expected):
    assert [tuple(server) for server in parse_servers(given)] == expected


@pytest.mark.parametrize("given", ["", [], "b1:x", "b1:0", "b1:70000", "[::1", "[::1]x", ":9092", 5, [5], None, "a b"])
def test_bootstrap_servers_that_make_no_sense(given):
    refused("producer", "bootstrap_servers", bootstrap_servers=given)


def test_a_server_prints_as_people_write_it():
    assert [str(server) for server in parse_servers("b1,[::1]:5")] == ["b1:9092", "[::1]:5"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [(None, None), ("auto", None), ((2, 8), (2, 8)), ([0, 10, 2], (0, 10, 2)), ("0.8.2.2", (0, 8, 2, 2))],
)
def test_api_version(given, expected):
    assert resolve("client", {"api_version": given})["api_version"] == expected


@pytest.mark.parametrize("given", ["2", "x.y", (2,), 2.8, (2, "b")])
def test_api_version_that_makes_no_sense(given):
    refused("client", "api_version", api_version=given)


@pytest.mark.parametrize(("given", "expected"), [("ALL", -1), (-1, -1), ("-1", -1), (0, 0), (1, 1), ("1", 1)])
def test_acks(given, expected):
    assert resolve("producer", {"acks": given})["acks"] == expected


@pytest.mark.parametrize("given", [True, 2, "quorum", None])
def test_acks_that_make_no_sense(given):
    refused("producer", "acks", acks=given)


@pytest.mark.parametrize(
    ("given", "expected"),
    [("smallest", "earliest"), ("LARGEST", "latest"), ("none", "none"), ("by_duration:PT1H", "by_duration:PT1H")],
)
def test_auto_offset_reset(given, expected):
    assert resolve("consumer", {"auto_offset_reset": given})["auto_offset_reset"] == expected


def test_auto_offset_reset_that_makes_no_sense():
    for value in ("newest", "by_duration:1h", "by_duration:", f"by_duration:P{'9' * 400}D", None):
        refused("consumer", "auto_offset_reset", auto_offset_reset=value)


@pytest.mark.parametrize(
    ("text", "expected"), [("PT1H", 3600000), ("P1D", 86400000), ("PT0.25S", 250), ("p1dt1m", 86460000)]
)
def test_durations(text, expected):
    assert duration_ms(text) == expected


# What options ask of each other


def test_defaults_give_way_to_what_contradicts_them():
    assert resolve("producer", {"acks": 1})["enable_idempotence"] is False
    assert resolve("producer", {"retries": 0})["enable_idempotence"] is False
    assert resolve("producer", {"max_in_flight_requests_per_connection": 9})["enable_idempotence"] is False
    assert resolve("producer", {"request_timeout_ms": 500000})["delivery_timeout_ms"] == 500005
    assert resolve("admin", {"request_timeout_ms": 70000})["default_api_timeout_ms"] == 70000
    assert resolve("admin", {"reconnect_backoff_ms": 40000})["reconnect_backoff_max_ms"] == 40000
    assert resolve("consumer", {"session_timeout_ms": 3000})["heartbeat_interval_ms"] == 1000
    assert resolve("consumer", {"request_timeout_ms": 400})["fetch_max_wait_ms"] == 200
    assert resolve("consumer", {"fetch_max_bytes": 2**30})["receive_message_max_bytes"] == 2**30 + 512
    assert resolve("consumer", {"consumer_timeout_ms": -1})["consumer_timeout_ms"] == math.inf


@pytest.mark.parametrize(
    ("kind", "option", "given"),
    [
        ("producer", "acks", {"enable_idempotence": True, "acks": 1}),
        ("producer", "acks", {"transactional_id": "t", "acks": 1}),
        ("producer", "enable_idempotence", {"transactional_id": "t", "enable_idempotence": False}),
        ("producer", "retries", {"enable_idempotence": True, "retries": 0}),
        (
            "producer",
            "max_in_flight_requests_per_connection",
            {"enable_idempotence": True, "max_in_flight_requests_per_connection": 6},
        ),
        ("producer", "delivery_timeout_ms", {"delivery_timeout_ms": 1000}),
        ("producer", "compression_level", {"compression_type": "snappy", "compression_level": 1}),
        ("producer", "compression_level", {"compression_type": "gzip", "compression_level": 10}),
        ("admin", "default_api_timeout_ms", {"default_api_timeout_ms": 1000}),
        ("consumer", "heartbeat_interval_ms", {"heartbeat_interval_ms": 50000}),
        ("consumer", "fetch_max_wait_ms", {"fetch_max_wait_ms": 30000}),
        ("consumer", "group_instance_id", {"group_instance_id": "i"}),
        ("consumer", "session_timeout_ms", {"group_protocol": "consumer", "session_timeout_ms": 10000}),
        ("consumer", "group_remote_assignor", {"group_remote_assignor": "uniform"}),
        ("client", "sasl_mechanism", {"sasl_mechanism": "PLAIN"}),
        ("client", "sasl_mechanism", {"security_protocol": "SASL_SSL"}),
        ("client", "sasl_mechanism", {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLIAN"}),
        ("client", "sasl_plain_username", {"security_protocol": "SASL_SSL", "sasl_mechanism": "PLAIN"}),
        (
            "client",
            "sasl_plain_password",
            {"security_protocol": "SASL_SSL", "sasl_mechanism": "SCRAM-SHA-512", "sasl_plain_username": "u"},
        ),
        ("client", "sasl_oauth_token_provider", {"security_protocol": "SASL_SSL", "sasl_mechanism": "OAUTHBEARER"}),
        (
            "client",
            "sasl_oauthbearer_client_id",
            {
                "security_protocol": "SASL_SSL",
                "sasl_mechanism": "OAUTHBEARER",
                "sasl_oauthbearer_token_endpoint_url": "https://issuer/token",
            },
        ),
        ("client", "ssl_truststore_certificates", {"ssl_cafile": "a", "ssl_truststore_certificates": "b"}),
        ("client", "ssl_certfile", {"ssl_keyfile": "k"}),
        ("client", "ssl_cafile", {"ssl_context": ssl.create_default_context(), "ssl_cafile": "ca.pem"}),
        (
            "client",
            "ssl_check_hostname",
            {"ssl_context": ssl.create_default_context(), "ssl_check_hostname": False},
        ),
        ("client", "socks5_proxy", {"proxy_url": "socks5://p:1", "socks5_proxy": "socks5://p:1"}),
        ("client", "proxy_url", {"proxy_url": "ftp://p:1"}),
        ("client", "sasl_login_refresh_window_factor", {"sasl_login_refresh_window_factor": 1.1}),
        ("client", "sasl_login_refresh_window_factor", {"sasl_login_refresh_window_factor": math.inf}),
    ],
)
def test_contradictions_are_refused(kind, option, given):
    assert option in refused(kind, option, **given)


def test_an_option_that_is_too_low_for_the_default_of_another_says_which_to_lower():
    message = refused("producer", "delivery_timeout_ms", delivery_timeout_ms=30_000)
    assert message == (
        "delivery_timeout_ms must be at least linger_ms (5) plus request_timeout_ms (30000), not 30000: "
        "lower request_timeout_ms too"
    )
    message = refused("consumer", "receive_message_max_bytes", receive_message_max_bytes=2000)
    assert message == (
        "receive_message_max_bytes must be at least fetch_max_bytes (52428800) plus 512, not 2000: "
        "lower fetch_max_bytes too"
    )


@pytest.mark.parametrize(
    ("codec", "least", "most"), [("gzip", 1, 9), ("gzip", -1, -1), ("lz4", 1, 17), ("zstd", -131072, 22)]
)
def test_the_levels_of_the_options_match_the_codecs(codec, least, most):
    for level in (least, most):
        resolve("producer", {"compression_type": codec, "compression_level": level})
        compressor(codec_id(codec), level)(b"records" * 100)
    for level in {least - 1, most + 1} - {-1, *range(1, 10)}:
        with pytest.raises(IllegalArgumentError) as of_codec:
            compressor(codec_id(codec), level)
        assert str(of_codec.value.args[0]) in refused(
            "producer", "compression_level", compression_type=codec, compression_level=level
        )


def test_a_context_may_say_again_whether_names_are_checked():
    resolve("client", {"ssl_context": ssl.create_default_context(), "ssl_check_hostname": True, "ssl_cafile": None})


def test_what_belongs_together_is_accepted():
    resolve("producer", {"compression_type": "zstd", "compression_level": -5})
    resolve("consumer", {"group_protocol": "consumer", "group_id": "g", "group_remote_assignor": "uniform"})
    resolve("consumer", {"group_id": "g", "group_instance_id": "i"})
    config = resolve(
        "client",
        {"security_protocol": "sasl_ssl", "sasl_mechanism": "plain", "sasl_plain_username": "u", "sasl_password": "p"},
    )
    assert (config["security_protocol"], config["sasl_mechanism"]) == ("SASL_SSL", "PLAIN")


def test_a_registered_mechanism_is_accepted():
    accept_mechanism("X-TEST")
    config = resolve("client", {"security_protocol": "SASL_SSL", "sasl_mechanism": "X-TEST"})
    assert config["sasl_mechanism"] == "X-TEST"


# The configuration as an object


def test_a_configuration_behaves_as_a_mapping():
    config = resolve("admin", {})
    assert len(config) == len(list(config)) == len(dict(config))
    assert dict(pickle.loads(pickle.dumps(config))) == dict(config)
    config["retry_backoff_ms"] = 1
    assert config["retry_backoff_ms"] == 1
    assert config.given == {"retry_backoff_ms"}
    with pytest.raises(KafkaConfigurationError, match="retry_backoff_ms"):
        config["retry_backoff_ms"] = "soon"
    with pytest.raises(TypeError, match="cannot be removed"):
        del config["retry_backoff_ms"]


def test_the_spellings_of_older_releases_are_in_the_defaults_and_can_be_read():
    assert defaults("client")["api_version_auto_timeout_ms"] is None
    assert resolve("producer", {"api_version_auto_timeout_ms": 7000})["api_version_auto_timeout_ms"] == 7000
    changed = {**defaults("producer"), "api_version_auto_timeout_ms": 7000}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # DEFAULT_CONFIG has options without effect, too
        assert resolve("producer", changed)["bootstrap_timeout_ms"] == 7000
        assert resolve("producer", dict(reversed(changed.items())))["bootstrap_timeout_ms"] == 7000
    with pytest.raises(KafkaConfigurationError, match="given twice"):
        resolve("producer", {"bootstrap_timeout_ms": 1, "api_version_auto_timeout_ms": 2})


def test_texts_become_values():
    found = parse(
        "consumer",
        {
            "fetch.min.bytes": "7",
            "enable_auto_commit": "FALSE",
            "bootstrap_servers": "a:1,b",
            "consumer_timeout_ms": "inf",
            "api_version": "2.8",
            "auto_offset_reset": "earliest",
            "receive_buffer_bytes": "",
            "isolation_level": "1",
        },
    )
    assert resolve("consumer", found)["isolation_level"] == "read_committed"
    assert (found["fetch_min_bytes"], found["enable_auto_commit"], found["consumer_timeout_ms"]) == (7, False, math.inf)
    assert found["receive_buffer_bytes"] is None
    assert parse("producer", {"acks": "-1", "compression.type": "none", "retries": "3", "linger_ms": "2.5"}) == {
        "acks": -1,
        "compression_type": None,
        "retries": 3,
        "linger_ms": 2.5,
    }


@pytest.mark.parametrize(
    ("name", "text"),
    [("fetch_min_bytes", "many"), ("check_crcs", "yes"), ("socket_options", "1,2,3"), ("metadata", "1")],
)
def test_texts_that_make_no_sense(name, text):
    with pytest.raises(KafkaConfigurationError):
        parse("consumer", {name: text})


def test_a_random_misspelling_finds_its_way_back():
    rng = random.Random(5)
    names = [name for name, option in OPTIONS.items() if "consumer" in option.kinds and len(name) > 12]
    hits = 0
    for name in names:
        at = rng.randrange(1, len(name) - 1)
        wrong = name[:at] + name[at + 1 :]
        if wrong in BY_SPELLING:
            continue
        hits += f"did you mean {name!r}" in refused("consumer", wrong, **{wrong: 1})
    assert hits > 0.9 * len(names)


def test_the_docs_show_the_table_as_it_is():
    path = ROOT / "docs" / "reference" / "configuration-options.inc"
    assert path.read_text(encoding="utf-8") == render_rst(), "run tools/generate_config_docs.py"


def test_an_option_that_the_client_finds_out_is_worked_out_when_it_is_read(monkeypatch):
    """A client of Spark's makes one in each process, and the assignors take longer to import than it does."""
    config = resolve("consumer", {"client_id": "a"})
    with monkeypatch.context() as patched:
        patched.setattr(Lazy, "get", lambda _: pytest.fail("imported"))
        config.fill("api_version", lambda: (4, 3))
        config.fill("client_id", lambda: pytest.fail("given"))
    assert (config["api_version"], config["client_id"], sorted(config.given)) == ((4, 3), "a", ["client_id"])
