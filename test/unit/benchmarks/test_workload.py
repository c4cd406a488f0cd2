import gc
import json

import pytest

from benchmarks.workload import Case, Job, Target, Unsupported, Workload, main, peak_rss_kb, timed


@pytest.fixture(autouse=True)
def _only_collected_tests_are_frozen(monkeypatch):
    monkeypatch.setattr(gc, "freeze", lambda: None)


def workload(prepare) -> Workload:
    return Workload(
        title="test",
        unit="record",
        impls=("purekafka", "kio"),
        cases=[Case("one", "first"), Case("two", start=5)],
        prepare=prepare,
        targets=[Target("one", peer="kio", at_least=2)],
        settings={"linger": 5},
    )


def said(capsys, prepare, *argv) -> str:
    main(workload(prepare), argv)
    return capsys.readouterr().out


def nothing(*_args) -> Job:
    raise AssertionError("not to be prepared")


def test_list_names_the_cases(capsys):
    assert said(capsys, nothing, "--list") == "one\ntwo\n"


def test_describe_is_json_of_all_that_is_declared(capsys):
    told = json.loads(said(capsys, nothing, "--describe"))
    assert [case["name"] for case in told["cases"]] == ["one", "two"]
    assert told["cases"][1]["start"] == 5
    assert [(target["case"], target["peer"], target["at_least"]) for target in told["targets"]] == [("one", "kio", 2)]
    assert (told["title"], told["unit"], told["impls"]) == ("test", "record", ["purekafka", "kio"])
    assert (told["settings"], told["needs_broker"], told["set_up_impl"]) == ({"linger": 5}, False, "")


def test_a_run_prints_one_line_and_counts_what_the_operations_handled(capsys):
    counts, cpu = [], iter([7.0, 7.5])
    job = Job(counts.append, records=10, bytes=1000, digest="d", extra=lambda: {"p99_ms": 1.5}, cpu_s=lambda: next(cpu))
    line = json.loads(said(capsys, lambda *_: job, "--impl", "kio", "--case", "two", "--count", "50"))
    assert counts == [5, 50]  # the warm-up, then what is timed
    assert (line["impl"], line["case"], line["count"]) == ("kio", "two", 50)
    assert (line["records"], line["bytes"]) == (500, 50_000)
    assert (line["digest"], line["p99_ms"]) == ("d", 1.5)
    assert line["cpu_s"] == 0.5, "from the end of the warm-up to the end of the run"
    assert 0 < line["wall_s"] < 60


def test_a_row_that_a_library_cannot_run_is_reported_not_raised(capsys):
    def refuse(*_args) -> Job:
        raise Unsupported("has no columns")

    line = json.loads(said(capsys, refuse, "--impl", "kio", "--case", "one"))
    assert line == {"case": "one", "impl": "kio", "unsupported": "has no columns"}


def test_a_run_closes_what_it_opened_even_when_it_fails(capsys):
    closed = []

    def fail(_count: int) -> None:
        raise RuntimeError("broken")

    job = Job(fail, close=lambda: closed.append(True))
    with pytest.raises(RuntimeError, match="broken"):
        said(capsys, lambda *_: job, "--impl", "kio", "--case", "one")
    assert closed == [True]


def test_a_run_without_library_or_case_is_an_error(capsys):
    with pytest.raises(SystemExit) as caught:
        main(workload(nothing), ["--impl", "kio"])
    assert caught.value.code == 2
    assert "--impl and --case are needed" in capsys.readouterr().err


def test_the_warm_up_can_be_left_out():
    counts = []
    timed(Job(counts.append, warm_up=0), 7)
    assert counts == [7]


def test_another_clock_can_count_the_cpu():
    readings = iter([1.0, 3.5])
    assert timed(Job(lambda _count: None, cpu_s=lambda: next(readings)), 1)["cpu_s"] == 2.5


def test_peak_memory_is_that_of_this_process():
    assert 1000 < peak_rss_kb() < 100_000_000
