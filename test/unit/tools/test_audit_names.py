"""The comparison of the public names of kafka-python with ours: what it finds, and that it finds nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.audit_names import audit, check, main, name_lists, on_purpose, unexplained

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("path", name_lists(), ids=lambda path: path.stem)
def test_each_name_of_a_manual_is_here_or_differs_on_purpose(path: Path) -> None:
    findings = audit([path])
    assert len(findings) > 10
    assert unexplained(findings) == []


def test_what_differs_on_purpose_is_in_the_documentation() -> None:
    text = " ".join((ROOT / "docs" / "moving.rst").read_text().split())
    assert [reason for reason in on_purpose().values() if reason not in text] == []


def test_each_reason_is_still_needed() -> None:
    differing = [finding for finding in audit(name_lists()) if finding.verdict != "present"]
    for pattern in on_purpose():
        others = [finding for finding in differing if finding.fact != pattern]
        assert len(others) < len(differing) or any(c in pattern for c in "*?"), pattern


@pytest.mark.parametrize(
    ("fact", "verdict"),
    [
        ("module kafka.errors", "present"),
        ("module kafka.no_such_module", "absent"),
        ("module kafka.errors.KafkaError", "is not a module"),
        ("name kafka.structs.TopicPartition", "present"),
        ("name kafka.structs.Nothing", "absent"),
        ("function kafka.codec.gzip_encode(payload, compresslevel=None)", "present"),
        ("function kafka.codec.gzip_encode(payload, level=None)", "has no argument level"),
        ("function kafka.codec.gzip_encode(compresslevel=None)", "has compresslevel in another position"),
        ("method kafka.KafkaConsumer.poll(timeout_ms=0, max_records=None)", "present"),
        ("method kafka.KafkaConsumer.poll(timeout_ms=7)", "has timeout_ms=0, not 7"),
        ("method kafka.KafkaConsumer.seek(partition)", "needs an argument offset"),
        ("method kafka.KafkaConsumer.topics(*names)", "does not take *names"),
        ("option kafka.KafkaConsumer fetch_min_bytes = 1", "present"),
        ("option kafka.KafkaConsumer fetch_min_bytes = 2", "has the default 1, not 2"),
        ("error kafka.errors.NodeNotReadyError < kafka.errors.KafkaError", "present"),
        ("error kafka.errors.KafkaError < kafka.errors.NodeNotReadyError", "is not a kafka.errors.NodeNotReadyError"),
    ],
)
def test_the_verdict_on_one_fact(fact: str, verdict: str) -> None:
    assert check(fact) == verdict


def test_an_option_that_does_not_exist_is_absent() -> None:
    assert check("option kafka.KafkaConsumer no_such_option = 1").startswith("absent")


def test_the_command_prints_what_is_absent_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = tmp_path / "names.txt"
    names.write_text("# a comment\nmodule kafka.errors\nname kafka.errors.Missing\n")
    assert main([str(names)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "name kafka.errors.Missing: absent",
        "2 facts: 1 present, 0 differ on purpose, 1 absent, 0 differ",
    ]
