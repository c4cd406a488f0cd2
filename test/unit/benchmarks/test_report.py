import pytest

from benchmarks.report import Section, replace_section, write

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
