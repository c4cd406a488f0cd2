"""Security as services of a cluster: the users that may log in, and their permissions."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from secrets import token_bytes, token_urlsafe
from typing import TYPE_CHECKING, Final

from kafka.broker.configs.definitions import BROKER_OPTIONS
from kafka.broker.security import sasl
from kafka.broker.security.acls import CLUSTER_NAME, AccessControl, Operation, Resource
from kafka.broker.security.credentials import MECHANISMS, Credentials, Tokens, of_password
from kafka.broker.security.sasl import SaslSession, TokenLogin
from kafka.broker.server.connection import ANONYMOUS
from kafka.errors import (
    DelegationTokenAuthDisabledError,
    DelegationTokenRequestNotAllowedError,
    KafkaConfigurationError,
)

if TYPE_CHECKING:
    from kafka.broker.cluster.cluster import Cluster
    from kafka.broker.security.sasl import Exchange, User
    from kafka.broker.server.call import Call
    from kafka.broker.server.connection import Connection

_REAUTHENTICATION: Final = "connections.max.reauth.ms"
#: The release whose SCRAM refuses a repeated nonce.
_STRICT_FROM: Final = (4, 0)
_KNOWN: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")


class Security:
    """``cluster.service(Security)``: the users of ``Broker(sasl=...)``, credentials, and ``cluster.authorizer``."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.credentials = Credentials(cluster.store.table("scram_credentials"))
        self.passwords: dict[str, str] = {}
        self.mechanisms = [name for name in _KNOWN if any(name == user[0] for user in cluster.sasl_users)]
        for mechanism, user, password in cluster.sasl_users:
            self.add_user(mechanism, user, password)
        self.access: AccessControl | None = None
        self.tokens: Tokens | None = None
        configs = cluster.configs
        secret = configs.broker_value("delegation.token.secret.key")
        if secret:
            self.tokens = Tokens(
                secret.encode(),
                cluster.store.table("delegation_tokens"),
                cluster.clock.now_ms,
                lambda: urlsafe_b64encode(cluster.new_uuid().bytes).decode().rstrip("="),
                lifetime_ms=configs.broker_int("delegation.token.expiry.time.ms"),
                max_lifetime_ms=configs.broker_int("delegation.token.max.lifetime.ms"),
            )
        if configs.broker_value("authorizer.class.name"):
            self.control_access()

    def control_access(self) -> AccessControl:
        """Return the ACLs, which the requests of all clients are checked against from now on."""
        if self.access is None:
            configs = self._cluster.configs
            # Principals may contain commas, so semicolons part them.
            super_users = (configs.broker_value("super.users") or "").split(";")
            self.access = AccessControl(
                self._cluster.store.table("acls"),
                super_users=[each.strip() for each in super_users if each.strip()],
                allow_if_none=configs.broker_bool("allow.everyone.if.no.acl.found"),
            )
            self._cluster.authorizer = self.access
        return self.access

    def add_user(self, mechanism: str, user: str, password: str) -> None:
        """Let a user log in; with another password from now on if the user is known."""
        if mechanism not in _KNOWN:
            raise KafkaConfigurationError(f"the broker has no SASL mechanism {mechanism}, only {', '.join(_KNOWN)}")
        if mechanism == "PLAIN":
            self.passwords[user] = password
        for number, (name, _) in MECHANISMS.items():
            if name == mechanism:
                self.credentials.set_password(number, user, password, token_bytes(24))

    def session_of(self, connection: Connection) -> SaslSession:
        """Return the connection's session."""
        session: SaslSession | None = connection.sasl_state
        if session is None:
            session = connection.sasl_state = SaslSession(self._begin, self._cluster.clock.now_ms)
        return session

    def _begin(self, mechanism: str) -> Exchange | None:
        if mechanism not in self.mechanisms:
            return None
        if mechanism == "PLAIN":
            return sasl.plain(self.passwords)
        if mechanism == "OAUTHBEARER":
            return sasl.oauthbearer(self._cluster.clock.now_ms)
        number, hash_name = next((number, found[1]) for number, found in MECHANISMS.items() if found[0] == mechanism)
        return sasl.scram(
            mechanism,
            hash_name,
            lambda user: self.credentials.get(number, user),
            lambda: token_urlsafe(24),
            lambda token_id: self._token_login(token_id, hash_name),
            lenient=(self._cluster.apis.release or _STRICT_FROM) < _STRICT_FROM,
        )

    def _token_login(self, token_id: str, hash_name: str) -> TokenLogin | None:
        found = self.tokens.find(token_id) if self.tokens is not None else None
        if found is None:
            return None
        token, password = found
        credential = of_password(hash_name, password, token_bytes(24))
        return TokenLogin(token.owner.partition(":")[2], token.expires_ms, credential)

    def accept(self, connection: Connection, user: User) -> int:
        """Accept a client; return for how many milliseconds, 0 for no limit."""
        connection.principal = f"User:{user.name}"
        connection.is_authenticated = True
        lifetimes = []
        if _REAUTHENTICATION in BROKER_OPTIONS:
            lifetimes.append(self._cluster.configs.broker_int(_REAUTHENTICATION))
        if user.expires_ms is not None:
            lifetimes.append(max(user.expires_ms - self._cluster.clock.now_ms(), 1))
        lifetime_ms = min((each for each in lifetimes if each > 0), default=0)
        session = self.session_of(connection)
        session.may_repeat = lifetime_ms > 0
        if lifetime_ms:
            timer = self._cluster.timers.call_later(lifetime_ms / 1000, self._expired, connection, user)
            connection.on_lost(timer.cancel)
        return lifetime_ms

    def _expired(self, connection: Connection, user: User) -> None:
        # KIP-368: the connection stays, but all that it may ask for now is to authenticate again.
        if self.session_of(connection).user is user:
            connection.is_authenticated = False


def security(call: Call) -> Security:
    """Return the cluster's security."""
    return call.cluster.service(Security)


def tokens_of(call: Call) -> Tokens:
    """Return the delegation tokens; raises the error for a client that may not request them this way."""
    here = security(call)
    user = here.session_of(call.connection).user
    if call.principal == ANONYMOUS or (user is not None and user.by_token):
        raise DelegationTokenRequestNotAllowedError
    if here.tokens is None:
        raise DelegationTokenAuthDisabledError
    return here.tokens


def access_control(call: Call) -> AccessControl | None:
    """Return the access control lists; None where nothing is controlled."""
    return security(call).access


def may_alter(call: Call) -> bool:
    """Whether the client may change what concerns the whole cluster."""
    return call.allows(Operation.ALTER, Resource.CLUSTER, CLUSTER_NAME)
