"""Access control lists: who may do what, and which bindings a filter means."""

from __future__ import annotations

from typing import Any

import pytest

from kafka.broker.security.acls import AccessControl, Binding, Filter, Pattern, Permission
from kafka.errors import InvalidRequestError

TOPIC, GROUP, CLUSTER = 2, 3, 4
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION, DESCRIBE_CONFIGS, ALTER_CONFIGS = range(2, 12)


def bind(name: str = "t", operation: int = READ, **changes: Any) -> Binding:
    binding = Binding(TOPIC, name, Pattern.LITERAL, "User:bob", "*", operation, Permission.ALLOW)
    return binding._replace(**changes)


def control(*bindings: Binding, **options: Any) -> AccessControl:
    made = AccessControl(**options)
    for binding in bindings:
        made.create(binding)
    return made


def may(access: AccessControl, operation: int, name: str = "t", who: str = "User:bob", host: str = "10.0.0.1") -> bool:
    return access.allows(who, host, operation, TOPIC, name)


def test_nothing_is_allowed_that_no_binding_allows() -> None:
    access = control(bind())
    assert may(access, READ)
    assert not may(access, WRITE)
    assert not may(access, READ, "other")
    assert not may(access, READ, who="User:eve")
    assert not access.allows("User:bob", "10.0.0.1", READ, GROUP, "t")


def test_a_right_to_any_resource_is_one_to_a_name_or_prefix_that_is_not_denied() -> None:
    def may_any(*bindings: Binding, **options: Any) -> bool:
        return control(*bindings, **options).allows_any("User:bob", "10.0.0.1", WRITE, TOPIC)

    def deny(name: str, pattern: int = Pattern.LITERAL) -> Binding:
        return bind(name, WRITE, pattern_type=pattern, permission=Permission.DENY)

    prefix = bind("ab", WRITE, pattern_type=Pattern.PREFIXED)
    assert not may_any()
    assert may_any(bind("t", WRITE))  # whether or not there is such a topic
    assert may_any(bind("t", ALL))
    assert may_any(prefix)
    assert may_any(bind("*", WRITE))
    assert may_any(super_users=["User:bob"])
    assert may_any(allow_if_none=True)
    assert not may_any(bind("t", READ))
    assert not may_any(bind("t", WRITE, principal="User:eve"))
    assert not may_any(bind("t", WRITE, host="10.0.0.2"))
    assert not may_any(bind("t", WRITE, resource_type=GROUP))
    assert not may_any(bind("t", WRITE), deny("t"))
    assert not may_any(bind("t", WRITE), deny("*"))
    assert not may_any(bind("abc", WRITE), deny("ab", Pattern.PREFIXED))
    assert not may_any(prefix, deny("a", Pattern.PREFIXED))
    assert may_any(prefix, deny("ab"), deny("abc", Pattern.PREFIXED))
    assert may_any(bind("*", WRITE), deny("t"))


@pytest.mark.parametrize("operation", [READ, WRITE, DELETE, ALTER])
def test_the_right_to_use_a_resource_includes_describing_it(operation: int) -> None:
    assert may(control(bind(operation=operation)), DESCRIBE)
    assert not may(control(bind(operation=operation)), DESCRIBE_CONFIGS)
    assert may(control(bind(operation=ALTER_CONFIGS)), DESCRIBE_CONFIGS)


def test_denial_wins_over_everything_but_super_users_and_implies_nothing() -> None:
    denial = bind("*", READ, principal="User:*", permission=Permission.DENY)
    access = control(bind(operation=ALL), denial, super_users=["User:root"])
    assert not may(access, READ)
    assert may(access, WRITE)
    assert may(access, DESCRIBE)
    assert may(access, READ, who="User:root")


def test_wildcards_prefixes_and_hosts() -> None:
    access = control(
        bind("logs-", pattern_type=Pattern.PREFIXED),
        bind("*", WRITE, host="10.0.0.1"),
        bind("t", ALL, principal="User:*"),
    )
    assert may(access, READ, "logs-1")
    assert not may(access, READ, "log")
    assert may(access, WRITE, "any")
    assert not may(access, WRITE, "any", host="10.0.0.2")
    assert may(access, CREATE, "t", who="User:anyone")


def test_where_nothing_is_bound_a_setting_decides() -> None:
    assert may(control(allow_if_none=True), READ)
    assert not may(control(bind(), allow_if_none=True), WRITE)


@pytest.mark.parametrize(
    "changes",
    [
        {"pattern_type": Pattern.MATCH},
        {"resource_type": 1},
        {"operation": 16},
        {"operation": 1},
        {"permission": Permission.ANY},
        {"resource_name": ""},
        {"principal": "bob"},
        {"resource_type": CLUSTER, "operation": ALTER},
    ],
)
def test_bindings_that_make_no_sense_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(InvalidRequestError):
        AccessControl().create(bind(**changes))


def test_filters_find_and_delete() -> None:
    bindings = [bind(), bind("logs-", pattern_type=Pattern.PREFIXED), bind("*", WRITE), bind("t", principal="User:al")]
    access = control(*bindings)

    def found(**wanted: Any) -> list[Binding]:
        return list(access.find(Filter(**wanted)))

    assert found() == bindings
    assert found(resource_name="t") == [bindings[0], bindings[3]]
    assert found(resource_name="logs-9", pattern_type=Pattern.MATCH) == [bindings[1], bindings[2]]
    assert found(pattern_type=Pattern.PREFIXED) == [bindings[1]]
    assert found(operation=WRITE) == [bindings[2]]
    assert found(resource_type=GROUP) == []
    assert access.delete(Filter(principal="User:al")) == [bindings[3]]
    assert found() == bindings[:3]
    with pytest.raises(InvalidRequestError):
        found(operation=0)


def test_bindings_are_there_again_after_a_restart() -> None:
    table: dict[str, Any] = {}
    AccessControl(table).create(bind())
    assert may(AccessControl(table), READ)
