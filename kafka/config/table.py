"""All options in one table, in the order of the docs, the index of their names, and the table as text for the docs."""

from __future__ import annotations

from typing import Final

from kafka.config.client_options import CLIENT_OPTIONS
from kafka.config.consumer_options import CONSUMER_OPTIONS
from kafka.config.option import CLASSES, Lazy, Option
from kafka.config.producer_options import PRODUCER_OPTIONS
from kafka.config.security_options import SASL_OPTIONS, TLS_OPTIONS

SECTIONS: Final[dict[str, tuple[Option, ...]]] = {
    "All clients": CLIENT_OPTIONS,
    "TLS": TLS_OPTIONS,
    "SASL": SASL_OPTIONS,
    "Producers": PRODUCER_OPTIONS,
    "Consumers and groups": CONSUMER_OPTIONS,
}

OPTIONS: Final[dict[str, Option]] = {option.name: option for options in SECTIONS.values() for option in options}

BY_SPELLING: Final[dict[str, Option]] = {spelling: option for option in OPTIONS.values() for spelling in option.names}


def render_rst() -> str:
    """All options as reStructuredText: a section each for common options, TLS, SASL, producers and consumers.

    >>> "linger_ms" in render_rst()
    True
    """
    parts = []
    for title, options in SECTIONS.items():
        parts.append(f"{title}\n{'-' * len(title)}\n\n")
        parts.extend(_entry(option) for option in options if not option.obsolete)
    gone = [option for options in SECTIONS.values() for option in options if option.obsolete]
    parts.append("No longer effective\n-------------------\n\nAccepted with a DeprecationWarning.\n\n")
    parts.extend(f"``{option.name}``\n    {option.doc} Now {option.obsolete}.\n\n" for option in gone)
    return "".join(parts)


def _entry(option: Option) -> str:
    lines = [f".. _option-{option.name}:\n", f"``{option.name}``", f"    {option.doc}\n"]
    facts = [f"*{option.check.accepts}*", f"default: {_default(option)}"]
    facts.extend(f"default of {CLASSES[kind]}: ``{value!r}``" for kind, value in option.defaults.items())
    facts.append("taken by: " + ", ".join(kind for kind in CLASSES if kind in option.kinds))
    if option.since:
        facts.append(f"needs brokers of {option.since}")
    if option.aliases:
        facts.append("also: " + ", ".join(f"``{alias}``" for alias in option.aliases))
    return "\n".join(lines) + "\n    " + " · ".join(facts) + "\n\n"


def _default(option: Option) -> str:
    if isinstance(option.default, Lazy):
        return f"``{option.default!r}``"
    # The version changes with each release; the docs need not.
    if option.name in {"client_id", "client_software_version"}:
        return "``purekafka-VERSION``" if option.name == "client_id" else "the version"
    if option.name == "socket_options":
        return "TCP_NODELAY and SO_KEEPALIVE on"
    return f"``{option.default!r}``"
