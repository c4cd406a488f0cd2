import argparse
import fnmatch
from pathlib import Path

import pytest

from benchmarks import harness, machine, ours
from benchmarks.venvs import LIBRARIES, child_env


def test_only_a_whole_run_is_kept():
    assert harness._is_complete(harness.parse(["records"]))
    for partial in (["--quick"], ["--case", "x*"], ["--peers", "aiokafka"], ["--runs", "3"], ["--no-write"]):
        assert not harness._is_complete(harness.parse(["records", *partial]))


@pytest.mark.parametrize("argv", [["nothing"], ["records", "--peers", "nobody"], ["records", "--runs", "0"]])
def test_a_wrong_command_line_is_refused(argv, capsys):
    with pytest.raises(SystemExit) as caught:
        harness.parse(argv)
    assert caught.value.code == 2
    assert capsys.readouterr().err


def test_every_sub_target_describes_itself_with_known_libraries_and_has_its_main_rows():
    for name in harness.available():
        told = harness.describe(harness.HERE / f"{name}.py")
        assert set(told.impls) <= set(LIBRARIES)
        cases = {case.name for case in told.cases}
        assert len(cases) == len(told.cases)
        for pattern in harness.MAIN.get(name, ()):
            assert fnmatch.filter(cases, pattern), pattern
    assert harness.MAIN.keys() <= set(harness.available())


def test_ours_comes_first_and_peers_can_be_chosen(monkeypatch):
    made = []
    monkeypatch.setattr(harness, "ensure", lambda library, refresh: made.append((library.name, refresh)))
    chosen = harness.prepare(["aiokafka", "kafka-python", "purekafka"], "aiokafka", refresh=True)
    assert list(chosen) == ["purekafka", "aiokafka"]
    assert made == [("purekafka", True), ("aiokafka", True)]


def test_libraries_that_share_an_environment_build_it_once(monkeypatch):
    made = []
    monkeypatch.setattr(harness, "ensure", lambda library, refresh: made.append(library.name))
    assert list(harness.prepare(["purekafka", "purekafka-aio"], "", refresh=False)) == ["purekafka", "purekafka-aio"]
    assert made == ["purekafka"]


def test_a_pattern_without_a_case_is_an_error():
    told = harness.describe(harness.HERE / "records.py")
    with pytest.raises(harness.ChildError, match="no case matches 'nothing'"):
        harness.measure(harness.HERE / "records.py", told, {}, argparse.Namespace(case="nothing", main=False))


def test_peers_never_see_the_working_tree(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", "/somewhere")
    monkeypatch.setenv("AIOKAFKA_NO_EXTENSIONS", "1")
    assert "PYTHONPATH" not in child_env(LIBRARIES["kafka-python"])
    assert "AIOKAFKA_NO_EXTENSIONS" not in child_env(LIBRARIES["aiokafka"])


def test_machine_facts_name_no_host():
    found = machine.facts()
    assert list(found) == ["CPU", "cores", "memory", "system", "Python"]
    assert int(found["cores"]) >= 1


def test_importing_is_timed_as_processes_that_import_the_clients(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(harness.__file__).parent))
    import imports

    assert "KafkaProducer, KafkaConsumer" in imports.STATEMENTS["purekafka"]
    processes = imports.Imports("purekafka")
    before = imports.cpu_s()
    processes.run(1)
    assert imports.cpu_s() > before


def test_content_is_uneven_and_comes_from_the_seed(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(harness.__file__).parent))
    from traffic import Content

    for shape, least, most in (("mix", 20, 300), ("json", 80, 2000)):
        sizes = [len(record.value) for record in Content(shape, 1).records(3000)]
        assert least <= min(sizes) < least * 1.2
        assert most * 0.8 < max(sizes) <= most
    one, same, other = (list(Content("mix", seed).records(100)) for seed in (1, 1, 2))
    assert one == same != other
    assert [record.key is None for record in one[:4]] == [True, False, True, False]
    assert all(record.headers is None for record in one)
    assert sum(record.headers is not None for record in Content("mix-headers", 1).records(100)) == 10
    assert {len(record.value) for record in Content("1000", 1).records(100)} == {1000}


@pytest.fixture
def tree(tmp_path):
    package = tmp_path / "tree" / "kafka"
    (package / "__pycache__").mkdir(parents=True)
    (package / "version.py").write_text('__version__ = "1.2"\n', encoding="utf-8")
    return tmp_path / "tree"


def test_a_run_measures_the_package_as_it_was_when_it_began(tree, tmp_path):
    with ours.snapshot(tree, tmp_path / "cache") as place:
        (tree / "kafka" / "version.py").write_text("edited meanwhile", encoding="utf-8")
        assert (place / "kafka" / "version.py").read_text(encoding="utf-8") == '__version__ = "1.2"\n'
        assert not (place / "kafka" / "__pycache__").exists()
    assert not place.exists()


def test_our_version_needs_no_repository(tree, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tree.parent))
    assert ours.version(tree) == "1.2"


def test_our_version_names_the_commit_and_says_when_it_was_edited(tree, monkeypatch):
    said = {"rev-parse": "abc1234", "status": " M kafka/version.py"}
    monkeypatch.setattr(ours, "_git", lambda _root, command, *_args: said[command])
    assert ours.version(tree) == "1.2 (abc1234, edited)"
    said["status"] = ""
    assert ours.version(tree) == "1.2 (abc1234)"
