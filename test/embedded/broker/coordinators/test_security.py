"""Security over TCP: who gets in, by which way, for how long, and what each may do."""

from __future__ import annotations

import json
import ssl
from base64 import urlsafe_b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest

from kafka.broker import Broker
from kafka.broker.security.tls import server_context
from kafka.errors import KafkaConfigurationError
from kafka.protocol.acl import CreateAclsRequest
from kafka.protocol.admin import (
    AlterPartitionReassignmentsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    ListPartitionReassignmentsRequest,
)
from kafka.protocol.commit import FindCoordinatorRequest
from kafka.protocol.fields import ZERO_UUID
from kafka.protocol.group import HeartbeatRequest
from kafka.protocol.metadata import DescribeClusterRequest, DescribeTopicPartitionsRequest, MetadataRequest
from kafka.protocol.offset import OffsetForLeaderEpochRequest
from kafka.protocol.sasl import SaslAuthenticateRequest, SaslHandshakeRequest
from kafka.protocol.transaction import InitProducerIdRequest
from kafka.protocol.users import AlterUserScramCredentialsRequest, DescribeUserScramCredentialsRequest
from test.embedded.broker.wire import Wire

USERS = [("PLAIN", "admin", "a"), ("PLAIN", "bob", "b")]
ACLS = {"authorizer.class.name": "StandardAuthorizer", "super.users": "User:admin"}
SASL_AUTHENTICATION_FAILED, ILLEGAL_SASL_STATE, UNSUPPORTED_SASL_MECHANISM = 58, 34, 33


def log_in(wire: Wire, user: str, password: str, version: int = 2) -> int:
    assert wire.ask(SaslHandshakeRequest[1]("PLAIN")).mechanisms == ["PLAIN"]
    reply = wire.ask(SaslAuthenticateRequest[version](f"\0{user}\0{password}".encode()))
    return int(reply.error_code)


def is_served(wire: Wire) -> bool:
    try:
        wire.ask(MetadataRequest[1](None))
    except ConnectionError:
        return False
    return True


pytestmark = pytest.mark.kafka_broker(topics={"t": 1, "u": 1}, sasl=USERS, configs=ACLS)


@pytest.mark.parametrize("version", range(3))
def test_who_knows_the_password_gets_in(broker: Broker, version: int) -> None:
    with Wire(broker.port()) as wire:
        assert log_in(wire, "admin", "a", version) == 0
        assert is_served(wire)


def test_a_member_that_does_not_is_fenced_and_removed(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    with Wire(broker.port()) as wire:
        assert log_in(wire, "admin", "b") == SASL_AUTHENTICATION_FAILED
        assert not is_served(wire)
    assert "SASL authentication failed" in caplog.text


def test_nothing_is_served_before(broker: Broker) -> None:
    with Wire(broker.port()) as wire:
        assert not is_served(wire)
    with Wire(broker.port()) as wire, pytest.raises(ConnectionError):
        wire.ask(SaslAuthenticateRequest[2](b"\0admin\0a"))
    with Wire(broker.port()) as wire:
        assert wire.ask(SaslHandshakeRequest[1]("GSSAPI")).error_code == UNSUPPORTED_SASL_MECHANISM
        assert not is_served(wire)


def test_the_oldest_way_sends_tokens_without_headers(broker: Broker) -> None:
    token = b"\0admin\0a"
    with Wire(broker.port()) as wire:
        assert wire.ask(SaslHandshakeRequest[0]("PLAIN")).error_code == 0
        wire.socket.sendall(len(token).to_bytes(4, "big") + token)
        assert wire.exactly(4) == b"\0\0\0\0"
        assert is_served(wire)
    with Wire(broker.port()) as wire:
        assert wire.ask(SaslHandshakeRequest[0]("PLAIN")).error_code == 0
        wire.socket.sendall(len(token).to_bytes(4, "big") + token[:-1] + b"x")
        assert not is_served(wire)


def test_a_session_without_end_cannot_be_renewed(broker: Broker) -> None:
    with Wire(broker.port()) as wire:
        log_in(wire, "admin", "a")
        assert wire.ask(SaslHandshakeRequest[1]("PLAIN")).error_code == ILLEGAL_SASL_STATE
        assert is_served(wire)


def test_sessions_end_unless_they_are_renewed() -> None:
    configs = {"connections.max.reauth.ms": 10000}
    with Broker(sasl=USERS, configs=configs) as broker, Wire(broker.port()) as idle, Wire(broker.port()) as wire:
        log_in(idle, "bob", "b")
        wire.ask(SaslHandshakeRequest[1]("PLAIN"))
        assert wire.ask(SaslAuthenticateRequest[1](b"\0admin\0a")).session_lifetime_ms == 10000
        broker.clock.advance(9)
        assert log_in(wire, "admin", "a") == 0
        broker.clock.advance(9)
        assert is_served(wire)
        assert not is_served(idle)


def test_a_session_is_renewed_once_in_a_second_and_a_client_that_asks_again_is_still_served() -> None:
    configs = {"connections.max.reauth.ms": 10000}
    with Broker(sasl=USERS, configs=configs) as broker, Wire(broker.port()) as wire:
        broker.clock.freeze()
        log_in(wire, "admin", "a")
        assert log_in(wire, "admin", "a") == 0
        assert wire.ask(SaslHandshakeRequest[1]("PLAIN")).error_code == ILLEGAL_SASL_STATE
        assert is_served(wire)
        broker.clock.advance(1)
        assert log_in(wire, "admin", "a") == 0


def test_a_token_s_end_is_the_session_s_end() -> None:
    with Broker(sasl=[("OAUTHBEARER", "", "")]) as broker, Wire(broker.port()) as wire:
        claims = {"sub": "alice", "exp": broker.clock.time() + 60}
        parts = [urlsafe_b64encode(json.dumps(part).encode()).rstrip(b"=") for part in ({"alg": "none"}, claims)]
        wire.ask(SaslHandshakeRequest[1]("OAUTHBEARER"))
        token = b"n,,\x01auth=Bearer " + b".".join(parts) + b".\x01\x01"
        reply = wire.ask(SaslAuthenticateRequest[2](token))
        assert (reply.error_code, 50000 < reply.session_lifetime_ms <= 60000) == (0, True)
        assert is_served(wire)
        broker.clock.advance(61)
        assert not is_served(wire)


def test_acls_decide_what_is_seen_and_done(broker: Broker) -> None:
    with Wire(broker.port()) as admin, Wire(broker.port()) as bob:
        log_in(admin, "admin", "a")
        log_in(bob, "bob", "b")
        assert bob.ask(MetadataRequest[1](None)).topics == []
        assert bob.ask(HeartbeatRequest[4]("g", 1, "m", None)).error_code == 30
        bindings = [(2, "t", 3, "User:bob", "*", 3, 3), (3, "g", 4, "User:bob", "127.0.0.1", 3, 3)]
        assert bob.ask(CreateAclsRequest[3](bindings)).results[0].error_code == 31
        assert [each.error_code for each in admin.ask(CreateAclsRequest[3](bindings)).results] == [0, 0]
        assert [topic.name for topic in bob.ask(MetadataRequest[1](None)).topics] == ["t"]
        assert bob.ask(HeartbeatRequest[4]("g1", 1, "m", None)).error_code == 25
        request = MetadataRequest[8](["t"], include_topic_authorized_operations=True)
        assert bob.ask(request).topics[0].topic_authorized_operations == (1 << 3 | 1 << 8)


CLUSTER, TOPIC = (4, "kafka-cluster"), (2, "t")
READ, WRITE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION = 3, 4, 6, 7, 8, 9


@contextmanager
def granted(broker: Broker, *rights: tuple[tuple[int, str], int]) -> Iterator[Wire]:
    """Connect as bob, who has these rights alone."""
    with Wire(broker.port()) as admin, Wire(broker.port()) as bob:
        log_in(admin, "admin", "a")
        log_in(bob, "bob", "b")
        bindings = [(kind, name, 3, "User:bob", "*", operation, 3) for (kind, name), operation in rights]
        admin.ask(CreateAclsRequest[3](bindings))
        yield bob


def test_a_topic_s_id_without_the_right_to_describe_it_is_unauthorized(broker: Broker) -> None:
    known = broker.run(lambda cluster: cluster.topics["t"].id)
    with granted(broker) as bob:
        reply = bob.ask(MetadataRequest[12](topics=[(known, None), (UUID(int=5), None)]))
        assert {one.topic_id: (one.name, one.error_code) for one in reply.topics} == {
            known: (None, 29),
            UUID(int=5): (None, 100),
        }


def test_operations_on_missing_topics_are_listed_but_not_on_unauthorized_ones(broker: Broker) -> None:
    with granted(broker, ((2, "none"), READ)) as bob:
        asked = MetadataRequest[12]([(ZERO_UUID, "t"), (ZERO_UUID, "none")], False)
        asked.include_topic_authorized_operations = True
        rights = [(one.error_code, one.topic_authorized_operations) for one in bob.ask(asked).topics]
        assert rights == [(29, -(2**31)), (3, 1 << READ | 1 << DESCRIBE)]
        pages = bob.ask(DescribeTopicPartitionsRequest[0]([("none",), ("t",)], 10, None))
        assert [(one.error_code, one.topic_authorized_operations) for one in pages.topics] == rights[::-1]


def test_the_operations_on_the_cluster_need_the_right_to_describe_it(broker: Broker) -> None:
    describe = DescribeClusterRequest[1](include_cluster_authorized_operations=True)
    with granted(broker, (CLUSTER, CLUSTER_ACTION)) as bob:
        assert bob.ask(describe).cluster_authorized_operations == 0
    with granted(broker, (CLUSTER, DESCRIBE)) as bob:
        assert bob.ask(describe).cluster_authorized_operations == 1 << CLUSTER_ACTION | 1 << DESCRIBE


def test_a_producer_id_needs_the_right_to_write_to_any_topic_there_or_not(broker: Broker) -> None:
    ask = InitProducerIdRequest[4](None, 10_000, -1, -1)
    with granted(broker) as bob:
        assert bob.ask(ask).error_code == 31
    with granted(broker, ((2, "not-there"), WRITE)) as bob:
        assert bob.ask(ask).error_code == 0


def test_leader_epochs_need_the_right_of_cluster_action(broker: Broker) -> None:
    ask = OffsetForLeaderEpochRequest[3](-1, [("t", [(0, -1, 0)])])
    with granted(broker) as bob:
        assert bob.ask(ask).topics[0].partitions[0].error_code == 29
    with granted(broker, (CLUSTER, CLUSTER_ACTION)) as bob:
        assert bob.ask(ask).topics[0].partitions[0].error_code == 0


def test_deleting_a_missing_topic_with_the_right_to_describe_it_is_an_unknown_topic(broker: Broker) -> None:
    known = broker.run(lambda cluster: cluster.topics["t"].id)

    def delete(bob: Wire, name: str | None, topic_id: UUID = ZERO_UUID) -> tuple[str | None, int]:
        (result,) = bob.ask(DeleteTopicsRequest[6](topics=[(name, topic_id)], timeout_ms=1000)).responses
        return result.name, result.error_code

    with granted(broker) as bob:
        assert [delete(bob, "none"), delete(bob, "t"), delete(bob, None, known)] == [
            ("none", 29),
            ("t", 29),
            (None, 29),
        ]
    with granted(broker, ((2, "none"), READ), (TOPIC, READ)) as bob:
        assert [delete(bob, "none"), delete(bob, "t"), delete(bob, None, known)] == [("none", 3), ("t", 29), ("t", 29)]
    with granted(broker, (CLUSTER, DELETE)) as bob:
        assert [delete(bob, "none"), delete(bob, None, known)] == [("none", 3), ("t", 0)]


def test_refused_elections_and_moves_name_each_partition(broker: Broker) -> None:
    with granted(broker) as bob:
        reply = bob.ask(ElectLeadersRequest[2](0, [("t", [0])], 1000))
        assert (reply.error_code, reply.replica_election_results[0].partition_result[0].error_code) == (31, 31)
        moved = bob.ask(AlterPartitionReassignmentsRequest[0](1000, [("t", [(0, [1])])]))
        assert (moved.error_code, moved.responses[0].partitions[0].error_code) == (31, 31)
        listed = bob.ask(ListPartitionReassignmentsRequest[0](1000, [("t", [0])]))
        assert (listed.error_code, [one.name for one in listed.topics]) == (31, ["t"])
        users = bob.ask(DescribeUserScramCredentialsRequest[0]([("eve",)]))
        assert (users.error_code, [(one.user, one.error_code) for one in users.results]) == (31, [("", 31)])


def test_the_coordinator_of_a_share_partition_is_for_brokers(broker: Broker) -> None:
    def find(bob: Wire, key: str) -> int:
        reply = bob.ask(FindCoordinatorRequest[6](key_type=2, coordinator_keys=[key]))
        return int(reply.coordinators[0].error_code)

    key = f"g:{'a' * 22}:0"
    with granted(broker) as bob:
        assert find(bob, key) == 31
    with granted(broker, (CLUSTER, CLUSTER_ACTION)) as bob:
        assert [find(bob, one) for one in (key, "g", f"g:{UUID(int=5)}:0")] == [0, 42, 42]


def test_credentials_are_given_and_taken(broker: Broker) -> None:
    with Wire(broker.port()) as admin:
        log_in(admin, "admin", "a")
        upsertions = [
            ("carol", 1, 4096, b"salt", b"salted"),
            ("dave", 1, 100, b"s", b"s"),
            ("eve", 9, 4096, b"s", b"s"),
            ("", 1, 4096, b"s", b"s"),
        ]
        reply = admin.ask(AlterUserScramCredentialsRequest[0]([("frank", 1)], upsertions))
        codes = {each.user: each.error_code for each in reply.results}
        assert codes == {"frank": 91, "carol": 0, "dave": 93, "eve": 33, "": 93}
        reply = admin.ask(DescribeUserScramCredentialsRequest[0](None))
        assert [(each.user, [tuple(info) for info in each.credential_infos]) for each in reply.results] == [
            ("carol", [(1, 4096)])
        ]
        reply = admin.ask(DescribeUserScramCredentialsRequest[0]([("nobody",), ("carol",), ("carol",)]))
        assert {each.user: each.error_code for each in reply.results} == {"nobody": 91, "carol": 92}
        assert admin.ask(AlterUserScramCredentialsRequest[0]([("carol", 1)], [])).results[0].error_code == 0


# TLS

CERTIFICATES = Path(__file__).parents[3] / "unit" / "net" / "certs"


def tls_wire(broker: Broker, certificate: str | None) -> Wire:
    context = ssl.create_default_context(cafile=str(CERTIFICATES / "ca.pem"))
    context.check_hostname = False
    if certificate is not None:
        context.load_cert_chain(CERTIFICATES / f"{certificate}.pem", CERTIFICATES / f"{certificate}.key")
    wire = Wire(broker.port())
    wire.socket = context.wrap_socket(wire.socket)
    return wire


def test_a_client_s_certificate_says_who_it_is() -> None:
    ca = CERTIFICATES / "ca.pem"
    pair = (CERTIFICATES / "server.pem", CERTIFICATES / "server.key")
    context = server_context(*pair, ca=ca, client_auth="requested")
    with Broker(topics=["t"], ssl_context=context, configs={**ACLS, "super.users": "User:CN=client"}) as broker:
        for certificate, seen in (("client", ["t"]), (None, [])):
            with tls_wire(broker, certificate) as wire:
                assert [topic.name for topic in wire.ask(MetadataRequest[1](None)).topics] == seen


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
def test_a_client_without_a_certificate_gets_the_alert_that_says_so(
    version: ssl.TLSVersion, caplog: pytest.LogCaptureFixture
) -> None:
    ca = CERTIFICATES / "ca.pem"
    server = server_context(CERTIFICATES / "server.pem", CERTIFICATES / "server.key", ca=ca, client_auth="required")
    client = ssl.create_default_context(cafile=str(ca))
    client.check_hostname = False
    client.minimum_version = client.maximum_version = version
    refused = pytest.raises(ssl.SSLError, match=r"(?i)certificate.required|handshake.failure")
    with Broker(ssl_context=server) as broker, Wire(broker.port()) as wire, refused:
        # Under TLS 1.3 the client is through with its handshake before the server has seen what it lacks.
        wire.socket = client.wrap_socket(wire.socket)
        wire.send(MetadataRequest[1](None))
        wire.socket.recv(1)
    assert "node 1: the TLS handshake with 127.0.0.1 failed" in caplog.text


def test_a_context_that_cannot_be_made_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(KafkaConfigurationError, match="cannot read"):
        server_context(tmp_path / "absent.pem")
