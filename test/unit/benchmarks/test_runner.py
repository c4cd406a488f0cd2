import json
from pathlib import Path

import pytest

from benchmarks.runner import ChildError, Pace, Runner, describe, parse_line
from benchmarks.venvs import Library, Venv
from benchmarks.workload import Case

PACE = Pace(rounds=3, want_s=0.4, most_s=1.0)


class FakeRunner(Runner):
    """Answers by a table of seconds per operation in place of processes."""

    def __init__(self, seconds_each, digests=None, unsupported=()):
        libraries = {name: (Library(name, ()), Venv(Path("python"), {})) for name in (*seconds_each, *unsupported)}
        super().__init__(Path("fake.py"), libraries)
        self.seconds_each, self.digests = seconds_each, digests or {}
        self.calls = []

    def _child(self, impl, case, count):
        self.calls.append((impl, count))
        if impl not in self.seconds_each:
            return {"count": count, "unsupported": "cannot"}
        spent = self.seconds_each[impl] * count
        figures = {"records": count, "bytes": 0, "cpu_s": spent, "wall_s": spent, "rss_kb": 1}
        return {"count": count, **figures, "digest": self.digests.get(impl, "")}


def test_rounds_alternate_between_the_libraries():
    runner = FakeRunner({"a": 1e-3, "b": 1e-3})
    result = runner.measure(Case("c", start=400), PACE)
    assert [impl for impl, _count in runner.calls[2:]] == ["a", "b"] * 3
    assert {name: len(samples) for name, samples in result.samples.items()} == {"a": 3, "b": 3}


def test_calibration_grows_the_count_until_a_run_is_long_enough():
    runner = FakeRunner({"a": 2**-19})
    runner.measure(Case("c", start=1), Pace(rounds=3, want_s=0.5, most_s=1.0))
    calibration = [count for _impl, count in runner.calls[:-3]]
    assert calibration == [1, 50, 2500, 125_000]
    assert [count for _impl, count in runner.calls[-3:]] == [262_144] * 3


def test_libraries_that_make_different_bytes_are_not_timed():
    runner = FakeRunner({"a": 1e-3, "b": 1e-3}, digests={"a": "x", "b": "y"})
    result = runner.measure(Case("c", start=400), PACE)
    assert "different bytes" in result.failure
    assert not result.samples


def test_a_library_without_a_digest_is_not_compared():
    runner = FakeRunner({"a": 1e-3, "b": 1e-3}, digests={"a": "x"})
    assert not runner.measure(Case("c", start=400), PACE).failure


def test_a_library_that_cannot_do_the_case_is_noted_and_left_out():
    runner = FakeRunner({"a": 1e-3}, unsupported=("b",))
    result = runner.measure(Case("c", start=400), PACE)
    assert result.unsupported == {"b": "cannot"}
    assert list(result.samples) == ["a"]


def test_a_case_runs_only_the_libraries_that_it_names():
    runner = FakeRunner({"a": 1e-3, "b": 1e-3})
    assert list(runner.measure(Case("c", start=400, impls=("b",)), PACE).samples) == ["b"]


def test_the_result_is_the_last_line_after_other_output():
    assert parse_line('warning: something\n{"wall_s": 1}\n', "c with a", 7) == {"count": 7, "wall_s": 1}


@pytest.mark.parametrize("printed", ["", "no json", "[1]", '{"a": 1}\ntrailing'])
def test_a_child_without_a_result_is_an_error_that_names_it(printed):
    with pytest.raises(ChildError, match="c with a printed no result"):
        parse_line(printed, "c with a", 7)


def test_a_script_is_described_without_options(tmp_path):
    told = {
        "title": "t",
        "unit": "record",
        "impls": ["purekafka"],
        "cases": [{"name": "c", "about": "", "start": 5, "same_count": True, "impls": []}],
        "targets": [{"case": "c", "peer": "kio", "at_least": 2}],
        "settings": {"acks": 1},
        "needs_broker": False,
        "set_up_impl": "",
    }
    script = tmp_path / "script.py"
    script.write_text(f"print({json.dumps(told)!r})", encoding="utf-8")
    found = describe(script)
    assert found.cases == (Case("c", "", 5, same_count=True),)
    assert found.targets[0].peer == "kio"


def test_a_script_that_cannot_describe_itself_is_an_error_with_its_last_words(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("raise SystemExit('no such thing')", encoding="utf-8")
    with pytest.raises(ChildError, match=r"script\.py --describe failed:\nno such thing"):
        describe(script)
