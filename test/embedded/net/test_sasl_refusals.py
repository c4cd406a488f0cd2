"""What a program learns when a broker refuses its credentials."""

from __future__ import annotations

import asyncio
import time
import traceback
from contextlib import suppress
from typing import Any

import pytest

from kafka import KafkaAdminClient, KafkaClient, KafkaConsumer, KafkaProducer, KafkaShareConsumer
from kafka.aio import AIOKafkaProducer
from kafka.broker import Broker
from kafka.errors import KafkaError, OutcomeUnknownError, SaslAuthenticationFailedError


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


WAIT = 30
CLIENTS = [KafkaProducer, KafkaConsumer, KafkaAdminClient, KafkaShareConsumer, KafkaClient, AIOKafkaProducer]
PASSWORD = [f"hunter{2}"]  # not a variable of the test, and not in the lines of its source


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize("option", ["sasl_plain_password", "sasl_plain_pasword"])
def test_a_report_with_the_variables_of_all_frames_has_no_password(client: Any, mechanism: str, option: str) -> None:
    """As Sentry and rich make it. The repr of what the constructor has not finished is in it too."""
    with Broker(sasl=[(mechanism, "ann", "right")]) as broker:
        common = {
            "bootstrap_servers": broker.bootstrap_servers,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": mechanism,
            "sasl_plain_username": "ann",
            **({"group_id": "g"} if client is KafkaShareConsumer else {}),
        }

        async def start() -> None:
            await client(**common, **{option: PASSWORD[0]}).start()

        with pytest.raises(KafkaError) as failed:
            asyncio.run(start()) if client is AIOKafkaProducer else client(**common, **{option: PASSWORD[0]})
    report = "".join(traceback.TracebackException.from_exception(failed.value, capture_locals=True).format())
    assert "sasl_mechanism" in report
    assert PASSWORD[0] not in report


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_each_call_names_a_password_that_changed_under_running_clients(protocol: str) -> None:
    """The clients took the brokers for unreachable, forgot them, and were silent from then on."""
    user = ("SCRAM-SHA-256", "ann", "right")
    with Broker(sasl=[user], topics={"t": 1}) as broker:
        options: dict[str, Any] = {
            "bootstrap_servers": broker.bootstrap_servers,
            "security_protocol": "SASL_PLAINTEXT",
            "sasl_mechanism": "SCRAM-SHA-256",
            "sasl_plain_username": "ann",
            "sasl_plain_password": "right",
        }
        reading = {**options, "group_id": "g", "auto_offset_reset": "earliest", "group_protocol": protocol}
        with KafkaProducer(**options, linger_ms=0) as producer, KafkaConsumer("t", **reading) as consumer:
            producer.send("t", b"1").get(WAIT)
            while not consumer.poll(WAIT * 1000):
                pass
            broker.add_user("ann", "other", "SCRAM-SHA-256")
            broker.drop_connections()
            for _ in range(3):
                with pytest.raises((SaslAuthenticationFailedError, OutcomeUnknownError), match="Authentication failed"):
                    producer.send("t", b"2").get(WAIT)
                with pytest.raises(SaslAuthenticationFailedError):
                    consumer.poll(WAIT * 1000)
            broker.add_user("ann", "right", "SCRAM-SHA-256")
            deadline = time.monotonic() + WAIT
            while True:
                try:
                    producer.send("t", b"3").get(WAIT)
                    break
                except (SaslAuthenticationFailedError, OutcomeUnknownError):
                    assert time.monotonic() < deadline
            values: list[bytes] = []
            while b"3" not in values:
                assert time.monotonic() < deadline
                with suppress(SaslAuthenticationFailedError):
                    values += [record.value for records in consumer.poll(100).values() for record in records]
            assert values == [b"3"]
