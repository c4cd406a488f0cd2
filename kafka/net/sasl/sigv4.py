"""AWS Signature Version 4 of a URL's query ("presigning"), as AWS documents it. Pure, no I/O."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import quote

__all__ = ["AwsCredentials", "presign"]


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
