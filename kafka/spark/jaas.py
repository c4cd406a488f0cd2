"""The option ``sasl.jaas.config`` of the Java client: a login module's class and its options, as one text."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kafka.spark.errors import KafkaSparkOptionError

__all__ = ["JaasEntry", "parse_jaas"]

_ENTRY: Final = re.compile(
    r"\s*([\w.$]+)\s+(required|requisite|sufficient|optional)\b(.*?);?\s*", re.DOTALL | re.IGNORECASE
)
_OPTION: Final = re.compile(r"""\s*([\w.\-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)'|([^\s;"']+))""")


class JaasEntry(NamedTuple):
    """One login module."""

    module: str
    """The class without its package."""
    options: dict[str, str]


def parse_jaas(text: str) -> JaasEntry:
    """Read such a text; what it says is never part of an error.

    >>> parse_jaas('org.apache.kafka.common.security.plain.PlainLoginModule required username="a" password="b c";')
    JaasEntry(module='PlainLoginModule', options={'username': 'a', 'password': 'b c'})
    """
    entry = _ENTRY.fullmatch(text)
    if entry is None:
        raise KafkaSparkOptionError(
            "kafka.sasl.jaas.config must be the class of a login module, 'required', its options and a semicolon: "
            'org.apache.kafka.common.security.plain.PlainLoginModule required username="..." password="...";'
        )
    options: dict[str, str] = {}
    at = 0
    rest = entry[3].rstrip().rstrip(";").rstrip()
    while at < len(rest):
        found = _OPTION.match(rest, at)
        if found is None:
            raise KafkaSparkOptionError(
                f"kafka.sasl.jaas.config: what stands after the option {len(options)} of {entry[1].rpartition('.')[2]} "
                'is not of the form name="value"'
            )
        quoted = found[2] if found[2] is not None else found[3]
        options[found[1]] = found[4] if quoted is None else re.sub(r"\\(.)", r"\1", quoted)
        at = found.end()
    return JaasEntry(entry[1].rpartition(".")[2], options)
