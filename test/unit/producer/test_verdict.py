"""What each error of a broker means for a batch."""

from __future__ import annotations

import pytest

from kafka.errors import FixNeededError, KafkaConnectionError, for_code
from kafka.producer.verdict import Verdict, judge


@pytest.mark.parametrize("code", range(1, 134))
def test_every_error_has_a_verdict_that_fits_its_family(code):
    error = for_code(code)()
    verdict = judge(error, 100)
    if error.retriable:
        assert verdict is Verdict.RETRY
    if isinstance(error, FixNeededError) and code != 18:
        assert verdict is Verdict.FAIL


def test_a_connection_that_broke_is_tried_again():
    assert judge(KafkaConnectionError("gone"), 1) is Verdict.RETRY


@pytest.mark.parametrize(("code", "many", "one"), [
    (10, Verdict.DIVIDE, Verdict.FAIL),
    (18, Verdict.DIVIDE, Verdict.FAIL),
    (45, Verdict.SEQUENCE, Verdict.SEQUENCE),
    (46, Verdict.DONE, Verdict.DONE),
    (47, Verdict.SEQUENCE, Verdict.SEQUENCE),
    (59, Verdict.SEQUENCE, Verdict.SEQUENCE),
    (100, Verdict.RETRY, Verdict.RETRY),
])  # fmt: skip
def test_the_special_ones(code, many, one):
    assert judge(for_code(code)(), 2) is many
    assert judge(for_code(code)(), 1) is one
