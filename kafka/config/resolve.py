"""Resolution of the user's options into a complete, checked configuration."""

from __future__ import annotations

import functools
import itertools
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from functools import partial
from typing import Any, Final, NoReturn

from kafka._text import Secret, SecretBytes, without_passwords
from kafka.config.option import CLASSES, FACES, Found, Lazy, Option
from kafka.config.rules import RULES
from kafka.config.table import BY_SPELLING, OPTIONS
from kafka.errors import KafkaConfigurationError

_NUMBERS: Final[defaultdict[str, Iterator[int]]] = defaultdict(partial(itertools.count, 1))


# Spellings that DEFAULT_CONFIG had in kafka-python, and that programs look up there.
_HISTORIC: Final = {"api_version_auto_timeout_ms": "bootstrap_timeout_ms", "assignors": "partition_assignment_strategy"}


# Options of consumers that are configurations of a share group, which administrators set.
_OF_SHARE_GROUPS: Final = {
    "auto_offset_reset": "share.auto.offset.reset",
    "heartbeat_interval_ms": "share.heartbeat.interval.ms",
    "isolation_level": "share.isolation.level",
    "session_timeout_ms": "share.session.timeout.ms",
}


class Config(MutableMapping[str, Any]):
    """A complete configuration of one kind of object: every option with a checked value.

    Options are found under each of their spellings. Setting one checks the value; the object takes notice where it
    reads the option for each call, as its documentation says. Secrets can be read by key; the repr masks them.

    >>> from kafka.config import resolve
    >>> config = resolve("admin", {"proxy_url": "socks5://me:pw@proxy:1080"})
    >>> "pw" in repr(config)
    False
    """

    __slots__ = ("_values", "given", "kind")

    def __init__(self, kind: str, values: dict[str, Any], given: frozenset[str]) -> None:
        self.kind = kind
        self.given = given
        """The options that were given, as opposed to those at their default."""
        self._values = values

    def __getitem__(self, name: str) -> Any:
        if name not in self._values and name in BY_SPELLING:
            name = BY_SPELLING[name].name
        value = self._values[name]
        if isinstance(value, Lazy):
            value = self._values[name] = value.get()
        return value

    def __setitem__(self, name: str, value: object) -> None:
        option = _find(self.kind, name)
        self._values[option.name] = _checked(self.kind, name, option, value)
        self.given |= {option.name}

    def fill(self, name: str, find: Callable[[], object]) -> None:
        """Have an option that was left at None worked out when it is read; it does not count as given."""
        if self._values[name] is None:
            self._values[name] = Found(find)

    def __delitem__(self, name: str) -> None:
        raise TypeError(f"{name} cannot be removed from a configuration: set it to its default")

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def seconds(self, name: str) -> float:
        """An option that is a time in milliseconds, in seconds.

        >>> from kafka.config import resolve
        >>> resolve("admin", {}).seconds("metadata_max_age_ms")
        300.0
        """
        assert name.endswith("_ms"), name
        return float(self._values[name]) / 1000

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={_shown(OPTIONS[name], self._values[name])}" for name in sorted(self.given))
        return f"<{CLASSES[self.kind]} configuration: {shown or 'defaults'}>"


def _shown(option: Option, value: object) -> str:
    return "'***'" if option.secret and value is not None else repr(_without_passwords(value))


def _without_passwords(value: Any) -> object:
    if isinstance(value, str):
        return without_passwords(value)
    if type(value) in {list, tuple, set, frozenset}:
        return type(value)(map(_without_passwords, value))
    return value


def defaults(kind: str) -> dict[str, Any]:
    """All options of a kind with their defaults, as a class shows them in DEFAULT_CONFIG.

    >>> defaults("consumer")["heartbeat_interval_ms"]
    3000
    """
    return dict(_original_defaults(kind))


def part_of_defaults(kind: str, *names: str, **differing: Any) -> dict[str, Any]:
    """Some options of a kind with their defaults, for the DEFAULT_CONFIG of a historic class that takes no others.

    >>> part_of_defaults("consumer", "session_timeout_ms", group_id="workers")
    {'session_timeout_ms': 45000, 'group_id': 'workers'}
    """
    return {**{name: _original_defaults(kind)[name] for name in names}, **differing}


def resolve_part(name: str, kind: str, given: Mapping[str, object], declared: Mapping[str, object]) -> Config:
    """The configuration for the historic class `name`, which takes the options in its DEFAULT_CONFIG alone.

    >>> declared = part_of_defaults("consumer", "session_timeout_ms", group_id="workers")
    >>> resolve_part("BaseCoordinator", "consumer", {"session.timeout.ms": 9000}, declared)["session_timeout_ms"]
    9000
    """
    for spelling in given:
        if _find(kind, spelling).name not in {BY_SPELLING[one].name for one in declared if one in BY_SPELLING}:
            raise KafkaConfigurationError(f"{name} has no option {spelling!r}", option=str(spelling))
    own = _changed(kind, declared, given)
    # group_protocol='consumer' refuses one that is given; this is a default.
    session = own.pop("session_timeout_ms", None)
    config = resolve(kind, {**own, **given})
    if session is not None:
        config._values["session_timeout_ms"] = session  # noqa: SLF001 - of this module
    return config


@functools.cache
def _original_defaults(kind: str) -> dict[str, Any]:
    found = {name: option.default_for(kind) for name, option in OPTIONS.items() if kind in option.kinds}
    return found | {old: found[name] for old, name in _HISTORIC.items() if name in found}


_HIDING: Final[dict[type, Callable[[Any], Any]]] = {str: Secret, bytes: SecretBytes}


def _hidden(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return options with their secrets hidden. An unknown name may be a misspelt one."""

    def is_secret(name: str, value: str | bytes) -> bool:
        option = BY_SPELLING.get(name)
        return option is None or option.secret or (isinstance(value, str) and without_passwords(value) != value)

    return {
        name: _HIDING[type(value)](value) if type(value) in _HIDING and is_secret(name, value) else value
        for name, value in options.items()
    }


def given_options(client: str, options: object, named: Any) -> dict[str, Any]:
    """Return the options that were passed by name, or in one mapping before them; `client` is the name of the class.

    Secrets are hidden, in `named` too, which is a variable of the constructor that calls this.

    >>> given_options("KafkaProducer", {"linger.ms": 5}, {"acks": 1})
    {'linger.ms': 5, 'acks': 1}
    """
    named.update(_hidden(named))
    if options is None:
        return dict(named)
    if not isinstance(options, Mapping):
        raise TypeError(
            f"{client}() takes its options by name, as in {client}(bootstrap_servers='localhost:9092'), or in one "
            f"dict, not {type(options).__name__}"  # the value may be secret
        )
    # A tracer that wraps the constructor passes the defaults of the serializers by name.
    named = {name: value for name, value in named.items() if value is not None or name not in options}
    for option in options.keys() & named.keys():
        raise TypeError(f"{client}() got the option {option!r} twice, in the dict and by name")
    for option in options:
        if not isinstance(option, str):
            raise TypeError(f"the name of an option must be a str, not {option!r}")
    return {**_hidden(options), **named}


def resolve(kind: str, given: Mapping[str, object], declared: Mapping[str, object] | None = None) -> Config:
    """The configuration for a class from its keywords, or `KafkaConfigurationError`.

    Options may be spelled as in the table, by an alias, or with dots as the Java client has them. `declared` is the
    DEFAULT_CONFIG of the class: a value that a subclass or a program changed there is the default.
    """
    if declared is not None:
        given = {**_changed(kind, declared, given), **given}
    chosen: dict[str, Any] = {}
    for spelling, value in given.items():
        option = _find(kind, spelling)
        if option.name in chosen and not _is_untouched(kind, option, value, chosen):
            text = f"{option.name} is given twice, the second time as {spelling!r}; give it once"
            raise KafkaConfigurationError(text, option=option.name)
        if option.name in chosen and value == option.default_for(kind):
            continue
        if option.obsolete:
            warnings.warn(f"{spelling} no longer has an effect: {option.obsolete}", DeprecationWarning, stacklevel=3)
        chosen[option.name] = _checked(kind, spelling, option, value)
    values = _with_defaults(kind, chosen)
    for rule in RULES:
        rule(values, chosen)
    return Config(kind, values, frozenset(chosen))


def name_client(config: Config, kind: str) -> None:
    """Give a client a numbered name unless the application has named it: logs and metrics then tell clients apart.

    >>> config = resolve("consumer", {})
    >>> name_client(config, "consumer")
    >>> config["client_id"]
    'purekafka-consumer-...'
    """
    if "client_id" not in config.given:
        config["client_id"] = f"purekafka-{kind}-{next(_NUMBERS[kind])}"


def _changed(kind: str, declared: Mapping[str, object], given: Mapping[str, object]) -> dict[str, Any]:
    """What differs from the defaults of a kind, without the options that are given, under whichever spelling."""
    original = _original_defaults(kind)
    names = {BY_SPELLING[spelling].name for spelling in given if spelling in BY_SPELLING}
    return {
        spelling: value
        for spelling, value in declared.items()
        if (spelling not in original or value != original[spelling])
        and (spelling not in BY_SPELLING or BY_SPELLING[spelling].name not in names)
    }


def _is_untouched(kind: str, option: Option, value: object, chosen: Mapping[str, object]) -> bool:
    """Whether one of two spellings has the default: a program that starts from DEFAULT_CONFIG gives both."""
    if option.name not in _HISTORIC.values():
        return False
    default = option.default_for(kind)
    return bool(value == default or chosen[option.name] == option.check(default))


def parse(kind: str, texts: Mapping[str, str]) -> dict[str, Any]:
    """Values for `resolve` from texts, as from a command line or a properties file.

    >>> parse("consumer", {"fetch.min.bytes": "100", "enable_auto_commit": "false"})
    {'fetch_min_bytes': 100, 'enable_auto_commit': False}
    """
    found: dict[str, Any] = {}
    for spelling, text in texts.items():
        option = _find(kind, spelling)
        try:
            found[option.name] = option.check.parse(text)
        except ValueError:
            raise _unacceptable(kind, spelling, option, text) from None
    return found


def _with_defaults(kind: str, chosen: Mapping[str, object]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, option in OPTIONS.items():
        if kind not in option.kinds:
            continue
        if name in chosen:
            values[name] = chosen[name]
            continue
        default = option.defaults.get(kind, option.default)
        # A default passes through the check too, which normalises it.
        values[name] = default if isinstance(default, Lazy) else option.check(default)
    return values


def _checked(kind: str, spelling: str, option: Option, value: object) -> Any:
    try:
        return option.check(value)
    except (TypeError, ValueError):
        raise _unacceptable(kind, spelling, option, value) from None


def _unacceptable(kind: str, spelling: str, option: Option, value: object) -> KafkaConfigurationError:
    hint = ""
    if option.name == "partitioner" and isinstance(value, str):  # librdkafka's are names
        hint = (
            ": the default places keys as Java's and librdkafka's murmur2_random do; the manual has the others under "
            "'Moving from confluent-kafka'"
        )
    return KafkaConfigurationError(
        f"{spelling} of {CLASSES[kind]} must be {option.check.accepts}, not {_shown(option, value)}{hint}",
        option=option.name,
    )


def _find(kind: str, spelling: str) -> Option:
    option = BY_SPELLING.get(spelling)
    if option is not None and kind in option.kinds:
        return option
    from kafka.config.librdkafka_options import advice_for, advice_for_guess

    if advice := advice_for(str(spelling)):
        sentence = f"{CLASSES[kind]} has no option {spelling!r}, which librdkafka has; here it is: {advice}"
    elif option is not None:
        sentence = f"{CLASSES[kind]} has no option {spelling!r}: it is an option of {_takers(option)}"
        if kind == "share" and option.name in _OF_SHARE_GROUPS:
            sentence += f"; a share group has the configuration {_OF_SHARE_GROUPS[option.name]} instead"
    elif guess := advice_for_guess(str(spelling)):
        sentence = f"{CLASSES[kind]} has no option {spelling!r}: {guess}"
    else:
        import difflib

        known = [name for name, found in BY_SPELLING.items() if kind in found.kinds]
        near = difflib.get_close_matches(str(spelling), known, n=1, cutoff=0.6) or difflib.get_close_matches(
            str(spelling), list(BY_SPELLING), n=1, cutoff=0.75
        )
        hint = f": did you mean {near[0]!r}?" if near else ""
        if near and kind not in BY_SPELLING[near[0]].kinds:
            hint += f" It is an option of {_takers(BY_SPELLING[near[0]])}"
        sentence = f"{CLASSES[kind]} has no option {spelling!r}{hint}"
    raise KafkaConfigurationError(sentence, option=str(spelling))


def refuse_arguments(call: str, given: Mapping[str, object]) -> NoReturn:
    """Raise the TypeError of an argument that a call does not have, with what to use here if other clients have it.

    >>> refuse_arguments("poll", {"timeout": 1.0})
    Traceback (most recent call last):
    TypeError: poll() got an unexpected keyword argument 'timeout': use timeout_ms=, in milliseconds
    """
    from kafka.config.librdkafka_options import advice_for_argument

    name = max(given, key=lambda name: given[name] is not None)  # the first that is not None, or the first of all
    advice = advice_for_argument(call, name)
    raise TypeError(f"{call}() got an unexpected keyword argument {name!r}{f': {advice}' if advice else ''}")


def _takers(option: Option) -> str:
    """Name the classes that accept an option: producers, consumers and admin clients, otherwise the historic ones."""
    kinds = (option.kinds & FACES) or option.kinds
    return " and ".join(name for kind, name in CLASSES.items() if kind in kinds)
