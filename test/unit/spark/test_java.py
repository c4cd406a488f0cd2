"""The Java client's options."""

from __future__ import annotations

import logging

import pytest

from kafka.spark.errors import KafkaSparkOptionError
from kafka.spark.java_options import client_options


def test_an_error_names_the_option_as_spark_has_it() -> None:
    with pytest.raises(KafkaSparkOptionError, match=r"^kafka\.sasl\.jaas\.config") as caught:
        client_options("consumer", {"sasl.jaas.config": "hush"})
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


def test_stores_of_java_are_used() -> None:
    given = {"ssl.truststore.type": "JKS", "ssl.truststore.location": "/etc/ca.jks", "ssl.truststore.password": "x"}
    assert client_options("consumer", given) == {"ssl_cafile": "/etc/ca.jks", "ssl_truststore_password": "x"}


def test_host_names_are_not_checked_where_the_algorithm_is_empty() -> None:
    assert client_options("consumer", {"ssl.endpoint.identification.algorithm": ""}) == {"ssl_check_hostname": False}
    assert client_options("consumer", {"ssl.endpoint.identification.algorithm": "https"}) == {
        "ssl_check_hostname": True
    }


def test_options_of_java_alone_are_accepted_and_unknown_ones_are_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        assert client_options("consumer", {"max.poll.records": "5", "partition.assignment.strategy": "x"}) == {}
        assert not caplog.records
        assert client_options("consumer", {"fetch.max.bites": "5"}) == {}
    assert "kafka.fetch.max.bites is not known" in caplog.text


def test_a_value_that_is_wrong_names_the_option_as_it_was_given() -> None:
    with pytest.raises(KafkaSparkOptionError, match=r"kafka\.fetch\.max\.bytes"):
        client_options("consumer", {"fetch.max.bytes": "many"})
