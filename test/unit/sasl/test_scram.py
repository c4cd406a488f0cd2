"""SCRAM against the RFCs' vectors, an honest server, and servers that lie in every message."""

from __future__ import annotations

import contextlib
import hashlib
import hmac
from base64 import b64decode, b64encode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka.errors import IllegalStateError, KafkaConfigurationError, KafkaError, SaslAuthenticationFailedError
from kafka.sasl import sasl_mechanism
from kafka.sasl.scram import MAX_ITERATIONS, MIN_ITERATIONS, ScramSha256, ScramSha512, saslprep

SALT = b"salt" * 4


def client(cls=ScramSha256, user="user", password="pencil", **more):
    return cls(sasl_plain_username=user, sasl_plain_password=password, **more)


class Server:
    """The other side, written from RFC 5802 independently of the client."""

    def __init__(self, hash_name, password, iterations=MIN_ITERATIONS):
        self.hash_name, self.iterations = hash_name, iterations
        self.salted = hashlib.pbkdf2_hmac(hash_name, password.encode(), SALT, iterations)

    def mac(self, key, message):
        return hmac.new(key, message, self.hash_name).digest()

    def first(self, client_first):
        assert client_first.startswith(b"n,,")
        self.client_first_bare = client_first[3:]
        fields = dict(part.split(b"=", 1) for part in self.client_first_bare.split(b","))
        self.user = fields[b"n"].replace(b"=2C", b",").replace(b"=3D", b"=").decode()
        self.fields = fields
        self.server_first = b"r=" + fields[b"r"] + b"server,s=" + b64encode(SALT) + b",i=%d" % self.iterations
        return self.server_first

    def final(self, client_final):
        without_proof, _, proof = client_final.rpartition(b",p=")
        transcript = b",".join((self.client_first_bare, self.server_first, without_proof))
        client_key = self.mac(self.salted, b"Client Key")
        signature = self.mac(hashlib.new(self.hash_name, client_key).digest(), transcript)
        expected = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
        if b64decode(proof) != expected:
            return b"e=invalid-proof"
        return b"v=" + b64encode(self.mac(self.mac(self.salted, b"Server Key"), transcript))


def talk(mechanism, server):
    mechanism.receive(server.first(mechanism.auth_bytes()))
    mechanism.receive(server.final(mechanism.auth_bytes()))


def test_the_vector_of_rfc_7677():
    mechanism = client(nonce=lambda: "rOprNGfwEbeRWgbNEkqO")
    assert mechanism.auth_bytes() == b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO"
    mechanism.receive(b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096")
    assert mechanism.auth_bytes() == (
        b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
    )
    assert not mechanism.is_done()
    mechanism.receive(b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=")
    assert mechanism.is_done()
    assert mechanism.is_authenticated()


@pytest.mark.parametrize("cls", [ScramSha256, ScramSha512])
@pytest.mark.parametrize("user", ["ann", "a=b,c", "J\u00fcrgen"])
def test_an_honest_server_is_believed(cls, user):
    server = Server(cls.hash_name, "p\u00e4ss,=")
    mechanism = client(cls, user, "p\u00e4ss,=")
    talk(mechanism, server)
    assert mechanism.is_authenticated()
    assert server.user == user
    with pytest.raises(IllegalStateError):
        mechanism.auth_bytes()
    with pytest.raises(IllegalStateError):
        mechanism.receive(b"more")


def test_a_wrong_password_is_named_as_what_it_is():
    mechanism = client(password="wrong")
    with pytest.raises(SaslAuthenticationFailedError, match=r"refused for user: invalid-proof"):
        talk(mechanism, Server("sha256", "pencil"))
    assert mechanism.is_done()
    assert not mechanism.is_authenticated()


def test_a_delegation_token_says_so():
    server = Server("sha512", "hmac")
    mechanism = client(ScramSha512, "token-id", "hmac", sasl_scram_delegation_token=True)
    talk(mechanism, server)
    assert server.fields[b"tokenauth"] == b"true"


@pytest.mark.parametrize(
    "reply",
    [
        b"",
        b"nonsense",
        b"\xff\xfe",
        b"r=other,s=c2FsdA==,i=4096",
        b"r=abc,s=c2FsdA==,i=4096",  # our nonce and nothing of its own
        b"r=abc\x7f,s=c2FsdA==,i=4096",
        b"r=abcX,s=,i=4096",
        b"r=abcX,s=***,i=4096",
        b"r=abcX,s=c2FsdA==",
        b"r=abcX,s=c2FsdA==,i=1",
        b"r=abcX,s=c2FsdA==,i=%d" % (MIN_ITERATIONS - 1),
        b"r=abcX,s=c2FsdA==,i=%d" % (MAX_ITERATIONS + 1),
        b"r=abcX,s=c2FsdA==,i=2147483647",
        b"r=abcX,s=c2FsdA==,i=99999999999999999999999999",
        b"r=abcX,s=c2FsdA==,i=-4096",
        b"r=abcX,s=c2FsdA==,i=4_096",
        "r=abcX,s=c2FsdA==,i=\u0664\u0660\u0669\u0666".encode(),
        b"m=ext,r=abcX,s=c2FsdA==,i=4096",
        b"e=unknown-user",
    ],
)
def test_a_lying_first_reply_is_refused_at_once(reply):
    mechanism = client(nonce=lambda: "abc")
    mechanism.auth_bytes()
    with pytest.raises(SaslAuthenticationFailedError):
        mechanism.receive(reply)
    assert not mechanism.is_authenticated()


@pytest.mark.parametrize("reply", [b"", b"v=", b"v=AAAA", b"v=***", b"x=1", b"e=other-error", b"v=\xff"])
def test_a_server_that_cannot_prove_itself_is_not_believed(reply):
    mechanism = client()
    mechanism.receive(Server("sha256", "pencil").first(mechanism.auth_bytes()))
    mechanism.auth_bytes()
    with pytest.raises(SaslAuthenticationFailedError):
        mechanism.receive(reply)
    assert not mechanism.is_authenticated()


@given(first=st.binary(max_size=60), final=st.binary(max_size=60))
def test_whatever_comes_only_kafka_errors_go_out(first, final):
    mechanism = client(nonce=lambda: "abc")
    mechanism.auth_bytes()
    with contextlib.suppress(KafkaError):
        mechanism.receive(first)
        mechanism.receive(final)
    assert not mechanism.is_authenticated()


def test_the_password_as_typed_is_the_second_choice():
    ligature = "\ufb01le"  # SASLprep makes it "file"; Apache Kafka hashes it as it is
    mechanism = client(password=ligature)
    with pytest.raises(SaslAuthenticationFailedError):
        talk(mechanism, Server("sha256", ligature))
    second = mechanism.alternative()
    talk(second, Server("sha256", ligature))
    assert second.is_authenticated()
    assert second.alternative() is None
    assert client(password="plain").alternative() is None


def test_missing_credentials_are_a_configuration_error():
    with pytest.raises(KafkaConfigurationError, match="sasl_plain_username"):
        sasl_mechanism("SCRAM-SHA-256", sasl_plain_password="x")


def test_a_password_that_cannot_be_prepared_is_refused_without_being_shown():
    with pytest.raises(KafkaConfigurationError) as caught:
        client(password="secret\u0007")
    assert "secret" not in str(caught.value)


def test_details_and_repr_hold_no_secret():
    mechanism = client(password="pencil")
    assert "pencil" not in mechanism.auth_details() + repr(mechanism)


# SASLprep


@pytest.mark.parametrize(
    ("given_text", "prepared"),
    [("I\u00adX", "IX"), ("user", "user"), ("USER", "USER"), ("\u00aa", "a"), ("\u2168", "IX"), ("a\u00a0b", "a b")],
)
def test_the_examples_of_rfc_4013(given_text, prepared):
    assert saslprep(given_text) == prepared


@pytest.mark.parametrize("text", ["\u0007", "\u0627\u0031", "a\u0627", "\ue000", "\ufffd", "\u0340\u202a", "\x7f"])
def test_what_rfc_4013_forbids(text):
    with pytest.raises(ValueError, match=r"contains|mixes|right to left"):
        saslprep(text)


@given(st.text(max_size=10))
def test_preparing_twice_changes_nothing(text):
    try:
        once = saslprep(text)
    except ValueError:
        return
    assert saslprep(once) == once
