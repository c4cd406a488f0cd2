"""Java's key stores: the certificates and the key of a JKS or PKCS12 file as PEM text, which OpenSSL reads.

JKS is read here; PKCS12 needs the package cryptography, because Python cannot decrypt it. A file is recognised by its
first bytes, as Java does, whatever its name and its declared type are.
"""

from __future__ import annotations

import hashlib
import hmac
import ssl
from base64 import encodebytes
from pathlib import Path
from typing import Final, NamedTuple

from kafka.errors import KafkaConfigurationError

__all__ = ["KeyStore", "read_keystore"]

_JKS: Final = b"\xfe\xed\xfe\xed"
_JCEKS: Final = b"\xce\xce\xce\xce"
_DER_SEQUENCE: Final = 0x30
_PRIVATE_KEY: Final = 1
_CERTIFICATE: Final = 2
#: What sun.security.provider.JavaKeyStore puts between the password and the content before it hashes both.
_WHITENER: Final = b"Mighty Aphrodite"
#: 1.3.6.1.4.1.42.2.17.1.1, the way in which JKS encrypts keys.
_KEY_PROTECTOR: Final = bytes.fromhex("2b060104012a02110101")
_SHA1: Final = 20


class KeyStore(NamedTuple):
    """The content of a store, as PEM text."""

    trusted: str
    """The certificates that are trusted."""
    chain: str
    """The certificate of the first private key, and its chain; empty without a key."""
    key: str


def read_keystore(path: str, password: str | None, key_password: str | None = None) -> KeyStore | None:
    """Return what a JKS or PKCS12 file has; None for PEM.

    >>> read_keystore("/dev/null", None) is None
    True
    """
    data = Path(path).read_bytes()
    if data.startswith(_JKS):
        return _read_jks(data, password, key_password or password)
    if data.startswith(_JCEKS):
        raise KafkaConfigurationError(
            "a JCEKS store can be read by Java alone; convert it: keytool -importkeystore -srckeystore "
            f"{path} -srcstoretype JCEKS -destkeystore {path}.p12 -deststoretype PKCS12"
        )
    if data[:1] == bytes([_DER_SEQUENCE]):
        return _read_pkcs12(path, data, password)
    return None


def _read_pkcs12(path: str, data: bytes, password: str | None) -> KeyStore:
    try:
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError:
        raise KafkaConfigurationError(
            "a PKCS12 store needs the package cryptography (pip install cryptography), or convert it once: openssl "
            f"pkcs12 -in {path} -nodes -out {path}.pem"
        ) from None
    try:
        store = load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        raise KafkaConfigurationError(f"not a PKCS12 store, or the wrong password ({error})") from error
    others = [each.certificate for each in store.additional_certs]
    own = [] if store.cert is None else [store.cert.certificate]
    pem = [certificate.public_bytes(Encoding.PEM).decode() for certificate in (*own, *others)]
    if store.key is None:
        return KeyStore("".join(pem), "", "")
    key = store.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()
    return KeyStore("".join(pem), "".join(pem), key)


# JKS…


class _Bytes:
    """The bytes of a file, read from the front; ValueError where they end too early."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 0

    def take(self, size: int) -> bytes:
        found = self._data[self.at : self.at + size]
        if len(found) < size:
            raise ValueError("the file ends too early")
        self.at += size
        return found

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "big")

    def tagged(self, tag: int) -> bytes:
        """Take a DER value with this tag."""
        if self.number(1) != tag:
            raise ValueError("a private key is not encrypted as JKS does")
        size = self.number(1)
        return self.take(self.number(size & 0x7F) if size & 0x80 else size)


def _read_jks(data: bytes, password: str | None, key_password: str | None) -> KeyStore:
    if password is not None:
        seal = hashlib.sha1(password.encode("utf-16-be") + _WHITENER + data[:-_SHA1], usedforsecurity=False).digest()
        if not hmac.compare_digest(seal, data[-_SHA1:]):
            raise KafkaConfigurationError("the password of the JKS store is wrong, or the file was changed")
    trusted: list[str] = []
    chain: list[str] = []
    key = ""
    content = _Bytes(data[:-_SHA1])
    try:
        content.take(4)
        version, entries = content.number(4), content.number(4)
        for _ in range(entries):
            tag = content.number(4)
            content.take(content.number(2))  # the alias
            content.take(8)  # the time
            if tag == _CERTIFICATE:
                trusted.append(_certificate(content, version))
                continue
            if tag != _PRIVATE_KEY:
                raise ValueError(f"an entry has the unknown kind {tag}")
            protected = content.take(content.number(4))
            certificates = [_certificate(content, version) for _ in range(content.number(4))]
            trusted += certificates[:1]
            if not key and key_password is not None:
                key, chain = _key(protected, key_password), certificates
    except ValueError as error:
        raise KafkaConfigurationError(f"not a JKS store that can be read: {error}") from error
    return KeyStore("".join(trusted), "".join(chain), key)


def _certificate(content: _Bytes, version: int) -> str:
    if version > 1:
        content.take(content.number(2))  # the type, which is X.509
    return ssl.DER_cert_to_PEM_cert(content.take(content.number(4)))


def _key(protected: bytes, password: str) -> str:
    """Decrypt a private key, as sun.security.provider.KeyProtector does: XOR with a chain of SHA-1 digests."""
    info = _Bytes(_Bytes(protected).tagged(0x30))
    algorithm = _Bytes(info.tagged(0x30))
    if algorithm.tagged(0x06) != _KEY_PROTECTOR:
        raise ValueError("a private key is not encrypted as JKS does")
    sealed = info.tagged(0x04)
    secret, digest = password.encode("utf-16-be"), sealed[:_SHA1]
    hidden, check = sealed[_SHA1:-_SHA1], sealed[-_SHA1:]
    plain = bytearray()
    for at in range(0, len(hidden), _SHA1):
        digest = hashlib.sha1(secret + digest, usedforsecurity=False).digest()
        plain += bytes(one ^ other for one, other in zip(hidden[at : at + _SHA1], digest, strict=False))
    if not hmac.compare_digest(hashlib.sha1(secret + plain, usedforsecurity=False).digest(), check):
        raise KafkaConfigurationError("the password of the private key in the JKS store is wrong")
    return f"-----BEGIN PRIVATE KEY-----\n{encodebytes(bytes(plain)).decode()}-----END PRIVATE KEY-----\n"
