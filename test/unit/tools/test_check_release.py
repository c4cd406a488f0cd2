"""What a release needs beside its archives."""

from __future__ import annotations

import pytest

from tools.check_release import problems

CHANGES = "Changes\n=======\n\n0.2.0 (2027-01-31)\n------\n\n0.1.0 (2026-11-26)\n------\n"


def test_a_release_has_a_version_a_section_with_a_date_and_no_tag_yet() -> None:
    assert problems("0.2.0", CHANGES, ["v0.1.0"]) == []


@pytest.mark.parametrize(
    ("version", "changes", "tags"),
    [
        ("0.2.0.dev0", CHANGES.replace("0.2.0", "0.2.0.dev0"), []),
        ("0.1.0", CHANGES, []),
        ("0.2.0", CHANGES.replace("2027-01-31", "unreleased"), []),
        ("0.2.0", "", []),
        ("0.2.0", CHANGES, ["v0.2.0"]),
    ],
)
def test_each_missing_thing_is_reported(version: str, changes: str, tags: list[str]) -> None:
    assert len(problems(version, changes, tags)) == 1
