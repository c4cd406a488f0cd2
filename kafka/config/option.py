"""One row of the table of configuration."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from kafka.config.checks import Check

# Which class takes a kind of configuration.
CLASSES: Final[dict[str, str]] = {
    "producer": "KafkaProducer",
    "consumer": "KafkaConsumer",
    "share": "KafkaShareConsumer",
    "admin": "KafkaAdminClient",
    "client": "KafkaClient",
    "connection": "BrokerConnection",
}
FACES: Final = frozenset({"producer", "consumer", "share", "admin"})
NETWORK: Final = FACES | {"client"}
LINKS: Final = NETWORK | {"connection"}


class Lazy:
    """A default that is imported, and with ``call`` constructed, on first use."""

    def __init__(self, module: str, *names: str, call: bool = False, many: bool = False) -> None:
        self._module, self._names, self._call, self._many = module, names, call, many

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}()" if self._call else name for name in self._names)
        return f"[{shown}]" if self._many else shown

    def get(self) -> Any:
        """The default itself."""
        from importlib import import_module

        found = [getattr(import_module(self._module), name) for name in self._names]
        made = [item() for item in found] if self._call else found
        return tuple(made) if self._many else made[0]


class Found(Lazy):
    """A value that a client has found out; it is worked out on first use."""

    def __init__(self, find: Callable[[], object]) -> None:
        self._find = find

    def get(self) -> Any:
        """The value."""
        return self._find()


class Option:
    """An option: its name, the classes that accept it, its default, its check and its description."""

    __slots__ = ("aliases", "check", "default", "defaults", "doc", "kinds", "name", "obsolete", "secret", "since")

    def __init__(
        self,
        name: str,
        kinds: frozenset[str],
        default: object,
        check: Check,
        doc: str,
        *,
        since: str = "",
        aliases: tuple[str, ...] = (),
        defaults: Mapping[str, object] | None = None,
        secret: bool = False,
        obsolete: str = "",
    ) -> None:
        self.name = name
        self.kinds = kinds
        self.default = default
        self.check = check
        self.doc = doc
        self.since = since
        """The oldest broker with which the option has an effect; empty for all."""
        self.aliases = aliases
        """Other names, besides the name with dots, which always works."""
        self.defaults = defaults or {}
        """Defaults of single kinds that differ."""
        self.secret = secret
        """Never shown."""
        self.obsolete = obsolete
        """Why it no longer has an effect; it is accepted with a warning."""

    def __str__(self) -> str:
        return self.name

    @property
    def names(self) -> tuple[str, ...]:
        """All spellings: the name, the aliases, and each with dots as the Java client has them."""
        plain = (self.name, *self.aliases)
        return tuple(dict.fromkeys((*plain, *(name.replace("_", ".") for name in plain))))

    def default_for(self, kind: str) -> Any:
        """The default of a class."""
        default = self.defaults.get(kind, self.default)
        return default.get() if isinstance(default, Lazy) else default
