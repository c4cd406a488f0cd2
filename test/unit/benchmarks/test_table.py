import pytest

from benchmarks.stats import Sample, Spread
from benchmarks.table import absences, figure, grid, one_line, results, times, verdicts
from benchmarks.targets import Verdict


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (0, "0"),
        (0.001234, "0.00123"),
        (0.5, "0.500"),
        (1.0, "1.00"),
        (4.567, "4.57"),
        (45.67, "45.7"),
        (456.7, "457"),
        (12345.6, "12,300"),
        (14_812_345, "14,800,000"),
    ],
)
def test_figures_have_three_digits(value, text):
    assert figure(value) == text


def test_a_ratio_shows_its_spread():
    assert times(Spread(4.02, 3.9, 4.13)) == "4.02x (3.90..4.13)"
    assert times(None) == "-"


def test_the_grid_is_markdown_and_aligned():
    assert grid(["case", "library", "µs"], [["a", "kio", "1.0"], ["", "purekafka", "12.0"]]) == (
        "| case | library   |   µs |\n"
        "| ---- | --------- | ---: |\n"
        "| a    | kio       |  1.0 |\n"
        "|      | purekafka | 12.0 |"
    )


def run(cpu_s: float, wall_s: float, **extra: float) -> Sample:
    return Sample(records=1000, bytes=100_000, cpu_s=cpu_s, wall_s=wall_s, rss_kb=2048, extra=dict(extra))


def cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]


def test_results_show_costs_rates_and_ratios():
    table = results({"send": {"purekafka": [run(0.001, 0.002)], "kio": [run(0.004, 0.004)]}}, "record")
    header, _rule, ours, theirs = cells(table)
    assert header[:6] == ["case", "library", "CPU µs/record", "records/s", "MB/s", "peak MB"]
    assert ours == ["send", "purekafka", "1.00", "500,000", "50.0", "2.00", "1", "1"]
    assert theirs == ["", "kio", "4.00", "250,000", "25.0", "2.00", "4.00x (4.00..4.00)", "2.00x (2.00..2.00)"]


def test_figures_of_the_workload_get_separate_columns():
    table = results({"get": {"purekafka": [run(1, 1, p99_ms=3.0)], "kio": [run(1, 1)]}}, "call")
    header, _rule, ours, theirs = cells(table)
    column = header.index("p99 ms")
    assert (ours[column], theirs[column]) == ("3.00", "-")


def test_a_case_without_ours_has_no_ratio():
    table = results({"get": {"kio": [run(1, 1)]}}, "call")
    assert cells(table)[2][-2:] == ["-", "-"]


def test_one_line_says_costs_and_medians_of_the_ratio():
    assert one_line({"purekafka": [run(0.001, 1)], "kio": [run(0.004, 1)]}, "record") == (
        "µs/record: purekafka 1.00, kio 4.00 (4.00x)"
    )


def test_a_row_that_a_library_cannot_run_names_the_reason():
    assert absences({"columns": {"kio": "has none"}, "rows": {}}) == "- columns: not with kio: has none"


def test_verdicts_say_what_was_seen():
    judged = [
        Verdict("a: cpu_us of kio / ours >= 2", Spread(2.5, 2.4, 2.6), True),
        Verdict("b: cpu_us <= 1", None, False),
    ]
    assert verdicts(judged) == (
        "- holds: a: cpu_us of kio / ours >= 2; seen 2.50 (2.40..2.60)\n- MISSED: b: cpu_us <= 1; not measured"
    )
