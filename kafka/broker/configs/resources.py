"""Describing and changing the configuration of resources, whatever their kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka.broker.configs.loggers import alter_loggers, describe_loggers
from kafka.broker.configs.option import Kind, Option, parse_list
from kafka.broker.configs.resource_kinds import GROUP, TOPIC, Change, Described, ResourceKind, kind_of
from kafka.broker.security.acls import CLUSTER_NAME, Operation, Resource
from kafka.errors import BrokerResponseError, Code, InvalidConfigurationError, InvalidRequestError, UnknownError

if TYPE_CHECKING:
    from kafka.broker.server.call import Call
    from kafka.protocol.api import Response
    from kafka.protocol.configs import AlterConfigsRequest, IncrementalAlterConfigsRequest

BROKER_LOGGER: Final = 8

ResponseT = TypeVar("ResponseT", bound="Response")

SET, DELETE, APPEND, SUBTRACT = range(4)
#: Kafka's message for a kind that it does not know.
_MALFORMED: Final = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an "
    "incompatible broker. See the broker logs for more details."
)


def describe(call: Call, number: int, name: str, keys: Iterable[str] | None) -> list[Described]:
    """Return the options of a resource, all of them or those named."""
    kind = kind_of(number, call.cluster, call.node.node_id)
    if number == BROKER_LOGGER:
        rows = describe_loggers(call.node, name)
    elif kind is not None:
        rows = kind.describe(name)
    else:
        raise InvalidRequestError(_MALFORMED)
    wanted = set(keys or ())
    return [row for row in rows if not wanted or row.option.name in wanted]


def alter_all(
    call: Call[ResponseT],
    request: AlterConfigsRequest | IncrementalAlterConfigsRequest,
    change_of: Callable[[Any], Change],
    *,
    replace: bool,
) -> ResponseT:
    """Serve AlterConfigs or IncrementalAlterConfigs; ``change_of`` reads one entry of it."""
    responses = []
    times = Counter((resource.resource_type, resource.resource_name) for resource in request.resources)
    for resource in request.resources:
        number, name = resource.resource_type, resource.resource_name
        code, message = refusal(call, Operation.ALTER_CONFIGS, number, name)
        if not code and times[number, name] > 1:
            code, message = Code.INVALID_REQUEST, "Each resource must appear at most once."
        if not code:
            changes = [change_of(config) for config in resource.configs]
            try:
                _alter(call, number, name, changes, replace=replace, validate_only=request.validate_only)
            except BrokerResponseError as error:
                code, message = error.code, error.args[0] if error.args else None
        responses.append((code, message, number, name))
    return call.response(responses=responses)


def refusal(call: Call, operation: Operation, number: int, name: str) -> tuple[int, str | None]:
    """Return why a client may not do that with the configuration of a resource; 0 if it may."""
    kind, resource, code = {
        TOPIC: ("Topic", Resource.TOPIC, Code.TOPIC_AUTHORIZATION_FAILED),
        GROUP: ("Group", Resource.GROUP, Code.GROUP_AUTHORIZATION_FAILED),
    }.get(number, ("Cluster", Resource.CLUSTER, Code.CLUSTER_AUTHORIZATION_FAILED))
    if call.allows(operation, resource, CLUSTER_NAME if resource is Resource.CLUSTER else name):
        return 0, None
    return code, f"{kind} authorization failed."


def _alter(
    call: Call, number: int, name: str, changes: Iterable[Change], *, replace: bool, validate_only: bool
) -> None:
    """Change the configuration of a resource, or with ``replace`` put this in the place of all that was set."""
    seen = Counter(change.name for change in changes)
    if number == BROKER_LOGGER and not replace:
        _check_once(seen)
        alter_loggers(call.node, name, changes, validate_only=validate_only)
        return
    kind = kind_of(number, call.cluster, call.node.node_id)
    if kind is None:
        raise InvalidRequestError(
            f"Unknown resource type {number}" if number == BROKER_LOGGER else f"Unsupported resource type: {number}"
        )
    before = kind.own(name)
    after = {} if replace else dict(before)
    _check_once(seen)
    for change in changes:
        if change.value is None and change.operation != DELETE:
            raise InvalidRequestError(f"Null value not supported for : {change.name}")
    for change in changes:
        _apply(kind, name, after, change)
    kind.check(after)
    kind.check_exists(name)
    if not validate_only:
        kind.keep(name, after)


def _check_once(seen: Counter[str]) -> None:
    if any(times > 1 for times in seen.values()):
        raise InvalidRequestError("Error due to duplicate config keys")


def _apply(kind: ResourceKind, name: str, values: dict[str, str], change: Change) -> None:
    deletes = change.operation == DELETE
    try:
        option = kind.option(change.name)
    except BrokerResponseError:
        if not deletes:
            raise
        return  # it is not set, as is wanted
    kind.check_change(name, option, deletes=deletes)
    if deletes:
        values.pop(change.name, None)
        return
    assert change.value is not None
    value = change.value
    if change.operation in {APPEND, SUBTRACT}:
        value = _edit(kind, option, values, change.operation, value)
    elif change.operation != SET:
        raise UnknownError
    values[change.name] = value


def _edit(kind: ResourceKind, option: Option, values: dict[str, str], operation: int, words: str) -> str:
    """Return a list with words appended or removed."""
    if option.kind is not Kind.LIST or not kind.appends:
        verb = "APPEND" if operation == APPEND else "SUBTRACT"
        raise InvalidConfigurationError(f"Can't {verb} to key {option.name} because its type is not LIST.")
    have, edit = parse_list(values.get(option.name, option.default or "")), [word.strip() for word in words.split(",")]
    if operation == APPEND:
        return ",".join([*have, *(word for word in edit if word not in have)])
    return ",".join(word for word in have if word not in edit)
