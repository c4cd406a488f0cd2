"""All options in one table, in the order of the docs, and the index of their names."""

from __future__ import annotations

from typing import Final

from kafka.config.client_options import CLIENT_OPTIONS
from kafka.config.consumer_options import CONSUMER_OPTIONS
from kafka.config.option import Option
from kafka.config.producer_options import PRODUCER_OPTIONS
from kafka.config.security_options import SASL_OPTIONS, TLS_OPTIONS

__all__ = ["BY_SPELLING", "OPTIONS", "SECTIONS"]

SECTIONS: Final[dict[str, tuple[Option, ...]]] = {
    "All clients": CLIENT_OPTIONS,
    "TLS": TLS_OPTIONS,
    "SASL": SASL_OPTIONS,
    "Producers": PRODUCER_OPTIONS,
    "Consumers and groups": CONSUMER_OPTIONS,
}

OPTIONS: Final[dict[str, Option]] = {option.name: option for options in SECTIONS.values() for option in options}

BY_SPELLING: Final[dict[str, Option]] = {spelling: option for option in OPTIONS.values() for spelling in option.names}
