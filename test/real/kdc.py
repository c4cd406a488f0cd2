"""A Kerberos key distribution centre of our own: MIT's ``krb5kdc`` in a temporary directory, on a free port.

>>> with KeyDistributionCenter(directory) as kdc:          # doctest: +SKIP
...     kafka = KafkaCluster(listeners=("SASL_PLAINTEXT",), host="localhost", security=[kdc.broker()])
...     keytab = kdc.keytab("alice")                       # KRB5_CONFIG=kdc.config kinit -kt keytab alice

Nothing outside of the directory is read or written, and no root rights are needed. Raises
:class:`KerberosMissing`, one line that says what to install, where there are no such programs.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

from . import ports
from .broker_config import Security
from .child import Child

if TYPE_CHECKING:
    from typing_extensions import Self

REALM = "KAFKA.TEST"
SERVICE = "kafka"
PROGRAMS = ("krb5kdc", "kdb5_util", "kadmin.local")
WHERE = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"])  # no user's path has the former

KRB5_CONF = """
[libdefaults]
  default_realm = {realm}
  dns_lookup_realm = false
  dns_lookup_kdc = false
  dns_canonicalize_hostname = false
  rdns = false
  udp_preference_limit = 1
  forwardable = false
[realms]
  {realm} = {{
    kdc = 127.0.0.1:{port}
  }}
[domain_realm]
  localhost = {realm}
[logging]
  kdc = STDERR
"""
KDC_CONF = """
[kdcdefaults]
  kdc_listen = 127.0.0.1:{port}
  kdc_tcp_listen = 127.0.0.1:{port}
[realms]
  {realm} = {{
    database_name = {home}/principal
    key_stash_file = {home}/stash
    max_life = 1h
    supported_enctypes = aes256-cts:normal aes128-cts:normal
  }}
"""


class KerberosMissing(Exception):
    """There is no KDC program here; the message is one line that says what to install."""


class KeyDistributionCenter:
    """A realm with a running KDC; a context manager."""

    def __init__(self, directory: Path) -> None:
        missing = [name for name in PROGRAMS if shutil.which(name, path=WHERE) is None]
        if missing:
            raise KerberosMissing(f"GSSAPI tests need {missing[0]} (Debian: krb5-kdc krb5-admin-server)")
        self.directory = directory
        self.config = directory / "krb5.conf"
        self._port = ports.reserve()
        fields = {"realm": REALM, "port": self._port, "home": directory}
        self.config.write_text(KRB5_CONF.format(**fields), encoding="utf-8")
        (directory / "kdc.conf").write_text(KDC_CONF.format(**fields), encoding="utf-8")
        self._env = {"KRB5_CONFIG": str(self.config), "KRB5_KDC_PROFILE": str(directory / "kdc.conf")}
        self._child: Child | None = None

    def __enter__(self) -> Self:
        self._run("kdb5_util", "-r", REALM, "-P", "master", "create", "-s")
        command = [_program("krb5kdc"), "-n", "-r", REALM]
        self._child = Child("krb5kdc", command, self.directory / "log", env=self._env)
        self._child.wait_for(self._answers, "connection to its port", time.monotonic() + 20.0)
        return self

    def __exit__(self, *exc: object) -> None:
        if self._child is not None:
            self._child.kill()
        ports.release(self._port)

    def keytab(self, principal: str) -> Path:
        """Add a principal with a random key, such as ``alice`` or ``kafka/localhost``; its key's file."""
        path = self.directory / f"{principal.replace('/', '_')}.keytab"
        if not path.exists():
            self._run("kadmin.local", "-r", REALM, "addprinc", "-randkey", principal)
            self._run("kadmin.local", "-r", REALM, "ktadd", "-k", str(path), principal)
        return path

    def broker(self, host: str = "localhost") -> Security:
        """GSSAPI for a broker that clients know by this host name."""
        principal = f"{SERVICE}/{host}"
        return Security(
            {"sasl.kerberos.service.name": SERVICE},
            mechanism="GSSAPI",
            login_module=self.login_module(principal),
            java={"java.security.krb5.conf": str(self.config)},
        )

    def login_module(self, principal: str) -> str:
        """The JAAS login module of a Java program that acts as a principal."""
        files = f'useKeyTab=true storeKey=true keyTab="{self.keytab(principal)}"'
        return f'com.sun.security.auth.module.Krb5LoginModule required {files} principal="{principal}@{REALM}"'

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self._port), 1.0).close()
        except OSError:
            return False
        return True

    def _run(self, name: str, *args: str) -> None:
        command = [_program(name), *args]
        result = subprocess.run(
            command,
            env={**os.environ, **self._env},
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            check=False,
        )
        if result.returncode:
            raise RuntimeError(f"{' '.join(command)}\n{result.stdout}{result.stderr}")


def _program(name: str) -> str:
    found = shutil.which(name, path=WHERE)
    assert found is not None
    return found
