"""Certificates of every kind that a TLS test wants, made on the spot with the ``openssl`` program.

>>> authority = Authority(directory)                        # doctest: +SKIP
>>> server = authority.issue("server")                      # localhost and 127.0.0.1
>>> expired = authority.issue("expired", days=-1)

Files are PEM; brokers get PKCS12 made from them. Keys are EC: made in milliseconds.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path

from .broker_config import Security

PASSWORD = "test-password"
LOCAL_NAMES = ("DNS:localhost", "IP:127.0.0.1")
OPENSSL_CONFIG = """
[ca]
default_ca = test
[test]
database = {dir}/index.txt
serial = {dir}/serial
crlnumber = {dir}/crlnumber
default_md = sha256
default_crl_days = 30
new_certs_dir = {dir}
policy = any
unique_subject = no
copy_extensions = copy
[any]
commonName = supplied
[req]
distinguished_name = name
prompt = no
[name]
CN = placeholder
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign, cRLSign
subjectKeyIdentifier = hash
[leaf]
basicConstraints = CA:FALSE
keyUsage = digitalSignature
extendedKeyUsage = serverAuth, clientAuth
subjectKeyIdentifier = hash
authorityKeyIdentifier = keyid
"""


class OpensslMissing(Exception):
    """There is no openssl program; the message is one line that says what to install."""


@dataclass(frozen=True)
class Certificate:
    """A certificate and its private key, each in a PEM file."""

    name: str
    cert: Path
    key: Path
    password: str | None = None  # of the key, when it is encrypted


@dataclass
class Authority:
    """A certificate authority in a directory of its own."""

    directory: Path
    name: str = "Test CA"
    cert: Path = field(init=False)

    def __post_init__(self) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        self.cert = self.directory / "ca.pem"
        (self.directory / "openssl.cnf").write_text(OPENSSL_CONFIG.format(dir=self.directory), encoding="utf-8")
        (self.directory / "index.txt").touch()
        for counter in ("serial", "crlnumber"):
            (self.directory / counter).write_text("1000\n", encoding="utf-8")
        request = ("-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc", "-days", "30")
        where = ("-keyout", "ca.key", "-out", "ca.pem", "-subj", f"/CN={self.name}", "-extensions", "authority")
        self.openssl("req", *request, *where, "-config", "openssl.cnf")

    def issue(
        self,
        name: str,
        *,
        common_name: str | None = None,
        names: Sequence[str] = LOCAL_NAMES,
        days: int = 30,
        password: str | None = None,
    ) -> Certificate:
        """Sign a new certificate; ``days=-1`` makes it expire yesterday, a password encrypts its key."""
        encrypt = ("-passout", f"pass:{password}") if password else ("-noenc",)
        san = ("-addext", f"subjectAltName={','.join(names)}") if names else ()
        subject = ("-subj", f"/CN={common_name or name}", *san, "-config", "openssl.cnf")
        new_key = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-keyout", f"{name}.key", *encrypt)
        self.openssl("req", *new_key, "-out", f"{name}.csr", *subject)
        now = datetime.now(timezone.utc)
        dates = ("-startdate", _stamp(now - timedelta(days=30)), "-enddate", _stamp(now + timedelta(days=days)))
        signer = ("-config", "openssl.cnf", "-extensions", "leaf", "-cert", "ca.pem", "-keyfile", "ca.key")
        self.openssl("ca", "-batch", "-notext", *signer, *dates, "-in", f"{name}.csr", "-out", f"{name}.pem")
        return Certificate(name, self.directory / f"{name}.pem", self.directory / f"{name}.key", password)

    def revoke(self, certificate: Certificate) -> Path:
        """Revoke a certificate and return the new revocation list."""
        signer = ("-config", "openssl.cnf", "-cert", "ca.pem", "-keyfile", "ca.key")
        self.openssl("ca", *signer, "-revoke", certificate.cert.name)
        return self.revocation_list()

    def revocation_list(self) -> Path:
        """A PEM file with all that was revoked so far."""
        signer = ("-config", "openssl.cnf", "-cert", "ca.pem", "-keyfile", "ca.key")
        self.openssl("ca", *signer, "-gencrl", "-out", "crl.pem")
        return self.directory / "crl.pem"

    def openssl(self, *args: str) -> None:
        """Run the openssl program in the authority's directory."""
        openssl(*args, directory=self.directory)


def openssl(*args: str, directory: Path, data: bytes | None = None) -> bytes:
    """Run the openssl program in a directory; what it prints."""
    program = shutil.which("openssl")
    if program is None:
        raise OpensslMissing("TLS and OAUTHBEARER tests need the openssl program (Debian: openssl)")
    result = subprocess.run([program, *args], input=data, cwd=directory, capture_output=True, check=False)
    if result.returncode:
        raise RuntimeError(f"openssl {' '.join(args)}\n{result.stderr.decode()}")
    return result.stdout


def broker_tls(
    authority: Authority, server: Certificate, *, client_auth: str = "none", listener: str | None = None
) -> Security:
    """TLS for a broker of 0.9 or later; ``client_auth="required"`` is mutual TLS, on one listener or on all."""
    keys, trusted = java_stores(authority, server)
    prefix = "" if listener is None else f"listener.name.{listener.lower()}."
    return Security(
        {
            "ssl.keystore.location": str(keys),
            "ssl.keystore.type": "PKCS12",
            "ssl.keystore.password": PASSWORD,
            "ssl.key.password": PASSWORD,
            "ssl.truststore.location": str(trusted),
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.password": PASSWORD,
            f"{prefix}ssl.client.auth": client_auth,
        }
    )


def java_stores(authority: Authority, server: Certificate) -> tuple[Path, Path]:
    """A PKCS12 key store and trust store, which every release reads.

    ``keytool`` makes the latter: Java trusts only what carries a mark that openssl 3.0 cannot set.
    """
    keys = server.cert.with_suffix(".p12")
    source = ("-inkey", str(server.key), "-in", str(server.cert), "-certfile", str(authority.cert))
    opening = ("-passin", f"pass:{server.password}") if server.password else ()
    authority.openssl("pkcs12", "-export", *source, *opening, "-out", str(keys), "-passout", f"pass:{PASSWORD}")
    trusted = authority.directory / "trusted.p12"
    if not trusted.exists():
        what = ("-importcert", "-noprompt", "-alias", "ca", "-file", str(authority.cert))
        store = ("-keystore", str(trusted), "-storetype", "PKCS12", "-storepass", PASSWORD)
        subprocess.run(["keytool", *what, *store], check=True, capture_output=True)
    return keys, trusted


def _stamp(moment: datetime) -> str:
    return moment.strftime("%Y%m%d%H%M%SZ")
