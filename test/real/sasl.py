"""What a broker needs for each SASL mechanism that wants no server of its own.

Each function returns a :class:`Security` for ``KafkaCluster(security=[...])``; GSSAPI is in kdc.py,
signed OAUTHBEARER tokens are in oauth.py. SCRAM users are made in the running cluster, with
``cluster.add_scram_user``.
"""

from __future__ import annotations

from collections.abc import Mapping

from .broker_config import Security


def plain(users: Mapping[str, str]) -> Security:
    """PLAIN with these users and passwords (0.10 and later)."""
    known = " ".join(f'user_{name}="{password}"' for name, password in users.items())
    module = f"org.apache.kafka.common.security.plain.PlainLoginModule required {known}"
    return Security(mechanism="PLAIN", login_module=module)


def scram(mechanism: str = "SCRAM-SHA-256") -> Security:
    """SCRAM-SHA-256 or SCRAM-SHA-512 (0.10.2 and later)."""
    module = "org.apache.kafka.common.security.scram.ScramLoginModule required"
    return Security(mechanism=mechanism, login_module=module)


def unsecured_oauth() -> Security:
    """OAUTHBEARER as the broker has it by itself: it believes tokens that nobody signed (2.0 and later)."""
    module = (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required "
        'unsecuredLoginStringClaim_sub="broker"'
    )
    return Security(mechanism="OAUTHBEARER", login_module=module)


def reauthenticate_every(milliseconds: int) -> Security:
    """Sessions end unless the client authenticates anew (KIP-368, 2.2 and later)."""
    return Security({"connections.max.reauth.ms": str(milliseconds)})
