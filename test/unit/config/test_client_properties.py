"""client.properties as Java reads it, and the names of Java and librdkafka."""

from __future__ import annotations

import pytest

from kafka.config import OPTIONS, parse, resolve
from kafka.config.client_properties import (
    find_option,
    nearest_name,
    parse_conf,
    parse_jaas,
    parse_properties,
    translate,
)
from kafka.errors import KafkaConfigurationError

#: Text -> what java.util.Properties makes of it; a test of the tier real asks Java itself.
PROPERTIES = {
    "a=b\nc = d\ne:f\ng h\n": {"a": "b", "c": "d", "e": "f", "g": "h"},
    "# one\n! two\n\n   # three\na=b": {"a": "b"},
    "bootstrap.servers=b1\\:9092,\\\n    b2\\:9092\r\nclient.id=x": {
        "bootstrap.servers": "b1:9092,b2:9092",
        "client.id": "x",
    },
    "a=one\\\n# two\\\n!three\n": {"a": "one# two!three"},
    "a=b\\\\\nc=d": {"a": "b\\", "c": "d"},
    "path=C:\\\\keys\\\\a\n": {"path": "C:\\keys\\a"},
    "a=\\u00fc\\u20AC\\t|\\n|\\x\n": {"a": "ü€\t|\n|x"},
    "a\\ b\\=c=d\n": {"a b=c": "d"},
    "a\n b \n": {"a": "", "b": ""},
    "a===b\n": {"a": "==b"},
    "a = = b\n": {"a": "= b"},
    "a : b\n": {"a": "b"},
    "a:=b\n": {"a": "=b"},
    "a=b \n": {"a": "b"},
    "a=x\u2028y\n": {"a": "x\u2028y"},
    "a=b\\": {"a": "b"},
    'jaas=x.Plain required \\\n  username=\\"ada\\" \\\n  password="p\\\\"q";\n': {
        "jaas": 'x.Plain required username="ada" password="p\\"q";'
    },
    "a=@hush\n": {"a": "@hush"},
    "a=1\na=2\n": {"a": "2"},
}


@pytest.mark.parametrize("text", PROPERTIES)
def test_a_file_is_read_as_java_util_properties_does(text: str) -> None:
    assert parse_properties(text) == PROPERTIES[text]


def test_a_character_that_java_writes_as_two_is_one() -> None:
    assert parse_properties("sasl.password=\\ud83d\\ude00") == {"sasl.password": "\U0001f600"}


def test_a_file_of_librdkafka_has_no_escapes() -> None:
    assert parse_conf("# a\nssl.ca.location = C:\\certs\nsasl.password=a=b#c\n\n") == {
        "ssl.ca.location": "C:\\certs",
        "sasl.password": "a=b#c",
    }


def test_jaas_of_scram_and_of_shaded_classes() -> None:
    text = (
        "kafkashaded.org.apache.kafka.common.security.scram.ScramLoginModule required\n username='a\\'b' password=c ;"
    )
    assert parse_jaas(text) == ("ScramLoginModule", {"username": "a'b", "password": "c"})


def test_jaas_that_cannot_be_read_says_so_without_its_contents() -> None:
    for text in (
        "hush",
        'PlainLoginModule required username="hush',
        "PlainLoginModule required hush;",
        "x.Y required;",
    ):
        with pytest.raises(KafkaConfigurationError) as caught:
            translate({"sasl.jaas.config": text})
        assert "hush" not in str(caught.value)


@pytest.mark.parametrize(
    ("jaas", "expected"),
    [
        (
            'x.ScramLoginModule required username="id" password="mac" tokenauth="true";',
            {"sasl_plain_username": "id", "sasl_plain_password": "mac", "sasl_scram_delegation_token": "true"},
        ),
        (
            """x.OAuthBearerLoginModule required clientId="i" clientSecret="s" scope="all" extension_a="1"
            extension_b="2" ssl.truststore.location="/ca.pem";""",
            {
                "sasl_oauthbearer_client_id": "i",
                "sasl_oauthbearer_client_secret": "s",
                "sasl_oauthbearer_scope": "all",
                "sasl_oauthbearer_cafile": "/ca.pem",
                "sasl_oauthbearer_extensions": "a=1,b=2",
            },
        ),
        (
            'com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true keyTab="/k" serviceName="broker";',
            {"sasl_mechanism": "GSSAPI", "sasl_kerberos_service_name": "broker"},
        ),
        ("software.amazon.msk.auth.iam.IAMLoginModule required;", {"sasl_mechanism": "AWS_MSK_IAM"}),
    ],
)
def test_each_login_module_becomes_options(jaas: str, expected: dict[str, str]) -> None:
    assert translate({"sasl.jaas.config": jaas}) == expected
    assert set(parse("consumer", expected)) == set(expected)


def test_options_given_apart_override_jaas_and_msk_overrides_the_mechanism() -> None:
    jaas = 'x.PlainLoginModule required username="a" password="b";'
    assert translate({"sasl.username": "c", "sasl.jaas.config": jaas}) == {
        "sasl_plain_username": "c",
        "sasl_plain_password": "b",
    }
    handler = "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler"
    msk = {"sasl.mechanism": "OAUTHBEARER", "sasl.client.callback.handler.class": handler}
    assert translate(msk) == {"sasl_mechanism": "AWS_MSK_IAM"}
    other = {"sasl.login.callback.handler.class": "org.apache.kafka.OAuthBearerLoginCallbackHandler"}
    assert translate(other) == {}


def test_the_words_of_java_and_librdkafka_for_the_host_check_and_the_assignors() -> None:
    for text, expected in (("", "false"), ("none", "false"), ("https", "true"), ("HTTPS", "true")):
        assert translate({"ssl.endpoint.identification.algorithm": text}) == {"ssl_check_hostname": expected}
    java = (
        "org.apache.kafka.clients.consumer.CooperativeStickyAssignor, org.apache.kafka.clients.consumer.RangeAssignor"
    )
    for text, names in ((java, "cooperative-sticky,range"), ("range,roundrobin", "range,roundrobin"), ("a.b.Mine", "")):
        expected = {"partition_assignment_strategy": names} if names else {}
        assert translate({"partition.assignment.strategy": text}) == expected


def test_names_are_found_in_three_vocabularies() -> None:
    for name in ("linger_ms", "linger.ms", "queue.buffering.max.ms"):
        option = find_option(name)
        assert option is OPTIONS["linger_ms"]
    for name in ("key.serializer", "ssl.truststore.type", "broker.address.family", "interceptor.classes"):
        assert find_option(name) is None
    for name in ("sasl.jaas.config", "sasl_jaas_config", "basic.auth.user.info", "schema_registry_token"):
        option = find_option(name)
        assert option is not None
        assert option.secret
    with pytest.raises(KeyError):
        find_option("sasl.pasword")
    assert nearest_name("sasl.pasword") == "sasl.password"
    assert nearest_name("enable.auto.comit") == "enable.auto.commit"
    assert nearest_name("nothing.like.it.at.all") is None


#: What vendors' consoles offer for download.
CONFLUENT_CLOUD = """
# Required connection configs for Kafka producer, consumer, and admin
bootstrap.servers=pkc-1.example:9092
security.protocol=SASL_SSL
sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username='KEY' password='SE/CR+ET';
sasl.mechanism=PLAIN
# Required for correctness in Apache Kafka clients prior to 2.6
client.dns.lookup=use_all_dns_ips
session.timeout.ms=45000
acks=all
basic.auth.credentials.source=USER_INFO
schema.registry.url=https://psrc.example
basic.auth.user.info=RKEY:RSECRET
"""
AIVEN = """
security.protocol=SSL
ssl.keystore.type=PKCS12
ssl.keystore.location=client.keystore.p12
ssl.keystore.password=one
ssl.key.password=two
ssl.truststore.location=client.truststore.jks
ssl.truststore.password=three
"""
OIDC = """
security.protocol=SASL_SSL
sasl.mechanism=OAUTHBEARER
sasl.login.callback.handler.class=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler
sasl.oauthbearer.token.endpoint.url=https://login.example/token
sasl.jaas.config=org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required \\
  clientId="id" clientSecret="hush" scope="kafka";
"""


def test_the_files_of_vendors_become_configurations_of_clients() -> None:
    cloud = translate(parse_properties(CONFLUENT_CLOUD))
    assert cloud.pop("schema_registry_user_info") == "RKEY:RSECRET"
    assert cloud.pop("schema_registry_url") == "https://psrc.example"
    for kind in ("producer", "consumer", "admin"):
        given = {name: text for name, text in cloud.items() if kind in OPTIONS[name].kinds}
        config = resolve(kind, parse(kind, given))
        assert (config["sasl_plain_username"], config["sasl_plain_password"]) == ("KEY", "SE/CR+ET")
    stores = translate(parse_properties(AIVEN))
    assert {name: text for name, text in stores.items() if "password" in name} == {
        "ssl_keystore_password": "one",
        "ssl_password": "two",
        "ssl_truststore_password": "three",
    }
    tokens = translate(parse_properties(OIDC))
    config = resolve("admin", {**parse("admin", tokens), "bootstrap_servers": "b1:9093"})
    assert (config["sasl_mechanism"], config["sasl_oauthbearer_client_secret"]) == ("OAUTHBEARER", "hush")
