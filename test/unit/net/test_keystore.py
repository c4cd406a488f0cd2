"""Stores of Java: what keytool wrote, the passwords, and files that are damaged."""

from __future__ import annotations

import ssl
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from kafka.errors import KafkaConfigurationError
from kafka.net.keystore import read_keystore
from kafka.net.tls import tls_context

CERTS = Path(__file__).parent / "certs"


def cert(name: str) -> str:
    return str(CERTS / name)


def der(name: str) -> bytes:
    return ssl.PEM_cert_to_DER_cert((CERTS / name).read_text(encoding="utf-8"))


def test_a_trust_store_has_the_authorities_with_and_without_its_password() -> None:
    for password in ("s3cret", None):
        store = read_keystore(cert("ca.jks"), password)
        assert store is not None
        assert (ssl.PEM_cert_to_DER_cert(store.trusted), store.chain, store.key) == (der("ca.pem"), "", "")


def test_a_key_store_has_the_key_and_its_chain() -> None:
    for name, password in (("client.jks", "s3cret"), ("client.p12", "s3cret")):
        if name.endswith("p12"):
            pytest.importorskip("cryptography")
        store = read_keystore(cert(name), password)
        assert store is not None
        first, _, rest = store.chain.partition("-----END CERTIFICATE-----\n")
        assert ssl.PEM_cert_to_DER_cert(f"{first}-----END CERTIFICATE-----\n") == der("client.pem")
        assert ssl.PEM_cert_to_DER_cert(rest) == der("ca.pem")
        tls_context({"ssl_cafile": cert("ca.jks"), "ssl_certfile": cert(name), "ssl_keystore_password": password})


def test_the_password_of_the_key_may_be_another_one_and_a_callable() -> None:
    tls_context({"ssl_cafile": cert("ca.pem"), "ssl_certfile": cert("client.jks"), "ssl_password": lambda: b"s3cret"})
    with pytest.raises(KafkaConfigurationError, match=r"client\.jks.*ssl_keystore_password"):
        tls_context({"ssl_certfile": cert("client.jks")})
    with pytest.raises(KafkaConfigurationError, match="password of the private key in the JKS store is wrong"):
        read_keystore(cert("client.jks"), None, "psst")


def test_pem_is_left_to_openssl() -> None:
    assert read_keystore(cert("ca.pem"), "s3cret") is None


def test_what_cannot_be_read_says_how_to_convert_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "old.jks"
    old.write_bytes(b"\xce\xce\xce\xce" + bytes(40))
    with pytest.raises(KafkaConfigurationError, match="keytool -importkeystore"):
        read_keystore(str(old), "s3cret")
    monkeypatch.setitem(sys.modules, "cryptography", None)
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.serialization", None)
    with pytest.raises(KafkaConfigurationError, match=r"pip install cryptography.*openssl pkcs12 -in"):
        read_keystore(cert("client.p12"), "s3cret")


def test_a_damaged_store_is_an_error_of_the_configuration(tmp_path: Path) -> None:
    """Each end and each changed byte: an error of ours, or a store."""
    whole = (CERTS / "client.jks").read_bytes()
    damaged = [whole[:size] for size in range(4, len(whole), 7)]
    damaged += [whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :] for at in range(4, len(whole), 3)]
    file = tmp_path / "damaged.jks"
    for data in damaged:
        file.write_bytes(data)
        with pytest.raises(KafkaConfigurationError):
            read_keystore(str(file), "s3cret", "s3cret")
        with suppress(KafkaConfigurationError):
            read_keystore(str(file), None, "s3cret")
