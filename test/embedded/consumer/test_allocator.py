"""A consumer sees to it that memory of replies is not given back before the next one."""

from __future__ import annotations

from kafka.consumer.fetch_response import keep_freed_memory

from .conftest import MakeConsumer


def test_with_the_first_consumer_of_a_process_freed_memory_is_kept(make_consumer: MakeConsumer) -> None:
    keep_freed_memory.cache_clear()
    make_consumer()
    make_consumer()
    assert keep_freed_memory.cache_info().misses == 1
