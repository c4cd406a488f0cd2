"""PLAIN, OAUTHBEARER, GSSAPI, AWS_MSK_IAM, the registry and the historic paths."""

from __future__ import annotations

import json
import os
import sys
import threading
import types
from base64 import b64encode, urlsafe_b64encode

import pytest

from kafka._runtime.workers import SharedCall
from kafka.config import resolve
from kafka.errors import (
    AuthenticationError,
    KafkaConfigurationError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailedError,
)
from kafka.sasl import SASL_MECHANISMS, SaslMechanism, get_sasl_mechanism, register_sasl_mechanism, sasl_mechanism
from kafka.sasl.http import HttpAnswer
from kafka.sasl.msk import AwsCredentials, CredentialChain, SaslMechanismAwsMskIam, presign
from kafka.sasl.oauth import OidcTokenProvider, provider_from_config
from kafka.testing import FakeClock

# Passwords


@pytest.mark.parametrize("name", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize("given", ["pässword", "pässword".encode(), lambda: "pässword", "pässword".encode])
def test_a_password_is_text_bytes_or_a_callable_that_gives_these(name, given):
    text = sasl_mechanism(name, sasl_plain_username="ann", sasl_plain_password="pässword")
    assert sasl_mechanism(name, sasl_plain_username="ann", sasl_plain_password=given)._password == text._password


@pytest.mark.parametrize("name", ["PLAIN", "SCRAM-SHA-256"])
@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        (lambda: 7, "must be a str or a callable that returns one, not a int"),
        (b"\xff secret", "is not UTF-8"),
        (lambda: {}["secret"], "the callable sasl_plain_password raised KeyError"),
    ],
)
def test_an_invalid_password_is_refused_without_showing_it(name, given, complaint):
    with pytest.raises((KafkaConfigurationError, KafkaConnectionError), match=complaint) as caught:
        sasl_mechanism(name, sasl_plain_username="ann", sasl_plain_password=given)
    assert "secret" not in str(caught.value).replace("sasl_plain_password", "")


# The registry


def test_an_unknown_mechanism_names_the_known_ones():
    with pytest.raises(KafkaConfigurationError, match="PLAIN"):
        get_sasl_mechanism("PLANE")


def test_a_mechanism_of_the_application_is_used(monkeypatch):
    monkeypatch.setattr("kafka.sasl.SASL_MECHANISMS", dict(SASL_MECHANISMS))

    class Mine(SaslMechanism):
        def __init__(self, **config):
            self.host = config["host"]

        def auth_bytes(self):
            return b"x"

        def receive(self, auth_bytes):
            pass

        def is_done(self):
            return True

        def is_authenticated(self):
            return True

    register_sasl_mechanism("MINE", Mine)
    assert sasl_mechanism("MINE", host="b").host == "b"
    with pytest.raises(ValueError, match="exists already"):
        register_sasl_mechanism("MINE", Mine)
    register_sasl_mechanism("MINE", Mine, overwrite=True)
    with pytest.raises(TypeError):
        register_sasl_mechanism("BAD", object)
    config = resolve("client", {"security_protocol": "SASL_SSL", "sasl_mechanism": "MINE"})
    assert config["sasl_mechanism"] == "MINE"


def test_the_historic_paths_lead_to_the_same_objects():
    import kafka.oauth.abstract
    import kafka.sasl
    import kafka.sasl.abc
    import kafka.sasl.gssapi
    import kafka.sasl.msk
    import kafka.sasl.oauth
    import kafka.sasl.plain
    import kafka.sasl.scram

    assert kafka.oauth.abstract.AbstractTokenProvider is kafka.sasl.oauth.AbstractTokenProvider
    assert kafka.sasl.register_sasl_mechanism is register_sasl_mechanism
    assert get_sasl_mechanism("PLAIN") is kafka.sasl.plain.SaslMechanismPlain


# PLAIN


def test_plain_is_one_message():
    mechanism = sasl_mechanism("PLAIN", sasl_plain_username="ann", sasl_plain_password="p\u00e4ss")
    assert mechanism.auth_bytes() == b"\0ann\0p\xc3\xa4ss"
    mechanism.receive(b"")
    assert mechanism.is_done()
    assert mechanism.is_authenticated()
    assert "p\u00e4ss" not in mechanism.auth_details()


@pytest.mark.parametrize(
    "config", [{}, {"sasl_plain_username": "a"}, {"sasl_plain_username": "a\0", "sasl_plain_password": "b"}]
)
def test_plain_without_proper_credentials_is_a_configuration_error(config):
    with pytest.raises(KafkaConfigurationError):
        sasl_mechanism("PLAIN", **config)


# OAUTHBEARER


class Provider:
    def __init__(self, token="abc.def", extensions=None):
        self._token, self._extensions = token, extensions

    def token(self):
        return self._token

    def extensions(self):
        return self._extensions


def oauth(provider):
    return sasl_mechanism("OAUTHBEARER", sasl_oauth_token_provider=provider)


def test_the_token_and_its_extensions_go_out_in_one_message():
    mechanism = oauth(Provider(extensions={"logicalCluster": "lkc-1"}))
    assert mechanism.auth_bytes() == b"n,,\x01auth=Bearer abc.def\x01logicalCluster=lkc-1\x01\x01"
    mechanism.receive(b"")
    assert mechanism.is_authenticated()


def test_a_refused_token_is_acknowledged_and_reported():
    mechanism = oauth(Provider())
    mechanism.auth_bytes()
    mechanism.receive(b'{"status":"invalid_token"}')
    assert mechanism.auth_bytes() == b"\x01"
    with pytest.raises(SaslAuthenticationFailedError, match="invalid_token"):
        mechanism.receive(b"")


def test_a_provider_without_extensions_is_enough():
    mechanism = oauth(types.SimpleNamespace(token=lambda: "t"))
    assert mechanism.auth_bytes() == b"n,,\x01auth=Bearer t\x01\x01"


@pytest.mark.parametrize("token", ["", None, "a b", "a\x01auth=Bearer x", "t\u00f6ken"])
def test_a_token_that_could_break_the_message_is_refused(token):
    with pytest.raises(SaslAuthenticationFailedError):
        oauth(Provider(token)).auth_bytes()


@pytest.mark.parametrize("extensions", [{"auth": "x"}, {"a-b": "x"}, {"a": "\x01"}, {"a": ""}])
def test_extensions_that_could_break_the_message_are_refused(extensions):
    with pytest.raises(KafkaConfigurationError):
        oauth(Provider(extensions=extensions)).auth_bytes()


def test_without_a_provider_or_an_endpoint_the_configuration_is_incomplete():
    with pytest.raises(KafkaConfigurationError, match="token_endpoint_url"):
        sasl_mechanism("OAUTHBEARER")
    with pytest.raises(KafkaConfigurationError, match=r"token\(\)"):
        oauth(object())


# OIDC


class Unhashable:
    __hash__ = None

    def __init__(self, secret):
        self.secret = secret

    def __call__(self):
        return self.secret


class Endpoint:
    def __init__(self, *answers):
        self.answers, self.requests = list(answers), []

    def __call__(self, method, url, **more):
        self.requests.append((method, url, more))
        answer = self.answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        status, fields = answer
        return HttpAnswer(status, "Reason", json.dumps(fields).encode() if not isinstance(fields, bytes) else fields)


def oidc(endpoint, clock=None, **more):
    return OidcTokenProvider("https://login/token", "id", "s3cret", clock=clock or FakeClock(), fetch=endpoint, **more)


def test_a_token_is_kept_for_most_of_its_life_and_renewed_then():
    clock = FakeClock()
    endpoint = Endpoint(
        (200, {"access_token": "one", "expires_in": 100}), (200, {"access_token": "two", "expires_in": 100})
    )
    provider = oidc(endpoint, clock, scope="kafka")
    assert provider.token() == provider.token() == "one"
    clock.advance(79)
    assert provider.token() == "one"
    clock.advance(2)
    assert provider.token() == "two"
    method, url, more = endpoint.requests[0]
    assert (method, url) == ("POST", "https://login/token")
    assert more["body"] == b"grant_type=client_credentials&scope=kafka"
    assert more["headers"]["Authorization"] == "Basic aWQ6czNjcmV0"


def test_an_endpoint_that_is_away_does_not_matter_while_the_token_is_valid(caplog):
    clock = FakeClock()
    away = KafkaConnectionError("away")
    provider = oidc(Endpoint((200, {"access_token": "one", "expires_in": 100}), away, away), clock)
    provider.token()
    clock.advance(85)
    assert provider.token() == "one"
    assert "away" in caplog.text
    clock.advance(10)
    with pytest.raises(KafkaConnectionError):
        provider.token()


def test_the_life_of_a_token_is_read_from_itself_where_the_endpoint_is_silent():
    clock = FakeClock()
    claims = urlsafe_b64encode(json.dumps({"exp": clock.time() + 50}).encode()).decode().rstrip("=")
    endpoint = Endpoint((200, {"access_token": f"h.{claims}.s"}), (200, {"access_token": "opaque"}))
    provider = oidc(endpoint, clock)
    provider.token()
    clock.advance(41)
    assert provider.token() == "opaque"


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        ((401, {"error": "invalid_client", "error_description": "no such client"}), AuthenticationError),
        ((400, b"not json"), AuthenticationError),
        ((200, {"token": "x"}), AuthenticationError),
        ((200, [1]), AuthenticationError),
        ((429, {}), KafkaConnectionError),
        ((503, b""), KafkaConnectionError),
    ],
)
def test_errors_of_the_endpoint_say_whether_to_try_again_and_hold_no_secret(answer, error):
    provider = oidc(Endpoint(answer))
    with pytest.raises(error) as caught:
        provider.token()
    assert "s3cret" not in str(caught.value) + repr(provider)


def test_a_valid_token_serves_while_another_thread_renews_it():
    """The endpoint may take its time; nobody waits for it who need not."""
    clock, asked, leave = FakeClock(), threading.Event(), threading.Event()
    endpoint = Endpoint((200, {"access_token": "one", "expires_in": 100}), (200, {"access_token": "two"}))

    def slow(*args, **options):
        if endpoint.requests:
            asked.set()
            assert leave.wait(30)
        return endpoint(*args, **options)

    provider = oidc(slow, clock)
    assert provider.token() == "one"
    clock.advance(85)
    found = []
    renewing = threading.Thread(target=lambda: found.append(provider.token()))
    renewing.start()
    assert asked.wait(20)
    assert provider.token() == "one"
    leave.set()
    renewing.join(20)
    assert found == ["two"]
    assert provider.token() == "two"


def test_one_thread_asks_for_the_first_token_and_the_others_get_the_same():
    asked, leave = threading.Event(), threading.Event()
    endpoint = Endpoint((200, {"access_token": "one", "expires_in": 100}))

    def slow(*args, **options):
        asked.set()
        assert leave.wait(30)
        return endpoint(*args, **options)

    provider = oidc(slow)
    found = []
    threads = [threading.Thread(target=lambda: found.append(provider.token())) for _ in range(5)]
    for thread in threads:
        thread.start()
    assert asked.wait(20)
    leave.set()
    for thread in threads:
        thread.join(60)
    assert found == ["one"] * 5
    assert len(endpoint.requests) == 1


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_call_that_another_thread_made_at_a_fork_is_made_again_in_the_child():
    begun, leave = threading.Event(), threading.Event()
    shared = SharedCall()

    def slow():
        begun.set()
        return leave.wait(30)

    thread = threading.Thread(target=shared.run, args=(slow,))
    thread.start()
    assert begun.wait(20)
    child = os.fork()
    if not child:
        os._exit(0 if not shared.under_way and shared.run(lambda: 42) == 42 else 1)
    leave.set()
    thread.join(60)
    assert os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize(
    "secret", [bytearray(b"s3cret"), b"s3cret", lambda: bytearray(b"s3cret"), Unhashable("s3cret")]
)
def test_a_secret_of_any_kind_makes_one_provider(secret):
    config = {
        "sasl_oauthbearer_token_endpoint_url": "https://login/kinds",
        "sasl_oauthbearer_client_id": f"me-{type(secret).__name__}",
        "sasl_oauthbearer_client_secret": secret,
    }
    provider = provider_from_config(config)
    assert provider_from_config(dict(config)) is provider
    endpoint = provider._fetch = Endpoint((200, {"access_token": "one"}))
    assert provider.token() == "one"
    assert endpoint.requests[0][2]["headers"]["Authorization"] == (
        "Basic " + b64encode(f"{config['sasl_oauthbearer_client_id']}:s3cret".encode()).decode()
    )


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("https://login.example/token", False),
        ("http://127.0.0.1:8080/token", False),
        ("http://localhost/token", False),
        ("http://[::1]/token", False),
        ("http://me:PASSWORD@login.example/token?key=SECRET", True),
    ],
)
def test_a_secret_that_goes_over_the_network_in_clear_text_is_logged(url, told, caplog):
    OidcTokenProvider(url, "id", "s3cret")
    sentence = "The client secret for OAuth goes to {} in clear text: use an https URL for the token endpoint"
    texts = [record.getMessage() for record in caplog.records]
    assert texts == [sentence.format("http://me:***@login.example/token?***")] * told


def test_no_error_and_no_repr_shows_a_password_in_the_url_of_the_endpoint():
    url = "https://me:PASSWORD@login.example/token?client_secret=SECRET"
    provider = OidcTokenProvider(url, "id", "s3cret", fetch=Endpoint((503, {}), (401, {}), (200, {})))
    shown = repr(provider)
    for _ in range(3):
        with pytest.raises(KafkaError) as caught:
            provider.token()
        shown += str(caught.value)
    with pytest.raises(KafkaError) as caught:
        OidcTokenProvider(url.replace("https", "ftp"), "id", "s3cret")
    shown += str(caught.value)
    assert "PASSWORD" not in shown
    assert "SECRET" not in shown
    assert shown.count("me:***@login.example") == 5


def test_text_of_an_endpoint_cannot_forge_log_lines():
    forged = "no\n2026-01-01 CRITICAL all is lost \x1b[2J"
    with pytest.raises(KafkaError) as caught:
        oidc(Endpoint((401, {"error": forged}))).token()
    assert str(caught.value).isprintable()


def test_the_endpoint_must_be_http():
    with pytest.raises(KafkaConfigurationError):
        OidcTokenProvider("file:///etc/passwd", "a", "b")


def test_the_options_of_a_client_make_one_provider_that_is_kept():
    options = {
        "sasl_oauthbearer_token_endpoint_url": "https://login/token",
        "sasl_oauthbearer_client_id": "me",
        "sasl_oauthbearer_client_secret": "s3cret",
        "sasl_oauthbearer_audience": "kafka",
        "sasl_oauthbearer_connect_timeout_ms": 500,
        "sasl_login_refresh_window_factor": 0.5,
        "sasl_plain_username": "something else",
    }
    provider = provider_from_config(options)
    assert provider_from_config(options) is provider
    assert provider_from_config({**options, "sasl_oauthbearer_scope": "x"}) is not provider
    endpoint = provider._fetch = Endpoint((200, {"access_token": "one", "expires_in": 100}))
    provider.token()
    assert b"audience=kafka" in endpoint.requests[0][2]["body"]
    assert endpoint.requests[0][2]["timeout"] == 0.5
    assert "client me" in oauth(provider).auth_details()


def test_the_log_names_the_principal_of_a_jwt():
    token = "h." + urlsafe_b64encode(b'{"sub":"ann","exp":1}').decode().rstrip("=") + ".s"
    provider = oidc(Endpoint((200, {"access_token": token, "expires_in": 100})))
    provider.token()
    assert "sub ann" in oauth(provider).auth_details()


# AWS


def test_the_keys_and_the_region_of_the_configuration_come_first():
    mechanism = SaslMechanismAwsMskIam(
        host="b-1.kafka.eu-west-1.amazonaws.com",
        clock=FakeClock(),
        sasl_aws_region="us-east-2",
        sasl_aws_access_key_id="MINE",
        sasl_aws_secret_access_key="s",
    )
    assert json.loads(mechanism.auth_bytes())["x-amz-credential"].startswith("MINE/20231114/us-east-2/")
    with pytest.raises(KafkaConfigurationError):
        SaslMechanismAwsMskIam(host="b-1.kafka.eu-west-1.amazonaws.com", sasl_aws_access_key_id="MINE")


def test_the_example_of_a_presigned_url_in_the_aws_manual():
    params = presign(
        AwsCredentials("AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"),
        host="examplebucket.s3.amazonaws.com",
        region="us-east-1",
        service="s3",
        timestamp="20130524T000000Z",
        expires=86400,
        path="/test.txt",
        payload_hash="UNSIGNED-PAYLOAD",
    )
    assert params["X-Amz-Signature"] == "aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"


def test_the_msk_message_has_the_documented_fields():
    mechanism = SaslMechanismAwsMskIam(
        host="b-1.demo.abc123.c2.kafka.eu-west-1.amazonaws.com",
        clock=FakeClock(),
        credentials=lambda: AwsCredentials("AKIA", "secret", "session"),
    )
    fields = json.loads(mechanism.auth_bytes())
    assert fields["version"] == "2020_10_22"
    assert fields["action"] == "kafka-cluster:Connect"
    assert fields["x-amz-credential"] == "AKIA/20231114/eu-west-1/kafka-cluster/aws4_request"
    assert fields["x-amz-security-token"] == "session"
    assert set(fields) >= {"host", "user-agent", "x-amz-algorithm", "x-amz-date", "x-amz-expires", "x-amz-signature"}
    mechanism.receive(b'{"version":"2020_10_22","request-id":"1"}')
    assert mechanism.is_authenticated()


@pytest.mark.parametrize("reply", [b"", b"[]", b"{}", b'{"version":"1"}'])
def test_an_odd_reply_of_msk_is_a_refusal(reply):
    mechanism = SaslMechanismAwsMskIam(
        host="b-1.kafka.eu-west-1.amazonaws.com", credentials=lambda: AwsCredentials("A", "b")
    )
    mechanism.auth_bytes()
    with pytest.raises(SaslAuthenticationFailedError):
        mechanism.receive(reply)


def test_a_host_without_a_region_needs_the_environment(monkeypatch):
    monkeypatch.delenv("AWS_REGION", raising=False)
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    with pytest.raises(KafkaConfigurationError, match="AWS_REGION"):
        SaslMechanismAwsMskIam(host="broker")
    monkeypatch.setenv("AWS_REGION", "eu-north-1")
    assert "eu-north-1" in SaslMechanismAwsMskIam(host="broker").auth_details()


def chain(environ, tmp_path, *answers, clock=None):
    endpoint = Endpoint(*answers)
    made = CredentialChain({"HOME": str(tmp_path), **environ}, clock=clock or FakeClock(), fetch=endpoint)
    return made, endpoint


def test_credentials_come_from_the_environment(tmp_path):
    found = chain({"AWS_ACCESS_KEY_ID": "A", "AWS_SECRET_ACCESS_KEY": "s3cret"}, tmp_path)[0]()
    assert (found.access_key, found.secret_key) == ("A", "s3cret")
    assert "s3cret" not in repr(found)


def test_credentials_come_from_the_profile(tmp_path):
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text(
        "[profile dev]\naws_access_key_id = A\naws_secret_access_key = B\naws_session_token = C\n", encoding="utf-8"
    )
    found = chain({"AWS_PROFILE": "dev"}, tmp_path)[0]()
    assert (found.access_key, found.secret_key, found.session_token) == ("A", "B", "C")


@pytest.mark.parametrize("option", ["role_arn", "sso_session", "credential_process"])
def test_a_profile_that_points_elsewhere_is_named_with_what_to_do(tmp_path, option):
    (tmp_path / ".aws").mkdir()
    (tmp_path / ".aws" / "config").write_text(f"[profile dev]\n{option} = somewhere\n", encoding="utf-8")
    with pytest.raises(KafkaConfigurationError) as caught:
        chain({"AWS_PROFILE": "dev"}, tmp_path)[0]()
    assert "'dev'" in str(caught.value)
    assert option in str(caught.value)
    assert "aws configure export-credentials --profile dev" in str(caught.value)


TEMPORARY = {"AccessKeyId": "A", "SecretAccessKey": "B", "Token": "C", "Expiration": "2023-11-14T23:13:20Z"}


def test_credentials_of_a_container_are_kept_until_shortly_before_they_end(tmp_path):
    clock = FakeClock()  # 2023-11-14T22:13:20Z
    find, endpoint = chain(
        {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/x"}, tmp_path, (200, TEMPORARY), (200, TEMPORARY), clock=clock
    )
    assert find() == find()
    assert len(endpoint.requests) == 1
    assert endpoint.requests[0][1] == "http://169.254.170.2/v2/x"
    clock.advance(3400)
    find()
    assert len(endpoint.requests) == 2


def test_credentials_come_from_the_instance(tmp_path):
    find, endpoint = chain({}, tmp_path, (200, b"session"), (200, b"my-role"), (200, TEMPORARY))
    assert find().session_token == "C"
    assert endpoint.requests[2][1].endswith("/iam/security-credentials/my-role")
    assert endpoint.requests[2][2]["headers"] == {"X-aws-ec2-metadata-token": "session"}


def test_credentials_come_from_a_web_identity(tmp_path):
    (tmp_path / "token").write_text("jwt\n", encoding="utf-8")
    reply = {
        "AssumeRoleWithWebIdentityResponse": {
            "AssumeRoleWithWebIdentityResult": {
                "Credentials": {"AccessKeyId": "A", "SecretAccessKey": "B", "SessionToken": "C", "Expiration": 1.7e9}
            }
        }
    }
    environ = {
        "AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"),
        "AWS_ROLE_ARN": "arn:x",
        "AWS_REGION": "eu-west-1",
    }
    find, endpoint = chain(environ, tmp_path, (200, reply))
    assert find().session_token == "C"
    assert endpoint.requests[0][1] == "https://sts.eu-west-1.amazonaws.com/"


def test_no_credentials_anywhere_names_where_was_looked(tmp_path):
    find, _ = chain({}, tmp_path, KafkaConnectionError("no such host"))
    with pytest.raises(AuthenticationError, match="instance service"):
        find()
    find, _ = chain({"AWS_EC2_METADATA_DISABLED": "true"}, tmp_path)
    with pytest.raises(AuthenticationError):
        find()


CONTAINER = {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/x"}


def web_identity(tmp_path):
    (tmp_path / "token").write_text("jwt", encoding="utf-8")
    return {"AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "token"), "AWS_ROLE_ARN": "arn:x"}


@pytest.mark.parametrize("status", [408, 429, 500, 503])
@pytest.mark.parametrize("place", ["sts", "container", "instance session", "instance roles", "instance role"])
def test_an_outage_of_aws_is_an_error_that_is_retried(tmp_path, status, place):
    environ = {"sts": web_identity(tmp_path), "container": CONTAINER}.get(place, {})
    before = {"instance roles": [(200, b"session")], "instance role": [(200, b"session"), (200, b"role")]}
    find, _ = chain(environ, tmp_path, *before.get(place, []), (status, b""))
    with pytest.raises(KafkaConnectionError, match=str(status)) as caught:
        find()
    assert caught.value.retriable


@pytest.mark.parametrize("code", ["Throttling", "IDPCommunicationError"])
def test_sts_throttles_with_status_400_which_is_retried(tmp_path, code):
    find, _ = chain(web_identity(tmp_path), tmp_path, (400, {"Error": {"Code": code}}))
    with pytest.raises(KafkaConnectionError, match=code):
        find()


@pytest.mark.parametrize(
    "answer",
    [(403, {"Error": {"Code": "AccessDenied"}}), (400, b""), (200, {}), (200, b"no json"), (200, [1])],
)
def test_what_aws_refuses_is_an_authentication_error(tmp_path, answer):
    for environ in (web_identity(tmp_path), CONTAINER):
        with pytest.raises(AuthenticationError):
            chain(environ, tmp_path, answer)[0]()


def test_a_token_file_of_aws_that_is_missing_is_a_configuration_error(tmp_path):
    environ = {"AWS_WEB_IDENTITY_TOKEN_FILE": str(tmp_path / "none"), "AWS_ROLE_ARN": "arn:x"}
    with pytest.raises(KafkaConfigurationError, match="AWS_WEB_IDENTITY_TOKEN_FILE"):
        chain(environ, tmp_path)[0]()


def test_aws_credentials_serve_until_their_end_while_renewing_them_fails(tmp_path, caplog):
    clock = FakeClock()
    answers = [(200, TEMPORARY), (500, b""), KafkaConnectionError("away"), (503, b""), (200, TEMPORARY)]
    find, endpoint = chain(CONTAINER, tmp_path, *answers, clock=clock)
    first = find()
    clock.advance(3600 - 240)
    assert find() is first
    assert "500" in caplog.text
    clock.advance(200)
    assert find() is first
    clock.advance(35)
    with pytest.raises(KafkaConnectionError, match="503"):
        find()
    assert find() == first
    assert len(endpoint.requests) == 5


def test_the_instance_service_that_has_answered_once_is_retried_when_it_is_away(tmp_path):
    clock = FakeClock()
    answers = [(200, b"session"), (200, b"role"), (200, TEMPORARY), KafkaConnectionError("away")]
    find, _ = chain({}, tmp_path, *answers, clock=clock)
    find()
    clock.advance(3600)
    with pytest.raises(KafkaConnectionError, match="away"):
        find()


def test_valid_aws_credentials_serve_while_another_thread_renews_them(tmp_path):
    clock, asked, leave = FakeClock(), threading.Event(), threading.Event()
    endpoint = Endpoint((200, TEMPORARY), (200, {**TEMPORARY, "AccessKeyId": "NEW"}))

    def slow(*args, **options):
        if endpoint.requests:
            asked.set()
            assert leave.wait(30)
        return endpoint(*args, **options)

    find = CredentialChain({"HOME": str(tmp_path), **CONTAINER}, clock=clock, fetch=slow)
    first = find()
    clock.advance(3400)
    found = []
    renewing = threading.Thread(target=lambda: found.append(find().access_key))
    renewing.start()
    assert asked.wait(20)
    assert find() is first
    leave.set()
    renewing.join(20)
    assert found == ["NEW"]


# GSSAPI: the package is optional, so the exchange is tested with a stand-in that counts its steps


class FakeGssError(Exception):
    pass


def fake_gssapi(replies, offer=b"\x01\0\0\0"):
    """`replies`: for each step whether it completes the context, and what it sends."""

    class Context:
        complete = False

        def __init__(self, name, **_):
            module.asked_for = (name.text, name.name_type)
            self.steps = iter(replies)
            self.given = []

        def step(self, token=None):
            self.given.append(token)
            step = next(self.steps)
            if isinstance(step, Exception):
                raise step
            self.complete, out = step
            return out

        def unwrap(self, token):
            return types.SimpleNamespace(message=offer)

        def wrap(self, message, encrypt):
            return types.SimpleNamespace(message=b"wrapped:" + message)

    class Name:
        def __init__(self, text, name_type=None):
            self.text, self.name_type = text, name_type

        def canonicalize(self, _mechanism):
            return self

    module = types.ModuleType("gssapi")
    module.Name, module.SecurityContext = Name, Context
    module.NameType = types.SimpleNamespace(hostbased_service="host", kerberos_principal="principal")
    module.MechType = types.SimpleNamespace(kerberos=1)
    module.exceptions = types.SimpleNamespace(GSSError=FakeGssError)
    return module


@pytest.mark.parametrize("steps", [[(False, b"one"), (True, None)], [(True, b"one")]])
def test_gssapi_establishes_the_context_and_declines_protection(monkeypatch, steps):
    monkeypatch.setitem(sys.modules, "gssapi", fake_gssapi(steps))
    mechanism = sasl_mechanism("GSSAPI", host="b1")
    sent = []
    while not mechanism.is_done():
        sent.append(mechanism.auth_bytes())
        mechanism.receive(b"token" if len(sent) <= len(steps) else b"")
    assert sent == [b"one", b"", b"wrapped:\x01\0\0\0"][:1] + ([b""] if len(steps) == 2 else []) + [
        b"wrapped:\x01\0\0\0"
    ]
    assert mechanism.is_authenticated()
    assert "kafka@b1" in mechanism.auth_details()


@pytest.mark.parametrize(
    ("name", "kind"), [("kafka/b1.example@EXAMPLE.COM", "principal"), ("kafka@b1.example", "host"), ("kafka", "host")]
)
def test_the_name_of_the_broker_is_a_principal_or_a_service_at_a_host(monkeypatch, name, kind):
    module = fake_gssapi([(True, b"one")])
    monkeypatch.setitem(sys.modules, "gssapi", module)
    sasl_mechanism("GSSAPI", host="b1", sasl_kerberos_name=name).auth_bytes()
    assert module.asked_for == (name, kind)


@pytest.mark.parametrize("offer", [b"", b"\x01", b"\x06\0\0\0"])
def test_a_broker_that_demands_protection_is_refused(monkeypatch, offer):
    monkeypatch.setitem(sys.modules, "gssapi", fake_gssapi([(True, b"one")], offer))
    mechanism = sasl_mechanism("GSSAPI", sasl_kerberos_domain_name="b1")
    mechanism.auth_bytes()
    with pytest.raises(SaslAuthenticationFailedError):
        mechanism.receive(b"offer")


def test_a_missing_ticket_says_what_to_look_at(monkeypatch):
    monkeypatch.setitem(sys.modules, "gssapi", fake_gssapi([FakeGssError("no credentials cache")]))
    with pytest.raises(SaslAuthenticationFailedError, match="klist"):
        sasl_mechanism("GSSAPI", host="b1").auth_bytes()


def test_without_the_package_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "gssapi", None)
    with pytest.raises(KafkaConfigurationError, match="pip install"):
        sasl_mechanism("GSSAPI", host="b1")


@pytest.mark.parametrize("url", ["ftp://h", "h:8080", "http://", "http://u:pass@[", "https://u:pass@h:99999"])
def test_a_token_endpoint_that_is_not_a_url_is_a_configuration_error(url):
    with pytest.raises(KafkaConfigurationError, match="must be an http") as refused:
        OidcTokenProvider(url, "ada", "secret")
    assert "pass@" not in str(refused.value)
