"""What a program learns when a broker refuses its credentials."""

from __future__ import annotations

import pytest

from kafka import KafkaAdminClient
from kafka.broker import Broker
from kafka.errors import SaslAuthenticationFailedError


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-512"])
@pytest.mark.parametrize("release", ["4.3", "0.11"])
def test_the_error_of_a_wrong_password_names_the_user_and_not_the_password(mechanism: str, release: str) -> None:
    """Brokers before 1.0 close the connection and say nothing."""
    with Broker(sasl=[(mechanism, "ann", "secret")], as_version=release) as broker:
        with pytest.raises(SaslAuthenticationFailedError, match=f"as ann via SASL {mechanism}") as failed:
            KafkaAdminClient(
                bootstrap_servers=broker.bootstrap_servers,
                security_protocol="SASL_PLAINTEXT",
                sasl_mechanism=mechanism,
                sasl_plain_username="ann",
                sasl_plain_password="wrOng",
            )
        assert "wrOng" not in str(failed.value)
