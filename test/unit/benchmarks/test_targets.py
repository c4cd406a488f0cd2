import pytest

from benchmarks.stats import Sample
from benchmarks.targets import check
from benchmarks.workload import Target


def runs(*cpu_us: float, **extra: float) -> list[Sample]:
    return [Sample(1, 0, cost / 1e6, 1, 1, dict(extra)) for cost in cpu_us]


SAMPLES = {
    "decode-plain": {"purekafka": runs(1, 1), "kafka-python": runs(5, 5), "aiokafka": runs(0.9, 0.9)},
    "decode-keys": {"purekafka": runs(2, 2), "kafka-python": runs(6, 6)},
    "columns": {"purekafka": runs(0.25, 0.25)},
}
PEERS = ["purekafka", "kafka-python", "aiokafka"]


def verdicts(*targets: Target, samples=SAMPLES, peers=PEERS):
    return [(verdict.claim, verdict.holds) for verdict in check(targets, samples, peers)]


def test_a_ratio_is_checked_on_every_case_that_matches():
    assert verdicts(Target("decode-*", peer="kafka-python", at_least=4)) == [
        ("decode-plain: cpu_us of kafka-python / ours >= 4", True),
        ("decode-keys: cpu_us of kafka-python / ours >= 4", False),
    ]


def test_a_pattern_of_peers_means_each_of_them_but_not_ourselves():
    assert verdicts(Target("decode-plain", peer="*", at_least=1)) == [
        ("decode-plain: cpu_us of kafka-python / ours >= 1", True),
        ("decode-plain: cpu_us of aiokafka / ours >= 1", False),
    ]


def test_a_peer_that_cannot_do_the_case_gives_no_verdict():
    assert verdicts(Target("decode-keys", peer="aiokafka", at_least=1)) == []


def test_a_peer_left_out_by_choice_gives_no_verdict():
    assert verdicts(Target("decode-plain", peer="aiokafka", at_least=1), peers=["purekafka"]) == []


def test_ours_can_be_held_against_another_case_of_ours():
    target = Target("columns", peer="purekafka", peer_case="decode-plain", at_least=2)
    assert verdicts(target) == [("columns: cpu_us of purekafka on decode-plain / ours >= 2", True)]


def test_a_bound_without_a_peer_is_on_our_own_figure():
    assert verdicts(Target("columns", at_most=0.2), Target("columns", at_most=0.3)) == [
        ("columns: cpu_us <= 0.2", False),
        ("columns: cpu_us <= 0.3", True),
    ]


def test_own_figures_of_a_workload_can_be_bounded():
    samples = {"latency": {"purekafka": runs(1, p99_ms=3.0)}}
    assert verdicts(Target("latency", metric="p99_ms", at_most=5), samples=samples) == [("latency: p99_ms <= 5", True)]


@pytest.mark.parametrize("target", [Target("lost", at_most=1), Target("lost", peer="kafka-python", at_least=1)])
def test_a_target_is_missed_where_ours_gave_no_figure(target):
    [verdict] = check([target], {"lost": {"kafka-python": runs(1)}}, PEERS)
    assert verdict.seen is None
    assert not verdict.holds
