import pytest

from benchmarks.stats import Sample, Spread, plan_counts, ratio, summary


def sample(cpu_us: float, wall_us: float = 1.0, **extra: float) -> Sample:
    return Sample(1000, 100_000, cpu_us / 1000, wall_us / 1000, 2048, dict(extra))


def test_sample_takes_foreign_numbers_of_the_line_as_extra_figures():
    line = {"case": "c", "impl": "i", "count": 3, "records": 10, "bytes": 5, "cpu_s": 0.1, "wall_s": 0.2, "rss_kb": 1}
    made = Sample.from_line({**line, "p99_ms": 7, "digest": "abc", "warm": True})
    assert made.extra == {"p99_ms": 7.0}
    assert made.metric("p99_ms") == 7.0
    assert made.metric("p50_ms") is None


def test_negative_cpu_time_is_refused():
    line = {"records": 10, "bytes": 5, "cpu_s": -0.1, "wall_s": 0.2}
    with pytest.raises(ValueError, match=r"cannot have used -0\.1 s of CPU time"):
        Sample.from_line(line)


@pytest.mark.parametrize("broken", [{"records": 0}, {"wall_s": 0.0}])
def test_sample_of_nothing_is_refused(broken):
    line = {"records": 10, "bytes": 5, "cpu_s": 0.1, "wall_s": 0.2, "rss_kb": 1}
    with pytest.raises(ValueError, match="says nothing"):
        Sample.from_line({**line, **broken})


def test_metrics_are_per_record():
    made = sample(cpu_us=4.0, wall_us=5.0)
    assert made.metric("cpu_us") == pytest.approx(4.0)
    assert made.metric("wall_us") == pytest.approx(5.0)
    assert made.metric("rss_mb") == pytest.approx(2.0)


def test_summary_is_the_median_with_least_and_most():
    assert summary([sample(3), sample(1), sample(2)], "cpu_us") == Spread(
        pytest.approx(2), pytest.approx(1), pytest.approx(3)
    )


def test_summary_is_none_where_one_run_lacks_the_figure():
    assert summary([sample(1, p99_ms=1.0), sample(1)], "p99_ms") is None
    assert summary([], "cpu_us") is None


def test_ratio_pairs_the_rounds():
    # The machine was twice as slow in the second round, for both: the ratio does not move.
    seen = ratio([sample(4), sample(8)], [sample(1), sample(2)], "cpu_us")
    assert seen == Spread(pytest.approx(4), pytest.approx(4), pytest.approx(4))


def test_ratio_spread_is_over_the_pairs():
    seen = ratio([sample(4), sample(6), sample(5)], [sample(1), sample(1), sample(1)], "cpu_us")
    assert seen == Spread(pytest.approx(5), pytest.approx(4), pytest.approx(6))


def test_ratio_needs_something_to_divide_by():
    assert ratio([sample(4)], [sample(0)], "cpu_us") is None
    assert ratio([sample(4)], [], "cpu_us") is None


def test_counts_are_common_and_let_the_fastest_run_long_enough():
    counts = plan_counts({"fast": 1e-6, "slow": 2e-6}, want_s=0.35, most_s=1.0, same=False)
    assert counts == {"fast": 350_000, "slow": 350_000}


def test_a_library_that_would_run_too_long_gets_its_own_count():
    counts = plan_counts({"fast": 1e-6, "slow": 1e-3}, want_s=0.35, most_s=1.0, same=False)
    assert counts == {"fast": 350_000, "slow": 1000}
    counts = plan_counts({"fast": 1e-3, "barely": 2e-3, "slow": 4e-3}, want_s=0.5, most_s=1.0, same=False)
    assert counts == {"fast": 500, "barely": 500, "slow": 250}, "only those that would take longer than most_s"


def test_same_count_is_kept_at_any_price():
    assert plan_counts({"fast": 1e-6, "slow": 1e-3}, want_s=0.35, most_s=1.0, same=True)["slow"] == 350_000


def test_an_operation_longer_than_the_run_is_done_once():
    assert plan_counts({"one": 5.0}, want_s=0.35, most_s=1.0, same=False) == {"one": 1}
