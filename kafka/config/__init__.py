"""Configuration: one table for all classes, and the function that turns keywords into checked values.

>>> config = resolve("producer", {"bootstrap_servers": "b1,b2:9093", "linger.ms": 20})
>>> config["linger_ms"], config.seconds("request_timeout_ms"), str(config["bootstrap_servers"][1])
(20, 30.0, 'b2:9093')
>>> resolve("producer", {"lingr_ms": 20})
Traceback (most recent call last):
kafka.errors.KafkaConfigurationError: KafkaProducer has no option 'lingr_ms': did you mean 'linger_ms'?

The table is in ``*_options.py`` beside this file, one row per option; rules.py has the constraints between options, and
client_properties.py the names and files of other clients. The faces, the docs and ``--help`` read the
table from here, and no other module of the library defines a default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kafka._lazy import lazy_names
from kafka.config.checks import duration_ms
from kafka.config.option import CLASSES, Option
from kafka.config.resolve import (
    Config,
    defaults,
    given_options,
    name_client,
    parse,
    part_of_defaults,
    refuse_arguments,
    resolve,
    resolve_part,
)
from kafka.config.security_options import MECHANISMS, accept_mechanism
from kafka.config.servers import DEFAULT_PORT, ServerAddress, collect_hosts, get_ip_port_afi, parse_servers
from kafka.config.table import BY_SPELLING, OPTIONS, SECTIONS, render_rst

if TYPE_CHECKING:
    from kafka.config.client_properties import (
        ForeignOption,
        find_option,
        nearest_name,
        parse_conf,
        parse_properties,
        translate,
    )

__all__ = [
    "BY_SPELLING",
    "CLASSES",
    "DEFAULT_PORT",
    "MECHANISMS",
    "OPTIONS",
    "SECTIONS",
    "Config",
    "ForeignOption",
    "Option",
    "ServerAddress",
    "accept_mechanism",
    "defaults",
    "duration_ms",
    "find_option",
    "given_options",
    "nearest_name",
    "parse",
    "parse_conf",
    "part_of_defaults",
    "parse_properties",
    "collect_hosts",
    "get_ip_port_afi",
    "name_client",
    "parse_servers",
    "refuse_arguments",
    "render_rst",
    "resolve",
    "resolve_part",
    "translate",
]

# The command line and Spark need these, clients do not.
_MODULES = {"client_properties": "ForeignOption find_option nearest_name parse_conf parse_properties translate"}

if not TYPE_CHECKING:  # checkers report a name that is not here
    __getattr__, __dir__ = lazy_names(__name__, _MODULES)
