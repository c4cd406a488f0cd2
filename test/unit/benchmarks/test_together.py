import json
import sys
from pathlib import Path

import pytest

from benchmarks.runner import ChildError
from benchmarks.together import collect, measure_together
from benchmarks.venvs import Library, Venv


def line(case, impl, digest="same", **more):
    figures = {"records": 10, "bytes": 0, "cpu_s": 1.0, "wall_s": 2.0}
    return json.dumps({"case": case, "impl": impl, "digest": digest, **figures, **more}) + "\n"


def test_lines_are_sorted_into_cases_and_libraries_and_other_words_passed_over():
    lines = [
        '{"settings": {"java": "17"}}\n',
        "a warning\n",
        line("one", "a"),
        line("one", "b"),
        line("one", "a", ms=3),
    ]
    outcome, settings = collect([*lines, "[1]\n", line("two", "a")])
    assert settings == {"java": "17"}
    assert {case: {impl: len(runs) for impl, runs in found.samples.items()} for case, found in outcome.items()} == {
        "one": {"a": 2, "b": 1},
        "two": {"a": 1},
    }
    assert outcome["one"].samples["a"][1].metric("ms") == 3
    assert outcome["one"].samples["a"][0].metric("rss_mb") is None


def test_results_that_differ_do_not_count():
    outcome, _ = collect([line("one", "a"), line("one", "b", digest="other"), line("two", "a")])
    assert "differ" in outcome["one"].failure
    assert not outcome["one"].samples
    assert not outcome["two"].failure


def place(tmp_path, text):
    script = tmp_path / "child.py"
    script.write_text(text, encoding="utf-8")
    return script, Library("any", ()), Venv(Path(sys.executable), {})


def test_the_child_gets_its_words_and_its_lines_are_read(tmp_path):
    text = f"import sys\nassert sys.argv[1:] == ['--together', '--rounds', '2']\nprint({line('one', 'a')!r})\n"
    outcome, _ = measure_together(*place(tmp_path, text), ["--rounds", "2"])
    assert len(outcome["one"].samples["a"]) == 1


def test_a_child_that_fails_is_an_error_whatever_it_printed_before(tmp_path):
    with pytest.raises(ChildError, match=r"(?s)exited with 3:.*the reason"):
        measure_together(
            *place(
                tmp_path, f"import sys\nprint({line('one', 'a')!r})\nprint('the reason', file=sys.stderr)\nsys.exit(3)"
            ),
            [],
        )


def test_a_child_may_take_long_in_all_but_not_for_one_run(tmp_path):
    said = line("one", "a")
    lasting = f"import time\nfor _ in range(4):\n    time.sleep(0.5)\n    print({said!r}, flush=True)\n"
    outcome, _ = measure_together(*place(tmp_path, lasting), [], silence_s=60)
    assert len(outcome["one"].samples["a"]) == 4
    silent = f"import time\nprint({said!r}, flush=True)\ntime.sleep(600)\n"
    with pytest.raises(ChildError, match=r"no run was done within 0\.5 s"):
        measure_together(*place(tmp_path, silent), [], silence_s=0.5)
