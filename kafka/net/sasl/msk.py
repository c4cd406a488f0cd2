"""AWS_MSK_IAM: Amazon MSK's own mechanism, one message with a signature of an AWS identity.

Nothing of AWS' SDK is needed or imported: the signature is `sigv4`, the identity comes from
`kafka.net.sasl.aws`.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Generator
from datetime import datetime, timezone
from typing import Any, ClassVar, Final

from kafka._runtime.clock import SYSTEM_CLOCK, Clock
from kafka.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from kafka.net.sasl.abc import ExchangeMechanism
from kafka.net.sasl.aws import find_credentials
from kafka.net.sasl.sigv4 import AwsCredentials, presign

__all__ = ["SaslMechanismAwsMskIam"]

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
