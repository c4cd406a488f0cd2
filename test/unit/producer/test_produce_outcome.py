"""What each error of a broker means for a batch."""

from __future__ import annotations

import pytest

from kafka.errors import FixNeededError, KafkaConnectionError, for_code
from kafka.producer.producer_batch import ProduceOutcome, classify


def test_every_error_has_a_verdict_that_fits_its_family():
    for code in range(1, 134):
        error = for_code(code)()
        verdict = classify(error, 100)
        if error.retriable:
            assert verdict is ProduceOutcome.RETRY
        if isinstance(error, FixNeededError) and code != 18:
            assert verdict is ProduceOutcome.FAIL


def test_a_connection_that_broke_is_tried_again():
    assert classify(KafkaConnectionError("gone"), 1) is ProduceOutcome.RETRY


@pytest.mark.parametrize(("code", "many", "one"), [
    (10, ProduceOutcome.DIVIDE, ProduceOutcome.FAIL),
    (18, ProduceOutcome.DIVIDE, ProduceOutcome.FAIL),
    (45, ProduceOutcome.SEQUENCE, ProduceOutcome.SEQUENCE),
    (46, ProduceOutcome.DONE, ProduceOutcome.DONE),
    (47, ProduceOutcome.SEQUENCE, ProduceOutcome.SEQUENCE),
    (59, ProduceOutcome.SEQUENCE, ProduceOutcome.SEQUENCE),
    (100, ProduceOutcome.RETRY, ProduceOutcome.RETRY),
])  # fmt: skip
def test_the_special_ones(code, many, one):
    assert classify(for_code(code)(), 2) is many
    assert classify(for_code(code)(), 1) is one
