import pytest

from benchmarks.report import Section, read, replace_section, write

TWO = "# Head\n\n<!-- begin a -->\nold a\n<!-- end a -->\n\n<!-- begin b -->\nold b\n<!-- end b -->\n"


def test_a_section_replaces_its_own_and_leaves_the_others():
    assert replace_section(TWO, "a", "new a") == TWO.replace("old a", "new a")


def test_a_new_section_goes_to_the_end():
    assert replace_section(TWO, "c", "first c") == TWO + "\n<!-- begin c -->\nfirst c\n<!-- end c -->\n"


def test_replacing_with_the_same_text_changes_nothing():
    once = replace_section(TWO, "a", "new \\1 a\n\nwith | bars |")
    assert replace_section(once, "a", "new \\1 a\n\nwith | bars |") == once


@pytest.mark.parametrize(
    "damaged",
    [
        "<!-- begin a -->\ntext",
        "text\n<!-- end a -->",
        "<!-- end a -->\n<!-- begin a -->",
        "<!-- begin a -->\n<!-- begin a -->\n<!-- end a -->",
    ],
)
def test_damaged_markers_stop_the_writing(damaged):
    with pytest.raises(ValueError, match="markers of the section 'a' are damaged"):
        replace_section(damaged, "a", "new")


def section(**changes) -> Section:
    values = {
        "name": "protocol",
        "title": "messages",
        "date": "2025-01-02",
        "command": "python -m benchmarks protocol",
        "machine": {"CPU": "A CPU", "cores": "2", "memory": "8.0 GiB"},
        "versions": {"kio": {"kio": "0.6", "crc32c": "2.9"}},
        "settings": {"linger": "5 ms"},
        "table": "| t |",
        "absences": "",
        "verdicts": "- holds: x",
    }
    return Section(**{**values, **changes})


def test_a_section_tells_command_machine_settings_and_versions():
    text = section().text()
    assert text.startswith("## protocol: messages\n\n2025-01-02, `python -m benchmarks protocol`")
    assert "A CPU, 2 cores, 8.0 GiB" in text
    assert "- linger: 5 ms" in text
    assert "- kio: crc32c 2.9, kio 0.6" in text


def test_notes_stand_below_the_targets():
    assert (
        "Targets:\n\n- holds: x\n\n- a is slow\n- so is b\n\nVersions" in section(notes=["a is slow", "so is b"]).text()
    )


def test_empty_parts_leave_no_gap():
    text = section(verdicts="").text()
    assert "Targets" not in text
    assert "\n\n\n" not in text


def test_the_file_is_made_with_a_head_and_then_kept(tmp_path):
    path = tmp_path / "RESULTS.md"
    write(section(), path)
    write(section(name="records"), path)
    write(section(table="| newer |"), path)
    text = path.read_text(encoding="utf-8")
    assert text.startswith("# Benchmark results\n")
    assert text.count("<!-- begin") == 2
    assert "| newer |" in text
    assert [entry.name for entry in tmp_path.iterdir()] == ["RESULTS.md"]


def test_a_section_is_read_as_it_was_written(tmp_path):
    table = (
        "| case  | library      | CPU µs/record | records/s |            CPU / ours |\n"
        "| ----- | ------------ | ------------: | --------: | --------------------: |\n"
        "| first | purekafka    |          1.45 |   643,000 |                     1 |\n"
        "|       | kafka-python |             - |         - | 0.316x (0.272..0.338) |\n"
        "| other | purekafka    |          2.00 |       500 |                     1 |"
    )
    path = tmp_path / "RESULTS.md"
    written = section(table=table, verdicts="- holds: x; seen 4\n- MISSED: y: z; seen 0.5")
    write(written, path)
    write(section(name="other"), path)
    published = read(path)
    assert list(published) == ["protocol", "other"]
    found = published["protocol"]
    assert (found.name, found.title, found.date) == ("protocol", "messages", "2025-01-02")
    assert found.machine == "A CPU, 2 cores, 8.0 GiB"
    assert found.settings == {"linger": "5 ms"}
    assert (found.holds, found.missed) == (["x; seen 4"], ["y: z; seen 0.5"])
    assert {case: [result.library for result in results] for case, results in found.cases.items()} == {
        "first": ["purekafka", "kafka-python"],
        "other": ["purekafka"],
    }
    ours, theirs = found.cases["first"]
    assert (ours.figure("CPU"), ours.figure("records/s"), ours.figure("CPU / ours")) == (1.45, 643000, 1)
    assert (theirs.figure("CPU"), theirs.figure("CPU / ours"), theirs.figure("p50 ms")) == (None, 0.316, None)


def test_every_section_of_the_repository_is_read():
    published = read()
    assert published
    for name, found in published.items():
        assert found.cases, name
        assert found.date, name
        assert all(results[0].figure("CPU") is not None for results in found.cases.values()), name
