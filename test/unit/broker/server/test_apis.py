"""The table of the APIs that are served, and the functions that serve them."""

from __future__ import annotations

import re
from importlib import import_module
from types import ModuleType

from kafka.broker.server.apis import handler, refusal, served
from kafka.protocol.registry import APIS


def test_an_api_says_its_name_its_key_and_the_versions_that_are_served() -> None:
    for key in sorted(served()):
        serve = handler(key)
        module = import_module(served()[key])
        api = APIS[key]
        found = re.match(
            r"(\w+) \((\d+)\), versions? (\d+)(?:-(\d+))?[:.]",
            serve.__doc__ if len(served_by(module)) > 1 else module.__doc__,
        )
        assert found is not None
        name, number, low, high = found.groups()
        assert (name, int(number), int(low), int(high or low)) == (api.name, key, api.min_version, api.max_version)


def test_each_function_that_refuses_is_found() -> None:
    for name in sorted(set(served().values())):
        found = {refusal(key) for key, module in served().items() if module == name}
        assert {
            value for attribute, value in vars(import_module(name)).items() if attribute.startswith("refuse_")
        } <= found


def served_by(module: ModuleType) -> list[int]:
    """The keys of the APIs in a module."""
    return [key for key, name in served().items() if name == module.__name__]
