"""What an answer to a batch means: one rule per error, without looking at anything but the error.

The words are those of the sender: DONE, RETRY, SEQUENCE (the broker does not accept the sequence number), DIVIDE, FAIL.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from kafka.errors import (
    DuplicateSequenceNumberError,
    InvalidProducerEpochError,
    KafkaError,
    MessageSizeTooLargeError,
    OutOfOrderSequenceNumberError,
    RecordListTooLargeError,
    UnknownProducerIdError,
    UnknownTopicIdError,
)

__all__ = ["Verdict", "judge"]


class Verdict(Enum):
    """What to do with the batch."""

    DONE = "written"
    RETRY = "send the same bytes again"
    SEQUENCE = "not written: the broker expects another sequence number, or knows the producer no more"
    DIVIDE = "not written: too large for the broker"
    FAIL = "not written, and never will be"


_SEQUENCE: Final = (OutOfOrderSequenceNumberError, UnknownProducerIdError, InvalidProducerEpochError)
_TOO_LARGE: Final = (MessageSizeTooLargeError, RecordListTooLargeError)


def judge(error: KafkaError, records: int) -> Verdict:
    """Return what an error means for a batch of so many records.

    >>> from kafka.errors import for_code
    >>> judge(for_code(6)(), 100), judge(for_code(10)(), 100), judge(for_code(10)(), 1)
    (<Verdict.RETRY: 'send the same bytes again'>, <Verdict.DIVIDE: 'not written: too large for the broker'>, \
<Verdict.FAIL: 'not written, and never will be'>)
    """
    if isinstance(error, DuplicateSequenceNumberError):
        # The broker has it, from so long ago that it does not remember where.
        return Verdict.DONE
    if isinstance(error, _SEQUENCE):
        return Verdict.SEQUENCE
    if isinstance(error, _TOO_LARGE) and records > 1:
        return Verdict.DIVIDE
    if error.retriable or isinstance(error, UnknownTopicIdError):
        return Verdict.RETRY
    return Verdict.FAIL
