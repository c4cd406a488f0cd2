"""TLS: a context from the ssl_* options, and an encrypted stream over a non-blocking socket.

The stream encrypts and decrypts in memory (`ssl.MemoryBIO`) and reads the socket in large pieces:
`ssl.SSLSocket` makes two system calls for every 16 kB record, and each gives the interpreter's
lock away. It offers the part of a socket's interface that a connection uses, so a connection does
not know whether it is encrypted.
"""

from __future__ import annotations

import os
import ssl
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final

from kafka.errors import KafkaConfigurationError, KafkaConnectionError, KafkaError, SslAuthenticationError
from kafka.net.keystore import read_keystore

if TYPE_CHECKING:
    import socket

__all__ = [
    "HandshakeClosedError",
    "HostnameMismatchError",
    "TlsStream",
    "certificate_names",
    "tls_context",
    "tls_error",
]

# One read of the socket while decrypting, and the most plain text taken per send, in bytes.
_READ_SIZE: Final = 262_144
_WRITE_SIZE: Final = 262_144
# X509_V_ERR_HOSTNAME_MISMATCH, X509_V_ERR_IP_ADDRESS_MISMATCH of OpenSSL's x509_vfy.h
_NAME_MISMATCHES: Final = frozenset({62, 64})

Password = str | bytes | bytearray | Callable[[], str | bytes | bytearray] | None


class HostnameMismatchError(SslAuthenticationError):
    """The certificate is valid, but for other names."""


class HandshakeClosedError(KafkaConnectionError):
    """The broker hung up on our first message: perhaps it does not speak TLS here."""


# The context…


def tls_context(config: Mapping[str, Any], *, check_hostname: bool | None = None) -> ssl.SSLContext:
    """Return the context that the ssl_* options of a client describe.

    KafkaConfigurationError names the option that does not work. `check_hostname` overrides the option.
    """
    given = config.get("ssl_context")
    if given is not None:
        assert isinstance(given, ssl.SSLContext)
        return given
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # TLS 1.2 at least, with verification of chain and name
    wanted = config.get("ssl_check_hostname", True) if check_hostname is None else check_hostname
    context.check_hostname = bool(wanted)
    _load_authorities(context, config)
    _load_certificate(context, config)
    ciphers = config.get("ssl_ciphers")
    if ciphers:
        try:
            context.set_ciphers(ciphers)
        except ssl.SSLError as error:
            raise KafkaConfigurationError(f"ssl_ciphers: no cipher can be selected from {ciphers!r}") from error
    return context


def _load_authorities(context: ssl.SSLContext, config: Mapping[str, Any]) -> None:
    cafile, text = config.get("ssl_cafile"), config.get("ssl_truststore_certificates")
    if text:
        with _blamed("ssl_truststore_certificates"):
            context.load_verify_locations(cadata=text)
    elif cafile:
        with _blamed(f"ssl_cafile {cafile}"):
            store = read_keystore(cafile, config.get("ssl_truststore_password"))
            if store is None:
                context.load_verify_locations(cafile=cafile)
            else:
                context.load_verify_locations(cadata=store.trusted)
    else:
        context.load_default_certs()
    crlfile = config.get("ssl_crlfile")
    if crlfile:
        with _blamed(f"ssl_crlfile {crlfile}"):
            context.load_verify_locations(cafile=crlfile)
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _load_certificate(context: ssl.SSLContext, config: Mapping[str, Any]) -> None:
    password: Password = config.get("ssl_password")
    if password is None:
        # Without this OpenSSL would ask on the terminal, in the middle of a service.
        password = _no_password
    chain, key = config.get("ssl_keystore_certificate_chain"), config.get("ssl_keystore_key")
    certfile, keyfile = config.get("ssl_certfile"), config.get("ssl_keyfile")
    if chain or key:
        # PEM takes certificates and key in one text, in any order; OpenSSL reads files only.
        with (
            _blamed("ssl_keystore_certificate_chain, ssl_keystore_key"),
            _as_file(f"{key or ''}\n{chain or ''}") as path,
        ):
            context.load_cert_chain(path, password=password)
    elif certfile:
        with _blamed(f"ssl_certfile {certfile}" + (f", ssl_keyfile {keyfile}" if keyfile else "")):
            store = read_keystore(certfile, config.get("ssl_keystore_password"), _as_text(config.get("ssl_password")))
            if store is None:
                context.load_cert_chain(certfile, keyfile, password=password)
                return
            if not store.key:
                raise KafkaConfigurationError("the store has no private key that ssl_keystore_password opens")
            with _as_file(f"{store.key}\n{store.chain}") as path:
                context.load_cert_chain(path, password=_no_password)
    elif keyfile:
        raise KafkaConfigurationError("ssl_keyfile without ssl_certfile: a key alone proves nothing")


def _as_text(password: Password) -> str | None:
    found = password() if callable(password) else password
    return bytes(found).decode() if isinstance(found, (bytes, bytearray)) else found


def _no_password() -> str:
    raise KafkaConfigurationError("the private key is encrypted: ssl_password is needed")


@contextmanager
def _blamed(option: str) -> Iterator[None]:
    """Name the option whose file or text does not work."""
    try:
        yield
    except KafkaError as error:
        raise KafkaConfigurationError(f"{option}: {error}") from error
    except ssl.SSLError as error:
        raise KafkaConfigurationError(f"{option}: not valid PEM, or the wrong password ({error})") from error
    except (OSError, ValueError, TypeError) as error:
        raise KafkaConfigurationError(f"{option}: {error}") from error


@contextmanager
def _as_file(text: str) -> Iterator[str]:
    """Give a path that reads as `text`; in memory where the system can, for it holds a private key."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("pem", os.MFD_CLOEXEC)
        with os.fdopen(fd, "wb") as file:
            file.write(text.encode())
            file.flush()
            yield f"/proc/self/fd/{fd}"
        return
    with tempfile.TemporaryDirectory() as folder:  # pragma: no cover - Linux has memfd_create
        path = os.path.join(folder, "pem")
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(text.encode())
        yield path


# The stream…


class TlsStream:
    """An encrypted stream with a socket's methods. Call `handshake` until it raises no BlockingIOError."""

    def __init__(self, sock: socket.socket, context: ssl.SSLContext, hostname: str) -> None:
        self._sock = sock
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._unsent = memoryview(b"")
        self._received = 0
        # A trailing dot makes a name absolute for DNS; certificates do not have it.
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=hostname.rstrip(".") or None)

    # As a socket…

    def fileno(self) -> int:
        """Return the socket's descriptor."""
        return self._sock.fileno()

    def handshake(self) -> None:
        """Continue the handshake to its end; BlockingIOError while the socket is not ready."""
        while True:
            try:
                self._tls.do_handshake()
            except ssl.SSLWantReadError:  # noqa: PERF203 - the error is the question of what next
                try:
                    self._flush()
                    alive = self._fill()
                except ConnectionError:
                    alive = False
                if not alive:
                    kind = KafkaConnectionError if self._received else HandshakeClosedError
                    raise kind("the connection was closed during the TLS handshake") from None
            except ssl.SSLError:
                # The alert tells the broker's log why; it is not our error if it cannot be sent.
                self._flush_quietly()
                raise
            else:
                self._flush()
                return

    def recv_into(self, buffer: bytearray | memoryview) -> int:
        """Receive as much as there is, up to the size of `buffer`; 0 at the end of the stream."""
        view, got = memoryview(buffer), 0
        while got < len(view):
            try:
                # The stub of `read` says bytes for every call; with a buffer it is a count.
                count: Any = self._tls.read(len(view) - got, view[got:])
            except ssl.SSLWantReadError:  # noqa: PERF203 - as above
                try:
                    self._flush()  # an answer to a key update
                    self._fill()
                except BlockingIOError:
                    if got:
                        return got
                    raise
            except (ssl.SSLZeroReturnError, ssl.SSLEOFError):
                # Kafka's messages carry their sizes, so a missing close_notify cuts nothing off unseen.
                return got
            else:
                if not count:
                    return got
                got += count
        return got

    def sendmsg(self, buffers: Sequence[bytes | bytearray | memoryview]) -> int:
        """Take as much of `buffers` as can be sent soon; returns how much, and may keep it for `flush`."""
        self._flush()
        taken = 0
        for buffer in buffers:
            view = memoryview(buffer)[: _WRITE_SIZE - taken]
            if len(view):
                taken += self._tls.write(view)
            if taken >= _WRITE_SIZE:
                break
        with suppress(BlockingIOError):  # the bytes are in our buffer now; `pending_out` is true
            self._flush()
        return taken

    @property
    def pending_out(self) -> bool:
        """Whether something was taken that is not sent yet: call `flush` when the socket is writable."""
        return bool(self._unsent) or bool(self._outgoing.pending)

    @property
    def pending_in(self) -> bool:
        """Whether something can be received although the socket may have nothing."""
        return bool(self._tls.pending()) or bool(self._incoming.pending)

    def flush(self) -> None:
        """Send what was kept, as far as the socket takes it."""
        with suppress(BlockingIOError):
            self._flush()

    def close(self) -> None:
        """Say goodbye if that is possible at once, and close."""
        with suppress(ssl.SSLError, ValueError):
            self._tls.unwrap()
        self._flush_quietly()
        self._sock.close()

    def abandon(self) -> None:
        """Close the descriptor and send nothing: in the child of a fork, as the connection is still the parent's."""
        self._sock.close()

    # The certificate, and the buffers…

    def peer_certificate(self) -> dict[str, Any]:
        """Return the broker's certificate as `ssl` shows it, once verified."""
        return dict(self._tls.getpeercert() or {})

    def _fill(self) -> bool:
        data = self._sock.recv(_READ_SIZE)
        if not data:
            self._incoming.write_eof()
            return False
        self._received += len(data)
        self._incoming.write(data)
        return True

    def _flush(self) -> None:
        """Send everything; BlockingIOError if the socket does not take it all."""
        while True:
            if not self._unsent:
                if not self._outgoing.pending:
                    return
                self._unsent = memoryview(self._outgoing.read())
            self._unsent = self._unsent[self._sock.send(self._unsent) :]

    def _flush_quietly(self) -> None:
        with suppress(OSError):
            self._flush()


# Errors…


# By the code of OpenSSL: not valid yet, expired, revoked.
_HINTS: Final = {
    9: "Is the clock of this machine right?",
    10: "The broker needs a new certificate, if the clock of this machine is right.",
    23: "The broker needs another certificate: ssl_crlfile has this one.",
}


def tls_error(error: ssl.SSLError, host: str) -> KafkaError:
    """Return what an error of TLS means for a person."""
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in _NAME_MISMATCHES:
            return HostnameMismatchError(f"The broker's certificate is not for {host!r}: {error.verify_message}")
        hint = _HINTS.get(error.verify_code, "Is its authority in ssl_cafile?")
        return SslAuthenticationError(f"The certificate of {host} is not trusted: {error.verify_message}. {hint}")
    reason = error.reason or str(error)
    if reason in {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"}:
        return SslAuthenticationError(
            f"{host} does not speak TLS on this port: with security_protocol SSL or SASL_SSL it has to do so"
        )
    if "ALERT" in reason:
        return SslAuthenticationError(
            f"{host} refused the TLS handshake ({_alert(reason)}): does it want a client certificate (ssl_certfile), "
            "or another one?"
        )
    if reason in {"NO_CIPHERS_AVAILABLE", "UNSUPPORTED_PROTOCOL", "NO_PROTOCOLS_AVAILABLE"}:
        return SslAuthenticationError(f"{host} and this client have no TLS version or cipher in common ({reason})")
    return KafkaConnectionError(f"TLS with {host} failed: {error}")


def _alert(reason: str) -> str:
    """`TLSV13_ALERT_CERTIFICATE_REQUIRED` to `certificate required`."""
    return reason.rpartition("ALERT_")[2].replace("_", " ").lower()


def certificate_names(certificate: Mapping[str, Any]) -> list[str]:
    """Return the names that a certificate is valid for.

    >>> certificate_names({"subjectAltName": (("DNS", "b1.example"), ("IP Address", "10.0.0.1"))})
    ['b1.example', '10.0.0.1']
    """
    names = [str(name) for kind, name in certificate.get("subjectAltName", ()) if kind in {"DNS", "IP Address"}]
    if not names:
        subject = dict(pair for group in certificate.get("subject", ()) for pair in group)
        names = [f"{subject['commonName']} (as common name only)"] if "commonName" in subject else []
    return names
