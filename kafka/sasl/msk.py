"""AWS_MSK_IAM: the mechanism of Amazon MSK, one message with a signature of an AWS identity.

The AWS SDK is not needed. The signature is AWS Signature Version 4 of a URL's query ("presigning"). The identity comes
from the sources of AWS' own tools, in their order: environment; web identity (EKS); shared files; container service
(ECS, EKS pod identity); instance service (EC2, IMDSv2). Finding it blocks, so it runs on worker threads.
"""

from __future__ import annotations

import configparser
import hashlib
import hmac
import json
import logging
import os
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, ClassVar, Final
from urllib.parse import quote, urlencode, urlsplit

from kafka._runtime.clock import SYSTEM_CLOCK, Clock
from kafka._runtime.workers import SharedCall
from kafka._text import without_passwords
from kafka.errors import (
    AuthenticationError,
    KafkaConfigurationError,
    KafkaConnectionError,
    KafkaError,
    SaslAuthenticationFailedError,
)
from kafka.sasl.abc import ExchangeMechanism
from kafka.sasl.http import HttpAnswer, http_request

__all__ = ["AwsCredentials", "CredentialChain", "SaslMechanismAwsMskIam", "find_credentials", "presign"]

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class AwsCredentials:
    """A key, its secret, and the session's token where the key is temporary. Shows the key only."""

    access_key: str
    secret_key: str
    session_token: str | None = None
    expires_at: float | None = None

    def __repr__(self) -> str:
        return f"<AwsCredentials {self.access_key}>"


def presign(
    credentials: AwsCredentials,
    *,
    host: str,
    region: str,
    service: str,
    timestamp: str,
    expires: int,
    query: Mapping[str, str] | None = None,
    path: str = "/",
    payload_hash: str = hashlib.sha256(b"").hexdigest(),
) -> dict[str, str]:
    """Return the query of a signed GET, the signature included. `timestamp` is like 20130524T000000Z."""
    scope = f"{timestamp[:8]}/{region}/{service}/aws4_request"
    params = {
        **(query or {}),
        "X-Amz-Algorithm": "AWS4-HMAC-SHA256",
        "X-Amz-Credential": f"{credentials.access_key}/{scope}",
        "X-Amz-Date": timestamp,
        "X-Amz-Expires": str(expires),
        "X-Amz-SignedHeaders": "host",
    }
    if credentials.session_token is not None:
        params["X-Amz-Security-Token"] = credentials.session_token
    canonical_query = "&".join(f"{quote(key, safe='-_.~')}={quote(params[key], safe='-_.~')}" for key in sorted(params))
    canonical = "\n".join(("GET", path, canonical_query, f"host:{host}", "", "host", payload_hash))
    to_sign = "\n".join(("AWS4-HMAC-SHA256", timestamp, scope, hashlib.sha256(canonical.encode()).hexdigest()))
    key = f"AWS4{credentials.secret_key}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    params["X-Amz-Signature"] = hmac.digest(key, to_sign.encode(), "sha256").hex()
    return params


_CONTAINER_HOST: Final = "http://169.254.170.2"
_INSTANCE_HOST: Final = "http://169.254.169.254"
# Temporary credentials are renewed this long before they end, in seconds; while that fails, they serve until this
# close to their end (clocks differ).
_EARLY: Final = 300.0
_LAST_USE: Final = 10.0
# What STS says with status 400, and what another attempt may cure: it throttles, or cannot reach the identity provider.
_TEMPORARY: Final = frozenset({"IDPCommunicationError", "RequestLimitExceeded", "Throttling", "ThrottlingException"})
# Options of a profile that say where its credentials are instead of naming them.
_ELSEWHERE: Final = ("role_arn", "sso_session", "sso_start_url", "credential_process", "login_session")
# The services of the machine answer at once or not at all.
_LOCAL_TIMEOUT: Final = 1.0


class CredentialChain:
    """Asks each source in turn. Temporary credentials are kept, and renewed shortly before they end."""

    def __init__(
        self,
        environ: Mapping[str, str] | None = None,
        *,
        clock: Clock = SYSTEM_CLOCK,
        fetch: Callable[..., HttpAnswer] = http_request,
    ) -> None:
        self._environ: Mapping[str, str] = os.environ if environ is None else environ
        self._clock = clock
        self._fetch = fetch
        self._search: SharedCall[AwsCredentials] = SharedCall()  # one at a time, however many connections ask
        self._kept: AwsCredentials | None = None

    def __call__(self) -> AwsCredentials:
        """Return credentials that are valid now.

        AuthenticationError if no source has any; KafkaConnectionError if a source has an outage, which passes.
        """
        kept = self._kept
        left = kept.expires_at - self._clock.time() if kept is not None and kept.expires_at is not None else 0.0
        if kept is not None and left > _EARLY:
            return kept
        if kept is not None and left > _LAST_USE and self._search.under_way:
            return kept
        try:
            return self._search.run(self._find)
        except KafkaError as error:
            if kept is None or left <= _LAST_USE:
                raise
            log.warning("Could not renew the AWS credentials, the present ones stay in use: %s", error)
            return kept

    def _find(self) -> AwsCredentials:
        for source in (
            self._from_environment,
            self._from_web_identity,
            self._from_files,
            self._from_container,
            self._from_instance,
        ):
            found = source()
            if found is not None:
                self._kept = found
                return found
        raise AuthenticationError(
            "No AWS credentials found: not in the environment (AWS_ACCESS_KEY_ID), a web identity, the shared files "
            "(~/.aws/credentials), the container service or the instance service"
        )

    def _from_environment(self) -> AwsCredentials | None:
        key, secret = self._environ.get("AWS_ACCESS_KEY_ID"), self._environ.get("AWS_SECRET_ACCESS_KEY")
        return AwsCredentials(key, secret, self._environ.get("AWS_SESSION_TOKEN")) if key and secret else None

    def _from_web_identity(self) -> AwsCredentials | None:
        file, role = self._environ.get("AWS_WEB_IDENTITY_TOKEN_FILE"), self._environ.get("AWS_ROLE_ARN")
        if not (file and role):
            return None
        region = self._environ.get("AWS_REGION") or self._environ.get("AWS_DEFAULT_REGION")
        domain = "amazonaws.com.cn" if (region or "").startswith("cn-") else "amazonaws.com"
        form = {
            "Action": "AssumeRoleWithWebIdentity",
            "Version": "2011-06-15",
            "RoleArn": role,
            "RoleSessionName": self._environ.get("AWS_ROLE_SESSION_NAME", "purekafka"),
            "WebIdentityToken": _token_in(file, "AWS_WEB_IDENTITY_TOKEN_FILE"),
        }
        host = f"sts.{region}.{domain}" if region else f"sts.{domain}"
        answer = self._fetch(
            "POST",
            f"https://{host}/",
            body=urlencode(form).encode(),
            headers={"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"},
        )
        if answer.status != 200:
            raise _refusal(answer, f"AWS STS refused the web identity for {role}")
        try:
            reply = json.loads(answer.body)["AssumeRoleWithWebIdentityResponse"]["AssumeRoleWithWebIdentityResult"]
            found = reply["Credentials"]
            return AwsCredentials(
                found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"], float(found["Expiration"])
            )
        except (ValueError, KeyError, TypeError) as error:
            raise AuthenticationError(
                f"AWS STS answered without credentials for {role}: {type(error).__name__} {error}"
            ) from error

    def _from_files(self) -> AwsCredentials | None:
        profile = self._environ.get("AWS_PROFILE") or self._environ.get("AWS_DEFAULT_PROFILE") or "default"
        home = Path(self._environ.get("HOME", "~")).expanduser() / ".aws"
        places = (
            (self._environ.get("AWS_SHARED_CREDENTIALS_FILE") or home / "credentials", profile),
            (
                self._environ.get("AWS_CONFIG_FILE") or home / "config",
                profile if profile == "default" else f"profile {profile}",
            ),
        )
        for file, section in places:
            parser = configparser.RawConfigParser()
            try:
                parser.read(file, encoding="utf-8")
            except configparser.Error as error:
                raise KafkaConfigurationError(f"{file} cannot be read as an AWS file") from error
            if parser.has_option(section, "aws_access_key_id"):
                values = parser[section]
                return AwsCredentials(
                    values["aws_access_key_id"],
                    values.get("aws_secret_access_key", ""),
                    values.get("aws_session_token"),
                )
            elsewhere = [option for option in _ELSEWHERE if parser.has_option(section, option)]
            if elsewhere:
                # The next source would sign with another identity.
                raise KafkaConfigurationError(
                    f"The AWS profile {profile!r} in {file} gets its credentials by {elsewhere[0]}, which is not "
                    "followed here. Have AWS' own tool fetch them: eval \"$(aws configure export-credentials "
                    f'--profile {profile} --format env)", or give sasl_aws_access_key_id and the others'
                )
        return None

    def _from_container(self) -> AwsCredentials | None:
        relative = self._environ.get("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI")
        url = _CONTAINER_HOST + relative if relative else self._environ.get("AWS_CONTAINER_CREDENTIALS_FULL_URI")
        if not url:
            return None
        token = self._environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN")
        token_file = self._environ.get("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        if token_file:
            token = _token_in(token_file, "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE")
        if token and urlsplit(url).scheme == "http" and "\n" in token:
            raise KafkaConfigurationError("The container's authorization token has more than one line")
        answer = self._local("GET", url, {"Authorization": token} if token else {})
        return self._from_json(answer, url)

    def _from_instance(self) -> AwsCredentials | None:
        if self._environ.get("AWS_EC2_METADATA_DISABLED", "").lower() == "true":
            return None
        host = self._environ.get("AWS_EC2_METADATA_SERVICE_ENDPOINT", _INSTANCE_HOST).rstrip("/")
        try:
            session = self._local("PUT", f"{host}/latest/api/token", {"X-aws-ec2-metadata-token-ttl-seconds": "21600"})
        except KafkaConnectionError:
            if self._kept is not None:
                raise  # it has answered before
            return None  # not on EC2
        if session.is_temporary:
            raise _refusal(session, "No session of the AWS instance service")
        headers = {"X-aws-ec2-metadata-token": session.body.decode()} if session.status == 200 else {}
        base = f"{host}/latest/meta-data/iam/security-credentials/"
        roles = self._local("GET", base, headers)
        if roles.is_temporary:
            raise _refusal(roles, "No role from the AWS instance service")
        if roles.status != 200 or not roles.body.strip():
            return None  # no role is attached to the instance
        url = base + roles.body.decode().split()[0]
        return self._from_json(self._local("GET", url, headers), url)

    def _local(self, method: str, url: str, headers: Mapping[str, str]) -> HttpAnswer:
        return self._fetch(method, url, headers=headers, timeout=_LOCAL_TIMEOUT, proxies=False)

    @staticmethod
    def _from_json(answer: HttpAnswer, url: str) -> AwsCredentials:
        if answer.status != 200:
            raise _refusal(answer, f"No AWS credentials from {without_passwords(url)}")
        try:
            fields = json.loads(answer.body)
            expires = datetime.fromisoformat(fields["Expiration"].replace("Z", "+00:00")).timestamp()
            return AwsCredentials(fields["AccessKeyId"], fields["SecretAccessKey"], fields["Token"], expires)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise AuthenticationError(
                f"No AWS credentials from {without_passwords(url)}: {type(error).__name__} {error}"
            ) from error


def _refusal(answer: HttpAnswer, what: str) -> KafkaError:
    """Return the error of an answer that is not credentials: one that is retried if another attempt may succeed."""
    text = f"{what}: {answer.status} {answer.reason}"
    try:
        code = json.loads(answer.body)["Error"]["Code"]
    except (ValueError, KeyError, TypeError):
        code = None
    if isinstance(code, str):
        text = f"{text} ({code[:100]})"
    return KafkaConnectionError(text) if answer.is_temporary or code in _TEMPORARY else AuthenticationError(text)


def _token_in(file: str, option: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, ValueError) as error:
        raise KafkaConfigurationError(f"The file of {option} cannot be read: {error}") from error


find_credentials: Final = CredentialChain()


_VERSION: Final = "2020_10_22"
_EXPIRES: Final = 900  # seconds; what MSK's documentation uses
# b-1.name.abc123.c2.kafka.eu-west-1.amazonaws.com, also kafka-serverless and the .cn domain
_REGION: Final = re.compile(r"\.kafka(?:-serverless)?\.([a-z0-9-]+)\.amazonaws\.com(?:\.cn)?$")


class SaslMechanismAwsMskIam(ExchangeMechanism):
    """Signs with the AWS identity of the environment, the profile, the container or the instance."""

    name: ClassVar[str] = "AWS_MSK_IAM"
    blocks: ClassVar[bool] = True  # credentials may come from a service of the machine

    def __init__(
        self,
        *,
        host: str | None = None,
        clock: Clock = SYSTEM_CLOCK,
        credentials: Callable[[], AwsCredentials] = find_credentials,
        sasl_aws_region: str | None = None,
        sasl_aws_access_key_id: str | None = None,
        sasl_aws_secret_access_key: str | None = None,
        sasl_aws_session_token: str | None = None,
        **_config: Any,
    ) -> None:
        super().__init__()
        if not host:
            raise KafkaConfigurationError("SASL AWS_MSK_IAM needs the broker's host")
        self._host = host
        self._clock = clock
        self._region = sasl_aws_region or _find_region(host)
        self._credentials = credentials
        if sasl_aws_access_key_id is not None:
            if sasl_aws_secret_access_key is None:
                raise KafkaConfigurationError("sasl_aws_access_key_id needs sasl_aws_secret_access_key")
            given = AwsCredentials(sasl_aws_access_key_id, sasl_aws_secret_access_key, sasl_aws_session_token)
            self._credentials = lambda: given

    def exchange(self) -> Generator[bytes, bytes, None]:
        """One message; the reply repeats the version."""
        reply = yield self._payload()
        if json.loads(reply).get("version") != _VERSION:
            raise SaslAuthenticationFailedError(
                f"SASL AWS_MSK_IAM: the broker answered {reply[:200].decode('utf-8', 'replace')}"
            )

    def _payload(self) -> bytes:
        timestamp = datetime.fromtimestamp(self._clock.time(), timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        query = presign(
            self._credentials(),
            host=self._host,
            region=self._region,
            service="kafka-cluster",
            timestamp=timestamp,
            expires=_EXPIRES,
            query={"Action": "kafka-cluster:Connect"},
        )
        fields = {
            "version": _VERSION,
            "host": self._host,
            "user-agent": "purekafka",
            **{key.lower(): value for key, value in query.items()},
        }
        return json.dumps(fields, separators=(",", ":")).encode()

    def auth_details(self) -> str:
        """Name the region."""
        return f"in {self._region} via SASL AWS_MSK_IAM"


def _find_region(host: str) -> str:
    found = _REGION.search(host)
    region = found[1] if found else os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION")
    if not region:
        raise KafkaConfigurationError(
            f"SASL AWS_MSK_IAM: no AWS region in the broker's name ({host}); set sasl_aws_region or AWS_REGION"
        )
    return region
