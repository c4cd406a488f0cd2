"""kafka.metrics: windows, rates, quotas, expiry, all under a clock of the test's own."""

import importlib
import math
import random
import sys
import threading

import pytest

from kafka.errors import QuotaViolationError
from kafka.metrics import (
    AbstractMeasurable,
    AbstractMetricsReporter,
    AnonMeasurable,
    DictReporter,
    KafkaMetric,
    MetricConfig,
    MetricName,
    Metrics,
    Quota,
)
from kafka.metrics.sensor import Journal, Sensor
from kafka.metrics.stats import (
    Avg,
    BucketSizing,
    Count,
    Histogram,
    Max,
    Min,
    Percentile,
    Percentiles,
    Rate,
    SampledTotal,
    TimeUnit,
    Total,
)


class Clock:
    """A clock that stands still until told otherwise."""

    def __init__(self):
        self.now = 1_700_000_000.0

    def time(self):
        return self.now

    monotonic = time

    def advance(self, seconds):
        self.now += seconds


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def config():
    return MetricConfig(samples=2, time_window_ms=1000)


@pytest.fixture
def metrics(clock, config):
    return Metrics(config, enable_expiration=True, clock=clock)


def name(text, group="g", **tags):
    return MetricName(text, group, "", tags)


def own(metrics):
    """The metrics without the one of the registry itself: how many there are."""
    return {key: metric for key, metric in metrics.metrics.items() if key.group != "kafka-metrics-count"}


def feed(stat, config, *values):
    for time_ms, value in values:
        stat.record(config, value, time_ms)
    return stat


# Stats


@pytest.mark.parametrize(
    ("stat", "empty", "both", "last"),
    [
        (Avg, 0.0, 20.0, 30.0),
        (Count, 0.0, 3.0, 1.0),
        (Max, -math.inf, 30.0, 30.0),
        (Min, float(sys.maxsize), 10.0, 30.0),
        (SampledTotal, 0.0, 60.0, 30.0),
    ],
)
def test_a_windowed_stat_looks_back_over_its_windows_only(config, stat, empty, both, last):
    sampled = stat()
    assert sampled.measure(config, 0) == empty
    feed(sampled, config, (0, 10), (500, 20), (1000, 30))
    assert sampled.measure(config, 1999) == both
    assert sampled.measure(config, 2000) == last
    assert sampled.measure(config, 3000) == empty


def test_a_maximum_may_have_a_number_where_it_has_no_value(config):
    highest = Max(empty=0.0)
    assert highest.measure(config, 0) == 0.0
    feed(highest, config, (0, 10))
    assert highest.measure(config, 1) == 10.0
    assert highest.measure(config, 9999) == 0.0


def test_a_window_ends_after_its_number_of_events():
    config = MetricConfig(samples=2, event_window=2, time_window_ms=10**9)
    total = feed(SampledTotal(), config, *((0, value) for value in (1, 2, 4, 8, 16)))
    assert total.measure(config, 0) == 4 + 8 + 16


def test_old_windows_are_reused(config):
    total = SampledTotal()
    for second in range(100):
        total.record(config, 1, second * 1000)
    assert len(total._samples) == 2
    assert total.measure(config, 99000) == 2


def test_one_window_is_enough():
    config = MetricConfig(samples=1, time_window_ms=1000)
    assert feed(Count(), config, (0, 1), (1500, 1)).measure(config, 1500) == 1
    rate = feed(Rate(), config, (0, 5))
    assert rate.measure(config, 0) == 0.0
    assert rate.measure(config, 500) == 10.0


def test_total_never_forgets(config):
    assert feed(Total(5), config, (0, 1), (10**9, 2)).measure(config, 10**12) == 8


def test_rate_divides_by_the_time_looked_back_on(config):
    rate = Rate()
    assert rate.measure(config, 0) == 0.0
    feed(rate, config, (0, 100), (1000, 100))
    assert rate.measure(config, 1000) == 200.0
    assert rate.measure(config, 1500) == pytest.approx(200 / 1.5)


def test_the_first_moments_do_not_give_an_absurd_rate(config):
    assert feed(Rate(), config, (0, 100)).measure(config, 1) == pytest.approx(100 / 1.001)


def test_a_clock_that_steps_back_gives_no_negative_rate(config):
    assert feed(Rate(), config, (5000, 100)).measure(config, 4000) == 100.0


@pytest.mark.parametrize(
    ("unit", "per_second"),
    [
        (TimeUnit.NANOSECONDS, 1e-9),
        (TimeUnit.MICROSECONDS, 1e-6),
        (TimeUnit.MILLISECONDS, 1e-3),
        (TimeUnit.SECONDS, 1),
        (TimeUnit.MINUTES, 60),
        (TimeUnit.HOURS, 3600),
        (TimeUnit.DAYS, 86400),
    ],
)
def test_rate_in_other_units(config, unit, per_second):
    rate = feed(Rate(unit, Count()), config, (0, 7), (0, 7))
    assert rate.measure(config, 0) == pytest.approx(2 * per_second)
    assert rate.unit_name() == TimeUnit.get_name(unit)


@pytest.mark.parametrize(
    "scheme",
    [Histogram.ConstantBinScheme(12, -5, 5), Histogram.LinearBinScheme(10, 100), Histogram.LinearBinScheme(2, 1)],
)
def test_a_bin_scheme_puts_the_lower_end_of_each_bin_into_that_bin(scheme):
    lower = [scheme.from_bin(b) for b in range(scheme.bins)]
    assert lower == sorted(lower)
    for b in range(1, scheme.bins - 1):
        assert scheme.to_bin(lower[b] + 1e-9) == b
    assert scheme.to_bin(1e9) == scheme.bins - 1
    assert scheme.from_bin(scheme.bins - 1) == math.inf


def test_bin_schemes_refuse_what_makes_no_sense():
    with pytest.raises(ValueError, match="3 bins"):
        Histogram.ConstantBinScheme(2, 0, 1)
    with pytest.raises(ValueError, match="2 bins"):
        Histogram.LinearBinScheme(1, 1)
    with pytest.raises(ValueError, match="below 0"):
        Histogram.LinearBinScheme(5, 1).to_bin(-1)


def test_histogram_counts_and_clears():
    histogram = Histogram(Histogram.ConstantBinScheme(10, -5, 5))
    assert math.isnan(histogram.value(0.5))
    for value in (-10, -5, 4.99, 5, 10):
        histogram.record(value)
    assert histogram.counts == [1, 1, 0, 0, 0, 0, 0, 0, 1, 2]
    assert histogram.value(0.0) == -math.inf
    assert histogram.value(0.99) == math.inf
    assert str(histogram).startswith("{-inf:1,-5.0000000000:1,")
    assert str(histogram).endswith("inf:2}")
    histogram.clear()
    assert sum(histogram.counts) == 0


@pytest.mark.parametrize("bucketing", [BucketSizing.CONSTANT, BucketSizing.LINEAR])
def test_percentiles_over_windows(metrics, clock, bucketing):
    stat = Percentiles(4000, bucketing, 100.0, percentiles=[Percentile(name(f"p{p}"), p) for p in (25, 50, 75)])
    sensor = metrics.sensor("s")
    sensor.add_compound(stat)
    for value in range(100):
        sensor.record(value)
    found = {n.name: m.value() for n, m in own(metrics).items()}
    assert found == {
        "p25": pytest.approx(25, abs=1),
        "p50": pytest.approx(50, abs=1),
        "p75": pytest.approx(75, abs=1),
    }
    assert stat.measure(metrics.config, metrics.now_ms()) == found["p50"]
    clock.advance(10)
    assert math.isnan(metrics.metrics[name("p50")].value())
    sensor.record(7)
    assert metrics.metrics[name("p50")].value() == pytest.approx(7, abs=1)


def test_percentiles_refuse_what_makes_no_sense():
    with pytest.raises(ValueError, match="begin at 0"):
        Percentiles(400, BucketSizing.LINEAR, 10, min_val=1)
    with pytest.raises(ValueError, match="bucketing must be"):
        Percentiles(400, 7, 10)


# Names, configuration, quotas


def test_names_are_equal_by_name_group_and_tags():
    assert name("a", x=1) == MetricName("a", "g", "another text", {"x": 1})
    assert hash(name("a", x=1)) == hash(MetricName("a", "g", None, {"x": 1}))
    assert name("a") != name("b")
    assert name("a", x=1) != name("a", x=2)
    assert name("a") != "a"
    for bad in (("", "g"), ("a", "")):
        with pytest.raises(ValueError, match="needs a name and a group"):
            MetricName(*bad)
    with pytest.raises(TypeError, match="must be a dict"):
        MetricName("a", "g", tags="x=1")


def test_names_carry_the_tags_of_the_registry():
    metrics = Metrics(MetricConfig(tags={"client-id": "c"}))
    assert metrics.metric_name("a", "g", tags={"x": 1}).tags == {"client-id": "c", "x": 1}


def test_a_configuration_needs_a_sample():
    with pytest.raises(ValueError, match="at least 1 sample, not 0"):
        MetricConfig(samples=0)


def test_quotas():
    assert Quota.upper_bound(10).is_upper_bound()
    assert not Quota.lower_bound(10).is_upper_bound()
    assert Quota.upper_bound(10) == Quota(10, True)
    assert len({Quota.upper_bound(1), Quota.upper_bound(1), Quota.lower_bound(1)}) == 2
    assert Quota.lower_bound(10).is_acceptable(10)
    assert not Quota.lower_bound(10).is_acceptable(9)


def test_a_value_beyond_the_quota_is_an_error_and_counts_all_the_same(metrics):
    sensor = metrics.sensor("s")
    sensor.add(name("total"), Total(), MetricConfig(quota=Quota.upper_bound(5)))
    sensor.record(5)
    with pytest.raises(QuotaViolationError, match=r"must be at most 5, not 6\.0"):
        sensor.record(1)
    assert metrics.metrics[name("total")].value() == 6
    below = metrics.sensor("below")
    below.add(name("low"), Total(), MetricConfig(quota=Quota.lower_bound(0)))
    with pytest.raises(QuotaViolationError, match="must be at least 0"):
        below.record(-1)


# Sensors and the registry


def test_parents_record_too(metrics):
    top = metrics.sensor("top")
    top.add(name("top"), Count())
    children = [metrics.sensor(f"child{i}", parents=[top]) for i in range(2)]
    grandchild = metrics.sensor("grandchild", parents=children[:1])
    for sensor in (top, *children, grandchild):
        sensor.record()
    assert metrics.metrics[name("top")].value() == 4


def test_a_parent_reached_twice_is_refused(metrics):
    top = metrics.sensor("top")
    child = metrics.sensor("child", parents=[top])
    with pytest.raises(ValueError, match="count twice"):
        metrics.sensor("bad", parents=[top, child])
    assert metrics.get_sensor("bad") is None


def test_a_sensor_is_made_once(metrics):
    assert metrics.sensor("s") is metrics.sensor("s") is metrics.get_sensor("s")
    assert repr(metrics.sensor("s")) == "<Sensor s>"
    assert metrics.get_sensor("t") is None
    for call in (metrics.get_sensor, metrics.sensor):
        with pytest.raises(ValueError, match="name"):
            call("")


def test_removing_a_sensor_removes_its_metrics_and_children(metrics):
    top = metrics.sensor("top")
    top.add(name("a"), Count())
    child = metrics.sensor("child", parents=[top])
    child.add(name("b"), Count())
    metrics.remove_sensor("child")
    assert set(own(metrics)) == {name("a")}
    metrics.sensor("child", parents=[top]).add(name("b"), Count())
    metrics.remove_sensor("top")
    assert not own(metrics)
    assert metrics.get_sensor("child") is None
    metrics.remove_sensor("top")


def test_a_metric_cannot_be_registered_twice(metrics):
    sensor = metrics.sensor("s")
    sensor.add(name("a"), Count())
    with pytest.raises(ValueError, match="already"):
        sensor.add(name("a"), Avg())
    with pytest.raises(ValueError, match="already"):
        metrics.add_metric(name("a"), AnonMeasurable(lambda config, now: 1))
    sensor.record()
    assert len(sensor.metrics) == 1


def test_values_measured_on_demand(metrics):
    metrics.add_metric(name("free"), AnonMeasurable(lambda config, now: now))
    metric = metrics.metrics[name("free")]
    assert metric.value(5) == 5
    assert metric.value() == metrics.now_ms()
    assert metrics.remove_metric(name("free")) is metric
    assert metrics.remove_metric(name("free")) is None
    assert "free" in repr(metric)
    with pytest.raises(TypeError, match="measure"):
        metrics.add_metric(name("bad"), 5)


def test_compound_stats_only(metrics):
    with pytest.raises(TypeError, match=r"stats\(\)"):
        metrics.sensor("s").add_compound(Avg())


def test_expired_sensors_go_when_someone_looks(metrics, clock):
    metrics.sensor("short", inactive_sensor_expiration_time_seconds=1).add(name("short"), Count())
    metrics.sensor("long", inactive_sensor_expiration_time_seconds=10).add(name("long"), Count())
    metrics.sensor("ever").add(name("ever"), Count())
    clock.advance(0.9)
    metrics.sensor("short").record()
    clock.advance(0.9)
    assert len(own(metrics)) == 3
    clock.advance(0.2)
    assert set(own(metrics)) == {name("long"), name("ever")}
    assert metrics.get_sensor("short") is None
    clock.advance(100)
    Metrics.ExpireSensorTask.run(metrics)
    assert set(own(metrics)) == {name("ever")}
    again = metrics.sensor("short", inactive_sensor_expiration_time_seconds=1)
    again.add(name("short"), Count())
    again.record()
    assert metrics.metrics[name("short")].value() == 1


def test_nothing_expires_unless_it_is_enabled(clock):
    metrics = Metrics(clock=clock)
    metrics.sensor("s", inactive_sensor_expiration_time_seconds=1).add(name("a"), Count())
    clock.advance(1000)
    assert len(own(metrics)) == 1


class Recorder(AbstractMetricsReporter):
    def __init__(self):
        self.calls = []

    def init(self, metrics):
        self.calls.append(("init", [m.metric_name.name for m in metrics]))

    def metric_change(self, metric):
        self.calls.append(("change", metric.metric_name.name))

    def metric_removal(self, metric):
        self.calls.append(("removal", metric.metric_name.name))

    def configure(self, configs):
        self.calls.append(("configure", configs))

    def close(self):
        self.calls.append(("close", None))


def test_reporters_are_notified_of_everything(clock):
    first, second = Recorder(), Recorder()
    metrics = Metrics(reporters=[first], clock=clock)
    metrics.sensor("s").add(name("a"), Count())
    metrics.add_reporter(second)
    metrics.remove_sensor("s")
    metrics.close()
    assert first.calls == [("init", []), ("change", "count"), ("change", "a"), ("removal", "a"), ("close", None)]
    assert second.calls == [("init", ["count", "a"]), ("removal", "a"), ("close", None)]


@pytest.mark.parametrize("what", ["metric_change", "metric_removal", "close"])
def test_a_reporter_that_raises_is_logged_and_the_others_are_notified(what, clock, caplog, monkeypatch):
    """As in Java: a client works without what shows its metrics, whenever that fails."""
    broken, second = Recorder(), Recorder()

    def fails(*_):
        raise ValueError("the gauge is full")

    monkeypatch.setattr(broken, what, fails)
    metrics = Metrics(reporters=[broken, second], clock=clock)
    metrics.sensor("s").add(name("a"), Count())
    metrics.remove_sensor("s")
    metrics.close()
    assert second.calls == [("init", []), ("change", "count"), ("change", "a"), ("removal", "a"), ("close", None)]
    assert name("a") not in metrics.metrics
    lines = [record for record in caplog.records if record.levelname == "ERROR"]
    assert len(lines) == (2 if what == "metric_change" else 1)
    assert f"failed in {what}()" in lines[0].getMessage()
    assert "the gauge is full" in str(lines[0].exc_info)


def test_dict_reporter_groups_by_prefix_group_and_tags(metrics):
    reporter = DictReporter("p")
    metrics.add_metric(name("early"), AnonMeasurable(lambda config, now: 1))
    metrics.add_reporter(reporter)
    metrics.add_metric(name("a", b=2, a=1), AnonMeasurable(lambda config, now: 2))
    count = "p.kafka-metrics-count"
    assert reporter.snapshot() == {count: {"count": 3}, "p.g": {"early": 1}, "p.g.a=1,b=2": {"a": 2}}
    metrics.remove_metric(name("early"))
    assert reporter.snapshot() == {count: {"count": 2}, "p.g.a=1,b=2": {"a": 2}}
    assert reporter.configure({}) is None
    assert DictReporter(None).get_category(KafkaMetric(name("a"), Count(), MetricConfig())) == "g"


def test_snapshot_is_grouped(metrics):
    metrics.sensor("s").add(name("a"), Count())
    metrics.sensor("s").add(name("b", "h"), Total())
    metrics.sensor("s").record()
    assert metrics.snapshot() == {"kafka-metrics-count": {"count": 3.0}, "g": {"a": 1.0}, "h": {"b": 1.0}}


def test_threads_lose_no_value():
    metrics = Metrics()
    sensor = metrics.sensor("s")
    sensor.add(name("total"), Total())
    parent_of_all = [threading.Thread(target=lambda: [sensor.record() for _ in range(2000)]) for _ in range(4)]
    for thread in parent_of_all:
        thread.start()
    while any(thread.is_alive() for thread in parent_of_all):
        metrics.snapshot()
    assert metrics.metrics[name("total")].value() == 8000


@pytest.mark.parametrize(
    ("module", "names"),
    [
        ("compound_stat", "AbstractCompoundStat NamedMeasurable"),
        ("dict_reporter", "DictReporter"),
        ("kafka_metric", "KafkaMetric"),
        ("measurable", "AbstractMeasurable AnonMeasurable"),
        ("measurable_stat", "AbstractMeasurableStat"),
        ("metric_config", "MetricConfig"),
        ("metric_name", "MetricName"),
        ("metrics", "Metrics"),
        ("metrics_reporter", "AbstractMetricsReporter"),
        ("quota", "Quota"),
        ("stat", "AbstractStat"),
        ("stats", "Avg Count Histogram Max Min Percentile Percentiles Rate Sensor Total SampledStat"),
        ("stats.avg", "Avg"),
        ("stats.count", "Count"),
        ("stats.histogram", "Histogram"),
        ("stats.max_stat", "Max"),
        ("stats.min_stat", "Min"),
        ("stats.percentile", "Percentile"),
        ("stats.percentiles", "Percentiles BucketSizing"),
        ("stats.rate", "Rate TimeUnit"),
        ("stats.sampled_stat", "AbstractSampledStat"),
        ("stats.sensor", "Sensor"),
        ("stats.total", "Total"),
    ],
)
def test_historic_import_paths(module, names):
    found = importlib.import_module(f"kafka.metrics.{module}")
    for each in names.split():
        assert isinstance(getattr(found, each), type)


def test_a_measurable_is_abstract():
    with pytest.raises(TypeError, match="abstract"):
        AbstractMeasurable()


# Values are taken in by the hundred; nobody may see a difference


@pytest.mark.parametrize("seed", range(10))
def test_deferred_records_count_as_if_they_had_been_taken_in_at_once(seed):
    rng = random.Random(seed)
    config = MetricConfig(samples=3, time_window_ms=1000, event_window=rng.choice([7, 10**9]))
    kinds = [Avg, Max, Min, Count, SampledTotal, Total, Rate]
    sensor = Metrics(config).sensor("s")
    metrics, plain = [], [kind() for kind in kinds]
    for kind in kinds:
        sensor.add(MetricName(kind.__name__, "g"), kind())
        metrics.append(sensor.metrics[-1])
    now = 0.0
    for _ in range(1000):
        now += rng.choice([0, 1, 30, 2000 * (rng.random() < 0.02)])
        value = rng.uniform(-5, 5)
        sensor.record(value, now)
        for stat in plain:
            stat.record(config, value, now)
        if rng.random() < 0.02:
            expected = [stat.measure(config, now) for stat in plain]
            assert [metric.value(now) for metric in metrics] == pytest.approx(expected)


def test_threads_that_record_while_others_look_lose_nothing():
    sensor = Metrics().sensor("s")
    sensor.add(MetricName("total", "g"), Total())
    (metric,) = sensor.metrics
    threads = [threading.Thread(target=lambda: [sensor.record(1) for _ in range(5000)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        metric.value()
    assert metric.value() == 20_000


def test_a_subclass_of_a_stat_that_overrides_the_method_for_one_value_is_called_for_each():
    class Even(Max):
        def update(self, sample, config, value, time_ms):
            if value % 2 == 0:
                super().update(sample, config, value, time_ms)

    class Doubled(Total):
        def record(self, config, value, time_ms):
            super().record(config, 2 * value, time_ms)

    config = MetricConfig()
    even, doubled = Even(), Doubled()
    even.record_all(config, (1, 4, 7), (0, 0, 0))
    doubled.record_all(config, (1, 4, 7), (0, 0, 0))
    assert (even.measure(config, 0), doubled.measure(config, 0)) == (4, 24)


# Journals


def fed(clock, config, *, by_journal):
    """Return a registry, and for each of two brokers the function that records a request to it."""
    metrics, adders = Metrics(config, clock=clock), []
    totals = [metrics.sensor(name) for name in ("latency", "size")]
    for node in (1, 2):
        sensors = [metrics.sensor(f"{total.name}-{node}", parents=[total]) for total in totals]
        if by_journal:
            adders.append(Journal(*sensors).add)
        else:
            adders.append(lambda *values, sensors=sensors: list(map(Sensor.record, sensors, values)))
    for sensor in totals + [metrics.get_sensor(f"{total.name}-{node}") for total in totals for node in (1, 2)]:
        for stat in (Avg(), Max(), Total(), Rate(), Rate(sampled_stat=Count()), SampledTotal()):
            sensor.add(name(f"{type(stat).__name__}-{len(sensor.metrics)}", sensor.name), stat)
    return metrics, adders


@pytest.mark.parametrize("seed", range(20))
def test_a_journal_gives_its_sensors_what_they_would_have_recorded(clock, config, seed):
    rng = random.Random(seed)
    journaled, rows = fed(clock, config, by_journal=True)
    recorded, twins = fed(clock, config, by_journal=False)
    for _ in range(600):
        node = rng.choice((0, 0, 0, 1))  # so that one broker's rows wait while the other's are handed over
        values = rng.randrange(1000), rng.randrange(1000)
        rows[node](*values)
        twins[node](*values)
        clock.advance(rng.choice((0, 0.001, 0.5, 3)))
        if rng.random() < 0.02:
            assert journaled.snapshot() == recorded.snapshot()
    assert journaled.snapshot() == recorded.snapshot()


def test_no_row_of_two_threads_is_lost_while_the_metrics_are_read():
    metrics = Metrics()
    sensors = [metrics.sensor(each) for each in ("a", "b")]
    for sensor in sensors:
        sensor.add(name("total", sensor.name), Total())
    journal = Journal(*sensors)

    def add():
        for _ in range(5000):
            journal.add(1, 2)

    threads = [threading.Thread(target=add) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        metrics.snapshot()
    found = metrics.snapshot()
    assert (found["a"], found["b"]) == ({"total": 20_000}, {"total": 40_000})


def test_a_reporter_that_cannot_be_closed_keeps_nothing_else_from_being_closed(clock, caplog):
    class Broken(Recorder):
        def close(self):
            raise OSError("the pipe is broken")

    last = Recorder()
    Metrics(reporters=[Broken(), last], clock=clock).close()
    assert last.calls[-1] == ("close", None)
    assert "the pipe is broken" in caplog.text
