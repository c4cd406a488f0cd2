"""SCRAM-SHA-256 and SCRAM-SHA-512 (RFC 5802, RFC 7677): both sides prove that they know the password.

The client does not trust the broker before it has checked the broker's signature: the broker's nonce must begin with
the client's, and the iteration count has an upper limit (2**31 iterations would take half an hour) and a lower limit
(with one iteration, a passive listener could try passwords cheaply).

Apache Kafka hashes passwords as typed, without SASLprep (RFC 4013), against RFC 5802. The two forms differ for few
passwords (ligatures, compatibility forms). For these, `alternative` offers the password as typed after the broker has
refused the prepared one.
"""

from __future__ import annotations

import hashlib
import hmac
import stringprep
import unicodedata
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from collections.abc import Callable, Generator
from typing import Any, ClassVar, Final

from kafka.errors import KafkaConfigurationError, SaslAuthenticationFailedError
from kafka.sasl.abc import ExchangeMechanism, secret_text

__all__ = ["MAX_ITERATIONS", "MIN_ITERATIONS", "SaslMechanismScram", "ScramSha256", "ScramSha512", "saslprep"]

# RFC 4013, section 2.3, with what each table forbids.
_PROHIBITED: Final[tuple[tuple[Callable[[str], bool], str], ...]] = (
    (stringprep.in_table_c12, "a non-ASCII space"),
    (stringprep.in_table_c21_c22, "a control character"),
    (stringprep.in_table_c3, "a private use character"),
    (stringprep.in_table_c4, "a non-character"),
    (stringprep.in_table_c5, "a surrogate"),
    (stringprep.in_table_c6, "a character inappropriate for plain text"),
    (stringprep.in_table_c7, "a character inappropriate for canonical representation"),
    (stringprep.in_table_c8, "a character that changes display properties"),
    (stringprep.in_table_c9, "a tagging character"),
)


def saslprep(text: str) -> str:
    """Return the prepared form of `text`; ValueError if it has none.

    >>> saslprep("I\\u00adX"), saslprep("\\u2168")
    ('IX', 'IX')
    """
    if text.isascii() and text.isprintable():
        return text  # nothing of the below changes or forbids it
    mapped = "".join(
        " " if stringprep.in_table_c12(char) else char for char in text if not stringprep.in_table_b1(char)
    )
    # Unicode 3.2 is what RFC 3454 is defined on; a later table would give another form.
    prepared = unicodedata.ucd_3_2_0.normalize("NFKC", mapped)
    for char in prepared:
        for forbids, what in _PROHIBITED:
            if forbids(char):
                raise ValueError(f"contains {what} (U+{ord(char):04X})")
    _check_direction(prepared)
    return prepared


def _check_direction(text: str) -> None:
    """RFC 3454, section 6: text from right to left is so from end to end."""
    if not any(map(stringprep.in_table_d1, text)):
        return
    if any(map(stringprep.in_table_d2, text)):
        raise ValueError("mixes writing from right to left with writing from left to right")
    if not (stringprep.in_table_d1(text[0]) and stringprep.in_table_d1(text[-1])):
        raise ValueError("is written from right to left but does not begin and end so")


# RFC 5802, section 5.1 asks for 4096 at least; so does Kafka. Kafka itself stops at 16384; a
# million SHA-512 rounds take about a second on a worker thread.
MIN_ITERATIONS: Final = 4096
MAX_ITERATIONS: Final = 1_000_000

# RFC 5802, section 7: printable ASCII without the comma.
_NONCE_CHARS: Final = frozenset(range(0x21, 0x7F)) - {ord(",")}


def _new_nonce() -> str:
    from secrets import token_urlsafe

    return token_urlsafe(24)


class SaslMechanismScram(ExchangeMechanism):
    """The exchange; the subclasses name the hash."""

    blocks: ClassVar[bool] = True
    hash_name: ClassVar[str]

    def __init__(
        self,
        *,
        sasl_plain_username: str | None = None,
        sasl_plain_password: object = None,
        sasl_scram_delegation_token: bool = False,
        nonce: Callable[[], str] = _new_nonce,
        prepare: bool = True,
        **_config: Any,
    ) -> None:
        super().__init__()
        if not sasl_plain_username or sasl_plain_password is None:
            raise KafkaConfigurationError(f"SASL {self.name} needs sasl_plain_username and sasl_plain_password")
        self._given = (sasl_plain_username, secret_text(sasl_plain_password, "sasl_plain_password"))
        self._token = sasl_scram_delegation_token
        self._prepared = prepare
        self._username, self._password = self._given
        if prepare:
            try:
                self._username, self._password = saslprep(self._username), saslprep(self._password)
            except ValueError as error:
                # The message does not repeat the text: it may be the password.
                raise KafkaConfigurationError(f"SASL {self.name}: the name or the password {error}") from error
        self._nonce = nonce()

    def exchange(self) -> Generator[bytes, bytes, None]:
        """Two messages each way; names as in RFC 5802, section 3."""
        first_bare = f"n={self._username.replace('=', '=3D').replace(',', '=2C')},r={self._nonce}"
        if self._token:
            first_bare += ",tokenauth=true"  # KIP-48: the name is a delegation token's id, the password its HMAC
        server_first = yield f"n,,{first_bare}".encode()
        nonce, salt, iterations = self._parse_server_first(server_first)
        # "biws" is the header "n,," of the first message: no channel binding.
        final_bare = b"c=biws,r=" + nonce
        transcript = b",".join((first_bare.encode(), server_first, final_bare))
        salted = hashlib.pbkdf2_hmac(self.hash_name, self._password.encode(), salt, iterations)
        client_key = self._hmac(salted, b"Client Key")
        signature = self._hmac(hashlib.new(self.hash_name, client_key).digest(), transcript)
        proof = bytes(key ^ mask for key, mask in zip(client_key, signature, strict=True))
        server_final = yield final_bare + b",p=" + b64encode(proof)
        self._check_server_final(server_final, self._hmac(self._hmac(salted, b"Server Key"), transcript))

    def auth_details(self) -> str:
        """Name the user."""
        return f"as {self._given[0]} via SASL {self.name}"

    def alternative(self) -> SaslMechanismScram | None:
        """Return the attempt with the password as typed, where SASLprep changed it."""
        if not self._prepared or (self._username, self._password) == self._given:
            return None
        username, password = self._given
        return type(self)(
            sasl_plain_username=username,
            sasl_plain_password=password,
            sasl_scram_delegation_token=self._token,
            prepare=False,
        )

    def _hmac(self, key: bytes, message: bytes) -> bytes:
        return hmac.new(key, message, self.hash_name).digest()

    def _refuse(self, why: str) -> SaslAuthenticationFailedError:
        return SaslAuthenticationFailedError(f"SASL {self.name}: {why}; this is not the broker it claims to be")

    def _parse_server_first(self, message: bytes) -> tuple[bytes, bytes, int]:
        fields = self._fields(message)
        if "e" in fields:
            raise SaslAuthenticationFailedError(f"SASL {self.name} refused for {self._given[0]}: {fields['e']}")
        if "m" in fields:
            raise self._refuse("the broker demands an extension that does not exist")
        nonce = fields.get("r", "")
        ours = self._nonce
        if not nonce.startswith(ours) or len(nonce) == len(ours) or not _NONCE_CHARS.issuperset(nonce.encode()):
            raise self._refuse("the broker's nonce does not continue ours")
        try:
            salt = b64decode(fields.get("s", ""), validate=True)
        except Base64Error:
            salt = b""
        if not salt:
            raise self._refuse("the broker sent no proper salt")
        count = fields.get("i", "")
        if not (count.isascii() and count.isdigit() and len(count) < 10):
            raise self._refuse("the broker sent no proper iteration count")
        if not MIN_ITERATIONS <= int(count) <= MAX_ITERATIONS:
            raise self._refuse(
                f"the broker asks for {count} iterations, allowed are {MIN_ITERATIONS} to {MAX_ITERATIONS}"
            )
        return nonce.encode(), salt, int(count)

    def _check_server_final(self, message: bytes, expected: bytes) -> None:
        fields = self._fields(message)
        if "e" in fields:
            raise SaslAuthenticationFailedError(f"SASL {self.name} refused for {self._given[0]}: {fields['e']}")
        try:
            signature = b64decode(fields.get("v", ""), validate=True)
        except Base64Error:
            signature = b""
        if not hmac.compare_digest(signature, expected):
            raise self._refuse("the broker cannot prove that it knows the password")

    def _fields(self, message: bytes) -> dict[str, str]:
        """Split `a=1,b=2`; the first of a name counts, and a name is one letter."""
        fields: dict[str, str] = {}
        for part in message.decode("utf-8").split(","):
            key, equals, value = part.partition("=")
            if len(key) != 1 or not equals:
                raise self._refuse("the broker's message is malformed")
            fields.setdefault(key, value)
        return fields


class ScramSha256(SaslMechanismScram):
    """SCRAM with SHA-256.

    >>> client = ScramSha256(sasl_plain_username="a,b", sasl_plain_password="pw", nonce=lambda: "abc")
    >>> client.auth_bytes()
    b'n,,n=a=2Cb,r=abc'
    """

    name: ClassVar[str] = "SCRAM-SHA-256"
    hash_name: ClassVar[str] = "sha256"


class ScramSha512(SaslMechanismScram):
    """SCRAM with SHA-512."""

    name: ClassVar[str] = "SCRAM-SHA-512"
    hash_name: ClassVar[str] = "sha512"
