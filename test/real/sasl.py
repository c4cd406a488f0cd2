"""What a broker needs for each SASL mechanism that wants no server of its own.

Each function returns a :class:`Security` for ``KafkaCluster(security=[...])``; GSSAPI is in kdc.py,
signed OAUTHBEARER tokens are in oauth.py. SCRAM users are made in the running cluster, with
``cluster.add_scram_user``.
"""

from __future__ import annotations

from collections.abc import Mapping

from .broker_config import Security
from .releases import Release


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


def access_control(version: str, *super_users: str) -> Security:
    """Nobody but these users may do anything that no ACL allows them.

    The brokers, and who comes through the plain listener, are ``ANONYMOUS`` and may do everything.
    """
    number = Release(version).number
    if Release(version).kraft:
        authorizer = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    elif number >= (2, 4):
        authorizer = "kafka.security.authorizer.AclAuthorizer"
    else:
        authorizer = "kafka.security.auth.SimpleAclAuthorizer"
    users = ";".join(f"User:{name}" for name in ("ANONYMOUS", *super_users))
    return Security({"authorizer.class.name": authorizer, "super.users": users})


def reauthenticate_every(milliseconds: int) -> Security:
    """Sessions end unless the client authenticates anew (KIP-368, 2.2 and later)."""
    return Security({"connections.max.reauth.ms": str(milliseconds)})
