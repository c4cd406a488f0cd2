"""No public name is lost: each name of the recorded list resolves."""

from importlib import import_module
from pathlib import Path

import pytest

from tools.public_names import exports, members

RECORDED = (Path(__file__).parent / "public_names.txt").read_text(encoding="utf-8").split()


def resolve(name):
    """Import the module part of a name as a program would, and look up the rest."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = import_module(".".join(parts[:end]))
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):
                raise
            continue
        for part in parts[end:]:
            found = getattr(found, part)
        return found
    raise ModuleNotFoundError(name)


def missing(names):
    found = []
    for name in names:
        try:
            resolve(name)
        except (AttributeError, ImportError) as error:  # noqa: PERF203 - all that are missing, not the first
            found.append(f"{name}: {error}")
    return found


def test_every_recorded_name_resolves():
    assert len(RECORDED) > 2000
    assert missing(RECORDED) == []


@pytest.mark.parametrize("name", ["kafka.KafkaProducer.sned", "kafka.protocol.nothing", "kafka.errors.NoSuchError"])
def test_a_lost_name_is_found(name):
    assert [text.split(":")[0] for text in missing([name, "kafka.KafkaProducer.send"])] == [name]


def test_the_script_lists_exports_and_members_and_no_names_of_other_clients():
    import kafka

    assert {"KafkaProducer", "KafkaClient"} <= set(exports(kafka))
    assert {"send", "flush", "close"} <= set(members(kafka.KafkaProducer))
    assert "produce" not in members(kafka.KafkaProducer)
