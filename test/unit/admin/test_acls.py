"""ACL objects: what they accept, compare by, and show."""

from __future__ import annotations

import pytest

from kafka.admin import ACL, ACLFilter, ACLOperation, ResourcePattern, ResourcePatternFilter
from kafka.admin.acls import valid_acl_operations
from kafka.errors import IllegalArgumentError

EVENTS = ResourcePattern("topic", "events")


def test_an_acl_is_concrete():
    for operation, permission in (("any", "allow"), ("read", "any")):
        with pytest.raises(IllegalArgumentError, match="must"):
            ACL("User:a", "*", operation, permission, EVENTS)
    with pytest.raises(IllegalArgumentError, match="must be a ResourcePattern"):
        ACL("User:a", "*", "read", "allow", ResourcePatternFilter("topic", "events"))  # type: ignore[arg-type]
    for principal in (None, ""):
        with pytest.raises(IllegalArgumentError, match="principal"):
            ACL(principal, "*", "read", "allow", EVENTS)  # type: ignore[arg-type]


def test_a_resource_pattern_is_concrete():
    for given in (("any", "x"), ("topic", "x", "match"), ("topic", "x", "any"), ("topic", ""), ("topic", None)):
        with pytest.raises(IllegalArgumentError):
            ResourcePattern(*given)  # type: ignore[arg-type]


def test_a_filter_may_leave_everything_open():
    every = ACLFilter(None, None, ACLOperation.ANY, "any", ResourcePatternFilter("any", None, "any"))
    assert every == ACLFilter() == ACLFilter(resource_pattern=ResourcePatternFilter())
    assert every.principal is None
    with pytest.raises(IllegalArgumentError, match="ResourcePatternFilter"):
        ACLFilter(None, None, "any", "any", "topic")  # type: ignore[arg-type]


def test_equal_ones_compare_and_hash_alike():
    one, other = (ACL("User:a", "*", "read", "allow", ResourcePattern("topic", "events")) for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert one != ACL("User:a", "*", "write", "allow", EVENTS)
    assert one != ACLFilter("User:a", "*", "read", "allow", EVENTS)
    assert ResourcePatternFilter("topic", "events", "literal") != EVENTS


def test_numbers_of_operations_that_a_newer_kafka_may_have_are_left_out():
    assert valid_acl_operations([3, 99]) == {ACLOperation.READ}
    assert ACLOperation.DESCRIBE_TOKENS == 14
