"""The embedded broker, judged by clients that nobody here wrote."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafka.broker import Broker
from test.real.kafka_process import KafkaCluster

from .peer_venvs import run_peer

JUDGES = {
    "confluent-kafka": "judge_confluent.py",
    "aiokafka": "judge_aiokafka.py",
    "kafka-python": "judge_kafka_python.py",
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Broker]:
    with Broker(nodes=3) as broker:
        yield broker


@pytest.mark.parametrize("peer", JUDGES)
def test_a_client_can_do_all_that_it_does(cluster: Broker, peer: str) -> None:
    """Administer, produce, consume in a group that rebalances, commit, run transactions."""
    print(run_peer(peer, JUDGES[peer], cluster.bootstrap_servers, f"by-{peer}"))


@pytest.mark.slow
@pytest.mark.parametrize("peer", JUDGES)
def test_the_judges_find_kafka_to_do_the_same(kafka_cluster: KafkaCluster, peer: str) -> None:
    """What they expect of the embedded broker is what Kafka does."""
    run_peer(peer, JUDGES[peer], kafka_cluster.bootstrap_servers, f"by-{peer}")


@pytest.mark.parametrize("release", ["0.11.0", "1.1", "2.8", "3.9"])
def test_a_client_gets_on_with_older_releases(release: str) -> None:
    """kafka-python chooses its versions by what is advertised."""
    with Broker(as_version=release) as broker:
        run_peer("kafka-python", JUDGES["kafka-python"], broker.bootstrap_servers, "events")


def test_scram_of_early_librdkafka_works_where_it_did_with_kafka(caplog: pytest.LogCaptureFixture) -> None:
    """Before 2.6.1 it repeats the client's nonce, which Kafka refuses from 4.0 on."""
    users = [("SCRAM-SHA-256", "ada", "secret")]
    for release, peer in (("3.9", "old confluent-kafka"), ("4.3", "confluent-kafka")):
        with Broker(as_version=release, sasl=users) as broker:
            assert run_peer(peer, "judge_scram.py", broker.bootstrap_servers).strip() == "1"
    with Broker(sasl=users) as broker:
        said = run_peer("old confluent-kafka", "judge_scram.py", broker.bootstrap_servers, "refused")
    assert "librdkafka before 2.6.1" in said
    assert "librdkafka before 2.6.1" in caplog.text
