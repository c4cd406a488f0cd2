"""The Java client's options."""

from __future__ import annotations

import logging

import pytest

from kafka.spark.errors import KafkaSparkOptionError
from kafka.spark.java_options import client_options, parse_jaas


def test_jaas_of_scram_and_of_shaded_classes() -> None:
    text = (
        "kafkashaded.org.apache.kafka.common.security.scram.ScramLoginModule required\n username='a\\'b' password=c ;"
    )
    assert parse_jaas(text) == ("ScramLoginModule", {"username": "a'b", "password": "c"})


def test_jaas_that_cannot_be_read_says_so_without_its_contents() -> None:
    for text in ("hush", 'PlainLoginModule required username="hush', "PlainLoginModule required hush;"):
        with pytest.raises(KafkaSparkOptionError) as caught:
            parse_jaas(text)
        assert "hush" not in str(caught.value)


def test_delegation_tokens_oauth_and_msk_are_recognised() -> None:
    scram = 'x.ScramLoginModule required username="id" password="mac" tokenauth="true";'
    assert client_options("consumer", {"sasl.jaas.config": scram})["sasl_scram_delegation_token"] is True
    oauth = 'x.OAuthBearerLoginModule required clientId="i" clientSecret="s" scope="all";'
    assert client_options("consumer", {"sasl.jaas.config": oauth}) == {
        "sasl_oauthbearer_client_id": "i",
        "sasl_oauthbearer_client_secret": "s",
        "sasl_oauthbearer_scope": "all",
    }
    msk = {
        "sasl.mechanism": "OAUTHBEARER",
        "sasl.client.callback.handler.class": "software.amazon.msk.auth.iam.IAMOAuthBearerLoginCallbackHandler",
    }
    assert client_options("consumer", msk)["sasl_mechanism"] == "AWS_MSK_IAM"


def test_user_and_password_given_apart_win_over_jaas() -> None:
    jaas = 'x.PlainLoginModule required username="a" password="b";'
    found = client_options("consumer", {"sasl.jaas.config": jaas, "sasl.username": "c"})
    assert found == {"sasl_plain_username": "c", "sasl_plain_password": "b"}


def test_stores_of_java_are_refused_with_how_to_convert_them() -> None:
    for given in ({"ssl.truststore.type": "JKS"}, {"ssl.keystore.location": "/etc/client.p12"}):
        with pytest.raises(KafkaSparkOptionError, match="keytool -importkeystore"):
            client_options("consumer", given)
    pem = {"ssl.truststore.type": "PEM", "ssl.truststore.location": "/etc/ca.pem", "ssl.truststore.password": "x"}
    assert client_options("consumer", pem) == {"ssl_cafile": "/etc/ca.pem"}


def test_host_names_are_not_checked_where_the_algorithm_is_empty() -> None:
    assert client_options("consumer", {"ssl.endpoint.identification.algorithm": ""}) == {"ssl_check_hostname": False}
    assert client_options("consumer", {"ssl.endpoint.identification.algorithm": "https"}) == {
        "ssl_check_hostname": True
    }


def test_what_only_java_has_is_accepted_and_what_nobody_has_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert client_options("consumer", {"max.poll.records": "5", "partition.assignment.strategy": "x"}) == {}
        assert not caplog.records
        assert client_options("consumer", {"fetch.max.bites": "5"}) == {}
    assert "kafka.fetch.max.bites is not known" in caplog.text


def test_a_value_that_is_wrong_names_the_option_as_it_was_given() -> None:
    with pytest.raises(KafkaSparkOptionError, match=r"kafka\.fetch\.max\.bytes"):
        client_options("consumer", {"fetch.max.bytes": "many"})
