"""Kafka's own scripts, beside which the commands are tested."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from test.real.java_tools import JavaTools

Script = Callable[..., str]


@pytest.fixture
def script(java_tools: JavaTools, servers: str) -> Script:
    """Runs a tool, given by its class, against the module's cluster; returns what it prints."""

    def run(main: str, *words: str, text: str = "") -> str:
        done = java_tools.run(main, "--bootstrap-server", servers, *words, text=text)
        assert done.code == 0, f"{done.out}\n{done.err}"
        return done.out

    return run
