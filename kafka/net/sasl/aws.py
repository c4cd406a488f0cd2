"""Where an AWS identity comes from, in the order of AWS' own tools. Blocks: worker threads only.

Environment; web identity (EKS); shared files; container service (ECS, EKS pod identity); instance
service (EC2, IMDSv2). The documents of the services are Amazon's public ones.
"""

from __future__ import annotations

import configparser
import json
import os
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlencode, urlsplit

from kafka._runtime.clock import SYSTEM_CLOCK, Clock
from kafka._text import without_passwords
from kafka.errors import AuthenticationError, KafkaConfigurationError, KafkaConnectionError
from kafka.net.http import HttpAnswer, http_request
from kafka.net.sasl.sigv4 import AwsCredentials
from kafka.net.workers import SharedCall

__all__ = ["CredentialChain", "find_credentials"]

_CONTAINER_HOST: Final = "http://169.254.170.2"
_INSTANCE_HOST: Final = "http://169.254.169.254"
# Temporary credentials are renewed this long before they end, in seconds.
_EARLY: Final = 300.0
# Options of a profile that say where its credentials are instead of naming them.
_ELSEWHERE: Final = ("role_arn", "sso_session", "sso_start_url", "credential_process", "login_session")
# The services of the machine answer at once or not at all.
_LOCAL_TIMEOUT: Final = 1.0


class CredentialChain:
    """Asks each source in turn and keeps temporary credentials until shortly before they end."""

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
        """Return credentials that are valid now; AuthenticationError if no source has any."""
        kept = self._kept
        if kept is not None and kept.expires_at is not None and self._clock.time() < kept.expires_at - _EARLY:
            return kept
        return self._search.run(self._find)

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
            "WebIdentityToken": Path(file).read_text(encoding="utf-8").strip(),
        }
        host = f"sts.{region}.{domain}" if region else f"sts.{domain}"
        answer = self._fetch(
            "POST",
            f"https://{host}/",
            body=urlencode(form).encode(),
            headers={"Accept": "application/json", "Content-Type": "application/x-www-form-urlencoded"},
        )
        if answer.status != 200:
            raise AuthenticationError(f"AWS STS refused the web identity for {role}: {answer.status} {answer.reason}")
        reply = json.loads(answer.body)["AssumeRoleWithWebIdentityResponse"]["AssumeRoleWithWebIdentityResult"]
        found = reply["Credentials"]
        return AwsCredentials(
            found["AccessKeyId"], found["SecretAccessKey"], found["SessionToken"], float(found["Expiration"])
        )

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
                # Going on to the next source would sign as somebody else.
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
            token = Path(token_file).read_text(encoding="utf-8").strip()
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
            return None  # not on EC2
        headers = {"X-aws-ec2-metadata-token": session.body.decode()} if session.status == 200 else {}
        base = f"{host}/latest/meta-data/iam/security-credentials/"
        roles = self._local("GET", base, headers)
        if roles.status != 200 or not roles.body.strip():
            return None  # no role is attached to the instance
        url = base + roles.body.decode().split()[0]
        return self._from_json(self._local("GET", url, headers), url)

    def _local(self, method: str, url: str, headers: Mapping[str, str]) -> HttpAnswer:
        return self._fetch(method, url, headers=headers, timeout=_LOCAL_TIMEOUT, proxies=False)

    @staticmethod
    def _from_json(answer: HttpAnswer, url: str) -> AwsCredentials:
        try:
            if answer.status != 200:
                raise ValueError(f"{answer.status} {answer.reason}")
            fields = json.loads(answer.body)
            expires = datetime.fromisoformat(fields["Expiration"].replace("Z", "+00:00")).timestamp()
            return AwsCredentials(fields["AccessKeyId"], fields["SecretAccessKey"], fields["Token"], expires)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise AuthenticationError(
                f"No AWS credentials from {without_passwords(url)}: {type(error).__name__} {error}"
            ) from error


find_credentials: Final = CredentialChain()
