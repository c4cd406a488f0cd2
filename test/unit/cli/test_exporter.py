"""The exporter without a broker: lag, its age, the text of Prometheus, dashboards and rules."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafka import TopicPartition
from kafka.cli.exporter.dashboards import RULES, dashboards, rules, write
from kafka.cli.exporter.facts import Choice, Facts, GroupFacts, TopicFacts, lag_of
from kafka.cli.exporter.lag_history import LagHistory
from kafka.cli.exporter.series import LEVELS, METRICS, Series, exposition
from kafka.cli.exporter.server import Page

TP = TopicPartition("events", 0)


@given(st.integers(0, 2**63 - 1), st.integers(0, 2**62), st.integers(0, 2**62))
def test_a_lag_counts_records_that_exist_and_is_never_negative(offset: int, begin: int, size: int) -> None:
    end = begin + size
    assert lag_of(offset, begin, end) == len(range(max(offset, begin), end)) if size < 2**31 else True
    assert 0 <= lag_of(offset, begin, end) <= size


@given(
    st.lists(st.tuples(st.floats(0.1, 100), st.integers(0, 50)), min_size=1, max_size=300),
    st.integers(0, 5000),
)
def test_the_age_of_a_record_lies_between_the_samples_around_it(steps: list[tuple[float, int]], offset: int) -> None:
    """A record came between two collections: its age is never outside of them, and never negative."""
    history, now, end = LagHistory(), 0.0, 0
    seen: list[tuple[float, int]] = []
    for step, more in steps:
        now, end = now + step, end + more
        history.add(now, {TP: end})
        seen.append((now, end))
    age = history.seconds(TP, offset)
    if offset >= end:
        assert age == 0
        return
    later = next(time for time, known in seen if known > offset)
    if later == seen[0][0]:  # it was there at the first collection
        assert age is None or 0 < age <= now - later + 1e-6
        return
    assert age is not None
    assert age >= now - later - 1e-6  # samples that were left out since only make the space wider
    assert 0 <= age <= now - seen[0][0] + 1e-6


def test_a_topic_that_was_made_again_has_no_age_of_its_former_self() -> None:
    history = LagHistory()
    for now, end in ((0.0, 1000), (10.0, 2000), (20.0, 5), (30.0, 10)):
        history.add(now, {TP: end})
    assert history.seconds(TP, 10) == 0
    assert history.seconds(TP, 7) == pytest.approx(6.0)


def test_partitions_that_went_are_forgotten() -> None:
    history = LagHistory()
    for round_ in range(5):
        history.add(
            float(round_), {TopicPartition(f"t{round_}-{number}", 0): 10 for number in range(1000)} | {TP: round_}
        )
    assert len(history._slots) < 4000
    assert history.seconds(TP, 2) == pytest.approx(2.0)
    assert history.seconds(TopicPartition("other", 0), 0) is None


def facts(groups: int = 2) -> Facts:
    topics = {"events": TopicFacts(2, 0, 0, {0: 10, 1: 0}, {0: 30, 1: 5}, 100)}
    made = {}
    for number in range(groups):
        group = made[f"g{number:03}"] = GroupFacts("classic", "Stable", folded=False)
        group.members = 1
        group.topic("events").add(0, 20, 10, 30, 4.0, None)
        group.topic("events").add(1, 5, 0, 5, None, None)
    return Facts([{"id": 1, "address": "b:9092", "rack": ""}], topics, made, 0, [])


_SAMPLE = re.compile(
    r'(?P<name>[a-z_]+)\{(?P<labels>(?:[a-z_]+="(?:[^"\\\n]|\\["\\n])*"(?:,(?=[a-z]))?)+)\} (?P<value>-?[0-9.e+]+)\n'
)


def read(pieces: Iterable[bytes], by: str = "topic") -> dict[str, dict[str, float]]:
    """Read the text as Prometheus does: each line a comment of a metric or a sample, no sample twice."""
    text = b"".join(pieces).decode()
    found: dict[str, dict[str, float]] = {}
    described = ""
    for line in text.splitlines(keepends=True):
        if line.startswith("# HELP "):
            described = line.split()[2]
            assert described not in found, f"{described} is described twice"
            found[described] = {}
        elif line.startswith("# TYPE "):
            assert line.split()[2:] == [described, "gauge"]
        else:
            sample = _SAMPLE.fullmatch(line)
            assert sample is not None, line
            assert sample["name"] == described
            assert sample["labels"] not in found[described], f"{line} is there twice"
            names = re.findall(r'([a-z_]+)="', sample["labels"])
            labels = ("cluster", *METRICS[described].labels)
            summed = by == "group" and "consumergroup" in labels
            assert tuple(names) == tuple(label for label in labels if not summed or label != "topic")
            found[described][sample["labels"]] = float(sample["value"])
            assert found[described][sample["labels"]] >= 0
    return found


@pytest.mark.parametrize("by", LEVELS)
def test_the_text_is_what_prometheus_reads(by: str) -> None:
    clusters = [Series("east"), Series('we"st\\')]
    for one in clusters:
        assert one.add_facts(facts(), by, 10**6, states=True) == 0
    found = read(exposition(clusters), by)
    group = 'cluster="east",consumergroup="g000"'
    topic = group if by == "group" else f'{group},topic="events"'
    assert found["kafka_consumergroup_lag_sum"][topic] == 10
    assert found["kafka_consumergroup_lag_seconds"][topic] == 4
    assert found["kafka_consumergroup_retention_ratio"][topic] == 0.5
    assert found["kafka_topic_current_offset_sum"]['cluster="we\\"st\\\\",topic="events"'] == 35
    assert ("kafka_consumergroup_lag" in found) == (by == "partition")
    assert sum(map(len, found.values())) == sum(one.count for one in clusters)


def test_partitions_are_the_first_series_that_are_left_out() -> None:
    whole = Series("c")
    assert whole.add_facts(facts(50), "partition", 10**6, states=False) == 0
    for most in (whole.count - 1, 500, 100, 10):
        some = Series("c")
        dropped = some.add_facts(facts(50), "partition", most, states=False)
        assert some.count <= most
        assert some.count + dropped == whole.count
        assert not list(some.text("kafka_consumergroup_lag"))


def test_a_page_of_many_series_is_whole_plain_and_compressed() -> None:
    made = Series("c")
    made.add_facts(facts(3000), "partition", 10**6, states=False)
    text = b"".join(exposition([made]))
    assert len(read([text], "partition")["kafka_consumergroup_lag"]) == 6000
    assert text.count(b"# HELP kafka_consumergroup_lag ") == 1
    page = Page(gzip.compress(text, 1), len(text), [])
    assert b"".join(page.text()) == text
    assert max(map(len, page.text())) < 300_000


def test_a_partition_that_is_not_known_takes_the_sum_away_and_is_counted() -> None:
    found = facts(1)
    found.groups["g000"].topic("events").add(7, 100, None, None, None, None)
    made = Series("c")
    made.add_facts(found, "topic", 10**6, states=False)
    samples = read(exposition([made]))
    assert "kafka_consumergroup_lag_sum" not in samples
    assert list(samples["kafka_consumergroup_unknown_partitions"].values()) == [1]
    assert list(samples["kafka_consumergroup_lag_max"].values()) == [10]


def test_records_that_were_deleted_unread_are_lost_and_not_lag() -> None:
    group = GroupFacts("classic", "Empty", folded=False)
    group.topic("events").add(0, 100, 500, 1000, None, None)
    lag = group.topics["events"]
    assert (lag.lags, lag.lost, lag.ratio) == ({0: 500}, 400, 1.0)


def test_groups_are_chosen_and_folded() -> None:
    pattern = re.compile
    choice = Choice(pattern("^(app|job)"), pattern("-test$"), None, ((pattern(r"job-[0-9a-f]+"), "jobs"),))
    names = ["app", "app-test", "job-1f", "job-x", "other"]
    assert [choice.group(name) for name in names] == ["app", None, "jobs", "job-x", None]
    assert (choice.topic("events", False), choice.topic("__consumer_offsets", True)) == (True, False)
    assert choice._replace(topics=pattern("^__")).topic("__consumer_offsets", True)


def _queries(value: Any) -> list[str]:
    if isinstance(value, dict):
        inner = [query for each in value.values() for query in _queries(each)]
        return inner + [each for key, each in value.items() if key in {"expr", "query"} and isinstance(each, str)]
    return [query for each in value for query in _queries(each)] if isinstance(value, list) else []


def test_o14_each_metric_in_dashboards_and_rules_exists_with_its_labels(tmp_path: Path) -> None:
    files = write(tmp_path)
    assert sorted(path.name for path in files) == ["kafka-alerts.yml", "kafka-groups.json", "kafka-overview.json"]
    queries = [query for path in files for query in _queries(json.loads(path.read_text(encoding="utf-8")))]
    assert len(queries) > 25
    used = set()
    for query in queries:
        names = set(re.findall(r"\bkafka_\w+", query))
        used |= names
        assert names <= METRICS.keys(), query
        labels = {label for name in names for label in ("cluster", *METRICS[name].labels)}
        chosen = set(re.findall(r"(\w+)=~", query))
        for listed in re.findall(r"(?:by|on) \(([^)]*)\)", query):
            chosen |= set(listed.split(", "))
        assert chosen <= labels, query
    assert len(used) > 15
    for name, (query, _, _, text) in RULES.items():
        assert not re.search(r"\b(increase|i?rate|resets)\(", query), "these take a gauge that falls for a counter"
        labels = {label for metric in re.findall(r"\bkafka_\w+", query) for label in METRICS[metric].labels}
        assert set(re.findall(r"\$labels\.(\w+)", text)) <= labels | {"cluster"}, name
    assert len(json.loads(rules())["groups"][0]["rules"]) == len(RULES)
    for found in dashboards().values():
        assert len({panel["id"] for panel in found["panels"]}) == len(found["panels"])
        for panel in found["panels"]:
            metric = METRICS[re.findall(r"\bkafka_\w+", panel["targets"][0]["expr"])[0]]
            shown = set(re.findall(r"\{\{(\w+)\}\}", panel["targets"][0]["legendFormat"]))
            assert shown <= {"cluster", *metric.labels}, panel["title"]


def test_the_page_of_the_docs_has_each_metric_with_its_labels() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "exporter.rst").read_text(encoding="utf-8")
    own, others = page.split("The same figure in other exporters\n")
    rows = re.findall(r"\* - ``(kafka_\w+)``\n     - (.*)\n     - (.*)\n", own)
    assert [name for name, _, _ in rows] == list(METRICS)
    for name, labels, meaning in rows:
        assert tuple(re.findall(r"``(\w+)``", labels)) == METRICS[name].labels
        assert meaning == METRICS[name].meaning
    assert set(re.findall(r"``(kafka_\w+)``", page)) <= METRICS.keys()
    assert len(re.findall(r"\* - ``(kafka_\w+)``", others)) > 10
