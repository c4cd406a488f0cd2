"""One small HTTP request, for token endpoints and credential services. Blocks: worker threads only."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from kafka.errors import KafkaConfigurationError, KafkaConnectionError

if TYPE_CHECKING:
    import ssl
    import urllib.request

__all__ = ["HttpAnswer", "http_request"]

# Tokens and credentials are a few kilobytes; more than this is not an answer to us.
_LARGEST_BODY: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """Status, reason and body; the body may be secret and is not shown."""

    status: int
    reason: str
    body: bytes

    def __repr__(self) -> str:
        return f"<HttpAnswer {self.status} {self.reason}, {len(self.body)} bytes>"


def http_request(
    method: str,
    url: str,
    *,
    body: bytes | None = None,
    headers: Mapping[str, str] | None = None,
    timeout: float = 10.0,
    ssl_context: ssl.SSLContext | None = None,
    proxies: bool = True,
) -> HttpAnswer:
    """Make a request and return the answer, whatever its status. KafkaConnectionError if there is none.

    The proxies of the environment are used unless `proxies` is False (services of the machine itself).
    """
    import urllib.error
    import urllib.request
    from http.client import HTTPException

    if urlsplit(url).scheme not in {"http", "https"}:
        raise KafkaConfigurationError(f"Not an http(s) URL: {url!r}")
    handlers: list[urllib.request.BaseHandler] = [_no_redirect()]
    if ssl_context is not None:
        handlers.append(urllib.request.HTTPSHandler(context=ssl_context))
    if not proxies:
        handlers.append(urllib.request.ProxyHandler({}))
    request = urllib.request.Request(url, data=body, headers=dict(headers or {}), method=method)  # noqa: S310 - checked
    try:
        with urllib.request.build_opener(*handlers).open(request, timeout=timeout) as answer:
            return HttpAnswer(answer.status, answer.reason, answer.read(_LARGEST_BODY))
    except urllib.error.HTTPError as error:
        with error:
            return HttpAnswer(error.code, str(error.reason), error.read(_LARGEST_BODY))
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", error)
        raise KafkaConnectionError(f"No answer from {url}: {reason}") from error


def _no_redirect() -> urllib.request.HTTPRedirectHandler:
    """Credentials go to the configured place and nowhere else."""
    import urllib.request

    class NoRedirect(urllib.request.HTTPRedirectHandler):
        def redirect_request(self, *_args: object, **_kwargs: object) -> None:
            return None

    return NoRedirect()
